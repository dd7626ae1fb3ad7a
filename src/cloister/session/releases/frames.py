"""Small released tables, and their ways into pandas, polars and Arrow: whichever of them is installed.

The kind of each column is fixed by the plan, so the types of an answer say nothing about the rows behind it.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import MissingDependency, UnknownColumn

Kind: TypeAlias = Literal["integer", "real", "text", "date", "boolean"]
Values: TypeAlias = npt.NDArray[Any]

_LIMIT = 2**63 - 1


@dataclass(frozen=True)
class Series:
    """One column: its kind and its values; an absent key or value is None, and only then is the array one of objects."""

    kind: Kind
    values: Values

    def tolist(self) -> list[Any]:
        """Plain Python values."""
        return [value.item() if isinstance(value, np.generic) else value for value in self.values.tolist()]


@dataclass(frozen=True)
class Frame:
    """Named columns of equal length.

    >>> frame = Frame({"sex": Series("text", np.array(["F", "M"], dtype=object)), "n": Series("integer", np.array([3, 4]))})
    >>> frame["n"].tolist(), frame.column_names, len(frame)
    ([3, 4], ['sex', 'n'], 2)
    """

    columns: Mapping[str, Series]

    @property
    def column_names(self) -> list[str]:
        """In the order of the answer."""
        return list(self.columns)

    @property
    def num_rows(self) -> int:
        """The number of rows, fixed by the plan where all keys are declared."""
        return next((len(series.values) for series in self.columns.values()), 0)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.num_rows, len(self.columns)

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str) -> Values:
        if name not in self.columns:
            raise UnknownColumn(
                f"The column {name!r} was not found",
                why=f"the answer has {', '.join(self.columns)}",
                instead=f'["{self.column_names[-1]}"]',
            )
        return self.columns[name].values

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(zip(*(series.tolist() for series in self.columns.values()), strict=True))

    def to_pydict(self) -> dict[str, list[Any]]:
        """A dict of plain lists."""
        return {name: series.tolist() for name, series in self.columns.items()}

    def to_pandas(self) -> Any:
        """A pandas DataFrame.

        >>> Frame({"n": Series("integer", np.array([3]))}).to_pandas()["n"].tolist()
        [3]
        """
        pandas = _need("pandas")

        def given(series: Series) -> Any:
            exact = "Int64" if series.kind == "integer" else None  # as floats, those beyond 2^53 would be others
            return pandas.Series(series.tolist(), dtype=exact) if series.values.dtype == object else series.values

        return pandas.DataFrame({name: given(series) for name, series in self.columns.items()})

    def to_polars(self) -> Any:
        """A polars DataFrame.

        >>> Frame({"n": Series("integer", np.array([3]))}).to_polars()["n"].to_list()
        [3]
        """
        polars = _need("polars")
        types = {
            "integer": polars.Int64,
            "real": polars.Float64,
            "text": polars.String,
            "date": polars.Date,
            "boolean": polars.Boolean,
        }
        return polars.DataFrame(
            [polars.Series(name, series.tolist(), dtype=types[series.kind]) for name, series in self.columns.items()]
        )

    def to_arrow(self) -> Any:
        """An Arrow table: pyarrow's where it is installed, otherwise arro3's (which every Arrow reader takes).

        >>> Frame({"n": Series("integer", np.array([3]))}).to_arrow().num_rows
        1
        """
        if importlib.util.find_spec("pyarrow") is not None:
            import pyarrow as pa

            types = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "date": pa.date32(), "boolean": pa.bool_()}
            return pa.table({name: pa.array(series.tolist(), types[series.kind]) for name, series in self.columns.items()})
        from arro3.core import Array, DataType, Table

        kinds = {
            "integer": DataType.int64(),
            "real": DataType.float64(),
            "text": DataType.string(),
            "date": DataType.date32(),
            "boolean": DataType.bool(),
        }
        return Table.from_pydict({name: Array(_for_arro3(series), kinds[series.kind]) for name, series in self.columns.items()})

    def __repr__(self) -> str:
        return text_table(self.column_names, [[_cell(value) for value in row] for row in self.head()])

    def head(self, rows: int = 50) -> list[tuple[Any, ...]]:
        """The first rows."""
        lists = [series.values[:rows].tolist() for series in self.columns.values()]
        return list(zip(*lists, strict=True))


def whole(values: Values) -> Values:
    """Integers as 64 bits, cut at their ends: post-processing of values that are already public."""
    if values.dtype != object:
        return values
    return np.array([min(max(int(value), -_LIMIT), _LIMIT) for value in values], dtype=np.int64)


def text_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned text, numbers to the right.

    >>> print(text_table(["sex", "n"], [["F", "12"], ["M", "9"]]))
    sex   n
    ───  ──
    F    12
    M     9
    """
    table = [list(names), *rows]
    widths = [max((len(row[place]) for row in table), default=0) for place in range(len(names))]
    right = [
        all(row[place][:1].isdigit() or row[place][:1] in "-−±" for row in rows) and bool(rows) for place in range(len(names))
    ]
    lines = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        for row in table
    ]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def null_word(values: Iterable[Any]) -> str:
    """How a missing value is written among others: NULL, or a word that none of them is.

    >>> null_word(["a", None]), null_word(["NULL", None])
    ('NULL', 'NULL (missing)')
    """
    known, word = {each for each in values if isinstance(each, str)}, "NULL"
    while word in known:
        word += " (missing)"
    return word


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _for_arro3(series: Series) -> list[Any]:
    values = series.tolist()
    if series.kind == "date":
        epoch = date(1970, 1, 1).toordinal()
        return [None if value is None else value.toordinal() - epoch for value in values]
    return values


def _need(package: str) -> Any:
    if importlib.util.find_spec(package) is None:
        raise MissingDependency(
            f"The conversion to {package} is not available", why=f"{package} is not installed", instead=f"pip install {package}"
        )
    return importlib.import_module(package)
