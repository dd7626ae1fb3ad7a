"""SQL on a synthetic table, in the workbench, the API and PostgreSQL clients: at no cost, under the rules of its release."""

from __future__ import annotations

import html
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import cloister as cl
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.tables import ASKED, name_in_queries
from cloister.synth import SyntheticModel
from tests.hub.house import Clock, House, served
from tests.hub.synthesising.conftest import MAY, Stage

ASK = (*MAY, "question.ask", "question.explain")


def named(stage: Stage, number: str) -> str:
    with stage.hub.database.reading() as db:
        return name_in_queries(db.get_one(StoredRelease, number))


def by_sex(name: str) -> str:
    return f"SELECT sex, COUNT(*) AS n FROM {name} GROUP BY sex"


def ask(stage: Stage, sql: str, path: str = "/ask", **more: str) -> Any:
    """Send the form of the workbench."""
    page = stage.ana.client.get("/ask").text
    token, key = (html.unescape(re.search(rf'name="{each}" value="([^"]+)"', page)[1]) for each in ("form_token", "key"))  # type: ignore[index]
    return stage.ana.client.post(path, data={"form_token": token, "key": key, "sql": sql, "confidence": "0.95", **more})


def test_the_workbench_answers_at_no_cost_and_writes_it_down(stage: Stage):
    number = stage.made(spend="1", title="Teaching table")
    name = named(stage, number)
    assert re.fullmatch(r"people_synthetic_[0-9a-f]{8}", name)
    assert f"/ask?about={name}" in stage.ana.client.get(f"/synthetic/{number}").text
    begun = stage.ana.client.get(f"/ask?about={name}").text
    assert f"FROM {name} GROUP BY sex" in html.unescape(begun)

    explained = ask(stage, by_sex(name), "/ask/explain").text
    assert "a query costs nothing" in explained
    assert stage.entries(ASKED) == []
    answered = ask(stage, by_sex(name))
    assert answered.status_code == 200
    cell = r'<td>([FM])</td><td class="n"><span class="number">([\d.]+)</span>.*?….*?badge good">measured'
    told = re.findall(cell, answered.text)
    model = SyntheticModel.from_json(stage.get(f"/releases/{number}").text)
    expected = model.answer(by_sex("people")).table.to_pydict()
    assert [sex for sex, _ in told] == expected["sex"]
    assert all(
        abs(float(n) - exact) <= 0.5 for (_, n), exact in zip(told, expected["n"], strict=True)
    )  # as the margin lets it be
    [entry] = stage.entries(ASKED)
    assert (entry.kind, entry.object, entry.cost, entry.details["sql"]) == ("synthetic-table", number, {}, by_sex(name))
    assert stage.spent == "ε = 1", "the release was charged, and nothing more"
    assert stage.get("/releases").json()["releases"] == [], "no answer is kept"


def test_it_is_not_joined_with_people(stage: Stage):
    name = named(stage, stage.made(spend="1"))
    refused = ask(stage, f"SELECT COUNT(*) FROM {name} JOIN people ON people.age = {name}.age", spend="0.1")
    assert (refused.status_code, "The table 'people' is unknown" in html.unescape(refused.text)) == (404, True)
    assert stage.spent == "ε = 1"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT age FROM {name}", "neither aggregated nor a key"),
        ("SELECT none, COUNT(*) FROM {name} GROUP BY none", "declares"),
        ("SELECT MAX(age) FROM {name}", "counts, sums and means"),
    ],
)
def test_what_it_cannot_answer_is_refused_and_costs_nothing(stage: Stage, sql: str, said: str):
    name = named(stage, stage.made(spend="1"))
    refused = ask(stage, sql.format(name=name), spend="0.1")
    assert (refused.status_code, said in html.unescape(refused.text)) == (422, True), refused.text
    assert stage.spent == "ε = 1"
    assert stage.entries(ASKED) == []


def test_the_api_and_the_client_answer(stage: Stage):
    number = stage.made(spend="1")
    name = named(stage, number)
    told = stage.post("/releases/answer", {"sql": by_sex(name)}).json()
    assert (told["release"], told["table"], told["cost"], told["confidence"]) == (number, name, {"people": "ε = 1"}, 0.95)
    assert list(told["columns"]) == ["sex", "n", "n_low", "n_high", "n_kind"]
    assert set(told["columns"]["n_kind"]) == {"measured"}
    wide = stage.post("/releases/answer", {"sql": by_sex(name), "confidence": 0.999}).json()["columns"]
    assert wide["n_high"][0] > told["columns"]["n_high"][0]
    unknown = stage.post("/releases/answer", {"sql": f"SELECT AVG(age) AS a FROM {name} WHERE sex = 'F'"}).json()["columns"]
    assert (unknown["a_kind"], unknown["a_low"]) in ((["measured"], unknown["a_low"]), (["not known"], [None]))
    assert stage.post("/releases/answer", {"sql": by_sex("people")}).status_code == 404
    assert stage.post("/releases/answer", {"sql": by_sex("people_synthetic_00000000")}).status_code == 404
    with served(stage.hub) as address, cl.connect(address, token=stage.ana.token) as session:
        assert session.answer(by_sex(name)) == told["columns"]
        assert session.synthetic(f"{address}/synthetic/{number}").answer(by_sex("people")).to_pydict() == told["columns"]
    assert stage.spent == "ε = 1"


def test_any_text_is_searched_for_names_at_once():
    """One name a word: a text that is one long word takes no longer than any other (a regular expression holds all threads)."""
    from cloister.hub.releases.tables import _NAMED

    assert _NAMED.findall("from people_synthetic_0123abcd, x") == ["people_synthetic_0123abcd"]
    assert _NAMED.findall("_aaaaaaa" * 125_000 + " people_synthetic_0123abcd") == ["people_synthetic_0123abcd"]  # an hour before


