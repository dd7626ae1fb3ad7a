"""A table of a span of days holds the rows of these days and no others, on every engine and for every kind of date."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from cloister.errors import InvalidDeclaration, UnknownColumn
from cloister.session.state.table_registry import with_columns
from cloister.tables import Aggregate, Aggregation, Date, During, Integer, Or, PrivateTable, prepare
from cloister.tables.expression.expressions import Column, Compare, IsNull, Literal
from cloister.tables.sourcing.reading import read_days
from tests.engines.conftest import Loader

UTC = datetime.UTC
WEST = datetime.timezone(datetime.timedelta(hours=-5))
FEBRUARY = ("day", "2028-02-01", "2028-02-29")
DAYS = ["2028-01-31", "2028-02-01", "2028-02-28", "2028-02-29", "2028-03-01", None, "2027-02-28"]
INSIDE = [1, 2, 3]
"""The places of the rows of February 2028, a leap year."""


def at(day: str | None, clock: str, zone: datetime.tzinfo | None) -> datetime.datetime | None:
    return None if day is None else datetime.datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=zone)


KINDS: Mapping[str, Sequence[Any]] = {
    "date": [None if day is None else datetime.date.fromisoformat(day) for day in DAYS],
    "text": DAYS,
    "timestamp": [at(day, "00:00:00", None) for day in DAYS],
    "timestamptz": [at(day, "00:00:00", UTC) for day in DAYS],
}


def found(source: Any, columns: Mapping[str, Any] | None = None, **options: Any) -> list[int]:
    table = PrivateTable(source, columns={"n": Integer(0, 99), **(columns or {})}, **{"during": FEBRUARY, **options})
    with prepare(table, secret="00ff") as prepared:
        return sorted(prepared.rows(["n"])["n"].tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_the_days_at_both_ends_are_in_and_their_neighbours_are_out(loader: Loader, kind: str) -> None:
    source = loader.load({"n": list(range(len(DAYS))), "day": list(KINDS[kind])}, {"n": "integer", "day": kind})
    assert found(source) == INSIDE, "the column need not be declared"
    narrow, wide = Date("2028-02-10", "2028-02-11"), Date("2028-02-01", "2028-02-29", nullable=True)
    assert found(source, {"day": narrow}) == INSIDE, "what is moved to a bound lies where it lay"
    assert found(source, {"day": wide}) == INSIDE
    assert found(source, during=("day", "2028-02-29", "2028-02-29")) == [3]
    with prepare(PrivateTable(source, columns={"n": Integer(0, 99)}, during=FEBRUARY)) as prepared:
        report = prepared.owner_report()
    assert (report.rows, report.rows_before, report.rows_after, report.rows_undated) == (3, 2, 1, 1)
    assert report.columns["n"].given == 3


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "text"])
def test_a_moment_is_of_its_own_day(loader: Loader, kind: str) -> None:
    """Midnight begins a day; a zone is turned to UTC first, that of a text as that of a time: a file's form moves no row."""
    zone = UTC if kind == "timestamptz" else None
    moments = [
        at("2028-01-31", "23:59:59.999999", zone),
        at("2028-02-01", "00:00:00", zone),
        at("2028-02-29", "23:59:59.999999", zone),
        at("2028-03-01", "00:00:00", zone),
    ]
    west = [at("2028-01-31", "19:00:00", WEST), at("2028-02-29", "18:59:59", WEST), at("2028-02-29", "19:00:00", WEST)]
    given: list[Any] = [*moments, *(west if kind == "timestamptz" else [])]
    if kind == "text":
        given = [str(each) for each in (*moments, *west)]
    source = loader.load({"n": list(range(len(given))), "day": given}, {"n": "integer", "day": kind})
    assert found(source) == {"timestamptz": [1, 2, 4, 5], "timestamp": [1, 2], "text": [1, 2, 4, 5]}[kind]


def test_what_is_no_day_is_in_no_window(loader: Loader) -> None:
    texts = ["2028-02-30", "", "02/03/2028", "2028-02-03", "yesterday", None, "0000-02-03", "2028-2-3"]
    source = loader.load({"n": list(range(len(texts))), "day": texts}, {"n": "integer", "day": "text"})
    assert found(source) == [3]
    assert found(source, during=("day", "0001-01-01", "9999-12-31")) == [3]
    with prepare(PrivateTable(source, columns={"n": Integer(0, 99)}, during=FEBRUARY)) as prepared:
        assert prepared.owner_report().rows_undated == len(texts) - 1


