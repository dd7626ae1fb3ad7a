"""Tables that are larger than memory: DuckDB counts the combinations of values that occur, the search works on those, and
DuckDB writes the recoded table. No row is held in Python.

A search asks nothing of rows that are equal in quasi-identifiers and sensitive columns but how many there are. So the table
comes to it as distinct combinations with weights; ten million rows are often a few hundred thousand of them.
"""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

from __future__ import annotations

import copy
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cloister.anonymize.anonymizer import Anonymizer, HiddenRows
from cloister.anonymize.frames import Frame, need_polars
from cloister.anonymize.hierarchies.ladder import STAR
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.report import Report
from cloister.errors import CloisterError, InvalidParameter, UnknownColumn

__all__ = ["Written", "anonymize_file"]

_ENDINGS = (".parquet", ".csv")
_LOOKS_LIKE_A_NAME = 0.9


@dataclass(frozen=True, kw_only=True)
class Written:
    """What was done: rows read and written, how many different combinations of values there were, and the report."""

    rows: int
    written: int
    combinations: int
    report: Report


def anonymize_file(
    anonymizer: Anonymizer,
    source: str | Path,
    target: str | Path,
    *,
    connection: Any = None,
    memory_limit: str | None = None,
    temporary_directory: str | Path | None = None,
) -> Written:
    """Anonymise a CSV or Parquet file (or several, by a pattern such as `"parts/*.parquet"`) into another one.

    **Not differential privacy**, like everything that an `Anonymizer` makes: who knows more than the quasi-identifiers may learn
    more.

    With `connection=` (DuckDB's), `source` is the name of a table or view there. `memory_limit` ("2GiB") is for DuckDB's own
    buffers; what does not fit is put into `temporary_directory`. The order of rows is not kept. The file is written under another
    name first: where something fails, no half of a table is left.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from cloister.anonymize import Anonymizer, KAnonymity
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "people.csv").write_text("name,age\\nAnn,31\\nBob,32\\nCleo,50\\nDan,57\\n", encoding="utf-8")
    ...     anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian", identifying=["name"])
    ...     done = anonymize_file(anonymizer, Path(folder) / "people.csv", Path(folder) / "released.csv")
    ...     text = (Path(folder) / "released.csv").read_text(encoding="utf-8")
    >>> done.rows, done.written, sorted(text.split())
    (4, 4, ['31–32', '31–32', '50–57', '50–57', 'age'])
    """
    goal = Path(target)
    if goal.suffix not in _ENDINGS:
        raise InvalidParameter(
            f"target={goal.name!r} was refused", why="its ending says neither CSV nor Parquet", instead='"released.parquet"'
        )
    with _opened(connection, memory_limit, temporary_directory) as duck:
        try:
            return _anonymize(duck, anonymizer, source, goal, named=connection is not None)
        finally:
            for name in (_MAPPING, *(f"{_LABELS}{place}" for place in range(len(list(anonymizer.quasi))))):
                duck.unregister(name)


_MAPPING = "cloister_recoding"
_LABELS = "cloister_labels_"


def _anonymize(duck: Any, anonymizer: Anonymizer, source: str | Path, goal: Path, *, named: bool) -> Written:
    rows = _quoted(str(source)) if named else _table_function(source)
    names = _columns(duck, rows, source)
    identifying = list(anonymizer.identifying)
    for name in identifying:
        if name not in names:
            raise UnknownColumn(
                f"The identifying column {name!r} was refused", why="the table has no such column", instead=", ".join(names[:12])
            )
    needed = _needed(anonymizer, names)
    frame = _counted(duck, rows, needed)
    inner = copy.copy(anonymizer)
    inner.identifying = []
    recoded = inner.recode(frame)
    vars(anonymizer).update({name: value for name, value in vars(inner).items() if name.endswith("_") or name == "_chosen"})
    kept = [name for name in names if name not in {*needed, *identifying}]
    anonymizer.report_ = report = replace(inner.report_, kept=tuple(kept), dropped=tuple(identifying))
    total = int(frame.weights.sum()) if frame.weights is not None else 0
    _warn(duck, rows, kept, total)
    star = anonymizer.suppressed == "star"
    _register(duck, frame, recoded)
    query = _query(rows, names, needed, recoded, sensitive=list(anonymizer.sensitive), dropped=identifying, star=star)
    written = _write(duck, query, goal)
    expected = total if star else total - frame.stands_for(recoded.suppressed)
    if written != expected:
        goal.unlink()
        raise CloisterError(
            "The anonymised file was withheld", why=f"it has {written} rows, not {expected}", instead="report this"
        )
    return Written(rows=total, written=written, combinations=frame.rows, report=report)


@contextmanager
def _opened(connection: Any, memory_limit: str | None, folder: str | Path | None) -> Iterator[Any]:
    if connection is not None:
        yield connection.cursor()
        return
    import duckdb

    limit = memory_limit or os.environ.get("CLOISTER_MEMORY_LIMIT")
    with tempfile.TemporaryDirectory(dir=folder) as spill:
        settings: dict[str, Any] = {"temp_directory": spill, "preserve_insertion_order": False}
        with duckdb.connect(config=settings | ({"memory_limit": limit} if limit else {})) as own:
            yield own


def _table_function(source: str | Path) -> str:
    text = str(source)
    pattern = any(mark in text for mark in "*?[")
    if not pattern and not Path(text).exists():
        raise InvalidParameter(
            f"{Path(text).name!r} was refused", why="there is no such file", instead="the path of a CSV or Parquet file"
        )
    function = "read_parquet" if text.endswith(".parquet") else "read_csv"
    return f"{function}({_literal(text)})"


