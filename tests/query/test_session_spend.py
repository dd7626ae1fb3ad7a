"""The spend that reaches a wanted margin, asked for by itself; and a text that is read once for each state of the tables."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.query import forms

COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def session():
    with cl.Session({"people": _people()}, budget=cl.PureDP(10)) as made:
        yield made


def _people() -> cl.PrivateTable:
    rows = {"age": [30, 40, 50] * 1000, "pay": [1, 2, 3] * 1000}
    columns = {"age": cl.Integer(17, 90), "pay": cl.Integer(0, 9)}
    return cl.PrivateTable(rows, columns=columns, population="people")


def test_it_is_the_spend_that_the_margin_takes(session: cl.Session):
    spend = session.spend_for(COUNT, within=50)
    assert session.explain(COUNT, spend).margin()["n"][0] <= 50
    assert session.spent == cl.PureDP(0)
    assert session.sql(COUNT, within=50).cost == spend


def test_a_pilot_is_bought_and_counts(session: cl.Session):
    sql = "SELECT AVG(age) AS a FROM people"
    spend = session.spend_for(sql, within=1, pilot="0.05")
    assert session.spent == cl.PureDP("0.05")
    session.sql(sql, spend)
    assert session.spent == spend


def test_several_groupings_have_no_one_margin(session: cl.Session):
    with pytest.raises(InvalidParameter):
        session.spend_for("SELECT pay, COUNT(*) AS n FROM people GROUP BY ROLLUP (pay)", within=5)


def test_a_text_is_read_once_between_a_decision_and_its_answer(session: cl.Session, monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    real = forms.parse

    def counted(sql, tables, dialect=None):
        read.append(sql)
        return real(sql, tables, dialect)

    monkeypatch.setattr(forms, "parse", counted)
    seen = session.on_behalf("ana")
    seen.touched(COUNT)
    seen.explain(COUNT, "0.1")
    seen.sql(COUNT, "0.1")
    assert read == [COUNT]
    seen.sql(COUNT, "0.1", dialect="postgres")
    assert read == [COUNT, COUNT]


def test_a_text_is_read_anew_when_the_tables_have_changed(session: cl.Session):
    sql = "SELECT AVG(pay) AS p FROM people"
    seen = session.on_behalf("ana")
    seen.touched(sql)
    rows = {"age": [30, 40, 50] * 1000}
    session.replace("people", cl.PrivateTable(rows, columns={"age": cl.Integer(17, 90)}, population="people"))
    with pytest.raises(UnknownColumn):
        seen.sql(sql, "0.1")
