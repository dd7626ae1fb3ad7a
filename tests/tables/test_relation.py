"""Relations: what they mean, how many rows of a unit they have, and that nobody's rows depend on anybody else's."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import ibis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloister.errors import CloisterError, EngineError, InvalidParameter, UnknownColumn, UnknownTable, UnsupportedQuery
from cloister.tables import (
    Aggregation,
    And,
    Base,
    Capped,
    Column,
    Compare,
    Extended,
    Filtered,
    Followed,
    Identifier,
    Integer,
    KeyJoined,
    Literal,
    Numbered,
    PerUnit,
    Prepared,
    PrivateTable,
    Projected,
    PublicJoined,
    PublicTable,
    Relation,
    Stacked,
    UnitAggregate,
    UnitJoined,
    prepare,
    relate,
)
from cloister.tables.engines import engine
from cloister.tables.engines.duckdb import DuckDBPrepared
from cloister.tables.expression.scalar import Ref
from cloister.tables.relations.derived import RowNumber

from . import relations
from .relations import SECRET, Data, Recipe, as_bag, check_bounds, everything, meaning, prepared_rows, recipes, tables_of, without


@contextmanager
def opened(rows: Data) -> Iterator[tuple[dict[str, Any], dict[str, Prepared]]]:
    """The tables, declared and prepared."""
    tables = tables_of(rows)
    with ExitStack() as stack:
        yield tables, {name: stack.enter_context(prepare(table, secret=SECRET)) for name, table in tables.items()}


def compare(rows: Data, recipe: Recipe) -> None:
    """The engine's rows are the reference's rows, within bounds; nobody's rows change when one unit goes."""
    with opened(rows) as (tables, prepared):
        relation = recipe(tables)
        found = everything(relate(relation, prepared))
    assert as_bag(found) == as_bag(meaning(relation, prepared_rows(rows)))
    check_bounds(relation, found)


def neighbours(rows: Data, recipe: Recipe) -> None:
    units = sorted({str(row["who"]) for name in ("visits", "tests") for row in rows[name] if row["who"] is not None})
    with opened(rows) as (tables, prepared):
        relation = recipe(tables)
        found = everything(relate(relation, prepared))
    check_bounds(relation, found)
    for unit in units:
        with opened(without(rows, unit)) as (tables, prepared):
            other = recipe(tables)
            left = everything(relate(other, prepared))
        assert {name: domain.describe() for name, domain in other.columns.items()} == {
            name: domain.describe() for name, domain in relation.columns.items()
        }
        assert (other.max_rows, other.describe()) == (relation.max_rows, relation.describe())
        assert as_bag(left) == as_bag([row for row in found if str(row["unit"]) != unit])


QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large], "derandomize": True}


@settings(max_examples=15, **QUIET)
@given(relations.data(), recipes())
def test_a_relation_means_what_the_reference_says(rows: Data, recipe: Recipe) -> None:
    compare(rows, recipe)


@settings(max_examples=6, **QUIET)
@given(relations.data(), recipes())
def test_removing_one_unit_changes_no_other_units_rows(rows: Data, recipe: Recipe) -> None:
    neighbours(rows, recipe)


@pytest.mark.slow
@settings(max_examples=400, **QUIET)
@given(relations.data(), recipes(), st.booleans())
def test_many_random_trees(rows: Data, recipe: Recipe, both: bool) -> None:
    compare(rows, recipe)
    if both:
        neighbours(rows, recipe)


FIXED: Data = {
    "visits": [
        {"who": who, "visit": visit, "ward": "A", "cost": cost, "note": "n"}
        for who, visit, cost in [("a", "v1", 1), ("a", "v2", 2), ("7", "v1", 3), ("7", "7", 4), ("8", "v3", 5)]
    ],
    "tests": [{"who": who, "score": score, "spot": "A", "gain": 0.5} for who, score in [(7, 0), (7, 1), (7, 2), (8, 3), (8, 1)]],
    "drugs": [{"visit_of": visit, "dose": 1.0, "kind": "x"} for visit in ["v1", "v1", "v2", "7", "v3"]],
}


@dataclass(frozen=True, kw_only=True)
class CappedTogether(Capped):
    """Broken: the first rows of the whole table."""

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        rows = self.source.build(sources, dialect)
        number = ibis.row_number().over(ibis.window(order_by=[rows.unit, rows.place]))
        return rows.mutate(number=number).filter(lambda each: each.number < self.rows + 1).drop("number")


