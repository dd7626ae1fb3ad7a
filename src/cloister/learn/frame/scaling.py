"""Preparation that does not leak: scaling by declared bounds, clipping at bought quantiles, standardising by noisy moments.

Each is a transformer for a pipeline. With privacy a missing value passes through as missing, since whether there is one is a
private fact; the model after it leaves such a row out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from cloister.errors import InvalidParameter
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Box, Rows, interval_of, steps_of
from cloister.learn.frame.parameters import YES_OR_NO, Limit, Limits
from cloister.noise import PermuteAndFlip, Random
from cloister.noise.allowance import Allowance, Currency, Share
from cloister.privacy import ZCDP, Exact, Guarantee, PureDP, exact

if TYPE_CHECKING:
    from cloister.learn.frame.encoding import Encoder
    from cloister.session import Measurer
    from cloister.session.questions.spend import Spending

Floats = npt.NDArray[np.float64]
_BITS = 24
_FINEST = 10**6
_LEAST_DEVIATION = 1e-3
"""Of half the declared width: no feature is stretched by more than a thousand."""


class _Transformer(OneToOneFeatureMixin, TransformerMixin, PrivateModel):  # type: ignore[misc]
    """One feature in, one feature out."""

    target_kind = "none"

    low_: Floats
    high_: Floats

    def _given(self, X: Any, *, clip: bool = True) -> Floats:
        """Rows to transform, of the same features; they may be private, so with privacy a missing value is not refused."""
        given = self._asked(X, finite=not self.private)
        return np.clip(given, self.low_, self.high_) if clip else given

    def _keep(self, box: Box) -> None:
        self.low_, self.high_ = box.low, box.high


class BoundedScaler(_Transformer):
    """Each feature from its declared bounds to `target_range`; what lies outside is clipped.

    Guarantee: ε = 0. Nothing but the number of columns is read of the rows: what is learnt is what was declared. With
    privacy=None and no bounds, the least and the largest value of the rows take their place, and the result is not private.

    >>> scaler = BoundedScaler(bounds=([17, 0], [90, 99]), target_range=(-1, 1)).fit([[30, 40]])
    >>> scaler.transform([[17, 99], [500, 49.5]]).tolist(), str(scaler.guarantee_)
    ([[-1.0, 1.0], [1.0, 0.0]], 'ε = 0')
    """

    _stored: ClassVar[str] = "BoundedScaler"
    learned_names = ("low_", "high_", "from_", "to_")

    from_: float
    to_: float

    def __init__(
        self,
        *,
        bounds: Any = None,
        target_range: tuple[float, float] = (0, 1),
        privacy: str | None = "central",
        random: Random | None = None,
    ) -> None:
        self.bounds = bounds
        self.target_range = target_range
        self.privacy = privacy
        self.random = random

    def promise(self) -> Guarantee | None:
        return PureDP(0) if self.private else None

    def _allowance(self, whole: Guarantee | None = None, *, rows: int = 1) -> Allowance | None:
        return None

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        self._keep(rows.box)
        self.from_, self.to_ = interval_of(self.target_range, name="target_range")

    def _learn_table(
        self, session: Measurer, table: str, encoder: Encoder, target: str | None, spend: Spending, purpose: str
    ) -> Allowance | None:
        """Nothing is asked and nothing is charged: the declaration says it all."""
        from cloister.learn.frame.bounds import box_of

        box = box_of(self.bounds, features=len(encoder.names))
        self._learn(Rows(X=np.empty((0, box.features)), y=None, box=box), None)
        return None

    def _settled(self, allowance: Allowance | None, *, marked: bool | None = None) -> Self:
        self.guarantee_, self.spent_, self.marked_ = self.promise(), (), False
        return self

    def transform(self, X: Any) -> Floats:
        """Clipped and scaled."""
        unit = Box(low=self.low_, high=self.high_).unit(self._given(X))
        return np.asarray(self.from_ + unit * (self.to_ - self.from_))

    def inverse_transform(self, X: Any) -> Floats:
        """Back to the declared bounds; what was clipped stays clipped."""
        unit = (self._given(X, clip=False) - self.from_) / (self.to_ - self.from_)
        return np.asarray(self.low_ + unit * (self.high_ - self.low_))


@dataclass(kw_only=True, eq=False, repr=False)
class StandardScaler(_Transformer):
    """Each feature less its noisy mean, divided by its noisy deviation.

    Guarantee: ε, or (ε, δ), between rows that differ by one person. A value within its bounds is z in [−1, 1]; released are the
    number of rows (a fifth of the allowance) and for each feature Σz and Σ(z² − ½), in steps of 2⁻²⁴ (the rest). One row moves
    these 2d sums by at most d·(1 + ½) in the sum of sizes, and by d·(1 + ¼) in the sum of squares, since each step is rounded to
    no more than 1 and ½ (Dwork & Roth 2014, Theorem 3.6; Gaussian noise: Dong, Roth & Su 2022, Theorem 2.7). Means and
    deviations are made of what was released: post-processing.

    A deviation is never less than a thousandth of half the declared width, nor less than what the noise in it is worth.
    `mean_margin_`: twice the standard deviation of the noise in each mean, that of the sums and that of the number of rows.

    >>> scaler = StandardScaler(epsilon=10, bounds=(0, 10)).fit([[2.0], [4.0]] * 5000)
    >>> [str(share) for share in scaler.spent_]
    ['number of rows: ε = 2', 'means and deviations: ε = 8']
    >>> bool(abs(scaler.mean_[0] - 3) < 0.1), bool(abs(scaler.scale_[0] - 1) < 0.1)
    (True, True)
    """

    _stored: ClassVar[str] = "StandardScaler"
    learned_names = ("low_", "high_", "mean_", "scale_", "mean_margin_")
    limits: ClassVar[Limits] = {"with_mean": YES_OR_NO, "with_std": YES_OR_NO}

    with_mean: bool = True
    with_std: bool = True

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        self._keep(rows.box)
        half = rows.box.width / 2
        sums, squares = _moment_steps(rows)
        if allowance is None:
            count, noise, of_count = float(len(rows.X)), 0.0, 0.0
        else:
            first, rest = allowance.share("number of rows", "0.2"), allowance.rest("means and deviations")
            count = float(first.add(np.array([len(rows.X)]), l1=1, l2_squared=1, random=self.random)[0])
            sums, squares = rest.add(np.stack([sums, squares]), **self._reach(len(half)), random=self.random)
            noise = rest.variance(**self._reach(len(half))) ** 0.5 / 2**_BITS
            of_count = first.variance(l1=1, l2_squared=1)
        count = max(count, 1.0)
        mean = np.clip(sums / 2**_BITS / count, -1, 1)
        variance = squares / 2**_BITS / count + 0.5 - mean**2
        self.mean_ = rows.box.middle + half * mean
        self.mean_margin_ = 2 * half * np.sqrt(noise**2 + mean**2 * of_count) / count
        least = max(_LEAST_DEVIATION**2, noise / count) if allowance is not None else 0.0
        deviation = half * np.sqrt(np.clip(variance, least, 1))
        self.scale_ = np.where(deviation > 0, deviation, 1.0)

    @staticmethod
    def _reach(features: int) -> dict[str, int]:
        """By how much one row moves the sums, in steps."""
        return {"l1": features * (2**_BITS + 2 ** (_BITS - 1)), "l2_squared": features * (4**_BITS + 4 ** (_BITS - 1))}

    def transform(self, X: Any) -> Floats:
        """Clipped, centred and scaled."""
        return np.asarray((self._given(X, clip=self.private) - self._shift()) / self._stretch())

    def inverse_transform(self, X: Any) -> Floats:
        """The other way; what was clipped stays clipped."""
        return np.asarray(self._given(X, clip=False) * self._stretch() + self._shift())

    def _shift(self) -> Floats | float:
        return self.mean_ if self.with_mean else 0.0

    def _stretch(self) -> Floats | float:
        return self.scale_ if self.with_std else 1.0


def _moment_steps(rows: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Σz and Σ(z² − ½) of each feature, in whole steps."""
    z = rows.box.centred(rows.X)
    return steps_of(z, bits=_BITS).sum(axis=0), steps_of(z**2 - 0.5, bits=_BITS).sum(axis=0)


