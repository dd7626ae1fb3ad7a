"""Randomness that is written down: words that a test gives, or that another source gave."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from cloister.noise import Random

__all__ = ["Scripted"]


class Scripted(Random):
    """Hands out the given words; or those of `behind`, and keeps them."""

    __slots__ = ("_behind", "_given", "words_used")

    def __init__(self, given: Iterable[int] = (), *, behind: Random | None = None) -> None:
        super().__init__()
        self.marked = True
        self._given = list(given)
        self._behind = behind
        self.words_used: list[int] = []

    @classmethod
    def recording(cls, behind: Random) -> Scripted:
        return cls(behind=behind)

    @property
    def left(self) -> int:
        """How many of the given words were not used."""
        return len(self._given) - len(self.words_used)

    def word(self) -> int:
        return int(self.words(1)[0])

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        first = len(self.words_used)
        drawn = self._behind.words(n).tolist() if self._behind else self._given[first : first + n]
        assert len(drawn) == n, "more words were used than were given"
        self.words_used += drawn
        return np.array(drawn, dtype=np.uint64)
