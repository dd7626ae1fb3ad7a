"""Sources whose words are written down, so that a test can stand on an edge."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cloister.noise import Random


class Scripted(Random):
    """Hands out the given words in order, and fails when they are used up."""

    __slots__ = ("script",)

    def __init__(self, script: Iterable[int]) -> None:
        super().__init__()
        self.marked = True
        self.script = iter(script)

    def word(self) -> int:
        return next(self.script)

    def words(self, n: int) -> NDArray[np.uint64]:
        return np.array([next(self.script) for _ in range(n)], dtype=np.uint64)


class TwoStreams(Random):
    """Arrays of words from one stream, single words from another: what decides early leaves the arrays where they were."""

    __slots__ = ("arrays", "singles")

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.marked = True
        self.arrays = Random.deterministic(seed)
        self.singles = Random.deterministic(seed + 1_000_000)

    def word(self) -> int:
        return self.singles.word()

    def words(self, n: int) -> NDArray[np.uint64]:
        return self.arrays.words(n)
