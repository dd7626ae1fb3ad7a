"""A hub's folder that an older version left opens today: what it said is said again, and what was paid is not paid twice.

`making.py` made it, once, with the version before. The last job of it was killed when its cost was reserved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from cloister.errors import BudgetExceeded
from cloister.hub.hub import Hub
from cloister.hub.ids import digest, new_secret
from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.platform.jobs import Timing, Workers
from cloister.hub.platform.trail import verify
from cloister.hub.records.accounts import Person, WebSession
from cloister.hub.records.jobs import Job
from cloister.hub.services import all_services
from cloister.hub.services.learning import fitting
from cloister.hub.settings import load as load_settings
from cloister.learn import load
from cloister.local.survey import Survey, respond
from cloister.noise import Random
from cloister.privacy import ApproxDP, PureDP
from cloister.session import Release
from tests.hub.house import Clock, House
from tests.hub.learning.conftest import ORDER
from tests.stored.hub_panel import extract
from tests.stored.making import KILLED, QUESTION, ROWS

HERE = Path(__file__).parent


@dataclass
class Kept:
    """The hub, and what the older version said of it."""

    house: House
    said: dict[str, Any]

    def ask(self, who: str, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.said['tokens'][who]}"}
        answer = self.house.client().request(method, f"/api/v1{path}", json=body, headers=headers)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.headers["content-type"].startswith("application/json") else answer.text

    def browser(self, email: str) -> TestClient:
        """A browser in which somebody of the older version's people is logged in."""
        hub, secret, now = self.house.hub, new_secret(), self.house.hub.now()
        with hub.database.begin() as db:
            person = db.scalars(select(Person).where(Person.email == email)).one()
            session = WebSession(digest=digest(secret), person=person.id, created=now, used=now, expires=now + timedelta(days=1))
            session.second_factor, session.address, session.agent = True, "127.0.0.1", "test"
            db.add(session)
        client = self.house.client()
        client.cookies.set(cookie_name(self.house.settings), secret)
        return client

    @property
    def spent(self) -> tuple[Any, Any]:
        ledger = self.house.hub.ledger
        return ledger.spent("people"), ledger.spent_by("people", "ana@example.org")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    for name in ("attacked", "lost"):
        monkeypatch.setattr(fitting, name, lambda *_: None)
    extract(tmp_path)
    said = json.loads((tmp_path / "hub" / "said.json").read_text(encoding="utf-8"))
    clock = Clock()
    clock.move(hours=1)
    house = House(tmp_path / "hub", clock)
    yield Kept(house, said)
    house.close()


def unchanged(now: Any, before: Any, where: str = "") -> None:
    """All that was said is said; more may be."""
    if isinstance(before, dict):
        assert isinstance(now, dict), where
        for name, value in before.items():
            assert name in now, f"{where}.{name}"
            unchanged(now[name], value, f"{where}.{name}")
    elif isinstance(before, list) and isinstance(now, list):
        assert len(now) == len(before), where
        for place, (one, other) in enumerate(zip(now, before, strict=True)):
            unchanged(one, other, f"{where}[{place}]")
    else:
        assert now == before, where


def test_ledger_and_trail_hold(kept: Kept) -> None:
    hub = kept.house.hub
    assert hub.ledger.verify() is True
    assert verify(hub) is True
    assert kept.spent == (PureDP("0.625"), PureDP("0.625"))  # with the reservation of the job that was killed
    assert hub.ledger.unbounded("crowd")
    assert [each.state for each in hub.ledger.charges("people")].count("reserved") == 1


def test_the_same_question_is_answered_again_and_costs_nothing(kept: Kept) -> None:
    before, spent = kept.said["answer"], kept.spent
    unchanged(kept.ask("ana", "GET", f"/releases/{before['id']}"), before)
    again = kept.ask("ana", "POST", "/questions", QUESTION)
    assert (again["repeated"], again["cost"]) == (True, before["cost"])
    assert (again["columns"], again["margins"]) == (before["columns"], before["margins"])
    assert kept.spent == spent


def test_a_model_predicts_what_it_did_and_is_learnt_again_at_no_cost(kept: Kept) -> None:
    before, spent = kept.said["model"], kept.spent
    unchanged(kept.ask("ana", "GET", f"/models/{before['id']}"), before)
    told = kept.ask("ana", "POST", f"/models/{before['id']}/predictions", {"csv": ROWS})["csv"]
    assert told == kept.said["predictions"]
    assert load(before["model"]).predict([[30, 10.5], [40, 20], [50, 30]]).tolist() == [
        line.rpartition(",")[2] for line in told.split()[1:]
    ]
    ended(kept, kept.said["killed"])
    job = kept.ask("ana", "POST", "/models", ORDER)["job"]
    model = ended(kept, job)["result"]["model"]
    learned = json.loads(kept.ask("ana", "GET", f"/models/{model}")["model"])["learned"]
    kept_then = json.loads(before["model"])["learned"]
    for name in ("theta_", "var_", "theta_noise_", "var_noise_"):  # since then each number has the noise of its own block
        assert learned[name]["array"] == pytest.approx(kept_then.pop(name)["array"], rel=1e-9)
    unchanged(learned, kept_then)
    assert kept.spent == spent


def ended(kept: Kept, job: str) -> Any:
    """The job, after a worker had it."""
    assert Workers(kept.house.hub, 0, Timing(lost=0)).run_one()
    told = kept.ask("ana", "GET", f"/jobs/{job}")
    assert told["state"] == "done", told
    return told


