"""Tables that are larger than memory: DuckDB counts the combinations of values that occur, the search works on those, and
DuckDB writes the recoded table, and counts it again.

A search asks nothing of rows that are equal in quasi-identifiers and sensitive columns but how many there are. So the table
comes to it as distinct combinations with weights; columns that nothing looks at never come into memory.
"""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import encode, one_writing, too_long
from cloister.anonymize.files_checked import check_written, rows_of
from cloister.anonymize.frames import ORDER_KEPT, Frame, check_columns, need_polars, secret_order
from cloister.anonymize.held import in_own_words
from cloister.anonymize.hierarchies.ladder import STAR
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.problem import silent
from cloister.anonymize.publishing import starred
from cloister.anonymize.queries import kinds_of, run, table_function, under_another_name, watched
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.report import Report
from cloister.anonymize.risks import Risk
from cloister.anonymize.risks.added import Added
from cloister.anonymize.roles import check_lists, check_models, research_rows
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.tables.engines.connection import connected
from cloister.tables.engines.folder import PrivateFolder
from cloister.tables.expression.names import literal, quotation

if TYPE_CHECKING:
    from cloister.anonymize.anonymizer import Anonymizer

_ENDINGS = (".parquet", ".csv")
_MEMORY = "1GiB"
"""What DuckDB's buffers may take where nobody says so; the search needs the rest."""


@dataclass(frozen=True, kw_only=True)
class WrittenFile:
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
) -> WrittenFile:
    """Anonymise a CSV or Parquet file (or several, by a pattern such as `"parts/*.parquet"`) into another one.

    **Not differential privacy**, like everything that an `Anonymizer` makes: who knows more than the quasi-identifiers may learn
    more.

    What is written is what `fit_transform` makes of the table (but relaxed Mondrian, which parts rows that are equal in memory,
    and counts them here: its classes may be larger, and meet the models as well). It is read and counted again before it gets
    its name: where something fails or is interrupted, no half of a table is left, and a file that was there stays as it was.

    Rows leave in a secret order: DuckDB sorts them, on the disk where memory is short, by SHA-256 of a key of 256 bits from
    `cloister.noise.Random` and their number, which is a uniform order for all who lack the key. With `shuffle=False` they come as
    DuckDB reads them, which is nearly the old order, and warned of.

    With `connection=` (DuckDB's), `source` is the name of a table or view there. `memory_limit` ("2GiB"; 1 GiB when left out) is
    for DuckDB's own buffers; what does not fit is put into `temporary_directory`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from cloister.anonymize import Anonymizer, KAnonymity
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "people.csv").write_text("name,age\\nAnn,31\\nBob,32\\nCleo,50\\nDan,57\\n", encoding="utf-8")
    ...     anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian", identifying=["name"])
    ...     done = anonymize_file(anonymizer, Path(folder) / "people.csv", Path(folder) / "released.csv")
    ...     text = (Path(folder) / "released.csv").read_text(encoding="utf-8")
    >>> isinstance(done, WrittenFile), done.rows, done.written, sorted(text.split())
    (True, 4, 4, ['31–32', '31–32', '50–57', '50–57', 'age'])
    """
    check_models(anonymizer.models)
    check_lists(quasi=anonymizer.quasi, sensitive=anonymizer.sensitive, identifying=anonymizer.identifying)
    goal = Path(target)
    for wrong, why, instead in (
        (goal.suffix not in _ENDINGS, "its ending says neither CSV nor Parquet", '"released.parquet"'),
        (goal.is_dir(), "a folder has that name", "the name of a file, which may be there"),
        (not goal.parent.is_dir(), "there is no such folder", "a folder that is there"),
    ):
        if wrong:
            raise InvalidParameter(f"target={goal.name!r} is invalid", why=why, instead=instead)
    if connection is not None and str(source).lower().startswith((_MAPPING, _LABELS)):
        raise InvalidParameter(
            f"The table {str(source)!r} is invalid",
            why="what is written passes by a table of that name for a while",
            instead="a view of it under another name",
        )
    with PrivateFolder(temporary_directory) as folder, _opened(connection, memory_limit, folder) as duck:
        try:
            return _anonymize(duck, anonymizer, source, goal, named=connection is not None, joined=folder / "rows.parquet")
        finally:
            for name in (_MAPPING, *(f"{_LABELS}{place}" for place in range(len(list(anonymizer.quasi))))):
                duck.unregister(name)


