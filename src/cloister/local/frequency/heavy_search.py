"""The search for heavy hitters: from frequent prefixes to longer ones, level by level, over estimates of all places.

On the first level a place is a prefix and a fingerprint, and the best places are kept. On each further level all blocks are tried
that may follow a kept prefix; where they would be counted is a hash away. The best few of each are kept, so that a string has to
stand out only from the noise of its own prefix's continuations. On the last level the fingerprint must be that of the string.

All levels count the same people, in groups made by chance. So a candidate whose levels disagree is none: it was counted, on some
level, at the place of a frequent string. What is left over is the largest of many noises; that is why a candidate is reported
only if its levels' sum is above what these would come to, and if it stands out on the last level, where candidates are few.
Beside a better one with the same beginning and fingerprint, it's reported only if no level doubts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from cloister.local.frequency.blocks import FINGERPRINT, PLACES, Blocks, extended, fingers_of, first_state, places_of
from cloister.local.frequency.estimates import Estimate
from cloister.local.frequency.hashing import LocalHashing
from cloister.local.protocols.protocol import Sketch

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_KEPT = 256
_EACH = 3
_APART = 6.0
"""How many standard deviations a place may have more than the prefix had before: beyond, it's a frequent other's."""
_DOUBT = 0.0001
_BESIDE = 5.0
_FALSE = 0.2
"""How many strings that nobody holds may be found, at most, on average."""
_CHUNK = 16


def largest(bits: int) -> float:
    """The largest of 2^bits independent noises, about, in standard deviations.

    >>> round(largest(14), 2)
    3.84
    """
    return NormalDist().inv_cdf(1 - 2.0**-bits)


@dataclass(frozen=True, kw_only=True)
class _Candidates:
    """Prefixes with their blocks and, for each level, the count at their place."""

    blocks: Numbers
    counts: Floats
    fingerprints: Numbers
    state: Words
    finger: Words

    def only(self, which: Numbers) -> _Candidates:
        return _Candidates(
            blocks=self.blocks[which],
            counts=self.counts[which],
            fingerprints=self.fingerprints[which],
            state=self.state[which],
            finger=self.finger[which],
        )


@dataclass(frozen=True, kw_only=True)
class _Levels:
    """How many people there are on each level, and how far off their estimates are."""

    hashing: LocalHashing
    people: tuple[int, ...]

    @property
    def skew(self) -> float:
        """Of the estimate of a place that nobody holds: it is counted like rare events where people are few."""
        q = self.hashing.support
        return float((1 - 2 * q) / max(1.0, min(self.people) * q * (1 - q)) ** 0.5)

    def noise(self, level: int, shares: Floats) -> Floats:
        """The standard deviation of a level's estimate, with that of how many holders came to be on it."""
        n = self.people[level]
        return np.asarray(np.sqrt(np.maximum(1.0, self.hashing._variances(n, shares) + n * shares)), dtype=np.float64)

    def shares(self, counts: Floats) -> Floats:
        """The share of a prefix, by all of its levels together."""
        people = sum(self.people[: counts.shape[1]])
        return np.asarray(np.clip(counts.sum(axis=1) / max(1, people), 0.0, 1.0), dtype=np.float64)

    def scores(self, counts: Floats) -> Floats:
        """Estimates in standard deviations of what nobody holds."""
        none = [float(self.noise(level, np.zeros(1))[0]) for level in range(counts.shape[1])]
        return np.asarray(counts / np.array(none), dtype=np.float64)

    def agree(self, counts: Floats) -> npt.NDArray[np.bool_]:
        """Whether the levels say the same, but for noise: a χ² test, which one true prefix of ten thousand fails."""
        shares = self.shares(counts)
        squares = np.zeros(len(counts))
        for level in range(counts.shape[1]):
            squares += ((counts[:, level] - self.people[level] * shares) / self.noise(level, shares)) ** 2
        return np.asarray(squares <= _chi_square(counts.shape[1] - 1), dtype=np.bool_)


def found(hashing: LocalHashing, blocks: Blocks, sketch: Sketch, most: int) -> Estimate:
    """The strings that stand out, the most frequent first; at most `most`."""
    levels = _Levels(hashing=hashing, people=tuple(sketch.counts.sum(axis=1).tolist()))
    candidates = _first(_estimates(hashing, sketch, 0))
    for level in range(1, len(blocks.widths)):
        estimates = _estimates(hashing, sketch, level)
        shares = levels.shares(candidates.counts)
        most_likely = levels.people[level] * shares + _APART * levels.noise(level, shares)
        last = level == len(blocks.widths) - 1
        candidates = _extended(candidates, estimates, most_likely, blocks.widths[level], last)
        candidates = candidates.only(np.flatnonzero(levels.agree(candidates.counts)))
        order = np.argsort(-levels.scores(candidates.counts).sum(axis=1), kind="stable")
        candidates = candidates.only(order[: len(order) if last else _KEPT])
    return _told(candidates, levels, blocks, sketch.n, most)


