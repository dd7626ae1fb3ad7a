"""What measures: the interface by which models, tables and services take a session, whoever carries it out.

A `Door` is one. Another may stand before it and see what is asked, as a job does that notes its charges; so what is written for a
measurer runs everywhere.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session.execution.run import Outcome, RowMethod
from cloister.session.planning.plan import Plan
from cloister.session.questions.question import Question
from cloister.session.questions.spend import Spending
from cloister.session.releases.release import Release
from cloister.session.state.table_snapshot import Table


class Measurer(Protocol):
    """Answers questions about tables within a budget."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, as they may be seen."""

    @property
    def remaining_by(self) -> dict[str, Guarantee]:
        """What is left of each population's budget."""

    @property
    def choices(self) -> Random:
        """Where choices are taken from that protect nothing."""

    @property
    def marked(self) -> bool:
        """Whether the noise is drawn from a fixed generator, so that nothing is protected."""

    def declared(self, table: str) -> Table:
        """The declaration of a table; one that may not be seen is refused in the words for one that does not exist."""

    def population_of(self, table: str) -> tuple[str, Guarantee]:
        """The population whose people a private table is about, with its budget."""

    def explain(
        self, question: Question | Sequence[Question], spend: Spending, *, shares: Sequence[Fraction] | None = None
    ) -> Plan:
        """What would be measured, at which cost: spends nothing and reads no row."""

    def measure(self, question: Question, spend: Spending, *, purpose: str = "") -> Release:
        """The private answer to one question."""

    def measure_all(
        self, questions: Sequence[Question], spend: Spending, *, purpose: str = "", shares: Sequence[Fraction] | None = None
    ) -> list[Release]:
        """The private answers to several questions under one charge, of which each takes its share."""

    def run(self, method: RowMethod, table: str, spend: Spending, *, purpose: str = "") -> Outcome:
        """Hands the rows of a table to a method that declares its guarantee."""


class Delegate:
    """A measurer that leaves everything to another; who stands in between overrides what they add to.

    >>> from cloister.session.examples import small_door
    >>> with small_door() as door:
    ...     sorted(Delegate(door).tables), Delegate(door).population_of("people")
    (['people'], ('people', PureDP(epsilon='1')))
    """

    def __init__(self, measurer: Measurer) -> None:
        self._measurer = measurer

    @property
    def tables(self) -> Mapping[str, Table]:
        """The other's."""
        return self._measurer.tables

    @property
    def remaining_by(self) -> dict[str, Guarantee]:
        """The other's."""
        return self._measurer.remaining_by

    @property
    def choices(self) -> Random:
        """The other's."""
        return self._measurer.choices

    @property
    def marked(self) -> bool:
        """The other's."""
        return self._measurer.marked

    def declared(self, table: str) -> Table:
        """As the other does."""
        return self._measurer.declared(table)

    def population_of(self, table: str) -> tuple[str, Guarantee]:
        """As the other does."""
        return self._measurer.population_of(table)

    def explain(
        self, question: Question | Sequence[Question], spend: Spending, *, shares: Sequence[Fraction] | None = None
    ) -> Plan:
        """As the other does."""
        return self._measurer.explain(question, spend, shares=shares)

    def measure(self, question: Question, spend: Spending, *, purpose: str = "") -> Release:
        """As the other does."""
        return self._measurer.measure(question, spend, purpose=purpose)

    def measure_all(
        self, questions: Sequence[Question], spend: Spending, *, purpose: str = "", shares: Sequence[Fraction] | None = None
    ) -> list[Release]:
        """As the other does."""
        return self._measurer.measure_all(questions, spend, purpose=purpose, shares=shares)

    def run(self, method: RowMethod, table: str, spend: Spending, *, purpose: str = "") -> Outcome:
        """As the other does."""
        return self._measurer.run(method, table, spend, purpose=purpose)
