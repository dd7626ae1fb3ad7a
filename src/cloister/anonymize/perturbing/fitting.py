"""Best-fit noise: a column replaced by draws from the distribution that fits it best, a category by the table's frequencies."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.perturbing.columns import Columns
from cloister.anonymize.perturbing.noise.laws import uniforms
from cloister.errors import InvalidParameter, check_one_of
from cloister.lazily import needing
from cloister.noise import Random

Floats = npt.NDArray[np.float64]

FAMILIES = tuple(
    "norm lognorm gamma expon weibull_min uniform triang beta logistic laplace t gumbel_r gumbel_l".split()  # noqa: SIM905
)
"""Names of scipy.stats, of one to four parameters."""
WHOLE_FAMILIES = ("poisson", "geom", "nbinom")
"""Tried besides for whole numbers, fitted by their moments."""
CRITERIA = ("ks", "aic")
_SAMPLE = 4000
"""Values that families are fitted to; of longer columns as many are drawn. A family is told from another by far fewer."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A family that was fitted."""

    family: str
    parameters: tuple[float, ...]
    """In scipy's order: shapes, loc, scale."""
    distance: float
    """Kolmogorov–Smirnov's: the largest difference of the distribution functions."""
    aic: float


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a column was drawn from."""

    chosen: Candidate | None
    """None for categories, and for a column that is constant or empty."""
    candidates: tuple[Candidate, ...] = ()
    """All that were fitted, the best first."""
    frequencies: Mapping[Any, float] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None
    looked_up: bool = True
    """Whether the bounds are the column's own least and largest value."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn:
    """A table with columns drawn again."""

    frame: Any
    fits: Mapping[str, Fit]


@dataclass(frozen=True, kw_only=True)
class BestFit:
    """Replace columns by independent draws from the distribution that fits each best.

    Protects: no record keeps its own value in these columns. Does not protect: other columns; the shape of the column, which
    is told well, with its least and largest value (give `bounds` to keep these back); a rare category is somebody's. Every
    relation between a replaced column and the others is lost. Parameters are fitted to the rows without noise: it is no
    differential privacy.

    Numbers: of scipy's `families` the one with the least Kolmogorov–Smirnov distance (`criterion="ks"`), or the least Akaike
    criterion ("aic", which charges for parameters). Draws stay within `bounds` (by name, else the least and largest value), by
    inversion, and are rounded where the column has whole numbers. A poor best fit is seen in `fits`: compare `distance` with
    1.36/√n, what chance alone rarely exceeds. Everything else is drawn by its frequencies. Missing values are refused, or
    with `missing="keep"` stay where they are.

    >>> table = {"pay": [1000.0 + 40 * place + place**2 for place in range(60)], "sex": ["F", "M", "F"] * 20}
    >>> done = BestFit(columns=["pay", "sex"]).apply(table, random=Random.deterministic(1))
    >>> done.fits["pay"].chosen.family, round(done.fits["pay"].chosen.distance, 2), done.fits["sex"].frequencies["F"]
    ('triang', 0.06, 0.6666666666666666)
    """

    columns: str | Sequence[str]
    families: Sequence[str] = FAMILIES
    criterion: str = "ks"
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    missing: str = "refuse"

    def __post_init__(self) -> None:
        strangers = [family for family in self.families if family not in FAMILIES]
        if strangers or not self.families:
            raise InvalidParameter(
                f"families={list(self.families)!r} is invalid",
                why="they are some of " + ", ".join(FAMILIES),
                instead='families=["norm"]',
            )
        check_one_of(self.criterion, "criterion", CRITERIA, why='it is neither "ks" nor "aic"', instead='criterion="ks"')
        for name, (low, high) in self.bounds.items():
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise InvalidParameter(
                    f"The bounds of {name!r} are invalid",
                    why="they are two finite numbers that increase",
                    instead=f"bounds={{{name!r}: (0, 100)}}",
                )

    def apply(self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False) -> Drawn:
        """The table with the columns drawn again, in the kind of frame that came in."""
        columns, names, source = Columns.leaving(frame, self.columns, random, shuffle=shuffle, keep_index=keep_index)
        if self.bounds:
            columns.check(list(self.bounds))
        fresh, fits = {}, {}
        for name in names:
            there = columns.without_missing(name, self.missing)
            fresh[name], fits[name] = (
                self._numbers(columns, name, there, source)
                if columns.numeric(name)
                else _categories(columns, name, there, source)
            )
        return Drawn(frame=columns.replaced(fresh), fits=fits)

    def _numbers(self, columns: Columns, name: str, there: npt.NDArray[np.bool_], random: Random) -> tuple[Any, Fit]:
        numbers = columns.numbers(name)
        known = numbers[there]
        low, high = self.bounds.get(name, (float(known.min()), float(known.max())) if known.size else (0.0, 0.0))
        if not known.size or known.min() == known.max():
            return numbers if not columns.whole(name) else columns.fitting(name, numbers), Fit(chosen=None, bounds=(low, high))
        if ((known < low) | (known > high)).any():
            raise InvalidParameter(
                f"The bounds of {name!r} are invalid",
                why="values lie outside of them",
                instead=f"bounds= that hold all of {name!r}",
            )
        stats, whole = _stats(), columns.whole(name)
        sample = np.sort(known if len(known) <= _SAMPLE else known[random.permutation(len(known))[:_SAMPLE]])
        found = [_fitted(stats, family, sample, whole) for family in (*self.families, *(WHOLE_FAMILIES if whole else ()))]
        candidates = sorted(
            (each for each in found if each is not None), key=lambda each: each.distance if self.criterion == "ks" else each.aic
        )
        if not candidates:
            raise InvalidParameter(f"The column {name!r} is invalid", why="no family could be fitted", instead="more families")
        law = getattr(stats, candidates[0].family)(*candidates[0].parameters)
        drawn = numbers.copy()
        drawn[there] = _within(law, low, high, uniforms(len(known), random), whole)
        fit = Fit(chosen=candidates[0], candidates=tuple(candidates), bounds=(low, high), looked_up=name not in self.bounds)
        return columns.fitting(name, drawn), fit


