"""Intersection: two releases about the same people, each of them safe, are laid side by side.

Ganta, Kasiviswanathan and Smith (2008) showed that no model of one table's classes survives it; differential privacy composes.
Between versions of one table, from which people go and to which others come, m-invariance (Xiao and Tao 2007) would: whoever
stays is in classes with the same sensitive values in each version. Nothing here makes such versions.
"""

import numpy as np
import numpy.typing as npt

from cloister.anonymize.attackers.target import Attack, Target
from cloister.anonymize.classes import Classes
from cloister.anonymize.models.diversity import distinct_values
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.risks.words import per_cent
from cloister.errors import InvalidParameter

_MOST_CELLS = 50_000_000


def intersection(target: Target, other: Recoded, column: str) -> Attack:
    """The share of people with one sensitive value that stands in both of their classes.

    `other` is another recoding of the same rows; rows that it lacks are its suppressed ones. The baseline is what the better of
    the two releases tells alone.

    >>> from cloister.anonymize.attackers import example
    >>> print(intersection(example(), example(by="age").recoded, "disease"))
    intersection of two releases of 'disease': 66.7 % (raw table: 66.7 %, without the table: 50.0 %)
    """
    if len(other.suppressed) != target.raw.rows:
        raise InvalidParameter(
            "The second release is invalid",
            why="it has other rows than the first",
            instead="a recoding of the same rows; those that it lacks are suppressed",
        )
    second = Classes.of(other.classes.of_row, other.classes.count, sensitive=target.sensitive, weights=target.raw.weights)
    first = target.after
    told = np.zeros(target.raw.rows, dtype=bool)
    alone = 0.0
    for classes in (first, second):
        single = distinct_values(classes.spread(column)) == 1
        mine = np.zeros(target.raw.rows, dtype=bool)
        there = classes.of_row >= 0
        mine[there] = single[classes.of_row[there]]
        alone = max(alone, float(target.weights[mine].sum() / max(target.people, 1)))
        told |= mine
    both = (first.of_row >= 0) & (second.of_row >= 0) & ~told
    pairs, place = np.unique(first.of_row[both] * max(second.count, 1) + second.of_row[both], return_inverse=True)
    few = _common(first, second, column, pairs) == 1
    told[np.flatnonzero(both)[few[place]]] = True
    success = float(target.weights[told].sum() / max(target.people, 1))
    return Attack(
        name="intersection of two releases",
        column=column,
        sentence=f"Someone who has another release about the same people, and keeps the values of {column!r} that "
        f"both give a person, is certain for {per_cent(success)} of the people; with the better of the two alone for "
        f"{per_cent(alone)}.",
        success=success,
        before=target.share(target.before, distinct_values(target.before.spread(column)) == 1),
        baseline=alone,
    )


def _common(first: Classes, second: Classes, column: str, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many values stand in both classes of each pair."""
    values = max(len(first.sensitive[column]), 1)
    keys = [classes.spread(column).owner * values + classes.spread(column).value for classes in (first, second)]
    left, right = np.divmod(pairs, max(second.count, 1))
    found = np.zeros(len(pairs), dtype=np.int64)
    # the values of the left class of each pair, looked up among those of the right one
    spread = first.spread(column)
    lengths = np.diff(spread.first)[left]
    step = max(1, _MOST_CELLS // max(int(lengths.max(initial=1)), 1))
    for start in range(0, len(pairs), step):
        some = slice(start, start + step)
        owner = np.repeat(np.arange(len(left[some])), lengths[some])
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(lengths[some]) - lengths[some], lengths[some])
        value = spread.value[spread.first[left[some]][owner] + offset]
        wanted = right[some][owner] * values + value
        at = np.minimum(np.searchsorted(keys[1], wanted), len(keys[1]) - 1)
        found[some] = np.bincount(owner, weights=keys[1][at] == wanted, minlength=len(left[some])).astype(np.int64)
    return found
