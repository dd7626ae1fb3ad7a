"""A bound over several measurements: a measurer that spends no more than a share of what its session may spend.

What is written for a measurer (a model of synthetic rows, somebody's algorithm) decides by itself how often it measures and for
how much. Given such a measurer it spends at most the share in all: of each population, counted by the ledger in the transaction
of each charge, so that no race of threads or processes passes it. Its charges are ordinary ones, under the person's own name.

Guarantee. The share is a `Bound` on what the person has drawn of a population: what they had drawn when it was opened, and the
share. All that is charged through it is charged to that person, so it adds up to at most the share (answers that
others paid for count too). What the same person is charged elsewhere meanwhile counts as well, since the ledger
counts by person: then less than the share may be spent, never more.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Self, TypeVar

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.ledger import Bound
from cloister.privacy import Guarantee, zero_of
from cloister.session.analyst import Bounds
from cloister.session.door import Door
from cloister.session.execution.run import Outcome, RowMethod
from cloister.session.measurer import Delegate
from cloister.session.questions.question import Question
from cloister.session.questions.spend import Spending, least, less, spend_of
from cloister.session.releases.release import Release

Result = TypeVar("Result")
RULE = "within_share"


class WithinShare(Delegate):
    """A measurer that spends at most a share, until its `with` block ends (`Door.within_share`).

    >>> from cloister.session import Count
    >>> from cloister.session.examples import small_door
    >>> question = Question(table="people", statistics=(Count(),))
    >>> with small_door() as door, door.within_share("0.5") as measurer:
    ...     _ = measurer.measure(question, spend="0.3")
    ...     print(measurer.remaining_by["people"])
    ...     measurer.measure(Question(table="people", by=("sex",), statistics=(Count(),)), spend="0.3")
    Traceback (most recent call last):
    cloister.errors.BudgetExceeded: A charge to population 'people' was refused: ε = 0.2 of the share of ε = 0.5 is left.
      Instead: a smaller spend=, or a larger share: session.within_share(1)
    """

    def __init__(self, session: Door, bounds: Bounds, spend: Spending, paid: Mapping[str, Guarantee]) -> None:
        """`session` is a light one of its own, whose charges are held within `bounds` too; `paid`: what of the share is gone."""
        super().__init__(session)
        self._session, self._before, self._spend, self._paid = session, bounds, spend, paid
        self._lock = threading.Lock()
        self._shares: dict[str, tuple[Guarantee, Guarantee]] = {}
        self._open = True
        self._bind()

    @property
    def remaining_by(self) -> dict[str, Guarantee]:
        """What is left of the share, or of the population's budget where that is less."""
        self._bind()
        found = self._session.remaining_by
        return {name: least(left, self._left(name)) for name, left in found.items()}

    def measure(self, question: Question, spend: Spending, *, purpose: str = "") -> Release:
        """The private answer to one question, within the share."""
        return self._within(lambda: self._session.measure(question, spend, purpose=purpose))

    def measure_all(
        self, questions: Sequence[Question], spend: Spending, *, purpose: str = "", shares: Sequence[Fraction] | None = None
    ) -> list[Release]:
        """The private answers to several questions under one charge, within the share."""
        return self._within(lambda: self._session.measure_all(questions, spend, purpose=purpose, shares=shares))

    def run(self, method: RowMethod, table: str, spend: Spending, *, purpose: str = "") -> Outcome:
        """Hands the rows of a table to a method that declares its guarantee, within the share."""
        return self._within(lambda: self._session.run(method, table, spend, purpose=purpose))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open = False

    def _within(self, work: Callable[[], Result]) -> Result:
        if not self._open:
            raise InvalidParameter(
                "The measurement is invalid",
                why="the share that it would spend of is closed",
                instead="with session.within_share(…) as measurer: …",
            )
        try:
            with self._session.registry.pinned():  # what is measured is of the tables that are bound, whatever is added meanwhile
                self._bind()
                return work()
        except BudgetExceeded as error:
            if error.rule != RULE:
                raise
            refusal = self._refusal(error)
        raise refusal

    def _refusal(self, error: BudgetExceeded) -> BudgetExceeded:
        [population] = [name for name in self._shares if error.why == _why(name)]
        share, _ = self._shares[population]
        return BudgetExceeded(
            f"A charge to population {population!r} was refused",
            why=f"{self._left(population)} of the share of {share} is left",
            instead="a smaller spend=, or a larger share: session.within_share(1)",
            rule=RULE,
        )

    def _left(self, population: str) -> Guarantee:
        share, most = self._shares[population]
        drawn = self._session.ledger.spent_by(population, self._session.who)
        return least(share, less(most, drawn) or zero_of(share))

    def _bind(self) -> None:
        """Bound every population that is seen: tables may have come since."""
        with self._lock:
            missing = [name for name in self._session.seen.populations if name not in self._shares]
            if not missing:
                return
            ledger, who = self._session.ledger, self._session.who
            for name in missing:
                share = spend_of(self._spend, ledger.budget(name)).whole()
                most = ledger.spent_by(name, who) + share
                gone = self._paid.get(name)
                self._shares[name] = (share, most if gone is None else less(most, gone) or zero_of(share))
            self._session.keep_within(Bounds(ceilings=self._before.ceilings, shares=self._with_shares(self._before.shares)))

    def _with_shares(self, before: Mapping[str, Sequence[Bound]]) -> dict[str, Sequence[Bound]]:
        mine = {name: Bound(most=most, why=_why(name), rule=RULE) for name, (_, most) in self._shares.items()}
        return {**before, **{name: [*before.get(name, ()), bound] for name, bound in mine.items()}}


def _why(population: str) -> str:
    """By which a refusal says whose share it was."""
    return f"the share of {population!r} that these measurements may spend is used up"