def test_windows_share_no_row_and_together_hold_every_dated_one(loader: Loader) -> None:
    """And each row is where its own date is, as the rules in Python read it."""
    days = [datetime.date(2027, 12, 25) + datetime.timedelta(days=step) for step in range(0, 430, 3)]
    source = loader.load({"n": list(range(len(days))), "day": days}, {"n": "integer", "day": "date"})
    spans = [
        ("2027-10-01", "2027-12-31"),
        ("2028-01-01", "2028-03-31"),
        ("2028-04-01", "2028-06-30"),
        ("2028-07-01", "2028-09-30"),
        ("2028-10-01", "2028-12-31"),
        ("2029-01-01", "2029-03-31"),
    ]
    columns = {"n": Integer(0, 999)}
    parts = [found(source, columns, during=("day", *span)) for span in spans]
    assert sorted(n for part in parts for n in part) == list(range(len(days)))
    for (first, last), part in zip(spans, parts, strict=True):
        low, high = read_days(first), read_days(last)
        assert part == [n for n, day in enumerate(days) if low <= read_days(day) <= high]  # type: ignore[operator]


def test_the_cap_counts_the_rows_of_the_window_alone(loader: Loader) -> None:
    """A person with many rows elsewhere loses none here, whatever those are."""
    days = ["2028-02-03", "2028-02-04", "2028-02-05", *(f"2028-03-{day:02}" for day in range(1, 30))]
    data = {"n": list(range(len(days))), "day": days, "who": ["ada"] * len(days)}
    source = loader.load(data, {"n": "integer", "day": "text", "who": "text"})
    assert found(source, unit="who", max_rows=3) == [0, 1, 2]
    kept = found(source, unit="who", max_rows=2)
    assert len(kept) == 2
    alone = {name: values[:3] for name, values in data.items()}
    short = loader.load(alone, {"n": "integer", "day": "text", "who": "text"})
    assert found(short, unit="who", max_rows=2) == kept, "which rows count does not depend on rows of another window"
    with prepare(
        PrivateTable(source, columns={"n": Integer(0, 99)}, unit="who", max_rows=2, during=FEBRUARY), secret="00ff"
    ) as prepared:
        report = prepared.owner_report()
    assert (report.rows, report.units_over_cap, report.rows_over_cap, report.rows_after) == (3, 1, 1, 29)


def test_no_condition_reaches_beyond_the_days(loader: Loader) -> None:
    source = loader.load({"n": list(range(len(DAYS))), "day": DAYS}, {"n": "integer", "day": "text"})
    columns = {"n": Integer(0, 99), "day": Date("2020-01-01", "2030-12-31", nullable=True)}
    with prepare(PrivateTable(source, columns=columns, during=FEBRUARY)) as prepared:
        for condition in (
            Compare("<", Column("day"), Literal("2028-02-01")),
            Compare(">", Column("day"), Literal("2028-02-29")),
            IsNull("day"),
        ):
            asked = Aggregation(prepared, condition, (), (Aggregate("n", "rows"),))
            assert prepared.aggregate(asked).values["n"].tolist() == [0]
        every = Or(IsNull("day"), Compare(">=", Column("n"), Literal(0)))
        assert prepared.aggregate(Aggregation(prepared, every, (), (Aggregate("n", "rows"),))).values["n"].tolist() == [3]


def test_a_declaration_with_fewer_columns_keeps_its_days() -> None:
    table = PrivateTable({"n": [1], "day": ["2028-02-03"]}, columns={"n": Integer(0, 9)}, during=FEBRUARY)
    assert with_columns(table, ["n"]).during == table.during == During(*FEBRUARY)
    assert table.describe()["during"] == list(FEBRUARY)
    assert "during=('day', '2028-02-01', '2028-02-29')" in repr(table)


def test_what_is_no_span_is_refused() -> None:
    def declared(during: Any) -> PrivateTable:
        return PrivateTable({"n": np.array([1]), "day": ["2028-02-03"]}, columns={"n": Integer(0, 9)}, during=during)

    for wrong in ("day", ("day", "2028-02-01"), ("day", "2028-02-30", "2028-03-01"), ("day", "2028-03-01", "2028-02-01"), 7):
        with pytest.raises(InvalidDeclaration, match="during="):
            declared(wrong)
    with pytest.raises(InvalidDeclaration, match="holds no dates"):
        declared(("n", "2028-02-01", "2028-02-29"))
    with pytest.raises(UnknownColumn, match="the source has only"):
        declared(("visited", "2028-02-01", "2028-02-29"))
