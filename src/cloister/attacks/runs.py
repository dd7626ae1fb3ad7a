"""Running a mechanism many times, and turning whatever it returns into an array of numbers."""

import hashlib
import inspect
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.errors import InvalidParameter
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


class Scheme(NamedTuple):
    """How outputs become numbers: a function of each output by itself, fixed on those that are set aside for learning. What does
    not fit it later is "no such number"; were the scheme read off each batch of runs, one output would change what the others
    are taken for, and counts of them would not be binomial."""

    kind: Literal["int", "float", "wide", "code"]
    """Whole numbers of 64 bits; doubles; numbers that no double holds, as the nearest one and a second number; codes."""
    width: int = 0
    """Of rows; 0: no rows."""


def raw_outputs(run: Runner, data: Any, n: int, random: Random) -> Array | list[Any]:
    """n outputs as they came: an array of plain numbers, or a list."""
    raw: Any = run(data, n, random)
    plain = isinstance(raw, np.ndarray) and not isinstance(raw, np.ma.MaskedArray) and raw.dtype.kind in "biuf"
    if not plain or raw.dtype.itemsize > 8:
        raw = [_whole(_plain(each)) for each in _listed(raw)]
    else:
        raw = raw.reshape(-1) if raw.ndim < 2 else raw.reshape(len(raw), math.prod(raw.shape[1:]))
    if len(raw) != n or (isinstance(raw, np.ndarray) and not raw.size):
        raise InvalidParameter(
            "What the mechanism returned is invalid",
            why=f"{n} runs were asked for, and something else than {n} outputs came back",
            instead="def mechanism(data, n, random): return value + noise.sample(n, random=random)",
        )
    found: Array | list[Any] = raw
    return found


def scheme_of(*raws: Array | list[Any]) -> Scheme:
    """The scheme that holds all of these.

    >>> scheme_of([1, True], [2.5]), scheme_of([2**70]), scheme_of([1, "x"]), scheme_of(np.zeros((3, 2)))
    (Scheme(kind='float', width=0), Scheme(kind='wide', width=0), Scheme(kind='code', width=0), Scheme(kind='float', width=2))
    """
    kinds, widths = set[str](), set[int]()
    for raw in raws:
        if isinstance(raw, np.ndarray):
            widths.add(raw.shape[1] if raw.ndim > 1 else 0)
            ends = () if raw.dtype.kind == "f" else (int(raw.min()), int(raw.max()))
            kinds |= {_kind_of(end) for end in ends} or {"float"}
        else:
            rows = {len(each) if isinstance(each, _Row) else 0 for each in raw}
            widths |= rows
            kinds |= {_kind_of(cell) for each in raw for cell in (each if isinstance(each, _Row) else (each,))}
    if "code" in kinds or len(widths) > 1:
        return Scheme("code")
    if "long" in kinds and kinds & {"float", "wide"}:
        kinds.add("wide")
    width = widths.pop() if widths else 0
    return Scheme("wide" if "wide" in kinds else "float" if "float" in kinds else "int", width)


def encoded(raw: Array | list[Any], scheme: Scheme, labels: dict[int, str]) -> Array:
    """Outputs as numbers under a scheme: one dimension, or one row of numbers for each run. `labels` is told what a code means.

    >>> labels = {}
    >>> encoded(["yes", "no"], Scheme("code"), labels).dtype, sorted(labels.values())
    (dtype('int64'), ["'no'", "'yes'"])
    >>> encoded([1, "x"], Scheme("float"), {}), encoded([2**70 + 1], Scheme("wide"), {})
    (array([ 1., nan]), array([[1.18059162e+21, 1.00000000e+00]]))
    """
    kind, width = scheme
    plain = isinstance(raw, np.ndarray) and (raw.shape[1] if raw.ndim > 1 else 0) == width
    if isinstance(raw, np.ndarray) and plain and (kind == "float" or (kind == "int" and np.can_cast(raw.dtype, np.int64))):
        return raw.astype(np.float64 if kind == "float" else np.int64, copy=False)
    listed = raw.tolist() if isinstance(raw, np.ndarray) else raw
    if kind == "code":
        codes = [_code(each) for each in listed]
        labels.update({code: repr(each) for code, each in dict(zip(codes, listed, strict=True)).items()})
        return np.array(codes, dtype=np.int64)
    number = {"int": _as_int, "float": _as_float, "wide": _as_wide}[kind]
    if width:
        listed = [each if isinstance(each, list | tuple) and len(each) == width else [None] * width for each in listed]
        found = np.array([[number(cell) for cell in each] for each in listed], dtype=np.int64 if kind == "int" else np.float64)
        return found.reshape(len(listed), -1)
    return np.array([number(each) for each in listed], dtype=np.int64 if kind == "int" else np.float64)


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


