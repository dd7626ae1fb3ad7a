"""Columns of a frame as arrays, and the frame again with some of them replaced: what every operation here does to a table.

A column is read as numbers (missing ones are NaN) or as codes into its sorted values; it is written back in the type that
it had wherever the new values fit that type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import EncodedColumn, encode, one_writing
from cloister.anonymize.frames import Frame, check_columns, kept_index, need_polars, read_frame, secret_order
from cloister.anonymize.held import infinite
from cloister.errors import InvalidParameter, check_one_of
from cloister.noise import Random, default_random

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_EXACT = 2.0**53

MISSING = ("refuse", "keep")
"""What most operations do with a missing value: refuse the table, or leave the cell empty as it was."""


@dataclass(frozen=True, eq=False)
class Columns:
    """A frame of any kind that the room reads.

    >>> columns = Columns.of({"age": [30, None], "town": ["Ghent", "Bruges"]})
    >>> columns.numbers("age").tolist(), columns.coded("town").values, columns.whole("age"), columns.rows
    ([30.0, nan], ['Bruges', 'Ghent'], True, 2)
    >>> columns.replaced({"age": np.array([31.0, np.nan])})
    {'age': [31.0, None], 'town': ['Ghent', 'Bruges']}
    """

    frame: Frame
    labelled: bool = False
    """Whether the labels of a pandas frame's rows go with them."""

    @classmethod
    def of(cls, source: Any) -> Columns:
        """From pandas, polars, Arrow, a dict of lists or a path: to look at, as it is."""
        return cls(read_frame(source))

    @classmethod
    def leaving(
        cls, source: Any, named: str | Sequence[str], random: Random | None, *, shuffle: bool, keep_index: bool
    ) -> tuple[Columns, tuple[str, ...], Random]:
        """The same to publish something of: its rows in a secret order and without labels, unless either is asked for. With the
        names of the columns that it is about, which are there, and what chance is drawn from.

        They are put into that order before the method sees them: nothing that it makes row by row, or decides by the first of
        equal rows, knows the old one.

        >>> found, _, _ = Columns.leaving({"n": [1, 2, 3]}, "n", Random.deterministic(1), shuffle=True, keep_index=False)
        >>> found.frame.data["n"].to_list()
        [2, 3, 1]
        """
        frame, names, chance = read_frame(source), names_of(named), random or default_random()
        labelled = kept_index(frame, keep_index)
        order = secret_order(frame.rows, chance, shuffle=shuffle)
        index = frame.index[order] if labelled else None
        columns = cls(Frame(frame.data[order], frame.kind, index, frame.weights), labelled)
        columns.check(names)
        return columns, names, chance

    @property
    def rows(self) -> int:
        """How many rows."""
        return self.frame.rows

    @property
    def names(self) -> list[str]:
        """All columns of the table."""
        return self.frame.names

    def check(self, names: Sequence[str], role: str = "named") -> None:
        """Each exists, none twice, one at least."""
        if not names:
            raise InvalidParameter("columns= is invalid", why="it names no column", instead=f"columns={self.names[:1]!r}")
        check_columns(self.frame, list(names), role)

    def numeric(self, name: str) -> bool:
        """Whether the column's type is one of numbers (Booleans and dates are not)."""
        dtype = self.frame.data[name].dtype
        return bool(dtype.is_numeric()) or (str(dtype) == "Null" and self.rows > 0)

    def whole(self, name: str) -> bool:
        """Whether its type is one of whole numbers."""
        return bool(self.frame.data[name].dtype.is_integer())

    def numbers(self, name: str) -> Floats:
        """The column as floats, NaN where missing. What is not a number, and infinities, are refused."""
        pl = need_polars()
        series = self.frame.data[name]
        if self.rows == 0:
            return np.empty(0)
        if not self.numeric(name):
            raise InvalidParameter(
                f"The column {name!r} is invalid",
                why=f"its values are of the type {series.dtype}, and numbers are needed",
                instead="a column of numbers",
            )
        found = np.array(series.cast(pl.Float64).to_numpy(), dtype=np.float64)
        if np.isinf(found).any():
            raise infinite(name)
        return found

    def large(self, name: str) -> list[int | None] | None:
        """A column of whole numbers of which floats would not tell some apart, as they are; None for every other column."""
        series = self.frame.data[name]
        if not self.whole(name) or not (series.cast(need_polars().Float64).abs() >= _EXACT).any():
            return None
        found: list[int | None] = series.to_list()
        return found

    def coded(self, name: str, *, apart: bool = False, told: bool = False) -> EncodedColumn:
        """Its distinct values, sorted, a missing one last, and the code of each row. `apart`: what looks alike is not one value,
        so that a value's code follows from itself and not from what else is there. `told`: what some reader takes for one is."""
        return encode(self.frame, [name], apart=[name] if apart else [], told=[name] if told else []).columns[name]

    def refuse_missing(self, name: str, instead: str) -> None:
        """Refuse the table where the column has an empty cell."""
        count = int(self.absent(name).sum())
        if count:
            raise InvalidParameter(
                f"The column {name!r} is invalid",
                why=f"{count} of its values {'is' if count == 1 else 'are'} missing",
                instead=f"{instead}, or a table without those rows",
            )

    def without_missing(self, name: str, missing: str) -> npt.NDArray[np.bool_]:
        """Which rows have a value, after `missing=` has had its say."""
        check_one_of(missing, "missing", MISSING, why='it is neither "refuse" nor "keep"', instead='missing="refuse"')
        if missing == "refuse":
            self.refuse_missing(name, 'missing="keep" (they stay empty, and who has no value can be seen)')
        return ~self.absent(name)

    def absent(self, name: str) -> npt.NDArray[np.bool_]:
        """Which cells are missing (a null, or NaN)."""
        series = self.frame.data[name]
        if series.dtype.is_float():
            series = series.fill_nan(None)
        return np.array(series.is_null().to_numpy(), dtype=np.bool_)

    def taken(self, name: str, rows: npt.NDArray[np.integer]) -> Any:
        """The column with the values of other rows in its rows; its type stays."""
        return self.frame.data[name].gather(rows)

    def as_texts(self, name: str, values: Sequence[str | None]) -> Any:
        """Texts as a column, whatever its type was."""
        pl = need_polars()
        return pl.Series(name, list(values), dtype=pl.String)

    def fitting(self, name: str, numbers: Floats) -> Any:
        """Numbers in the column's own type: whole ones stay whole where these are; NaN is missing."""
        pl = need_polars()
        series = pl.Series(name, numbers, nan_to_null=True)
        before = self.frame.data[name].dtype
        if not before.is_integer() or not (np.isnan(numbers) | (numbers == np.rint(numbers))).all():
            return series.cast(before) if before == pl.Float32 else series
        whole = series.cast(pl.Int64, strict=False)
        if whole.null_count() != series.null_count():
            return series
        return whole.cast(before) if _holds(whole, before) else whole

    def changed(self, name: str, cells: npt.NDArray[np.bool_], numbers: Floats) -> Any:
        """The column with those numbers in those cells and the others as they were, as `fitting`."""
        pl = need_polars()
        fresh, before = self.fitting(name, numbers), self.frame.data[name]
        if fresh.dtype != before.dtype:
            return fresh
        return pl.select(pl.when(pl.Series(cells)).then(fresh).otherwise(before).alias(name)).to_series()

    def of_codes(self, name: str, coded: EncodedColumn, rows: Integers, codes: npt.NDArray[np.integer]) -> Any:
        """A column that has the values of those codes in those rows, and is empty elsewhere; in the type that it had."""
        pl = need_polars()
        first = np.zeros(len(coded), dtype=np.int64)
        first[coded.codes[::-1]] = np.arange(self.rows - 1, -1, -1)  # a row that has the value
        source = np.full(self.rows, -1, dtype=np.int64)
        source[rows] = first[codes]
        return self.frame.data[name].gather(
            pl.select(pl.when(pl.Series(source) < 0).then(None).otherwise(pl.Series(source))).to_series()
        )

    def emptied(self, name: str, cells: npt.NDArray[np.bool_]) -> Any:
        """The column with those cells missing; its type stays."""
        pl = need_polars()
        series = self.frame.data[name]
        gone = pl.Series("gone", cells)
        return pl.select(pl.when(gone).then(None).otherwise(series).alias(name)).to_series().cast(series.dtype)

    def replaced(self, columns: Mapping[str, Any], *, apart: bool = False) -> Any:
        """The frame in its own kind with these columns (arrays, lists or series) in the place of the old ones."""
        made = [self.same_type(name, values) for name, values in columns.items()]
        data = self.frame.data.with_columns(made if apart else [_one_way(each) for each in made])
        return self.frame.give_back(data, np.arange(self.rows) if self.labelled else None)

    def made(self, columns: Mapping[str, Any]) -> Any:
        """A new frame of the same kind, in which pandas numbers the rows afresh."""
        pl = need_polars()
        data = pl.DataFrame(
            [values.alias(name) if isinstance(values, pl.Series) else pl.Series(name, values) for name, values in columns.items()]
        )
        return self.frame.give_back(data)

    def same_type(self, name: str, values: Any) -> Any:
        """Values as a column of the old type where they fit it; else as texts."""
        pl = need_polars()
        if isinstance(values, pl.Series):
            return values.alias(name)
        before = self.frame.data[name].dtype
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
            found = pl.Series(name, values, nan_to_null=True)
            if values.dtype.kind == "f":
                return found.cast(before) if before == pl.Float32 else found
            return found.cast(before, strict=False) if _holds(found, before) else found
        try:
            return pl.Series(name, list(values), dtype=before)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            return pl.Series(name, [None if value is None else str(value) for value in values])


def names_of(columns: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several, as a tuple.

    >>> names_of("age"), names_of(["age", "sex"])
    (('age',), ('age', 'sex'))
    """
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _holds(series: Any, dtype: Any) -> bool:
    """Whether an integer type has room for these integers."""
    if not dtype.is_integer() or not len(series):
        return bool(dtype.is_integer())
    return bool(series.cast(dtype, strict=False).null_count() == series.null_count())


def _one_way(series: Any) -> Any:
    pl = need_polars()
    written = series.dtype.is_float() or series.dtype in (pl.String, pl.Categorical, pl.Enum)
    return one_writing(series) if written else series
