"""What a statement is: a setting, a step of a transaction, a plan to see, a question, a cursor or a name for one.

`reading.py` reads them. A question's text is left as it was written; who answers it is decided in `routing.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cloister.pgwire.steps import Step
from cloister.pgwire.values import Value
from cloister.pgwire.words import Word

if TYPE_CHECKING:
    from cloister.pgwire.copying import CopyFormat


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
    """A step of a transaction, with the name of a savepoint where it has one."""

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