def test_tables_of_two_populations_are_pooled_in_the_client(stage: Stage):
    members = stage.house.sample_data_set("members", owner=stage.owner)
    stage.house.grant(members, stage.ana, by=stage.owner, actions=MAY)
    numbers = [stage.made(spend="1"), stage.made(spend="0.5", table="members")]
    again = stage.made(spend="0.25", table="members", columns=["sex"])
    with served(stage.hub) as address, cl.connect(address, token=stage.ana.token) as session:
        both = session.synthetic(*numbers)
        assert isinstance(both, cl.synth.PooledModel)
        assert both.costs == {"people": cl.PureDP(1), "members": cl.PureDP("0.5")}
        told = both.answer("SELECT COUNT(*) AS n FROM pooled", confidence=0.999_999_999)
        assert told.kind()["n"].tolist() == ["measured"]
        assert told.low()["n"][0] <= 600 <= told.high()["n"][0]
        with pytest.raises(cl.InvalidParameter, match="'members', and a person who is in both"):
            session.synthetic(numbers[1], again)
    assert stage.spent == "ε = 1"


def test_whoever_sees_the_release_asks_it_and_nobody_else(stage: Stage):
    number = stage.made()
    name, bea = named(stage, number), stage.house.person("analyst", email="bea@example.org")
    other = Stage(stage.house, stage.owner, bea, stage.people, "")
    assert name not in bea.client.get("/datasets").text
    assert stage.post("/releases/answer", {"sql": by_sex(name)}, bea).status_code == 404
    assert "No data set is open to you yet" in bea.client.get("/ask").text
    stage.post(f"/releases/{number}/shares", {"email": "bea@example.org"})
    assert name in bea.client.get("/datasets").text
    assert "badge good" in ask(other, by_sex(name)).text, "to look is to ask, on a page"
    assert stage.post("/releases/answer", {"sql": by_sex(name)}, bea).status_code == 403, "a program takes it as a download"
    stage.house.grant(stage.people, bea, by=stage.owner, actions=("release.see", "release.download"))
    assert stage.post("/releases/answer", {"sql": by_sex(name)}, bea).status_code == 200
    stage.post(f"/releases/{number}/shares/withdraw", {"email": "bea@example.org"})
    assert stage.post("/releases/answer", {"sql": by_sex(name)}, bea).status_code == 404


def test_one_that_is_listed_no_more_is_asked_by_its_name(stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    """Pages list the newest ones alone."""
    monkeypatch.setattr("cloister.hub.releases.tables._MOST", 1)
    old = stage.made(spend="0.5")
    clock.move(seconds=1)  # or two of one moment
    new = stage.made(spend="0.4")
    listed = stage.ana.client.get("/datasets").text
    assert (named(stage, old) in listed, named(stage, new) in listed) == (False, True)
    assert stage.post("/releases/answer", {"sql": by_sex(named(stage, old))}).status_code == 200


def test_the_catalogue_lists_it(stage: Stage):
    number = stage.made(title="Teaching <table>")
    page = stage.ana.client.get("/datasets").text
    assert "Teaching &lt;table&gt;" in page
    assert f'href="/releases/{number}"' in page
    assert "0.25" in page
    assert "Teaching" in stage.ana.client.get("/datasets?search=teaching").text
    assert "Teaching &lt;" not in stage.ana.client.get("/datasets?search=elsewhere").text


def test_hostile_names_and_values_stay_texts(stage: Stage):
    values = ["<script>alert(1)</script>", "a'b"]
    columns = {"<b>": {"kind": "category", "values": values}}
    odd = stage.house.sample_data_set("odd", owner=stage.owner, rows={"<b>": values * 100}, declaration={"columns": columns})
    stage.house.grant(odd, stage.ana, by=stage.owner, actions=MAY)
    name = named(stage, stage.made(table="odd", columns=["<b>"], spend="1"))
    page = ask(stage, f'SELECT "<b>", COUNT(*) AS "<i>" FROM {name} GROUP BY "<b>"').text
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "<i>" not in page


@pytest.fixture
def wired(tmp_path: Path, clock: Clock) -> Iterator[Stage]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    house = House(tmp_path / "wired", clock, pg_port=port)
    owner, ana = house.person("owner"), house.person("analyst", email="ana@example.org")
    people: DataSet = house.sample_data_set("people", owner=owner)
    yield Stage(house, owner, ana, people, house.grant(people, ana, by=owner, actions=ASK))
    house.close()


def test_a_postgres_client_asks_without_a_spend(wired: Stage):
    name = named(wired, wired.made(spend="1"))
    given = {"user": "ana@example.org", "password": wired.ana.token, "dbname": "hub", "connect_timeout": 20}
    with psycopg.connect(host="127.0.0.1", port=wired.hub.settings.pg_port, autocommit=True, **given) as connection:
        tables = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'").fetchall()
        assert (name,) in tables
        found = connection.execute(f"{by_sex(name)} ORDER BY n DESC")
        assert [each.name for each in found.description or ()] == ["sex", "n", "n_low", "n_high", "n_kind"]
        (first, n, low, high, kind), (second, *_) = found.fetchall()
        assert ({first, second}, low < n < high, kind) == ({"F", "M"}, True, "measured")
        assert connection.execute(by_sex(name) + " LIMIT %s", (1,)).rowcount == 1
        with pytest.raises(psycopg.Error, match="at no cost"):
            connection.execute(f"EXPLAIN {by_sex(name)}")
        with pytest.raises(psycopg.Error, match="no spend is set"):
            connection.execute(by_sex("people"))
    assert wired.spent == "ε = 1"
    assert {each.details["via"] for each in wired.entries(ASKED)} == {"token"}
