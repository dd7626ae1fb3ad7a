"""U3 may run the code of A1 near the rows of D1, and nothing else; only noisy numbers leave, for a charge, as a release."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

import cloister as cl
from cloister.hub.platform.access import grant
from cloister.hub.platform.jobs import Workers
from cloister.hub.platform.trail import verify
from cloister.hub.records.access import Algorithm
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from cloister.printable import margin_text
from tests.hub.house import House, Visitor, served

CODE = """
def first(rows):
    return [min(rows["age"])]

def middle(rows):
    ages = sorted(rows["age"])
    return [ages[len(ages) // 2]]
"""
A1: dict[str, Any] = {"code": CODE, "inputs": ["age"], "low": [0], "high": [120], "names": ["age"], "blocks": 10, "seconds": 0.02}
SELECT = r'<select id="f-\w+" name="(\w+)"(.*?)</select>'
ORDER: dict[str, Any] = {"algorithm": "a1", "table": "people", "spend": "0.25", "purpose": "research"}


@dataclass
class Play:
    """A house with U3, who may run A1 on D1, the owner of D1, and the provider of A1 and A2."""

    house: House
    owner: Visitor
    provider: Visitor
    u3: Visitor

    def post(self, path: str, body: Any, who: Visitor | None = None) -> Any:
        """Ask the API with a token."""
        return self.house.client().post(f"/api/v1{path}", json=body, headers=(who or self.u3).bearer)

    def get(self, path: str, who: Visitor | None = None) -> Any:
        """Look, with a token."""
        return self.house.client().get(f"/api/v1{path}", headers=(who or self.u3).bearer)

    def run(self, **changed: Any) -> dict[str, Any]:
        """Order a run and let a worker do it: its job."""
        answer = self.post("/algorithm-runs", {**ORDER, **changed})
        assert answer.status_code == 202, answer.text
        assert Workers(self.house.hub, 0).run_one()
        told: dict[str, Any] = self.get(f"/jobs/{answer.json()['job']}").json()
        return told

    @property
    def spent(self) -> str:
        return str(self.house.hub.ledger.spent("people"))


def register(who: Visitor, name: str, settings: dict[str, Any]) -> Any:
    """An algorithm of the service."""
    body = {"name": name, "title": name.upper(), "service": "guests", "settings": settings}
    return who.client.post("/api/v1/algorithms", json=body, headers=who.bearer)


def let(provider: Visitor, name: str, who: Visitor, **rules: Any) -> str:
    """A provider's grant."""
    body = {"role": "runner", "members": {"people": [who.id]}, "rules": {"actions": ["algorithm.run"], **rules}}
    made = provider.client.post(f"/api/v1/algorithms/{name}/grants", json=body, headers=provider.bearer)
    assert made.status_code == 201, made.text
    number: str = made.json()["id"]
    return number


@pytest.fixture
def play(house: House) -> Play:
    """In a house of its own."""
    return play_in(house)


def play_in(house: House) -> Play:
    """The owner's grant names A1 alone; the provider lets U3 run both."""
    owner = house.person("owner", email="olga@example.org", name="Olga")
    u3 = house.person("analyst", email="u3@example.org", name="U3")
    provider = house.person("algorithm-provider", email="pia@example.org", name="Pia")
    people, others = (house.sample_data_set(name, owner=owner) for name in ("people", "others"))
    for name, settings in (("a1", A1), ("a2", {**A1, "code": "def f(rows):\n    return [rows['age'][0]]"})):
        made = register(provider, name, settings)
        assert made.status_code == 201, made.text
        let(provider, name, owner, actions=["algorithm.see"])
    rules = {"actions": ["algorithm.run", "release.see", "release.download"], "algorithms": ["a1"]}
    grant(house.hub, owner.caller, data_set="people", role="runner", members={"people": [u3.id]}, rules=rules)
    for each in (people, others):
        house.grant(each, u3, by=owner, actions=("dataset.see",))
        house.grant(each, provider, by=owner, actions=("dataset.see",))
    for name in ("a1", "a2"):
        let(provider, name, u3, only_with=["people"])
    return Play(house, owner, provider, u3)


def test_u3_runs_a1_on_d1_for_a_charge_and_gets_numbers_with_margins(play: Play) -> None:
    price = play.post("/algorithm-runs/price", ORDER).json()
    assert price["cost"] == "ε = 0.25"
    assert price["errors"][0]["name"] == "age"
    assert play.spent == "ε = 0"
    told = play.run()
    assert told["state"] == "done", told
    assert play.spent == "ε = 0.25"
    found = play.get(f"/releases/{told['result']['guest']}").json()
    kept = found if "values" in found else json.loads(found["body"])
    assert 0 <= kept["values"]["age"] <= 120
    assert kept["margins"]["age"] == pytest.approx(price["errors"][0]["margin"])
    page = play.u3.client.get(f"/algorithm-results/{told['result']['guest']}")
    assert page.status_code == 200
    assert "Blocks of people" in page.text
    assert "a1" in page.text
    play.run()
    assert play.spent == "ε = 0.5"  # each run is a new one
    assert verify(play.house.hub)


def test_a_forecast_and_a_run_from_python(play: Play) -> None:
    def work() -> None:
        ends = time.monotonic() + 60
        while not Workers(play.house.hub, 0).run_one() and time.monotonic() < ends:
            time.sleep(0.02)

    with served(play.house.hub) as address, cl.connect(address, token=play.u3.token, purpose="research") as session:
        told = session.explain_algorithm("a1", "people", spend="0.25")
        assert (told["cost"], told["errors"][0]["name"]) == ("ε = 0.25", "age")
        assert play.spent == "ε = 0"
        with pytest.raises(cl.CloisterError):
            session.explain_algorithm("a2", "people", spend="0.25")
        worker = threading.Thread(target=work)
        worker.start()
        found = session.run_algorithm("a1", "people", spend="0.25")
        worker.join()
    assert found["margins"]["age"] == pytest.approx(told["errors"][0]["margin"])
    assert play.spent == "ε = 0.25"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"algorithm": "a2"}, 403),
        ({"table": "others"}, 403),
        ({"algorithm": "a3"}, 404),
        ({"algorithm": ""}, 422),
        ({"spend": "0"}, 422),
        ({"table": "nowhere"}, 404),
        ({"code": "def f(rows): pass"}, 422),
    ],
)
def test_nothing_else(play: Play, changed: dict[str, Any], status: int) -> None:
    answer = play.post("/algorithm-runs", {**ORDER, **changed})
    assert answer.status_code == status, answer.text
    assert play.spent == "ε = 0"


