"""The ledger's state as one transaction sees it: the end of the chain, and the accounts that the transaction touches.

Lines and accounts are gathered here while a batch of charges runs, and written once, just before the commit. A book stays valid
for the next transaction for as long as the chain still ends where this book left it, since nothing changes without a line.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cloister.crypto import canonical_json
from cloister.errors import LedgerError, LedgerTampered
from cloister.ledger.chain import BEGINNING, sealer
from cloister.ledger.checkpoint import Broken, Row, Sums, due, is_text, raw_lines, sealed_sums
from cloister.ledger.head import Account, Head
from cloister.ledger.measure import Units, decode, encode, guarantee_of, kind_of, units_down
from cloister.ledger.store import Store, blob
from cloister.privacy.guarantee import Guarantee

_NEWEST = "SELECT sequence, hash FROM lines ORDER BY sequence DESC LIMIT 1"
_ACCOUNT = "SELECT cap, spent, slack, unbounded FROM accounts WHERE population = ? AND who = ?"
_SAVE = """INSERT INTO accounts (population, who, cap, spent, slack, unbounded) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (population, who) DO UPDATE
    SET cap = excluded.cap, spent = excluded.spent, slack = excluded.slack, unbounded = excluded.unbounded"""
_SAVE_TWO = _SAVE.replace("(?, ?, ?, ?, ?, ?)", "(?, ?, ?, ?, ?, ?), (?, ?, ?, ?, ?, ?)")

_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
_MOST_LIVE = 10_000  # more than may be at work at once; forgotten ones are looked up


@dataclass(slots=True)
class Population:
    """A budget and what is spent of it. Not frozen: it is this transaction's working copy."""

    name: str
    budget: Guarantee
    kind: str
    limit: Units
    encoded: list[str]
    cap: str
    spent: Units = (0, 0)
    unbounded: bool = False

    @classmethod
    def new(cls, name: str, budget: Guarantee) -> Population:
        """A population that has spent nothing."""
        return cls(name, budget, kind_of(budget), units_down(budget), encode(budget), canonical_budget(budget))

    def grow(self, budget: Guarantee) -> None:
        """Give it a larger budget."""
        self.budget, self.limit, self.encoded = budget, units_down(budget), encode(budget)
        self.cap = canonical_budget(budget)

    def has_room(self, cost: Units) -> bool:
        """Whether a charge fits, in both amounts."""
        return self.spent[0] + cost[0] <= self.limit[0] and self.spent[1] + cost[1] <= self.limit[1]

    def add(self, cost: Units) -> None:
        """Charge it."""
        self.spent = (self.spent[0] + cost[0], self.spent[1] + cost[1])

    def remaining(self) -> Guarantee:
        """What is left; never below zero (a loss entered after a restored backup may be more than the budget)."""
        return guarantee_of(self.kind, (max(self.limit[0] - self.spent[0], 0), max(self.limit[1] - self.spent[1], 0)))


@dataclass(slots=True)
class Spender:
    """What one person has spent of one population, and the share that caps it (None: nothing but the budget does)."""

    share: Guarantee | None = None
    limit: Units | None = None
    spent: Units = (0, 0)

    def has_room(self, cost: Units) -> bool:
        """Whether a charge fits the person's share."""
        limit = self.limit
        return limit is None or (self.spent[0] + cost[0] <= limit[0] and self.spent[1] + cost[1] <= limit[1])

    def left(self) -> Units:
        """What is left of the share; never below zero (a share may be set below what was spent)."""
        limit = self.limit or (0, 0)
        return max(limit[0] - self.spent[0], 0), max(limit[1] - self.spent[1], 0)

    def add(self, cost: Units) -> None:
        """Charge it."""
        self.spent = (self.spent[0] + cost[0], self.spent[1] + cost[1])


