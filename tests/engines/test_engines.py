"""One suite for the three engines: nasty rows, exact answers, equality with plain Python."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import EngineError
from cloister.tables import (
    Aggregate,
    Aggregation,
    And,
    Between,
    Binned,
    Boolean,
    Category,
    Column,
    Compare,
    Date,
    Domain,
    In,
    Integer,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    PrivateTable,
    Real,
    Text,
    prepare,
)
from cloister.tables.engines.compiler import CompiledQuery
from cloister.tables.engines.engine import Offenders
from cloister.tables.sourcing.preparation import LONGEST_OFFENDER

from . import reference
from .conftest import Loader

SECRET = "5ec2e7"
HOSTILE = [
    "'",
    '"',
    "\\",
    "\\'",
    "'; DROP TABLE people; --",
    "${x}",
    "%s",
    "{}",
    "a\nb",
    "🎉",
    "é",
    "e\u0301",
    "%",
    "_",
    "\\%",
    " ",
    "",
    "NULL",
]


def ask(prepared: Any, keys: Sequence[Any] = (), **options: Any) -> dict[tuple[Any, ...], dict[str, int]]:
    """The groups of a request as a dictionary, so that order does not matter."""
    aggregates = tuple(options.pop("aggregates", (Aggregate("n", "rows"),)))
    groups = prepared.aggregate(Aggregation(prepared, keys=tuple(keys), aggregates=aggregates, **options))
    columns = [key.tolist() for key in groups.keys]
    rows = zip(*columns, strict=True) if columns else iter([()])
    found = {key: {name: int(values[i]) for name, values in groups.values.items()} for i, key in enumerate(rows)}
    assert len(found) == len(groups)
    return found


def check(
    loader: Loader,
    columns: Mapping[str, Domain],
    data: Mapping[str, Sequence[Any]],
    kinds: Mapping[str, str],
    requests: Sequence[Any],
    **unit: Any,
) -> None:
    """Each request answered as the reference answers it."""
    table = PrivateTable(loader.load(data, kinds), columns=columns, **unit)
    expected = reference.prepared(columns, data, unit.get("unit"), SECRET)
    with prepare(table, secret=SECRET) as prepared:
        for request in requests:
            assert ask(prepared, **request) == reference.aggregate(
                columns, expected, **{"aggregates": (Aggregate("n", "rows"),), **request}
            ), request
        rows = prepared.rows(list(columns), max_rows=2**31 - 1 if unit else None)
        found = sorted(repr(row) for row in zip(*(rows[name].tolist() for name in columns), strict=True))
        kept = [
            tuple(
                domain.null_code if row[name] is None and not isinstance(domain, Text) else row[name]
                for name, domain in columns.items()
            )
            for row in expected
        ]
        assert found == sorted(map(repr, kept))


NUMBER_TEXTS = [
    "1", " 2 ", "+3", "-4", "5.", ".5", "1e1", "1E+1", "1e-400", "1e400", "-1e400", "0e99999", "1e99999", "-1e99999",
    "1e00001", "1_0", "0x10",
    "1d", "1f", "NaN", "inf", "-Infinity", "", " ", "-", "1e", "--1", "1,5", "٣", "5\n", "\t6", "99999999999999999999999999",
    "9" * 299, "9" * 301,
    "2.5", "3.5", "-2.5", "0.49999999999999994", "1e308", "-1e308", "4.35", "0.285", "1.005", "\xa07", "True", None,
]  # fmt: skip
FLOATS = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    4.35,
    0.285,
    1.005,
    1e308,
    -1e308,
    5e-324,
    float("nan"),
    float("inf"),
    float("-inf"),
    None,
    1e15,
    99.995,
]


def twins(data: Mapping[str, Sequence[Any]], kinds: Mapping[str, str], domains: Sequence[Domain]) -> tuple[Any, Any, Any]:
    """Each source column once for each domain, so that one preparation shows them all."""
    columns = {f"{name}{i}": domain for name in data for i, domain in enumerate(domains)}
    names = {f"{name}{i}": name for name in data for i in range(len(domains))}
    return columns, {new: data[old] for new, old in names.items()}, {new: kinds[old] for new, old in names.items()}


def test_numbers_of_every_spelling(loader: Loader) -> None:
    domains = [
        Integer(0, 10),
        Integer(-5, 10**12, nullable=True),
        Integer(-(2**61), 2**61),
        Real(0, 100, step="0.01"),
        Real(-1, 1),
        Real(0, 3, step="1/3"),
        Real("0.5", "9.5", step=1),
        Real(-(10**6), 10**6, step=1000),
        Category([1, 2, 5]),
    ]
    data = {"text": NUMBER_TEXTS, "float": (FLOATS * 3)[: len(NUMBER_TEXTS)]}
    check(loader, *twins(data, {"text": "text", "float": "float"}, domains), [])


def test_integers_and_decimals(loader: Loader) -> None:
    data = {
        "i": [0, 1, -1, 2**62, -(2**63), 2**63 - 1, None, 7],
        "d": [
            decimal.Decimal(x) if x else None for x in ("0", "1.5", "2.5", "-2.5", "9" * 27, "-" + "9" * 27, None, "0.1000000001")
        ],
    }
    domains = [Integer(-3, 5), Integer(-(2**61), 2**61), Real(-10, 10, step="0.1"), Category([0, 1])]
    check(loader, *twins(data, {"i": "integer", "d": "decimal"}, domains), [])


def test_days_of_every_spelling(loader: Loader) -> None:
    texts = [
        "2020-02-29", "2019-02-29", "2020-02-30", "2020-13-01", "2020-00-10", "2020-04-31", "2020-04-30", " 2020-01-01",
        "0000-01-01", "0001-01-01",
        "9999-12-31", "2020-1-1", "20200101", "2020-01-01T23:59:59Z", "2020-01-01 23:59:59.5+02:00", "2020-01-01x",
        "2020-01-01T01:30+02:00", "2020-01-01 22:30-02", "2020-01-01T01:30 +02:00", "2020-01-01T25:30+02:00",
        "0001-01-01T00:00+14:00", "9999-12-31T23:59:60-14:00", " 2019-12-31T23:00:00.123-01:00 ",
        "2020-02-30T01:30+02:00", "2020-01-01T01:30Z",
        "1900-02-29", "2000-02-29",
        "infinity", "", "now", "today", None,
    ]  # fmt: skip
    days = [datetime.date(1969, 12, 31), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, datetime.date(2000, 2, 29)]
    times = [
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(1900, 1, 1),
        None,
        datetime.datetime(2020, 1, 1, 0, 0),
    ]
    zoned = [None if time is None else time.replace(tzinfo=datetime.UTC) for time in times]
    zoned[3] = datetime.datetime(2020, 1, 1, 1, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    n = len(texts)
    data = {"t": texts, "d": (days * n)[:n], "s": (times * n)[:n], "z": (zoned * n)[:n]}
    kinds = {"t": "text", "d": "date", "s": "timestamp", "z": "timestamptz"}
    check(loader, *twins(data, kinds, [Date("0001-01-01", "9999-12-31"), Date("1950-01-01", "2020-01-01", nullable=True)]), [])


def test_truth_of_every_spelling(loader: Loader) -> None:
    texts = [
        "true",
        "TRUE",
        "t",
        " yes ",
        "Y",
        "1",
        "false",
        "No",
        "n",
        "0",
        "f",
        "on",
        "2",
        "",
        "tru",
        "\tTrue\n",
        "\x0b\x0cF",
        "ff",
        None,
    ]
    n = len(texts)
    data = {"t": texts, "b": ([True, False, None] * n)[:n], "i": ([1, 0, None, 2, -1] * n)[:n]}
    kinds = {"t": "text", "b": "boolean", "i": "integer"}
    check(loader, *twins(data, kinds, [Boolean(), Boolean(nullable=True), Category([True, False]), Category([True])]), [])


def test_a_long_list_of_categories(loader: Loader) -> None:
    texts = [f"{i}'\\\"{chr(0x1F400 + i)}${{x}}" for i in range(300)]
    check(loader, {"t": Category(texts), "i": Category(list(range(0, 900, 3)))}, {"t": [*texts, "", None], "i": list(range(302))},
          {"t": "text", "i": "integer"}, [{"keys": ("t",)}] if loader.name == "duckdb" else [])  # fmt: skip


def test_hostile_texts_and_names(loader: Loader) -> None:
    texts = [*HOSTILE, None, *(["a\0b"] if loader.holds_nul else ["ab"])]
    name, other = 'x"; DROP TABLE people; --', "🎉 `é` %s ${x}"
    data = {name: texts, other: texts}
    columns = {name: Category([text for text in HOSTILE if text != "é"], nullable=True), other: Text(nullable=True)}
    wheres = [Compare("=", Column(other), Literal(text)) for text in [*HOSTILE, "a\0b"]]
    wheres += [Compare("!=", Column(name), Literal(text)) for text in HOSTILE] + [
        In(other, [*HOSTILE, None]),
        Not(In(other, HOSTILE[:3])),
    ]
    patterns = ["%", "_", "\\%", "%\\%", "%'%", "_%_", "", "a%b", "%\n%", "%DROP%", "🎉", "é", "__", "%a\0%", "%a%b%", "%$%_%"]
    wheres += [Like(column, pattern) for pattern in patterns for column in (name, other)]
    if loader.name == "spark":
        wheres = [*wheres[::4], Like(other, "%\\%"), *wheres[-4:]]
    requests: list[Any] = [{"keys": (name, other)}, {"keys": (other,)}, *({"where": where} for where in wheres)]
    check(loader, columns, data, {name: "text", other: "text"}, requests)


@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_no_rows_and_one(loader: Loader, rows: int) -> None:
    data = {"age": [39, 40][:rows], "name": ["Ann", "Bob"][:rows], "person": ["p", "q"][:rows]}
    columns: dict[str, Domain] = {"age": Integer(0, 120), "name": Text()}
    every = (
        Aggregate("n", "rows"), Aggregate("v", "values", (("age", 0), ("name", 0))), Aggregate("u", "units"),
        Aggregate("s", "sum", (("age", 3),)),
        Aggregate("wide", "sum", (("age", -(10**12)), ("age", 10**12))),
    )  # fmt: skip
    requests = [{"aggregates": every}, {"aggregates": every, "keys": ("age", "name")}, {"aggregates": every, "max_rows": 1}]
    kinds = {"age": "integer", "name": "text", "person": "text"}
    check(loader, columns, data, kinds, requests, unit="person", max_rows=1)
    check(loader, columns, data, kinds, requests[:2])


def test_columns_of_nothing_but_null(loader: Loader) -> None:
    data: dict[str, list[Any]] = {"a": [None] * 3, "b": [None] * 3, "c": [None] * 3}
    columns: dict[str, Domain] = {"a": Integer(0, 9, nullable=True), "b": Real(0, 9), "c": Text(nullable=True)}
    requests = [
        {"keys": ("a", "c")},
        {"keys": ("b",)},
        {"aggregates": (Aggregate("s", "sum", (("a", 0),)), Aggregate("v", "values", (("b", 0),)))},
    ]
    check(loader, columns, data, {"a": "integer", "b": "float", "c": "text"}, requests)


def test_sums_beyond_64_bits_are_exact(loader: Loader) -> None:
    top = 2**61
    data = {"x": [top, top, top, -top, top, 1], "y": [3, 3, 3, 3, 3, None]}
    columns: dict[str, Domain] = {"x": Integer(-top, top), "y": Integer(0, 3)}
    sums = (
        Aggregate("one", "sum", (("x", 0),)), Aggregate("two", "sum", (("x", -top), ("y", 1))),
        Aggregate("square", "sum", (("y", -(2**40)), ("y", 2**40))),
        Aggregate("tall", "sum", (("x", 0), ("y", -(2**10)))), Aggregate("far", "sum", (("y", 2**62),)),
    )  # fmt: skip
    check(loader, columns, data, {"x": "integer", "y": "integer"}, [{"aggregates": sums}, {"aggregates": sums, "keys": ("y",)}])


def test_many_groups(loader: Loader) -> None:
    size = {"duckdb": 1_000_000, "postgres": 100_000, "spark": 20_000}[loader.name]
    numbers = list(range(size))
    with prepare(PrivateTable(loader.load({"id": numbers}, {"id": "integer"}), columns={"id": Integer(0, size)})) as prepared:
        groups = prepared.aggregate(Aggregation(prepared, keys=("id",), aggregates=(Aggregate("s", "sum", (("id", 0),)),)))
    assert len(groups) == size
    assert np.array_equal(groups.keys[0], groups.values["s"])
    assert int(groups.values["s"].sum()) == size * (size - 1) // 2


def test_bins(loader: Loader) -> None:
    data = {
        "age": [-1, 0, 17, 18, 64, 65, 90, 120, 121, None],
        "pay": [0.0, 0.005, 0.01, 1.0, 2.0, 2.5, 3.0, None, float("nan"), 9.0],
    }
    columns: dict[str, Domain] = {"age": Integer(-10, 130, nullable=True), "pay": Real(0, 3, step="0.01")}
    with prepare(PrivateTable(loader.load(data, {"age": "integer", "pay": "float"}), columns=columns)) as prepared:
        assert ask(prepared, keys=(Binned("age", [0, 18, 65, 120]),)) == {
            (0,): {"n": 2},
            (1,): {"n": 2},
            (2,): {"n": 3},
            (3,): {"n": 1},
        }
        assert ask(prepared, keys=(Binned("pay", ["0.005", "0.015", 2, 3]),)) == {(0,): {"n": 2}, (1,): {"n": 1}, (2,): {"n": 4}}
        many = Binned("age", list(range(121)))
        assert sum(row["n"] for row in ask(prepared, keys=(many,)).values()) == 8


def test_adding_a_person_moves_nobody(loader: Loader) -> None:
    """The rows of one person that count are the same whether or not another person is there."""
    columns: dict[str, Domain] = {"x": Integer(0, 1000), "t": Text()}
    person = {"x": list(range(40)), "t": [f"t{i % 7}" for i in range(40)], "p": ["a"] * 20 + ["b"] * 20}
    both = {"x": [*person["x"], *range(500, 530)], "t": [*person["t"], *(["z"] * 30)], "p": [*person["p"], *(["c"] * 30)]}
    kept = []
    for data in (person, both):
        table = PrivateTable(loader.load(data, {"x": "integer", "t": "text", "p": "text"}), columns=columns, unit="p", max_rows=5)
        with prepare(table, secret=SECRET) as prepared:
            kept.append({int(x) for x in prepared.rows(["x"])["x"]})
            shuffled = {name: list(reversed(values)) for name, values in data.items()}
        again = PrivateTable(
            loader.load(shuffled, {"x": "integer", "t": "text", "p": "text"}), columns=columns, unit="p", max_rows=5
        )
        with prepare(again, secret=SECRET) as prepared:
            assert {int(x) for x in prepared.rows(["x"])["x"]} == kept[-1]
    assert kept[0] == {x for x in kept[1] if x < 500}
    assert len(kept[0]) == 10


def test_the_cap_acts_before_where_and_depends_on_the_secret(loader: Loader) -> None:
    data = {"x": list(range(100)), "p": [1] * 100}
    table = PrivateTable(
        loader.load(data, {"x": "integer", "p": "integer"}), columns={"x": Integer(0, 99)}, unit="p", max_rows=10
    )
    kept = []
    for secret in ("aa", "bb"):
        with prepare(table, secret=secret) as prepared:
            kept.append({int(x) for x in prepared.rows(["x"])["x"]})
            below = Compare("<", Column("x"), Literal(50))
            assert ask(prepared, where=below, max_rows=10) == {(): {"n": sum(x < 50 for x in kept[-1])}}
    assert kept[0] != kept[1]
    assert len(kept[0]) == len(kept[1]) == 10


def test_units_may_be_numbers_floats_days_or_text(loader: Loader) -> None:
    columns: dict[str, Domain] = {"x": Integer(0, 9)}
    for kind, units in {
        "integer": [-1, -1, -(2**62), None],
        "float": [1.0, 1.0, 2.5, float("nan")],
        "text": ["", "", "'", None],
        "date": [datetime.date(2020, 1, 1)] * 2 + [datetime.date(2020, 1, 2), None],
    }.items():
        table = PrivateTable(
            loader.load({"x": [1, 2, 3, 4], "p": units}, {"x": "integer", "p": kind}), columns=columns, unit="p", max_rows=1
        )
        with prepare(table, secret=SECRET) as prepared:
            every = (Aggregate("n", "rows"), Aggregate("u", "units"))
            assert ask(prepared, aggregates=every, max_rows=9) == {(): {"n": 3, "u": 2}}, kind
            assert ask(prepared, aggregates=every) == {(): {"n": 2, "u": 2}}, kind
            assert sorted(np.unique(prepared.rows(["x"], max_rows=5, unit=True)["unit"], return_counts=True)[1].tolist()) == [
                1,
                2,
            ]


def test_the_owner_report(loader: Loader) -> None:
    data = {"a": ["1", "x" * 90, "500", None], "p": ["a", "a", "a", None]}
    table = PrivateTable(loader.load(data, {"a": "text", "p": "text"}), columns={"a": Integer(0, 120)}, unit="p", max_rows=1)
    with prepare(table, secret=SECRET) as prepared:
        report, offenders = prepared.owner_report(), prepared.owner_offenders()
    assert offenders["a"] == Offenders(nulled=(("x" * (LONGEST_OFFENDER + 1), 1),), clamped=(("500", 1),))
    assert (report.rows, report.rows_without_unit, report.units_over_cap, report.rows_over_cap) == (4, 1, 1, 2)
    assert (report.columns["a"].given, report.columns["a"].nulled, report.columns["a"].clamped) == (3, 1, 1)


def test_like_ends(loader: Loader) -> None:
    """A LIKE that goes back to every % would not."""
    texts = ["a" * 300, "a" * 299 + "b", "a$b\\.%_(", None]
    hostile = {"%a" * 40 + "%!": 0, "%a" * 40 + "b": 1, "%_" * 40 + "!": 0, "%_" * 40: 2, "a%$%\\%(": 1, "a_b%.%": 1}
    with prepare(PrivateTable(loader.load({"note": texts}, {"note": "text"}), columns={"note": Text()})) as prepared:
        for pattern, count in hostile.items():
            found = prepared.aggregate(Aggregation(prepared, Like("note", pattern)))
            assert found.values["rows"].tolist() == [count], pattern


def test_units_that_are_equal_are_one_whatever_their_type(loader: Loader) -> None:
    """The rows that count are those of the text of the unit, so one engine may hold it as it likes."""
    units = [unit for unit in range(40) for _ in range(4)]
    values = [i % 4 + 10 * (i % 3) for i in range(len(units))]
    found = []
    for kind, made in {"integer": int, "float": float, "decimal": decimal.Decimal, "text": str}.items():
        source = loader.load({"who": [made(unit) for unit in units], "x": values}, {"who": kind, "x": "integer"})
        with prepare(PrivateTable(source, columns={"x": Integer(0, 99)}, unit="who", max_rows=1), secret="00ff") as prepared:
            found.append(sorted(prepared.rows(["x"])["x"].tolist()))
    assert found == [found[0]] * 4
    with prepare(
        PrivateTable({"who": units, "x": values}, columns={"x": Integer(0, 99)}, unit="who", max_rows=1), secret="00ff"
    ) as ours:
        assert sorted(ours.rows(["x"])["x"].tolist()) == found[0]


def test_a_failure_says_nothing_of_the_rows(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    table = PrivateTable(loader.load({"name": ["Secret Person"]}, {"name": "text"}), columns={"name": Text()})
    with prepare(table) as prepared:
        plan = CompiledQuery("SELECT CAST(c0 AS INTEGER) FROM cloister_prepared_rows", ("code",))
        monkeypatch.setattr(prepared, "plan", lambda _: plan)
        with pytest.raises(EngineError) as caught:
            prepared.aggregate(Aggregation(prepared))
    assert "Secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    with pytest.raises(EngineError, match="closed"):
        prepared.rows(["name"])


COLUMNS: dict[str, Domain] = {
    "age": Integer(0, 9, nullable=True),
    "pay": Real("0.25", "5.25", step="0.5"),
    "low": Real(0, 6, step="0.75"),
    "sex": Category(["F", "M", "x"], nullable=True),
    "code": Category([3, 1, 2]),
    "born": Date("2020-01-01", "2020-01-09"),
    "sick": Boolean(nullable=True),
    "note": Text(nullable=True),
}
SOURCE_KINDS = {
    "age": "integer", "pay": "float", "low": "text", "sex": "text", "code": "integer", "born": "date", "sick": "boolean",
    "note": "text", "p": "text",
}  # fmt: skip
VALUES = {
    "age": st.integers(-3, 12),
    "pay": st.sampled_from([*FLOATS, 0.25, 0.5, 0.75, 1.0, 3.3]),
    "low": st.sampled_from([text for text in NUMBER_TEXTS if text is not None]),
    "sex": st.sampled_from(["F", "M", "x", "y", ""]),
    "code": st.integers(0, 4),
    "born": st.dates(datetime.date(2019, 12, 30), datetime.date(2020, 1, 11)),
    "sick": st.booleans(),
    "note": st.sampled_from(HOSTILE),
    "p": st.sampled_from(["a", "b", "c"]),
}


@st.composite
def tables_of_rows(draw: st.DrawFn) -> dict[str, list[Any]]:
    n = draw(st.integers(0, 25))
    return {name: draw(st.lists(st.none() | values, min_size=n, max_size=n)) for name, values in VALUES.items()}


def conditions() -> st.SearchStrategy[Any]:
    ops = st.sampled_from(list(reference.COMPARISONS))
    numbers = st.sampled_from([-1, 0, 1, 2, 3, 9, 10, 0.25, 0.3, 0.5, 1.25, 5.25, 10**30, -(10**30)])
    days = st.dates(datetime.date(2019, 12, 30), datetime.date(2020, 1, 11))
    literal = {
        "age": numbers, "pay": numbers, "low": numbers, "code": numbers, "born": days,
        "sex": st.sampled_from(["F", "M", "G", ""]), "sick": st.booleans(), "note": st.sampled_from([*HOSTILE, "b"]),
    }  # fmt: skip
    simple: list[st.SearchStrategy[Any]] = []
    for name, values in literal.items():
        op = ops if name != "note" else st.sampled_from(["=", "!="])
        boxed = (values | st.none() if name != "born" else values).map(Literal)
        simple.append(st.builds(Compare, op, st.just(Column(name)), boxed))
        simple.append(st.builds(Compare, op, boxed, st.just(Column(name))))
        simple.append(st.builds(In, st.just(Column(name)), st.lists(values | st.none(), min_size=1, max_size=3)))
        simple.append(st.just(IsNull(name)))
    simple.append(st.builds(Between, st.sampled_from(["age", "pay", "low"]), numbers, numbers))
    simple.append(
        st.builds(lambda op, a, b: Compare(op, Column(a), Column(b)), ops, *[st.sampled_from(["age", "pay", "low"])] * 2)
    )
    simple.append(st.builds(Like, st.sampled_from(["sex", "note"]), st.sampled_from(["%", "_", "F%", "%'%", "", "\\%"])))
    simple.append(st.sampled_from([Column("sick"), Literal(True), Literal(False), Literal(None)]))
    return st.recursive(
        st.one_of(simple),
        lambda inner: st.builds(Not, inner) | st.builds(And, inner, inner) | st.builds(Or, inner, inner),
        max_leaves=5,
    )


@st.composite
def requests_of(draw: st.DrawFn) -> dict[str, Any]:
    numeric = ["age", "pay", "low", "code"]
    factors = draw(st.lists(st.tuples(st.sampled_from(numeric), st.integers(-5, 5)), min_size=1, max_size=3))
    return {
        "where": draw(st.none() | conditions()),
        "keys": tuple(draw(st.lists(st.sampled_from(list(COLUMNS)), max_size=3, unique=True))),
        "aggregates": (
            Aggregate("n", "rows"),
            Aggregate("u", "units"),
            Aggregate("s", "sum", tuple(factors)),
            Aggregate("v", "values", tuple(factors)),
        ),
        "max_rows": draw(st.sampled_from([1, 2, 100])),
    }


@given(table=tables_of_rows(), requests=st.lists(requests_of(), min_size=4, max_size=12))
@settings(max_examples=10)
def test_generated_tables_on_duckdb(table: Any, requests: Any) -> None:
    from .conftest import DuckDBLoader

    check(DuckDBLoader(), COLUMNS, table, SOURCE_KINDS, requests, unit="p", max_rows=2)


@pytest.mark.slow
@given(table=tables_of_rows(), requests=st.lists(requests_of(), min_size=4, max_size=12))
@settings(max_examples=200)
def test_many_generated_tables_on_duckdb(table: Any, requests: Any) -> None:
    from .conftest import DuckDBLoader

    check(DuckDBLoader(), COLUMNS, table, SOURCE_KINDS, requests, unit="p", max_rows=2)


@pytest.mark.postgres
@given(table=tables_of_rows(), requests=st.lists(requests_of(), min_size=4, max_size=12))
@settings(max_examples=6)
def test_generated_tables_on_postgres(postgres_server: str, table: Any, requests: Any) -> None:
    from .conftest import PostgresLoader

    check(PostgresLoader(postgres_server), COLUMNS, table, SOURCE_KINDS, requests, unit="p", max_rows=2)


@pytest.mark.slow
@pytest.mark.postgres
@given(table=tables_of_rows(), requests=st.lists(requests_of(), min_size=4, max_size=12))
@settings(max_examples=120)
def test_many_generated_tables_on_postgres(postgres_server: str, table: Any, requests: Any) -> None:
    from .conftest import PostgresLoader

    check(PostgresLoader(postgres_server), COLUMNS, table, SOURCE_KINDS, requests, unit="p", max_rows=2)


@pytest.mark.spark
@given(table=tables_of_rows(), requests=st.lists(requests_of(), min_size=4, max_size=6))
@settings(max_examples=3)
def test_generated_tables_on_spark(spark_session: Any, table: Any, requests: Any) -> None:
    from .conftest import SparkLoader

    check(SparkLoader(spark_session), COLUMNS, table, SOURCE_KINDS, requests, unit="p", max_rows=2)