@dataclass(kw_only=True, eq=False, repr=False)
class QuantileClipper(_Transformer):
    """Each feature clipped at two of its quantiles, which are bought: tighter bounds for what comes after.

    Guarantee: ε, or (ε, δ), between rows that differ by one person. For each feature and quantile q one of `bins` + 1 evenly
    spaced points r of the declared interval is chosen by permute-and-flip (McKenna & Sheldon 2020, Theorem 1) with the utility
    −|(1 − q)·#{x < r} − q·#{x ≥ r}|, which one row more or less moves by at most max(q, 1 − q). The 2d choices compose; under
    a δ they are counted in ρ, where a choice of ε costs ε²/2 (Bun & Steinke 2016, Proposition 1.4).

    The chosen points, in order, are `low_` and `high_`: released, so they may be the bounds of the next step.

    >>> clipper = QuantileClipper(epsilon=10, bounds=(0, 1000), bins=1000).fit([[number] for number in range(100)] * 20)
    >>> bool(80 <= clipper.high_[0] <= 120), [share.what for share in clipper.spent_]
    (True, ['quantile 0.05', 'quantile 0.95'])
    """

    _stored: ClassVar[str] = "QuantileClipper"
    learned_names = ("low_", "high_")
    limits: ClassVar[Limits] = {"bins": Limit(least=2, most=2**16, whole=True, instead=1024)}

    quantiles: Sequence[Exact] = ("0.05", "0.95")
    bins: int = 1024

    def _currency_of(self, promised: Guarantee) -> Currency | None:
        return "epsilon" if isinstance(promised, PureDP) or not (isinstance(promised, ZCDP) or promised.delta) else "rho"

    def check_parameters(self, allowance: Allowance | None = None) -> None:
        super().check_parameters(allowance)
        self._levels()

    def _levels(self) -> list[Fraction]:
        given = self.quantiles if isinstance(self.quantiles, Sequence) and not isinstance(self.quantiles, str) else ()
        levels = [exact(level, "quantile") for level in given]
        if len(levels) != 2 or not 0 <= levels[0] < levels[1] <= 1:
            raise InvalidParameter(
                f"quantiles={self.quantiles!r} is invalid",
                why="they are two shares in order",
                instead='quantiles=("0.05", "0.95")',
            )
        if max(level.denominator for level in levels) > _FINEST:
            raise InvalidParameter(
                f"quantiles={self.quantiles!r} is invalid",
                why=f"a share is a fraction of at most {_FINEST} parts, so that counts times parts are exact",
                instead='quantiles=("0.05", "0.95")',
            )
        return levels

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        levels = self._levels()
        texts = [f"quantile {float(level):g}" for level in levels]
        shares = [None, None] if allowance is None else [allowance.share(texts[0], "0.5"), allowance.rest(texts[1])]
        grid = rows.box.low + np.linspace(0, 1, self.bins + 1)[:, None] * (rows.box.high - rows.box.low)
        places = np.array(
            [
                self._chosen(rows, grid, level.numerator, level.denominator, share)
                for level, share in zip(levels, shares, strict=True)
            ]
        )
        low, high = places.min(axis=0), places.max(axis=0)
        high = np.where(low == high, np.minimum(high + 1, self.bins), high)  # two equal choices leave one cell, not nothing
        low = np.where(low == high, low - 1, low)
        every = np.arange(rows.box.features)
        self.low_, self.high_ = grid[low, every], grid[high, every]

    def _chosen(self, rows: Rows, grid: Floats, part: int, whole: int, share: Share | None) -> list[int]:
        """The place of the quantile part/whole in the grid, for each feature."""
        places = []
        for feature in range(rows.box.features):
            below = np.searchsorted(np.sort(rows.X[:, feature]), grid[:, feature], side="left").astype(np.int64)
            utilities = -np.abs((whole - part) * below - part * (len(rows.X) - below))
            if share is None:
                places.append(int(np.argmax(utilities)))
                continue
            spend = replace(share, amount=share.amount / rows.box.features).epsilon
            choice = PermuteAndFlip(epsilon=spend, sensitivity=max(part, whole - part))
            places.append(choice.release(utilities, random=self.random))
        return places

    def transform(self, X: Any) -> Floats:
        """Clipped."""
        return self._given(X)
