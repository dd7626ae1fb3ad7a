"""Scores as they are released: noisy sums, the number that they stand for, and the margin that the noise gives it.

Pure post-processing: nothing here reads a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteLaplace, Gaussian, Share
from cloister.printable import margin_text
from cloister.privacy import Guarantee, exact


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise in each released sum: discrete Laplace, or rounded Gaussian.

    >>> Noise(scale=Fraction(10), gaussian=False).margin(0.95)
    30.0
    """

    scale: Fraction
    gaussian: bool

    @classmethod
    def of(cls, share: Share, *, l1: int, l2_squared: int) -> Noise:
        """The noise that a share adds."""
        return cls(scale=share.scale(l1=l1, l2_squared=l2_squared), gaussian=share.currency != "epsilon")

    def margin(self, confidence: float, *, terms: int = 1) -> float:
        """A bound on the size of the sum of so many of them, that holds with that probability.

        One term: the law's own quantile. More: Gaussian noise sums to Gaussian noise, and rounding adds half a step each;
        for Laplace noise Chernoff's bound, with the continuous law's moments, which are no smaller: cosh √u is convex in u.
        """
        text = str(float(confidence))
        if self.gaussian:
            wide = Fraction(math.isqrt(math.ceil(self.scale**2 * terms * 2**40)) + 1, 2**20)
            return float(Gaussian(scale=wide, sensitivity=1, step=1).margin(text)) + (terms - 1) / 2
        if terms == 1:
            return float(DiscreteLaplace(scale=self.scale).margin(text))
        rates = np.linspace(0.001, 0.999, 999)
        exponent = math.log(2 / (1 - float(confidence))) - terms * np.log1p(-(rates**2))
        return float(self.scale) * float((exponent / rates).min())


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """What every score has."""

    name: str
    noise: Noise | None
    """None where nothing was noised: then the score is not private."""
    guarantee: Guarantee | None
    spent: tuple[Share, ...] = ()
    marked: bool = False

    @property
    def value(self) -> Any:
        """The number, or the table of numbers."""
        raise NotImplementedError

    def margin(self, confidence: float = 0.95) -> Any:
        """How far the noise may have moved it, with that probability: the exact value on the same rows lies within."""
        raise NotImplementedError

    def _proportion(self, name: str, part: float, rest: float, terms: tuple[int, int]) -> Proportion:
        about: dict[str, Any] = {"noise": self.noise, "guarantee": self.guarantee, "spent": self.spent, "marked": self.marked}
        return Proportion(name=name, part=part, rest=rest, terms=terms, **about)

    @property
    def told(self) -> str:
        """The number and its margin, for a reader; unknown is what the noise leaves no number of."""
        value, margin = self.value, self.margin()
        shown = f"{value:.4g}" if math.isfinite(value) else "unknown"
        return f"{shown} ± {margin_text(margin) if math.isfinite(margin) else 'unknown'} (95 %)"

    def __str__(self) -> str:
        return f"{self.name} {self.told}, {self.guarantee if self.guarantee is not None else 'NOT PRIVATE'}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Proportion(Score):
    """A share of a whole that was released in two parts: hits and misses, say; times `width`.

    The two parts have noise of their own. Where a part lies within t of its release and the rest within u, the share lies
    between (A − t)/(A − t + B + u) and (A + t)/(A + t + B − u).

    >>> noise = Noise(scale=Fraction(10), gaussian=False)
    >>> score = Proportion(name="accuracy", part=800.0, rest=200.0, noise=noise, guarantee=None)
    >>> score.value, round(score.margin(0.95), 3)
    (0.8, 0.037)
    """

    part: float
    rest: float
    width: float = 1.0
    terms: tuple[int, int] = (1, 1)
    """How many noisy sums each part was added up from."""
    tries: int = 1
    """Of how many such shares this one was chosen, by looking at them: the margin holds for all of them together."""

    @property
    def value(self) -> float:
        """The share, within what is possible; a half where nothing was found."""
        whole = self.part + self.rest
        return self.width * (min(max(self.part / whole, 0.0), 1.0) if whole > 0 else 0.5)

    def margin(self, confidence: float = 0.95) -> float:
        """The wider side of the interval. A part below 0 counts as 0, no farther from the truth: so no interval is empty."""
        if self.noise is None:
            return 0.0
        each = 1 - (1 - _level(confidence)) / (2 * self.tries)
        t, u = (self.noise.margin(each, terms=terms) for terms in self.terms)
        part, rest = max(self.part, 0.0), max(self.rest, 0.0)
        low = _share(part - t, rest + u, 0.0)
        high = _share(part + t, rest - u, 1.0)
        middle = self.value / self.width
        return self.width * max(high - middle, middle - low)