def test_more_than_there_is_is_refused_and_costs_nothing(play: Play) -> None:
    refused = play.post("/algorithm-runs", {**ORDER, "spend": "9"})
    assert (refused.status_code, "people" in refused.text) == (409, True)
    assert play.spent == "ε = 0"


def test_neither_of_them_alone_lets_anybody_in(play: Play) -> None:
    """Ana has the provider's grant and not the owner's, Bob the owner's and not the provider's."""
    ana, bob = (play.house.person("analyst", email=f"{name}@example.org", name=name) for name in ("ana", "bob"))
    let(play.provider, "a1", ana, only_with=["people"])
    rules = {"actions": ["algorithm.run"], "algorithms": ["a1"]}
    grant(play.house.hub, play.owner.caller, data_set="people", role="runner", members={"people": [bob.id]}, rules=rules)
    assert play.post("/algorithm-runs", ORDER, ana).status_code in (403, 404)
    assert play.post("/algorithm-runs", ORDER, bob).status_code in (403, 404)
    ask = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.1"}
    assert play.post("/questions", ask).status_code == 403


ASKS = """
def search(about):
    low, high, told = 17, 90, []
    for question in ("SELECT COUNT(*) AS n FROM others", "SELECT AVG(pay) AS n FROM people", "SELECT 1 AS n FROM pg_class"):
        try:
            told.append(ask(question, "0.01"))
        except ValueError:
            told.append("refused")
    for _ in range(9):
        middle = (low + high) // 2
        try:
            n = ask(f"SELECT COUNT(*) AS n FROM people WHERE age <= {middle}", "0.1")["columns"]["n"][0]
        except ValueError:
            break
        low, high = (low, middle) if n > 150 else (middle, high)
    return {"between": [low, high], "told": told, "columns": sorted(about["columns"]), "odd": [float("nan"), chr(0xD800)]}
"""


