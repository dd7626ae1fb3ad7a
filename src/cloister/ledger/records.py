"""What a ledger hands out: reservations, charges, stored releases, lines, and what is wrong with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from cloister.ledger.head import Account
from cloister.privacy.guarantee import Guarantee

State: TypeAlias = Literal["reserved", "settled", "voided", "lost", "not private"]
"""Where a charge stands.

reserved: charged, and no answer has left (yet, or ever); settled: charged, and its release is stored; voided: given back,
because no private row had been read; lost: entered by the owner after a restored backup; not private: something left by the
second, marked door.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A cost that is charged, for work that may now begin.

    `attempt` is 1, or 2 where the reservation of an earlier attempt, whose work never left the door, was taken over.
    """

    id: int
    costs: Mapping[str, Guarantee]
    who: str
    what: str
    purpose: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The most that may have been charged once a charge stands, by a rule that is kept outside of the ledger.

    It is looked at in the transaction of the charge, so that no race of charges passes it. `why` is the sentence of the refusal,
    `rule` the name of the rule; `left` the sentence where some is left, with the places {rest} and {cost}.
    """

    most: Guarantee
    why: str
    rule: str = ""
    left: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One row of a population's account. `cost` is in the budget's own measure; None where nothing bounds it."""

    id: int
    population: str
    who: str
    what: str
    when: datetime
    cost: Guarantee | None
    state: State
    purpose: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRelease:
    """A release that was settled, as the ledger keeps it: the bytes that the session gave, and what they cost."""

    id: int
    what: str
    who: str
    when: datetime
    costs: Mapping[str, Guarantee]
    release: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRecord:
    """One line of the append-only chain: `payload` is what was hashed, with its parent, under the ledger's key.

    >>> from cloister.ledger import Ledger
    >>> [(line.sequence, line.kind) for line in Ledger().lines()]
    [(1, 'created')]
    """

    sequence: int
    kind: str
    when: datetime
    payload: Mapping[str, Any]
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLine:
    """The first line at which the ledger is not what it was: false, so that `if ledger.verify():` reads as it should.

    >>> bool(BrokenLine(line=3, reason="the line was changed"))
    False
    """

    line: int
    reason: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """Why nothing can be charged until the owner has spoken, and the least losses that `Ledger.restore` takes."""

    reason: str
    count: int
    hash: str
    losses: Mapping[str, Guarantee]
    accounts: Mapping[str, Account] = field(repr=False)
    tables: bool = False
    """Whether the tables are not what the lines add up to: `Ledger.restore` makes them again from the lines."""
