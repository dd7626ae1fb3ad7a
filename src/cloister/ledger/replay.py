"""What the tables should hold: the lines read again from the first, by code that shares nothing with the code that wrote the
tables.

It works with guarantees as fractions where the writing code counts units, keeps everything in memory, and trusts no table.
`verify` compares the two; a migration builds the tables again from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from cloister.ledger.measure import GRID, amounts_of, decode, encode, in_measure, kind_of
from cloister.privacy.guarantee import Guarantee

Sums: TypeAlias = tuple[Fraction, Fraction]

_UNIT = Fraction(1, GRID)


@dataclass(slots=True)
class Account:
    """A population, as the lines tell it."""

    budget: Guarantee
    spent: Sums = (Fraction(0), Fraction(0))
    unbounded: bool = False


@dataclass(slots=True)
class Open:
    """A reservation that a later line may settle, void or claim."""

    who: str
    what: str
    charges: dict[str, Sums]
    rerun: bool


@dataclass(slots=True)
class Replay:
    """The state after the lines that were given to `apply`, in order."""

    populations: dict[str, Account] = field(default_factory=dict)
    spent_by: dict[tuple[str, str], Sums] = field(default_factory=dict)
    shares: dict[tuple[str, str], Guarantee] = field(default_factory=dict)
    waiting: dict[int, Open] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    voided: set[int] = field(default_factory=set)
    releases: dict[int, tuple[int, str]] = field(default_factory=dict)
    charges: set[tuple[str, str, int]] = field(default_factory=set)
    draws: dict[tuple[str, str, str], Sums] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    format: int = 0
    _at: int = 0

    def apply(self, number: int, payload: Mapping[str, Any]) -> str | None:
        """Take one line in. None, or why this line could not have been written after the ones before it."""
        step = _STEPS.get(payload.get("kind", ""))
        if step is None:
            return "the line is of a kind that no ledger writes"
        if payload["at"] < self._at:
            return "the line is earlier than the one before it"
        self._at = payload["at"]
        try:
            return step(self, number, payload)
        except (KeyError, ValueError, TypeError, IndexError):
            return "the line speaks of what no line before it wrote"

    def outcomes(self) -> list[tuple[int, str, int]]:
        """The reservations that were taken over, or voided."""
        taken = [(number, "reserved", 2) for number in self.taken]
        return taken + [(number, "voided", 1) for number in self.voided]

    def accounts(self) -> set[tuple[str, str, str | None, str, str, int]]:
        """The rows of the table of accounts."""
        rows: set[tuple[str, str, str | None, str, str, int]] = set()
        for name, held in self.populations.items():
            rows.add((name, "", " ".join(encode(held.budget)), *_units(held.spent), int(held.unbounded)))
        for place in self.spent_by.keys() | self.shares.keys():
            share, spent = self.shares.get(place), self.spent_by.get(place, (Fraction(0), Fraction(0)))
            rows.add((*place, None if share is None else " ".join(encode(share)), *_units(spent), 0))
        return rows

    def drawn_rows(self) -> set[tuple[str, ...]]:
        """The rows of the table of draws."""
        return {(*place, *_units(sums)) for place, sums in self.draws.items()}

    def _created(self, number: int, payload: Mapping[str, Any]) -> str | None:
        self.format = payload["format"]
        return None if number == 1 else "the line begins the ledger once more"

    def _migrated(self, number: int, payload: Mapping[str, Any]) -> str | None:
        self.format = payload["to"]
        return None

    def _opened(self, number: int, payload: Mapping[str, Any]) -> str | None:
        if payload["population"] in self.populations:
            return "the line opens a population that was open"
        self.populations[payload["population"]] = Account(decode(payload["budget"]))
        return None

    def _raised(self, number: int, payload: Mapping[str, Any]) -> str | None:
        account, budget = self.populations[payload["population"]], decode(payload["budget"])
        if not account.budget <= budget:
            return "the line lowers a budget"
        account.budget = budget
        return None

    def _allotted(self, number: int, payload: Mapping[str, Any]) -> str | None:
        self.shares[payload["population"], payload["user"]] = decode(payload["share"])
        return None

    def _checkpoint(self, number: int, payload: Mapping[str, Any]) -> str | None:
        """Says nothing new; `verify` compares what it says."""
        return None

    def _reserved(self, number: int, payload: Mapping[str, Any]) -> str | None:
        charges = self._charges(payload)
        for name, amounts in charges.items():
            account = self.populations[name]
            account.spent = _plus(account.spent, amounts)
            limit = amounts_of(account.budget)
            if account.spent[0] > limit[0] or account.spent[1] > limit[1]:
                return "the line charges more than the budget holds"
            self._spend(name, payload["who"], amounts)
            self.charges.add((name, payload["what"], number))
        self.waiting[number] = Open(payload["who"], payload["what"], charges, payload.get("rerun", True))
        return None

    def _claimed(self, number: int, payload: Mapping[str, Any]) -> str | None:
        found = self.waiting[payload["id"]]
        if not found.rerun or found.who != payload["who"]:
            return "the line takes over a reservation that may not be taken over"
        found.rerun = False
        self.taken.add(payload["id"])
        return None

    def _settled(self, number: int, payload: Mapping[str, Any]) -> str | None:
        del self.waiting[payload["id"]]
        self.releases[payload["id"]] = (number, payload["release"])
        return None

    def _voided(self, number: int, payload: Mapping[str, Any]) -> str | None:
        found = self.waiting.pop(payload["id"])
        if payload["id"] in self.taken:
            return "the line gives back a charge that stands"
        for name, amounts in found.charges.items():
            back = (-amounts[0], -amounts[1])
            self.populations[name].spent = _plus(self.populations[name].spent, back)
            self._spend(name, found.who, back)
        self.voided.add(payload["id"])
        return None

    def _drawn(self, number: int, payload: Mapping[str, Any]) -> str | None:
        for name, amounts in self._charges(payload).items():
            self._spend(name, payload["who"], amounts)
            place = (name, payload["who"], payload["what"])
            self.draws[place] = _plus(self.draws.get(place, (Fraction(0), Fraction(0))), amounts)
        return None

    def _bound(self, number: int, payload: Mapping[str, Any]) -> str | None:
        if payload["source"] in self.sources:
            return "the line gives a source to another population"
        self.sources[payload["source"]] = payload["population"]
        return None if payload["population"] in self.populations else "the line speaks of a population that was not open"

    def _not_private(self, number: int, payload: Mapping[str, Any]) -> str | None:
        self.populations[payload["population"]].unbounded = True
        self.charges.add((payload["population"], payload["what"], number))
        return None

    def _restored(self, number: int, payload: Mapping[str, Any]) -> str | None:
        for name, budget in payload["budgets"].items():
            self.populations[name] = Account(decode(budget))
        for name, loss in payload["losses"].items():
            account, amounts = self.populations[name], self._up(decode(loss))
            if amounts[0] < account.spent[0] or amounts[1] < account.spent[1]:
                return "the line lowers what was spent"
            account.spent = amounts
            self.charges.add((name, payload["why"], number))
        for name in payload["unbounded"]:
            self.populations[name].unbounded = True
        return None

    def _charges(self, payload: Mapping[str, Any]) -> dict[str, Sums]:
        charged = payload.get("charged", {})
        return {
            name: self._up(in_measure(decode(charged.get(name, cost)), kind_of(self.populations[name].budget)))
            for name, cost in payload["costs"].items()
        }

    def _up(self, guarantee: Guarantee) -> Sums:
        first, delta = (
            amount if GRID % amount.denominator == 0 else -(-amount // _UNIT) * _UNIT for amount in amounts_of(guarantee)
        )
        return first, delta

    def _spend(self, name: str, who: str, amounts: Sums) -> None:
        self.spent_by[name, who] = _plus(self.spent_by.get((name, who), (Fraction(0), Fraction(0))), amounts)


def _units(amounts: Sums) -> tuple[str, str]:
    first, delta = (str(amount * GRID) for amount in amounts)
    return first, delta


def _plus(left: Sums, right: Sums) -> Sums:
    return left[0] + right[0], left[1] + right[1]


_STEPS: dict[str, Callable[[Replay, int, Mapping[str, Any]], str | None]] = {
    "created": Replay._created,
    "migrated": Replay._migrated,
    "checkpoint": Replay._checkpoint,
    "opened": Replay._opened,
    "raised": Replay._raised,
    "allotted": Replay._allotted,
    "reserved": Replay._reserved,
    "claimed": Replay._claimed,
    "settled": Replay._settled,
    "voided": Replay._voided,
    "drawn": Replay._drawn,
    "bound": Replay._bound,
    "not private": Replay._not_private,
    "restored": Replay._restored,
}