class Book:
    """The working copy. `begin` and `flush` bracket a transaction; `reset` after one that was rolled back."""

    def __init__(self, store: Store, key: bytes, clock: Callable[[], float]) -> None:
        self.store = store
        self.key = key
        self._seal = sealer(key)
        self._clock = clock
        self.sequence = 0
        self.hash = BEGINNING
        self.writes = 0
        self.sums: Sums | None = None
        """What the lines add up to, against which an account is held that is read from its table; None: nothing is."""
        self._known: tuple[int, bytes] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget everything but the furthest line ever seen."""
        self._loaded = False
        self._at = 0
        self._populations: dict[str, Population | None] = {}
        self._spenders: dict[tuple[str, str], Spender] = {}
        self.live: dict[int, tuple[str, str]] = {}
        """Reservations at their first attempt that this process wrote and that are neither settled, voided nor taken over, each
        with its first population and its plan: what a settlement would otherwise ask the tables. No other process can have
        touched them, since the book is reset when the chain ends where another process left it."""
        self._clear()

    def _clear(self) -> None:
        self._lines: list[tuple[int, str, bytes]] = []
        self._touched: dict[str, Population] = {}
        self._touched_spenders: dict[tuple[str, str], Spender] = {}

    def begin(self) -> bool:
        """See where the chain ends now, and whether another process has written since.

        An end before, or beside, the one last seen means that the database was put back.
        """
        newest = self.store.execute(_NEWEST).fetchone()
        sequence, end = (newest[0], blob(newest[1])) if newest else (0, BEGINNING)
        if self._loaded and sequence == self.sequence and end == self.hash:
            return False
        if not isinstance(sequence, int):
            raise _tampered("the number of its newest line is missing")
        if self._known is not None and (sequence, end) != self._known and not self.contains(*self._known):
            raise _tampered("the ledger lost lines that this process had seen")
        self.reset()
        self.sequence, self.hash, self._loaded = sequence, end, True
        if self.sums is not None:
            self._add_up(self.sums, sequence)
        if sequence:
            self._at = _time_of(self.store.execute("SELECT payload FROM lines WHERE sequence = ?", (sequence,)).fetchone())
        return True

    def _add_up(self, sums: Sums, sequence: int) -> None:
        """Take the lines that others wrote into the sums; again, where a transaction of this process was undone."""
        broken = None
        if sums.number > sequence or not self.contains(sums.number, sums.hash):
            self.sums, broken = sealed_sums(self.store, self.key, sequence)
        else:
            try:
                sums.advance(self.store)
            except Broken as found:
                broken = found.args[0]
        if broken is not None:
            self._loaded = False
            raise _tampered(f"line {broken} of its database is not what was written")

    def add_checkpoint(self) -> None:
        """Where many lines came since the last one: a line more, which repeats the sums."""
        if self.sums is None or not self._lines or not due(self.sums, self.sequence):
            return
        self.sums.advance(self.store, self._lines)
        if due(self.sums, self.sequence):
            self.line("checkpoint", **self.sums.plain())

    def reload(self) -> None:
        """Forget what was read of the tables, which were made again."""
        self._populations.clear()
        self._spenders.clear()
        self.writes += 1

    def contains(self, sequence: int, end: bytes) -> bool:
        """Whether the stored chain has this hash at this place."""
        if sequence == 0:
            return True
        row = self.store.execute("SELECT hash FROM lines WHERE sequence = ?", (sequence,)).fetchone()
        return row is not None and blob(row[0]) == end

    def line(self, kind: str, **payload: Any) -> int:
        """One line more; its number."""
        return self.append(canonical_json({"kind": kind, "at": self.now(), **payload}))

    def now(self) -> int:
        """The time of the next line: it never runs backwards in the chain, whatever the clock says."""
        at = int(self._clock() * 1_000_000)
        if at > self._at:
            self._at = at
        return self._at

    def append(self, text: str) -> int:
        """One line more, whose canonical text was made elsewhere; its number."""
        self.sequence += 1
        self.hash = self._seal(self.sequence, self.hash, text)
        self._lines.append((self.sequence, text, self.hash))
        self.writes += 1
        return self.sequence

    def payload(self, sequence: int) -> dict[str, Any]:
        """What a line says, written or about to be."""
        for number, text, _ in self._lines:
            if number == sequence:
                return dict(json.loads(text))
        return dict(json.loads(self.store.execute("SELECT payload FROM lines WHERE sequence = ?", (sequence,)).fetchone()[0]))

    def keep_live(self, number: int, population: str, what: str) -> None:
        """Remember a reservation that was just written; of those that nobody ever settles, not without end."""
        if len(self.live) >= _MOST_LIVE:
            self.live.clear()
        self.live[number] = (population, what)

    def write(self, sql: str, values: tuple[Any, ...]) -> int:
        """A change of a table that is not kept here; how many rows changed."""
        changed = self.store.execute(sql, values).rowcount
        self.writes += changed
        return changed

    def population(self, name: str) -> Population:
        """The population of that name, or an error that says how to make one."""
        found = self.find_population(name)
        if found is None:
            raise LedgerError(
                f"Population {name!r} was not found",
                why="this ledger has no budget for it",
                instead=f"ledger.open({name!r}, PureDP(1), who='…')",
            )
        return found

    def find_population(self, name: str) -> Population | None:
        """The population of that name, if there is one."""
        if name not in self._populations:
            row = self.store.execute(_ACCOUNT, (name, "")).fetchone()
            self._check(name, "", row)
            self._populations[name] = None if row is None else _population(name, *row)
        return self._populations[name]

    def populations(self) -> list[Population]:
        """All of them, by name."""
        names = [
            row[0] for row in self.store.execute("SELECT population FROM accounts WHERE who = '' ORDER BY population").fetchall()
        ]
        return [self.population(name) for name in names]

    def spender(self, population: str, who: str) -> Spender:
        """What that person has spent of that population."""
        place = (population, who)
        found = self._spenders.get(place)
        if found is None:
            row = self.store.execute(_ACCOUNT, place).fetchone()
            self._check(population, who, row)
            found = self._spenders[place] = Spender() if row is None else _spender(*row)
        return found

    def _check(self, population: str, who: str, row: tuple[Any, ...] | None) -> None:
        """Refuse an account that is not what the lines add up to. What this process has written itself is not read again."""
        if self.sums is None:
            return
        expected: Row | None = self.sums.accounts.get((population, who))
        told = None if expected is None else (expected[0], *map(str, expected[1]), int(expected[2]))
        if (None if row is None else tuple(row)) != told:
            raise _tampered("an account in its tables is not what its sealed lines add up to")

    def check_waits(self, number: int, what: str) -> None:
        """Refuse a reservation that is about to be taken over, unless the lines say that it is of this plan, and that it was
        neither settled nor taken over nor voided: it would be answered once more under a charge that is used up.

        Rows of tables can be dropped, and so can lines before the newest checkpoint, which nobody reads at opening. So the chain
        is read from the reservation to its end.
        """
        end = next((sealed for sequence, _, sealed in self._lines if sequence == number - 1), None)
        if end is None:  # it was written before this transaction, or is missing
            row = self.store.execute("SELECT hash FROM lines WHERE sequence = ?", (number - 1,)).fetchone()
            end = b"" if row is None else blob(row[0])
        expected, ending = number, f'"id":{number:d},"kind":"'
        unwritten = (line for line in self._lines if line[0] >= number)
        for sequence, text, sealed in itertools.chain(raw_lines(self.store, number - 1), unwritten):
            if sequence != expected or not is_text(text) or self._seal(sequence, end, text) != sealed:
                raise _tampered(f"line {expected} of its database is not what was written")
            if sequence == number and json.loads(text).get("what") != what:
                raise _tampered("its tables say of a charge that it is for another plan than its line says")
            if ending in text:
                raise _tampered("an earlier attempt at the same had ended, and its tables no longer say so")
            expected, end = sequence + 1, sealed
        if end != self.hash:
            raise _tampered(f"line {expected} of its database is missing")

    def save_population(self, population: Population) -> None:
        """Keep a changed population."""
        self.writes += 1
        self._populations[population.name] = self._touched[population.name] = population

    def save_spender(self, population: str, who: str, spender: Spender) -> None:
        """Keep a changed spender."""
        self.writes += 1
        self._spenders[population, who] = self._touched_spenders[population, who] = spender

    def flush(self) -> Head | None:
        """Write what was gathered; the head that the commit will make true, or None where there is nothing to commit."""
        if not self._lines:
            return None
        execute = self.store.execute
        if len(self._lines) == 1:
            execute("INSERT INTO lines (sequence, payload, hash) VALUES (?, ?, ?)", self._lines[0])
        else:
            self.store.executemany("INSERT INTO lines (sequence, payload, hash) VALUES (?, ?, ?)", self._lines)
        rows: list[tuple[object, ...]] = []
        accounts: dict[str, Account] = {}
        for name, found in self._touched.items():
            rows.append((name, "", found.cap, str(found.spent[0]), str(found.spent[1]), int(found.unbounded)))
            accounts[name] = account_of(found)
        for (name, who), spender in self._touched_spenders.items():
            share = None if spender.share is None else canonical_budget(spender.share)
            rows.append((name, who, share, str(spender.spent[0]), str(spender.spent[1]), 0))
        if len(rows) == 2:  # one person's charge to one population, which is most of them
            execute(_SAVE_TWO, (*rows[0], *rows[1]))
        elif rows:
            self.store.executemany(_SAVE, rows)
        self._clear()
        return Head(self.sequence, self.hash.hex(), accounts)

    def committed(self) -> None:
        """The transaction is durable: what it saw is now the furthest line seen."""
        self._known = (self.sequence, self.hash)

    def state(self) -> Head:
        """The head with the accounts of all populations."""
        return Head(
            count=self.sequence, hash=self.hash.hex(), accounts={found.name: account_of(found) for found in self.populations()}
        )


def account_of(population: Population) -> Account:
    """What the head file remembers of a population."""
    return Account(population.encoded, population.spent, population.unbounded)


def canonical_budget(guarantee: Guarantee) -> str:
    """A guarantee in one column."""
    return " ".join(encode(guarantee))


@functools.lru_cache(maxsize=1024)
def budget_of(text: str) -> Guarantee:
    """The guarantee that a column holds."""
    return decode(text.split(" "))


def _tampered(why: str) -> LedgerTampered:
    return LedgerTampered("Nothing was charged", why=why, instead="ledger.verify(), and the last backup")


def _time_of(row: tuple[Any, ...] | None) -> int:
    """When the newest line was written; the beginning of time where it says none, which is found when the lines are added up."""
    try:
        return int(json.loads(row[0])["at"]) if row is not None else 0
    except (ValueError, TypeError, LookupError):
        return 0


def _population(name: str, budget: str, spent: str, slack: str, unbounded: int) -> Population:
    try:
        found = Population.new(name, budget_of(budget))
        found.spent, found.unbounded = (int(spent), int(slack)), bool(unbounded)
    except _UNREADABLE:
        raise _unreadable(name) from None
    return found


def _spender(share: str | None, spent: str, slack: str, _unbounded: int) -> Spender:
    try:
        guarantee = None if share is None else budget_of(share)
        return Spender(guarantee, None if guarantee is None else units_down(guarantee), (int(spent), int(slack)))
    except _UNREADABLE:
        raise _unreadable("a person's share") from None


def _unreadable(what: str) -> LedgerTampered:
    return LedgerTampered(
        f"The account of {what!r} could not be read",
        why="its row in the tables is not what a ledger writes",
        instead="ledger.verify(), and the last backup",
    )