def _told(candidates: _Candidates, levels: _Levels, blocks: Blocks, n: int, most: int) -> Estimate:
    """Those candidates, the best first, that noise would not have made."""
    scores = levels.scores(candidates.counts)
    before, last = _floors(blocks.widths, levels.skew)
    families: set[tuple[int, int]] = set()
    chosen: list[int] = []
    values: list[str | int] = []
    for place, (path, fingerprint) in enumerate(zip(candidates.blocks.tolist(), candidates.fingerprints.tolist(), strict=True)):
        value = blocks.joined(path)
        family = (path[0], fingerprint)
        stands_out = scores[place, -1] > last and scores[place].sum() > before + last
        if value is None or not stands_out or (family in families and scores[place].min() <= _BESIDE):
            continue
        families.add(family)
        chosen.append(place)
        values.append(value)
    counts = candidates.counts[np.array(chosen, dtype=np.int64)].sum(axis=1)
    order = np.argsort(-counts, kind="stable")[:most]
    shares = np.clip(counts[order] / max(1, n), 0.0, 1.0)
    variances = np.zeros(len(order))
    for people in levels.people:
        variances += levels.hashing._variances(people, shares)
    return Estimate(
        counts=counts[order],
        n=n,
        variances=variances,
        values=tuple(values[place] for place in order.tolist()),
        part=levels.hashing._part,
        slope=levels.hashing._slope,
    )


def _estimates(hashing: LocalHashing, sketch: Sketch, level: int) -> Floats:
    """The counts at all places of a level."""
    counts = sketch.counts[level]
    return hashing._read(Sketch(key=hashing.key, n=int(counts.sum()), counts=counts))


def _first(estimates: Floats) -> _Candidates:
    """The best places of the first level."""
    best = np.argpartition(-estimates, _KEPT)[:_KEPT].astype(np.int64)
    first = best >> FINGERPRINT
    return _Candidates(
        blocks=first[:, None],
        counts=estimates[best][:, None],
        fingerprints=best & ((1 << FINGERPRINT) - 1),
        state=first_state(best),
        finger=fingers_of(first),
    )


def _extended(candidates: _Candidates, estimates: Floats, most_likely: Floats, width: int, last: bool) -> _Candidates:
    """The best continuations of each prefix: a few, and of the last level one; none whose place has far more people than the
    prefix."""
    every = np.arange(1 << width, dtype=np.int64)
    each = 1 if last else min(_EACH, len(every))
    parents, blocks, counts = [], [], []
    for first in range(0, len(candidates.state), _CHUNK):
        some = candidates.only(np.arange(first, min(first + _CHUNK, len(candidates.state))))
        values = estimates[places_of(extended(some.state[:, None], every))]
        values[values > most_likely[first : first + _CHUNK, None]] = -np.inf
        if last:
            own = extended(some.finger[:, None], every) >> np.uint64(64 - FINGERPRINT)
            values[own != some.fingerprints[:, None].astype(np.uint64)] = -np.inf
        best = np.argpartition(-values, each - 1, axis=1)[:, :each]
        row = np.arange(len(values))[:, None]
        parents.append(np.broadcast_to(row + first, best.shape).ravel())
        blocks.append(best.ravel())
        counts.append(values[row, best].ravel())
    count = np.concatenate(counts)
    real = np.flatnonzero(count > -np.inf)
    parent, block = np.concatenate(parents)[real], np.concatenate(blocks)[real].astype(np.int64)
    before = candidates.only(parent)
    return _Candidates(
        blocks=np.column_stack([before.blocks, block]),
        counts=np.column_stack([before.counts, count[real]]),
        fingerprints=before.fingerprints,
        state=extended(before.state, block),
        finger=extended(before.finger, block),
    )


def _chi_square(freedom: int) -> float:
    """What χ² exceeds with the probability of a doubt (Wilson & Hilferty 1931; 0.2 % off for 4 degrees of freedom)."""
    spread = 2 / (9 * freedom)
    return float(freedom * (1 - spread + NormalDist().inv_cdf(1 - _DOUBT) * spread**0.5) ** 3)


def _floors(widths: tuple[int, ...], skew: float) -> tuple[float, float]:
    """What noise alone comes to: on all levels but the last, nearly the largest one of each; on the last, the largest of those
    few strings whose fingerprint fits by chance. Quantiles are corrected for skewness (Cornish & Fisher 1938)."""
    each = [largest(PLACES - _KEPT.bit_length() + 1), *(largest(width) for width in widths[1:-1])]
    fitting = max(1.0, _KEPT * 2.0 ** (widths[-1] - FINGERPRINT))
    *before, last = (z + (z * z - 1) * skew / 6 for z in (*each, NormalDist().inv_cdf(1 - _FALSE / fitting)))
    return sum(before) + 0.5 * len(before), last
