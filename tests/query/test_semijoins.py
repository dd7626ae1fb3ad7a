"""EXISTS and IN about the same person, or along a declared key: what they become, and what they must not become."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.query.parse import parse
from cloister.tables import Identifier, KeyJoined, Relation, UnitJoined
from tests.query.hospital import rows, tables

TABLES = tables(rows())


def relation(sql: str) -> Relation:
    table = parse(sql, TABLES).question.table
    assert isinstance(table, Relation)
    return table


@pytest.mark.parametrize(
    ("sql", "join", "most"),
    [
        ("SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT * FROM drugs WHERE drugs.visit = visits.visit)", KeyJoined, 4),
        ("SELECT COUNT(*) FROM visits WHERE NOT EXISTS (SELECT * FROM drugs WHERE visit = visits.visit)", KeyJoined, 4),
        ("SELECT COUNT(*) FROM visits WHERE visit IN (SELECT visit FROM drugs WHERE dose > 3)", KeyJoined, 4),
        ("SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits WHERE patient = p.patient)", UnitJoined, 1),
    ],
)
def test_it_adds_no_rows_and_no_columns(sql: str, join: type[Relation], most: int) -> None:
    found = relation(sql)
    assert found.max_rows == most
    assert join in {type(each) for each in found.walk()}
    assert "rows elsewhere" not in found.columns


def test_a_name_means_something_inside_before_it_means_something_outside() -> None:
    """`patient = patient` inside compares a visit with itself, so EXISTS does not ask for the same person."""
    for condition in ("patient = patient", "visits.patient = visits.patient", "v.patient = v.patient"):
        source = "visits AS v" if condition.startswith("v.") else "visits"
        with pytest.raises(cl.UnsupportedQuery, match="does not ask for rows of the same person"):
            relation(f"SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM {source} WHERE {condition})")


def test_unqualified_names_are_found_outside_where_they_mean_nothing_inside() -> None:
    columns = {"cost": cl.Integer(0, 9)}
    people = cl.PrivateTable({"p": [1], "age": [3]}, {"age": cl.Integer(0, 9)}, unit="p", max_rows=1, population="all")
    bills = cl.PrivateTable({"b": [1], "cost": [3]}, columns, unit="b", max_rows=2, population="all")
    known = {"people": people, "bills": bills}
    parts = "SELECT COUNT(*) FROM people WHERE NOT EXISTS (SELECT * FROM bills WHERE {} AND cost > 3)"
    plain, named = (parse(parts.format(each), known).question for each in ("b = p", "bills.b = people.p"))
    assert plain == named
    with pytest.raises(cl.UnsupportedQuery, match="another column of the question around"):
        parse(parts.format("b = p AND cost > age"), known)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT COUNT(*) FROM visits v WHERE v.patient = p.patient)", "aggregate"),
        ("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.visit = v.visit)", "whose row a row is"),
        ("SELECT COUNT(*) FROM visits v WHERE v.visit NOT IN (SELECT visit FROM drugs)", "NOT EXISTS"),
        ("SELECT COUNT(*) FROM visits v WHERE v.visit IN (SELECT visit FROM visits)", "person alone"),
        ("SELECT COUNT(*) FROM visits v WHERE v.visit IN (SELECT dose FROM drugs)", "person alone"),
    ],
)
def test_what_is_refused(sql: str, why: str) -> None:
    with pytest.raises(cl.UnsupportedQuery, match=why):
        relation(sql)


def test_a_key_asks_only_from_the_column_that_was_declared() -> None:
    """Another column of names may hold somebody else's visit, whose drugs would go with that person."""
    columns = {"visit": Identifier(), "before": Identifier()}
    source = {"patient": [1], "visit": [7], "before": [6]}
    visits = cl.PrivateTable(source, columns=columns, unit="patient", max_rows=2, population="patients")
    known = {"visits": visits, "drugs": TABLES["drugs"]}
    for question in (
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM drugs d WHERE d.visit = {})",
        "SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM drugs d WHERE d.visit = {})",
        "SELECT COUNT(*) FROM visits v WHERE {} IN (SELECT visit FROM drugs)",
    ):
        with pytest.raises(cl.UnsupportedQuery):
            parse(question.format("v.before"), known)
    assert parse("SELECT COUNT(*) FROM visits v WHERE v.visit IN (SELECT visit FROM drugs)", known)
    mixed = "SELECT patient, visit AS k FROM visits UNION ALL SELECT patient, before AS k FROM visits"
    with pytest.raises(cl.UnsupportedQuery):
        parse(f"SELECT COUNT(*) FROM ({mixed}) AS v WHERE v.k IN (SELECT visit FROM drugs)", known)
