"""Which question a text becomes: the relation, the keys, the statistics, the condition, the layout."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pytest

import cloister as cl
from cloister.query import Parsed, parse
from cloister.query.dialect import DIALECTS
from cloister.session import Count, Mean, Persons, Sum
from cloister.session.questions.question import Combined, Quantile, Variance
from cloister.tables import Column, Compare, In, IsNull, Literal, Not, Relation
from tests.query.hospital import rows, tables

TABLES = tables(rows())
VISITS, PATIENTS, DRUGS = ["table", "visits"], ["table", "patients"], ["table", "drugs"]


def read(sql: str, dialect: str | None = None) -> Parsed:
    return parse(sql, TABLES, dialect)


def shape(sql: str) -> Any:
    """The derived table of the first question, as plain data."""
    table = read(sql).question.table
    return table.describe() if isinstance(table, Relation) else table


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM visits", "visits"),
        ("SELECT COUNT(*) FROM visits WHERE cost > 3", "visits"),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits) AS v", "visits"),
        ("SELECT COUNT(*) FROM patients JOIN visits USING (patient)", ["joined", PATIENTS, VISITS, [], False]),
        ("SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON v.patient = p.patient", ["joined", PATIENTS, VISITS, [], True]),
        ("SELECT COUNT(*) FROM visits v RIGHT JOIN patients p USING (patient)", ["joined", PATIENTS, VISITS, [], True]),
        ("SELECT COUNT(*) FROM visits v JOIN drugs d USING (visit)", ["through", DRUGS, VISITS, "visit", False]),
        ("SELECT COUNT(*) FROM drugs d JOIN visits v ON v.visit = d.visit", ["through", DRUGS, VISITS, "visit", False]),
        (
            "SELECT SUM(dose) FROM drugs",
            [
                "projected",
                ["through", DRUGS, ["projected", VISITS, [["visits.visit", "visit"]]], "visits.visit", False],
                [["dose", "dose"], ["drug", "drug"]],
            ],
        ),
        (
            "SELECT AVG(t) FROM (SELECT patient, SUM(cost) AS t FROM visits WHERE cost > 3 GROUP BY patient)",
            [
                "projected",
                [
                    "per unit",
                    ["filtered", VISITS, ["compare", ">", ["column", "cost"], ["literal", "number", "3"]]],
                    [],
                    [["sum(cost)", "sum", "cost"]],
                ],
                [["t", "sum(cost)"]],
            ],
        ),
        (
            "SELECT AVG(cost + 1) FROM visits",
            ["extended", VISITS, [["cost + 1", ["add", ["ref", "cost"], ["const", "integer", "1"]]]]],
        ),
        (
            "SELECT COUNT(*) FROM (SELECT patient, cost FROM visits UNION ALL SELECT patient, cost FROM visits) u",
            ["stacked", [["projected", VISITS, [["cost", "cost"]]]] * 2],
        ),
    ],
)
def test_the_relation_that_a_question_is_about(sql: str, expected: Any) -> None:
    assert shape(sql) == expected


@pytest.mark.parametrize(
    ("sql", "rows_of_a_unit"),
    [
        ("SELECT COUNT(*) FROM patients JOIN visits USING (patient)", 4),
        ("SELECT COUNT(*) FROM visits a JOIN visits b USING (patient)", 16),
        ("SELECT COUNT(*) FROM visits JOIN drugs USING (visit)", 8),
        ("SELECT COUNT(*) FROM (SELECT patient, cost FROM visits UNION ALL SELECT patient, cost FROM visits) u", 8),
        ("SELECT COUNT(*) FROM (SELECT patient, ward FROM visits GROUP BY patient, ward) v", 3),
        ("SELECT COUNT(*) FROM (SELECT patient FROM visits GROUP BY patient) v", 1),
        ("SELECT COUNT(*) FROM patients WHERE patient IN (SELECT patient FROM visits)", 1),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2)"
            " ward, COUNT(DISTINCT patient) FROM visits GROUP BY 1",
            2,
        ),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2)"
            " ward, SUM(cost, contribution_bounds_per_group => (0, 9)) FROM visits GROUP BY 1",
            2,
        ),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 3) COUNT(*) FROM visits", 3),
    ],
)
def test_how_many_rows_one_person_may_have(sql: str, rows_of_a_unit: int) -> None:
    table = read(sql).question.table
    assert isinstance(table, Relation)
    assert (table.unit, table.max_rows) == ("patient", rows_of_a_unit)


def test_a_cap_of_groups_that_would_lose_more_than_the_cap_of_rows_is_not_used() -> None:
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2)"
    parsed = read(f"SELECT {options} ward, COUNT(*), SUM(cost) FROM visits GROUP BY ward")
    assert parsed.question.table == "visits"
    assert parsed.notes == (
        "max_groups_contributed is not used: the cap of rows holds in all groups together, and so loses less",
    )


def test_statistics_are_named_by_what_they_are_and_measured_once() -> None:
    question = read("SELECT COUNT(*), COUNT(1) AS again, AVG(age), 100 * AVG(age) / COUNT(*) AS x, SUM(pay) FROM people").question
    assert question.statistics == (
        Count(name="count_star()"),
        Mean(column="age", name="avg(age)"),
        question.statistics[2],
        Sum(column="pay", name="sum(pay)"),
    )
    assert isinstance(question.statistics[2], Combined)
    assert str(question.statistics[2].expression) == "((100 * avg(age)) / count_star())"
    assert question.hidden == ()
    assert read("SELECT AVG(age) / 2 AS half FROM people").question.hidden == ("avg(age)",)


def test_quantiles_and_spread() -> None:
    found = read(
        "SELECT MEDIAN(age), PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age DESC), STDDEV_POP(age), VARIANCE(age) FROM people"
    ).question.statistics
    assert found == (
        Quantile(column="age", at=Fraction(1, 2), name="median(age)"),
        Quantile(column="age", at=Fraction(3, 4), name="quantile(3/4)(age)"),
        Variance(column="age", sample=False, root=True, name="stddev_pop(age)"),
        Variance(column="age", sample=True, root=False, name="var_samp(age)"),
    )
    (mysql,) = read("SELECT STDDEV(age) FROM people", "mysql").question.statistics
    assert isinstance(mysql, Variance)
    assert not mysql.sample


def test_the_unit_counts_persons_also_after_a_join() -> None:
    (one,) = read("SELECT COUNT(DISTINCT v.patient) FROM visits v JOIN drugs d ON d.visit = v.visit").question.statistics
    assert one == Persons(name="count_distinct(patient)")


def test_grouping_sets_are_questions_about_the_same_rows() -> None:
    parsed = read("SELECT sex, town, COUNT(*) AS n, GROUPING(town) AS g FROM people WHERE age > 20 GROUP BY ROLLUP (sex, town)")
    assert [question.by for question in parsed.questions] == [("sex", "town"), ("sex",), ()]
    assert len({(question.statistics, question.where) for question in parsed.questions}) == 1
    where = parsed.question.where
    assert where is not None
    assert [part.describe() for part in where.parts] == [  # type: ignore[attr-defined]
        Compare(">", Column("age"), Literal(20)).describe(),
        Not(IsNull("sex")).describe(),
        Not(IsNull("town")).describe(),
    ]
    assert [list(column.fixed) for column in parsed.layout.columns if column.name == "g"] == [[0, 1, 1]]


GROUPINGS = {
    "sex, town": [("sex", "town")],
    "(sex, town)": [("sex", "town")],
    "ROLLUP (sex, town)": [("sex", "town"), ("sex",), ()],
    "ROLLUP ((sex, town))": [("sex", "town"), ()],
    "ROLLUP (sex), town": [("town", "sex"), ("town",)],
    "town, ROLLUP (sex)": [("town", "sex"), ("town",)],
    "ROLLUP (sex), ROLLUP (town)": [("sex", "town"), ("sex",), ("town",), ()],
    "CUBE (sex, town)": [("sex", "town"), ("sex",), ("town",), ()],
    "sex, CUBE (town)": [("sex", "town"), ("sex",)],
    "GROUPING SETS ((sex, town), (sex), ())": [("sex", "town"), ("sex",), ()],
    "GROUPING SETS (sex, town)": [("sex",), ("town",)],
    "GROUPING SETS (CUBE (sex), (town))": [("sex",), (), ("town",)],
    "GROUPING SETS (GROUPING SETS (sex, ()), ROLLUP (town))": [("sex",), (), ("town",)],
    "GROUPING SETS ((sex), ()), GROUPING SETS ((town))": [("sex", "town"), ("town",)],
    "sex, town WITH ROLLUP": [("sex", "town"), ("sex",), ()],
    "sex, town WITH CUBE": [("sex", "town"), ("sex",), ("town",), ()],
}
LIMITS: dict[str, tuple[int | None, int]] = {
    "": (None, 0),
    "LIMIT 2": (2, 0),
    "LIMIT 2 OFFSET 1": (2, 1),
    "OFFSET 1 LIMIT 2": (2, 1),
    "OFFSET 1": (None, 1),
    "OFFSET 1 ROWS": (None, 1),
    "FETCH FIRST 2 ROWS ONLY": (2, 0),
    "fetch next 2 rows only": (2, 0),
    "OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY": (2, 1),
}


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_every_clause_stands_behind_every_grouping(grouping: str) -> None:
    """In each of its spellings, with and without HAVING and ORDER BY between; the same clause means the same behind each."""
    for having in ("", "HAVING COUNT(*) > 3"):
        for order in ("", "ORDER BY n DESC, 1"):
            for limit, expected in LIMITS.items():
                text = f"SELECT sex AS sex, COUNT(*) AS n FROM people GROUP BY {grouping} {having} {order} {limit}"
                if "sex" not in grouping:
                    text = text.replace("sex AS sex, ", "")
                parsed = read(text)
                assert [question.by for question in parsed.questions] == GROUPINGS[grouping], text
                layout = parsed.layout
                assert (layout.limit, layout.offset or 0) == expected, text
                assert (layout.having is not None, bool(layout.order)) == (bool(having), bool(order)), text


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "ansi"])
def test_every_dialect_reads_what_stands_behind_a_grouping(dialect: str) -> None:
    for grouping, sets in GROUPINGS.items():
        for limit in ("LIMIT 2", "ORDER BY n LIMIT 2", "ORDER BY n OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY"):
            parsed = read(f"SELECT sex, COUNT(*) AS n FROM people GROUP BY {grouping} {limit}", dialect)
            assert [question.by for question in parsed.questions] == sets
            assert parsed.layout.limit == 2


@pytest.mark.parametrize(
    ("behind", "named"),
    [
        ("FOR UPDATE", "LOCKS"),
        ("FETCH FIRST 2 ROWS WITH TIES", "WITH TIES"),
        ("LIMIT 10 PERCENT", "PERCENT"),
        ("LIMIT ALL", "LIMIT"),
        ("FROBNICATE 3", "'FROBNICATE'"),
    ],
)
def test_what_is_not_answered_behind_a_grouping_is_named(behind: str, named: str) -> None:
    for grouping in ("sex", "ROLLUP (sex)", "CUBE (sex)", "GROUPING SETS ((sex), ())", "sex WITH ROLLUP"):
        with pytest.raises(cl.UnsupportedQuery) as refusal:
            read(f"SELECT sex, COUNT(*) AS n FROM people GROUP BY {grouping} {behind}")
        assert named in refusal.value.what, behind


@pytest.mark.parametrize("name", ["ties", "totals", "rollup", "cube"])
def test_a_word_of_grouping_hides_no_statement(name: str) -> None:
    for text in (
        f"WITH {name} AS (COPY x FROM 'y') SELECT 1",
        f"SELECT 1 UNION ALL WITH {name} (a) AS (COPY x FROM 'y') SELECT 1",
    ):
        with pytest.raises(cl.UnsupportedQuery, match="WITH"):
            read(text)


def test_public_questions_become_constants() -> None:
    where = read("SELECT COUNT(*) FROM people WHERE town IN (SELECT town FROM towns WHERE inhabitants >= 100)").question.where
    assert where == In("town", ("Delft", "Leiden", "Utrecht"))
    assert read("SELECT COUNT(*) FROM people WHERE age > (SELECT MIN(inhabitants) FROM towns)").question.where == Compare(
        ">", Column("age"), Literal(70)
    )


def test_dates_are_worked_out_beforehand() -> None:
    where = read("SELECT COUNT(*) FROM people WHERE born < DATE '2026-03-31' - INTERVAL '1' MONTH").question.where
    assert where == Compare("<", Column("born"), Literal(datetime.date(2026, 2, 28)))
    for text, day in (
        ("DATE '1970-01-01' - 1", datetime.date(1969, 12, 31)),
        ("DATE '1970-01-01' + 31", datetime.date(1970, 2, 1)),
    ):
        assert read(f"SELECT COUNT(*) FROM people WHERE born < {text}").question.where == Compare(
            "<", Column("born"), Literal(day)
        )


def test_the_same_expression_is_one_column_however_it_is_written() -> None:
    question = read("SELECT FLOOR(AGE / 10), COUNT(*) FROM people p WHERE floor(p.age/10) > 3 GROUP BY floor( age/10 )").question
    assert isinstance(question.table, Relation)
    assert [name for name in question.table.columns if "FLOOR" in name] == ["FLOOR(age / 10)"]
    assert question.by == ("FLOOR(age / 10)",)


def test_expressions_that_only_look_the_same_are_two_columns() -> None:
    question = read("SELECT SUM(age // 7), SUM(CAST(age / 7 AS INT)) FROM people").question
    assert len(question.statistics) == 2
    assert len({statistic.column for statistic in question.statistics}) == 2  # type: ignore[union-attr]


def test_layout() -> None:
    layout = read(
        "SELECT town AS t, 'x' AS label, COUNT(*) AS n FROM people GROUP BY town"
        " HAVING n > 3 AND town <> 'Gouda' ORDER BY AVG(age) DESC NULLS LAST, t LIMIT 5 OFFSET 1"
    ).layout
    assert layout.names == {"t": "town", "n": "count_star()"}
    assert [(column.name, column.fixed[0]) for column in layout.columns if column.source is None] == [("label", "x")]
    assert (layout.limit, layout.offset) == (5, 1)
    assert [(part.source, part.descending, part.nulls_first) for part in layout.order] == [
        ("avg(age)", True, False),
        ("town", False, False),
    ]
    answer: dict[str, list[Any]] = {"town": ["Delft", "Gouda", "Leiden"], "count_star()": [4, 9, 2], "avg(age)": [1.0, 2.0, 3.0]}
    assert layout.rows([answer]) == []
    wider: dict[str, list[Any]] = {
        "town": ["Delft", "Gouda", "Leiden", "Utrecht"],
        "count_star()": [4, 9, 7, 8],
        "avg(age)": [1.0, 2.0, None, 3.0],
    }
    assert layout.rows([wider]) == [(0, 0), (0, 2)]


def test_options_are_a_spend_and_notes() -> None:
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {}, delta = 1e-6, privacy_unit_column = {}) COUNT(*) FROM visits"
    assert read(text.format("0.5", "patient")).spend == cl.ApproxDP("0.5", "1e-6")
    assert read("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM visits").spend is None
    for wrong in (("0", "patient"), ("'1'", "cost"), ("-1", "patient"), ("1", "cost")):
        with pytest.raises(cl.UnsupportedQuery):
            read(text.format(*wrong))
    for entry in (
        "kapa = 3",
        "epsilon = 1, epsilon = 2",
        "epsilon",
        "max_groups_contributed = 0",
        "epsilon = 1) OPTIONS (delta = 0",
    ):
        with pytest.raises(cl.UnsupportedQuery):
            read(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({entry}) COUNT(*) FROM visits")


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        (None, "SELECT `sex`, COUNT(*) FROM `people` GROUP BY `sex`"),
        ("bigquery", "SELECT `sex`, COUNT(*) FROM `people` GROUP BY `sex`"),
        ("mysql", "SELECT `sex`, COUNT(*) FROM people GROUP BY `sex`"),
        ("tsql", "SELECT TOP 3 [sex], COUNT(*) FROM people GROUP BY sex"),
        ("postgres", "SELECT sex, COUNT(*) FROM people GROUP BY sex FETCH FIRST 3 ROWS ONLY"),
        ("snowflake", "SELECT sex, COUNT_IF(age > 3) FROM people GROUP BY sex"),
        ("spark", "SELECT sex, COUNT(*) FROM people GROUP BY sex"),
        ("duckdb", "SELECT sex, COUNT(*) FROM people GROUP BY sex"),
        ("SQLite", "SELECT sex, COUNT(*) FROM people GROUP BY sex"),
    ],
)
def test_dialects(dialect: str | None, sql: str) -> None:
    assert read(sql, dialect).question.by == ("sex",)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        (None, "DATE_DIFF('day', DATE '2026-01-01', born)"),
        (None, "DATEDIFF(born, DATE '2026-01-01')"),
        (None, "DATE_DIFF(born, DATE '2026-01-01', DAY)"),
        (None, "born - DATE '2026-01-01'"),
        ("duckdb", "DATE_DIFF('day', DATE '2026-01-01', born)"),
        ("bigquery", "DATE_DIFF(born, DATE '2026-01-01', DAY)"),
        ("mysql", "DATEDIFF(born, DATE '2026-01-01')"),
        ("snowflake", "DATEDIFF(day, DATE '2026-01-01', born)"),
        ("tsql", "DATEDIFF(day, CAST('2026-01-01' AS DATE), born)"),
        ("spark", "DATEDIFF(born, DATE '2026-01-01')"),
    ],
)
def test_a_difference_of_days_in_each_spelling(dialect: str | None, sql: str) -> None:
    table = read(f"SELECT AVG({sql}) FROM people", dialect).question.table
    assert isinstance(table, Relation)
    (name,) = [each for each in table.columns if each not in ("age", "sex", "pay", "smoker", "born", "town")]
    assert (table.columns[name].low_code, table.columns[name].high_code) == (0, 364)


def test_division_of_whole_numbers_is_the_dialects() -> None:
    def highest(dialect: str | None) -> float:
        table = read("SELECT SUM(age / 7) FROM people", dialect).question.table
        assert isinstance(table, Relation)
        domain = table.columns[list(table.columns)[-1]]
        return float(domain.decode(domain.high_code))

    assert highest(None) == pytest.approx(90 / 7)
    assert highest("postgres") == 12


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(cl.UnsupportedQuery, match="dialect"):
        read("SELECT COUNT(*) FROM people", "klingon")


def test_tables_of_other_populations_are_not_put_together() -> None:
    columns = {"cost": cl.Integer(0, 9)}
    source = {"person": [1], "cost": [2]}
    one = cl.PrivateTable(source, columns=columns, unit="person", max_rows=1)
    other = cl.PrivateTable({**source}, columns=columns, unit="person", max_rows=1, population="staff")
    for sql in (
        "SELECT COUNT(*) FROM one JOIN other USING (person)",
        "SELECT COUNT(*) FROM (SELECT person, cost FROM one UNION ALL SELECT person, cost FROM other) u",
        "SELECT COUNT(*) FROM one WHERE person IN (SELECT person FROM other)",
    ):
        with pytest.raises(cl.UnsupportedQuery, match="populations 'one' and 'staff'"):
            parse(sql, {"one": one, "other": other})


def test_a_key_joins_only_from_the_column_that_was_declared() -> None:
    """Another column of names may hold a visit of somebody else: then removing that person would change this one's rows."""
    from cloister.tables import Identifier

    columns = {"visit": Identifier(), "before": Identifier()}
    source = {"patient": [1], "visit": [7], "before": [6]}
    visits = cl.PrivateTable(source, columns=columns, unit="patient", max_rows=2, population="patients")
    drugs = TABLES["drugs"]
    known = {"visits": visits, "drugs": drugs}
    for sql in (
        "SELECT COUNT(*) FROM visits v JOIN drugs d ON d.visit = v.before",
        "SELECT COUNT(*) FROM (SELECT patient, before AS visit FROM visits) v JOIN drugs d ON d.visit = v.visit",
        "SELECT COUNT(*) FROM (SELECT patient, COALESCE(visit, visit) AS visit FROM visits) v JOIN drugs d ON d.visit = v.visit",
    ):
        with pytest.raises(cl.UnsupportedQuery):
            parse(sql, known)
    renamed = "SELECT COUNT(*) FROM (SELECT patient, visit AS v FROM visits) v JOIN drugs d ON d.visit = v.v"
    assert isinstance(parse(renamed, known).question.table, Relation)


