"""The target as it is given: one column, its declared classes, and the class of each value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import DataConversionWarning

from cloister.errors import InvalidParameter

__all__ = ["classes_of", "column_of", "places_of"]


def classes_of(declared: Any) -> npt.NDArray[Any]:
    """The declared classes; 0 and 1 where none are.

    >>> classes_of(None).tolist(), classes_of(["no", "yes"]).tolist()
    ([0, 1], ['no', 'yes'])
    """
    classes = np.array([0, 1]) if declared is None else np.asarray(list(declared))
    if classes.ndim != 1 or len(classes) < 2 or len(set(classes.tolist())) != len(classes):
        raise InvalidParameter(
            f"classes={declared!r} was refused",
            why="a model tells at least two different classes apart",
            instead="classes=[0, 1]",
        )
    return classes


def column_of(y: Any, *, rows: int) -> npt.NDArray[Any]:
    """The target as one column, and as long as there are rows."""
    if y is None:
        raise InvalidParameter(
            "y was refused",
            why="this model requires y to be passed, but the target y is None",
            instead="fit(X, y), one value a row",
        )
    column = _as_array(y)
    if column.ndim == 2 and column.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=5)
        column = column.ravel()
    if column.ndim != 1 or len(column) != rows:
        raise InvalidParameter(
            "y was refused", why="it is not one column, as long as X has rows", instead="fit(X, y), one value a row"
        )
    return column


def _as_array(y: Any) -> npt.NDArray[Any]:
    """As numpy has it; but a list of several kinds stays what it is, value by value: one text among numbers would make texts of
    them all, and so one person's label would decide whether there is an error.

    >>> _as_array([0, "x", 1]).tolist(), _as_array([0, [1]]).tolist(), _as_array([0, 1]).dtype.kind
    ([0, 'x', 1], [0, [1]], 'i')
    """
    if not isinstance(y, list | tuple):
        return np.asarray(y)
    try:
        column = np.asarray(y)
    except ValueError:  # lists of different lengths
        column = np.empty(0, dtype=np.str_)
    if column.dtype.kind in "US" and not all(isinstance(value, str) for value in y):
        column = np.empty(len(y), dtype=object)
        column[:] = y
    return column


def places_of(values: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The place of each value among the classes; −1 for one that is not there, of whatever kind it is.

    A mixed column is read value by value, and no kind of value is refused: whether it holds a text is a private fact.

    >>> places_of(np.array([7, 5, 6]), np.array([5, 7])).tolist()
    [1, 0, -1]
    >>> places_of(np.array(["a", None], dtype=object), np.array(["a"])).tolist()
    [0, -1]
    """
    if values.dtype.kind != "O" and classes.dtype.kind != "O":
        order = np.argsort(classes)
        found = order[np.minimum(np.searchsorted(classes[order], values), len(order) - 1)]
        return np.where(classes[found] == values, found, -1).astype(np.int64)
    known = {value: place for place, value in enumerate(classes.tolist())}

    def place_of(value: Any) -> int:
        try:
            return known.get(value, -1)
        except TypeError:  # a list, say: no class is one
            return -1

    return np.fromiter(map(place_of, values.tolist()), dtype=np.int64, count=len(values))
