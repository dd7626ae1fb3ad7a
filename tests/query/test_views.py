"""What one person sees: the same as over a table that physically holds no other rows, however it is asked."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Door, Mean, Question, Sum
from cloister.tables import Base, Column, Compare, Filtered, Literal, Projected, UnitJoined
from tests.query.hospital import rows, tables
from tests.query.test_against_duckdb import alike, cells
from tests.tiers import some_by_day

QUESTIONS = (Path(__file__).parent / "questions.sql").read_text(encoding="utf-8").strip().splitlines()
VIEWS = [
    {"people": "age >= 40 AND sex = 'F'", "patients": "age < 70", "visits": "ward <> 'C'", "drugs": "dose > 2"},
    {"visits": "cost IS NULL OR cost BETWEEN 10 AND 80"},
    {"patients": "sex = 'F' OR town IN ('Delft', 'Gouda')", "people": "smoker IS NOT NULL AND NOT town LIKE 'L%'"},
]


def physically(data: dict[str, dict[str, list[Any]]], view: int) -> dict[str, dict[str, list[Any]]]:
    """The rows that a view leaves, chosen in plain Python."""
    tests: list[dict[str, Any]] = [
        {
            "people": lambda row: row["age"] >= 40 and row["sex"] == "F",
            "patients": lambda row: row["age"] < 70,
            "visits": lambda row: row["ward"] != "C",
            "drugs": lambda row: row["dose"] > 2,
        },
        {"visits": lambda row: row["cost"] is None or 10 <= row["cost"] <= 80},
        {
            "patients": lambda row: row["sex"] == "F" or row["town"] in ("Delft", "Gouda"),
            "people": lambda row: row["smoker"] is not None and not row["town"].startswith("L"),
        },
    ]
    found = {}
    for name, columns in data.items():
        keep = tests[view].get(name, lambda row: True)
        chosen = [row for row in zip(*columns.values(), strict=True) if keep(dict(zip(columns, row, strict=True)))]
        found[name] = {column: [row[place] for row in chosen] for place, column in enumerate(columns)}
    return found


def session_of(data: dict[str, dict[str, list[Any]]]) -> cl.Session:
    """So much budget that the noise is nil."""
    return cl.Session(tables(data), budget=cl.PureDP(10**15), random=Random.deterministic(1))


@pytest.fixture(scope="module")
def pairs() -> Iterator[Callable[[int], tuple[cl.Session, cl.Session]]]:
    """A session behind a view, and one over its rows alone; opened once for all questions."""
    with ExitStack() as opened:

        @cache
        def pair(view: int) -> tuple[cl.Session, cl.Session]:
            whole, less = (opened.enter_context(session_of(data)) for data in (rows(), physically(rows(), view)))
            return whole.on_behalf("ana", rows=VIEWS[view]), less

        yield pair


def shown(answer: Any) -> list[tuple[Any, ...]]:
    """The rows that hold something: groups that a condition on their key leaves out are empty in the other answer."""
    measured = [answer.column_names.index(name) for name in answer.statistics()]

    def empty(row: tuple[Any, ...]) -> bool:
        return all(row[at] is None or row[at] == 0 or (isinstance(row[at], float) and math.isnan(row[at])) for at in measured)

    return sorted((row for row in cells(answer) if not (measured and answer.groups and empty(row))), key=repr)


DECLARED = "SELECT DISTINCT sex FROM people"
"""It lists the declared values that the condition leaves, and reads no row."""


def agree(seen: cl.Session, less: cl.Session, sql: str) -> None:
    mine, theirs = shown(seen.sql(sql, spend=10**9)), shown(less.sql(sql, spend=10**9))
    if "LIMIT" in sql:
        return
    known = [row for row in theirs if row in mine or any(all(map(alike, row, each)) for each in mine)]
    assert len(mine) == len(theirs) == len(known), (sql, mine, theirs)


def through_views(questions: list[str]) -> pytest.MarkDecorator:
    """Each question through each view at night; by day through one, and the next question through the next."""
    turn = {sql: number % len(VIEWS) for number, sql in enumerate(questions)}
    cases = itertools.product(range(len(VIEWS)), questions)
    return some_by_day("view,sql", cases, lambda case: turn[case[1]] == case[0])


@through_views([sql for sql in QUESTIONS if sql != DECLARED])
def test_a_view_is_the_table_without_the_other_rows(
    pairs: Callable[[int], tuple[cl.Session, cl.Session]], view: int, sql: str
) -> None:
    asked = sql.split(" ORDER BY")[0]
    if "AVG(" in asked and "HAVING" not in asked[asked.rfind(")") :] and asked.rfind("GROUP BY") > asked.rfind(")"):
        sql = f"{asked} HAVING COUNT(*) > 0.5"  # the average of a group without rows is nothing to compare
    agree(*pairs(view), sql)


TABLES = (
    ("people", ("sex", "town", "smoker"), ("age", "pay")),
    ("patients JOIN visits USING (patient)", ("sex", "town", "ward"), ("age", "cost", "fee")),
    ("patients LEFT JOIN visits USING (patient)", ("sex", "town"), ("age",)),
    ("visits", ("ward",), ("cost", "fee")),
    ("visits JOIN drugs ON visits.visit = drugs.visit", ("ward", "drug"), ("dose", "cost")),
    ("(SELECT patient, ward, SUM(fee) AS total FROM visits GROUP BY patient, ward) x", ("ward",), ("total",)),
    ("(SELECT patient, cost FROM visits UNION ALL SELECT patient, age AS cost FROM patients) x", (), ("cost",)),
    ("patients JOIN towns USING (town)", ("province", "sex"), ("age", "inhabitants")),
)
WITHIN = (
    "",
    " WHERE patient IN (SELECT patient FROM visits WHERE fee > 20)",
    " WHERE NOT patient IN (SELECT patient FROM visits)",
)


def battery(number: int) -> list[str]:
    draw = random.Random(11)
    found = []
    for _ in range(number):
        source, keys, numbers = draw.choice(TABLES)
        by = draw.sample(keys, draw.randint(0, min(2, len(keys))))
        column = draw.choice(numbers)
        statistics = draw.sample(
            [f"SUM({column})", "COUNT(*)", f"COUNT({column})", f"SUM(CASE WHEN {column} > 40 THEN 1 ELSE 0 END)"], 2
        )
        where = draw.choice(WITHIN) if source.startswith("patients") else draw.choice(("", f" WHERE {column} > 20"))
        group = f" GROUP BY {', '.join(by)}" if by else ""
        found.append(f"SELECT {', '.join([*by, *statistics])} FROM {source}{where}{group}")
    return list(dict.fromkeys(found))


@through_views(battery(60))
def test_a_battery_of_questions_sees_no_other_row(
    pairs: Callable[[int], tuple[cl.Session, cl.Session]], view: int, sql: str
) -> None:
    agree(*pairs(view), sql)


VISITS = {"who": ["a", "a", "b", "c", "c", "c"] * 1, "ward": ["A", "B", "A", "B", "B", "A"], "cost": [1, 2, 4, 8, 16, 32]}
VISIT_COLUMNS = {"ward": cl.Category(["A", "B"]), "cost": cl.Integer(0, 50)}


@pytest.fixture
def house() -> Iterator[cl.Session]:
    visits = cl.PrivateTable(VISITS, columns=VISIT_COLUMNS, unit="who", max_rows=3)
    with cl.Session({"visits": visits}, budget=cl.PureDP(10**12), random=Random.deterministic(2)) as opened:
        yield opened


WARD_A = {"visits": "ward = 'A'"}


def test_questions_and_relations_written_by_hand_are_filtered_too(house: cl.Session) -> None:
    ana = house.on_behalf("ana", rows=WARD_A)
    table = ana.tables["visits"]
    assert isinstance(table, cl.PrivateTable)
    base = Base(name="visits", table=table)
    twice = Projected(source=base, names=(("other", "cost"),))
    total = [
        Question(table="visits", statistics=(Sum(column="cost"),)),
        Question(table=base, statistics=(Sum(column="cost"),)),
        Question(table=Filtered(source=base, where=Compare(">=", Column("cost"), Literal(0))), statistics=(Sum(column="cost"),)),
    ]
    assert [int(ana.measure(each, spend=10**6)["sum_cost"][0]) for each in total] == [37, 37, 37]
    pairs = ana.measure(Question(table=UnitJoined(left=base, right=twice), statistics=(Count(),)), spend=10**6)
    assert int(pairs["count"][0]) == 3, "one pair a row of ward A, one of each person"
    assert [int(each["sum_cost"][0]) for each in ana.measure_all(total[:2], spend=10**6)] == [37, 37]
    assert [int(each["sum_cost"][0]) for each in ana.workload_all(total[:1], spend=10**6)] == [37]


def test_the_whole_and_the_view_are_different_questions_with_different_answers(house: cl.Session) -> None:
    sql = "SELECT SUM(cost) AS s FROM visits"
    ana = house.on_behalf("ana", rows=WARD_A)
    assert house.explain(sql, spend=1).digest != ana.explain(sql, spend=1).digest
    assert int(house.sql(sql, spend=10**6)["s"][0]) == 63
    assert ana.stored(sql) is None
    assert int(ana.sql(sql, spend=10**6)["s"][0]) == 37
    written = house.explain("SELECT SUM(cost) AS s FROM visits WHERE ward = 'A'", spend=1)
    assert written.digest == ana.explain(sql, spend=1).digest, "the same condition, whoever wrote it"


def test_margins_plans_and_within_are_of_the_view(house: cl.Session) -> None:
    ana = house.on_behalf("ana", rows=WARD_A)
    told = str(ana.explain("SELECT COUNT(*) FROM visits", spend=1))
    assert "rows: those that your view shows" in told
    assert "where" not in told, "what the owner wrote is the owner's"
    assert "where: cost > 3" in str(ana.explain("SELECT COUNT(*) FROM visits WHERE cost > 3", spend=1))
    answer = ana.sql("SELECT COUNT(*) AS n FROM visits", within=1)
    assert int(answer["n"][0]) in (2, 3, 4)
    assert ana.afford("SELECT COUNT(*) AS n FROM visits", [1, 2])
    assert dict(ana.touched("SELECT COUNT(*) FROM visits")) == {"visits": set()}
    rehearsed = ana.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", spend=1, rehearse=True)
    assert rehearsed["ward"].tolist() == ["A"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.explain("SELECT COUNT(*) AS n FROM visits", spend=1),
        lambda session: session.explain("SELECT COUNT(*) AS n FROM visits WHERE cost > 3", spend=1).summary(),
        lambda session: session.explain("SELECT COUNT(*) AS n FROM (SELECT who FROM visits WHERE cost > 3) x", spend=1),
        lambda session: session.explain("SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.who = b.who", spend=1).picture(),
        lambda session: session.explain_workload(
            [
                Question(table="visits", statistics=(Count(),), where=Compare("<", Column("cost"), Literal(most)))
                for most in (5, 10, 20)
            ],
            spend=1,
        ),
        lambda session: session.touched("SELECT SUM(cost) AS s FROM visits"),
        lambda session: session.touched("SELECT COUNT(*) AS n FROM (SELECT who FROM visits WHERE cost > 3) x"),
        lambda session: session.sql("SELECT SUM(cost) AS s FROM visits", spend=1),
    ],
)
def test_nothing_names_what_a_view_hides(house: cl.Session, ask: Any) -> None:
    ana = house.on_behalf("ana", rows=WARD_A, columns={"visits": ["cost"]})
    assert "ward" not in str(ask(ana))


def test_a_bias_speaks_of_the_view_alone() -> None:
    visits = cl.PrivateTable({**VISITS, "cost": [0, 50, 0, 50, 50, 20]}, columns=VISIT_COLUMNS, unit="who", max_rows=2)
    with cl.Session({"visits": visits}, budget=cl.PureDP(10**12), random=Random.deterministic(2)) as house:
        ana = house.on_behalf("ana", rows={"visits": "ward = 'A'"})
        bias = ana.sql("SELECT SUM(cost) AS s FROM visits", spend=10**6).bias(spend=10**6)
        assert bias.units_over_cap is None, "a cap acts on all rows"
        assert (bias.at_low["cost"].value, bias.at_high["cost"].value) == (2, 0)
        assert house.sql("SELECT SUM(cost) AS s FROM visits", spend=10**6).bias(spend=10**6).units_over_cap is not None
        with pytest.raises(cl.UnsupportedQuery, match="not to be seen here"):
            ana.sql("SELECT COUNT(*) AS n FROM visits", spend=10**6).bias(spend=1)


class Listing:
    """A method that would tell all that it is handed."""

    columns: tuple[str, ...] = ("cost",)

    def describe(self) -> dict[str, Any]:
        return {}

    def guarantee(self, spend: Any, declaration: Any) -> Any:
        return spend

    def release(self, rows: Any, declaration: Any, guarantee: Any, random: Any) -> dict[str, Any]:
        return {"rows": sorted(rows["cost"].tolist()), "columns": list(declaration.columns)}


def test_a_method_is_handed_the_rows_and_columns_of_the_view(house: cl.Session) -> None:
    ana = house.on_behalf("ana", rows=WARD_A, columns={"visits": ["cost"]})
    assert ana.run(Listing(), "visits", spend=1).values == {"rows": [1, 4, 32], "columns": ["cost"]}
    assert len(house.run(Listing(), "visits", spend=1).values["rows"]) == 6
    assert ana.explain_run(Listing(), "visits", spend=1).digest != house.explain_run(Listing(), "visits", spend=1).digest
    bob = house.on_behalf("bob", columns={"visits": ["ward"]})
    with pytest.raises(cl.UnknownColumn, match="'cost'"):
        bob.run(Listing(), "visits", spend=1)


def words(session: Door, ask: Any) -> str:
    with pytest.raises(cl.CloisterError) as found:
        ask(session)
    return f"{type(found.value).__name__} {found.value}"


@pytest.mark.parametrize(
    "ask",
    [
        lambda name: lambda session: session.sql(f"SELECT SUM({name}) FROM visits", spend=1),
        lambda name: lambda session: session.sql(f"SELECT COUNT(*) FROM visits WHERE visits.{name} > 3", spend=1),
        lambda name: lambda session: session.explain(f"SELECT {name}, COUNT(*) FROM visits GROUP BY 1", spend=1),
        lambda name: (
            lambda session: session.touched(f"SELECT AVG(t) FROM (SELECT who, SUM({name}) AS t FROM visits GROUP BY who) x")
        ),
        lambda name: lambda session: session.measure(Question(table="visits", statistics=(Mean(column=name),)), spend=1),
        lambda name: lambda session: session.measure(Question(table="visits", by=(name,), statistics=(Count(),)), spend=1),
        lambda name: lambda session: session.on_behalf("eve", columns={"visits": [name]}),
        lambda name: lambda session: session.on_behalf("eve", rows={"visits": f"{name} = 1"}),
        lambda name: lambda session: session.on_behalf("eve", rows={"visits": Compare("=", Column(name), Literal(1))}),
    ],
)
def test_a_hidden_column_is_refused_in_the_words_for_one_that_is_not(house: cl.Session, ask: Any) -> None:
    ana = house.on_behalf("ana", columns={"visits": ["ward"]})
    assert words(ana, ask("cost")) == words(ana, ask("cosu")).replace("cosu", "cost")


def test_a_condition_may_stand_on_a_column_that_is_hidden(house: cl.Session) -> None:
    ana = house.on_behalf("ana", rows={"visits": "cost > 5"}, columns={"visits": ["ward"]})
    answer = ana.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", spend=10**6)
    assert answer.to_pydict() == {"ward": ["A", "B"], "n": [1, 2]}
    joined = ana.sql("SELECT COUNT(*) AS n FROM visits a JOIN visits b USING (who)", spend=10**6)
    assert int(joined["n"][0]) == 9


@pytest.mark.parametrize(
    "ask",
    [
        lambda name: lambda session: session.sql(f"SELECT COUNT(*) FROM {name}", spend=1),
        lambda name: (
            lambda session: session.sql(f"SELECT COUNT(*) FROM patients WHERE patient IN (SELECT patient FROM {name})", spend=1)
        ),
        lambda name: lambda session: session.measure(Question(table=name, statistics=(Count(),)), spend=1),
        lambda name: lambda session: session.explain_run(Listing(), name, spend=1),
        lambda name: lambda session: session.on_behalf("eve", rows={name: "cost > 1"}),
        lambda name: lambda session: session.on_behalf("eve", columns={name: ["cost"]}),
    ],
)
def test_a_hidden_table_is_refused_in_the_words_for_one_that_is_not(ask: Any) -> None:
    with cl.Session(tables(rows()), budget=cl.PureDP(10)) as house:
        ana = house.on_behalf("ana", tables=["patients", "towns"])
        assert list(ana.tables) == ["patients", "towns"]
        assert words(ana, ask("visits")) == words(ana, ask("visitt")).replace("visitt", "visits")
        base = Base(name="visits", table=house.tables["visits"])  # type: ignore[arg-type]
        with pytest.raises(cl.UnknownTable):
            ana.measure(Question(table=base, statistics=(Count(),)), spend=1)


def test_nobody_widens_a_view_by_looking_through_another(house: cl.Session) -> None:
    ana = house.on_behalf("ana", rows=WARD_A, columns={"visits": ["ward"]})
    for eve in (
        ana.on_behalf("eve"),
        ana.on_behalf("eve", tables=["visits"]),
        ana.on_behalf("eve", rows={"visits": "ward <> ''"}),
    ):
        assert int(eve.sql("SELECT COUNT(*) AS n FROM visits", spend=10**6)["n"][0]) == 3
        assert list(eve.tables["visits"].columns or ()) == ["ward"]
    assert int(ana.through(house).sql("SELECT COUNT(*) AS n FROM visits", spend=10**6)["n"][0]) == 3
    assert ana.on_behalf("eve", tables=[]).tables == {}
    assert house.on_behalf("x", tables=["visits"]).on_behalf("y", tables=["visits", "else"]).tables.keys() == {"visits"}


def test_a_relation_over_what_is_hidden_is_refused(house: cl.Session) -> None:
    ana = house.on_behalf("ana", columns={"visits": ["ward"]})
    whole = Base(name="visits", table=house.tables["visits"])  # type: ignore[arg-type]
    with pytest.raises(cl.InvalidParameter, match="another declaration"):
        ana.measure(Question(table=whole, statistics=(Sum(column="cost"),)), spend=1)
    shape = house._shape(Question(table="visits", statistics=(Count(),)))
    with pytest.raises(cl.InvalidParameter, match="it is a Shape"):
        ana.measure(shape, spend=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "SUM(cost) > 3",
        "cost IN (SELECT cost FROM visits)",
        "cost + 1 > 3",
        "visits.cost > 3",
        "EXISTS (SELECT 1 FROM visits)",
        "who = 'a'",
        "ward = 'A') OR (ward = 'B'",
        "ward = 'A') GROUP BY (ward",
        "ward = 'A'; DROP TABLE visits",
        "ward",
        "cost = 'A'",
        "",
        "1",
        "cost > (((",
        "UPPER(ward) = 'A'",
    ],
)
def test_what_is_no_condition_on_declared_columns_is_refused(house: cl.Session, text: str) -> None:
    with pytest.raises(cl.CloisterError) as found:
        house.on_behalf("ana", rows={"visits": text})
    assert isinstance(found.value, cl.UnsupportedQuery | cl.UnknownColumn | cl.InvalidParameter)


def test_a_view_of_a_public_table_or_of_none_is_refused() -> None:
    with cl.Session(tables(rows()), budget=cl.PureDP(10)) as house:
        wrong: list[dict[str, Any]] = [
            {"rows": {"towns": "inhabitants > 3"}},
            {"columns": {"towns": ["town"]}},
            {"columns": {"people": []}},
            {"tables": "people"},
        ]
        for how in wrong:
            with pytest.raises(cl.CloisterError):
                house.on_behalf("ana", **how)
        for who in ("", None):
            with pytest.raises(cl.InvalidParameter, match="names nobody"):
                house.on_behalf(who)  # type: ignore[arg-type]