def test_a_job_that_was_killed_ends_under_the_cost_that_it_reserved(kept: Kept) -> None:
    spent = kept.spent
    model = ended(kept, kept.said["killed"])["result"]["model"]
    with kept.house.hub.database.reading() as db:
        assert db.get_one(Job, kept.said["killed"]).attempts == 2
    assert kept.ask("ana", "GET", f"/models/{model}")["cost"] == {"people": "ε = 0.125"}
    assert kept.spent == spent
    ended(kept, kept.ask("ana", "POST", "/models", KILLED)["job"])
    assert kept.spent == spent
    assert kept.house.hub.ledger.verify() is True


def test_an_anonymised_table_is_the_same(kept: Kept) -> None:
    before = kept.said["table"]
    unchanged(kept.ask("olga", "GET", f"/anonymised/{before['id']}"), before)
    assert kept.ask("olga", "GET", f"/anonymised/{before['id']}/download") == kept.said["rows"]


def test_a_survey_has_its_reports_and_takes_more(kept: Kept) -> None:
    number, before = kept.said["survey"]["id"], kept.said["survey"]["results"]
    assert counts(kept.ask("ana", "GET", f"/surveys/{number}/results")) == counts(before)
    survey = Survey.from_dict(kept.ask("ana", "GET", f"/surveys/{number}/form")["survey"])
    report = respond(survey, {"copied": True, "why": "grade"}, "open", random=Random.deterministic(1))
    kept.ask("ana", "POST", f"/surveys/{number}/reports", json.loads(report.to_json()))
    assert kept.ask("ana", "GET", f"/surveys/{number}/results")["n"] == before["n"] + 1 == 13


def counts(results: Any) -> Any:
    """What its reports come to, to a millionth: what is said of the error may have been mended since."""
    return [
        (each["people"], [(of["answer"], round(of["count"], 6)) for of in each["combined"]["answers"]])
        for each in results["questions"]
    ]


def test_every_old_address_opens_with_every_form_of_what_is_there(kept: Kept) -> None:
    said = kept.said
    answer, model, table, survey = (said["answer"]["id"], said["model"]["id"], said["table"]["id"], said["survey"]["id"])
    of_ana = ["/ask", "/questions", "/releases", "/models", "/surveys", "/jobs", "/budgets/people", "/trail/mine", "/datasets"]
    of_ana += [f"/releases/{answer}", f"/releases/{answer}/chart.svg", f"/models/{model}", f"/surveys/{survey}"]
    of_ana += [f"/releases/{answer}/download/{form}" for form in ("csv", "parquet", "readable", "json")]
    of_ana += [f"/models/{model}/download", f"/models/{model}/card", f"/jobs/{said['killed']}"]
    of_ana += [f"/surveys/{survey}/results.csv", f"/surveys/{survey}/results.json", f"/surveys/{survey}/reports.json"]
    of_olga = [
        "/anonymised",
        f"/anonymised/{table}",
        f"/anonymised/{table}/download",
        "/datasets/people",
        "/datasets/crowd_public",
    ]
    of_olga += [f"/anonymised/{table}/download?form=parquet", f"/anonymised/{table}/certificate", f"/anonymised/{table}/report"]
    for email, addresses in (("ana@example.org", of_ana), ("olga@example.org", of_olga)):
        client = kept.browser(email)
        opened = {address: client.get(address) for address in addresses}
        assert {address: each.status_code for address, each in opened.items()} == dict.fromkeys(addresses, 200)
        assert all(each.content for each in opened.values())
    ana = kept.browser("ana@example.org")
    assert ana.get(f"/models/{model}/download").json() == json.loads(said["model"]["model"])
    assert Release.from_json(ana.get(f"/releases/{answer}/download/json").text).to_pydict() == said["answer"]["columns"]


def test_old_settings_hold_in_the_old_folder(kept: Kept) -> None:
    folder = kept.house.settings.data
    (folder / "hub.toml").write_text('delta_floor = "1e-7"\ntitle = "The old hub"\nsurvey_cap = "9"\n', encoding="utf-8")
    kept.house.close()
    settings = load_settings(folder, environment={"CLOISTER_HUB_SURVEY_CAP": "11", "CLOISTER_HUB_WORKERS": "0"})
    assert {name: settings.shown()[name] for name in ("delta_floor", "title", "survey_cap", "workers")} == {
        "delta_floor": "1e-7",
        "title": "The old hub",
        "survey_cap": "11",
        "workers": "0",
    }
    with Hub(settings, all_services()) as hub:
        assert hub.ledger.verify() is True
        hub.ledger.open("others", ApproxDP(1, "1e-6"), who="olga@example.org")
        with pytest.raises(BudgetExceeded, match="rule delta-floor"):
            hub.ledger.reserve({"others": ApproxDP("0.1", "2e-7")}, who="ana@example.org", what="a plan")


def test_a_share_is_as_large_as_it_was(kept: Kept) -> None:
    """ε = 0.75, of which 0.625 are spent: 0.125 can be asked for still, and no more."""
    headers = {"Authorization": f"Bearer {kept.said['tokens']['ana']}"}
    body = {"sql": "SELECT COUNT(*) AS n FROM people WHERE age > 35"}
    over = kept.house.client().post("/api/v1/questions", json={**body, "spend": "0.126"}, headers=headers)
    assert (over.status_code, "share of the budget" in over.text) == (403, True), over.text
    kept.ask("ana", "POST", "/questions", {**body, "spend": "0.125"})
    assert kept.spent == (PureDP("0.75"), PureDP("0.75"))
