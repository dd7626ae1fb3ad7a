"""What a statement is: a setting, a step of a transaction, a plan to see, a question, a cursor or a name for one.

`reading.py` reads them. A question's text is left as it was written; who answers it is decided in `routing.py`.
"""

from dataclasses import dataclass
from typing import Literal

from cloister.pgwire.values import Value
from cloister.pgwire.words import Word

ALL = 2**63
"""More rows than there are."""


@dataclass(frozen=True)
class Passed:
    """The rows of a step by number, in its order, and where the cursor stands after it.

    Rows are numbered from 1. A cursor stands on a row, before the first (0), or behind the last (one more than there are).
    """

    rows: range
    at: int


@dataclass(frozen=True)
class Step:
    """`forward` passes so many rows (backwards where the number is negative); the others go to one row.

    >>> Step("forward", 2).over(5, at=0), Step("forward", 2).over(5, at=4)
    (Passed(rows=range(1, 3), at=2), Passed(rows=range(5, 6), at=6))
    >>> Step("forward", -ALL).over(3, at=4), Step("absolute", -1).over(3, at=0)
    (Passed(rows=range(3, 0, -1), at=0), Passed(rows=range(3, 4), at=3))
    """

    way: Literal["forward", "absolute", "relative"]
    count: int

    @property
    def stays(self) -> bool:
        """Whether it looks again at where the cursor stands."""
        return self.way != "absolute" and self.count == 0

    def over(self, size: int, at: int) -> Passed:
        """The step through so many rows, from where the cursor stands."""
        if self.stays:
            return _one(at, size)
        if self.way == "absolute":
            return _one(self.count if self.count >= 0 else max(size + 1 + self.count, 0), size)
        if self.way == "relative":
            return _one(max(at + self.count, 0), size)
        end = min(max(at + self.count, 0), size + 1)
        if self.count > 0:
            return Passed(range(at + 1, min(end, size) + 1), end)
        return Passed(range(min(at - 1, size), max(end, 1) - 1, -1), end)

    def ahead(self, size: int, at: int) -> bool:
        """Whether it passes no row a second time.

        >>> Step("absolute", 3).ahead(5, at=2), Step("relative", 0).ahead(5, at=2), Step("forward", -1).ahead(5, at=2)
        (True, False, False)
        """
        found = self.over(size, at)
        return found.at > at or (found.at == at and not found.rows)


def _one(target: int, size: int) -> Passed:
    target = min(target, size + 1)
    return Passed(range(target, target + 1) if 1 <= target <= size else range(0), target)


@dataclass(frozen=True)
class Set:
    """SET name = value; None sets back to what it was first."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True)
class Reset:
    """RESET name, or ALL."""

    name: str


@dataclass(frozen=True)
class Show:
    """SHOW name, or ALL."""

    name: str


@dataclass(frozen=True)
class Transaction:
    """A step of a transaction, with the name of a savepoint where it has one; "chain" is that of an end that begins another."""

    step: Literal["begin", "commit", "rollback", "savepoint", "release", "rollback to", "nothing"]
    name: str = ""
    tag: str = ""


@dataclass(frozen=True)
class Discard:
    """DISCARD ALL, PLANS, SEQUENCES or TEMP."""

    what: str


@dataclass(frozen=True)
class Deallocate:
    """DEALLOCATE name; without one, ALL."""

    name: str | None


@dataclass(frozen=True)
class Select:
    """A question, with its words."""

    text: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Prepare:
    """PREPARE name (types) AS question; a type that is not said is 0."""

    name: str
    types: tuple[int, ...]
    question: Select


@dataclass(frozen=True)
class Execute:
    """EXECUTE name (values): of what was prepared under that name."""

    name: str
    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Explain:
    """EXPLAIN of a question, or of a prepared one, as text or as JSON."""

    question: Select | Execute
    json: bool = False


@dataclass(frozen=True, kw_only=True)
class CopyFormat:
    """How rows are written; an empty `delimiter` or a `null` of None is that of the format."""

    format: Literal["text", "csv", "binary"] = "text"
    header: bool = False
    delimiter: str = ""
    null: str | None = None
    quote: str = '"'
    escape: str = ""
    force: bool = False
    """Every value that is not NULL is quoted."""

    @property
    def between(self) -> str:
        """What stands between values."""
        return self.delimiter or ("," if self.format == "csv" else "\t")

    @property
    def nothing(self) -> str:
        """What stands for NULL."""
        return self.null if self.null is not None else "" if self.format == "csv" else "\\N"


@dataclass(frozen=True)
class Copy:
    """COPY (question) TO STDOUT, in a format."""

    question: Select
    how: CopyFormat


@dataclass(frozen=True)
class Declare:
    """DECLARE name CURSOR FOR question. `scroll` is None where nothing was said of it."""

    name: str
    question: Select
    text: str = ""
    scroll: bool | None = None
    hold: bool = False
    binary: bool = False


@dataclass(frozen=True)
class Fetch:
    """FETCH, or MOVE, which gives no rows."""

    name: str
    step: Step
    move: bool = False


@dataclass(frozen=True)
class Close:
    """CLOSE name; without one, ALL."""

    name: str | None


Statement = (
    Set
    | Reset
    | Show
    | Transaction
    | Discard
    | Deallocate
    | Select
    | Prepare
    | Execute
    | Explain
    | Declare
    | Fetch
    | Close
    | Copy
)
