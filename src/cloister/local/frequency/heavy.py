"""Heavy hitters: the frequent ones of strings that nobody has listed, found prefix by prefix; each person reports once."""

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, check_whole
from cloister.local.frequency.blocks import FINGERPRINT, PLACES, Blocks, extended, fingerprints, first_state, places_of
from cloister.local.frequency.estimates import Estimate
from cloister.local.frequency.hashing import LocalHashing
from cloister.local.protocols.coins import check_epsilon
from cloister.local.protocols.protocol import Reports, Sketch
from cloister.noise.mechanism import source
from cloister.noise.random import Random, check_count
from cloister.privacy import Exact, PureDP

_CELLS = 3 << 20
_CHUNK = 1 << 18


class HeavyHitters:
    """The most frequent of all texts up to a length, or of all whole numbers of some bits, with their counts.

    A string is cut into blocks of bits. Chance puts each person on one level; on level k they report the first k + 1 blocks of
    their string, together with a fingerprint (a public hash of 12 bits) of the whole string. Prefix and fingerprint are hashed,
    publicly, to one of 2²⁰ places, and the place is reported by local hashing. A level's reports make one table; one transform
    gives all its places, and prefixes that are frequent are extended by all blocks that may follow (`heavy_search`).

    Guarantee: ε-local privacy. Proof: the level is drawn before the string is looked at; the place is a function of string and
    level; and local hashing of the place is ε-locally private. Each person reports once, with the whole ε. The public hash needs
    no secrecy.

    Error: the fingerprint tells strings with a common prefix apart, so that every level counts the same people; the levels' own
    estimates add up to a count of all n, whose variance is that of local hashing on n reports. Not counted in margins: others
    who share the place of a string, n/2²⁰ of them on average (on the first level, 1/4096 of those with the same first byte). A
    string is found if it stands out on every level, among the 2¹⁴ blocks that might have followed; `least(people)` says how many
    must hold it.

    >>> words = HeavyHitters(epsilon=4, length=8)
    >>> people = ["apple"] * 30_000 + ["pear"] * 20_000 + [f"word{i}" for i in range(10_000)]
    >>> sketch = words.aggregate(words.randomize(people, random=Random.deterministic(1)))
    >>> found = words.find(sketch, most=5)
    >>> found.values, bool((abs(found.counts - [30_000, 20_000]) < found.margin(0.999)).all())
    (('apple', 'pear'), True)
    """

    protocol: ClassVar[str] = "heavy"

    epsilon: Fraction

    def __init__(self, epsilon: Exact = 1, *, bits: int | None = None, length: int | None = None) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.blocks = _blocks(bits, length)
        self._hashing = LocalHashing(range(1 << PLACES), self.epsilon, cells=_CELLS)
        self._cells = self._hashing._lines.cells

    @property
    def levels(self) -> int:
        """How many groups people are divided into by chance.

        >>> HeavyHitters(epsilon=4, bits=64).levels, HeavyHitters(epsilon=4, length=16).levels
        (5, 10)
        """
        return len(self.blocks.widths)

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent."""
        return PureDP(self.epsilon)

    @property
    def client(self) -> Mapping[str, Any]:
        """What a person's own machine needs to make a report, as plain JSON."""
        return {
            "protocol": self.protocol,
            "length": self.blocks.length,
            "texts": self.blocks.texts,
            "widths": list(self.blocks.widths),
            "fingerprint": FINGERPRINT,
            "places": PLACES,
            "hashing": dict(self._hashing.client),
        }

    @property
    def key(self) -> str:
        """The same for those whose reports may be counted together."""
        told = json.dumps(self.client, sort_keys=True).encode()
        return f"{self.protocol}-{self.blocks.length}-{hashlib.sha256(told).hexdigest()[:16]}"

    @property
    def report_size(self) -> int:
        """How many bits a report has.

        >>> HeavyHitters(epsilon=4).report_size
        24
        """
        return (self.levels * self._cells - 1).bit_length()

    def least(self, people: int) -> float:
        """How many of these people must hold a string, for it to be found 19 times of 20, about.

        It must exceed the largest of the noises of 2¹⁴ places on each level but the last.

        >>> round(HeavyHitters(epsilon=4, bits=64).least(1_000_000), -2)
        4000.0
        """
        from cloister.local.frequency.heavy_search import largest

        deviation = self._hashing.variance(check_count(people) // self.levels) ** 0.5
        return float((largest(max(self.blocks.widths)) + 2.5) * deviation * self.levels)

    def randomize(self, values: Any, *, random: Random | None = None) -> Reports:
        """One report for each value: to run where the person is. Random words are used up by the level, uniform, and then as in
        local hashing. The report is level·cells + the report of the place."""
        cut = self.blocks.cut(values)
        chosen = source(random)
        out = np.empty(len(cut[0]), dtype=np.int64)
        for first in range(0, len(out), _CHUNK):
            some = [block[first : first + _CHUNK] for block in cut]
            levels = chosen.below(self.levels, len(some[0]))
            reports = self._hashing._report(_places(some, levels), chosen)
            out[first : first + _CHUNK] = levels * self._cells + reports
        return out

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Which of these could be reports at all.

        >>> HeavyHitters().valid(np.array([-1, 5])).tolist()
        [False, True]
        """
        return np.asarray((reports >= 0) & (reports < self.levels * self._cells), dtype=np.bool_)

    def aggregate(self, reports: Any) -> Sketch:
        """The reports' sketch: a table for each level. Sketches add up."""
        array = np.asarray(reports)
        if array.size == 0:
            array = np.zeros(0, dtype=np.int64)
        if array.ndim != 1 or array.dtype.kind not in "iu" or not bool(self.valid(array).all()):
            raise InvalidParameter(
                "The reports are invalid",
                why="some could not come from this HeavyHitters: another length, another ε, or garbage",
                instead="reports[heavy.valid(reports)], and say how many were left out",
            )
        counts = np.bincount(array.astype(np.int64, copy=False), minlength=self.levels * self._cells)
        return Sketch(key=self.key, n=len(array), counts=counts.astype(np.int64, copy=False).reshape(self.levels, -1))

    def find(self, sketch: Sketch, most: int = 20) -> Estimate:
        """The most frequent strings, by their estimated counts, and not more than stand out from the noise.

        `values` are the strings, `counts` their estimated counts among all, `margin(0.95)` how far off these may be.
        """
        from cloister.local.frequency.heavy_search import found

        if not isinstance(sketch, Sketch) or sketch.key != self.key:
            raise InvalidParameter(
                "The sketch is invalid", why="it is of another length or ε", instead="heavy.aggregate(reports)"
            )
        return found(self._hashing, self.blocks, sketch, check_count(most))


def _places(blocks: list[npt.NDArray[np.int64]], levels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each person's prefix is counted on their level."""
    place = blocks[0] << FINGERPRINT | fingerprints(blocks)
    state = first_state(place)
    for level, block in enumerate(blocks[1:], start=1):
        state = extended(state, block)
        place = np.where(levels == level, places_of(state), place)
    return place


def _blocks(bits: int | None, length: int | None) -> Blocks:
    if bits is not None and length is not None:
        raise InvalidParameter(
            "bits= is invalid", why="length= is given, too", instead="bits=64 for numbers, length=16 for texts"
        )
    if length is None:
        size = 64 if bits is None else bits
        if isinstance(size, bool) or not isinstance(size, int) or size % 8 or not 16 <= size <= 1024:
            raise InvalidParameter(f"bits={bits!r} is invalid", why="it is a multiple of 8 from 16 to 1024", instead="bits=64")
        return Blocks(length=size // 8, texts=False)
    check_whole(length, "length", 2, 128, why="it is a number of bytes from 2 to 128", instead="length=16")
    return Blocks(length=length, texts=True)
