"""Which features are the values of one category, 0 or 1 each: as they were declared, or as they are called."""

from collections.abc import Sequence
from typing import Any

from cloister.errors import InvalidParameter
from cloister.learn.frame.bounds import Box


def grouped(features: int, groups: Any, names: Sequence[str] = (), box: Box | None = None) -> tuple[tuple[int, ...], ...]:
    """The features of each column: groups as they were declared, all others each by itself.

    Declared are lists of places, or the names of categories, whose features are called `name=value` or `name_value`. Where
    nothing is declared, features between 0 and 1 that are called `name=value`, as a table's are, tell their groups by name.

    >>> grouped(5, [[1, 2], [4, 3]])
    ((0,), (1, 2), (4, 3))
    >>> grouped(3, ["sex"], ["age", "sex_F", "sex_M"])
    ((0,), (1, 2))
    >>> import numpy as np
    >>> grouped(3, None, ["age", "sex=F", "sex=M"], Box(low=np.zeros(3), high=np.array([90.0, 1.0, 1.0])))
    ((0,), (1, 2))
    """
    if groups is None and box is not None:
        groups = told_by_names(names, box)
    elif isinstance(groups, list | tuple) and groups and all(isinstance(each, str) for each in groups):
        groups = [_category(name, names) for name in groups]
    declared = _declared(groups)
    taken = [at for group in declared for at in group]
    if len(set(taken)) != len(taken) or any(not 0 <= at < features for at in taken):
        raise InvalidParameter(
            "groups is invalid",
            why=f"each group is the places of one category's features, 0 to {features - 1}, and no place is named twice",
            instead="groups=[[1, 2, 3]]",
        )
    first = {group[0]: group for group in declared if group}
    return tuple(first.get(at, (at,)) for at in range(features) if at in first or at not in taken)


def _category(name: str, names: Sequence[str]) -> list[int]:
    found = [at for at, each in enumerate(names) if each.startswith((f"{name}=", f"{name}_"))]
    if not found:
        raise InvalidParameter(
            f"groups={[name]!r} is invalid",
            why=f"no feature is called {name}=… or {name}_…: names are those of a frame's columns",
            instead="groups=[[1, 2, 3]]",
        )
    return found


def told_by_names(names: Sequence[str], box: Box) -> list[list[int]]:
    """The features between 0 and 1 that are called `name=value`, by name."""
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        if "=" in name and box.low[at] == 0 and box.high[at] == 1:
            found.setdefault(name.partition("=")[0], []).append(at)
    return list(found.values())


_PREFIXES = 8
"""Of a name, how many beginnings are looked at."""


def alike_in_name(names: Sequence[str], box: Box) -> list[tuple[int, ...]]:
    """Features between 0 and 1 that may be one category by their names, alike up to an underscore: `sex_F` and `sex_M` of one
    that was written out, `ill_heart` and `ill_lung` of two things that somebody may both have. By each beginning of a name,
    so one feature may be in several of them.

    >>> import numpy as np
    >>> alike_in_name(["age", "sex_F", "sex_M", "sex"], Box(low=np.zeros(4), high=np.array([90.0, 1.0, 1.0, 1.0])))
    [(1, 2)]
    """
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        parts = name.split("_")
        if "=" not in name and box.low[at] == 0 and box.high[at] == 1:
            for stop in range(1, min(len(parts), _PREFIXES + 1)):
                found.setdefault("_".join(parts[:stop]), []).append(at)
    return list(dict.fromkeys(tuple(each) for each in found.values() if len(each) > 1))


def apart(groups: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Of groups that overlap the first.

    >>> apart([(0, 1, 2), (1, 2), (3, 4)])
    [[0, 1, 2], [3, 4]]
    """
    found, taken = list[list[int]](), set[int]()
    for each in groups:
        if not taken & set(each):
            found.append(list(each))
            taken |= set(each)
    return found


def _declared(groups: Any) -> Sequence[tuple[int, ...]]:
    if groups is None:
        return []
    try:
        return [tuple(int(at) for at in group) for group in groups]
    except (TypeError, ValueError):
        raise InvalidParameter(
            "groups is invalid", why="it is a list of lists of places", instead="groups=[[1, 2, 3], [4, 5]]"
        ) from None
