"""Rows drawn from a mixture of products, stratified: component and states come up as often as they should, to within one row.

Each component gets its expected number of rows, rounded by one random offset (systematic sampling), and so does each state of
each column within the component; then the rows of a column are put into a random order within the component, so that columns
stay independent there. Each row by itself has the law of the mixture; the table has less sampling error than independent rows.
Long tables are drawn in parts, each stratified by itself, so that what is shuffled stays in the cache.

Orders come from sorts of 20 or more random bits a row. Rows whose bits are equal are in the order of their states, which
matters for the first and last few rows of a component alone: worked out exactly for half a million rows of one component and two
columns of 2,000 states each, it moves the law of a row by less than 2·10⁻⁸ in total variation.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.session import unknown_column
from cloister.synth.mixture import Mixture
from cloister.synth.pieces import Pieces
from cloister.synth.rules import LEAST_ACCEPTED, Rules
from cloister.synth.states import States

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_MOST_ROWS = 20_000_000
_AT_ONCE, _RULED = 250_000, 500_000
_PILOT = 10_000
_SEED = b"rows that show how many obey the rules"


def checked_number(n: object) -> int:
    """A number of rows to draw; anything else is refused, and more than are drawn at once."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InvalidParameter(f"n={n!r} is invalid", why="it is a whole number of rows", instead="model.sample(1000)")
    if n > _MOST_ROWS:
        why = f"at most {_MOST_ROWS:,} rows are drawn at once"
        raise InvalidParameter(f"n={n:,} is invalid", why=why, instead=f"model.sample({_MOST_ROWS})")
    return int(n)


def allowed_by(columns: Sequence[States], given: Mapping[str, Any], table: str) -> dict[int, Pieces]:
    """What conditions allow, by the places of their columns."""
    if not isinstance(given, Mapping):
        why = "it says by column what its values may be"
        raise InvalidParameter(f"given={given!r} is invalid", why=why, instead=f"given={{{columns[0].name!r}: …}}")
    places = {each.name: place for place, each in enumerate(columns)}
    if unknown := [str(name) for name in given if name not in places]:
        raise unknown_column(unknown[0], table, list(places))
    return {places[name]: columns[places[name]].given(wanted) for name, wanted in given.items()}


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
    found = [np.empty(n, dtype=np.int64) for _ in states]
    step = min(20_000 * len(mixture.weights), _AT_ONCE)  # long runs are slow to sort
    for first in range(0, n, step):
        some, _ = _by_component(mixture, states, pieces, min(step, n - first), random, mixed=True)
        for column, codes in zip(found, some, strict=True):
            column[first : first + step] = codes
    return found


def _by_component(
    mixture: Mixture, states: Sequence[States], pieces: Sequence[Pieces], n: int, random: Random, *, mixed: bool = False
) -> tuple[list[Integers], Integers]:
    """The codes of `n` rows, component by component unless they are mixed, and the components in order."""
    sizes = systematic(mixture.weights[None, :], np.array([n]), random)[0]
    order, found = _order(n, random) if mixed else slice(None), []
    for column, each, one in zip(mixture.columns, states, pieces, strict=True):
        chosen = _shuffled(column, sizes, random)[order]
        found.append(one.at(chosen, each.number, None if one.single else random.uniform(n)))
    return found, np.repeat(np.arange(len(sizes)), sizes)


def _shuffled(column: Floats, sizes: Integers, random: Random) -> npt.NDArray[np.uint16]:
    """The state of each row in one column: in each component as many rows of each as there should be, in random order."""
    used = np.flatnonzero(sizes)
    number = column.shape[1]
    counts = systematic(column[used], sizes[used], random)
    chosen = np.repeat(np.tile(np.arange(number, dtype=np.uint32), len(used)), counts.ravel())
    mask = np.uint32((1 << (number - 1).bit_length()) - 1)
    keys = _halves(len(chosen), random) & ~mask  # random bits above the state: a sort shuffles, and moves no indices
    keys |= chosen
    for low, high in pairwise([0, *np.cumsum(sizes[used]).tolist()]):
        keys[low:high].sort()
    keys &= mask
    return keys.astype(np.uint16)


def _order(n: int, random: Random) -> Integers:
    """A random order: two sorts of 16 bits each, which numpy does in a few passes."""
    bits = _halves(n, random).view(np.uint16).reshape(n, 2)
    first = np.argsort(bits[:, 0], kind="stable")
    return np.asarray(first[np.argsort(bits[first, 1], kind="stable")])


def _halves(n: int, random: Random) -> npt.NDArray[np.uint32]:
    """32 random bits each: two for the word."""
    return random.words(-(-n // 2)).astype("<u8", copy=False).view("<u4")[:n]


def drawn_under(rules: Rules, mixture: Mixture, given: Mapping[int, Pieces], n: int, random: Random) -> list[Integers]:
    """The codes of `n` rows that obey rules and conditions: as many draws as it takes, refused where it takes too many."""
    states = list(rules.fitted)
    pieces = [given.get(place, each.pieces) for place, each in enumerate(states)]
    parts, have, tried = [drawn(mixture, states, pieces, 0, random)], 0, 0
    while have < n:
        share = max(have / tried, LEAST_ACCEPTED) if tried else 1.0
        number = min(max(int((n - have) / share * 1.02), _PILOT), _RULED)  # few rows have few others to change places with
        codes, block = _by_component(mixture, states, pieces, number, random)
        codes, obeyed = rules.settled(codes, block, given, random)
        order = _order(number, random)
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


def accepted(mixture: Mixture, rules: Rules, given: Mapping[int, Pieces]) -> float:
    """Which share of the rows drawn from a mixture can be made to obey the rules: by 10,000 rows from a fixed seed."""
    if not rules.rules:
        return 1.0
    random, pieces = Random.derived(_SEED), [given.get(place, each.pieces) for place, each in enumerate(rules.fitted)]
    codes, block = _by_component(mixture, rules.fitted, pieces, _PILOT, random)
    return float(rules.settled(codes, block, given, random)[1].mean())


def systematic(shares: Floats, totals: Integers, random: Random) -> Integers:
    """In each row of shares how often each is drawn: its expected number, rounded up or down at random, in all `totals`."""
    ends = np.cumsum(shares, axis=1)
    ends = ends / ends[:, -1:] * totals[:, None] + random.uniform(len(totals))[:, None]
    reached = np.minimum(np.floor(ends), totals[:, None]).astype(np.int64)
    reached[:, -1] = totals
    return np.diff(reached, axis=1, prepend=0)
