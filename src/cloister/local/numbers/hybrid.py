"""Hybrid: a coin chooses between the piecewise mechanism and Duchi's, so that the worst case is that of the better one."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.local.numbers.finite import FiniteMechanism
from cloister.local.numbers.interval import Floats
from cloister.local.numbers.piecewise import piecewise_window
from cloister.local.protocols.coins import flips, heads_below, odds_below, probability
from cloister.noise import Random
from cloister.privacy.rational import Exact

_FROM = Fraction(61, 100)


class Hybrid(FiniteMechanism):
    """The mean of numbers with the least worst-case error of the classical mechanisms, at every ε (Wang et al. 2019).

    With probability α = 1 − e^{−ε/2} the report is that of the piecewise mechanism, otherwise Duchi's; up to ε = 0.61 always
    Duchi's. Which of the two it is, is part of the report: cells 0 and 1 are Duchi's signs, the cells from 2 on the others.

    Guarantee: ε-local privacy. The coin is thrown without a look at the number, and each of the two is ε-private: a report's
    probability is the coin's times that of the one mechanism which can make it.

    Error: each of the two is unbiased, so their mean is. On [−1, 1] the parts of the variance that grow and shrink with t²
    cancel: α/(e^{ε/2} − 1) = 1 − α. So it is the same for everybody. Several `dimensions`: as with `Piecewise`.

    Draws: the choosing coin; Duchi's two coins; then the draws of the piecewise mechanism.

    >>> round(Hybrid(epsilon=1).variance(), 3), round(Hybrid(epsilon="0.5").variance(), 2)
    (4.289, 16.67)
    """

    protocol: ClassVar[str] = "hybrid"

    def __init__(self, low: Exact = -1, high: Exact = 1, epsilon: Exact = 1, *, grid: int = 1024, dimensions: int = 1) -> None:
        super().__init__(low, high, epsilon, grid=grid, dimensions=dimensions)
        odds = odds_below(self._share)
        self._sign = heads_below(odds / (1 + odds))
        self._choice = heads_below(1 - 1 / odds_below(self._share / 2)) if self._share > _FROM else 0
        self.window = piecewise_window(self.grid, self._share)
        self._alpha = float(probability(self._choice))
        self._pull = float(2 * probability(self._sign) - 1)

    @property
    def client(self) -> Mapping[str, Any]:
        return {
            "protocol": self.protocol,
            "low": self.interval.low,
            "high": self.interval.high,
            "steps": self.grid,
            "inputs": self.window.inputs,
            "outputs": self.window.outputs,
            "width": self.window.width,
            "heads": hex(self.window.heads),
            "sign": hex(self._sign),
            "choice": hex(self._choice),
            "dimensions": self.dimensions,
            "picks": self.picks,
        }

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        if self.dimensions > 1:
            return super().channel()
        choice, truth = probability(self._choice), probability(self._sign)
        ups = [(1 - truth) + (2 * truth - 1) * Fraction(point, self.grid) for point in range(self.grid + 1)]
        rows = self.window.rows()
        far = [tuple(choice * each for each in row) if choice else () for row in rows]
        return tuple(((1 - choice) * (1 - up), (1 - choice) * up, *row) for up, row in zip(ups, far, strict=True))

    @property
    def _cells(self) -> int:
        return 2 + (self.window.outputs if self._choice else 0)

    def _draw(self, values: Floats, random: Random) -> npt.NDArray[np.int64]:
        chosen = flips(self._choice, len(values), random)
        end = self.interval.places(values, 1, random)
        signs = np.where(flips(self._sign, len(values), random), end, 1 - end)
        cells = self.window.draw(self.interval.places(values, self.grid, random), random)
        return np.where(chosen, 2 + cells, signs)

    @cached_property
    def _firsts(self) -> Floats:
        signs = 0.5 + np.array([-0.5, 0.5]) / self._pull
        return np.concatenate([signs, self.window.firsts / self.grid]) if self._choice else signs

    @cached_property
    def _seconds(self) -> Floats | None:
        """Signs say nothing of squares, so the other reports speak for all: theirs count 1/α each."""
        if not self._choice:
            return None
        return np.concatenate([np.zeros(2), self.window.seconds / self.grid**2 / self._alpha])

    def _forward(self, shares: Floats) -> Floats:
        up = shares @ self._ups
        signs = (1 - self._alpha) * np.stack([shares.sum(axis=-1) - up, up], axis=-1)
        return np.concatenate([signs, self._alpha * self.window.forward(shares)], axis=-1) if self._choice else signs

    def _back(self, numbers: Floats) -> Floats:
        minus, plus = numbers[..., :1], numbers[..., 1:2]
        signs = (1 - self._alpha) * (minus + (plus - minus) * self._ups)
        return signs + self._alpha * self.window.back(numbers[..., 2:]) if self._choice else signs

    @cached_property
    def _ups(self) -> Floats:
        """The probability of Duchi's plus, at each point of the grid."""
        return 0.5 + self._pull * (self._points - 0.5)
