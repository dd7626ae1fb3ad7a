"""How many people are unique in a population of which a table is a sample: three published models, and a rule to choose.

- Pitman's sampling formula (Hoshino 2001): classes of the population as a process in which a large class grows faster.
- Zayatz (1991): the class sizes of the sample are taken for those of the population, and Bayes' rule does the rest.
- Slide negative binomial (Chen and Keller-McNulty 1998): one more than a negative binomial number of people in each class.

The rule is that of Dankar, El Emam, Neisa and Roffey (2012): Pitman up to a sampling fraction of a tenth, beyond it the smaller
of the other two. ARX has the same models and rule; where a line of ours differs from ARX's, it says so. Each number is an
estimate with no margin: models of this kind err by tens of per cent where kinds of people differ much in how common they are, and
are many times too high where all are about equally common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SMALL_FRACTION = 0.1


@dataclass(frozen=True, kw_only=True)
class Uniques:
    """How many people of a population are the only ones of their kind, and how that is known.

    >>> print(Uniques(people=1200.4, population=50_000, how="Pitman's model"))
    about 1,200 of 50,000 people (Pitman's model)
    """

    people: float
    population: int
    how: str

    @property
    def counted(self) -> bool:
        """Whether it was counted in a table of the population, and not estimated."""
        return self.how == "counted"

    @property
    def share(self) -> float:
        """Their share of the population."""
        return self.people / self.population

    def __str__(self) -> str:
        return f"{'' if self.counted else 'about '}{self.people:,.0f} of {self.population:,} people ({self.how})"


def estimate_uniques(sizes: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], population: int) -> Uniques:
    """Unique people of a population, from how many classes of each size a sample of it has.

    >>> estimate_uniques(np.array([2, 5]), np.array([100, 100]), 70_000).people
    0.0
    """
    rows = int((sizes * counts).sum())
    if not (sizes == 1).any():
        return Uniques(people=0.0, population=population, how="no row is unique in the table")
    if rows >= population:
        return Uniques(people=float(counts[sizes == 1].sum()), population=population, how="counted")
    first = zayatz(sizes, counts, population)
    found = (first, "Zayatz' model")
    if rows <= _SMALL_FRACTION * population:
        fitted = pitman(sizes, counts, population)
        if fitted is not None:
            found = (fitted, "Pitman's model")
    else:
        slid = negative_binomial(sizes, counts, population)
        if slid is not None and slid < first:
            found = (slid, "the slide negative binomial model")
    return Uniques(people=min(found[0], float(population)), population=population, how=found[1])


def zayatz(sizes: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], population: int) -> float:
    """Sample uniques over the sampling fraction, times the chance that a sample unique comes from a class of one.

    >>> round(zayatz(np.array([1, 2]), np.array([50, 25]), 1000))
    263
    """
    rows, classes = int((sizes * counts).sum()), int(counts.sum())
    # the chance that a class of so many people has exactly one in the sample, without replacement
    one = np.array([_one_of(int(size), population, rows) for size in sizes])
    weights = counts / classes * one
    share = float(weights[sizes == 1].sum() / weights.sum())
    return float(counts[sizes == 1].sum()) * share * population / rows


def _one_of(size: int, population: int, rows: int) -> float:
    if rows - 1 > population - size:
        return 0.0
    logarithm = math.log(size) + _log_choose(population - size, rows - 1) - _log_choose(population, rows)
    return math.exp(min(logarithm, 0.0))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def pitman(sizes: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], population: int) -> float | None:
    """Γ(θ + 1)/Γ(θ + α)·N^α, with θ ≥ 0 and 0 < α < 1 of the greatest likelihood; None where the fit is at an end of α.

    ARX steps to the solution by Newton's method from a guess; here both likelihood equations are bisected, so that every
    table that has a solution gets it.
    """
    classes, rows = float(counts.sum()), float((sizes * counts).sum())
    if classes == rows:
        return float(population)
    theta_of = {}

    def slope(alpha: float) -> float:
        theta = theta_of[alpha] = _theta(alpha, classes, rows)
        # Σ i/(θ + iα) for i < u, less Σ over classes of Σ 1/(j − α) for j below their size
        steps = (classes - 1 - theta / alpha * (_digamma(theta / alpha + classes) - _digamma(theta / alpha + 1))) / alpha
        larger = sizes > 1
        digammas = np.array([_digamma(float(size) - alpha) for size in sizes[larger]])
        within = float((counts[larger] * (digammas - _digamma(1 - alpha))).sum())
        return float(steps - within)

    low, high = 1e-3, 1 - 1e-9
    if slope(low) <= 0:
        return None
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    alpha = (low + high) / 2
    slope(alpha)
    theta = theta_of[alpha]
    return float(math.exp(math.lgamma(theta + 1) - math.lgamma(theta + alpha) + alpha * math.log(population)))


def _theta(alpha: float, classes: float, rows: float) -> float:
    """Where Σ 1/(θ + iα) for i < u is Σ 1/(θ + i) for i < n; 0 where the first is always less."""

    def slope(theta: float) -> float:
        first = (_digamma(theta / alpha + classes) - _digamma(theta / alpha + 1)) / alpha
        return first - (_digamma(theta + rows) - _digamma(theta + 1))

    if slope(0.0) <= 0:
        return 0.0
    low, high = -30.0, 60.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(math.exp(middle)) > 0 else (low, middle)
    return math.exp((low + high) / 2)


def negative_binomial(sizes: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], population: int) -> float | None:
    """K·β^α, where α and β give the table's classes of one and of two, and K is Shlosser's estimate of the number of classes.

    Derived afresh from the generating function of a thinned class. ARX's source multiplies by (1 − (1 − f)(1 − β))^(α + 2)
    where the second equation divides, and takes 1 from a sum where Shlosser takes it from each power.
    """
    f = float((sizes * counts).sum()) / population
    ones, twos = float(counts[sizes == 1].sum()), float(counts[sizes == 2].sum())
    if not twos:
        return None
    classes = _shlosser(sizes.astype(np.float64), counts.astype(np.float64), f, ones)

    def missed(point: Floats) -> Floats:
        alpha, beta = math.exp(point[0]), 1 / (1 + math.exp(-point[1]))
        x = (1 - f) * (1 - beta)
        one = classes * f * math.exp(alpha * math.log(beta / (1 - x))) * (1 + alpha * x / (1 - x))
        two = classes * f * f * alpha * (1 - beta) * math.exp(alpha * math.log(beta) - (alpha + 2) * math.log1p(-x))
        return np.array([one / ones - 1, two * (2 - (1 - alpha) * x) / 2 / twos - 1])

    starts = [np.array([a, b]) for a in np.linspace(-6, 4, 11) for b in np.linspace(-8, 4, 13)]
    for start in sorted(starts, key=lambda point: float(np.abs(missed(point)).sum()))[:5]:
        solved = _newton(missed, start)
        if solved is not None:
            alpha, beta = math.exp(solved[0]), 1 / (1 + math.exp(-solved[1]))
            return float(classes * beta**alpha)
    return None


def _shlosser(sizes: Floats, counts: Floats, f: float, ones: float) -> float:
    first = float((sizes * f * f * (1 - f * f) ** (sizes - 1) * counts).sum())
    second = float(((1 - f) ** sizes * ((1 + f) ** sizes - 1) * counts).sum()) if sizes.max() * f < 600 else math.nan
    if math.isnan(second):
        both = np.exp(sizes * math.log1p(-f * f))
        second = float(((both - (1 - f) ** sizes) * counts).sum())
    third = float(((1 - f) ** sizes * counts).sum())
    fourth = float((sizes * f * (1 - f) ** (sizes - 1) * counts).sum())
    return float(counts.sum() + ones * first / second * (third / fourth) ** 2)


def _newton(missed: object, start: Floats) -> Floats | None:
    point, step = start, 1e-6
    for _ in range(60):
        here = missed(point)  # type: ignore[operator]
        if float(np.abs(here).max()) < 1e-9:
            return point
        slopes = np.stack([(missed(point + step * unit) - here) / step for unit in np.eye(2)], axis=1)  # type: ignore[operator]
        try:
            move = np.linalg.solve(slopes, here)
        except np.linalg.LinAlgError:
            return None
        point = np.clip(point - np.clip(move, -1, 1), -30, 30)
    return None


def _digamma(x: float) -> float:
    """ψ(x) for x > 0: shifted to where its asymptotic series is exact to the last digits.

    >>> round(_digamma(1.0), 12)
    -0.577215664902
    """
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    z = 1 / (x * x)
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (1 / 132 - z * 691 / 32760)))))
    return shift + math.log(x) - 0.5 / x - series
