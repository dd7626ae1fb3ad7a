"""Frames in, and the same kind of frame out: pandas, polars, Arrow, a dictionary of lists, or a path of a CSV or Parquet file.

Inside the room every table is a polars frame: it holds text, numbers, dates and missing values without turning one into the
other, and it sorts ten million values in about a second.
"""

from __future__ import annotations

import csv
import gzip
import operator
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.held import check_held, in_own_words, without_nan
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.lazily import needing
from cloister.parsers import is_parquet, separator_of

if TYPE_CHECKING:
    import polars as pl

    from cloister.noise import Random

ORDER_KEPT = "the order of the rows"
INDEX_KEPT = "the index"
"""What links a published table, row by row, to every other table about the same rows."""


class HiddenRows(UserWarning):
    """Something that a publisher should look at before the table leaves: what is published as it is, and may name people."""


def secret_order(rows: int, random: Random, *, shuffle: bool = True, stacklevel: int = 4) -> npt.NDArray[np.int64]:
    """An order to publish rows in: drawn uniformly from all, or with `shuffle=False` the one that they have, which is warned of.

    >>> from cloister.noise import Random
    >>> secret_order(4, Random.deterministic(1)).tolist()
    [1, 3, 2, 0]
    """
    if shuffle:
        return np.asarray(random.permutation(rows), dtype=np.int64)
    warnings.warn(
        f"{ORDER_KEPT} stays as it is (shuffle=False): it links this table, row by row, to every other table about the same "
        "rows, and shows where rows were left out. Instead: shuffle=True",
        HiddenRows,
        stacklevel=stacklevel,
    )
    return np.arange(rows, dtype=np.int64)


def kept_index(frame: Frame, keep_index: bool, *, stacklevel: int = 4) -> bool:
    """Whether the labels of a pandas frame's rows leave: only where that is asked for, which is warned of."""
    if not keep_index:
        return False
    if frame.index is None:
        raise InvalidParameter(
            "keep_index=True is invalid",
            why="the rows of this table have no labels",
            instead="keep_index=False, or a pandas frame",
        )
    warnings.warn(
        f"{frame.labelled or INDEX_KEPT} stays as it is (keep_index=True): it links this table, row by row, to every other table "
        "about the same rows, and shows which were left out. Instead: keep_index=False",
        HiddenRows,
        stacklevel=stacklevel,
    )
    return True


def need_polars() -> Any:
    """polars, or the message that says how to install it."""
    with needing("Anonymising is not available", "polars is not installed", "anonymize"):
        import polars
    return polars


@dataclass(frozen=True, eq=False)
class Frame:
    """A table as polars holds it, and the kind that it came in.

    >>> frame = read_frame({"age": [31, 45], "sex": ["F", None]})
    >>> frame.rows, frame.names, frame.give_back(frame.data)
    (2, ['age', 'sex'], {'age': [31, 45], 'sex': ['F', None]})
    """

    data: pl.DataFrame
    kind: str
    index: Any = None
    """The labels of a pandas frame's rows."""
    weights: npt.NDArray[np.int64] | None = None
    """How many rows of a larger table each row stands for, where equal ones were counted; None: one each."""

    @property
    def rows(self) -> int:
        """How many rows."""
        return int(self.data.height)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.data.columns)

    def stands_for(self, rows: npt.NDArray[np.bool_]) -> int:
        """How many rows some of the rows are, where each may stand for several."""
        return int(np.count_nonzero(rows) if self.weights is None else self.weights[rows].sum())

    def among(self, kept: npt.NDArray[np.bool_]) -> Frame:
        """Some of the rows.

        >>> read_frame({"age": [31, 45]}).among(np.array([False, True])).data["age"].to_list()
        [45]
        """
        weights = None if self.weights is None else self.weights[kept]
        return Frame(self.data.filter(need_polars().Series(kept, dtype=need_polars().Boolean)), self.kind, weights=weights)

    @property
    def labelled(self) -> str | None:
        """What the rows of a pandas frame are called, in words; None where they are numbered as pandas does it."""
        if self.index is None:
            return None
        names = ", ".join(repr(name) for name in self.index.names if name is not None)
        whole = getattr(self.index.dtype, "kind", "O") == "i"
        if not names and whole and (self.index.to_numpy() == np.arange(len(self.index))).all():
            return None
        return f"{INDEX_KEPT} {names}" if names else INDEX_KEPT

    def give_back(self, data: pl.DataFrame, labelled: npt.NDArray[np.integer] | None = None) -> Any:
        """Another table in the kind that this one came in.

        It has memory of its own: nothing of a row that was left out goes with it. The rows of a pandas frame are numbered afresh;
        with `labelled`, their positions in this one, they keep their labels.
        """
        if self.kind == "dict":
            return data.to_dict(as_series=False)
        if self.kind == "pandas":
            import pandas as pd

            columns = {name: _to_pandas(data[name]) for name in data.columns}
            index = pd.RangeIndex(data.height) if labelled is None or self.index is None else self.index[labelled]
            if isinstance(index, pd.MultiIndex):
                index = index.remove_unused_levels()
            elif isinstance(index, pd.CategoricalIndex):
                index = index.remove_unused_categories()
            return pd.DataFrame(columns, index=index, columns=data.columns)
        data = data.with_columns([_of_its_own(series) for series in data.get_columns()])
        if self.kind == "arrow":
            from arro3.core import Table

            return Table.from_arrow(data.cast({need_polars().Null: need_polars().String}))  # arro3 takes no polars column of Null
        return data


