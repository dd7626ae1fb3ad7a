"""Does a fitted model hold a row that it was trained on?

A kernel machine is its support vectors and a nearest-neighbour model is its rows: whoever publishes one publishes people. This
looks through everything that a model holds, at any depth, for an array that holds a training row, also where it was moved and
stretched feature by feature in a way that is told. What it can't see: a row that was rotated, mixed or compressed; there the
canary audit is the judge.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import InvalidParameter, numbers_alone

_DEEP = 12
_CHUNK = 1 << 20
_SAME = 1e-9


def holds_rows(model: Any, X: Any, *, images: tuple[Any, ...] = ()) -> dict[str, int]:
    """Where a model holds rows of X, and how many different ones; empty where it holds none.

    X should be of continuous features, so that a row is not met by chance, and of two features at least. `images` are other
    forms of the same rows: scaled to [0, 1], say, as a model may keep them.

    >>> class Neighbours:
    ...     def __init__(self, X): self.kept, self.number = {"rows": [X * 2.0, X[:2]]}, 3
    >>> X = np.array([[0.31, 0.72], [0.15, 0.94], [0.58, 0.26]])
    >>> holds_rows(Neighbours(X), X)
    {"kept['rows'][1]": 2}
    >>> holds_rows(Neighbours(X), X, images=(X * 2.0,))
    {"kept['rows'][0]": 3, "kept['rows'][1]": 2}
    """
    rows = _matrix(X)
    forms = [rows, *(_matrix(each) for each in images)]
    if any(form.shape != rows.shape for form in forms):
        raise InvalidParameter("images= is invalid", why="each is another form of all rows", instead="images=(scaled,)")
    found: dict[str, int] = {}
    for where, array in _arrays(model, "", {}, 0):
        held = np.zeros(len(rows), dtype=bool)
        for form in forms:
            held |= _held(array, form)
        if held.any():
            found[where.removeprefix(".")] = int(held.sum())
    return found


def _matrix(X: Any) -> NDArray[np.float64]:
    with numbers_alone("X"):
        rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < 2 or not np.isfinite(rows).all():
        raise InvalidParameter(
            "The rows are invalid",
            why="one number alone is met by chance; a row of two features or more, all finite, is not",
            instead="holds_rows(model, X) with X of two or more columns",
        )
    return rows


def _held(array: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows are in the array: along its last axis, along its first, or in a flat list of rows one after another."""
    width = rows.shape[1]
    held = np.zeros(len(rows), dtype=bool)
    tables = []
    if array.ndim and array.shape[-1] == width:
        tables.append(array.reshape(-1, width))
    if array.ndim > 1 and array.shape[0] == width:
        tables.append(array.reshape(width, -1).T)
    if array.ndim == 1 and array.size > width and array.size % width == 0:
        tables.append(array.reshape(-1, width))
    size = np.abs(rows).max(initial=1.0)
    for table in tables:
        step = max(1, _CHUNK // max(1, len(rows) * width))
        for start in range(0, len(table), step):
            distance = np.abs(table[start : start + step, None, :] - rows[None, :, :]).max(axis=2)
            held |= (distance <= _SAME * size).any(axis=0)
    return held


def _arrays(value: Any, where: str, seen: dict[int, Any], depth: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Every array of numbers within a value, with the way to it."""
    if depth > _DEEP or id(value) in seen or value is None or isinstance(value, str | bytes | bool | int | float | type):
        return
    seen[id(value)] = value  # kept, so that no later object gets its number
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        yield where, value.astype(np.float64)
        return
    if hasattr(value, "toarray"):  # a sparse matrix
        yield where, np.asarray(value.toarray(), dtype=np.float64)
        return
    if isinstance(value, Mapping):
        parts = [(f"{where}[{key!r}]", value[key]) for key in value]
    elif isinstance(value, list | tuple | set | frozenset) or (isinstance(value, np.ndarray) and value.dtype == object):
        items = value.ravel().tolist() if isinstance(value, np.ndarray) else list(value)
        yield from _list_of_numbers(items, where)
        parts = [(f"{where}[{place}]", item) for place, item in enumerate(items)]
    else:
        parts = [(f"{where}.{name}", part) for name, part in _parts(value)]
    for way, part in parts:
        yield from _arrays(part, way, seen, depth + 1)


def _list_of_numbers(items: list[Any], where: str) -> Iterator[tuple[str, NDArray[np.float64]]]:
    try:
        array = np.asarray(items)
    except ValueError:  # lists of different lengths: each is looked at by itself
        return
    if array.dtype.kind in "biuf" and array.size:
        yield where, array.astype(np.float64)


def _parts(value: Any) -> list[tuple[str, Any]]:
    """The attributes of an object; for one in C, what it hands over when it is pickled."""
    held = getattr(value, "__dict__", None)
    if held:
        return list(held.items())
    state = getattr(value, "__getstate__", None)
    if callable(state) and not callable(value):
        try:
            handed = state()
        except (TypeError, ValueError, AttributeError):
            return []
        return list(handed.items()) if isinstance(handed, dict) else [("state", handed)]
    return []
