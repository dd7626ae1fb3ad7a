"""What a fit would cost, and how wide the margins of what it measures would be: from declarations, before anything is spent.

A fit is begun on a session that explains the first questions, or the run over rows, and ends there: so what is explained is what
would be asked, and no row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn

from cloister.privacy import Guarantee
from cloister.session import Delegate, Measurer, Plan, Question, Spending
from cloister.synth.fitting import fit


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What `explained` gives."""

    cost: Guarantee
    """What would be charged now: less, where it was measured before."""
    margins: tuple[float | None, float | None, float | None]
    """Of a count of one column, of two and of three, at 95 %, of the noise alone: the widest. None where no so many are measured
    together."""


def explained(session: Measurer, table: str, **how: Any) -> Explained:
    """What `fit` with the same arguments would be charged, and the margins of what it measures first.

    >>> from cloister.session.examples import small_door
    >>> with small_door() as door:
    ...     found = explained(door, "people", spend=1, method="independent")
    ...     str(found.cost), found.margins[1], str(door.spent)
    ('ε = 1', None, 'ε = 0')
    """
    try:
        fit(_Explaining(session), table, **how)
    except _Reached as reached:
        return reached.found
    raise AssertionError("a fit that measures nothing")


class _Explaining(Delegate):
    """A session that explains the first questions of a fit, or its run over rows, and ends the fit there."""

    def measure_all(
        self, questions: Sequence[Question], spend: Spending, *, purpose: str = "", shares: Sequence[Fraction] | None = None
    ) -> NoReturn:
        """The questions."""
        plan = self.explain(questions, spend, shares=shares)
        raise _Reached(Explained(cost=plan.cost, margins=(_margin(plan, 1), _margin(plan, 2), _margin(plan, 3))))

    def run(self, method: Any, table: str, spend: Spending, *, purpose: str = "") -> NoReturn:
        """A method that chooses what it measures: nobody knows beforehand whether that is three columns together."""
        session: Any = self._measurer
        cost = session.explain_run(method, table, spend).cost
        raise _Reached(Explained(cost=cost, margins=(*method.margins(cost, self.declared(table)), None)))


class _Reached(Exception):
    """A fit has come to what it measures first."""

    def __init__(self, found: Explained) -> None:
        super().__init__()
        self.found = found


def _margin(plan: Plan, number: int) -> float | None:
    """Of a count of so many columns, the widest."""
    parts = [part for part in plan.parts if len(part.shape.question.by) == number]
    widths = [float(replace(plan, parts=(part,)).margin()["count"][0]) for part in parts]
    return max(widths, default=None)