_MAPPING = "cloister_recoding"
_LABELS = "cloister_labels_"


def _anonymize(duck: Any, anonymizer: Anonymizer, source: str | Path, goal: Path, *, named: bool, joined: Path) -> WrittenFile:
    progress = anonymizer.progress or silent
    rows = quotation(str(source)) if named else table_function(duck, source)
    kinds = kinds_of(duck, rows, source)
    names = list(kinds)
    if anonymizer.keep_index:
        raise InvalidParameter("keep_index=True is invalid", why="the rows of a file have no labels", instead="keep_index=False")
    random = anonymizer.random or Random()
    secret_order(0, random, shuffle=anonymizer.shuffle, stacklevel=6)
    dropped = anonymizer.dropped
    check_columns(Frame(need_polars().DataFrame(schema=names), "polars"), dropped, "named")
    needed = _needed(anonymizer, names)
    for name, kind in kinds.items():
        if "HUGEINT" in kind and name not in dropped and (name in needed or goal.suffix == ".parquet"):
            raise too_long(name)  # DuckDB would give them as fractions, and Parquet hold them so
    frame = _counted(duck, rows, needed, progress)
    inner = copy.copy(anonymizer)
    inner.identifying = []
    inner.shuffle = True
    recoded = inner.recode(frame)
    vars(anonymizer).update({name: value for name, value in vars(inner).items() if name.endswith("_") or name == "chosen"})
    kept = [name for name in names if name not in {*needed, *dropped}]
    total = frame.stands_for(np.ones(frame.rows, dtype=bool))
    published = _Published(
        columns=tuple(name for name in names if name not in dropped),
        needed=needed,
        watched=tuple(anonymizer.watched),
        missing_values=tuple(anonymizer.missing_values),
        star=anonymizer.suppressed == "star",
        outside=~research_rows(frame, anonymizer.research, None) if anonymizer.research else None,
    )
    query = published.query(duck, rows, frame, recoded)
    with under_another_name(goal) as path:
        if anonymizer.shuffle:  # one after the other: joining and sorting at once would want twice the memory
            _copy(duck, query, joined, "writing", progress)
            written = _copy(duck, _in_secret_order(duck, joined, random), path, "shuffling", progress)
            joined.unlink()
        else:
            written = _copy(duck, query, path, "writing", progress)
        sensitive = encode(frame, published.watched, missing_values=published.missing_values, told=published.watched).columns
        outside = published.outside
        read = rows_of(path, published.columns)
        check_written(duck, read, frame, recoded, sensitive, star=published.star, outside=outside, progress=progress)
        added = _added(duck, read, list(recoded.columns), kept, inner.report_.risk, progress)
        linking = [] if anonymizer.shuffle else [ORDER_KEPT]
        anonymizer.report_ = report = replace(
            inner.report_, kept=(*kept, *linking), dropped=tuple(dropped), risk=replace(inner.report_.risk, added=added)
        )
        anonymizer.warn(stacklevel=6)
    return WrittenFile(rows=total, written=written, combinations=frame.rows, report=report)


def _copy(duck: Any, query: str, path: Path, stage: str, progress: Callable[[str, float], None]) -> int:
    form = "FORMAT parquet" if path.suffix == ".parquet" else "FORMAT csv, HEADER"
    [(written,)] = run(duck, f"COPY ({query}) TO {literal(str(path))} ({form}, USE_TMP_FILE false)", stage, progress)
    return int(written)