def _columns(duck: Any, rows: str, source: str | Path) -> list[str]:
    import duckdb

    try:
        return [str(name) for name in duck.sql(f"SELECT * FROM {rows} LIMIT 0").columns]
    except duckdb.Error as error:
        raise InvalidParameter(
            f"{Path(str(source)).name!r} was refused",
            why="it could not be read as a table",
            instead="a CSV file with a line of names, Parquet, or with connection= the name of a table",
        ) from error


def _needed(anonymizer: Anonymizer, names: Sequence[str]) -> list[str]:
    """Columns that the search looks at; those that the table lacks are refused later, by name."""
    asked = [*anonymizer.quasi, *anonymizer.sensitive]
    asked += [name for model in anonymizer.models for name in model.columns_of(list(anonymizer.sensitive)) if name]
    asked += [anonymizer.research] if anonymizer.research else []
    return [name for name in dict.fromkeys(asked) if name in names]


def _counted(duck: Any, rows: str, needed: Sequence[str]) -> Frame:
    """The combinations of values, and how many rows have each."""
    pl = need_polars()
    columns = ", ".join(_quoted(name) for name in needed)
    counted = "cloister_count"
    while counted in needed:
        counted += "_"
    query = (
        f"SELECT {columns}, count(*) AS {counted} FROM {rows} GROUP BY ALL ORDER BY ALL" if needed else f"SELECT * FROM {rows}"
    )
    data = pl.DataFrame(duck.sql(query))
    if not needed:
        return Frame(data, "polars")
    return Frame(data.drop(counted), "polars", None, data[counted].to_numpy().astype(np.int64))


def _register(duck: Any, frame: Frame, recoded: Recoded) -> None:
    """For each combination the number of its label in each column, and whether its rows are suppressed; then the labels."""
    from arro3.core import Table

    pl = need_polars()
    mapping = frame.data.select(pl.col(name).alias(f"was_{place}") for place, name in enumerate(frame.names))
    codes = [pl.Series(f"code_{place}", column.codes) for place, column in enumerate(recoded.columns.values())]
    duck.register(_MAPPING, Table.from_arrow(mapping.with_columns(*codes, pl.Series("gone", recoded.suppressed))))
    for place, column in enumerate(recoded.columns.values()):
        texts = [None if label is None else label if isinstance(label, str) else text_of(label) for label in column.labels]
        labels = pl.DataFrame({"code": pl.Series(range(len(texts)), dtype=pl.Int32), "label": pl.Series(texts, dtype=pl.String)})
        duck.register(f"{_LABELS}{place}", Table.from_arrow(labels))


def _query(
    rows: str,
    names: Sequence[str],
    needed: Sequence[str],
    recoded: Recoded,
    *,
    sensitive: Sequence[str],
    dropped: Sequence[str],
    star: bool,
) -> str:
    """The published table: each row finds its combination, and each code its label."""
    place_of: Mapping[str, int] = {name: place for place, name in enumerate(recoded.columns)}
    selected, joins = [], []
    for name in names:
        if name in dropped:
            continue
        cell = f"r.{_quoted(name)}"
        if name in place_of and not recoded.columns[name].intact:
            place = place_of[name]
            cell = f"l{place}.label"
            joins.append(f"LEFT JOIN {_LABELS}{place} AS l{place} ON l{place}.code = m.code_{place}")
        if star and recoded.suppressed.any() and (name in place_of or name in sensitive):
            cell = f"CASE WHEN m.gone THEN {_literal(STAR)} ELSE CAST({cell} AS VARCHAR) END"
        selected.append(f"{cell} AS {_quoted(name)}")
    same = " AND ".join(f"r.{_quoted(name)} IS NOT DISTINCT FROM m.was_{place}" for place, name in enumerate(needed))
    where = "" if star else " WHERE NOT m.gone"
    return f"SELECT {', '.join(selected)} FROM {rows} AS r JOIN {_MAPPING} AS m ON {same} {' '.join(joins)}{where}"


def _write(duck: Any, query: str, goal: Path) -> int:
    """Under another name first."""
    handle, name = tempfile.mkstemp(suffix=goal.suffix, prefix=f".{goal.stem[:40]}-", dir=goal.parent)
    os.close(handle)
    try:
        form = "FORMAT parquet" if goal.suffix == ".parquet" else "FORMAT csv, HEADER"
        written = int(duck.execute(f"COPY ({query}) TO {_literal(name)} ({form})").fetchall()[0][0])
        os.replace(name, goal)
    finally:
        Path(name).unlink(missing_ok=True)
    return written


def _warn(duck: Any, rows: str, kept: Sequence[str], total: int) -> None:
    if not kept or total < 20:
        return
    columns = ", ".join(f"approx_count_distinct({_quoted(name)})" for name in kept)
    for name, distinct in zip(kept, duck.execute(f"SELECT {columns} FROM {rows}").fetchall()[0], strict=True):
        if distinct > _LOOKS_LIKE_A_NAME * total:
            warnings.warn(
                f"the column {name!r} stays as it is, and nearly every row has a value of its own there: if others know it, it "
                f"names people. Instead: quasi=[…, {name!r}], or identifying=[{name!r}]",
                HiddenRows,
                stacklevel=4,
            )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
