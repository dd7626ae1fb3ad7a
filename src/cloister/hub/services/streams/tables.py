"""Released steps of a stream as a table: in the workbench, the API and PostgreSQL clients, at no cost.

A row is a group of a step: `step`, `begins`, `ends`, the groups, and of each number its value, `…_margin` (at 95 %), `…_so_far`.
A number that is selected as it was released keeps its margin; what is computed from several has none of its own, for the noise of
two steps may be one.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import sqlglot
from sqlalchemy import select
from sqlalchemy.orm import Session as Db
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.decisions.policy import Object
from cloister.hub.hub import Caller, Hub
from cloister.hub.records.streams import HeldStream, StreamStep
from cloister.hub.releases.kinds import TableAnswer
from cloister.hub.releases.tables import FreeTable
from cloister.hub.services.streams.opening import columns_of, declared_of, labels_of, population_of, streams_of
from cloister.hub.services.streams.showing import lines_of, name_of
from cloister.privacy import PureDP
from cloister.query import Session
from cloister.session import Frame, Series
from cloister.tables import PublicTable

_STEPS, _LISTED, _OWN = 10_000, 50, 0.95
"""Steps of a table: the newest; of a longer stream the page has the rest as CSV."""


def tables(hub: Hub, db: Db, caller: Caller, sql: str | None) -> list[FreeTable]:
    """Streams that somebody sees and that have released a step; of a query those that it names."""
    found, words = list[FreeTable](), None if sql is None else sql.casefold()

    def named(row: HeldStream) -> bool:
        return bool(row.taken) and (words is None or name_of(row) in words)

    for row in streams_of(hub, db, caller, limit=_LISTED, which=named):
        newest = select(StreamStep.body).where(StreamStep.stream == row.id).order_by(StreamStep.number.desc())
        steps = list(db.scalars(newest.limit(1 if words is None else _STEPS)))[::-1]
        with suppress(CloisterError):  # an older one whose columns are no table takes none from the others
            found += [_table(row, name_of(row), steps)] if steps else []
    return found


def _table(row: HeldStream, name: str, steps: Sequence[Mapping[str, Any]]) -> FreeTable:
    table = PublicTable(_columns(steps))
    return FreeTable(
        which=Object(kind="stream", id=row.id, name=name, owner=row.owner),
        table=table,
        path=f"/streams/{row.id}",
        kind="stream",
        cost={population_of(row.id): str(declared_of(row).spend)},
        answered=partial(_answered, name, table, columns_of(steps[-1])[1], bool(declared_of(row).epsilon)),
    )


def _columns(steps: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """By column, a row for each group of each step."""
    keys, numbers = columns_of(steps[-1])
    found: dict[str, list[Any]] = {name: [] for name in labels_of(keys, numbers)}
    for step in steps:
        for line in lines_of(step):
            for name in ("step", "begins", "ends"):
                found[name].append(step[name])
            for name, value in zip(keys, line["keys"], strict=True):
                found[name].append(value)
            for name, told in zip(numbers, line["numbers"], strict=True):
                for end, part in (("", "value"), ("_margin", "margin"), ("_so_far", "so_far")):
                    found[f"{name}{end}"].append(None if told[part] is None else float(told[part]))
    return found


def _answered(
    name: str, table: PublicTable, numbers: Sequence[str], pure: bool, sql: str, confidence: float, dialect: str | None
) -> TableAnswer:
    """The query over released steps alone. Numbers that are selected as they are get their margin beside them."""
    plain = _plain(sql, name, numbers, dialect)
    with Session({name: table}, budget=PureDP(1)) as session:  # of a public table: nothing is charged
        answer = session.sql(plain[0] if plain else sql, dialect=dialect).table
    columns: dict[str, Series] = dict(answer.columns)
    times = NormalDist().inv_cdf((1 + confidence) / 2) / NormalDist().inv_cdf((1 + _OWN) / 2)
    if pure:  # a sum of Laplace noises lies between one of them and a normal one: the wider of the two
        times = max(times, math.log1p(-confidence) / math.log1p(-_OWN))
    found: dict[str, Series] = {}
    own = {f"{each}__margin" for each in plain[1]} if plain else set()
    for label, series in columns.items():
        if label in own:
            continue
        found[label] = series
        if f"{label}__margin" in own:
            widths = columns[f"{label}__margin"].values.astype(float) * times
            values = series.values.astype(float)
            found |= {f"{label}_low": Series("real", values - widths), f"{label}_high": Series("real", values + widths)}
            found[f"{label}_kind"] = Series("text", np.full(len(values), "measured", dtype=object))
    note = "Released steps: a query of them costs nothing. Margins are those of the numbers as they were released."
    return TableAnswer(table=Frame(found), statistics=plain[1] if plain else (), notes=(note,))


def _plain(sql: str, name: str, numbers: Sequence[str], dialect: str | None) -> tuple[str, tuple[str, ...]] | None:
    """A query of rows as they are, with the margins of its numbers beside them, and their names; None for any other. Which rows
    these are may be asked in any way: of each the numbers stay those that were released."""
    try:
        query = sqlglot.parse_one(sql, dialect=dialect or "duckdb")
    except SqlglotError:
        return None
    if not isinstance(query, exp.Select) or any(query.args.get(part) for part in ("group", "joins", "distinct", "with", "with_")):
        return None
    rows = query.args.get("from_") or query.args.get("from")
    if rows is None or not isinstance(rows.this, exp.Table) or rows.this.alias_column_names:
        return None
    spelt = {each.casefold(): each for each in numbers}  # no two columns differ in their case alone
    named = {
        each.alias_or_name: spelt.get(each.unalias().name.casefold())
        for each in query.expressions
        if isinstance(each.unalias(), exp.Column)
    }
    kept = tuple(label for label, column in named.items() if column)
    if not kept or len(named) != len(query.expressions):
        return None
    beside = {f"{label}{end}".casefold() for label in kept for end in ("_low", "_high", "_kind", "__margin")}
    if beside & {label.casefold() for label in named}:
        raise InvalidParameter(
            "The query is invalid",
            why="two columns would have one name: beside a number n stand n_low, n_high and n_kind",
            instead="another name for the column, with AS",
        )
    for label in kept:
        query = query.select(exp.alias_(exp.column(f"{named[label]}_margin", quoted=True), f"{label}__margin", quoted=True))
    return query.sql(dialect=dialect or "duckdb"), kept
