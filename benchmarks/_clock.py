"""How the benchmarks take turns: what they compare runs alternately, so that a busy minute falls on both sides alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def best(act: Callable[[], object], times: int) -> float:
    """The least processor seconds of so many runs; one before them makes what is kept, and does not count."""
    found = []
    for _ in range(times + 1):
        started = time.process_time()
        act()
        found.append(time.process_time() - started)
    return min(found[1:])


def alternating(*works: Callable[[int], object], rounds: int, uncounted: int = 1) -> list[float]:
    """Median seconds of each work, in turns, after some rounds that do not count. A work is told the number of its round."""
    seconds: list[list[float]] = [[] for _ in works]
    for place in range(rounds + uncounted):
        for work, taken in zip(works, seconds, strict=True):
            begun = time.perf_counter()
            work(place)
            taken.append(time.perf_counter() - begun)
    return [statistics.median(taken[uncounted:]) for taken in seconds]
