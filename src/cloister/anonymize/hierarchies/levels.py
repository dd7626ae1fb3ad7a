"""What the rules have in common: a missing value keeps to itself, the top joins everything."""

from collections.abc import Sequence
from typing import Any

from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.hierarchies.ladder import MISSING, STAR, Ladder


def finished(
    column: EncodedColumn,
    levels: Sequence[Sequence[Any]],
    leaf_levels: Sequence[Sequence[Any]] | None = None,
    *,
    sparse: bool = False,
) -> Ladder:
    """A ladder from the labels of the values that are not missing, level by level from 1 on.

    The missing value is put in, and the top that says nothing is put on where it lacks. With `sparse`, a level that joins nothing
    is left out: it would only make the search longer.
    """
    levels = [list(level) for level in levels]
    known = len(column) - (column.missing is not None)
    leaves = (
        [list(level) for level in leaf_levels] if leaf_levels is not None else [list(column.values[:known]), *map(list, levels)]
    )
    below = known
    kept: list[int] = []
    for number, level in enumerate(levels):
        groups = len(set(level))
        if not sparse or 1 < groups < below:
            kept.append(number)
            below = groups
    chosen = [levels[number] for number in kept]
    chosen_leaves = [leaves[0], *(leaves[number + 1] for number in kept)]
    if column.missing is not None:
        chosen = [[*level, MISSING] for level in chosen]
        chosen_leaves = [[*chosen_leaves[0], None], *([*level, MISSING] for level in chosen_leaves[1:])]
    if len(column) > 1 and set(chosen_leaves[-1]) != {STAR}:
        chosen.append([STAR] * len(column))
        chosen_leaves.append([STAR] * len(chosen_leaves[0]))
    return Ladder.of(column.name, column.values, chosen, leaf_levels=chosen_leaves)


def text_of(value: Any) -> str:
    """A value as a hierarchy's file writes it: whole numbers without a point.

    >>> text_of(39.0), text_of(True), text_of("a b")
    ('39', 'true', 'a b')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
