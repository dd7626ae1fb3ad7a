"""Exact joint learning on the real path: `cloister site` and `cloister csp` as processes, over HTTP, to a result at each site."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli import cli
from cloister.compress import DCA
from cloister.crypto import SigningKey
from cloister.hub.generation import bump
from cloister.hub.platform.accounts import make_token
from cloister.hub.platform.catalogue import key_of
from cloister.hub.platform.jobs import Workers, workers
from cloister.hub.records.access import InstitutionRule
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.jobs import Job
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.joint_learning.exact import _program
from cloister.together import Roster
from tests.hub import forked
from tests.hub.house import Clock, House, Visitor, served

NAMES = ("north", "south", "west")
COLUMNS = """[tables.hospitals.columns]
age = { kind = "integer", low = 0, high = 100 }
pay = { kind = "integer", low = 0, high = 100 }
size = { kind = "integer", low = 0, high = 100 }
ill = { kind = "category", values = ["no", "yes"] }
"""
SITE = """[site]
name = "{name}"
hub = "{hub}"

[policy]
otherwise = "always"

[tables.hospitals]
source = "people.csv"

{columns}
[budgets]
hospitals = {{ rho = "1000" }}
"""
ORDER: dict[str, Any] = {
    "table": "hospitals",
    "columns": ["age", "pay", "size"],
    "method": "DCA",
    "label": "ill",
    "rows": "1000",
    "approval": "yes",
    "purpose": "care",
}


def rows_of(turn: int) -> list[tuple[int, int, int, str]]:
    """The classes lie apart along age and, less so, pay."""
    ill = [(each + turn) % 2 for each in range(60)]
    return [
        (30 + 40 * one + each * 7 % 11, 40 + 10 * one + each * 13 % 17, each * 37 % 101, ("no", "yes")[one])
        for each, one in enumerate(ill)
    ]


def said(*words: object) -> str:
    found = CliRunner().invoke(cli, [str(each) for each in words])
    assert found.exit_code == 0, f"{found.output}{found.exception}"
    return found.stdout


@dataclass
class Play:
    house: House
    folder: Path
    owner: Visitor

    def post(self, who: Visitor | None = None, path: str = "", **changed: Any) -> Any:
        who = who or self.owner
        return who.client.post(f"/api/v1/joint-learning/exact{path}", json={**ORDER, **changed}, headers=who.bearer)

    def run(self, **changed: Any) -> Job:
        """Order it, and let a worker do it."""
        answer = self.post(**changed)
        assert answer.status_code == 202, answer.text
        assert Workers(self.house.hub, 0).run_one()
        with self.house.hub.database.reading() as db:
            return db.get_one(Job, answer.json()["job"])


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    with played(tmp_path) as found:
        yield found


@contextmanager
def played(folder: Path) -> Iterator[Play]:
    """Folders of three sites and a key holder, a hub that knows the key holder, and a data set of the three."""
    keys = {}
    public = json.loads(said("csp", "init", folder / "keys", "--name", "keys").splitlines()[0])["keys"]
    for name in NAMES:
        keys[name] = bytes.fromhex(json.loads(said("site", "init", folder / name, "--name", name).splitlines()[0])[name])
    house = House(folder / "hub", Clock(), key_holder=f"keys {public}")
    owner = house.person("owner", email="olga@example.org")
    roster = Roster(sites=keys, hub=key_of(house.hub).public, missing=0)
    signing = {name: SigningKey(bytes.fromhex((folder / name / "site.key").read_text().strip())) for name in NAMES}
    about = {"title": "Three", "reason": "the law", "population": "patients", "epsilon": "1"}
    body = {"roster": roster.plain(), "signatures": {name: signing[name].sign(roster.text).hex() for name in NAMES}, **about}
    table = f'[tables.hospitals]\nsource = "people.csv"\n\n{COLUMNS}'
    made = owner.client.post("/api/v1/joint-datasets", json={**body, "table": table, "overlap": "none"}, headers=owner.bearer)
    assert made.status_code == 201, made.text
    try:
        yield Play(house, folder, owner)
    finally:
        house.close()


@contextmanager
def parties(play: Play) -> Iterator[None]:
    """The sites and the key holder as processes that call the hub."""
    with served(play.house.hub) as address:
        for turn, name in enumerate(NAMES):
            folder = play.folder / name
            (folder / "site.toml").write_text(SITE.format(name=name, hub=address, columns=COLUMNS), encoding="utf-8")
            lines = [",".join(map(str, row)) for row in rows_of(turn)]
            (folder / "people.csv").write_text("\n".join(["age,pay,size,ill", *lines, ""]), encoding="utf-8")
        csp = play.folder / "keys" / "csp.toml"
        text = csp.read_text(encoding="utf-8").replace('hub_key = ""', f'hub_key = "{key_of(play.house.hub).public.hex()}"')
        csp.write_text(text.replace("https://hub.example.org", address).replace("exact = false", "exact = true"))
        words = [("csp", "keys"), *(("site", name) for name in NAMES)]
        processes = [forked.python("-m", "cloister", kind, "--data", str(play.folder / name)) for kind, name in words]
        try:
            deadline = time.monotonic() + 120
            while play.owner.client.get("/sites").text.count('data-label="Last call"><time ') < 3:
                assert all(each.poll() is None for each in processes), "a process ended"
                assert time.monotonic() < deadline, "a site does not call"
                time.sleep(0.2)
            yield
        finally:
            for process in processes:
                process.kill()
                process.wait()


def test_from_what_it_tells_to_a_result_at_each_site(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    told = play.post(path="/price")
    assert told.status_code == 200, told.text
    before = told.json()
    assert before["guarantee"] == "not differentially private"
    assert "1 discriminant components of 3 columns, exact" in before["tells"]
    assert play.post(path="/price", method="LDA").json() == before, "the same directions, by the same circuit"
    assert (before["owners"], before["holder"], before["populations"]) == ("north, south, west", "keys", "patients")
    assert before["megabytes"] > 1
    stages = list[str]()
    monkeypatch.setattr(workers._Running, "say", lambda each: stages.append(each._stage))
    with parties(play):
        asked = play.run()
        assert asked.state == "failed"
        assert "its owner is asked" in json.dumps(asked.problem)
        assert not play.house.hub.ledger.unbounded("patients"), "no owner has said yes, so nothing left"
        for name in NAMES:
            [plan] = json.loads(said("site", "plans", "--data", play.folder / name, "--json"))
            assert "NOT differentially private" in plan["words"]
            assert "for 'olga@example.org', for the purpose 'care'" in plan["words"]
            said("site", "approve", plan["plan"], "--data", play.folder / name)
        done = play.run()
        assert done.state == "done", done.problem
        again = play.run()
        assert "its owner is asked" in json.dumps(again.problem), "a yes is for one plan"
    assert play.house.hub.ledger.unbounded("patients")
    with play.house.hub.database.reading() as db:
        [release] = db.query(StoredRelease).filter_by(kind="exact joint")
        [line] = db.query(AuditLine).filter_by(action="joint.run", object=release.id)
    found = json.loads(release.body)
    rows = [row for turn in range(3) for row in rows_of(turn)]
    scaled = np.array([row[:3] for row in rows]) / 50 - 1
    rho = float(((scaled - scaled.mean(axis=0)) ** 2).sum()) / 64
    exact = DCA(1, rho=rho, rho_prime=0.0).fit(scaled, [row[3] for row in rows]).components_[0]
    assert abs(abs(np.dot(found["components"][0], exact)) - 1) < 1e-5
    assert (found["promise"], release.cost, line.cost) == ("not differentially private", {}, {})
    assert release.details["taken"] == 3
    for name in NAMES:
        kept = json.loads(said("site", "results", "--data", play.folder / name))
        assert kept["components"] == found["components"]
        shown = json.loads(said("site", "show", "--data", play.folder / name, "--json"))
        assert (shown["unbounded"], shown["broken"]) == (True, None)
        assert "exact" in [each["event"] for each in shown["log"]]
    assert any(each.startswith("evaluating the circuit · ") for each in stages)
    assert "asking the owners · 3 / 3" in stages
    page = play.owner.client.get(f"/exact-joint-results/{release.id}").text
    for words in ("Not differentially private", "3 of 3 sites", "Neither the directions nor projected rows"):
        assert words in page, words
    assert play.owner.client.get(f"/releases/{release.id}/download/json").content == release.body
    stranger = play.house.person("analyst", email="eve@example.org")
    for path in (f"/exact-joint-results/{release.id}", f"/releases/{release.id}/download/json"):
        assert stranger.client.get(path).status_code == 404, path


def test_who_may_order_it(play: Play) -> None:
    """The owner of the data set alone; not an analyst with any grant, nor a token that was not made for it, nor against a rule
    that no table leaves without differential privacy."""
    house = play.house
    analyst, other = house.person("analyst", email="ana@example.org"), house.person("owner", email="else@example.org")
    with house.hub.database.reading() as db:
        row = db.query(DataSet).filter_by(name="hospitals").one()
    house.grant(row, analyst, by=play.owner, actions=("question.ask", "anonymize.run", "joint.run"))
    assert play.post(analyst).status_code == 404, "it is not theirs to manage"
    hidden, nothing = play.post(other), play.post(other, table="nothing_of_the_kind")
    assert hidden.status_code == nothing.status_code
    assert hidden.text.replace("hospitals", "…") == nothing.text.replace("nothing_of_the_kind", "…"), "a name that is hidden"
    with house.hub.database.begin() as db:
        _, token = make_token(house.hub, db, play.owner.caller, name="sees", scopes=("dataset.see", "release.see"))
    bearer = {"Authorization": f"Bearer {token}"}
    assert house.client().post("/api/v1/joint-learning/exact", json=ORDER, headers=bearer).status_code == 403
    for action in ("anonymize.run", "joint.run"):
        with house.hub.database.begin() as db:
            rule = {"populations": ["patients"], "actions": [action], "deny": True}
            db.add(InstitutionRule(id=action, title="None", rule=rule, created=house.hub.now(), made_by=play.owner.caller.id))
            bump(db)
        for path in ("", "/price"):
            assert play.post(path=path).status_code == 403, action
        with house.hub.database.begin() as db:
            db.delete(db.get_one(InstitutionRule, action))
            bump(db)
    assert play.post(path="/price").status_code == 200


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"approval": ""}, "approves that in so many words"),
    ({"columns": ["age"]}, "2 to 50 different columns"),
    ({"columns": ["age", "ill"], "label": "", "method": "PCA", "components": "1"}, "declared bounds"),
    ({"method": "PCA"}, "PCA has no label"),
    ({"label": "", "method": "PCA", "components": "3"}, "fewer than the 3 columns"),
    ({"label": "size", "columns": ["age", "pay"]}, "a label has declared values"),
    ({"rows": "0"}, "from 2 to 16777216"),
    ({"rows": "many"}, "from 2 to 16777216"),
)


def test_what_is_refused_before_any_site_is_asked(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    for changed, words in REFUSED:
        answer = play.post(**changed)
        assert answer.status_code == 422, (changed, answer.text)
        assert words in answer.text, (changed, answer.text)
    numbers = {"columns": {name: {"kind": "integer", "low": 0, "high": 9} for name in ("a", "b")}, "size": 9}
    play.house.sample_data_set("here", owner=play.owner, rows={"a": [1], "b": [2]}, declaration=numbers)
    here = play.post(table="here", columns=["a", "b"], method="PCA", label="", components="1")
    assert "the rows are not at sites" in here.text
    _program.cache_clear()
    assert len({play.post(path="/price", rows=str(rows)).json()["gates"] for rows in (1030, 1031, 2000)}) == 1
    assert _program.cache_info().misses == 1, "seconds of a core are spent once for all that are as large"
    monkeypatch.setattr("cloister.together.exact.request.MOST_BYTES", 1000)
    large = play.post(rows="1001")
    assert (large.status_code, "The circuit is too large" in large.text, "AND gates" in large.text) == (422, True, True)
    object.__setattr__(play.house.hub.settings, "key_holder", "keys 12")
    assert "knows no key holder" in play.post().text
    assert "This hub knows no key holder" in play.owner.client.get("/joint-learning/exact").text
    assert not play.house.hub.ledger.unbounded("patients")
    assert play.house.hub.ledger.spent("patients") == cl.PureDP(0)


def test_half_a_character_is_refused_before_anything_else(play: Play) -> None:
    for path in ("", "/price"):
        refused = play.owner.client.post(
            f"/api/v1/joint-learning/exact{path}",
            content=json.dumps({**ORDER, "table": "\ud800"}),
            headers={**play.owner.bearer, "Content-Type": "application/json"},
        )
        assert refused.status_code == 422, refused.text


def test_the_form_says_what_leaves_before_it_starts(play: Play) -> None:
    page = play.owner.client.get("/joint-learning/exact?about=hospitals").text
    assert "hospitals, of 3 owners" in page
    assert page.count('name="columns"') == 3
    assert "What leaves has no guarantee" in page
    token, key = (page.split(f'name="{each}" value="')[1].split('"')[0] for each in ("form_token", "key"))
    form = {**ORDER, "form_token": token, "key": key, "label": "", "method": "PCA", "components": "1", "approval": ""}
    shown = play.owner.client.post("/joint-learning/exact/price", data=form)
    assert shown.status_code == 200, shown.text
    for words in ("Before it starts", "1 of 3 principal components, exact", "must approve the plan", "MB of garbled gates"):
        assert words in shown.text, words
    assert "approves that in so many words" in play.owner.client.post("/joint-learning/exact", data=form).text
    sent = play.owner.client.post("/joint-learning/exact", data={**form, "approval": "yes"})
    assert sent.status_code == 303, sent.text
    analyst = play.house.person("analyst", email="ana@example.org")
    assert "None of your data sets has its rows at sites" in analyst.client.get("/joint-learning/exact").text
