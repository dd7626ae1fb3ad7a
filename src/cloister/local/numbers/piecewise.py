"""Piecewise and square wave: a window around the truth is more likely than the rest. One for means, one for shapes."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.local.numbers.finite import FiniteMechanism
from cloister.local.numbers.interval import Floats
from cloister.local.numbers.window import Window, straight_window
from cloister.local.protocols.coins import odds_below
from cloister.noise import Random
from cloister.privacy.rational import Exact


class WindowMechanism(FiniteMechanism):
    """A mechanism that is one `Window`. Draws: the coin that brings a number to the grid, then those of the window."""

    protocol: ClassVar[str] = "window"
    window: Window

    @property
    def client(self) -> Mapping[str, Any]:
        window = self.window
        return {
            "protocol": self.protocol,
            "low": self.interval.low,
            "high": self.interval.high,
            "steps": self.grid,
            "inputs": window.inputs,
            "outputs": window.outputs,
            "width": window.width,
            "shift": window.shift,
            "circular": window.circular,
            "heads": hex(window.heads),
            "dimensions": self.dimensions,
            "picks": self.picks,
        }

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        return super().channel() if self.dimensions > 1 else self.window.rows()

    @property
    def _cells(self) -> int:
        return self.window.outputs

    def _draw(self, values: Floats, random: Random) -> npt.NDArray[np.int64]:
        return self.window.draw(self.interval.places(values, self.grid, random), random)

    @cached_property
    def _firsts(self) -> Floats:
        return self.window.firsts / self.grid

    @cached_property
    def _seconds(self) -> Floats | None:
        return self.window.seconds / self.grid**2

    def _forward(self, shares: Floats) -> Floats:
        return self.window.forward(shares)

    def _back(self, numbers: Floats) -> Floats:
        return self.window.back(numbers)


class Piecewise(WindowMechanism):
    """The mean of numbers, at moderate and large ε: the piecewise mechanism (Wang et al. 2019) on a grid.

    Guarantee: ε-local privacy. On [−1, 1] the report lies in [−C, C], C = (e^{ε/2} + 1)/(e^{ε/2} − 1); with probability
    e^{ε/2}/(e^{ε/2} + 1) it is uniform on [l, l + C − 1], l = (C + 1)t/2 − (C − 1)/2, otherwise uniform on all the rest.
    Here the interval is `grid` steps and the window round(grid·e^{−ε/2}) cells; the probability of the window is then worked out
    for that width, so that the ratio of two probabilities is at most e^ε in integers (proof: `Window`). A number between two
    points of the grid goes to one of them by a coin, and a mixture of points is as private as the points.

    Several `dimensions`: each person reports max(1, min(d, ⌊ε/2.5⌋)) coordinates; see finite.py.

    Error: variance t²/(e^{ε/2} − 1) + (e^{ε/2} + 3)/(3(e^{ε/2} − 1)²) for a person at t of [−1, 1], divided by n: least at the
    middle. Below ε ≈ 1.29 Duchi's is better; the Laplace mechanism never is.

    >>> mechanism = Piecewise(-1, 1, epsilon=1)
    >>> round(mechanism.variance(), 2), mechanism.window.width, mechanism.report_size
    (5.22, 621, 11)
    """

    def __init__(self, low: Exact = -1, high: Exact = 1, epsilon: Exact = 1, *, grid: int = 1024, dimensions: int = 1) -> None:
        super().__init__(low, high, epsilon, grid=grid, dimensions=dimensions)
        self.window = piecewise_window(self.grid, self._share)


class SquareWave(WindowMechanism):
    """How people's numbers are spread: the square wave mechanism (Li et al. 2020) on a grid, read by `distribution`.

    Guarantee: ε-local privacy. On [0, 1] the report lies in [−b, 1 + b], b = (εe^ε − e^ε + 1)/(2e^ε(e^ε − 1 − ε)), with density
    p = e^ε/(2be^ε + 1) within b of the truth and q = 1/(2be^ε + 1) elsewhere. b makes reports tell the most of the truth (an
    upper bound of their mutual information is largest). Here the window is round(2b·grid) cells; the proof is that of `Window`.

    Error: no closed form for a distribution; `Distribution` says how its margins come about. `mean` and `spread` are unbiased,
    as the report's mean is a straight line in the truth; `variance` is that mean's.

    >>> mechanism = SquareWave(0, 1, epsilon=1)
    >>> round(mechanism.window.width / mechanism.grid / 2, 3)
    0.256
    """

    def __init__(self, low: Exact = 0, high: Exact = 1, epsilon: Exact = 1, *, grid: int = 512) -> None:
        super().__init__(low, high, epsilon, grid=grid)
        odds = odds_below(self.epsilon)
        wide = (self.epsilon * odds - odds + 1) / (odds * (odds - 1 - self.epsilon))
        self.window = straight_window(self.grid, max(1, round(wide * self.grid)), self.epsilon)


def piecewise_window(steps: int, epsilon: Fraction) -> Window:
    """The window of the piecewise mechanism: the share e^{−ε/2} of what it moves over.

    >>> piecewise_window(1024, Fraction(2)).width
    377
    """
    return straight_window(steps, max(1, round(steps / odds_below(epsilon / 2))), epsilon)