def test_a_unit_that_is_a_declared_column_is_still_the_unit() -> None:
    visits = cl.PrivateTable(
        {"person": [1], "cost": [2]}, columns={"person": cl.Integer(0, 9), "cost": cl.Integer(0, 9)}, unit="person", max_rows=2
    )
    sql = "SELECT COUNT(DISTINCT a.person) FROM visits a JOIN visits b ON a.person = b.person WHERE a.cost > b.cost"
    assert parse(sql, {"visits": visits}).question.statistics == (Persons(name="count_distinct(person)"),)


def test_a_schema_may_be_left_out_where_one_table_bears_the_name() -> None:
    known = {"census.people": TABLES["people"], "other.towns": TABLES["towns"], "old.towns": TABLES["towns"]}
    assert parse("SELECT COUNT(*) FROM people", known).question.table == "census.people"
    assert parse("SELECT COUNT(people.age) FROM Census.People", known).question.table == "census.people"
    with pytest.raises(cl.UnknownTable):
        parse("SELECT COUNT(*) FROM people JOIN towns USING (town)", known)


def test_what_a_left_join_may_leave_out_is_not_the_unit() -> None:
    for sql in ("COUNT(v.patient)", "COUNT(DISTINCT v.patient)"):
        with pytest.raises(cl.UnsupportedQuery):
            read(f"SELECT {sql} FROM patients p LEFT JOIN visits v ON v.patient = p.patient")
    assert read("SELECT COUNT(DISTINCT p.patient) FROM patients p LEFT JOIN visits v ON v.patient = p.patient").question
