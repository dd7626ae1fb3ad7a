"""A copy of the baskets that hiding changes: one column of yes and no for each item of a sensitive rule, and sizes."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from cloister.mining.baskets import Baskets, Codes
from cloister.mining.sensitive import Problem, Sensitive


class Worked:
    """The columns that may change, changed in place.

    >>> from cloister.mining.thresholds import Thresholds
    >>> baskets = Baskets.of([["tea", "milk"], ["tea", "milk"], ["tea"]])
    >>> rule = Sensitive(antecedent=(0,), consequent=(1,))
    >>> problem = Problem.of(baskets, Thresholds.of(3, min_support="0.5", min_confidence="0.5"), [rule])
    >>> worked = Worked(problem)
    >>> worked.is_hidden(rule), worked.holders(rule.whole).tolist()
    (False, [0, 1])
    >>> worked.remove(1, 0)
    >>> worked.is_hidden(rule), worked.baskets().lists()
    (True, [['tea'], ['tea', 'milk'], ['tea']])
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.columns = {place: problem.baskets.column(place) for place in problem.items}
        self.sizes = problem.baskets.sizes.copy()

    def holding(self, places: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Of each basket whether it holds all of these items now."""
        every = np.ones(len(self.problem.baskets), dtype=np.bool_)
        for place in places:
            every &= self.columns[place]
        return every

    def holders(self, places: Iterable[int]) -> Codes:
        """The baskets that do, by number."""
        return np.flatnonzero(self.holding(places))

    def count(self, places: Iterable[int]) -> int:
        """How many do."""
        return int(self.holding(places).sum())

    def is_hidden(self, rule: Sensitive) -> bool:
        """Whether the thresholds do not find a rule now."""
        return not self.problem.thresholds.there(self.count(rule.whole), self.count(rule.antecedent))

    def remove(self, place: int, basket: int) -> None:
        """Take an item out of a basket."""
        if self.columns[place][basket]:
            self.columns[place][basket] = False
            self.sizes[basket] -= 1

    def add(self, place: int, basket: int) -> None:
        """Put an item into a basket."""
        if not self.columns[place][basket]:
            self.columns[place][basket] = True
            self.sizes[basket] += 1

    def baskets(self) -> Baskets:
        """The baskets as they are now."""
        return self.problem.baskets.with_columns(self.columns)
