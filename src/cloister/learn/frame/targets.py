"""The target as it is given: one column, its declared classes, and the class of each value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import DataConversionWarning

from cloister.errors import InvalidParameter
from cloister.learn.frame.reading import as_listed, number_of


def classes_of(declared: Any) -> npt.NDArray[Any]:
    """The declared classes; 0 and 1 where none are.

    >>> classes_of(None).tolist(), classes_of(["no", "yes"]).tolist()
    ([0, 1], ['no', 'yes'])
    """
    classes = np.array([0, 1]) if declared is None else np.asarray(list(declared))
    if classes.ndim != 1 or len(classes) < 2 or len(set(classes.tolist())) != len(classes):
        raise InvalidParameter(
            f"classes={declared!r} is invalid",
            why="a model tells at least two different classes apart",
            instead="classes=[0, 1]",
        )
    return classes


def column_of(y: Any, *, rows: int) -> npt.NDArray[Any]:
    """The target as one column, and as long as there are rows."""
    if y is None:
        raise InvalidParameter(
            "y is invalid",
            why="this model requires y to be passed, but the target y is None",
            instead="fit(X, y), one value a row",
        )
    try:
        # a list of lists of one each, or nearly: which of the two it is must not follow from one person's label
        column = as_listed([_only(value) for value in y] if isinstance(y, list | tuple) else y)
    except Exception:  # whatever stands there: its own words may show values
        raise InvalidParameter("y is invalid", why="it is not one column", instead="fit(X, y), one value a row") from None
    if column.ndim == 2 and column.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=5)
        column = column.ravel()
    if column.ndim != 1 or len(column) != rows:
        raise InvalidParameter(
            "y is invalid", why="it is not one column, as long as X has rows", instead="fit(X, y), one value a row"
        )
    return column


def _only(value: Any) -> Any:
    """What stands alone in a list; anything else as it is.

    >>> _only([1]), _only([1, 2]), _only("x")
    (1, [1, 2], 'x')
    """
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def places_of(values: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The place of each value among the classes; −1 for one that is not there, of whatever kind it is.

    A mixed column is read value by value, and no kind of value is refused: whether it holds a text is a private fact. Where
    classes are numbers a text that spells one is that class, since one text among numbers may have made texts of all.

    >>> places_of(np.array([7, 5, 6]), np.array([5, 7])).tolist(), places_of(np.array(["1", "x"]), np.array([0, 1])).tolist()
    ([1, 0, -1], [1, -1])
    >>> places_of(np.array(["a", None], dtype=object), np.array(["a"])).tolist()
    [0, -1]
    """
    kinds = [each.dtype.kind in "biuf" for each in (values, classes)]
    if all(kinds) or (values.dtype.kind == classes.dtype.kind == "U"):
        order = np.argsort(classes)
        found = order[np.minimum(np.searchsorted(classes[order], values), len(order) - 1)]
        return np.where(classes[found] == values, found, -1).astype(np.int64)
    known = {value: place for place, value in enumerate(classes.tolist())}
    spelt = kinds[1]

    def place_of(value: Any) -> int:
        try:
            place = known.get(value, -1)
        except Exception:  # a list, say, or an object of somebody's own making: no class is one
            return -1
        return known.get(number_of(value), -1) if place < 0 and spelt and isinstance(value, str | bytes) else place

    return np.fromiter(map(place_of, values.tolist()), dtype=np.int64, count=len(values))