@dataclass(frozen=True, kw_only=True)
class JoinedTooNarrow(UnitJoined):
    """Broken: says that a person has as many rows as on the left."""

    @property
    def max_rows(self) -> int:
        return self.left.max_rows or 1


@dataclass(frozen=True, kw_only=True)
class FullTooNarrow(UnitJoined):
    """Broken: says that rows that stay alone are no more than pairs."""

    @property
    def max_rows(self) -> int:
        return (self.left.max_rows or 1) * (self.right.max_rows or 1)


@dataclass(frozen=True, kw_only=True)
class AloneAmongAll(UnitJoined):
    """Broken: a right row stays alone where no person at all has its partner."""

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        rows = super().build(sources, dialect)
        alone = rows.place > self.left.span * self.right.span
        return rows.filter(~alone | (rows.unit != rows.unit.max().over(ibis.window())))


@dataclass(frozen=True, kw_only=True)
class Compared(Extended):
    """Broken: the computed column is the least value of all persons."""

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        rows = super().build(sources, dialect)
        last = f"c{len(self.columns) - 1}"
        return rows.mutate(**{last: rows[last].min().over(ibis.window())})


class FollowedByAll(Followed):
    """Broken: what stood before is looked for among all persons."""

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        rows = super().build(sources, dialect)
        last = f"c{len(self.columns) - 1}"
        return rows.mutate(**{last: rows.c0.lag().over(ibis.window(order_by=[rows.unit, rows.place]))})


@dataclass(frozen=True, kw_only=True)
class NumberedTogether(Numbered):
    """Broken: numbers the rows of all persons."""

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        rows = super().build(sources, dialect)
        number = (ibis.row_number().over(ibis.window(order_by=[rows.unit, rows.place])) % 4 + 1).cast("int8")
        return rows.mutate(**{f"c{len(self.columns) - 1}": number})


@dataclass(frozen=True, kw_only=True)
class RankedAsNumbered(Numbered):
    """Broken: says that ranks tell rows apart."""

    def numbered(self) -> Mapping[str, RowNumber]:
        return {self.number: RowNumber(frozenset(), 1, self.max_rows)}


def first_rows(tables: Mapping[str, PrivateTable], kind: type[Numbered] = Numbered, by: str = "cost") -> Relation:
    source = Base(name="visits", table=tables["visits"])
    numbers = kind(source=source, by=((by, False, False),), number="n", kind="rank" if kind is RankedAsNumbered else "row_number")
    return Filtered(source=numbers, where=Compare("<=", Column("n"), Literal(1)))


@dataclass(frozen=True, kw_only=True)
class OnceByKey(PerUnit):
    """Broken: says that one of two keys tells its rows apart."""

    def tells_apart(self, names: frozenset[str]) -> bool:
        return bool(names)


def once(tables: Mapping[str, PrivateTable], kind: type[PerUnit] = PerUnit, *, outer: bool = False) -> Relation:
    wards = kind(source=Base(name="visits", table=tables["visits"]), keys=("ward", "visit"))
    right = Projected(source=wards, names=(("w", "ward"), ("x", "visit")))
    return UnitJoined(left=Base(name="visits", table=tables["visits"]), right=right, on=(("ward", "w"),), outer=outer)


def full(tables: Mapping[str, PrivateTable], kind: type[UnitJoined] = UnitJoined) -> Relation:
    """A visit beside a test of the person where the cost is the score; both sides are capped at one row."""
    sides = [Capped(source=Base(name=name, table=tables[name]), rows=1) for name in ("visits", "tests")]
    right = Projected(source=sides[1], names=(("s", "score"),))
    return kind(left=sides[0], right=right, on=(("cost", "s"),), outer=True, full=True)


def followed(tables: Mapping[str, PrivateTable], kind: type[Followed] = Followed) -> Relation:
    old = next(iter(tables["visits"].columns))
    return kind(source=Base(name="visits", table=tables["visits"]), by="cost", number="n", previous=(("before", old),), rows=3)


