"""Rows drawn from a mixture of products, stratified: component and states come up as often as they should, to within one row.

Each component gets its expected number of rows, rounded by one random offset (systematic sampling), and so does each state of
each column within the component; then the rows of a column are put into a random order within the component, so that columns
stay independent there. Each row by itself has the law of the mixture; the table has less sampling error than independent rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.synth.mixture import Mixture
from cloister.synth.rules import LEAST_ACCEPTED, Rules
from cloister.synth.states import Pieces, States, uniform

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_AT_ONCE = 500_000
_PILOT = 10_000
_SEED = b"rows that show how many obey the rules"


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
    codes, _, order = _by_component(mixture, states, pieces, n, random)
    for place, column in enumerate(codes):  # one by one, so that no second copy of all columns is held
        codes[place] = column[order]
    return codes


def _by_component(
    mixture: Mixture, states: Sequence[States], pieces: Sequence[Pieces], n: int, random: Random
) -> tuple[list[Integers], Integers, Integers]:
    """The codes of `n` rows, component by component, the component of each, and a random order of them."""
    sizes = _systematic(mixture.weights[None, :], np.array([n]), random)[0]
    used = np.flatnonzero(sizes)
    block = np.repeat(np.arange(len(used)), sizes[used])
    order = random.permutation(n) if n else np.zeros(0, dtype=np.int64)
    found = []
    for column, each, one in zip(mixture.columns, states, pieces, strict=True):
        counts = _systematic(column[used], sizes[used], random)
        chosen = np.repeat(np.tile(np.arange(each.number), len(used)), counts.ravel())
        mixed = np.argsort(block + uniform(n, random) * 0.999, kind="stable")
        found.append(one.at(chosen[mixed], each.number, uniform(n, random)))
    return found, block, order


def drawn_under(
    rules: Rules, mixture: Mixture, states: list[States], given: Mapping[int, Pieces], n: int, random: Random
) -> list[Integers]:
    """The codes of `n` rows that obey rules and conditions: as many draws as it takes, refused where it takes too many."""
    pieces = [given.get(place, each.pieces) for place, each in enumerate(states)]
    parts, have, tried = [drawn(mixture, states, pieces, 0, random)], 0, 0
    while have < n:
        share = max(have / tried, LEAST_ACCEPTED) if tried else 1.0
        number = min(max(int((n - have) / share * 1.02), _PILOT), _AT_ONCE)  # few rows have few others to change places with
        codes, block, order = _by_component(mixture, states, pieces, number, random)
        codes, obeyed = rules.settled(codes, block, given, random)
        kept = order[obeyed[order]]
        parts.append([column[kept] for column in codes])
        have, tried = have + int(obeyed.sum()), tried + number
        if tried >= _PILOT and have < LEAST_ACCEPTED * tried:
            raise InvalidParameter(
                "The rules are invalid for these rows",
                why=f"{have / tried:.2%} of what the model draws obeys them, and at least {LEAST_ACCEPTED:.0%} has to; "
                f"{rules.most_broken(codes)!r} is broken most",
                instead="a wider given=, fewer rules, or a model with about= the columns of that rule",
            )
    return [np.concatenate(columns)[:n] for columns in zip(*parts, strict=True)]


def accepted(mixture: Mixture, states: Sequence[States], rules: Rules, given: Mapping[int, Pieces]) -> float:
    """Which share of the rows drawn from a mixture can be made to obey the rules: by 10,000 rows from a fixed seed."""
    if not rules.rules:
        return 1.0
    random, pieces = Random.derived(_SEED), [given.get(place, each.pieces) for place, each in enumerate(states)]
    codes, block, _ = _by_component(mixture, states, pieces, _PILOT, random)
    return float(rules.settled(codes, block, given, random)[1].mean())


def _systematic(shares: Floats, totals: Integers, random: Random) -> Integers:
    """In each row of shares how often each is drawn: its expected number, rounded up or down at random, in all `totals`."""
    ends = np.cumsum(shares, axis=1)
    ends = ends / ends[:, -1:] * totals[:, None] + uniform(len(totals), random)[:, None]
    reached = np.minimum(np.floor(ends), totals[:, None]).astype(np.int64)
    reached[:, -1] = totals
    return np.diff(reached, axis=1, prepend=0)