def test_a_guest_that_asks_gets_no_rows_and_no_more_than_its_share_of_the_columns_that_were_granted(play: Play) -> None:
    settings = {"code": ASKS, "inputs": ["age"], "way": "ask", "seconds": 1}
    assert register(play.provider, "a9", settings).status_code == 201
    for wrong in ({"inputs": []}, {"blocks": 10}, {"way": "declared"}, {"low": [0]}):
        assert register(play.provider, "b9", {**settings, **wrong}).status_code == 422
    let(play.provider, "a9", play.owner, actions=["algorithm.see"])
    let(play.provider, "a9", play.u3, only_with=["people"])
    assert play.post("/algorithm-runs", {**ORDER, "algorithm": "a9"}).status_code == 403  # the owner has not granted it
    rules = {"actions": ["algorithm.run", "release.see"], "algorithms": ["a9"]}
    grant(play.house.hub, play.owner.caller, data_set="people", role="runner", members={"people": [play.u3.id]}, rules=rules)
    price = play.post("/algorithm-runs/price", {**ORDER, "algorithm": "a9"}).json()
    assert (price["cost"], price["errors"]) == ("ε = 0.25", [])
    told = play.run(algorithm="a9")
    assert told["state"] == "done", told
    assert play.spent == "ε = 0.2"  # two questions of ε = 0.1 fit into the share, whatever else it tries
    found = play.get(f"/releases/{told['result']['guest']}").json()
    kept = found if "values" in found else json.loads(found["body"])
    assert kept["values"]["told"] == ["refused"] * 3
    assert (kept["values"]["columns"], kept["values"]["odd"][0], kept["cost"]) == (["age"], None, "ε = 0.2")
    page = play.u3.client.get(f"/algorithm-results/{told['result']['guest']}")
    assert page.status_code == 200
    assert "between" in page.text
    assert verify(play.house.hub)


def test_what_is_revoked_while_a_run_waits_leaves_nothing(play: Play) -> None:
    answer = play.post("/algorithm-runs", ORDER)
    assert answer.status_code == 202
    play.provider.client.delete("/api/v1/algorithms/a1", headers=play.provider.bearer)
    assert Workers(play.house.hub, 0).run_one()
    told = play.get(f"/jobs/{answer.json()['job']}").json()
    assert told["state"] == "failed", told
    assert play.spent == "ε = 0"


