"""Skewness and similarity: a class may have many values, and tell a lot all the same.

Li, Li and Venkatasubramanian (2007) broke ℓ-diversity with these two.
"""

import numpy as np

from cloister.anonymize.attackers.target import Attack, Target
from cloister.anonymize.classes import Classes
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.risks.words import per_cent


def skewness(target: Target, column: str, times: float = 2.0) -> Attack:
    """The share of people whose own value is at least `times` as likely in their class as in the whole table.

    >>> from cloister.anonymize.attackers import example
    >>> skewness(example(), "disease").success > 0.3
    True
    """
    after, most = _much_more_likely(target, target.after, column, times)
    before, _ = _much_more_likely(target, target.before, column, times)
    largest = f"; at the most a suspicion grows from {per_cent(most[0])} to {per_cent(most[1])}" if most else ""
    return Attack(
        name="skewness",
        column=column,
        sentence=f"For {per_cent(after)} of the people the class makes their own {column!r} at least {times:g} times as likely "
        f"as in the whole table{largest}; in the raw table for {per_cent(before)}.",
        success=after,
        before=before,
        baseline=0.0,
    )


def similarity(target: Target, column: str, within: float = 0.1) -> Attack | None:
    """The share of people whose class has values that are all alike: numbers within a tenth of the column's range, or categories
    that a hierarchy joins on its first level. None for categories without a hierarchy: then nothing says what is alike.

    >>> from cloister.anonymize.attackers import example
    >>> similarity(example(), "disease") is None
    True
    """
    spread = target.after.spread(column)
    ladder = target.hierarchies.get(column)
    if not spread.column.is_number and ladder is None:
        return None
    after = target.share(target.after, _alike(target.after, column, ladder, within))
    before = target.share(target.before, _alike(target.before, column, ladder, within))
    what = "are of one kind" if ladder is not None else f"lie within {per_cent(within)} of the whole range"
    return Attack(
        name="similarity",
        column=column,
        sentence=f"For {per_cent(after)} of the people the values of {column!r} in their class {what}; in the "
        f"raw table for {per_cent(before)}.",
        success=after,
        before=before,
        baseline=float(_whole(target, column, ladder)),
    )


def _much_more_likely(target: Target, classes: Classes, column: str, times: float) -> tuple[float, tuple[float, float] | None]:
    if not classes.count:
        return 0.0, None
    spread = classes.spread(column)
    expected = spread.overall[spread.value] / max(int(spread.overall.sum()), 1)
    more = spread.shares >= times * expected
    largest = int(np.argmax(spread.shares - expected))
    most = (float(expected[largest]), float(spread.shares[largest]))
    return float(spread.count[more].sum() / target.people), most if most[1] > most[0] else None


def _alike(classes: Classes, column: str, ladder: Ladder | None, within: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    spread = classes.spread(column)
    if not classes.count:
        return np.zeros(0, dtype=bool)
    if ladder is not None:
        kinds = ladder.codes[1 if ladder.height > 2 else 0][spread.value]
        return np.asarray(
            np.maximum.reduceat(kinds, spread.first[:-1]) == np.minimum.reduceat(kinds, spread.first[:-1]), dtype=np.bool_
        )
    numbers = spread.column.numbers[spread.value]
    reach = spread.column.numbers[~np.isnan(spread.column.numbers)]
    width = float(reach.max() - reach.min()) if len(reach) else 0.0
    # a missing value is not alike to any number
    top, bottom = np.maximum.reduceat(numbers, spread.first[:-1]), np.minimum.reduceat(numbers, spread.first[:-1])
    return np.asarray(top - bottom <= within * width, dtype=np.bool_)


def _whole(target: Target, column: str, ladder: Ladder | None) -> bool:
    """Whether the values of everybody are alike anyway."""
    present = np.flatnonzero(target.sensitive[column].counts)
    if ladder is not None:
        return len(np.unique(ladder.codes[1 if ladder.height > 2 else 0][present])) <= 1
    return len(present) <= 1
