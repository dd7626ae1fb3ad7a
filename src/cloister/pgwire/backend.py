"""What the wire needs of whoever answers: a sign-in, and for each person a session of questions.

The wire knows nothing of accounts, roles and policies. It asks at every question, so a right that was taken away is gone at the
next statement. All methods block and are called from threads, those of one session one after the other; a call may go on after
its client has gone, since a charge stands whatever happens. A refusal is a `CloisterError`, whose text must tell nothing private.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cloister.privacy import Guarantee
from cloister.session import Frame, Release
from cloister.session.releases.frames import Kind
from cloister.tables import PrivateTable, PublicTable

Tables = Mapping[str, PrivateTable | PublicTable]


class AnswerColumn(NamedTuple):
    """A column that an answer will have: its name, its kind, and whether it is measured and so has a margin.

    >>> AnswerColumn("n", "integer", True).measured
    True
    """

    name: str
    kind: Kind
    measured: bool


class FreeAnswer(NamedTuple):
    """Rows that nothing is charged for, as of a synthetic table, or that a function made; and what is said beside them.

    >>> from cloister.session.examples import small_release
    >>> FreeAnswer(small_release().table, ("of a synthetic table",)).paid
    'answered at no cost'
    """

    table: Frame
    notes: tuple[str, ...] = ()
    paid: str = "answered at no cost"


class Explained(Protocol):
    """What a question would cost and how sharp its answer would be: `cloister.session.Plan`, or what looks like it."""

    @property
    def cost(self) -> Guarantee:
        """The charge."""

    def margin(self, confidence: float = 0.95) -> Frame:
        """The margin to expect of each statistic."""

    def __str__(self) -> str:
        """The plan in words."""


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How a question is asked: what it may cost, what for, and what is told beside the answer.

    >>> Asking().pays, Asking(spend="0.1").pays
    (False, True)
    """

    spend: str | None = None
    within: float | None = None
    """Instead of a spend: the margin that is wanted."""
    confidence: float = 0.95
    purpose: str = ""
    project: str = ""
    algorithm: str = ""
    """Under which it is asked, by its name or its id."""
    fresh: bool = False
    margins: bool = False
    progress: Callable[[str], None] | None = None
    """Told each stage that is reached; a stage before the charge may refuse to go on."""

    @property
    def pays(self) -> bool:
        """Whether anything may be spent."""
        return self.spend is not None or self.within is not None


class PgSession(Protocol):
    """One person, connected."""

    def tables(self) -> Tables:
        """What this person may see the declarations of."""

    def shape(self, sql: str, how: Asking) -> list[AnswerColumn]:
        """The columns that the answer will have, from the plan alone: spends nothing."""

    def explain(self, sql: str, how: Asking) -> Explained:
        """What would be measured, at which cost: spends nothing. With neither a spend nor a margin, for an example of a spend."""

    def ask(self, sql: str, how: Asking) -> Release | FreeAnswer:
        """The private answer, charged."""

    def repeat(self, sql: str, how: Asking) -> Release | FreeAnswer | None:
        """An answer that was paid for, or that costs nothing, and that this person may see; None where there is none."""

    def check(self, sql: str, how: Asking) -> None:
        """Refuse who could not ask this question any more: rows of its answer are kept here and asked for again."""

    def close(self) -> None:
        """The connection ended."""


class Backend(Protocol):
    """Who may come in."""

    def login(self, user: str, token: str, address: str) -> PgSession:
        """A session for a person with a token; `AccessDenied` in the same words whatever was wrong."""
