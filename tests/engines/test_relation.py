"""Relations on every engine: the same rows, places included, as plain Python gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from cloister.errors import UnsupportedQuery
from cloister.tables import (
    Aggregate,
    Aggregation,
    Base,
    Capped,
    Category,
    Column,
    Compare,
    Extended,
    Filtered,
    Followed,
    Identifier,
    Integer,
    KeyJoined,
    Like,
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
    Strided,
    Text,
    UnitAggregate,
    UnitJoined,
    prepare,
    relate,
)
from cloister.tables.expression.scalar import Ref
from tests.tables.relations import (
    DECLARED,
    SECRET,
    WARDS_TABLE,
    Data,
    as_bag,
    check_bounds,
    columns_of,
    everything,
    meaning,
    prepared_rows,
)

from .conftest import Loader
from .test_engines import HOSTILE, ask

KINDS = {
    "visits": {"who": "text", "visit": "text", "ward": "text", "cost": "integer", "note": "text"},
    "tests": {"who": "integer", "score": "integer", "spot": "text", "gain": "float"},
    "drugs": {"visit_of": "text", "dose": "float", "kind": "text"},
}
ROWS: Data = {
    "visits": [
        dict(zip(KINDS["visits"], row, strict=True))
        for row in [
            ("a", "v1", "A", 5, "n"),
            ("a", "v2", "B", None, 'it\'s "$x" \\ 🎉'),
            ("a", "v2", "A", -9, None),
            ("7", "7", "?", 1, "n"),
            ("7", "v1", "B", 0, ""),
            ("8", None, None, 5, "n"),
            (None, "v1", "A", 5, "n"),
        ]
    ],
    "tests": [
        dict(zip(KINDS["tests"], row, strict=True))
        for row in [
            (7, 0, "A", 0.5),
            (7, 3, "B", None),
            (7, 1, "C", 1.0),
            (7, 1, "A", 0.26),
            (8, 99, "A", 1.0),
            (9, 2, None, 0.0),
        ]
    ],
    "drugs": [
        dict(zip(KINDS["drugs"], row, strict=True))
        for row in [("v1", 0.5, "x"), ("v1", 1.0, "y"), ("v1", 2.0, "x"), ("7", 1.5, None), ("v2", None, "y"), ("none", 1.0, "x")]
    ],
}
Tables = Mapping[str, PrivateTable]


def base(tables: Tables, name: str) -> Relation:
    return Base(name=name, table=tables[name])


def per(source: Relation, keys: tuple[str, ...], column: str) -> Relation:
    kinds = ("values", "sum", "mean", "min", "max", "distinct")
    aggregates = (UnitAggregate(name="n", kind="count"), *(UnitAggregate(name=kind, kind=kind, column=column) for kind in kinds))
    return PerUnit(source=source, keys=keys, aggregates=aggregates)


def through(tables: Tables, *, outer: bool) -> Relation:
    return KeyJoined(
        left=base(tables, "drugs"), right=base(tables, "visits"), left_key="visit_of", right_key="visit", outer=outer
    )


def wards(source: Relation, column: str, *, outer: bool) -> Relation:
    taken = (("beds", "beds"), ("head", "head"))
    return PublicJoined(source=source, name="wards", table=WARDS_TABLE, on=((column, "name"),), columns=taken, outer=outer)


def joined(tables: Tables, *, outer: bool) -> Relation:
    return UnitJoined(left=base(tables, "visits"), right=base(tables, "tests"), on=(("ward", "spot"),), outer=outer)


RECIPES: dict[str, Callable[[Tables], Relation]] = {
    "base": lambda tables: base(tables, "visits"),
    "filtered": lambda tables: Filtered(source=base(tables, "visits"), where=Compare(">", Column("cost"), Literal(0))),
    "like": lambda tables: Filtered(source=base(tables, "visits"), where=Like("note", '%"$x" \\ _')),
    "extended": lambda tables: Extended(source=base(tables, "visits"), scalars=(("other", Ref("cost")), ("text", Ref("note")))),
    "projected": lambda tables: Projected(source=base(tables, "visits"), names=(('"; --', "cost"), ("${x} 🎉", "note"))),
    "no columns": lambda tables: Projected(source=base(tables, "visits"), names=()),
    "capped": lambda tables: Capped(source=base(tables, "tests"), rows=2),
    "followed": lambda tables: Followed(
        source=base(tables, "visits"), by="cost", number="n", previous=(("before", "ward"), ("said", "note")), rows=2
    ),
    "numbered": lambda tables: Filtered(
        source=Numbered(source=base(tables, "visits"), by=(("cost", True, False), ("ward", False, True)), number="n"),
        where=Compare("<=", Column("n"), Literal(2)),
    ),
    "ranked": lambda tables: Numbered(
        source=Numbered(source=base(tables, "tests"), keys=("spot",), by=(("gain", False, True),), number="r", kind="rank"),
        by=(("score", True, True),),
        number="d",
        kind="dense_rank",
    ),
    "joined once": lambda tables: UnitJoined(
        left=base(tables, "visits"),
        right=Projected(source=per(base(tables, "tests"), ("spot",), "score"), names=(("spot", "spot"), ("total", "sum"))),
        on=(("ward", "spot"),),
        outer=True,
    ),
    "joined": lambda tables: joined(tables, outer=False),
    "left joined": lambda tables: joined(tables, outer=True),
    "numbers joined": lambda tables: UnitJoined(left=base(tables, "visits"), right=base(tables, "tests"), on=(("cost", "gain"),)),
    "through": lambda tables: through(tables, outer=False),
    "left through": lambda tables: through(tables, outer=True),
    "looked up": lambda tables: wards(base(tables, "visits"), "ward", outer=False),
    "left looked up": lambda tables: wards(base(tables, "tests"), "spot", outer=True),
    "per unit": lambda tables: per(base(tables, "visits"), (), "cost"),
    "per unit and key": lambda tables: per(base(tables, "visits"), ("ward",), "cost"),
    "per unit and text": lambda tables: per(base(tables, "tests"), ("gain", "spot"), "gain"),
    "stacked": lambda tables: Stacked(
        sources=(
            Projected(source=base(tables, "visits"), names=(("x", "cost"), ("where", "ward"))),
            Projected(source=base(tables, "tests"), names=(("where", "spot"), ("x", "gain"))),
        )
    ),
    "deep": lambda tables: Capped(
        source=UnitJoined(
            left=per(wards(through(tables, outer=True), "ward", outer=True), ("ward",), "dose"),
            right=Projected(source=per(base(tables, "tests"), ("spot",), "score"), names=(("spot", "spot"), ("total", "sum"))),
            on=(("ward", "spot"),),
            outer=True,
        ),
        rows=1,
    ),
}


@pytest.fixture(scope="module")
def opened(loader: Loader) -> Iterator[tuple[Tables, dict[str, Prepared]]]:
    """The three tables on one engine."""
    tables = {
        name: PrivateTable(loader.load(columns_of(ROWS[name], name), KINDS[name]), columns, **unit)
        for name, (columns, unit) in DECLARED.items()
    }
    with ExitStack() as stack:
        yield tables, {name: stack.enter_context(prepare(table, secret=SECRET)) for name, table in tables.items()}


@pytest.mark.parametrize("name", RECIPES)
def test_each_kind_of_relation(opened: tuple[Tables, dict[str, Prepared]], name: str) -> None:
    tables, prepared = opened
    relation = RECIPES[name](tables)
    found = everything(relate(relation, prepared))
    assert as_bag(found) == as_bag(meaning(relation, prepared_rows(ROWS)))
    assert found or name == "like"
    check_bounds(relation, found)


def test_a_relation_is_aggregated(opened: tuple[Tables, dict[str, Prepared]]) -> None:
    tables, prepared = opened
    relation = joined(tables, outer=True)
    aggregates = (
        Aggregate("n", "rows"),
        Aggregate("who", "units"),
        Aggregate("both", "values", ("cost", "gain")),
        Aggregate("gained", "rows", present=("gain", "note")),
        Aggregate("gainers", "units", present=("gain",)),
        Aggregate("cost", "sum", (("cost", -2),), present=("gain",)),
    )
    rows = meaning(relation, prepared_rows(ROWS))
    expected: dict[Any, dict[str, int]] = {}
    for key in {row["ward"] if row["ward"] is not None else 2 for row in rows}:
        its = [row for row in rows if (row["ward"] if row["ward"] is not None else 2) == key]
        gain = [row for row in its if row["gain"] is not None]
        expected[(key,)] = {
            "n": len(its),
            "who": len({row["unit"] for row in its}),
            "both": len([row for row in gain if row["cost"] is not None]),
            "gained": len([row for row in gain if row["note"] is not None]),
            "gainers": len({row["unit"] for row in gain}),
            "cost": sum(row["cost"] + 2 for row in gain if row["cost"] is not None),
        }
    related = relate(relation, prepared)
    for _ in range(2):
        assert ask(related, keys=("ward",), aggregates=aggregates) == expected
    fewer = ask(related, max_rows=1, aggregates=(Aggregate("n", "rows"), Aggregate("who", "units")))
    assert fewer[()]["n"] == fewer[()]["who"] == len({row["unit"] for row in rows})


def test_rows_of_a_relation(opened: tuple[Tables, dict[str, Prepared]]) -> None:
    tables, prepared = opened
    related = relate(through(tables, outer=False), prepared)
    rows = related.rows(["dose", "note"], where=Compare("=", Column("kind"), Literal("x")), unit=True)
    wanted = [row for row in meaning(related.declaration, prepared_rows(ROWS)) if row["kind"] == 0]
    null = related.declaration.columns["dose"].null_code
    assert sorted(map(str, zip(rows["dose"].tolist(), rows["note"].tolist(), strict=True))) == sorted(
        str((null if row["dose"] is None else row["dose"], row["note"])) for row in wanted
    )
    assert len(set(rows["unit"].tolist())) == len({row["unit"] for row in wanted})


def test_strides_products_and_presence(loader: Loader) -> None:
    columns = {"x": Integer(-(2**40), 2**40), "y": Integer(-7, 40, nullable=True), "t": Text()}
    data = {
        "x": [2**40, -(2**40), 12345678901, None, -1],
        "y": [40, -7, 3, 4, None],
        "t": ["a", None, "c", "d", "e"],
    }
    kinds = {"x": "integer", "y": "integer", "t": "text"}
    table = PrivateTable(loader.load(data, kinds), columns=columns)
    with prepare(table) as prepared:
        found = ask(prepared, keys=(Strided("y", 10),))
        assert {key: values["n"] for (key,), values in found.items()} == {0: 1, 1: 2, 4: 1, 5: 1}
        wide = ask(prepared, keys=(Strided("x", 3),))
        assert set(wide) == {((code + 2**40) // 3,) for code in data["x"] if code is not None}
        sums = {
            "xx": Aggregate("xx", "sum", (("x", 0), ("x", 1))),
            "xxy": Aggregate("xxy", "sum", (("x", 0), ("x", 0), ("y", -7)), present=("t",)),
            "yyy": Aggregate("yyy", "sum", (("y", 0), ("y", 0), ("y", 2))),
            "y": Aggregate("y", "sum", (("y", 0),), present=("x", "t")),
        }
        [found] = ask(prepared, aggregates=tuple(sums.values())).values()
        rows = list(zip(*data.values(), strict=True))
        assert found["xx"] == sum(x * (x - 1) for x, _, _ in rows if x is not None)
        assert found["yyy"] == sum(y * y * (y - 2) for _, y, _ in rows if y is not None)
        assert found["y"] == 43
        assert found["xxy"] == sum(x * x * (y + 7) for x, y, t in rows if None not in (x, y, t))


@pytest.mark.parametrize("outer", [False, True])
def test_persons_without_a_unit_and_a_public_table_of_the_engine(loader: Loader, outer: bool) -> None:
    people = PrivateTable(
        loader.load({"town": ["x", "y", "?", None], "age": [1, 2, 3, 4]}, {"town": "text", "age": "integer"}),
        columns={"town": Text(), "age": Integer(0, 9)},
    )
    towns = PublicTable(loader.load({"name": ["x", "x", "z"], "size": [10, 20, 30]}, {"name": "text", "size": "integer"}))
    relation = PublicJoined(
        source=Base(name="people", table=people),
        name="towns",
        table=towns,
        on=(("town", "name"),),
        columns=(("size", "size"),),
        outer=outer,
    )
    assert (relation.unit, relation.max_rows, relation.column("size").values()[:2]) == (None, 2, (10, 11))
    with prepare(people) as prepared:
        related = relate(relation, {"people": prepared}, {"towns": towns})
        found = ask(related, keys=("size",), aggregates=(Aggregate("age", "sum", ("age",)),))
        nulls = {(31,): {"age": 9}} if outer else {}
        assert found == {(10,): {"age": 1}, (20,): {"age": 1}, **nulls}
        with pytest.raises(UnsupportedQuery, match="Counting people"):
            related.aggregate(Aggregation(None, aggregates=(Aggregate("n", "units"),)))
        with pytest.raises(UnsupportedQuery, match="whose"):
            related.rows(["age"], unit=True)


def test_a_key_is_the_same_name_in_every_type(loader: Loader) -> None:
    kinds = {"who": "text", "visit": "integer"}
    visits = PrivateTable(
        loader.load({"who": ["a", "b", "b"], "visit": [4, 5, None]}, kinds), {"visit": Identifier()}, unit="who", max_rows=2
    )
    for kind, keys in {"text": ["4", "5", "4"], "float": [4.0, 5.0, 4.0], "integer": [4, 5, 4]}.items():
        source = loader.load({"visit": keys, "dose": [1, 2, 3]}, {"visit": kind, "dose": "integer"})
        drugs = PrivateTable(source, {"dose": Integer(0, 9)}, unit="visit", max_rows=2, through="visits.visit")
        relation = KeyJoined(
            left=Base(name="drugs", table=drugs), right=Base(name="visits", table=visits), left_key="visit", right_key="visit"
        )
        with prepare(visits) as first, prepare(drugs) as second:
            rows = relate(relation, {"visits": first, "drugs": second}).rows(["visit", "dose"])
        assert sorted(zip(rows["visit"].tolist(), rows["dose"].tolist(), strict=True)) == [("4", 1), ("4", 3), ("5", 2)]


def test_tables_of_two_engines_are_not_joined(opened: tuple[Tables, dict[str, Prepared]]) -> None:
    tables, prepared = opened
    here = PrivateTable({"who": ["a"], "x": [1]}, {"x": Integer(0, 9)}, unit="who", max_rows=1)
    relation = UnitJoined(left=Base(name="tests", table=tables["tests"]), right=Base(name="zz", table=here))
    with prepare(here) as other:
        if prepared["tests"].dialect == other.dialect:
            assert ask(relate(relation, {**prepared, "zz": other})) == {(): {"n": 0}}
        else:
            with pytest.raises(UnsupportedQuery, match="different engines") as caught:
                relate(relation, {**prepared, "zz": other})
            assert "cl.PrivateTable" in caught.value.instead


def test_hostile_texts_stay_texts(loader: Loader) -> None:
    options = [text for text in HOSTILE if text]
    kinds = {"who": "integer", "c": "text", "t": "text"}
    data = {"who": list(range(len(options))), "c": options, "t": options}
    table = PrivateTable(loader.load(data, kinds), {"c": Category(options), "t": Text()}, unit="who", max_rows=1)
    base = Base(name="it's", table=table)
    public = PublicTable({"name": options, "back": list(reversed(options))})
    relation = PublicJoined(source=base, name="p", table=public, on=(("t", "name"),), columns=(("back; --", "back"),))
    names = tuple((f"{name} '\"`${{x}}", name) for name in relation.columns)
    with prepare(table) as prepared:
        related = relate(Projected(source=relation, names=names), {"it's": prepared})
        rows = related.rows([name for name, _ in names])
        c, t, back = ([*rows[name].tolist()] for name, _ in names)
        domain = relation.columns["back; --"]
        assert sorted(zip(c, t, map(domain.decode, back), strict=True)) == sorted(
            zip(range(len(options)), options, reversed(options), strict=True)
        )
        for text in options:
            where = Compare("=", Column(names[1][0]), Literal(text))
            assert ask(related, where=where) == {(): {"n": 1}}
