"""A query is made in a form: it is a question, it is priced as it is made, and it comes back from SQL as it was."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from starlette.datastructures import FormData

import cloister as cl
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.asking.building import MEASURES, UNITS, Draft, Only, draft_in, draft_of, question_of
from cloister.hub.web.forms import Form
from cloister.query import read_sql, write_sql
from cloister.tables import Column, In
from tests.hub.asking.conftest import MAY, Stage
from tests.hub.house import PEOPLE

WARD = cl.PrivateTable(
    {"age": [30], "pay": [1.5], "sex": ["F"], "born": ["2000-01-01"], "smoker": [True], "note": ["x"]},
    columns={
        "age": cl.Integer(17, 90),
        "pay": cl.Real(0, 100, step="0.5", nullable=True),
        "sex": cl.Category(["F", "M"]),
        "born": cl.Date("1990-01-01", "2026-12-31"),
        "smoker": cl.Boolean(),
        "note": cl.Text(),
    },
)
days = st.dates(min_value=datetime.date(1990, 1, 1)).map(str)
present = st.sampled_from(["", "yes", "no"])
conditions = st.fixed_dictionaries(
    {},
    optional={
        "age": st.builds(Only, low=st.integers(1, 99).map(str) | st.just(""), high=st.integers(1, 99).map(str) | st.just("")),
        "pay": st.builds(Only, low=st.sampled_from(["", "0.5", "1/3"]), present=present),
        "sex": st.builds(Only, values=st.lists(st.sampled_from(["F", "M"]), unique=True).map(tuple)),
        "born": st.builds(Only, low=days | st.just(""), high=days | st.just("")),
        "smoker": st.builds(Only, values=st.sampled_from([(), ("true",), ("false",)])),
        "note": st.builds(Only, values=st.sampled_from([(), ("it's",)])),
    },
).map(lambda found: {name: only for name, only in found.items() if only != Only()})
numeric = st.tuples(st.sampled_from([each for each in MEASURES if each != "mode"]), st.sampled_from(["age", "pay"]))
keys = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["sex", "smoker"]), st.just("")),
        st.tuples(st.sampled_from(["age", "pay"]), st.sampled_from(["", "10", "2.5"])),
        st.tuples(st.just("born"), st.sampled_from(["", *(each for each in UNITS if each != "day")])),
    ),
    max_size=3,
    unique_by=lambda key: key[0],
)
drafts = st.builds(
    Draft,
    table=st.just("ward"),
    count=st.just(True),
    measures=st.lists(numeric, max_size=4, unique=True).map(tuple),
    keys=keys.map(tuple),
    only=conditions,
)


@settings(max_examples=100, deadline=None)
@given(draft=drafts)
def test_a_form_comes_back_from_its_sql(draft: Draft):
    question = question_of(draft, WARD)
    again = read_sql(write_sql(question, {"ward": WARD}), {"ward": WARD})
    assert again == question
    assert draft_of(again, WARD) == draft


def post(stage: Stage, path: str, **fields: str) -> Any:
    page = stage.ana.client.get("/ask/build?about=people").text
    token = re.search(r'name="form_token" value="([^"]+)"', page)
    key = re.search(r'name="key" value="([^"]+)"', page)
    assert token is not None
    assert key is not None
    body = {"form_token": token[1], "key": key[1], "spend": "0.1", "confidence": "0.95", **fields}
    return stage.ana.client.post(path, data=body, follow_redirects=True)


FORM = {"table": "people", "count": "yes", "what-0": "mean", "of-0": "pay", "by-0": "age", "width-0": "20", "in-1": "F"}
SQL = (
    "SELECT FLOOR(age / 20) * 20 AS age_from, COUNT(*) AS count, AVG(pay) AS mean_pay\nFROM people\nWHERE sex IN ('F')\n"
    "GROUP BY FLOOR(age / 20) * 20"
)


def written(text: str) -> str:
    return text.replace("'", "&#39;")


def test_a_form_is_explained_rehearsed_asked_edited_and_read_back(stage: Stage):
    told = post(stage, "/ask/explain", **FORM)
    assert told.status_code == 200, told.text
    assert written(SQL) in told.text
    assert "Expected answer" in told.text
    assert stage.charges == []
    assert "These rows are made up" in post(stage, "/ask/rehearse", **FORM).text
    edited = post(stage, "/ask/sql", **FORM).text
    assert written(SQL) in edited.split("<textarea")[1]
    back = post(stage, "/ask/build", sql=SQL).text
    assert 'name="width-0" value="20"' in back or 'value="20"' in back.split('name="width-0"')[1][:200]
    assert re.search(r'name="in-1" value="F" checked', back)
    assert stage.charges == []
    answer = post(stage, "/ask", **FORM)
    assert "/releases/" in str(answer.url)
    assert len(stage.charges) == 1


def test_what_the_form_does_not_show_stays_in_the_editor(stage: Stage):
    told = post(stage, "/ask/build", sql="SELECT COUNT(*) AS n FROM people WHERE age > 40 OR sex = 'F'")
    assert told.status_code == 422
    assert "The form does not show this query" in told.text
    assert "<textarea" in told.text
    for wrong in (
        {"width-0": "-3"},
        {"of-0": "shoe"},
        {"count": "", "what-0": ""},
        {"low-0": "old"},
        {"in-1": "X"},
        {"table": "x"},
    ):
        told = post(stage, "/ask/explain", **{**FORM, **wrong})
        assert told.status_code in (400, 404, 422), wrong
        assert 'role="alert"' in told.text or "callout" in told.text, wrong
    assert stage.charges == []


def test_an_empty_text_is_ticked_where_it_is_a_category() -> None:
    """Dropped as an empty field, it asked about all rows."""
    columns = {"ward": cl.Category(["", "north"]), "note": cl.Text()}
    table = cl.PrivateTable({"ward": [""], "note": ["x"]}, columns)
    draft = draft_in(Form(FormData([("table", "ward"), ("count", "yes"), ("in-0", ""), ("in-1", "")])), table)
    assert question_of(draft, table).where == In(Column("ward"), ("",))


def test_what_the_form_has_too_few_fields_for_is_refused_and_not_cut():
    table = cl.PrivateTable({name: [0] for name in "abcde"}, columns={name: cl.Integer(0, 9) for name in "abcde"})
    for sql, why in (
        ("SELECT a, b, c, d, COUNT(*) AS n FROM t GROUP BY a, b, c, d", "3 keys, and the query has 4"),
        ("SELECT SUM(a), SUM(b), SUM(c), SUM(d), SUM(e) FROM t", "4 measures, and the query has 5"),
    ):
        with pytest.raises(cl.UnsupportedQuery, match=why):
            draft_of(read_sql(sql, {"t": table}), table)


def test_a_forecast_says_for_which_groups_it_holds_and_a_pilot_sharpens_it(stage: Stage):
    unsized = stage.house.sample_data_set("plain", declaration={"columns": PEOPLE["columns"]}, owner=stage.owner)
    stage.house.grant(unsized, stage.ana, by=stage.owner, actions=MAY)
    form = {**FORM, "table": "plain"}
    told = post(stage, "/ask/explain", **form).text
    assert [size in told for size in (">100<", ">1,000<", ">10,000<")] == [True] * 3
    assert "Count the groups for 0.01" in told
    assert list(stage.hub.ledger.charges("plain")) == []
    told = post(stage, "/ask/pilot", **form).text
    assert "See the pilot" in told
    assert len(list(stage.hub.ledger.charges("plain"))) == 1
    assert "See the pilot" in post(stage, "/ask/explain", **form).text
    assert len(list(stage.hub.ledger.charges("plain"))) == 1
    with stage.hub.database.begin() as db:  # a hundred other answers since
        pilot = db.scalars(select(StoredRelease).order_by(StoredRelease.created.desc())).first()
        assert pilot is not None
        same = {column.key: getattr(pilot, column.key) for column in StoredRelease.__table__.columns}
        for each in range(100):
            since = pilot.created + datetime.timedelta(seconds=1 + each)
            db.add(StoredRelease(**{**same, "id": f"later{each}", "created": since, "sql": "SELECT COUNT(*) FROM plain"}))
    assert "See the pilot" in post(stage, "/ask/explain", **form).text
