"""A finite channel with a window: a report is more likely near the truth. Piecewise and square wave are two of its kind.

There are points 0 … inputs − 1 to come from and cells 0 … outputs − 1 to go to. The window is `width` cells that begin at
cell (point + shift) modulo `outputs`. With probability heads/2⁶⁴ the report is a uniform cell of the window, otherwise a uniform
cell of all the others. Both twins draw a coin, then below(width), then below(outputs − width), always all three.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.numbers.interval import Floats
from cloister.local.protocols.coins import flips, heads_below, odds_below, probability
from cloister.noise import Random

_LISTED = 1 << 14


@dataclass(frozen=True, kw_only=True)
class Window:
    """The channel in whole numbers.

    Guarantee: ε-local privacy where `odds` ≤ e^ε. Proof: a cell has probability heads/(2⁶⁴·width) for the points whose window
    holds it, and (2⁶⁴ − heads)/(2⁶⁴·(outputs − width)) for all others, wherever these lie: the cells outside of the window are
    one set, of which each is as likely. So the ratio of any two is at most `odds`, in integers. (That is the union of both tails
    "by length"; a fair coin between the tails has no bounded ratio.)

    >>> window = straight_window(4, 2, Fraction(1))
    >>> window.outputs, float(window.odds) < 2.718281828459046
    (6, True)
    """

    inputs: int
    outputs: int
    width: int
    heads: int
    shift: int = 0
    circular: bool = False

    @property
    def odds(self) -> Fraction:
        """How much more likely a cell is inside the window than outside: exact."""
        return self.inside / self.outside

    @cached_property
    def inside(self) -> Fraction:
        """The probability of each cell of the window."""
        return probability(self.heads) / self.width

    @cached_property
    def outside(self) -> Fraction:
        """The probability of each other cell."""
        return (1 - probability(self.heads)) / (self.outputs - self.width)

    def draw(self, points: npt.NDArray[np.int64], random: Random) -> npt.NDArray[np.int64]:
        """A cell for each point. All draws are made for every point, so that the time says nothing of the coin.

        >>> straight_window(4, 2, Fraction(40)).draw(np.array([0, 4]), Random.deterministic(1)).tolist()
        [1, 4]
        """
        stays = flips(self.heads, len(points), random)
        near = random.below(self.width, len(points))
        far = random.below(self.outputs - self.width, len(points))
        return (points + self.shift + np.where(stays, near, self.width + far)) % self.outputs

    def rows(self) -> tuple[tuple[Fraction, ...], ...]:
        """The probability of each cell, for each point."""
        if self.inputs * self.outputs > _LISTED:
            raise InvalidParameter(
                "The channel was not written out",
                why=f"it has more than {_LISTED} probabilities",
                instead="a coarser grid, such as grid=16",
            )
        cells = range(self.outputs)
        starts = [(point + self.shift) % self.outputs for point in range(self.inputs)]
        return tuple(
            tuple(self.inside if (cell - start) % self.outputs < self.width else self.outside for cell in cells)
            for start in starts
        )

    def forward(self, shares: Floats) -> Floats:
        """The probabilities of the cells where people stand at the points with these shares; along the last axis.

        >>> window = straight_window(4, 2, Fraction(1))
        >>> bool(np.allclose(window.forward(np.eye(5)), np.array(window.rows(), dtype=float)))
        True
        """
        steps = np.zeros((*shares.shape[:-1], self.outputs + self.width + 1))
        steps[..., self._starts] += shares
        steps[..., self._starts + self.width] -= shares
        covered = np.cumsum(steps, axis=-1)
        cells = covered[..., : self.outputs]
        cells[..., : self.width] += covered[..., self.outputs : self.outputs + self.width]
        q = float(self.outside)
        return np.asarray(q * shares.sum(axis=-1, keepdims=True) + (float(self.inside) - q) * cells, dtype=np.float64)

    def back(self, numbers: Floats) -> Floats:
        """For each point, the mean of the cells' numbers; along the last axis.

        >>> window = straight_window(4, 2, Fraction(1))
        >>> bool(np.allclose(window.back(np.eye(6)).T, np.array(window.rows(), dtype=float)))
        True
        """
        around = np.concatenate([np.zeros((*numbers.shape[:-1], 1)), numbers, numbers[..., : self.width]], axis=-1)
        sums = np.cumsum(around, axis=-1)
        covered = sums[..., self._starts + self.width] - sums[..., self._starts]
        q = float(self.outside)
        return np.asarray(q * numbers.sum(axis=-1, keepdims=True) + (float(self.inside) - q) * covered, dtype=np.float64)

    @cached_property
    def firsts(self) -> Floats:
        """For each cell the number whose mean is the point: (cell − b)/a, where a·point + b is the mean of the cells.

        A window that moves by one cell for each point takes the mean along: a = p − q·width and
        b = p(width − 1)/2 + q(Σ all cells − Σ first `width` cells), with p the probability of the window and q that of a cell
        outside of it. Only for windows that don't turn.
        """
        cells, (slope, rest) = np.arange(self.outputs, dtype=np.float64), self._line
        return (cells - float(rest)) / float(slope)

    @cached_property
    def seconds(self) -> Floats:
        """For each cell the number whose mean is the point squared.

        Σ (point + k)² over the window is width·point² + width(width − 1)·point + Σ k², so the mean of cell² is
        a·point² + a(width − 1)·point + (a/width)·Σ_{k<width} k² + q·Σ_{k<outputs} k².
        """
        slope = self._line[0]
        rest = slope / self.width * _squares(self.width) + self.outside * _squares(self.outputs)
        cells = np.arange(self.outputs, dtype=np.float64)
        return (cells**2 - float(rest)) / float(slope) - (self.width - 1) * self.firsts

    @cached_property
    def _line(self) -> tuple[Fraction, Fraction]:
        stay, q, w, m = probability(self.heads), self.outside, self.width, self.outputs
        return stay - q * w, stay * (w - 1) / 2 + q * (m * (m - 1) - w * (w - 1)) / 2

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return (np.arange(self.inputs, dtype=np.int64) + self.shift) % self.outputs


def straight_window(steps: int, width: int, epsilon: Fraction) -> Window:
    """The window that begins at cell i for point i, from one end of the cells to the other.

    >>> straight_window(1024, 600, Fraction(1)).inputs
    1025
    """
    heads = _heads(width, steps, epsilon)
    return Window(inputs=steps + 1, outputs=steps + width, width=width, heads=heads)


def turning_window(steps: int, width: int, epsilon: Fraction) -> Window:
    """The window around cell i for point i, on a circle of `steps` cells. Its width is odd, so that it has a middle.

    >>> turning_window(8, 3, Fraction(1)).shift
    -1
    """
    heads = _heads(width, steps - width, epsilon)
    return Window(inputs=steps, outputs=steps, width=width, heads=heads, shift=-(width // 2), circular=True)


def _heads(width: int, others: int, epsilon: Fraction) -> int:
    """The most heads with (heads/width) / ((2⁶⁴ − heads)/others) ≤ e^ε."""
    odds = odds_below(epsilon) * Fraction(width, others)
    return heads_below(odds / (1 + odds))


def _squares(n: int) -> int:
    """0² + 1² + … + (n − 1)²."""
    return (n - 1) * n * (2 * n - 1) // 6