@contextmanager
def _opened(connection: Any, memory_limit: str | None, folder: Path) -> Iterator[Any]:
    if connection is not None:
        yield watched(connection.cursor())
        return
    limit = memory_limit or os.environ.get("CLOISTER_MEMORY_LIMIT") or _MEMORY
    settings: dict[str, Any] = {"temp_directory": str(folder), "preserve_insertion_order": False, "memory_limit": limit}
    with in_own_words(f"memory_limit={limit!r} is invalid", "DuckDB reads no size in it", 'memory_limit="2GiB"'):
        own = connected(settings=settings)
    with own:
        yield watched(own)


def _needed(anonymizer: Anonymizer, names: Sequence[str]) -> list[str]:
    """Columns that the search looks at; those that the table lacks are refused later, by name."""
    asked = [*anonymizer.quasi, *anonymizer.watched, *([anonymizer.research] if anonymizer.research else [])]
    return [name for name in dict.fromkeys(asked) if name in names]


def _counted(duck: Any, rows: str, needed: Sequence[str], progress: Callable[[str, float], None]) -> Frame:
    """The combinations of values, and how many rows have each."""
    pl = need_polars()
    if not needed:
        return Frame(pl.DataFrame(duck.sql(f"SELECT * FROM {rows} LIMIT 0")), "polars")
    columns = ", ".join(quotation(name) for name in needed)
    counted = "cloister_count"
    while counted in needed:
        counted += "_"
    query = f"SELECT {columns}, count(*) AS {counted} FROM {rows} GROUP BY ALL"
    data = run(duck, query, "counting combinations", progress, read=_read)
    weights = data[counted].to_numpy().astype(np.int64)
    return Frame(data.drop(counted), "polars", None, None if (weights == 1).all() else weights)


def _read(found: Any) -> Any:
    """Batch by batch, so that a text that stands in many rows is there once."""
    from arro3.core import RecordBatchReader, Table

    pl = need_polars()
    reader = RecordBatchReader.from_arrow(found)
    batches = [pl.DataFrame(batch).with_columns(pl.col(pl.String).cast(pl.Categorical)) for batch in reader]
    return pl.concat(batches, rechunk=True) if batches else pl.DataFrame(Table.from_batches([], schema=reader.schema))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Published:
    """What the file will hold."""

    columns: tuple[str, ...]
    needed: Sequence[str]
    watched: tuple[str, ...]
    missing_values: tuple[Any, ...]
    star: bool
    outside: npt.NDArray[np.bool_] | None
    """Combinations whose rows are no part of the table, for δ-presence."""

    def query(self, duck: Any, rows: str, frame: Frame, recoded: Recoded) -> str:
        """Each row finds its combination, and each code its label."""
        place_of: Mapping[str, int] = {name: place for place, name in enumerate(recoded.columns)}
        written = self._register(duck, frame, recoded)
        selected, joins = [], []
        for name in self.columns:
            cell = f"m.now_{self.needed.index(name)}" if name in written else f"r.{quotation(name)}"
            if name in place_of and not recoded.columns[name].intact:
                place = place_of[name]
                cell = f"l{place}.label"
                joins.append(f"LEFT JOIN {_LABELS}{place} AS l{place} ON l{place}.code = m.code_{place}")
            if self.star and recoded.suppressed.any():
                watched = name in place_of or name in self.watched
                said = f"{literal(STAR)} ELSE CAST({cell} AS VARCHAR)" if watched else f"NULL ELSE {cell}"
                cell = f"CASE WHEN m.gone THEN {said} END"
            selected.append(f"{cell} AS {quotation(name)}")
        same = " AND ".join(f"r.{quotation(name)} IS NOT DISTINCT FROM m.was_{place}" for place, name in enumerate(self.needed))
        where = "NOT m.outside" if self.star else "NOT m.outside AND NOT m.gone"
        return f"SELECT {', '.join(selected)} FROM {rows} AS r JOIN {_MAPPING} AS m ON {same} {' '.join(joins)} WHERE {where}"

    def _register(self, duck: Any, frame: Frame, recoded: Recoded) -> set[str]:
        """For each combination the number of its label in each column, and whether its rows are suppressed; then the labels.
        Given back: the columns that are published as they are but for what counts as one value, which is written in one way."""
        from arro3.core import Table

        pl = need_polars()
        columns = [frame.data[name].alias(f"was_{place}") for place, name in enumerate(frame.names)]
        written = set()
        for place, name in enumerate(frame.names):
            as_it_is = recoded.columns[name].intact if name in recoded.columns else name in self.watched
            kind = frame.data[name].dtype
            if not as_it_is:
                continue
            as_text = self.star and recoded.suppressed.any() and kind not in (pl.String, pl.Categorical)
            now = one_writing(frame.data[name], self.missing_values, told=name in self.watched)
            if kind.is_float() or as_text or not now.equals(frame.data[name], null_equal=True):
                columns.append((starred(now, recoded.suppressed) if as_text else now).alias(f"now_{place}"))
                written.add(name)
        for place, column in enumerate(recoded.columns.values()):
            if not column.intact:
                columns.append(pl.Series(f"code_{place}", column.codes))
                texts = [
                    None if label is None else label if isinstance(label, str) else text_of(label) for label in column.labels
                ]
                named = {"code": pl.Series(range(len(texts)), dtype=pl.Int32), "label": pl.Series(texts, dtype=pl.String)}
                duck.register(f"{_LABELS}{place}", Table.from_arrow(pl.DataFrame(named)))
        outside = np.zeros(frame.rows, dtype=bool) if self.outside is None else self.outside
        columns += [pl.Series("gone", recoded.suppressed), pl.Series("outside", outside)]
        duck.register(_MAPPING, Table.from_arrow(pl.DataFrame(columns).cast({pl.Null: pl.String})))
        return written


