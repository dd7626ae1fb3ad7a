"""Are the sums in the tables those of the sealed lines? Asked when a ledger is opened, and by each process when others wrote.

Charges are decided by the table of accounts, which anyone who can write to the database can change. So every process keeps what
the lines add up to beside it (`Sums`), and holds against it what it reads: all accounts and all sources when it opens the ledger,
and an account that it reads again because another process has written. To add up all lines would take longer with each of them,
so now and then a line repeats the sums (`checkpoint`); opening reads back to the newest of these and adds what came after it,
which is at most as many lines as one checkpoint is apart from the next.

A checkpoint names every account. Of the sources it has the sum of their keyed digests modulo 2²⁵⁶, to which each new one adds its
own (Clarke et al. 2003, MSet-Add-Hash): without the key nobody finds another set of the same sum.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cloister.errors import CloisterError
from cloister.ledger.chain import BEGINNING, chained, sealer
from cloister.ledger.measure import Units, charged_units, decode, units_up
from cloister.ledger.store import Store, blob

Row: TypeAlias = tuple[str | None, Units, bool]
"""Of an account: the budget or the share as its column holds it, what was spent, and whether that is all."""

LEAST = 1000
"""So many lines lie between two checkpoints at least; more where there are many accounts, which each of them names."""

_PAGE = 500
_BACK = "SELECT sequence, payload FROM lines WHERE sequence <= ? ORDER BY sequence DESC LIMIT ?"
_AHEAD = "SELECT sequence, payload, hash FROM lines WHERE sequence > ? ORDER BY sequence LIMIT ?"
_LINE = "SELECT payload, hash FROM lines WHERE sequence = ?"
_ACCOUNTS = "SELECT population, who, cap, spent, slack, unbounded FROM accounts"
_FIRST = '{"accounts":'
"""How the text of a checkpoint begins, and of no other line."""
_MODULUS = 2**256


class Broken(Exception):
    """A line that is not what was written; its number. It is caught where sums are asked for, and leaves no further."""


@dataclass(slots=True)
class Sums:
    """What the lines up to `number` add up to."""

    key: bytes
    number: int = 0
    hash: bytes = BEGINNING
    checkpoint: int = 0
    accounts: dict[tuple[str, str], Row] = field(default_factory=dict)
    sources: int = 0
    _pending: dict[int, str] = field(default_factory=dict)

    def advance(self, store: Store, pending: Iterable[tuple[int, str, bytes]] = ()) -> None:
        """Take in the lines that came since; `pending` are those of the transaction that is not written yet."""
        seal = sealer(self.key)
        pending = list(pending)
        self._pending = {number: text for number, text, _ in pending}
        for number, text, end in (*raw_lines(store, self.number), *pending):
            if number != self.number + 1 or not is_text(text) or seal(number, self.hash, text) != end:
                raise Broken(self.number + 1)
            try:
                payload = json.loads(text)
                if (step := _STEPS.get(payload["kind"])) is not None:
                    step(self, payload, store)
            except (
                LookupError,
                ValueError,
                TypeError,
                AttributeError,
                CloisterError,
            ):  # sealed, and yet none that a ledger writes
                raise Broken(number) from None
            self.number, self.hash = number, end
            if text.startswith(_FIRST):
                self.checkpoint = number

    def differs(self, store: Store) -> bool:
        """Whether an account or a source in the tables is not what the lines say."""
        rows = store.execute(_ACCOUNTS).fetchall()
        expected = {(*place, cap, str(units[0]), str(units[1]), int(ends)) for place, (cap, units, ends) in self.accounts.items()}
        if len(rows) != len(expected) or {tuple(row) for row in rows} != expected:
            return True
        bound = store.execute("SELECT source, population FROM sources").fetchall()
        if not all(isinstance(value, str) for row in bound for value in row):
            return True
        return source_sum(self.key, ((source, name) for source, name in bound)) != self.sources

    def plain(self) -> dict[str, Any]:
        """What a checkpoint says."""
        return checkpoint_of(self.accounts, self.sources)

    def _restart(self, payload: Mapping[str, Any], store: Store) -> None:
        """A checkpoint: what came before it is in it."""
        self.accounts = {
            (name, who): (cap, (int(spent, 16), int(slack, 16)), bool(unbounded))
            for name, who, cap, spent, slack, unbounded in payload["accounts"]
        }
        self.sources = int(payload["sources"], 16)

    def _opened(self, payload: Mapping[str, Any], store: Store) -> None:
        self.accounts[payload["population"], ""] = (" ".join(payload["budget"]), (0, 0), False)

    def _raised(self, payload: Mapping[str, Any], store: Store) -> None:
        self._set(payload["population"], "", cap=" ".join(payload["budget"]))

    def _allotted(self, payload: Mapping[str, Any], store: Store) -> None:
        self._set(payload["population"], payload["user"], cap=" ".join(payload["share"]))

    def _reserved(self, payload: Mapping[str, Any], store: Store, sign: int = 1) -> None:
        for name, units in self._charged(payload).items():
            self._add(name, "", units, sign)
            self._add(name, payload["who"], units, sign)

    def _voided(self, payload: Mapping[str, Any], store: Store) -> None:
        number = payload["id"]
        reserved = json.loads(self._pending[number]) if number in self._pending else sealed(store, self.key, number)
        if reserved is None:
            raise Broken(number)
        self._reserved(reserved, store, -1)

    def _drawn(self, payload: Mapping[str, Any], store: Store) -> None:
        for name, units in self._charged(payload).items():
            self._add(name, payload["who"], units, 1)

    def _bound(self, payload: Mapping[str, Any], store: Store) -> None:
        added = source_sum(self.key, [(payload["source"], payload["population"])])
        self.sources = (self.sources + added) % _MODULUS

    def _not_private(self, payload: Mapping[str, Any], store: Store) -> None:
        self._set(payload["population"], "", unbounded=True)

    def _restored(self, payload: Mapping[str, Any], store: Store) -> None:
        for name, budget in payload["budgets"].items():
            self.accounts[name, ""] = (" ".join(budget), (0, 0), False)
        for name, loss in payload["losses"].items():
            self._set(name, "", spent=units_up(decode(loss)))
        for name in payload["unbounded"]:
            self._set(name, "", unbounded=True)

    def _charged(self, payload: Mapping[str, Any]) -> dict[str, Units]:
        return charged_units(payload, {name: str(self.accounts[name, ""][0]).partition(" ")[0] for name in payload["costs"]})

    def _add(self, name: str, who: str, units: Units, sign: int) -> None:
        _, (first, delta), _ = self.accounts.get((name, who), (None, (0, 0), False))
        self._set(name, who, spent=(first + sign * units[0], delta + sign * units[1]))

    def _set(
        self, name: str, who: str, *, cap: str | None = None, spent: Units | None = None, unbounded: bool | None = None
    ) -> None:
        found = self.accounts.get((name, who), (None, (0, 0), False))
        self.accounts[name, who] = (
            found[0] if cap is None else cap,
            found[1] if spent is None else spent,
            found[2] if unbounded is None else unbounded,
        )


_STEPS: dict[str, Callable[[Sums, Mapping[str, Any], Store], None]] = {
    "checkpoint": Sums._restart,
    "opened": Sums._opened,
    "raised": Sums._raised,
    "allotted": Sums._allotted,
    "reserved": Sums._reserved,
    "voided": Sums._voided,
    "drawn": Sums._drawn,
    "bound": Sums._bound,
    "not private": Sums._not_private,
    "restored": Sums._restored,
}


def sealed_sums(store: Store, key: bytes, last: int) -> tuple[Sums, int | None]:
    """The sums of all lines up to the last, and the number of the first line that is not what was written, where one is found
    after the newest checkpoint; then the sums are those before it."""
    start = _checkpoint_before(store, last)
    sums = Sums(key)
    if start > 1:
        row = store.execute(_LINE, (start - 1,)).fetchone()
        sums = Sums(key, number=start - 1, hash=b"" if row is None else blob(row[1]))
    try:
        sums.advance(store)
    except Broken as broken:
        return sums, int(broken.args[0])
    return sums, None if sums.number == last else sums.number + 1


def due(sums: Sums, sequence: int) -> bool:
    """Whether so many lines came since the newest checkpoint that another is worth its place."""
    return sequence - sums.checkpoint >= max(LEAST, 4 * len(sums.accounts))


def checkpoint_of(accounts: Mapping[tuple[str, str], Row], sources: int) -> dict[str, Any]:
    """What a checkpoint says of these accounts, and of sources with this sum.

    >>> checkpoint_of({("people", ""): ("pure 1", (26, 0), False)}, 255)
    {'accounts': [['people', '', 'pure 1', '1a', '0', 0]], 'sources': 'ff'}
    """
    rows = [
        [name, who, cap, f"{units[0]:x}", f"{units[1]:x}", int(unbounded)]
        for (name, who), (cap, units, unbounded) in sorted(accounts.items())
    ]
    return {"accounts": rows, "sources": f"{sources:x}"}


def source_sum(key: bytes, sources: Iterable[tuple[str, str]]) -> int:
    """The sum of the keyed digests of sources, each with its population.

    >>> one, other = ("5f3a", "people"), ("77c1", "people")
    >>> source_sum(bytes(32), [one, other]) == source_sum(bytes(32), [other, one])
    True
    """
    secret = hashlib.sha256(b"sources:" + key).digest()
    total = 0
    for source, population in sources:
        text = json.dumps([source, population]).encode()
        total += int.from_bytes(hmac.digest(secret, text, "sha256"), "big")
    return total % _MODULUS


def _checkpoint_before(store: Store, last: int) -> int:
    """The number of the newest checkpoint; 1 where there is none."""
    while last > 1:
        rows = store.execute(_BACK, (last, _PAGE)).fetchall()
        for number, text in rows:
            if isinstance(text, str) and text.startswith(_FIRST):
                return int(number)
        last = rows[-1][0] - 1 if rows else 0
    return 1


def raw_lines(store: Store, after: int = 0) -> Iterator[tuple[int, Any, bytes]]:
    """Number, text and hash of every line after that one, as they stand; a page at a time, so that a long chain needs little
    memory."""
    while True:
        rows = store.execute(_AHEAD, (after, _PAGE)).fetchall()
        for number, text, end in rows:
            yield number, text, blob(end)
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]


def sealed(store: Store, key: bytes, number: int) -> dict[str, Any] | None:
    """A line whose own seal fits; None where it doesn't."""
    row, parent = (store.execute(_LINE, (each,)).fetchone() for each in (number, number - 1))
    before = BEGINNING if parent is None else blob(parent[1])
    if row is None or not is_text(row[0]) or chained(key, number, before, row[0]) != blob(row[1]):
        return None
    return dict(json.loads(row[0]))


def is_text(value: object) -> bool:
    """Whether it can be a line: text, in ASCII.

    >>> is_text('{"at":5}'), is_text(b"{}"), is_text("é")
    (True, False, False)
    """
    return isinstance(value, str) and value.isascii()
