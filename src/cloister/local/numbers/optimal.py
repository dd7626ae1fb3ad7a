"""The optimal piecewise mechanism on a line: reports stay in the interval, as near to the truth as windows allow."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.local.frequency.estimates import Number
from cloister.local.numbers.distribution import Distribution, taken_off
from cloister.local.numbers.interval import Floats, Interval
from cloister.local.numbers.piecewise import WindowMechanism, piecewise_window
from cloister.local.protocols.protocol import Reports
from cloister.noise import Random
from cloister.privacy.rational import Exact, exact


class OptimalPiecewise(WindowMechanism):
    """A report in the interval itself, whose expected distance from the worst truth is least (Zheng et al. 2025), on a grid.

    The window is the share a = 1/(e^{ε/2} + 1) of the interval and lies around the truth; where an end cuts it, it lies at that
    end. The report is in the window with probability e^{ε/2}/(e^{ε/2} + 1), otherwise uniform on all the rest.

    Guarantee: ε-local privacy; the proof is that of `Window`. A number within `cut` = a/2 of an end has the window of the number
    at `cut`. So the mechanism is: move the number into [low + cut, high − cut], on the person's own machine, then `Piecewise` on
    that interval, whose window is never cut, and whose cells are just those of [low, high]. (Its window is e^{−ε/2} of the inner
    interval, which is a/(1 − a).) What is done to a number before an ε-private channel is as private as the channel.

    Distance: a window of the share a of a unit interval, e^ε more likely than the rest, has for a truth at an end, the worst, the
    expected distance (1 + (e^ε − 1)a²)/(2(1 + (e^ε − 1)a)). Its derivative is 0 where (e^ε − 1)a² + 2a = 1, which is at
    a = 1/(e^{ε/2} + 1), and there the distance is a itself. (In the middle it is a/2.) For squares of distances, another window
    would be the best.

    Bias: two numbers within `cut` of the same end have the same law, so no reading of reports whatever is unbiased for both.
    `mean` is exactly unbiased for the mean of people's numbers moved into [low + cut, high − cut]: for the true mean where nobody
    is nearer to an end, and never further from it than `cut`. That is its `bias`, and part of its margin, which so holds the
    true mean; so with `spread` (moving numbers inwards takes at most `cut` off a standard deviation) and with what
    `distribution` says (`Distribution.hidden`). Without this bias there is `Piecewise` on the whole interval, whose deviation is
    1 + e^{−ε/2} times as large.

    Several `dimensions`: each person reports max(1, min(d, ⌊ε/2.5⌋)) coordinates, each as above at its share of ε (finite.py).

    >>> mechanism = OptimalPiecewise(-1, 1, epsilon=1)
    >>> round(mechanism.variance(), 2), round(mechanism.cut, 3), round(mechanism.distance(), 3)
    (2.02, 0.378, 0.755)
    >>> mechanism.read(mechanism.randomize([0.9] * 3, random=Random.deterministic(1))).round(2).tolist()
    [0.63, 0.83, -0.51]
    """

    bounds: Interval
    """The declared interval; `interval` is the inner one."""

    def __init__(self, low: Exact = -1, high: Exact = 1, epsilon: Exact = 1, *, grid: int = 1024, dimensions: int = 1) -> None:
        super().__init__(low, high, epsilon, grid=grid, dimensions=dimensions)
        self.bounds = self.interval
        self.window = piecewise_window(self.grid, self._share)
        least, most = exact(low, "low"), exact(high, "high")
        cut = (most - least) * Fraction(self.window.width, 2 * self.window.outputs)
        self.interval = Interval.of(least + cut, most - cut)

    @property
    def cut(self) -> float:
        """How near to an end numbers are told apart no more: half a window, and the largest bias of a mean.

        >>> round(OptimalPiecewise(0, 100, epsilon=4).cut, 2)
        5.98
        """
        return self.bounds.span * self.window.width / (2 * self.window.outputs)

    @property
    def _bias(self) -> float:  # type: ignore[override]
        return self.cut

    def spread(self, reports: Any, *, coordinate: int = 0) -> Number:
        """The variance of people's numbers. It is that of the moved numbers, and what moving may have taken off is its bias: the
        true deviation is at most `cut` larger, since what each number was moved by deviates by no more than that.

        >>> mechanism = OptimalPiecewise(0, 1, epsilon=4)
        >>> spread = mechanism.spread(mechanism.randomize([0, 1] * 20000, random=Random.deterministic(1)))
        >>> abs(spread.value - 0.25) < spread.margin(0.95)
        True
        """
        return taken_off(super().spread(reports, coordinate=coordinate), self.cut)

    def distribution(self, reports: Any, *, coordinate: int = 0) -> Distribution:
        """How people's numbers are spread, as far as reports tell: who is nearer to an end than `cut` is shown that far away."""
        return replace(super().distribution(reports, coordinate=coordinate), hidden=self.cut)

    @property
    def client(self) -> Mapping[str, Any]:
        """As that of `Piecewise` on the inner interval, into which a number is to be moved before; `cut` says that."""
        return {**super().client, "cut": self.cut}

    def randomize(self, values: Any, *, clip: bool = False, random: Random | None = None) -> Reports:
        """One report for each number of the declared interval (each row of them, where there are dimensions). What lies outside
        is refused, or moved to the nearer end by `clip`."""
        rows = self.bounds.checked(values, dimensions=self.dimensions, clip=clip)
        return super().randomize(rows[:, 0] if self.dimensions == 1 else rows, clip=True, random=random)

    def variance(self, n: int = 1, value: float | None = None) -> float:
        """The variance of a mean's estimate among n people who all hold `value`; of the worst value where it is left out. The
        square of the bias is not in it.

        >>> OptimalPiecewise(0, 1).variance(10, 0.0) == OptimalPiecewise(0, 1).variance(10, 0.15)
        True
        """
        if value is None:
            return super().variance(n)
        moved = self.interval.checked(self.bounds.checked([value])[:, 0], clip=True)
        return super().variance(n, float(moved[0, 0]))

    def read(self, reports: Any) -> Floats:
        """Each report as a number of the declared interval: the middle of its cell. One person's number, as near as can be told.
        With dimensions, a row of numbers, with NaN for what the person didn't report.

        >>> OptimalPiecewise(0, 6, epsilon=1, grid=4).read([0, 5]).tolist()
        [0.5, 5.5]
        >>> OptimalPiecewise(0, 6, epsilon=1, grid=4, dimensions=2).read([[0], [11]]).tolist()
        [[0.5, nan], [nan, 5.5]]
        """
        cells = self._checked(reports).astype(np.int64)
        numbers = self.bounds.low + self.bounds.span * self._middles
        if self.dimensions == 1:
            return np.asarray(numbers[cells], dtype=np.float64)
        told, here = np.divmod(cells, self._cells)
        rows = np.full((len(cells), self.dimensions), np.nan)
        np.put_along_axis(rows, told, numbers[here], axis=1)
        return rows

    def distance(self, value: float | None = None) -> float:
        """The expected distance of what is read of a report from a person's number, in one coordinate; that of the worst number,
        an end, where it is left out.

        >>> mechanism = OptimalPiecewise(0, 1, epsilon=2)
        >>> round(mechanism.distance(), 3), round(mechanism.distance(0.5), 3)
        (0.269, 0.134)
        """
        number = self.bounds.low if value is None else float(self.bounds.checked([value])[0, 0])
        away = self.bounds.span * np.abs(self._middles - float(self.bounds.units(np.array([number]))[0]))
        return float(np.interp(number, self.interval.low + self.interval.span * self._points, self._back(away)))

    @property
    def _middles(self) -> Floats:
        return (np.arange(self.window.outputs) + 0.5) / self.window.outputs