def _categories(columns: Columns, name: str, there: npt.NDArray[np.bool_], random: Random) -> tuple[Any, Fit]:
    """Each record's value by the frequencies: the value of a record drawn with putting back."""
    coded = columns.coded(name)
    known = np.flatnonzero(there)
    origin = np.arange(columns.rows)
    if known.size:
        origin[known] = known[random.below(int(known.size), int(known.size))]
    shares = {
        value: int(count) / max(1, int(known.size))
        for value, count in zip(coded.values, coded.counts.tolist(), strict=True)
        if value is not None
    }
    return columns.taken(name, origin), Fit(chosen=None, frequencies=shares)


def _within(law: Any, low: float, high: float, chance: Floats, whole: bool) -> Floats:
    """Draws by inversion, of the law between its bounds."""
    margin = 0.5 if whole else 0.0  # a whole number takes what is nearer to it than to others
    start, end = float(law.cdf(low - margin)), float(law.cdf(high + margin))
    if end - start < 1e-9:  # the law has nothing between the bounds
        return np.full(len(chance), min(max(float(law.median()), low), high))
    found = np.asarray(law.ppf(start + chance * (end - start)), dtype=np.float64)
    return np.asarray(np.clip(np.rint(found) if whole else found, low, high))


def _fitted(stats: ModuleType, family: str, sample: Floats, whole: bool) -> Candidate | None:
    """The family fitted to sorted values; None where it does not fit them at all.

    Of whole numbers the law is judged as it will be drawn: rounded, each number having its cell's probability.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            law = getattr(stats, family)
            if family in WHOLE_FAMILIES:
                parameters = _moments(family, sample)
            else:
                parameters = tuple(float(each) for each in law.fit(_spread(sample) if whole else sample))
            if not parameters or not all(map(math.isfinite, parameters)):
                return None
            if whole:
                at, before = law.cdf(sample + 0.5, *parameters), law.cdf(sample - 0.5, *parameters)
                likelihood = float(np.log(at - before).sum())
            else:
                at = before = law.cdf(sample, *parameters)
                likelihood = float(law.logpdf(sample, *parameters).sum())
        except (ValueError, RuntimeError, ArithmeticError):  # scipy's FitError is a RuntimeError
            return None
    if not math.isfinite(likelihood):
        return None
    first = np.unique(sample, return_index=True)[1]
    ends = np.append(first[1:], len(sample))
    under, over = np.abs(before[first] - first / len(sample)), np.abs(at[ends - 1] - ends / len(sample))
    distance = float(max(under.max(), over.max()))
    return Candidate(family=family, parameters=parameters, distance=distance, aic=2 * len(parameters) - 2 * likelihood)


def _spread(sample: Floats) -> Floats:
    """Sorted whole numbers, equal ones spread evenly over their cell: a density has no use for ties."""
    first, counts = np.unique(sample, return_index=True, return_counts=True)[1:]
    places = np.arange(len(sample)) - np.repeat(first, counts)
    return np.asarray(sample + (places + 0.5) / np.repeat(counts, counts) - 0.5)


def _moments(family: str, sample: Floats) -> tuple[float, ...]:
    """Parameters by mean and variance; none where they are impossible."""
    mean, variance, least = float(sample.mean()), float(sample.var()), float(sample.min())
    if family == "poisson":
        return (mean,) if least >= 0 and mean > 0 else ()
    if family == "geom":
        return (1 / (mean - least + 1), least - 1)
    return (mean**2 / (variance - mean), mean / variance) if least >= 0 and variance > mean > 0 else ()


def _stats() -> ModuleType:
    with needing("Fitting distributions is not available", "scipy is not installed", "learn"):
        from scipy import stats
    return stats  # type: ignore[no-any-return]