class _Row(tuple[Any, ...]):
    """A row of cells: a list or an array in each run. A tuple is one output, compared whole."""


def _listed(raw: Any) -> list[Any]:
    if (isinstance(raw, np.ndarray) and raw.ndim == 0) or not hasattr(raw, "__iter__") or isinstance(raw, str | bytes):
        return []
    return [_Row(map(_plain, np.asarray(each, dtype=object).ravel().tolist())) if _is_row(each) else each for each in raw]


def _plain(each: Any) -> Any:
    return each.item() if isinstance(each, np.generic) and not isinstance(each, np.longdouble | np.clongdouble) else each


def _is_row(each: Any) -> bool:
    if isinstance(each, np.ndarray):
        return each.ndim > 0
    return isinstance(each, list) and len(each) > 0 and not any(isinstance(cell, list | tuple | np.ndarray) for cell in each)


def _kind_of(cell: Any) -> str:
    """Of one value; `None` is a number that is missing."""
    if isinstance(cell, int):
        return "int" if abs(cell) <= 2**53 else "long" if -(2**63) < cell < 2**63 else "wide"
    if cell is None or (isinstance(cell, float) and not isinstance(cell, np.longdouble)):
        return "float"
    if isinstance(cell, Fraction | Decimal | np.floating):
        return "float" if _exact(cell) == _as_float(cell) or _exact(cell) is None else "wide"
    return "code"


def _exact(cell: Any) -> Fraction | None:
    """The very number; None where it is none, or not finite."""
    try:
        return Fraction(*cell.as_integer_ratio()) if hasattr(cell, "as_integer_ratio") else None
    except (ValueError, OverflowError):
        return None


def _as_int(cell: Any) -> int:
    exact = cell if type(cell) is int else _exact(cell)
    return int(exact) if exact is not None and exact.denominator == 1 and -(2**63) < exact < 2**63 else -(2**63)


def _as_float(cell: Any) -> float:
    try:
        return float(cell) if isinstance(cell, int | float | Fraction | Decimal | np.number) else math.nan
    except (OverflowError, ValueError):
        exact = _exact(cell)
        return math.nan if exact is None else math.copysign(math.inf, exact)


def _as_wide(cell: Any) -> tuple[float, float]:
    """The nearest double, and what tells numbers apart that share it: the lowest 53 bits of a whole number, else of its code."""
    exact = _exact(cell)
    if exact is None:
        return _as_float(cell), -1.0
    return _as_float(cell), float((int(exact) if exact.denominator == 1 else _code(exact)) % 2**53)


def _code(value: object) -> int:
    digest = hashlib.blake2b(_text(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _text(value: object) -> str:
    """A text that equal values share: of a set and of a dict, in whatever order they hold what they hold."""
    if isinstance(value, set | frozenset):
        return f"set {sorted(map(_text, value))}"
    if isinstance(value, dict):
        return f"dict {sorted((_text(key), _text(each)) for key, each in value.items())}"
    if isinstance(value, list | tuple):
        return f"row {[*map(_text, value)]}"
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {[*map(_text, value.ravel().tolist())]}"
    return f"{type(value).__name__} {value!r}"