def test_hostile_code_gives_the_middle_and_tells_nobody(play: Play) -> None:
    settings = {**A1, "code": "def f(rows):\n    raise ValueError(rows['age'])"}
    assert register(play.provider, "a9", settings).status_code == 201
    let(play.provider, "a9", play.owner, actions=["algorithm.see"])
    let(play.provider, "a9", play.u3, only_with=["people"])
    rules = {"actions": ["algorithm.run", "release.see"], "algorithms": ["a9"]}
    grant(play.house.hub, play.owner.caller, data_set="people", role="runner", members={"people": [play.u3.id]}, rules=rules)
    told = play.run(algorithm="a9")
    assert told["state"] == "done"
    assert "ValueError" not in json.dumps(told)
    kept = play.get(f"/releases/{told['result']['guest']}").json()
    failed = (kept if "values" in kept else json.loads(kept["body"]))["failed"]
    assert (failed["blocks"], 0 <= failed["count"] <= 10) == (10, True)
    assert failed["margin"] == max(failed["count"], 10 - failed["count"])  # its noise moves it by 24, beyond all that there are
    shown = play.u3.client.get(f"/algorithm-results/{told['result']['guest']}").text
    assert f"± {margin_text(failed['margin'])} of 10: the middle of the range stood in for them" in shown
    with play.house.hub.database.begin() as db:  # as results were kept before blocks without a value were counted
        row = db.get_one(StoredRelease, told["result"]["guest"])
        row.body = json.dumps({"values": {"age": 60.5}, "margins": {"age": 3.0}, "cost": "ε = 0.25"}).encode()
    before = play.u3.client.get(f"/algorithm-results/{told['result']['guest']}")
    assert (before.status_code, "60.5" in before.text, "stood in" in before.text) == (200, True, False)
    with play.house.hub.database.reading() as db:
        lines = db.scalars(select(AuditLine)).all()
        assert not [line for line in lines if "ValueError" in json.dumps(line.details)]
        [row] = db.scalars(select(Algorithm).where(Algorithm.name == "a9")).all()
        assert row.settings["code"] == settings["code"]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"code": "def f(rows:"}, "line 1"),
        ({"code": "x = 1"}, "no function"),
        ({"code": ["def f(rows): pass"]}, "text"),
        ({"low": []}, "same length"),
        ({"low": ["x"]}, "lists of numbers"),
        ({"low": {"0": "the keys of a mapping are not numbers of a list"}}, "lists of numbers"),
        ({"high": [0]}, "range"),
        ({"blocks": 1}, "from 5"),
        ({"blocks": 10_000, "seconds": 1}, "at most 120"),
        ({"entry": "last"}, "'middle'"),
        ({"packages": "numpy"}, "list of at most"),
        ({"inputs": 5}, "list of columns"),
        ({"names": 5}, "one name for each"),
        ({"high": ["1e200"]}, "within"),
        ({"blocks": 10_000, "seconds": 0.061}, "at most 120"),
    ],
)
def test_settings_that_cannot_run_are_refused_when_they_are_registered(play: Play, changed: dict[str, Any], says: str) -> None:
    answer = register(play.provider, "b1", {**A1, **changed})
    assert answer.status_code == 422, answer.text
    assert says in answer.text


def test_the_pages_show_the_form_its_price_and_the_list(play: Play) -> None:
    form = play.u3.client.get("/run-algorithm?about=people")
    assert form.status_code == 200
    chosen = {name: re.findall(r'<option value="(\w+)"', part) for name, part in re.findall(SELECT, form.text, re.DOTALL)}
    assert chosen["algorithm"] == ["a1"]
    assert chosen["table"] == ["people"]
    assert play.u3.client.get("/algorithm-results").status_code == 200


@pytest.mark.parametrize(
    ("changed", "title", "why"),
    [
        ({"code": "def f(rows):\n    return ("}, "“Code that runs near rows” is invalid", "line 2: &#39;(&#39; was never closed"),
        ({"tests": "def test_x(:"}, "“Tests” is invalid", "line 1: invalid syntax"),
        ({"settings": "{"}, "“Settings, as JSON” is invalid", "it is not JSON"),
        ({"code": "\ufeffdef f(rows):\n    return [1]"}, "", ""),
    ],
    ids=["code", "tests", "settings", "byte order mark"],
)
def test_what_is_wrong_is_said_of_its_field(house: House, changed: dict[str, str], title: str, why: str) -> None:
    provider = house.person("algorithm-provider")
    settings = json.dumps({name: A1[name] for name in ("inputs", "low", "high", "blocks", "seconds")})
    typed = {"name": "a1", "title": "A1", "service": "guests", "settings": settings, "code": "def f(rows):\n    return [1]"}
    form = {**typed, **changed, "form_token": provider.csrf()["X-CSRF-Token"]}
    answer = provider.client.post("/algorithms", data=form)
    assert answer.status_code == (422 if title else 303), answer.text
    assert title in answer.text, answer.text
    assert why in answer.text, answer.text