@dataclass(frozen=True, kw_only=True, eq=False)
class Confusion(Score):
    """How many rows of each class (down) were taken for each class (across).

    >>> counts = np.array([[90.0, 10.0], [5.0, 45.0]])
    >>> table = Confusion(name="confusion", counts=counts, classes=np.array([0, 1]), noise=None, guarantee=None)
    >>> table.accuracy.value, round(table.silence.value, 3), table.worse_than_silence
    (0.9, 0.667, False)
    """

    counts: npt.NDArray[np.float64]
    classes: npt.NDArray[Any]

    @property
    def value(self) -> npt.NDArray[np.float64]:
        """The noisy counts, whole and sometimes below 0."""
        return self.counts

    def margin(self, confidence: float = 0.95) -> npt.NDArray[np.float64]:
        """Of each cell by itself."""
        wide = 0.0 if self.noise is None else self.noise.margin(_level(confidence))
        return np.full(self.counts.shape, wide)

    @property
    def accuracy(self) -> Proportion:
        """How many rows were taken for what they are."""
        return self._of_rows("accuracy", float(np.trace(self.counts)))

    @property
    def silence(self) -> Proportion:
        """How often a guess of the commonest class, the same for everybody, would be right."""
        found = self._of_rows("commonest class", float(self.counts.sum(axis=1).max()))
        return replace(found, tries=len(self.classes))

    @property
    def worse_than_silence(self) -> bool:
        """Whether the model is right less often than that guess."""
        return self.accuracy.value < self.silence.value

    def _of_rows(self, name: str, part: float) -> Proportion:
        """Of all rows, where a cell of each class is added up."""
        terms = len(self.classes), self.counts.size - len(self.classes)
        return self._proportion(name, part, float(self.counts.sum()) - part, terms)

    def __str__(self) -> str:
        return f"{self.accuracy}; the commonest class alone {self.silence.value:.4g}"


SURE = 10
"""Intervals of how sure a model is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reliability(Score):
    """How often a model is right where it is how sure: of each tenth of probability, how many of its rows were taken for another
    class (first) and for what they are (second). A model is calibrated where it is right as often as it says.

    >>> counts = np.array([[0.0, 0.0]] * 8 + [[30.0, 70.0], [2.0, 98.0]])
    >>> found = Reliability(name="reliability", counts=counts, noise=None, guarantee=None)
    >>> found.value[8:].round(2).tolist(), found.accuracy.value, found.bins[9].name
    ([0.7, 0.98], 0.84, '90 to 100 %')
    """

    counts: npt.NDArray[np.float64]

    @property
    def value(self) -> npt.NDArray[np.float64]:
        """The accuracy in each tenth."""
        return np.array([each.value for each in self.bins])

    def margin(self, confidence: float = 0.95) -> npt.NDArray[np.float64]:
        """Of each tenth by itself."""
        return np.array([each.margin(confidence) for each in self.bins])

    @property
    def bins(self) -> list[Proportion]:
        """Each tenth: the share of its rows that were taken for what they are."""
        names = [f"{100 * place // SURE} to {100 * (place + 1) // SURE} %" for place in range(SURE)]
        parts = zip(names, self.counts.tolist(), strict=True)
        return [self._proportion(name, right, wrong, (1, 1)) for name, (wrong, right) in parts]

    @property
    def accuracy(self) -> Proportion:
        """How many of all rows were taken for what they are."""
        wrong, right = self.counts.sum(axis=0).tolist()
        return self._proportion("accuracy", right, wrong, (SURE, SURE))

    def __str__(self) -> str:
        return str(self.accuracy)


@dataclass(frozen=True, kw_only=True, eq=False)
class Determination(Score):
    """R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)², from four noisy sums in steps, of e = (y − ŷ)²/width² and z = the target in [−1, 1].

    >>> score = Determination(name="R²", errors=10.0, others=90.0, sums=0.0, squares=30.0, step=1.0, noise=None, guarantee=None)
    >>> score.value, score.margin()
    (0.5, 0.0)
    """

    errors: float
    others: float
    sums: float
    squares: float
    step: float

    @property
    def value(self) -> float:
        """At most 1; NaN where the noise left no spread to explain."""
        count = max((self.errors + self.others) / self.step, 1.0)
        spread = self.squares / self.step + count / 2 - (self.sums / self.step) ** 2 / count
        return min(1 - 4 * max(self.errors / self.step, 0.0) / spread, 1.0) if spread > 0 else math.nan

    def margin(self, confidence: float = 0.95) -> float:
        """The wider side of the interval, all four sums moved by what they may be off; infinite where no spread is certain."""
        if self.noise is None:
            return 0.0
        t = self.noise.margin(1 - (1 - _level(confidence)) / 4)
        errors = [max(max(self.errors, 0.0) + side, 0.0) / self.step for side in (-t, t)]
        counts = [max((self.errors + self.others + 2 * side) / self.step, 1.0) for side in (-t, t)]
        largest, least = (abs(self.sums) + t) / self.step, max(abs(self.sums) - t, 0.0) / self.step
        low = (self.squares - t) / self.step + counts[0] / 2 - largest**2 / counts[0]
        high = (self.squares + t) / self.step + counts[1] / 2 - least**2 / counts[1]
        if low <= 0 or math.isnan(self.value):
            return math.inf
        return max(self.value - (1 - 4 * errors[1] / low), min(1 - 4 * errors[0] / high, 1.0) - self.value, 0.0)


def _share(part: float, rest: float, otherwise: float) -> float:
    part, rest = max(part, 0.0), max(rest, 0.0)
    return part / (part + rest) if part + rest > 0 else otherwise


def _level(confidence: float) -> float:
    level = exact(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidParameter(f"confidence={confidence!r} is invalid", why="it lies between 0 and 1", instead="confidence=0.95")
    return float(level)
