"""Unique in the crowd: how often a few places of a journey, known to somebody, single it out.

Whoever knows some places (and hours) where a person was looks for journeys that hold all of them. In published traces of 1.5
million people four places of an hour each named 95 in 100 (de Montjoye, Hidalgo, Verleysen & Blondel 2013). The same question
asked of a release in place of the traces says what linkage is left: of synthetic journeys that hold what is known of a real one,
none is that person's, and a share near that of chance is what a guarantee looks like from there.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import Random, default_random
from cloister.noise._checks import whole

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Of so many tries: the share in which one journey holds all the places that are known, and the share in which none does.

    >>> print(Crowd(known=4, tries=1000, alone=0.95, nobody=0.0))
    4 places single out 95.0 % of 1,000 journeys; 0.0 % are like none
    """

    known: int
    tries: int
    alone: float
    nobody: float

    def __str__(self) -> str:
        return (
            f"{self.known} places single out {100 * self.alone:.1f} % of {self.tries:,} journeys; "
            f"{100 * self.nobody:.1f} % are like none"
        )


def unique_in_the_crowd(
    who: Any,
    places: Any,
    *,
    released: tuple[Any, Any] | None = None,
    known: int = 4,
    tries: int = 1000,
    random: Random | None = None,
) -> Crowd:
    """How often `known` random places of a random journey single one out, among the journeys themselves or in `released` ones.

    Exact, and for the owner alone. `who` says whose each row is; a row of `places` is a place as coarse as it is known: a cell,
    or a cell and an hour. Both are compared as they are. Only journeys of `known` different places or more are tried.

    >>> who, places = ["ada", "ada", "bob", "bob"], [[1, 8], [2, 9], [1, 8], [3, 9]]
    >>> unique_in_the_crowd(who, places, known=2, tries=50).alone, unique_in_the_crowd(who, places, known=1, tries=50).alone < 1
    (1.0, True)
    >>> unique_in_the_crowd(who, places, released=(["x"], [[1, 8]]), known=2, tries=50).nobody
    1.0
    """
    known, tries = whole(known, "known", least=1), whole(tries, "tries", least=1)
    source = default_random() if random is None else random
    real = _checked(who, places)
    other = real if released is None else _checked(*released)
    if real[1].shape[1] != other[1].shape[1]:
        raise InvalidParameter(
            "released is invalid", why="its places have another number of columns", instead="released=(who, places)"
        )
    point = np.unique(np.concatenate([real[1], other[1]]), axis=0, return_inverse=True)[1].reshape(-1)
    journeys = _grouped(real[0], point[: len(real[0])])
    holders = _grouped(point[len(real[0]) :], other[0], count=int(point.max()) + 1)
    eligible = [journey for journey in journeys if len(journey) >= known]
    if not eligible:
        raise InvalidParameter(
            f"known={known} is invalid", why="no journey has so many different places", instead="fewer known places"
        )
    found = []
    for place in source.below(len(eligible), tries).tolist():
        journey = eligible[place]
        seen = journey[source.permutation(len(journey))[:known]]
        found.append(len(reduce(lambda one, two: np.intersect1d(one, two, assume_unique=True), [holders[each] for each in seen])))
    matches = np.array(found)
    return Crowd(known=known, tries=tries, alone=float((matches == 1).mean()), nobody=float((matches == 0).mean()))


def _grouped(keys: Integers, values: Integers, count: int | None = None) -> list[Integers]:
    """The different values of each key from 0 on."""
    pairs = np.unique(np.stack([keys, values]), axis=1)
    sizes = np.bincount(pairs[0], minlength=count or 0)
    return np.split(pairs[1], np.cumsum(sizes)[:-1])


def _checked(who: Any, places: Any) -> tuple[Integers, npt.NDArray[np.float64]]:
    """Numbers for journeys, and rows of places."""
    names = np.asarray(who)
    names = names.astype(str) if names.dtype.kind == "O" else names
    try:
        rows = np.ma.filled(np.asanyarray(places, dtype=np.float64), np.nan)
    except (TypeError, ValueError, OverflowError):
        rows = np.empty(0)
    if rows.ndim != 2 or not rows.size or names.shape != rows.shape[:1] or not np.isfinite(rows).all():
        raise InvalidParameter(
            "places is invalid",
            why="it must hold a row of finite numbers for each of who",
            instead='unique_in_the_crowd(["a"], [[1, 8]])',
        )
    return np.unique(names, return_inverse=True)[1].astype(np.int64), rows
