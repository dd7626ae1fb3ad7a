"""Rows drawn from a mixture of products, stratified: component and states come up as often as they should, to within one row.

Each component gets its expected number of rows, rounded by one random offset (systematic sampling), and so does each state of
each column within the component; then the rows of a column are put into a random order within the component, so that columns
stay independent there. Each row by itself has the law of the mixture; the table has less sampling error than independent rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from cloister.noise import Random
from cloister.synth.mixture import Mixture
from cloister.synth.states import Pieces, States

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def conditioned(mixture: Mixture, states: list[States], given: Mapping[int, Pieces]) -> tuple[Mixture, float]:
    """The mixture among the rows that meet the conditions, by the place of the column, and their share of all rows."""
    weights, columns = mixture.weights.copy(), list(mixture.columns)
    for place, pieces in given.items():
        number = states[place].number
        within = pieces.sizes(number) / states[place].pieces.sizes(number)
        kept = columns[place] * within
        left = kept.sum(axis=1)
        weights *= left
        columns[place] = np.divide(kept, left[:, None], out=np.full_like(kept, 1 / number), where=left[:, None] > 0)
    share = float(weights.sum())
    return Mixture(weights / share if share > 0 else weights, tuple(columns)), share


def drawn(mixture: Mixture, states: list[States], pieces: list[Pieces], n: int, random: Random) -> list[Integers]:
    """The codes of `n` rows, column by column, in random order."""
    sizes = _systematic(mixture.weights[None, :], np.array([n]), random)[0]
    used = np.flatnonzero(sizes)
    block = np.repeat(np.arange(len(used)), sizes[used])
    order = random.permutation(n) if n else np.zeros(0, dtype=np.int64)
    found = []
    for column, each, one in zip(mixture.columns, states, pieces, strict=True):
        counts = _systematic(column[used], sizes[used], random)
        chosen = np.repeat(np.tile(np.arange(each.number), len(used)), counts.ravel())
        mixed = np.argsort(block + _uniform(n, random) * 0.999, kind="stable")
        found.append(one.at(chosen[mixed], each.number, _uniform(n, random))[order])
    return found


def _systematic(shares: Floats, totals: Integers, random: Random) -> Integers:
    """In each row of shares how often each is drawn: its expected number, rounded up or down at random, in all `totals`."""
    ends = np.cumsum(shares, axis=1)
    ends = ends / ends[:, -1:] * totals[:, None] + _uniform(len(totals), random)[:, None]
    reached = np.minimum(np.floor(ends), totals[:, None]).astype(np.int64)
    reached[:, -1] = totals
    return np.diff(reached, axis=1, prepend=0)


def _uniform(n: int, random: Random) -> Floats:
    return np.asarray((random.words(n) >> np.uint64(11)) * 2.0**-53)
