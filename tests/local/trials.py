"""Many surveys of one oracle at once: how far estimates are from the truth, in units of what theory says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.local import FrequencyOracle
from cloister.noise import Random
from tests.tiers import by_day_and_night

__all__ = ["BY_CELLS", "Trials", "skewed", "trials", "within_theory"]

BY_CELLS = by_day_and_night("cells", 20_000, 70_000)


@dataclass(frozen=True)
class Trials:
    """One row a survey, one column a value."""

    errors: npt.NDArray[np.float64]
    variances: npt.NDArray[np.float64]
    """By `variance(n, true frequency)`."""
    covered: npt.NDArray[np.bool_]
    """Whether the 95 % interval of an estimate holds the truth."""
    widths: npt.NDArray[np.float64]
    """How wide those intervals are, in half-widths of the normal law by `variance(n, true frequency)`."""


def skewed(size: int, n: int) -> npt.NDArray[np.int64]:
    """Places of n people, half of whom hold the first value; nobody holds the last quarter of the values."""
    held = max(1, size - size // 4)
    return np.where(np.arange(n) % 2 == 0, 0, np.arange(n) % held).astype(np.int64)


def trials(oracle: FrequencyOracle, *, n: int, seed: int, cells: int) -> Trials:
    """As many surveys of the same n people as make up `cells` estimates."""
    size = len(oracle.domain)
    places = skewed(size, n)
    truth = np.bincount(places, minlength=size)
    variances = np.array([oracle.variance(n, count / n) for count in truth])
    normal = 1.96 * np.sqrt(variances)
    errors, covered, widths = [], [], []
    for reports in _surveys(oracle, places, -(-cells // size), Random.deterministic(seed)):
        estimate = oracle.estimate(oracle.aggregate(reports))
        margin = estimate.margin(0.95)
        errors.append(estimate.counts - truth)
        covered.append(abs(errors[-1]) <= margin)
        widths.append(margin / normal)
    return Trials(np.stack(errors), variances, np.stack(covered), np.stack(widths))


def _surveys(oracle: FrequencyOracle, places: npt.NDArray[np.int64], surveys: int, random: Random) -> Iterator[Any]:
    values = np.array(list(oracle.domain.values))[places]
    at_once = max(1, 2_000_000 // len(places) // max(1, oracle.report_size // 64))
    for first in range(0, surveys, at_once):
        many = min(at_once, surveys - first)
        reports = oracle.randomize(np.tile(values, many), random=random)
        yield from reports.reshape(many, len(places), *reports.shape[1:])


def within_theory(found: Trials, cells: int) -> None:
    """Unbiased to 5.5 deviations in every column (false alarm 4e-8 each). The mean of the squares of so many independent normal
    cells has a deviation of √(2/cells): within 5.6 of them of theory (2e-8; 5.6 % by day, 3 % at night). Margins that cover 95 %
    to seven deviations. They may cover more, where a margin follows a share that is itself uncertain, or where so few people hold
    a value that the law is not the normal one: but no column's is, on average, 30 % wider than that."""
    scaled = found.errors / np.sqrt(found.variances)
    assert abs(scaled.mean(axis=0)).max() < 5.5 / np.sqrt(len(scaled))
    assert abs((scaled**2).mean() - 1) < 5.6 * (2 / cells) ** 0.5
    assert found.covered.mean() > 0.95 - 7 * (0.95 * 0.05 / cells) ** 0.5
    assert found.widths.mean(axis=0).max() < 1.3
