"""Random declarations, rows that may or may not keep to them, and one person more: the worlds that the fuzzer walks through."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloister as cl
from tests.security.worlds import ODD_DATES, ODD_NUMBERS, ODD_TEXTS

NAMES = ["age", "pay", "select", "a b", 'say "hi"', "naïve", "🤷", "Sex", "n", "count", "x;--", "%s", "年龄", "k0", "a'b"]
GHOST = "ghost"
SOURCES = ("dict", "csv", "parquet", "pandas", "polars", "arrow")

Row = dict[str, Any]
Load = Callable[[dict[str, list[Any]], dict[str, str]], Any]
"""Brings rows to an engine, with the kind of each column: what is the source there."""
_STORED = {"integer": "float", "real": "float", "boolean": "boolean"}


@dataclass(frozen=True, kw_only=True)
class Column:
    """A declared column: its kind, its declaration, and how rows come by values."""

    name: str
    kind: str
    domain: Any
    usual: Callable[[random.Random], Any]
    odd: list[Any]

    @property
    def sql(self) -> str:
        """The name as SQL says it."""
        return '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A private table and a second one of the same persons, where there is a unit."""

    columns: tuple[Column, ...]
    unit: str | None
    max_rows: int | None
    source: str
    rows: list[Row]
    ghosts: list[Row]
    malformed: list[str]
    size: int | None

    def tables(self, folder: Path, *, ghost: bool, load: Load | None = None) -> dict[str, cl.PrivateTable]:
        """The table with or without the person more, at the same place; in another engine where `load` brings it there."""
        rows = [*self.rows, *self.ghosts] if ghost else self.rows
        declared: dict[str, Any] = {"population": "all", "version": "1", "size": self.size}
        if self.unit is not None:
            declared |= {"unit": self.unit, "max_rows": self.max_rows}
        columns = {each.name: each.domain for each in self.columns}
        source = self._source(rows, folder, ghost=ghost) if load is None else self._loaded(rows, load)
        return {"t": cl.PrivateTable(source, columns=columns, **declared)}

    def _loaded(self, rows: list[Row], load: Load) -> Any:
        """The rows in a database, whose types are public."""
        kinds = {"who": "text", **{each.name: _STORED.get(each.kind, "text") for each in self.columns}}
        return load({name: [_stored(kind, row[name]) for row in rows] for name, kind in kinds.items()}, kinds)

    def _source(self, rows: list[Row], folder: Path, *, ghost: bool) -> Any:
        names = ["who", *(each.name for each in self.columns)]
        if self.source == "csv":
            path = folder / "t.csv"
            with path.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(names)
                writer.writerows([_printed(row[name]) for name in names] for row in rows)
                file.writelines(line + "\n" for line in (self.malformed if ghost else ()))
            return path
        if self.source == "dict":
            return {name: [row[name] for row in rows] for name in names}
        return self._typed(rows, names, folder)

    def _typed(self, rows: list[Row], names: list[str], folder: Path) -> Any:
        """A frame or a file of types that are public: what a value of another type would have to be is missing."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {"who": pa.string(), **{each.name: _ARROW[each.kind] for each in self.columns}}
        arrays = [pa.array([_cast(types[name], row[name]) for row in rows], type=types[name]) for name in names]
        table = pa.table(dict(zip(names, arrays, strict=True)))
        if self.source == "parquet":
            pq.write_table(table, folder / "t.parquet")
            return folder / "t.parquet"
        if self.source == "arrow":
            return table
        if self.source == "polars":
            import polars as pl

            return pl.from_arrow(table)
        import pandas as pd

        return table.to_pandas(types_mapper=pd.ArrowDtype)


def _pa(name: str) -> Any:
    import pyarrow as pa

    return getattr(pa, name)()


class _Types(dict[str, Any]):
    def __missing__(self, kind: str) -> Any:
        return _pa({"integer": "float64", "real": "float64", "boolean": "bool_"}.get(kind, "string"))


_ARROW = _Types()


def _cast(kind: Any, value: Any) -> Any:
    name = str(kind)
    if value is None:
        return None
    if name == "double":
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if name == "bool":
        return value if isinstance(value, bool) else None
    return str(value).replace("\x00", "␀")  # an Arrow text may hold NUL; the engine refuses such a file whoever is in it


def _stored(kind: str, value: Any) -> Any:
    if value is None or (kind == "boolean" and not isinstance(value, bool)):
        return None
    if kind == "float":
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return str(value).replace("\x00", "␀") if kind == "text" else value


def _printed(value: Any) -> str:
    return "" if value is None else str(value).replace("\x00", "")


def schema(seed: int) -> Schema:
    """A declaration, a few persons, and one who has whatever may be had."""
    draw = random.Random(seed)
    names = draw.sample(NAMES, draw.randint(3, 6))
    kinds = ["category", "integer", "real", *(draw.choice(list(_KINDS)) for _ in names[3:])]
    columns = tuple(_KINDS[kind](draw, name) for name, kind in zip(names, kinds, strict=True))
    unit = draw.choice([None, "who", "who"])
    most = draw.choice([1, 2, 5]) if unit else None
    source = SOURCES[seed % len(SOURCES)]
    rows = [
        _row(draw, columns, f"p{person}", odd=0.05)
        for person in range(draw.choice([0, 1, 7, 12]))
        for _ in range(draw.choice([0, 1, 3, 8]) if unit else 1)
    ]
    count = draw.choice([1, 3, 40]) if unit else 1
    ghosts = [_row(draw, columns, GHOST, odd=draw.choice([0.0, 0.3, 0.9])) for _ in range(count)]
    if unit and draw.random() < 0.5:
        ghosts = [dict(ghosts[0]) for _ in ghosts]
    malformed = draw.choice([[], ["a"], [",".join(["1"] * 40)], ['"', "\x01\x02"], ["=1+1," * 3]]) if unit is None else []
    return Schema(
        columns=columns, unit=unit, max_rows=most, source=source, rows=rows, ghosts=[] if malformed else ghosts,
        malformed=malformed, size=draw.choice([None, 10, 10**6]),
    )  # fmt: skip


def _row(draw: random.Random, columns: tuple[Column, ...], who: str, *, odd: float) -> Row:
    values = {each.name: draw.choice(each.odd) if draw.random() < odd else each.usual(draw) for each in columns}
    return {"who": who, **values}


def _integer(draw: random.Random, name: str) -> Column:
    low, high = draw.choice([(0, 1), (17, 90), (-5, 5), (-1000, -990), (0, 10**6), (2**40, 2**40 + 3)])
    domain = cl.Integer(low, high, nullable=draw.random() < 0.3)
    return Column(
        name=name, kind="integer", domain=domain, odd=ODD_NUMBERS, usual=lambda d: d.choice([low, high, (low + high) // 2])
    )


def _real(draw: random.Random, name: str) -> Column:
    low, high, step = draw.choice([(0, 1, "0.5"), (-5, 100, "0.25"), (-0.3, 0.3, "0.1"), (0, 10**6, 1000), (1, 2, "1/3")])
    domain = cl.Real(low, high, step=step, nullable=draw.random() < 0.3)
    return Column(name=name, kind="real", domain=domain, odd=ODD_NUMBERS, usual=lambda d: d.choice([low, high, (low + high) / 3]))


def _category(draw: random.Random, name: str) -> Column:
    values = draw.choice([["a", "b"], ["only"], ["F", "M", "x'y", '"'], ["🤷", "naïve", "%", "_"], list("abcdefghij")])
    domain = cl.Category(values, nullable=draw.random() < 0.4)
    return Column(name=name, kind="category", domain=domain, odd=ODD_TEXTS, usual=lambda d: d.choice(values))


def _boolean(draw: random.Random, name: str) -> Column:
    return Column(
        name=name, kind="boolean", domain=cl.Boolean(nullable=draw.random() < 0.5), odd=[None, "maybe", 7],
        usual=lambda d: d.choice([True, False]),
    )  # fmt: skip


def _date(draw: random.Random, name: str) -> Column:
    days = ["2024-01-01", "2024-02-29", "2024-03-31"]
    domain = cl.Date("2024-01-01", "2024-03-31", nullable=draw.random() < 0.3)
    return Column(name=name, kind="date", domain=domain, odd=ODD_DATES, usual=lambda d: d.choice(days))


def _text(draw: random.Random, name: str) -> Column:
    return Column(name=name, kind="text", domain=cl.Text(), odd=ODD_TEXTS, usual=lambda d: d.choice(["u", "v", "wörd"]))


_KINDS: dict[str, Callable[[random.Random, str], Column]] = {
    "category": _category,
    "integer": _integer,
    "real": _real,
    "boolean": _boolean,
    "date": _date,
    "text": _text,
}