def _in_secret_order(duck: Any, joined: Path, random: Random) -> str:
    """The rows of a Parquet file in an order that a key decides, which nobody has afterwards."""
    source, number = f"read_parquet({literal(str(joined))})", "cloister_row"
    names = kinds_of(duck, source, joined)
    while number in {name.lower() for name in names}:  # the file's own column would decide the order
        number += "_"
    key = random.bytes(32).hex()
    # 64 bits of a keyed hash: two rows of 10⁹ share them with a chance of 3 %, and then stand side by side
    place = f"('0x' || left(sha256({literal(key)} || CAST({number} AS VARCHAR)), 16))::UBIGINT"
    columns = ", ".join(f"r.{quotation(name)}" for name in names)
    numbered = f"SELECT *, row_number() OVER () AS {number} FROM {source}"
    return f"SELECT {columns} FROM ({numbered}) AS r ORDER BY {place}"


def _added(
    duck: Any, rows: str, quasi: Sequence[str], kept: Sequence[str], risk: Risk, progress: Callable[[str, float], None]
) -> tuple[Added, ...]:
    """What each column that stays as it is adds to the risk, counted in the file; and all of them together."""
    found = []
    for names in [(name,) for name in kept] + ([tuple(kept)] if len(kept) > 1 else []):
        columns = ", ".join(quotation(name) for name in (*quasi, *names))
        query = (
            f"SELECT sum(n), count(*) FILTER (n = 1), coalesce(sum(n) FILTER (n < {risk.k}), 0), min(n) "
            f"FROM (SELECT count(*) AS n FROM {rows} GROUP BY {columns})"
        )
        [(total, alone, below, k)] = run(duck, query, "counting what other columns add", progress)
        if total:
            numbers = {"rows": int(total), "alone": int(alone), "below": int(below), "k": int(k)}
            found.append(Added(columns=names, alone_before=risk.sample_uniques, k_before=risk.k, **numbers))
    return tuple(found)
