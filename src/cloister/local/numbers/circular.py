"""Angles, times of day, days of the year: the optimal piecewise mechanism on a circle."""

import cmath
import math
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.estimates import Number
from cloister.local.numbers.distribution import Direction
from cloister.local.numbers.interval import Floats, check_grid
from cloister.local.numbers.piecewise import WindowMechanism
from cloister.local.numbers.window import turning_window
from cloister.local.protocols.coins import odds_below
from cloister.local.protocols.protocol import Sketch
from cloister.noise import Random
from cloister.privacy.rational import Exact


class CircularPiecewise(WindowMechanism):
    """A quantity that turns round, whose `low` and `high` are the same place: its mean direction and its distribution.

    Guarantee: ε-local privacy; the proof is that of `Window`. The window lies around the truth, wherever that is: there are no
    ends, and each place is protected and measured alike. It holds the share 1/(e^{ε/2} + 1) of the circle (an odd number of
    cells) with probability e^{ε/2}/(e^{ε/2} + 1), which is optimal among piecewise mechanisms on a circle (Zheng et al. 2025).

    Error: `mean` is the direction of the mean of the reports' unit vectors. These shrink by a known factor λ, the same for each
    truth, and don't turn; so with r the length of the true mean vector, the direction's variance is about
    (E[sin²(report − direction)]/λ² − E[sin²(truth − direction)])/r²/n. The second part, people's own variety, is read off the
    reports' doubled angles, as far as these surely tell it: at small ε they say little, and the margin is a little wide.
    Where people are all around (r near 0) there is no direction, and the margin says so: it is half of the circle (`Direction`).

    >>> clock = CircularPiecewise(0, 24, epsilon=2)
    >>> reports = clock.randomize([23, 1] * 5000, random=Random.deterministic(1))
    >>> mean = clock.mean(reports)
    >>> min(mean.value, 24 - mean.value) < mean.margin(0.999) < 1
    True
    """

    _circular = True

    def __init__(self, low: Exact = 0, high: Exact = 360, epsilon: Exact = 1, *, grid: int = 1024) -> None:
        super().__init__(low, high, epsilon, grid=check_grid(grid, least=4))
        most = (self.grid - 2) // 2
        half = min(most, max(0, round((self.grid / (odds_below(self.epsilon / 2) + 1) - 1) / 2)))
        self.window = turning_window(self.grid, 2 * half + 1, self.epsilon)

    def _draw(self, values: Floats, random: Random) -> npt.NDArray[np.int64]:
        return self.window.draw(self.interval.places(values, self.grid, random) % self.grid, random)

    def spread(self, reports: Any, *, coordinate: int = 0) -> Number:
        raise InvalidParameter("No spread was read", why="a circle has no squares", instead=".distribution(reports).histogram()")

    @property
    def _points(self) -> Floats:
        return np.arange(self.grid) / self.grid

    @cached_property
    def _turns(self) -> npt.NDArray[np.complex128]:
        """Each cell's unit vector, over what the mean of the reports' vectors shrinks to."""
        vectors = np.exp(2j * np.pi * self._points)
        return np.asarray(vectors / complex(vectors @ self._row), dtype=np.complex128)

    @cached_property
    def _row(self) -> Floats:
        """The probabilities of the cells for the truth 0."""
        here = np.zeros(self.grid)
        here[0] = 1.0
        return self.window.forward(here)

    @cached_property
    def _doubled(self) -> npt.NDArray[np.complex128]:
        """The same of each cell's doubled angle."""
        vectors = np.exp(4j * np.pi * self._points)
        shrunk = complex(vectors @ self._row)
        return np.asarray(vectors / (shrunk if abs(shrunk) > 1e-9 else 1e-9), dtype=np.complex128)

    def mean(self, reports: Any) -> Direction:
        """The mean direction of those who answered, of their reports or of a sketch."""
        sketch = self._sketch(reports)
        [value], [variance] = self._means(sketch)
        mean, across, along = self._vector(sketch)
        low, span = self.interval.low, self.interval.span
        return Direction(
            value=float(low + span * value),
            variance=float(span**2 * variance),
            n=sketch.n,
            part=2 * math.pi * self._part / sketch.n,
            length=abs(mean),
            across=across,
            along=along,
            span=span,
        )

    def _means(self, sketch: Sketch) -> tuple[Floats, Floats]:
        mean, across, _ = self._vector(sketch)
        variance = across / max(abs(mean), 1e-9) ** 2
        return np.array([cmath.phase(mean) / (2 * math.pi) % 1.0]), np.array([variance / (2 * math.pi) ** 2])

    def _vector(self, sketch: Sketch) -> tuple[complex, float, float]:
        """The mean vector of people's places, and the variances of its parts across and along its direction."""
        counts, n = sketch.counts, sketch.n
        mean = complex(counts @ self._turns) / n
        back = cmath.exp(-1j * cmath.phase(mean))
        doubled = (self._doubled * back**2).real
        alike = float(counts @ doubled) / n
        unsure = 2 * math.sqrt(max(0.0, float(counts @ doubled**2) / n - alike**2) / n)
        variety = min(1.0, max(0.0, (1 - alike - unsure) / 2))
        turned = self._turns * back
        across = max(float(counts @ turned.imag**2) / n - variety, self._least) / n
        along = max(float(counts @ turned.real**2) / n - abs(mean) ** 2, self._least) / n
        return mean, across, max(across, along)

    @cached_property
    def _least(self) -> float:
        """The least that a report of anybody may vary across any direction: along φ it is (A − B·cos 2φ)/2 − sin²φ, with A and B
        the means of the squared length of a turn and of its square, so it is least at one of the axes."""
        length, square = (float(self._row @ each) for each in (abs(self._turns) ** 2, (self._turns**2).real))
        return max(0.0, min((length - square) / 2, (length + square) / 2 - 1))

    def _noise(self, unit: float) -> float:
        return float(self._row @ self._turns.imag**2) / (2 * math.pi) ** 2

    @property
    def _worst(self) -> float:
        return 0.0
