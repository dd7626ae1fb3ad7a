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


def test_a_cost_in_the_text_and_another_beside_it_are_refused(session: cl.Session):
    """Either may be what is meant: nothing is charged, and the plan says so before."""
    own = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.1) COUNT(*) AS n FROM people"
    for ask in (
        lambda: session.sql(own, 5),
        lambda: session.sql(own, cl.PureDP(5)),
        lambda: session.sql(own, within=50),
        lambda: session.spend_for(own, within=50),
        lambda: session.workload([COUNT, own], 5),
        lambda: session.stored(own, 5),
    ):
        with pytest.raises(InvalidParameter, match="the query names ε = 0.1 in its OPTIONS") as refusal:  # noqa: RUF043
            ask()
        assert 'spend="0.1"' in refusal.value.instead
    assert session.spent == cl.PureDP(0)
    assert any("no other spend than ε = 0.1" in note for note in session.explain(own, 5).notes)
    assert not session.explain(own).notes
    assert session.sql(own, "0.10").cost == session.sql(own).cost == cl.PureDP("0.1")


def test_a_workload_reads_its_texts_as_sql_does(session: cl.Session):
    """What the declaration answers is 0, costs nothing and is told; beside others they alone are measured, in the plan too."""
    none = "SELECT COUNT(*) AS n FROM people WHERE age > 200"
    for texts in ([none, none], [none, COUNT, none]):
        plan = session.explain_workload(texts, 1)
        free, *_, last = session.workload(texts, 1)
        for each in (free, last, session.stored(none)):
            assert each is not None
            assert each["n"].tolist() == [0]
            assert any("age > 200 holds for no row" in note for note in each.notes)
        assert any("age > 200 holds for no row" in note for note in plan.notes)
        assert len(plan.parts) == (COUNT in texts)
        assert session.spent == cl.PureDP(int(COUNT in texts))


@pytest.mark.parametrize(
    ("beside", "why"),
    [
        ({"pilot": "0.1"}, "it goes with a wanted margin"),
        ({"confidence": 1.5}, "a number between 0 and 1"),
        ({"fresh": "no"}, "it must be True or False"),
        ({"rehearse": 0}, "it must be True or False"),
        ({"dialect": []}, "it is not a text, or its dialect is not"),
    ],
    ids=str,
)
def test_what_stands_beside_a_query_is_looked_at_though_its_answer_does_not_need_it(session: cl.Session, beside, why: str):
    with pytest.raises(InvalidParameter, match=why):
        session.sql(COUNT, 1, **beside)
    assert session.spent == cl.PureDP(0)


def test_what_is_no_text_is_no_query(session: cl.Session):
    for asked in (session.sql, session.explain):
        with pytest.raises(InvalidParameter, match=r"it is not a text|it is a int"):
            asked(5, 1)
