"""Running a mechanism many times, and turning whatever it returns into an array of numbers."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.errors import InvalidParameter

if TYPE_CHECKING:
    from cloister.noise import Random

Array: TypeAlias = NDArray[Any]


Runner: TypeAlias = Callable[[Any, int, "Random"], Any]
"""`(data, n, random) -> n outputs`, each from a run of its own: numbers, or rows of them."""


def runner_of(mechanism: object) -> Runner:
    """How to run a mechanism n times.

    A callable is called. A mechanism with `.sample(n, random=…)` adds that noise to the value; one with `.sample(n, value,
    random=…)` draws for the value; one with `.release(value, random=…)` only is asked n times, which takes a while.

    >>> runner_of(lambda data, n, random: np.full(n, data))(3, 2, None)
    array([3, 3])
    """
    if callable(mechanism):
        return mechanism
    sample, release = getattr(mechanism, "sample", None), getattr(mechanism, "release", None)
    needed = _needed(sample) if sample is not None else 0
    if sample is not None and needed > 1:
        return lambda value, n, random: sample(n, value, random=random)
    if sample is not None and needed == 1:
        return lambda value, n, random: _with_noise(sample, value, n, random)
    if release is not None:
        return lambda value, n, random: [_whole(release(value, random=random)) for _ in range(n)]
    raise InvalidParameter(
        f"mechanism of type {type(mechanism).__name__} is invalid",
        why="it can't be called, and has neither .sample nor .release",
        instead="audit(lambda data, n, random: …, left, right)",
    )


def outputs(run: Runner, data: Any, n: int, random: Random, labels: dict[int, str]) -> Array:
    """n outputs as numbers: one dimension, or one row of numbers for each run.

    Texts, tuples and other objects become stable 63-bit codes, one compared whole with another; `labels` is told what each means.

    >>> labels = {}
    >>> outputs(lambda data, n, random: ["yes", "no"], None, 2, None, labels).dtype, sorted(labels.values())
    (dtype('int64'), ["'no'", "'yes'"])
    >>> outputs(lambda data, n, random: [True, False], None, 2, None, labels)
    array([1, 0])
    """
    array = _as_array(run(data, n, random), labels)
    if array.ndim == 0 or len(array) != n:
        raise InvalidParameter(
            "What the mechanism returned is invalid",
            why=f"{n} runs were asked for, and something else than {n} outputs came back",
            instead="def mechanism(data, n, random): return value + noise.sample(n, random=random)",
        )
    return array if array.ndim == 1 else array.reshape(n, -1)


def _needed(sample: Callable[..., Any]) -> int:
    """How many arguments it asks for: none (one draw), how many (noise), or how many and for what (a choice)."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = inspect.signature(sample).parameters.values()
    return sum(each.kind in positional and each.default is inspect.Parameter.empty for each in given)


def _whole(answer: Any) -> Any:
    """A list may have another length in each run, so it is compared whole, as a tuple is."""
    return tuple(answer) if isinstance(answer, list) else answer


def _with_noise(sample: Callable[..., Any], value: Any, n: int, random: Random) -> Array:
    center = np.asarray(value)
    rows = center.ndim > 0 and np.asarray(sample(1, random=random)).ndim > 1
    noise = np.asarray(sample(n if rows else n * max(1, center.size), random=random))
    return np.asarray(noise.reshape((n, *center.shape)) + center)


def _as_array(raw: Any, labels: dict[int, str]) -> Array:
    try:
        array = _objects(raw) if isinstance(raw, list) and raw and isinstance(raw[0], tuple) else np.asarray(raw)
    except ValueError:  # rows of different lengths
        array = _objects(raw)
    if array.dtype == bool:
        return array.astype(np.int64)
    if array.dtype.kind == "i":
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "u":
        return array.astype(np.int64) if array.size == 0 or array.max() < 2**63 else array.astype(np.float64)
    if array.dtype.kind == "f":
        return array.astype(np.float64, copy=False)
    return _numbers_of_objects(array, labels)


def _objects(raw: Sequence[Any]) -> Array:
    array = np.empty(len(raw), dtype=object)
    array[:] = [tuple(row) for row in raw]
    return array


def _numbers_of_objects(array: Array, labels: dict[int, str]) -> Array:
    kinds = {type(each) for each in array.ravel().tolist()}
    if kinds <= {int, bool}:
        try:
            return array.astype(np.int64)
        except OverflowError:
            return array.astype(np.float64)
    if kinds <= {int, bool, float, Fraction, Decimal, type(None)}:
        return array.astype(np.float64)
    codes = {each: _code(each) for each in set(array.ravel().tolist())}
    labels.update({code: repr(each) for each, code in codes.items()})
    return np.array([codes[each] for each in array.ravel().tolist()], dtype=np.int64).reshape(array.shape)


def _code(value: object) -> int:
    digest = hashlib.blake2b(repr(value).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