def read_frame(source: Any) -> Frame:
    """A frame from what the user has.

    A list of several types is refused: 7 and "7" would be two values of one person.
    """
    pl = need_polars()
    if isinstance(source, Frame):
        return source
    if isinstance(source, pl.DataFrame):
        return Frame(source, "polars")
    if isinstance(source, pl.LazyFrame):
        with in_own_words("The table is invalid", "polars could not collect it", "the frame, collected"):
            return Frame(source.collect(), "polars")
    if isinstance(source, str | Path):
        return Frame(_from_path(Path(source)), "polars")
    if isinstance(source, Mapping):
        single = next(
            (str(name) for name, values in source.items() if isinstance(values, str | bytes) or not hasattr(values, "__len__")),
            None,
        )
        if single is not None:
            raise InvalidParameter(
                f"The column {single!r} is invalid",
                why="it is not a list of values",
                instead='{"age": [31, 45], "sex": ["F", "M"]}',
            )
        lengths = {str(name): len(values) for name, values in source.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidParameter(
                "The table is invalid",
                why=f"its columns have different lengths: {lengths}",
                instead='{"age": [31, 45], "sex": ["F", "M"]}',
            )
        return Frame(pl.DataFrame([_series(str(name), values) for name, values in source.items()]), "dict")
    if type(source).__module__.split(".")[0] == "pandas" and hasattr(source, "columns"):
        names = [str(name) for name in source.columns]
        _refuse_twice(names)
        return Frame(
            pl.DataFrame([_from_pandas(name, source.iloc[:, place]) for place, name in enumerate(names)]), "pandas", source.index
        )
    if hasattr(source, "__arrow_c_stream__"):
        with in_own_words(
            "The table is invalid", "one of its columns is of a type that polars does not hold", "its columns as texts"
        ):
            return Frame(pl.DataFrame(source), "arrow")
    raise InvalidParameter(
        "The table is invalid",
        why=f"it is a {type(source).__name__}",
        instead="a pandas, polars or Arrow frame, a dictionary of lists, or a path of a CSV or Parquet file",
    )


def check_columns(frame: Frame, names: list[str], role: str) -> None:
    """Every name is in the table, and none twice."""
    _refuse_twice(names, role)
    for name in names:
        if name not in frame.names:
            near = ", ".join(repr(each) for each in frame.names[:12])
            raise UnknownColumn(f"The {role} column {name!r} is unknown", why="the table has no such column", instead=near)


def _refuse_twice(names: list[str], role: str = "table's") -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidParameter(
            f"The {role} columns are invalid", why=f"{twice[0]!r} stands there twice", instead="each column once"
        )


def _from_path(path: Path) -> Any:
    pl = need_polars()
    if not path.exists():
        raise InvalidParameter(
            f"{path.name!r} is invalid", why="there is no such file", instead="the path of a CSV or Parquet file"
        )
    with in_own_words(
        f"{path.name!r} is invalid", "it could not be read as a table", "a CSV file in UTF-8 with a line of names, or Parquet"
    ):
        if is_parquet(path):
            return pl.read_parquet(path, glob=False)
        by = separator_of(path)
        with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
            if b"\r" in file.readline(2**16).rstrip(b"\r\n"):
                why = "its first line holds a carriage return"
                instead = "the file saved once more, with the line ends of Windows or Unix"
                raise InvalidParameter(f"{path.name!r} is invalid", why=why, instead=instead)
        named = _named_in_a_line(path, by)
        data = _as_written(path, by, _typed(path, by))
        doubled = {old: new for old, new in zip(data.columns, named, strict=False) if old == new.replace('"', '""')}
        return _without_blank_lines(path, by, data.rename(doubled))  # polars leaves quotes in a name doubled


def _without_blank_lines(path: Path, by: str, data: Any) -> Any:
    """The rows without those that polars makes, all missing, of a line with nothing in it."""
    pl = need_polars()
    if data.width < 2 or not data.select(pl.all_horizontal(pl.all().is_null()).any()).item():
        return data
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
        _, *said = (bool(row) for row in dropwhile(operator.not_, csv.reader(file, delimiter=by)))
    return data.filter(pl.Series(said)) if len(said) == data.height else data


def _typed(path: Path, by: str) -> Any:
    """A CSV file's columns, each of the type that all of it has; one whose cells polars takes for one type and then cannot read
    so (two forms of days, wide digits) stays text."""
    pl = need_polars()
    read = partial(pl.read_csv, infer_schema_length=None, try_parse_dates=True, glob=False)
    try:
        return read(path, separator=by)
    except pl.exceptions.ComputeError:
        texts = pl.read_csv(path, separator=by, infer_schema=False, glob=False)
    columns = []
    for text in texts.get_columns():
        beside = pl.DataFrame([text, pl.Series("row", range(len(texts)))] if text.name != "row" else [text, text.alias("rows")])
        try:
            columns.append(read(beside.write_csv().encode()).to_series(0))
        except pl.exceptions.ComputeError:
            columns.append(text)
    return pl.DataFrame(columns)


def _named_in_a_line(path: Path, by: str) -> tuple[str, ...]:
    """The names. Two columns of one name would be renamed: whoever named the one to be dropped would publish the other."""
    first = need_polars().read_csv(path, separator=by, has_header=False, n_rows=1, infer_schema=False, glob=False)
    names: tuple[str, ...] = first.row(0) if first.height else ()
    refuse_unnamed(path, names)
    _refuse_twice(list(names))
    return names


def refuse_unnamed(path: Path, names: Sequence[str | None]) -> None:
    """A column without a name is most often an index, which links each row to the table that it came from."""
    if not all(names):
        why = "a column has no name in its first line: pandas writes none above its index"
        instead = "to_csv(…, index=False), or a name in the first line"
        raise InvalidParameter(f"{path.name!r} is invalid", why=why, instead=instead)


_TIME = r"(?:[ T][0-9:.]+ ?(?:Z|[+-][0-9:]+)?)?"
_DAYS = [(rf"[0-9]{{4}}{mark}[0-9]{{1,2}}{mark}[0-9]{{1,2}}{_TIME}", ".*") for mark in "-/"]
_DAYS += [(rf"[0-9]{{1,2}}{mark}[0-9]{{1,2}}{mark}[0-9]{{4}}{_TIME}", "(?:1[3-9]|[23][0-9]).*") for mark in "-/"]
_DAYS += [(rf"[0-9]{{1,2}}\.(?:0?[1-9]|1[0-2])\.[0-9]{{4}}{_TIME}", ".*")]
_WHOLE = [("[+-]?(?:0|[1-9][0-9]*)", ".*")]
_REAL = [(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?inf|NaN", ".*")]
LOOKS = {"BOOLEAN": [("(?i:true|false)", ".*")], "BIGINT": _WHOLE, "INT64": _WHOLE, "DOUBLE": _REAL, "FLOAT64": _REAL}
LOOKS |= dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "DATETIME"), _DAYS)
"""What each cell of a CSV column looks like, and one at least, where it is what DuckDB or polars takes it for; else it stays as
it was written: 01234 is a postcode, 1/2/2024 may be the second of January, and a time, or a number of over 64 bits, is a name."""


def _as_written(path: Path, by: str, data: Any) -> Any:
    """A CSV file's columns, of which those stay text that do not look like what they were taken for."""
    pl = need_polars()
    there = [place for place, kind in enumerate(data.dtypes) if kind != pl.String]
    texts = pl.read_csv(path, separator=by, columns=there, infer_schema=False, glob=False)
    codes = []
    for place, text in zip(there, texts.get_columns(), strict=True):
        looks = LOOKS.get(str(data.dtypes[place].base_type()).upper(), [])
        if not any(text.str.contains(f"^(?:{each})$").all() and text.str.contains(f"^(?:{one})$").any() for each, one in looks):
            codes.append(text.alias(data.columns[place]))
    return data.with_columns(codes)


def _series(name: str, values: Any) -> Any:
    pl = need_polars()
    if isinstance(values, pl.Series):
        return values.alias(name)
    array = hasattr(values, "dtype") and getattr(values.dtype, "kind", "O") not in "OU"
    plain = values if array else without_nan(list(values))
    if not array:
        check_held(name, plain)
    kinds = [str(values.dtype)] if array else sorted({type(value).__name__ for value in plain if value is not None})
    try:
        return pl.Series(name, plain, strict=True, nan_to_null=False)
    except (TypeError, ValueError, pl.exceptions.PolarsError, OverflowError):
        if not array and set(kinds) <= {"int", "float"}:
            return pl.Series(name, [None if value is None else float(value) for value in plain])
    except BaseException as error:  # a panic of polars is no Exception
        if not isinstance(error, pl.exceptions.PanicException):
            raise
    raise InvalidParameter(
        f"The column {name!r} is invalid",
        why=f"it holds values of {'several types' if len(kinds) > 1 else 'a type that no file holds'}: {', '.join(kinds)}",
        instead=f"one type, as in [str(value) for value in table[{name!r}]]",
    )


def _from_pandas(name: str, series: Any) -> Any:
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iufb" and type(series.dtype).__module__.startswith("numpy"):
        return _series(name, series.to_numpy())
    if kind == "M" and getattr(series.dtype, "tz", None) is None:
        pl = need_polars()
        found = pl.Series(name, series.astype("datetime64[us]").to_numpy())
        dates = found.cast(pl.Date)
        return dates if (dates.cast(pl.Datetime("us")) == found).all() else found
    import pandas as pd

    values = pd.Series(without_nan(series.astype(object).tolist()), dtype=object)
    return _series(name, values.where(values.notna(), None).tolist())


def _of_its_own(series: Any) -> Any:
    """The column in memory of its own.

    A column of texts that was made by picking rows shares the bytes of all the others, and Arrow's formats write them into the
    file; the type of an `Enum` lists every value that there was.
    """
    pl = need_polars()
    if series.dtype == pl.String:
        return pl.select((pl.lit(series) + pl.lit("")).alias(series.name)).to_series()
    if isinstance(series.dtype, pl.Enum):
        there = set(series.unique().to_list())
        return series.cast(pl.String).cast(pl.Enum([value for value in series.dtype.categories if value in there]))
    if series.dtype.is_nested() or series.dtype == pl.Binary:
        return pl.Series(series.name, series.to_list(), dtype=series.dtype)
    return series


def _to_pandas(series: Any) -> Any:
    pl = need_polars()
    import pandas as pd

    long = series.dtype.is_integer() and max(-(series.min() or 0), series.max() or 0) > 1 << 53  # beside missing ones: floats
    if series.dtype in (pl.Int128, pl.UInt128) or (long and series.null_count()):  # NumPy has none
        return pd.Series(series.to_list(), dtype=object)
    if series.dtype.is_numeric() and series.null_count() == 0:
        return series.to_numpy()
    if series.dtype.is_numeric():
        return series.cast(pl.Float64).to_numpy()
    if series.dtype in (pl.Date, pl.Datetime):
        return pd.to_datetime(series.to_list())
    return series.to_list()
