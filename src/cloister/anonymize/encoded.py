"""A table as whole numbers: each column is a list of distinct values, in order, and a code for each row.

Everything in this room works on codes, so that a text, a date and a number cost the same, and a table of ten million rows is a
few arrays. Missing values are a value of their own (the last one) unless the user says otherwise.

Few texts, and whole numbers that are near one another, become codes in less time than it takes to find their distinct values
first. What is said is what would be found by sorting them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.frames import Frame, check_columns, need_polars
from cloister.anonymize.held import in_own_words, infinite, too_long
from cloister.anonymize.readings import one_reading
from cloister.errors import InvalidParameter, check_one_of

__all__ = ["MISSING_CHOICES", "Codes", "Encoded", "EncodedColumn", "encode", "one_writing", "one_zero", "tally_of", "too_long"]


_HASH_BITS, _FEW_TEXTS, _MANY_ROWS = 16, 1 << 10, 1 << 11
"""In a column of so many rows, and no more different texts, these are told apart by so many bits of their hash."""


def few_texts(series: Any) -> tuple[Codes, list[Any]] | None:
    """The codes and distinct values of a column of few different texts; None where there are many, or too few rows to gain.

    Rows are told apart by bits of their hash, and compared with what they were taken for: where two texts share these bits,
    nothing is said.
    """
    pl = need_polars()
    if len(series) < _MANY_ROWS:
        return None
    bucket = (series.hash().to_numpy() >> np.uint64(64 - _HASH_BITS)).astype(np.intp)
    row = np.full(1 << _HASH_BITS, -1, dtype=np.int64)
    row[bucket] = np.arange(len(bucket))
    there = np.flatnonzero(row >= 0)
    if len(there) > _FEW_TEXTS:
        return None
    texts = series.gather(row[there])
    values = texts.to_list()
    # Python orders texts by code point, as polars orders them by bytes of UTF-8
    order = sorted(range(len(values)), key=lambda place: (values[place] is None, values[place]))
    codes_of = np.zeros(1 << _HASH_BITS, dtype=np.int32)
    codes_of[there[order]] = np.arange(len(order), dtype=np.int32)
    codes: Codes = codes_of[bucket]
    in_order = texts.gather(order)
    if not in_order.gather(pl.Series(codes)).equals(series, null_equal=True):
        return None
    return codes, [value for value in in_order.to_list() if value is not None]


def near_numbers(series: Any) -> tuple[Codes, list[Any]] | None:
    """The same for a column of whole numbers of which none is missing: they are looked up in a table of marks.

    >>> import polars as pl
    >>> codes, values = near_numbers(pl.Series([7, 5, 7, 9]))
    >>> codes.tolist(), values
    ([1, 0, 1, 2], [5, 7, 9])
    """
    if series.null_count() or not len(series):
        return None
    numbers = series.to_numpy()
    if numbers.dtype.kind not in "iu":
        return None
    first, last = int(numbers.min()), int(numbers.max())
    if last - first >= max(4 * len(numbers), 1 << 16) or last >= 1 << 63:
        return None
    above = numbers.astype(np.int64) - first
    marked = np.zeros(last - first + 1, dtype=bool)
    marked[above] = True
    codes: Codes = (np.cumsum(marked, dtype=np.int32) - np.int32(1))[above]
    return codes, (np.flatnonzero(marked) + first).tolist()


Codes = npt.NDArray[np.int32]

MISSING_CHOICES = ("value", "suppress", "refuse")
"""What a missing value is: a value of its own; a reason to suppress the row; a reason to refuse the table."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedColumn:
    """One column: `values[codes[row]]` is the value of a row; a missing one is None and comes last.

    >>> from cloister.anonymize.frames import read_frame
    >>> column = encode(read_frame({"age": [45, 31, None, 31]}), ["age"]).columns["age"]
    >>> column.values, column.codes.tolist(), column.kind, column.missing
    ([31, 45, None], [1, 0, 2, 0], 'integer', 2)
    """

    name: str
    codes: Codes
    values: list[Any]
    kind: str
    """integer, real, text, boolean, date."""
    tally: npt.NDArray[np.int64] | None = None
    """How many rows each value has in the whole table, where the codes are those of a part of it, or stand for several rows."""

    def __len__(self) -> int:
        """How many distinct values, the missing one included."""
        return len(self.values)

    @property
    def missing(self) -> int | None:
        """The code of a missing value."""
        return len(self.values) - 1 if self.values and self.values[-1] is None else None

    @property
    def is_number(self) -> bool:
        """Whether distances between its values mean something (numbers and dates)."""
        return self.kind in ("integer", "real", "date")

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """How many rows each value has."""
        if self.tally is not None:
            return self.tally
        return np.bincount(self.codes, minlength=len(self.values)).astype(np.int64)

    def among(self, kept: npt.NDArray[np.bool_] | npt.NDArray[np.intp], weights: npt.NDArray[np.int64] | None) -> EncodedColumn:
        """Some of the rows, with the same codes; `weights` are those of these rows."""
        codes = self.codes[kept]
        tally = None if weights is None else tally_of(codes, len(self), weights)
        return EncodedColumn(name=self.name, codes=codes, values=self.values, kind=self.kind, tally=tally)

    @cached_property
    def numbers(self) -> npt.NDArray[np.float64]:
        """The values as numbers (dates as days), NaN where missing; categories as their places in the order."""
        if not self.is_number:
            return np.arange(len(self.values), dtype=np.float64)
        return np.array([_number(value) for value in self.values], dtype=np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoded:
    """Some columns of a table as codes."""

    rows: int
    columns: Mapping[str, EncodedColumn]
    weights: npt.NDArray[np.int64] | None = None
    """How many rows of the table each row here stands for, where equal rows were counted and kept once; None: one each."""

    @property
    def total(self) -> int:
        """How many rows the table has."""
        return self.rows if self.weights is None else int(self.weights.sum())

    def take(self, kept: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Encoded:
        """Some of the rows, with the same codes."""
        weights = None if self.weights is None else self.weights[kept]
        columns = {name: column.among(kept, weights) for name, column in self.columns.items()}
        rows = int(np.count_nonzero(kept)) if kept.dtype == np.bool_ else len(kept)
        return Encoded(rows=rows, columns=columns, weights=weights)


def tally_of(codes: npt.NDArray[np.integer], values: int, weights: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int64]:
    """How many rows each code has, where a row may stand for several.

    >>> tally_of(np.array([0, 2, 2]), 3, np.array([5, 1, 1])).tolist()
    [5, 0, 2]
    """
    # sums of whole numbers in floats are exact up to 2⁵³ rows
    return np.bincount(codes, weights=weights, minlength=values).astype(np.int64)


def encode(
    frame: Frame,
    names: Sequence[str],
    *,
    missing: str = "value",
    missing_values: Sequence[Any] = (),
    told: Sequence[str] = (),
    apart: Sequence[str] = (),
) -> Encoded:
    """Encode columns; `missing_values` are values that stand for a missing one, such as "?".

    What looks alike is one value (`readings`); in the columns `told`, which are sensitive, also what some reader takes for one.
    In the columns `apart` it would be to a table's credit that values are one: there, whatever a program could tell apart is.
    """
    check_one_of(missing, "missing", MISSING_CHOICES, instead='missing="value"')
    check_columns(frame, list(names), "named")
    columns = {}
    for name in names:
        with in_own_words(f"The column {name!r} is invalid", "polars cannot order its values", "the same values as text"):
            read = partial(one_reading, told=name in told) if name not in apart else lambda values, **_: None
            columns[name] = _encode(frame, name, missing, missing_values, read)
    return Encoded(rows=frame.rows, columns=columns, weights=frame.weights)


def _encode(
    frame: Frame, name: str, missing: str, missing_values: Sequence[Any], reading: Callable[..., list[int | None] | None]
) -> EncodedColumn:
    series, kind = _plain(frame.data[name], name, missing_values)
    fast = {"text": few_texts, "integer": near_numbers}.get(kind)
    ranked = fast(series) if fast is not None else None
    if ranked is None:
        known = series.drop_nulls() if series.null_count() else series
        distinct = known.unique().sort()
        ranked = _ranks(series, distinct, kind), distinct.to_list()
    codes, values = ranked
    read = reading(values, missing=series.null_count() > 0, single=_is_single(series))
    if series.null_count():
        values.append(None)
    if read is not None:
        codes, values = _as_read(codes, values, read)
    if missing == "refuse" and None in values[-1:]:
        count = int((codes == len(values) - 1).sum())
        raise InvalidParameter(
            f"The column {name!r} is invalid",
            why=f"{count} of its values are missing",
            instead='missing="value" (a value of its own) or missing="suppress"',
        )
    tally = None if frame.weights is None else tally_of(codes, len(values), frame.weights)
    return EncodedColumn(name=name, codes=codes, values=values, kind=kind, tally=tally)


def _as_read(codes: Codes, values: list[Any], read: Sequence[int | None]) -> tuple[Codes, list[Any]]:
    """Codes and values in which what is read as another value, or as a missing one, is that."""
    kept = sorted({place for place in read if place is not None})
    number = {place: code for code, place in enumerate(kept)}
    gone = len(kept)
    new = [gone if place is None else number[place] for place in read] + [gone] * (len(values) - len(read))
    found = [values[place] for place in kept]
    return np.array(new, dtype=np.int32)[codes], [*found, None] if gone in new else found


def _is_single(series: Any) -> bool:
    return str(series.dtype) == "Float32"


def _plain(series: Any, name: str, missing_values: Sequence[Any]) -> tuple[Any, str]:
    """A column in which equal values are written alike, and all that is missing is a null; and its kind."""
    pl = need_polars()
    kind = _kind_of(series, name)
    if series.dtype.is_float():
        series = series.fill_nan(None)
        if series.is_infinite().any():
            raise infinite(name)
        series = one_zero(series)
    if series.dtype in (pl.Categorical, pl.Enum) or kind == "text":
        series = series.cast(pl.String)
    absent = _as_held(series, [value for value in missing_values if _fits(value, kind)])
    if absent:
        there = series.is_in(pl.Series(absent, dtype=series.dtype).implode())
        series = pl.select(pl.when(there).then(None).otherwise(series).alias(name)).to_series()
    return series, kind


def _as_held(series: Any, values: Sequence[Any]) -> list[Any]:
    """Values as a column holds them, as whatever kind of number or date they were written; what it cannot hold is in no row."""
    pl = need_polars()
    found = []
    for value in values:
        try:
            if isinstance(value, str) and series.dtype.is_temporal():
                value = datetime.datetime.fromisoformat(value)
            [held] = pl.Series([value]).cast(series.dtype, strict=False).to_list()
        except (OverflowError, ValueError, pl.exceptions.PolarsError):  # too long, or half of a character
            continue
        same = isinstance(value, str) or held == value or series.dtype.is_float()
        if held is not None and (same or (isinstance(held, datetime.date) and _number(held) == _number(value))):
            found.append(held)
    return found


def one_zero(series: Any) -> Any:
    """0.0 for −0.0, which a file writes differently (polars takes the sum with 0.0 for the column itself).

    >>> import polars as pl
    >>> one_zero(pl.Series([-0.0])).to_list()
    [0.0]
    """
    pl = need_polars()
    if not series.dtype.is_float():
        return series
    return pl.select(pl.when(series == 0).then(0.0).otherwise(series).alias(series.name)).to_series().cast(series.dtype)


def one_writing(series: Any, missing_values: Sequence[Any] = (), *, told: bool = False) -> Any:
    """A column whose values are published as they are: what is read as one value (`readings`) is written in one way.

    NaN, a null, an empty text and what stands for a missing value are one value to anyone who counts classes, and so are 0.0 and
    −0.0, or "gout" and "gout" with a character that has no glyph; a program tells them apart. What is written in one way
    throughout stays as it is.

    >>> import polars as pl
    >>> one_writing(pl.Series("pay", [-0.0, 0.0, float("nan"), None], strict=False)).to_list()
    [0.0, 0.0, None, None]
    >>> one_writing(pl.Series("work", ["?", "State", "?"]), ["?"]).to_list()
    ['?', 'State', '?']
    >>> one_writing(pl.Series("ill", ["gout", "gout ", "", None])).to_list()
    ['gout', 'gout', None, None]
    """
    pl = need_polars()
    series = one_zero(series)
    plain, kind = _plain(series, series.name, missing_values)
    absent = plain.is_null()
    written = series
    if kind == "text" or series.dtype.is_float() or (told and kind == "integer"):
        distinct = plain.drop_nulls().unique().sort()
        values = distinct.to_list()
        read = one_reading(values, told=told, missing=bool(absent.any()), single=_is_single(series))
        if read is not None:
            changed = [place for place, as_ in enumerate(read) if as_ != place]
            gone = {values[place] for place in changed if read[place] is None}
            if absent.any() or len(gone) > 1:
                absent = absent | plain.is_in(pl.Series(sorted(gone), dtype=plain.dtype).implode()).fill_null(False)
            other = [(values[place], values[as_]) for place in changed if (as_ := read[place]) is not None]
            if other:
                old, new = (pl.Series(each, dtype=plain.dtype) for each in zip(*other, strict=True))
                base = series.cast(plain.dtype) if plain.dtype != series.dtype else series
                written = base.replace(old, new).cast(series.dtype)
    if series.filter(absent).n_unique() < 2:
        return written
    return pl.select(pl.when(absent).then(None).otherwise(written).alias(series.name)).to_series().cast(series.dtype)


def _ranks(series: Any, distinct: Any, kind: str) -> Codes:
    """The place of each value among the distinct ones, which are sorted; a missing one comes after all of them.

    Texts are looked up by their hash and whole numbers near one another in a table of marks: ten times as fast as ranking.
    """
    pl = need_polars()
    if not len(distinct):
        return np.zeros(len(series), dtype=np.int32)
    ends = distinct.to_physical()
    if kind == "text":
        ranks = series.cast(pl.Enum(distinct)).to_physical()
    elif kind in ("integer", "date") and int(ends[-1]) - int(ends[0]) < max(4 * len(series), 1 << 16):
        first, span = ends[0], int(ends[-1]) - int(ends[0]) + 1
        marked = np.zeros(span, dtype=np.int32)
        marked[_above(distinct, first)] = 1
        # filled as whole numbers: a moment of nanoseconds is filled with one of microseconds
        codes: Codes = (np.cumsum(marked, dtype=np.int32) - np.int32(1))[_above(series.to_physical().fill_null(first), first)]
        codes[series.is_null().to_numpy()] = len(distinct)
        return codes
    else:
        ranks = series.rank("dense").cast(pl.Int64) - 1
    return np.asarray(ranks.fill_null(len(distinct)).cast(pl.Int32).to_numpy(), dtype=np.int32)


def _above(series: Any, first: int) -> npt.NDArray[np.int64]:
    pl = need_polars()
    whole = series.to_physical()
    above = whole - first if whole.dtype == pl.UInt64 else whole.cast(pl.Int64) - first
    return np.asarray(above.cast(pl.Int64).to_numpy(), dtype=np.int64)


def _kind_of(series: Any, name: str) -> str:
    pl = need_polars()
    kind = series.dtype
    if str(kind) in ("Int128", "UInt128"):
        raise too_long(name)
    if kind.is_integer():
        return "integer"
    if kind.is_float() or kind.is_decimal():
        return "real"
    if kind == pl.Boolean:
        return "boolean"
    if kind in (pl.Date, pl.Datetime):
        return "date"
    if kind in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        return "text"
    raise InvalidParameter(
        f"The column {name!r} is invalid", why=f"it holds values of the type {kind}", instead="numbers, texts, dates or booleans"
    )


def _fits(value: Any, kind: str) -> bool:
    if isinstance(value, str):
        return kind != "boolean"  # numbers and days may be typed
    if kind in ("integer", "real"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return kind == "date" and isinstance(value, datetime.date)


def _number(value: Any) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, datetime.datetime):
        return value.timestamp() / 86400 if value.tzinfo else (value - datetime.datetime(1970, 1, 1)).total_seconds() / 86400
    if isinstance(value, datetime.date):
        return float(value.toordinal() - datetime.date(1970, 1, 1).toordinal())
    return float(value)
