"""How wide the peers' noise is, for the same statistics at the same ε, unit, bounds and keys.

OpenDP is run: its measurements are built, and its own search finds their scale. The others need other releases of numpy, polars
or Spark than ours, so their scales follow the formula that they document; where a release of the peer was run apart from this
benchmark and agreed with it, the words of the peer say so.

What they share: each noised number gets its own part of ε, and a mean is a noised sum over a noised count. They differ in what a
mean takes its sum around (0, or the middle of the bounds), and in which counts are shared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cloister.noise import DiscreteLaplace

CONFIDENCE = 0.95
DRAWS = 20_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A column of the answer: a count, a sum or a mean of values between two bounds; a count of a column has its name."""

    name: str
    kind: Literal["count", "sum", "mean"]
    low: int = 0
    high: int = 1
    column: str | None = None


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The exact number of rows and total of each group, for one mean: what the noise of a ratio depends on."""

    count: Floats
    total: Floats

    def occupied(self) -> Groups:
        """Those that have rows: an empty group has no mean to miss."""
        held = self.count > 0
        return Groups(count=self.count[held], total=self.total[held])


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A peer by its choices, and how its scales are known."""

    name: str
    words: str
    centred: bool
    """Whether a mean's sum is taken around the middle of the bounds."""
    shared: Literal["all", "one", "none"]
    """Which means use the count that is released anyway: all, those of one column (one call looks at one), or none."""
    whole: bool
    """Whether the noise of sums is on the integers too, as that of counts is."""
    run: bool = False

    def parts(self, statistics: Sequence[Statistic]) -> int:
        """How many numbers of a group are noised, each with its part of ε."""
        counts = {one.column for one in statistics if one.kind == "count"}
        sums = {one.column for one in statistics if one.kind != "count"}
        means = {one.column for one in statistics if one.kind == "mean"}
        separate = {"all": 0, "one": max(len(means) - 1, 0), "none": len(means)}[self.shared]
        return max(len(counts), bool(means) and self.shared != "none") + len(sums) + separate

    def widths(self, statistics: Sequence[Statistic], epsilon: float, rows: int, groups: dict[str, Groups]) -> dict[str, float]:
        """The half-width that holds with 95 % confidence, by statistic; that of a mean by drawing its noise."""
        part = epsilon / self.parts(statistics)
        found = {}
        for one in statistics:
            if one.kind == "count":
                found[one.name] = _integer_width(self._scale(1, rows, part))
            elif one.kind == "sum":
                scale = self._scale(max(abs(one.low), abs(one.high)), rows, part)
                found[one.name] = _integer_width(scale) if self.whole else scale * math.log(1 / (1 - CONFIDENCE))
            else:
                found[one.name] = self._mean(one, rows, part, groups[one.name])
        return found

    def _mean(self, one: Statistic, rows: int, part: float, groups: Groups) -> float:
        centre = (one.low + one.high) / 2 if self.centred else 0.0
        reach = max(abs(one.low - centre), abs(one.high - centre))
        draw = np.random.default_rng(1)
        shape = (DRAWS, groups.count.size)
        total = groups.total - centre * groups.count + draw.laplace(0, self._scale(reach, rows, part), shape)
        count = groups.count + draw.laplace(0, self._scale(1, rows, part), shape)
        answers = np.clip(centre + total / np.maximum(count, 1), one.low, one.high)
        return float(np.quantile(np.abs(answers - groups.total / groups.count), CONFIDENCE))

    def _scale(self, reach: float, rows: int, part: float) -> float:
        return _opendp_scale(int(reach), rows, part) if self.run else reach * rows / part


OPENDP = Peer(name="OpenDP", words="0.16, run", centred=False, shared="all", whole=True, run=True)
SMARTNOISE = Peer(
    name="SmartNoise SQL",
    words="formula; 1.0.10 agreed with it",
    centred=False,
    shared="none",
    whole=False,
)
PIPELINE = Peer(name="PipelineDP", words="formula; 0.3.1 agreed with it", centred=True, shared="one", whole=False)
TUMULT = Peer(name="Tumult Analytics", words="formula; not run", centred=True, shared="none", whole=True)
PEERS = (OPENDP, SMARTNOISE, PIPELINE, TUMULT)


@cache
def _opendp_scale(reach: int, rows: int, epsilon: float) -> float:
    """The least scale that OpenDP accepts for `rows` rows of a person and values up to `reach`."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    chain: Any = (dp.vector_domain(dp.atom_domain(bounds=(0, max(reach, 1)))), dp.symmetric_distance()) >> dp.t.then_sum()
    if reach == 1:
        chain = (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()) >> dp.t.then_count()
    found: float = dp.binary_search_param(lambda scale: chain >> dp.m.then_laplace(scale), d_in=rows, d_out=epsilon, T=float)
    return found


def _integer_width(scale: float) -> float:
    return float(DiscreteLaplace(scale=str(scale)).margin(CONFIDENCE))