BROKEN: dict[str, Recipe] = {
    "numbered together": lambda tables: first_rows(tables, NumberedTogether),
    "ranked as numbered": lambda tables: first_rows(tables, RankedAsNumbered, by="ward"),
    "once by one key": lambda tables: once(tables, OnceByKey),
    "followed by all": lambda tables: followed(tables, FollowedByAll),
    "capped together": lambda tables: CappedTogether(source=Base(name="visits", table=tables["visits"]), rows=2),
    "joined too narrow": lambda tables: JoinedTooNarrow(
        left=Base(name="visits", table=tables["visits"]), right=Base(name="tests", table=tables["tests"])
    ),
    "full, too narrow": lambda tables: full(tables, FullTooNarrow),
    "alone among all": lambda tables: full(tables, AloneAmongAll),
    "compared": lambda tables: Compared(source=Base(name="visits", table=tables["visits"]), scalars=(("least", Ref("cost")),)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_relation_is_caught(name: str) -> None:
    with pytest.raises(AssertionError):
        neighbours(FIXED, BROKEN[name])


def test_the_fixed_rows_are_neighbours_otherwise() -> None:
    neighbours(FIXED, lambda tables: Capped(source=Base(name="visits", table=tables["visits"]), rows=2))
    neighbours(FIXED, followed)
    neighbours(FIXED, first_rows)
    neighbours(FIXED, once)
    neighbours(FIXED, full)


def test_how_many_rows_a_full_join_has_at_most() -> None:
    """L·R pairs, or L + R rows that stay alone: whichever is more, and the sum where nobody has two partners."""
    tables = relations.tables_of(FIXED)
    left, right = Base(name="visits", table=tables["visits"]), Base(name="tests", table=tables["tests"])
    one, other = left.max_rows or 1, right.max_rows or 1
    renamed = Projected(source=right, names=(("s", "score"),))
    assert UnitJoined(left=left, right=renamed, full=True).max_rows == one * other
    assert UnitJoined(left=left, right=renamed, on=(("cost", "s"),), full=True).max_rows == max(one * other, one + other)
    each = Projected(source=PerUnit(source=right, keys=("score",)), names=(("s", "score"),))
    assert UnitJoined(left=left, right=each, on=(("cost", "s"),), full=True).max_rows == one + other


def test_a_number_or_a_key_bounds_how_many_rows_there_are() -> None:
    tables = relations.tables_of(FIXED)
    assert first_rows(tables).max_rows == 1
    visits = Base(name="visits", table=tables["visits"])
    once_each = PerUnit(source=visits, keys=("ward",), aggregates=(UnitAggregate(name="k", kind="count"),))
    right = Projected(source=once_each, names=(("w", "ward"), ("k", "k")))
    for outer in (False, True):
        assert UnitJoined(left=visits, right=right, on=(("ward", "w"),), outer=outer).max_rows == visits.max_rows
        assert UnitJoined(left=visits, right=right, outer=outer).max_rows > (visits.max_rows or 0)


def test_the_fixed_rows_are_neighbours_along_a_key() -> None:
    neighbours(
        FIXED,
        lambda tables: KeyJoined(
            left=Base(name="drugs", table=tables["drugs"]),
            right=Base(name="visits", table=tables["visits"]),
            left_key="visit_of",
            right_key="visit",
        ),
    )


def a(tables: Mapping[str, PrivateTable], name: str) -> Base:
    return Base(name=name, table=tables[name])


PEOPLE = PrivateTable({"age": [1]}, columns={"age": Integer(0, 9)})
WIDE = PrivateTable({"who": [1], "y": [1]}, columns={"y": Integer(0, 9)}, unit="who", max_rows=2**20)
REFUSED: dict[str, tuple[Callable[[Mapping[str, PrivateTable]], object], type[Exception], str]] = {
    "unknown key": (lambda t: PerUnit(source=a(t, "visits"), keys=("nothing",)), UnknownColumn, "nothing"),
    "unknown filter": (
        lambda t: Filtered(source=a(t, "visits"), where=Compare("=", Column("z"), Literal(1))), UnknownColumn, "'z'",
    ),
    "wrong filter": (
        lambda t: Filtered(source=a(t, "visits"), where=Compare("=", Column("cost"), Literal("x"))), UnsupportedQuery, "'cost'",
    ),
    "no filter": (lambda t: Filtered(source=a(t, "visits"), where=True), InvalidParameter, "condition"),  # type: ignore[arg-type]
    "unknown computed": (lambda t: Extended(source=a(t, "visits"), scalars=(("x", Ref("z")),)), UnknownColumn, "'z'"),
    "computed twice": (lambda t: Extended(source=a(t, "visits"), scalars=(("cost", Ref("cost")),)), InvalidParameter, "'cost'"),
    "projected twice": (
        lambda t: Projected(source=a(t, "visits"), names=(("x", "cost"), ("x", "note"))), InvalidParameter, "'x'",
    ),
    "no cap": (lambda t: Capped(source=a(t, "visits"), rows=0), InvalidParameter, "rows=0"),
    "order by text": (
        lambda t: Followed(source=a(t, "visits"), by="note", number="n", previous=(), rows=1), UnsupportedQuery, "'note'",
    ),
    "order of persons": (
        lambda t: Followed(source=Base(name="people", table=PEOPLE), by="age", number="n", previous=(), rows=1),
        UnsupportedQuery,
        "whose row",
    ),
    "no rows in order": (
        lambda t: Followed(source=a(t, "visits"), by="cost", number="n", previous=(), rows=0), InvalidParameter, "rows=0",
    ),
    "unknown row before": (
        lambda t: Followed(source=a(t, "visits"), by="cost", number="n", previous=(("x", "z"),), rows=1), UnknownColumn, "'z'",
    ),
    "cap of persons": (lambda t: Capped(source=Base(name="people", table=PEOPLE), rows=1), UnsupportedQuery, "whose row"),
    "join of persons": (
        lambda t: UnitJoined(left=a(t, "visits"), right=Base(name="people", table=PEOPLE)),
        UnsupportedQuery,
        "'people'.*whose row",
    ),
    "group of persons": (lambda t: PerUnit(source=Base(name="people", table=PEOPLE)), UnsupportedQuery, "whose row"),
    "same names": (lambda t: UnitJoined(left=a(t, "visits"), right=a(t, "visits")), InvalidParameter, "two columns"),
    "kinds apart": (
        lambda t: UnitJoined(left=a(t, "visits"), right=a(t, "tests"), on=(("note", "score"),)),
        UnsupportedQuery,
        "declared",
    ),
    "units apart": (lambda t: UnitJoined(left=a(t, "tests"), right=a(t, "drugs")), UnsupportedQuery, "visits.visit"),
    "no through": (
        lambda t: KeyJoined(left=a(t, "tests"), right=a(t, "visits"), left_key="who", right_key="visit"),
        UnsupportedQuery,
        "through=",
    ),
    "no identifier": (
        lambda t: KeyJoined(left=a(t, "drugs"), right=a(t, "tests"), left_key="visit_of", right_key="score"),
        UnsupportedQuery,
        "identifier",
    ),
    "an identifier of another table": (
        lambda t: KeyJoined(
            left=a(t, "drugs"), right=Base(name="other", table=t["visits"]), left_key="visit_of", right_key="visit"
        ),
        UnsupportedQuery,
        "does not hold the values of visits.visit",
    ),
    "an identifier that is looked up": (
        lambda t: KeyJoined(
            left=a(t, "drugs"),
            right=PublicJoined(
                source=a(t, "tests"),
                name="p",
                table=PublicTable({"score": [1], "visit": ["v1"]}, columns={"score": Integer(0, 3), "visit": Identifier()}),
                on=(("score", "score"),),
                columns=(("visit", "visit"),),
            ),
            left_key="visit_of",
            right_key="visit",
        ),
        UnsupportedQuery,
        "does not hold the values of visits.visit",
    ),
    "too wide": (
        lambda t: UnitJoined(
            left=Base(name="wide", table=WIDE),
            right=Projected(source=Base(name="wide", table=WIDE), names=(("z", "y"),)),
        ),
        UnsupportedQuery,
        "1,000,000 rows",
    ),
    "union of names": (
        lambda t: Stacked(sources=(a(t, "visits"), a(t, "tests"))), UnsupportedQuery, "columns",
    ),
    "union of persons and rows": (
        lambda t: Stacked(
            sources=(
                Projected(source=a(t, "visits"), names=(("age", "cost"),)),
                Base(name="people", table=PEOPLE),
            )
        ),
        UnsupportedQuery,
        "a row is a person",
    ),
    "sum of text": (
        lambda t: PerUnit(source=a(t, "visits"), aggregates=(UnitAggregate(name="s", kind="sum", column="note"),)),
        UnsupportedQuery,
        "'note'",
    ),
    "least of a list": (
        lambda t: PerUnit(source=a(t, "tests"), aggregates=(UnitAggregate(name="s", kind="min", column="spot"),)),
        UnsupportedQuery,
        "order",
    ),
    "count of a column": (lambda t: UnitAggregate(name="s", kind="count", column="note"), InvalidParameter, "count"),
    "no column": (lambda t: UnitAggregate(name="s", kind="sum"), InvalidParameter, "takes one"),
    "public nothing": (
        lambda t: PublicJoined(source=a(t, "visits"), name="wards", table=relations.WARDS_TABLE, on=(), columns=()),
        UnsupportedQuery,
        "compared",
    ),
    "public private": (
        lambda t: PublicJoined(source=a(t, "visits"), name="w", table=PEOPLE, on=(("cost", "age"),), columns=()),  # type: ignore[arg-type]
        InvalidParameter,
        "PrivateTable",
    ),
    "public unknown": (
        lambda t: PublicJoined(
            source=a(t, "visits"), name="w", table=relations.WARDS_TABLE, on=(("ward", "name"),), columns=(("x", "x"),)
        ),
        UnknownColumn,
        "'x'",
    ),
    "alone": (lambda t: relate(a(t, "drugs"), {}), UnsupportedQuery, "visits.visit"),
    "unprepared": (lambda t: relate(a(t, "tests"), {}), UnknownTable, "'tests'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_by_name(name: str) -> None:
    write, kind, why = REFUSED[name]
    with pytest.raises(kind, match=why) as caught:
        write(tables_of(FIXED))
    error = caught.value
    assert isinstance(error, CloisterError)
    assert error.why
    assert error.instead


def test_nesting_has_an_end() -> None:
    relation: Relation = a(tables_of(FIXED), "visits")
    for _ in range(70):
        relation = Projected(source=relation, names=(("cost", "cost"),))

    def deeper() -> Relation:
        inner = relation
        for _ in range(20):
            inner = Projected(source=inner, names=(("cost", "cost"),))
        return inner

    with pytest.raises(UnsupportedQuery, match="inside one another"):
        deeper()


def test_a_table_of_another_declaration_is_not_taken() -> None:
    with opened(FIXED) as (_, prepared), pytest.raises(UnknownTable, match="as the relation declares"):
        relate(a(tables_of(FIXED), "visits"), prepared)


def test_one_name_stands_for_one_table() -> None:
    one, other = tables_of(FIXED)["visits"], tables_of(FIXED)["visits"]
    renamed = Projected(source=Base(name="visits", table=other), names=(("x", "cost"),))
    with pytest.raises(InvalidParameter, match="two tables"):
        UnitJoined(left=Base(name="visits", table=one), right=renamed).bases()


def test_identity_is_canonical_and_holds_the_names() -> None:
    first, second = tables_of(FIXED), tables_of(FIXED)

    def derived(tables: Mapping[str, PrivateTable], number: int = 1) -> Relation:
        old, rich = Compare(">", Column("cost"), Literal(number)), Compare("<", Literal(4), Column("cost"))
        parts = (old, rich) if tables is first else (rich, old)
        return Capped(source=Filtered(source=a(tables, "visits"), where=And(*parts)), rows=2)

    assert derived(first).digest == derived(second).digest
    assert hash(derived(first)) == hash(derived(first))
    assert derived(first) == derived(first)
    assert derived(first).digest != derived(first, 2).digest
    assert "visits" in json.dumps(derived(first).describe())
    joined = UnitJoined(left=derived(first), right=a(first, "tests"))
    assert joined.bases() == ("tests", "visits")
    assert joined.publics() == ()


def test_the_connection_stays_shut_and_copies_go() -> None:
    with opened(FIXED) as (tables, prepared):
        relation = UnitJoined(left=a(tables, "tests"), right=a(tables, "visits"))
        related = relate(relation, prepared)
        assert isinstance(related.home, DuckDBPrepared)
        connection = related.home._connection
        assert related.home is prepared["tests"]
        before = connection.execute("SHOW TABLES").fetchall()
        assert len(before) == 2
        relate(relation, prepared)
        assert connection.execute("SHOW TABLES").fetchall() == before
        for sql in ("SET enable_external_access = true", "SET memory_limit = '1TB'", "INSTALL httpfs"):
            with pytest.raises(duckdb.Error):
                connection.cursor().execute(sql)
        prepared["visits"].close()
        assert connection.execute("SHOW TABLES").fetchall() == [("cloister_prepared_rows",)]
        with pytest.raises(EngineError, match="closed"):
            relate(relation, prepared)


def test_a_failure_of_the_engine_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(FIXED) as (tables, prepared):
        related = relate(UnitJoined(left=a(tables, "tests"), right=a(tables, "visits")), prepared)

        def fail(*_: object) -> None:
            raise RuntimeError("row 44: Alice")

        monkeypatch.setattr(DuckDBPrepared, "_fetch", fail)
        monkeypatch.setattr(DuckDBPrepared, "_bring", fail)
        for work in (
            lambda: related.aggregate(Aggregation(None)),
            lambda: related.rows(["cost"]),
            lambda: relate(
                KeyJoined(left=a(tables, "drugs"), right=a(tables, "visits"), left_key="visit_of", right_key="visit"), prepared
            ),
        ):
            with pytest.raises(EngineError) as caught:
                work()
            assert "Alice" not in str(caught.value)
            assert caught.value.__context__ is None


def test_a_relation_compiles_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []
    build = engine.compile_aggregation
    monkeypatch.setattr(engine, "compile_aggregation", lambda *args, **options: compiled.append(1) or build(*args, **options))
    with opened(FIXED) as (tables, prepared):
        for number in range(5):
            related = relate(UnitJoined(left=a(tables, "tests"), right=a(tables, "visits")), prepared)
            related.aggregate(Aggregation(None, where=Compare(">", Column("cost"), Literal(number))))
        assert len(compiled) == 1
        other = relate(UnitJoined(left=a(tables, "tests"), right=a(tables, "visits"), outer=True), prepared)
        other.aggregate(Aggregation(None, where=Compare(">", Column("cost"), Literal(1))))
        assert len(compiled) == 2


def test_a_cap_of_the_question_is_a_cap_of_the_relation() -> None:
    with opened(FIXED) as (tables, prepared):
        related = relate(a(tables, "visits"), prepared)
        assert [int(related.aggregate(Aggregation(None, max_rows=cap)).values["rows"][0]) for cap in (None, 1, 2)] == [5, 3, 5]
        assert len(related.rows(["cost"], max_rows=1)["cost"]) == 3
        with pytest.raises(InvalidParameter, match="max_rows=3"):
            related.aggregate(Aggregation(None, max_rows=3))


def test_a_union_of_persons_adds_up() -> None:
    people = PrivateTable({"age": [1, 2, 3]}, columns={"age": Integer(0, 9)})
    base = Base(name="people", table=people)
    young = Filtered(source=base, where=Compare("<", Column("age"), Literal(3)))
    both = Stacked(sources=(base, young))
    assert (both.unit, both.max_rows) == (None, 2)
    with prepare(people) as prepared:
        assert int(relate(both, {"people": prepared}).aggregate(Aggregation(None)).values["rows"][0]) == 5


def test_identifiers_are_the_same_name_in_every_type() -> None:
    visits = PrivateTable({"who": [1, 2, 3], "visit": [4, 5, None]}, {"visit": Identifier()}, unit="who", max_rows=1)
    for keys in (["4", "5", "4"], [4.0, 5.0, 4.0], [4, 5, 4]):
        unit = {"unit": "visit", "max_rows": 2, "through": "visits.visit"}
        drugs = PrivateTable({"visit": keys, "dose": [1, 2, 3]}, {"dose": Integer(0, 9)}, **unit)  # type: ignore[arg-type]
        relation = KeyJoined(
            left=Base(name="drugs", table=drugs), right=Base(name="visits", table=visits), left_key="visit", right_key="visit"
        )
        with prepare(visits) as first, prepare(drugs) as second:
            rows = relate(relation, {"visits": first, "drugs": second}).rows(["visit", "dose"])
        assert sorted(zip(rows["visit"].tolist(), rows["dose"].tolist(), strict=True)) == [("4", 1), ("4", 3), ("5", 2)]
