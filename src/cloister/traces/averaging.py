"""An estimator that tries many models of how a stream moves at once, and believes those that foresaw its releases.

Each model has a level m and a part a, and is followed by a Kalman filter; a release is m + a + noise of known variance.

- *walk*: m moves at random, by s² a step; a is 0;
- *trend*: m moves by a and at random, and a fades as φ^t, at two speeds of fading;
- *around a level*: a returns to 0 as φ^t, with a variance of s² (φ = 0: what moves has no memory), while m moves much less.

The scale s takes 16 values from 1/2 on, each twice the last, so nothing of a stream need be known. A model weighs as it foresaw
the releases so far, by Student's law with 8 degrees of freedom, since Laplace noise and streams have long tails; what is long
past counts less. A release that is far from all that was foreseen makes every model uncertain of its level: a jump.

It is post-processing of what was published, and costs nothing.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.traces.policies import Memory, Values
from cloister.traces.window_stream import Estimator

_SCALES = 4.0 ** np.arange(-1, 15)
_KINDS = (
    (1.0, 0.0, 0.0, 0.0),
    (1.0, 0.8, 0.1, 1.0),
    (1.0, 0.95, 0.1, 1.0),
    *((moved, fading, 1.0, 0.0) for fading in (0.0, 0.5, 0.9) for moved in (4e-4, 1e-2)),
)
"""Of a model with s² = 1: how much m moves by itself, φ, the variance of a, and whether a moves m or is seen beside it."""
_FREEDOM, _FORGOTTEN, _JUMP = 8.0, 0.98, 5.0


class ModelAverage(Memory, Estimator):
    """The mean of what many models of a stream say, weighed by how well they foresaw it, and never below 0: totals are counts.

    Better than `LocalLevel` where a stream keeps to a level, jumps, or has a trend, and about as good where it moves at random.
    It keeps 864 numbers a cell, which are some 18 kilobytes of a ledger.

    >>> average, noisy = ModelAverage(1), np.random.default_rng(1).laplace(50, 10, 300)
    >>> found = [float(average.estimate(np.array([value]), 200.0)[0]) for value in noisy]
    >>> bool(np.abs(np.array(found[100:]) - 50).mean() < 3)
    True
    """

    def __init__(self, cells: int) -> None:
        kinds = np.array(
            [[scale * moved, fading, scale * part, trend] for scale in _SCALES for moved, fading, part, trend in _KINDS]
        )
        self._walk, self._fading, self._part, self._trend = kinds.T[:, :, None]
        self._seen = 1 - self._trend
        self._cells = cells
        shape = (6, len(kinds), cells)
        self._kept = np.zeros(shape)
        """m, a, their variances and covariance, and the logarithm of each weight."""
        self._begun = False

    def estimate(self, published: Values | None, variance: float) -> Values:
        level, part, spread, shared, free, trust = self._kept
        if not self._begun:
            if published is None:
                return np.zeros(self._cells)
            level[:], free[:] = published, self._part
            spread[:], shared[:] = variance + self._seen * self._part, -self._seen * self._part
            self._begun = True
            return self._mean()
        spread += self._walk + self._trend * (2 * shared + free)
        level += self._trend * part
        shared += self._trend * free
        shared *= self._fading
        part *= self._fading
        free *= self._fading**2
        free += (1 - self._fading**2) * self._part
        if published is not None:
            foreseen = level + self._seen * part
            along, across = spread + self._seen * shared, shared + self._seen * free
            expected = along + self._seen * across + variance
            off, weights, mean = published - foreseen, self._weights(), self._mean(clip=False)
            far = (published - mean) ** 2 > _JUMP**2 * (weights * (expected + (foreseen - mean) ** 2)).sum(axis=0)
            trust *= _FORGOTTEN
            trust -= np.log(expected) / 2 + (_FREEDOM + 1) / 2 * np.log1p(off**2 / (_FREEDOM * expected))
            trust -= trust.max(axis=0)
            jump = np.where(far, off**2, 0.0)
            spread, along, expected = spread + jump, along + jump, expected + jump
            gain, gained = along / expected, across / expected
            self._kept[:5] = (
                level + gain * off,
                part + gained * off,
                spread - gain * along,
                shared - gain * across,
                free - gained * across,
            )
        return self._mean()

    def _weights(self) -> npt.NDArray[np.float64]:
        weights = np.exp(self._kept[5])
        return np.asarray(weights / weights.sum(axis=0))

    def _mean(self, *, clip: bool = True) -> Values:
        found = (self._weights() * (self._kept[0] + self._seen * self._kept[1])).sum(axis=0)
        return np.asarray(np.maximum(found, 0.0) if clip else found)

    def state(self) -> list[Any]:
        return [self._begun, *(self._kept.tolist() if self._begun else [])]

    def restore(self, state: list[Any]) -> None:
        self._begun = state[0]
        if self._begun:
            self._kept[:] = state[1:]
