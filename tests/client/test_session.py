"""What a session sends, what it refuses before anything is sent, and how it is opened."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import cloister as cl
from cloister import errors
from cloister.learn import GaussianNB
from tests.client.test_transport import SQL, Scripted, answered, problem

PLAN = {
    "cost": {"kind": "PureDP", "text": "ε = 0.1", "epsilon": "0.1"},
    "costs": {"people": {"kind": "PureDP", "text": "ε = 0.1", "epsilon": "0.1"}},
    "confidence": 0.95,
    "margins": {"n": 30.0, "m": None},
    "text": "measures rows",
    "picture": "<svg><script>alert(1)</script></svg>",
    "digest": "d",
}


def sent(hub: Scripted, place: int = -1) -> dict[str, object]:
    found: dict[str, object] = json.loads(hub.seen[place].content)
    return found


def test_exact_texts_travel_and_defaults_are_filled_in() -> None:
    hub = Scripted(answered, answered)
    session = hub.session(project="p1", purpose="a study")
    session.sql(SQL, spend=0.1, confidence=0.9, fresh=True, dialect="postgres")
    assert sent(hub) == {
        "sql": SQL, "spend": "0.1", "purpose": "a study", "project": "p1", "dialect": "postgres", "confidence": 0.9, "fresh": True
    }  # fmt: skip
    session.sql(SQL, within=5, pilot="1/3", purpose="another", project="")
    assert sent(hub)["within"] == 5.0
    assert sent(hub)["pilot"] == "1/3"
    assert sent(hub)["spend"] == ""
    assert (sent(hub)["purpose"], sent(hub)["project"]) == ("another", "")


def test_all_is_asked_under_the_algorithm_of_the_session() -> None:
    hub = Scripted(answered, answered)
    session = hub.session(algorithm="a1")
    session.sql(SQL, spend=1)
    assert sent(hub)["algorithm"] == "a1"
    session.stored(SQL)
    assert sent(hub)["algorithm"] == "a1"


def test_an_answer_knows_where_the_hub_keeps_it() -> None:
    hub = Scripted(answered, answered)
    session = hub.session()
    answer = session.sql(SQL, spend="0.1")
    assert isinstance(answer, cl.Release)
    assert session.address_of(answer) == "https://hub.example.org/releases/r1"
    again = session.release(session.address_of(answer))
    assert hub.seen[-1].url.path == "/api/v1/releases/r1"
    assert again.to_json() == answer.to_json()
    with pytest.raises(errors.InvalidParameter, match="no address"):
        session.address_of(answer.take([0]))
    with pytest.raises(errors.InvalidParameter):
        session.release("https://hub.example.org/releases/..")


def test_a_guarantee_is_sent_only_where_the_budget_counts_in_its_kind() -> None:
    hub = Scripted(httpx.Response(200, json=PLAN), answered, httpx.Response(200, json=PLAN))
    session = hub.session()
    session.sql(SQL, spend=cl.PureDP("0.1"))
    assert [each.url.path for each in hub.seen] == ["/api/v1/questions/explain", "/api/v1/questions"]
    assert sent(hub)["spend"] == "0.1"
    with pytest.raises(errors.NotConvertible, match="does not cover"):
        session.sql(SQL, spend=cl.ZCDP("0.1"))
    assert len(hub.seen) == 3


def test_a_plan_shows_cost_and_margins_and_runs_no_script() -> None:
    wider = PLAN | {"confidence": 0.99, "margins": {"n": 46.0, "m": None}}
    hub = Scripted(httpx.Response(200, json=PLAN), httpx.Response(200, json=wider))
    plan = hub.session().explain(SQL, "0.1")
    assert plan.cost == cl.PureDP("0.1")
    assert plan.margin()["n"].tolist() == [30.0]
    assert plan.margin(0.99)["n"].tolist() == [46.0]
    assert plan.margin(0.99)["n"].tolist() == [46.0]
    assert len(hub.seen) == 2
    assert math.isnan(plan.margin()["m"][0])
    assert (str(plan), plan.picture()[:4], plan.digest) == ("measures rows", "<svg", "d")
    assert "<script>" not in plan._repr_html_()


def test_afford_asks_for_one_plan_a_spend() -> None:
    hub = Scripted(*[httpx.Response(200, json=PLAN)] * 2)
    found = hub.session().afford(SQL, ["0.1", "1"])
    assert found.to_pydict()["n"] == [30.0, 30.0]
    assert [sent(hub, place)["spend"] for place in (0, 1)] == ["0.1", "1"]


def test_a_rehearsal_charges_nothing() -> None:
    from cloister.session.examples import small_release

    hub = Scripted(httpx.Response(200, json={"release": small_release().to_json()}))
    assert hub.session().sql(SQL, spend="0.1", rehearse=True).num_rows == 2
    assert hub.seen[0].url.path == "/api/v1/questions/rehearse"


@pytest.mark.parametrize("name", ["measure", "measure_all", "run", "watch", "explain_workload", "add"])
def test_objects_stay_at_home(name: str) -> None:
    hub = Scripted()
    with pytest.raises(errors.UnsupportedQuery) as refused:
        getattr(hub.session(), name)(object(), spend=1)
    assert refused.value.instead
    assert hub.seen == []
    with pytest.raises(AttributeError, match="'RemoteSession' object has no attribute 'sqll'"):
        _ = hub.session().sqll  # type: ignore[attr-defined]


def test_objects_are_no_sql() -> None:
    hub = Scripted()
    with pytest.raises(errors.UnsupportedQuery):
        hub.session().sql(object(), spend=1)  # type: ignore[arg-type]
    with pytest.raises(errors.UnsupportedQuery):
        hub.session().explain([SQL], spend=1)  # type: ignore[arg-type]


def data_set(name: str, **more: object) -> dict[str, object]:
    columns = {"age": {"kind": "integer", "low": 1, "high": 9}}
    return {"name": name, "population": name, "declaration": {"columns": columns}} | more


def test_tables_and_budgets_come_in_pages() -> None:
    people = data_set("people", budget={"epsilon": "1"}, spent={"epsilon": "1/3"})
    more = [
        data_set("secret", budget={"rho": "1"}, spent=None),
        data_set("towns", budget={"epsilon": "1"}, spent={"epsilon": "2"}, unbounded=True),
    ]
    pages = [{"items": [people], "next": "people"}, {"items": more, "next": None}]
    hub = Scripted(*[httpx.Response(200, json=page) for _ in range(4) for page in pages])
    session = hub.session()
    assert session.remaining_by == {"people": cl.PureDP("2/3"), "towns": cl.PureDP(0)}
    assert hub.seen[1].url.params["after"] == "people"
    assert session.spent == cl.PureDP(2)
    assert session.unbounded == ("towns",)
    assert session.tables["people"].columns == {"age": cl.Integer(1, 9)}


def test_where_no_budget_is_open_it_says_so() -> None:
    with pytest.raises(errors.InvalidParameter, match="no budget"):
        _ = Scripted(httpx.Response(200, json={"items": [], "next": None})).session().spent
    odd = data_set("people", budget={"epsilon": "1"}, spent={"omega": "1"})
    with pytest.raises(errors.InvalidParameter, match="no known form"):
        _ = Scripted(httpx.Response(200, json={"items": [odd], "next": None})).session().spent


def test_a_workload_is_one_request_under_one_key() -> None:
    two = {"releases": [json.loads(answered(httpx.Request("GET", "/")).content)] * 2}
    hub = Scripted(httpx.ReadError("cut"), httpx.Response(201, json=two))
    answers = hub.session().workload([SQL, "SELECT COUNT(*) AS n FROM people"], spend="0.1", purpose="look")
    assert [answer.num_rows for answer in answers] == [2, 2]
    assert len({each.headers["idempotency-key"] for each in hub.seen}) == 1
    assert sent(hub) == {
        "questions": [SQL, "SELECT COUNT(*) AS n FROM people"], "spend": "0.1", "purpose": "look", "project": "", "dialect": None
    }  # fmt: skip
    with pytest.raises(errors.InvalidParameter, match="a list of questions"):
        hub.session().workload([], spend="0.1")


def test_what_was_never_bought_is_none() -> None:
    hub = Scripted(problem(404, "missing"), answered, problem(404, "unknown-table"))
    session = hub.session()
    assert session.stored(SQL) is None
    assert session.stored(SQL) is not None
    with pytest.raises(errors.UnknownTable):
        session.stored(SQL)


def test_the_token_comes_from_the_environment_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOISTER_TOKEN", raising=False)
    with pytest.raises(errors.InvalidParameter, match="no API token"):
        cl.connect("https://hub.example.org")
    monkeypatch.setenv("CLOISTER_TOKEN", "clo_secret")
    with cl.connect("https://hub.example.org") as session:
        assert "clo_secret" not in repr(session) + repr(vars(session)) + repr(session._transport)
    for token in ("", "two words", "line\nbreak", "é"):
        with pytest.raises(errors.InvalidParameter) as refused:
            cl.connect("https://hub.example.org", token=token)
        assert token == "" or token not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["http://hub.example.org", "http://192.0.2.1:8765", "http://127.0.0.1.example.org", "http://10.0.0.1"]
)
def test_plain_http_leaves_this_machine_for_nobody(url: str) -> None:
    with pytest.raises(errors.InvalidParameter, match="network") as refused:
        cl.connect(url, token="clo_x")
    assert refused.value.instead == f'cloister.connect("https{url[4:]}")'


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://localhost", "http://[::1]:8765", "http://127.8.8.8"])
def test_plain_http_is_for_this_machine(url: str) -> None:
    cl.connect(url, token="clo_x").close()


@pytest.mark.parametrize(
    "url", ["hub.example.org", "ftp://x", "https://", "https://me:word@hub.example.org", "https://x/?token=1", ""]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(errors.InvalidParameter, match="is not an http"):
        cl.connect(url, token="clo_x")


def test_certificates_are_always_checked(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidParameter, match="get the token"):
        cl.connect("https://hub.example.org", token="clo_x", verify=False)
    (tmp_path / "no.pem").write_text("no certificate")
    for how in ({"verify": tmp_path / "no.pem"}, {"verify": tmp_path / "missing.pem"}, {"certificate": tmp_path / "no.pem"}):
        with pytest.raises(errors.InvalidParameter):
            cl.connect("https://hub.example.org", token="clo_x", **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "how",
    [
        {"within": float("nan")},
        {"within": float("inf")},
        {"within": "50"},
        {"within": True},
        {"within": 10**400},
        {"spend": 1, "confidence": float("nan")},
        {"spend": 1, "confidence": Fraction(19, 20)},
        {"spend": 1, "confidence": 1},
        {"spend": 1, "fresh": "no"},
        {"spend": 1, "rehearse": 0},
        {"spend": 1, "pilot": "0.1"},
        {"spend": 1, "purpose": "\ud800"},
        {"spend": 1, "dialect": {1}},
    ],
    ids=str,
)
def test_what_is_no_plain_number_or_text_is_refused_here_in_words(how: dict[str, Any]) -> None:
    """As a session on this machine refuses it; nothing is sent."""
    hub = Scripted()
    with pytest.raises(
        errors.InvalidParameter, match=r"must be a number|not plain data|must be True or False|goes with a wanted"
    ):
        hub.session().sql("SELECT COUNT(*) FROM people", **how)
    assert hub.seen == []


@pytest.mark.parametrize(
    ("method", "how", "words"),
    [
        ("fit_model", {"model": 5, "features": ["age"]}, "model='int' is invalid: it is not one of"),
        ("fit_model", {"model": GaussianNB(), "features": object()}, "features= is invalid: it is not plain data"),
        ("fit_model", {"model": GaussianNB(), "features": {"age"}}, "features= is invalid: it is not plain data"),
        ("try_anonymizing", {"anonymizer": 5}, "An anonymizer of type 'int' is invalid: a hub does not take it"),
        ("synthesise", {"columns": 5}, "A column of type 'int' is invalid: it is not a name"),
        ("synthesise", {"columns": ["age"], "about": 5}, "about= is invalid: a hub takes a list"),
        ("synthesise", {"columns": ["age"], "rules": None}, "rules= is invalid: a hub takes a list"),
    ],
)
def test_what_is_of_another_kind_is_named(method: str, how: dict[str, Any], words: str) -> None:
    hub = Scripted()
    spend = {} if method == "try_anonymizing" else {"spend": 1}
    with pytest.raises(errors.InvalidParameter, match=words):
        getattr(hub.session(), method)(table="people", **how, **spend)
    assert hub.seen == []


class Rows:
    def __repr__(self) -> str:
        return "Ana, 1980, HIV"


@pytest.mark.parametrize("place", ["features", "anonymizer", "columns", "about", "rules"])
def test_no_refusal_shows_the_rows_that_were_given(place: str) -> None:
    method = {"features": "fit_model", "anonymizer": "try_anonymizing"}.get(place, "synthesise")
    more = {"features": {"model": GaussianNB(), "spend": 1}, "anonymizer": {}}.get(place, {"columns": ["age"], "spend": 1})
    with pytest.raises(errors.InvalidParameter) as refused:
        getattr(Scripted().session(), method)(table="people", **{**more, place: Rows()})
    assert "Ana" not in str(refused.value)


@pytest.mark.parametrize("address", [5, None, b"x", [], "x" * 100_000, ""], ids=repr)
def test_what_is_no_address_of_a_release_is_refused(address: Any) -> None:
    session = Scripted().session()
    for asked in (session.release, session.synthetic, lambda each: session.fit_survey(each, "a", ["b"])):
        with pytest.raises(errors.InvalidParameter, match="not the address of a release"):
            asked(address)


@pytest.mark.parametrize(
    "how", [{"timeout": None}, {"timeout": "x"}, {"timeout": math.inf}, {"timeout": True}, {"token": 5}, {"token": b"x"}], ids=str
)
def test_a_token_is_a_text_and_a_timeout_a_number(how: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidParameter):
        cl.connect("https://hub.example.org", **({"token": "clo_x"} | how))
    with pytest.raises(errors.InvalidParameter):
        cl.connect("\ud800", token="clo_x")


def test_columns_of_a_frame_travel_as_lists() -> None:
    hub = Scripted(httpx.Response(200, json={"cost": {}}))
    hub.session().explain_algorithm("a", np.str_("people"), spend=1)
    assert sent(hub)["table"] == "people"
    hub = Scripted(problem(404, "missing"))
    with pytest.raises(errors.CloisterError):
        hub.session().fit_model(GaussianNB(), "people", features=np.array(["age", "hours"]), spend=1)  # type: ignore[arg-type]
    assert sent(hub)["features"] == ["age", "hours"]


def test_a_workload_is_a_list_of_questions() -> None:
    with cl.Session({"people": cl.PrivateTable({"age": [1]}, columns={"age": cl.Integer(0, 9)})}, budget=cl.PureDP(1)) as local:
        for session in (Scripted().session(), local):
            for questions in (None, "SELECT COUNT(*) FROM people", 5):
                with pytest.raises(errors.InvalidParameter, match="a list of questions"):
                    session.workload(questions, 1)  # type: ignore[arg-type]
        with pytest.raises(errors.InvalidParameter, match="a list of questions"):
            local.workload([5], 1)  # type: ignore[list-item]
