"""Counts out of the two tables of an anatomy: what is likely, how far off chance may be, and what is certain."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import comb
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.perturbing.anatomy.anatomy import groups_of_both
from cloister.anonymize.perturbing.columns import Columns
from cloister.errors import InvalidParameter
from cloister.noise.mechanism import check_confidence
from cloister.privacy.rational import Exact

Floats = npt.NDArray[np.float64]
_MOST_OF_A_LAW, _ROUNDING = 2000, 1e-12


@dataclass(frozen=True, kw_only=True)
class CountEstimate:
    """How many records have both: estimated, and bounded for certain.

    >>> round(CountEstimate(value=10.0, variance=4.0, lowest=2, highest=20).margin(0.95), 3)
    4.894
    """

    value: float
    variance: float
    lowest: int
    """No table that was cut into these two pieces has fewer."""
    highest: int
    """Nor more."""
    law: Floats | None = field(default=None, compare=False, repr=False)
    """The chance of each number from `lowest` to `highest`; None of so many records that the normal law is near."""

    def margin(self, confidence: Exact = 0.95) -> float:
        """Half-width of the interval, if within groups the sensitive values went to records by chance.

        Where quasi-identifiers tell much of the sensitive value that is not so: the estimate then leans towards
        independence, by more than this margin. `lowest` and `highest` hold whatever the data are.
        """
        wanted = float(check_confidence(confidence))
        if self.law is not None:
            away = np.abs(np.arange(self.lowest, self.highest + 1) - self.value)
            nearest = np.argsort(away, kind="stable")
            enough = np.searchsorted(np.cumsum(self.law[nearest]), wanted - _ROUNDING)
            return float(away[nearest[min(int(enough), len(nearest) - 1)]])
        z = NormalDist().inv_cdf(0.5 + wanted / 2)
        return z * float(np.sqrt(self.variance)) + 0.5 + max(z**2 - 1, 0.0) / 6  # half a step, and at most one's skewness


def _law(size: Floats, a: Floats, b: Floats) -> Floats | None:
    """The law of the sum of the groups' hypergeometric numbers, from the lowest on."""
    unsure = (a > 0) & (b > 0) & (a < size) & (b < size)
    if np.minimum(a, b)[unsure].sum() > _MOST_OF_A_LAW:
        return None
    found, known = np.ones(1), dict[tuple[int, int, int], Floats]()
    for group in zip(*(each[unsure].astype(int).tolist() for each in (size, a, b)), strict=True):
        if group not in known:
            n, some, others = group
            numbers = range(max(0, some + others - n), min(some, others) + 1)
            known[group] = np.array([comb(some, k) * comb(n - some, others - k) / comb(n, others) for k in numbers])
        found = np.convolve(found, known[group])
    return found


def estimate_count(
    quasi: Any, sensitive: Any, *, rows: npt.ArrayLike, values: Iterable[Any], group: str = "group", count: str = "count"
) -> CountEstimate:
    """The number of records among `rows` (a mask over the quasi-identifier table) whose sensitive value is one of `values`.

    In a group of n, with a records asked for and b sensitive values asked for, a·b/n are expected, with the variance of the
    hypergeometric law; groups add (Xiao & Tao 2006, section 3). Of a group, at least a + b − n and at most min(a, b).

    >>> quasi = {"age": [30, 70, 35, 75], "group": [0, 0, 1, 1]}
    >>> sensitive = {"group": [0, 0, 1, 1], "disease": ["flu", "gout", "flu", "gout"], "count": [1, 1, 1, 1]}
    >>> young = estimate_count(quasi, sensitive, rows=[True, False, True, False], values=["flu"])
    >>> young.value, young.lowest, young.highest, young.variance
    (1.0, 0, 2, 0.5)
    """
    people, held = Columns.of(quasi), Columns.of(sensitive)
    people.check([group])
    held.check([group, count])
    columns = [name for name in held.names if name not in (group, count)]
    mask = np.asarray(rows)
    if mask.dtype != np.bool_ or mask.shape != (people.rows,):
        raise InvalidParameter(
            "rows= is invalid", why="it is not a mask with a True or False for each record", instead='rows=quasi["age"] > 30'
        )
    if len(columns) != 1:
        raise InvalidParameter(
            "The sensitive table is invalid", why="it has not one column beside group and count", instead="the table of apply()"
        )
    coded = held.coded(columns[0])
    wanted = list(values)
    asked = np.array([value in wanted for value in coded.values], dtype=np.bool_)[coded.codes]
    numbers = held.numbers(count)
    of_people, of_values, sizes = groups_of_both(people, held, group, numbers)
    size = sizes.astype(np.float64)
    a = np.bincount(of_people[mask], minlength=len(size)).astype(np.float64)
    b = np.bincount(of_values[asked], numbers[asked], minlength=len(size)).astype(np.float64)
    spread = a * b * (size - a) * (size - b) / (size**2 * np.maximum(size - 1, 1)) if len(size) else a
    return CountEstimate(
        law=_law(size, a, b),
        value=float((a * b / np.maximum(size, 1)).sum()),
        variance=float(spread.sum()),
        lowest=int(np.maximum(a + b - size, 0).sum()),
        highest=int(np.minimum(a, b).sum()),
    )
