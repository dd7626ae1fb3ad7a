"""What a fit would cost, and how wide the margins of what it measures would be: from declarations, before anything is spent.

A fit is begun on a session that explains the first questions, or the run over rows, and ends there: so what is explained is what
would be asked, and no row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from cloister.privacy import Guarantee, sequential
from cloister.session import Delegate, Measurer, Plan, Question, Release, Spending
from cloister.synth.discretizing import cut_in_advance
from cloister.synth.fitting import fit
from cloister.synth.measuring import Marginals, Origin, of_terms
from cloister.synth.released import margin_of
from cloister.synth.states import States


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

    _measurer: Any
    _cuts: Guarantee | None = None

    def cut(
        self, table: str, states: Any, asked: Any, spend: Spending, purpose: str, after: Fraction
    ) -> tuple[list[States], Spending, Origin]:
        """In place of bins that are bought."""
        found, rest, self._cuts = cut_in_advance(self, table, states, asked, spend)
        return found, rest, {}

    def measure_all(
        self, questions: Sequence[Question], spend: Spending, *, purpose: str = "", shares: Sequence[Fraction] | None = None
    ) -> NoReturn:
        """The questions."""
        plan = self.explain(questions, spend, shares=shares)
        raise self._reached(plan.cost, _margins(plan))

    def given(self, question: Question) -> Release | None:
        """An answer that was bought before: it is evidence, and what it costs is nothing."""
        found: Release | None = self._measurer.given(question)
        return found

    def run(self, method: Any, table: str, spend: Spending, *, purpose: str = "") -> NoReturn:
        """A method that chooses what it measures: nobody knows in advance whether that is three columns together."""
        cost = self._measurer.explain_run(method, table, spend).cost
        raise self._reached(cost, (*method.margins(cost, self.declared(table)), None))

    def _reached(self, cost: Guarantee, margins: tuple[float | None, float | None, float | None]) -> _Reached:
        return _Reached(Explained(cost=cost if self._cuts is None else sequential([self._cuts, cost]), margins=margins))


class _Reached(Exception):
    """A fit has come to what it measures first."""

    def __init__(self, found: Explained) -> None:
        super().__init__()
        self.found = found


def _margins(plan: Plan) -> tuple[float | None, float | None, float | None]:
    """Of a count of so many columns, the widest; each is read from all tables that hold its columns."""
    sizes = {axis.name: axis.shown or 1 for part in plan.parts for axis in part.shape.grid.axes}
    names, tables = list(sizes), {}
    for part in plan.parts:
        if len(readings := list(part.blanks().values())) > 1:  # means, not counts alone
            continue
        kept = tuple(sorted(names.index(axis.name) for axis in part.shape.grid.axes))
        tables[kept] = of_terms(np.zeros([sizes[names[place]] for place in kept]), readings[0].terms)
    found = Marginals(sizes=tuple(sizes.values()), tables=tables)
    one, two, three = (
        max((margin_of(found, kept) for kept in tables if len(kept) == number), default=None) for number in (1, 2, 3)
    )
    return one, two, three
