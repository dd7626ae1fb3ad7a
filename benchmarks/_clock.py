"""How the benchmarks take turns: what they compare runs alternately, so that a busy minute falls on both sides alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def alternating(*works: Callable[[int], object], rounds: int, uncounted: int = 1) -> list[float]:
    """Median seconds of each work, in turns, after some rounds that do not count. A work is told the number of its round."""
    seconds: list[list[float]] = [[] for _ in works]
    for place in range(rounds + uncounted):
        for work, taken in zip(works, seconds, strict=True):
            begun = time.perf_counter()
            work(place)
            taken.append(time.perf_counter() - begun)
    return [statistics.median(taken[uncounted:]) for taken in seconds]
