"""Rows at three sites, asked through a hub: the roster, the data set, a question, and what owners see of it."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

import cloister as cl
from cloister.crypto import SigningKey
from cloister.errors import CloisterError, InvalidParameter
from cloister.hub import services
from cloister.hub.generation import bump
from cloister.hub.hub import Hub
from cloister.hub.platform.catalogue import Joined, joined_in, versions, versions_at_sites
from cloister.hub.platform.catalogue.remote import legible
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.sites import SiteMessage
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.learning import fitting
from cloister.together import MemoryJournal, Roster, Site, SiteAgent
from cloister.together.agent import _said
from cloister.together.messages import pack
from cloister.together.owner import OwnersPolicy, Rule
from cloister.together.rounds import STEPS
from tests.hub.house import House, Visitor, served
from tests.together.wired import COLUMNS, running

NAMES = ("north", "south", "west")
TABLE = """[tables.hospitals]
source = "people.csv"

[tables.hospitals.columns]
age = { kind = "integer", low = 17, high = 90 }
sex = { kind = "category", values = ["F", "M"] }
"""
BUDGET = cl.PureDP(10**6)


def key_of(name: str) -> SigningKey:
    return SigningKey(name.ljust(32).encode())


def site(name: str, *rules: Rule, key: SigningKey | None = None, budget: cl.Guarantee = BUDGET) -> Site:
    held = {"age": [30 + row for row in range(40)], "sex": ["F", "M"] * 20}
    journal = MemoryJournal()
    policy = OwnersPolicy([*rules, Rule(answer="always")], journal=journal)
    return Site(
        name, cl.PrivateTable(held, columns=COLUMNS), budget=budget, key=key or key_of(name), journal=journal, policy=policy
    )


@dataclass
class Play:
    house: House
    owner: Visitor
    analyst: Visitor

    def roster(self, missing: int = 0) -> Roster:
        """As the page makes it of the sites' keys."""
        keys = "\n".join(json.dumps({name: key_of(name).public.hex()}) for name in NAMES)
        page = self.post("/sites/roster", keys=keys, missing=str(missing))
        assert page.status_code == 200, page.text
        found = re.search(r'id="roster-json"[^>]*>(.*?)</', page.text, re.DOTALL) or re.search(
            r"<textarea[^>]*name=\"roster\"[^>]*>(.*?)</textarea>", page.text, re.DOTALL
        )
        assert found
        return Roster.from_plain(json.loads(unescape(re.sub(r"<[^>]+>", "", found[1]))))

    def post(self, path: str, **fields: str) -> Any:
        token = re.search(r'name="form_token" value="([^"]+)"', self.owner.client.get("/sites").text)
        assert token
        return self.owner.client.post(path, data={"form_token": token[1], **fields}, follow_redirects=False)

    def body(self, of: Roster, **other: Any) -> dict[str, Any]:
        signatures = {name: key_of(name).sign(of.text).hex() for name in of.sites}  # of other keys: `signed` has them
        about = {"title": "Three hospitals", "reason": "the law", "population": "patients", "epsilon": "1000000"}
        return {"roster": of.plain(), "signatures": signatures, "table": TABLE, "overlap": "none", **about, **other}

    def join(self, **other: Any) -> Any:
        roster = other.pop("of", None) or self.roster()
        return self.owner.client.post("/api/v1/joint-datasets", json=self.body(roster, **other), headers=self.owner.bearer)


@pytest.fixture
def play(house: House) -> Play:
    return Play(house, house.person("owner"), house.person("analyst", email="ana@example.org"))


@pytest.fixture
def open_one(play: Play) -> Iterator[tuple[Play, str]]:
    """The data set is there, granted, and its hub is served."""
    made = play.join()
    assert made.status_code == 201, made.text
    with play.house.hub.database.reading() as db:
        [row] = db.query(DataSet).filter(DataSet.name == "hospitals")
    play.house.grant(row, play.analyst, by=play.owner)
    with served(play.house.hub) as address:
        yield play, address


def test_a_question_over_three_sites_and_the_owner_of_one_who_says_no(open_one: tuple[Play, str]) -> None:
    play, address = open_one
    sites = [site(name) for name in NAMES[:2]] + [site("west", Rule(answer="never", purpose="advertising"))]
    with running([SiteAgent(each) for each in sites], address), cl.connect(address, token=play.analyst.token) as session:
        answer = session.sql("SELECT sex, COUNT(*) AS n FROM hospitals GROUP BY sex", spend=1000, purpose="quality report")
        assert answer.to_pydict()["n"] == [60, 60]
        assert [each.spent for each in sites] == [cl.PureDP(1000)] * 3
        again = session.sql("SELECT sex, COUNT(*) AS n FROM hospitals GROUP BY sex", spend=1000, purpose="quality report")
        assert again.to_pydict() == answer.to_pydict()
        assert sites[0].spent == cl.PureDP(1000)
        with play.house.hub.database.reading() as db:
            assert set(db.scalars(select(SiteMessage.name))) == set(STEPS) - {"signatures"}, "kept, for a hub that is stopped"
        with pytest.raises(CloisterError, match=r"'west'.*'advertising' and the person 'ana@example.org'"):
            session.sql("SELECT AVG(age) AS age FROM hospitals", spend=10, purpose="advertising")
        twice = "SELECT COUNT(*) AS n FROM (SELECT age * 2 AS n FROM hospitals) t WHERE t.n < 400"
        assert session.sql(twice, spend=1000, purpose="quality report").to_pydict()["n"] == [120]
    page = play.owner.client.get("/sites").text
    assert page.count('data-label="Last call"><time ') == 3
    for path, status in (("", 200), ("/manage", 200), ("/declaration", 200)):
        assert play.owner.client.get(f"/datasets/hospitals{path}").status_code == status, path
    report = play.owner.client.get("/api/v1/datasets/hospitals/reading", headers=play.owner.bearer)
    assert report.status_code == 409, report.text
    assert "only sums with noise come here" in report.text
    assert "Import report" not in play.owner.client.get("/datasets/hospitals/manage").text
    listed = play.owner.client.get("/api/v1/joint-datasets", headers=play.owner.bearer).json()
    assert [each["name"] for each in listed["items"][0]["sites"]] == list(NAMES)


def test_the_page_says_whose_answers_are_awaited(open_one: tuple[Play, str]) -> None:
    """A question comes while one site is away: the page says so until it is back."""
    play, address = open_one
    asked = partial(cl.connect(address, token=play.analyst.token).sql, "SELECT COUNT(*) AS n FROM hospitals", spend=1000)
    with running([SiteAgent(site(name)) for name in NAMES[:2]], address), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(asked)
        while "1, the oldest since" not in (page := play.owner.client.get("/sites").text) and not answer.done():
            pass
        assert re.search(r'west</th>(?:(?!</tr>).)*data-label="Awaited answers">1, the oldest since', page, re.DOTALL), page
        with running([SiteAgent(site(NAMES[2]))], address):
            assert answer.result().to_pydict() == {"n": [120]}
    listed = play.owner.client.get("/api/v1/joint-datasets", headers=play.owner.bearer).json()
    assert [each["awaited"] for each in listed["items"][0]["sites"]] == [0, 0, 0]


def signed(of: Roster, *keys: SigningKey, **rotated: tuple[SigningKey, SigningKey]) -> dict[str, Any]:
    """A roster with its signatures, as the commands print them; of a rotated key by both."""
    by = {each.public: each for each in (*keys, *(new for new, _ in rotated.values()))}
    signatures = {name: by[public].sign(of.text).hex() for name, public in of.sites.items()}
    signatures |= {name: signatures[name] + old.sign(of.text).hex() for name, (_, old) in rotated.items()}
    return {"roster": of.plain(), "signatures": signatures}


def test_a_key_is_rotated_and_a_site_revoked_under_the_same_budget(open_one: tuple[Play, str]) -> None:
    play, address = open_one
    post = play.owner.client.post
    first, keys = play.roster(), {name: key_of(name) for name in NAMES}
    new, east = key_of("north again"), key_of("east")
    page = play.post(
        "/sites/roster",
        keys="\n".join(json.dumps({each: key_of(each).public.hex()}) for each in NAMES),
        missing="0",
        after="hospitals",
    )
    assert "&#34;epoch&#34;: 2" in page.text or '"epoch": 2' in unescape(page.text)

    def after(sites: dict[str, SigningKey], epoch: int) -> Roster:
        return Roster(sites={name: key.public for name, key in sites.items()}, hub=first.hub, missing=0, epoch=epoch)

    def change(body: dict[str, Any], status: int, why: str, by: Visitor = play.owner) -> None:
        answer = by.client.post("/api/v1/joint-datasets/hospitals/roster", json=body, headers=by.bearer)
        assert answer.status_code == status, answer.text
        assert why in answer.text, answer.text

    rotated = after({**keys, "north": new}, 2)
    change(signed(rotated, new, *keys.values()), 422, "its old key did not sign")
    whole = signed(rotated, *keys.values(), north=(new, keys["north"]))
    change(signed(after(keys, 3), *keys.values()), 422, "2 is the next")
    change(
        signed(
            after({"north": new, "a": key_of("a"), "b": key_of("b")}, 2), key_of("a"), key_of("b"), north=(new, keys["north"])
        ),
        422,
        "are a quorum",
    )
    other = play.house.person("owner", email="other@example.org")
    change(whole, 404, "", other)
    change(whole, 200, "north")
    change(whole, 422, "3 is the next")
    grown = after({"north": new, "south": keys["south"], "west": keys["west"], "east": east}, 3)
    change(signed(grown, new, east, *keys.values()), 200, "east")
    present = {"north": new, "south": keys["south"], "east": east}
    left = after(present, 4)  # west is revoked
    fields = {name: json.dumps(each) for name, each in signed(left, *present.values()).items()}
    assert play.post("/sites/hospitals/roster", **fields).status_code == 303
    assert play.post("/sites/hospitals/roster", **fields).status_code == 422
    sites = [site(name, key=key) for name, key in present.items()]
    with running([SiteAgent(each) for each in sites], address), cl.connect(address, token=play.analyst.token) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM hospitals", spend=1000).to_pydict() == {"n": [120]}
    assert [each.spent for each in sites] == [cl.PureDP(1000)] * 3
    poll = SiteAgent(site("west"))
    assert play.house.client().post("/together/west", headers=called(poll)).status_code == 403
    listed = play.owner.client.get("/api/v1/joint-datasets", headers=play.owner.bearer).json()["items"]
    assert (listed[0]["roster"], [each["name"] for each in listed[0]["sites"]]) == (4, list(present))
    lines = play.owner.client.get("/api/v1/datasets/hospitals/reading", headers=play.owner.bearer)
    assert lines.status_code == 409
    with play.house.hub.database.reading() as db:
        told = [
            each.details for each in db.query(AuditLine).filter(AuditLine.action.in_(("dataset.register", "dataset.version")))
        ]
    assert [each["sites"] for each in told] == [
        "north, south, west",
        "north, south, west",
        "north, south, west, east",
        "north, south, east",
    ]
    assert told[-1]["roster"] == left.digest
    declared = play.owner.client.get("/api/v1/datasets/hospitals", headers=play.owner.bearer).json()
    assert declared["name"] == "hospitals"
    assert post("/api/v1/joint-datasets/nobody/roster", json=whole, headers=play.owner.bearer).status_code == 404


def called(agent: SiteAgent, protocol: int = 1) -> dict[str, str]:
    poll = pack("poll", "", agent.name, agent.key, at=int(time.time()), roster="", answers="")
    return {"authorization": "Cloister " + base64.b64encode(poll).decode(), "cloister-protocol": str(protocol)}


def test_calls_that_are_no_sites_are_refused(open_one: tuple[Play, str]) -> None:
    play, _ = open_one
    client = play.house.client()
    behind = client.post("/together/north", headers={"cloister-protocol": "2"})
    assert (behind.status_code, behind.json()["instead"]) == (426, "a newer cloister at the hub")
    stranger = SiteAgent(site("north", key=key_of("stranger")))
    unknown = client.post("/together/north", headers=called(stranger))
    assert unknown.status_code == 403
    why = "it is not signed by the key of 'north' in the roster of any open data set. Instead: the key that cloister site show"
    assert _said(403, unknown.content).startswith(f"A call was refused: {why}")
    assert client.post("/together/south", headers=called(SiteAgent(site("north")))).status_code == 403  # under another's name
    keys = {name: key_of(f"other {name}") for name in NAMES}
    others = Roster(sites={name: key.public for name, key in keys.items()}, hub=play.roster().hub, missing=0)
    more = play.body(of=others, table=TABLE.replace("hospitals", "clinics"), population="others")
    made = {**more, **signed(others, *keys.values())}
    assert play.owner.client.post("/api/v1/joint-datasets", json=made, headers=play.owner.bearer).status_code == 201
    with play.house.hub.database.begin() as db:  # one roster that can't be read keeps no other's sites out
        broken = db.query(DataSetVersion).filter(
            DataSetVersion.data_set.in_(db.query(DataSet.id).filter(DataSet.name == "clinics"))
        )
        broken.one().address = b"damaged"
        bump(db)
    assert client.post("/together/north", headers=called(SiteAgent(site("north")))).status_code == 200
    assert client.post("/together/north", headers=called(SiteAgent(site("north", key=keys["north"])))).status_code == 403
    assert client.post("/together/north").status_code == 404
    assert client.post("/together/north", headers={"authorization": "Cloister AAAA"}).status_code == 403
    assert client.post("/together/nobody", headers={"authorization": "Bearer x"}).status_code == 401


def test_a_site_is_under_one_roster_and_its_people_keep_their_budget(play: Play) -> None:
    assert play.join().status_code == 201
    other, later = TABLE.replace("hospitals", "clinics"), replace(play.roster(), epoch=2)
    taken = play.join(table=other, epsilon="", of=later)
    assert taken.status_code == 409
    assert "of this key" in taken.text
    steward = replace(play, owner=play.house.person("owner", email="other@example.org"))
    assert "of this key" in steward.join(table=other, population="others").text, "another owner's are not asked under it"
    moved = play.join(table=other, population="clinics")
    assert moved.status_code == 422
    assert "patients" in moved.text


def test_sites_of_several_tables_are_in_a_data_set_for_each_under_one_roster(open_one: tuple[Play, str]) -> None:
    """Both are asked; when the roster changes, both have the next one."""
    play, address = open_one
    held = {"age": [40] * 15, "sex": ["F"] * 15}

    def of_two(name: str, key: SigningKey | None = None) -> SiteAgent:
        one = site(name, key=key)
        how: dict[str, Any] = {"key": key or key_of(name), "ledger": one.ledger, "journal": one.journal, "policy": one.policy}
        return SiteAgent({"hospitals": one, "stays": Site(name, cl.PrivateTable(held, columns=COLUMNS), label="stays", **how)})

    made = play.join(table=TABLE.replace("hospitals", "stays"), title="Stays", epsilon="")
    assert made.status_code == 201, made.text
    with play.house.hub.database.reading() as db:
        [row] = db.query(DataSet).filter(DataSet.name == "stays")
    play.house.grant(row, play.analyst, by=play.owner)
    with cl.connect(address, token=play.analyst.token) as session:
        with running([of_two(name) for name in NAMES], address):
            for name, rows in (("hospitals", 120), ("stays", 45)):
                counted = session.sql(f"SELECT COUNT(*) AS n FROM {name}", spend=1000, purpose="a report").to_pydict()
                assert counted == {"n": [rows]}
        keys = {**{name: key_of(name) for name in NAMES}, "north": key_of("north again")}
        sites = {name: key.public for name, key in keys.items()}
        told = signed(replace(play.roster(), sites=sites, epoch=2), *keys.values(), north=(keys["north"], key_of("north")))
        changed = play.owner.client.post("/api/v1/joint-datasets/stays/roster", json=told, headers=play.owner.bearer)
        assert changed.status_code == 200, changed.text
        listed = play.owner.client.get("/api/v1/joint-datasets", headers=play.owner.bearer).json()["items"]
        assert {each["name"]: each["roster"] for each in listed} == {"hospitals": 2, "stays": 2}
        with running([of_two(name, key) for name, key in keys.items()], address):
            for name, rows in (("hospitals", 120), ("stays", 45)):
                question = f"SELECT COUNT(*) AS n FROM {name} WHERE age < 90"
                assert session.sql(question, spend=1000, purpose="a report").to_pydict() == {"n": [rows]}


def act(by: Visitor, path: str, **body: Any) -> Any:
    return by.client.post(f"/api/v1/{path}", headers=by.bearer, **({"json": body} if body else {}))


def test_a_data_set_is_opened_again_where_its_sites_are_free(play: Play) -> None:
    """A site calls under one roster: a closed data set takes no calls from an open one of another owner or roster. The closed
    ones of an owner follow their roster."""
    roster = play.roster()
    assert play.join(of=roster).status_code == 201
    assert act(play.owner, "datasets/hospitals/close").status_code == 200
    keys = {name: key_of(name if name == "north" else f"other {name}") for name in NAMES}
    theirs = replace(roster, sites={name: key.public for name, key in keys.items()})
    body = play.body(theirs, table=TABLE.replace("hospitals", "theirs"), epsilon="") | signed(theirs, *keys.values())
    made = act(play.owner, "joint-datasets", **body)
    assert made.status_code == 201, made.text
    refused = act(play.owner, "datasets/hospitals/open")  # north calls for the other one now
    assert refused.status_code == 409, refused.text
    assert "another owner or roster" in refused.text
    assert act(play.owner, "datasets/theirs/close").status_code == 200
    assert act(play.owner, "datasets/hospitals/open").status_code == 200

    assert play.join(of=roster, table=TABLE.replace("hospitals", "stays"), epsilon="").status_code == 201
    assert act(play.owner, "datasets/hospitals/close").status_code == 200
    changed = signed(replace(roster, epoch=2), *(key_of(name) for name in NAMES))
    assert act(play.owner, "joint-datasets/stays/roster", **changed).status_code == 200
    assert act(play.owner, "datasets/hospitals/open").status_code == 200, "it has the next roster, too"
    listed = play.owner.client.get("/api/v1/joint-datasets", headers=play.owner.bearer).json()["items"]
    assert {each["name"]: each["roster"] for each in listed} == {"hospitals": 2, "stays": 2}


def test_a_roster_changes_in_all_data_sets_or_in_none(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    assert play.join().status_code == 201
    assert play.join(table=TABLE.replace("hospitals", "stays"), epsilon="").status_code == 201
    changed = signed(replace(play.roster(), epoch=2), *(key_of(name) for name in NAMES))
    real, calls = versions.put, []

    def interrupted(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise InvalidParameter("Interrupted", why="a test wants it", instead="again")
        real(*given)

    monkeypatch.setattr(versions, "put", interrupted)
    assert act(play.owner, "joint-datasets/stays/roster", **changed).status_code == 422
    listed = play.owner.client.get("/api/v1/joint-datasets", headers=play.owner.bearer).json()["items"]
    assert {each["roster"] for each in listed} == {1}
    monkeypatch.setattr(versions, "put", real)
    assert act(play.owner, "joint-datasets/stays/roster", **changed).status_code == 200
    listed = play.owner.client.get("/api/v1/joint-datasets", headers=play.owner.bearer).json()["items"]
    assert {each["roster"] for each in listed} == {2}


def test_who_may_be_at_all_sites_may_be_at_all_of_a_later_roster(play: Play) -> None:
    assert play.join(overlap="3").status_code == 201
    four = replace(play.roster(), epoch=2, threshold=3, sites={name: key_of(name).public for name in (*NAMES, "east")})
    assert act(play.owner, "joint-datasets/hospitals/roster", **signed(four, *map(key_of, (*NAMES, "east")))).status_code == 200
    with play.house.hub.database.reading() as db:
        [(_, joined)] = legible(play.house.hub, versions_at_sites(db), joined_in)
    assert joined.overlap == 4

    def after(said: Any, *sizes: int) -> Any:
        found: Any = Joined(signed=SimpleNamespace(roster=SimpleNamespace(sites=range(sizes[0]))), overlap=said)  # type: ignore[arg-type]
        for size in sizes[1:]:
            found = found.after(SimpleNamespace(roster=SimpleNamespace(sites=range(size))))
        return found.overlap

    assert [after(5, 5, 3, 5), after(5, 5, 3, 6), after(2, 5, 3, 6), after("none", 3, 6)] == [5, 6, 2, "none"]


WRONG = [
    ({"signatures": {}}, "form is wrong"),
    ({"signatures": {"north": "00" * 64}}, "every site signs"),
    ({"table": "[tables.a]\n[tables.b]"}, "declares no table, or several"),
    ({"table": "[tables.a.columns]\nage = 3"}, "age"),
    ({"table": TABLE + "nope = { kind = 'map' }"}, "kind"),
    ({"table": "x = "}, "not TOML"),
    ({"overlap": "some"}, "at how many sites"),
    ({"overlap": "9"}, "at how many sites"),
    ({"reason": ""}, "public reason is missing"),
    ({"epsilon": ""}, "budget"),
    ({"roster": {"sites": []}}, "form is wrong"),
]


def test_what_is_wrong_is_said(play: Play) -> None:
    roster = play.roster()
    for change, why in WRONG:
        answer = play.join(**{"of": roster, **change})
        assert 400 <= answer.status_code < 500, answer.text
        assert why in answer.text, (change, answer.text)


def test_another_hubs_roster_and_keys_that_are_none(play: Play) -> None:
    other = Roster(sites={name: key_of(name).public for name in NAMES}, hub=SigningKey(bytes(32)).public, missing=0)
    assert "another hub" in play.join(of=other).text
    for keys, missing in (
        ("nonsense", "0"),
        ('{"north": "12"}', "0"),
        ('{"north": 3}', "0"),
        ("{}", "0"),
        ('{"a": "' + "0" * 64 + '"}', "x"),
    ):
        answer = play.post("/sites/roster", keys=keys, missing=missing)
        assert answer.status_code == 422, answer.text


def test_a_regression_is_learnt_over_sites_as_a_job(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """By gradients: the hub charges once, each site its steps, and the owner who denies it does so before anybody pays."""
    for name in ("attacked", "lost"):  # what its card would say
        monkeypatch.setattr(fitting, name, lambda *_: None)
    assert play.join(epsilon="", rho="1000").status_code == 201
    with play.house.hub.database.reading() as db:
        [row] = db.query(DataSet).filter(DataSet.name == "hospitals")
    play.house.grant(row, play.analyst, by=play.owner, actions=("dataset.see", "learn.run", "release.see"))
    sites = [site(name, Rule(answer="never", purpose="advertising"), budget=cl.ZCDP(10**3)) for name in NAMES]
    order = {"table": "hospitals", "method": "LogisticRegression", "features": ["age"], "target": "sex", "spend": "20"}
    ask = {"json": {**order, "purpose": "advertising"}, "headers": play.analyst.bearer}
    with served(play.house.hub) as address, running([SiteAgent(each) for each in sites], address):
        for purpose, state in (("advertising", "failed"), ("quality report", "done")):
            ask["json"]["purpose"] = purpose
            answer = play.analyst.client.post("/api/v1/models", **ask)
            assert answer.status_code == 202, answer.text
            with Hub(play.house.settings, services.all_services(), clock=play.house.hub.clock) as elsewhere:
                assert Workers(elsewhere, 0).run_one(), "in a process that no site calls"
            told = play.analyst.client.get(f"/api/v1/jobs/{answer.json()['job']}", headers=play.analyst.bearer).json()
            assert told["state"] == state, told
            assert state == "done" or "'advertising'" in json.dumps(told)
    assert play.house.hub.ledger.spent("patients") == cl.ZCDP(20)
    for each in sites:
        assert 19 < each.spent.rho <= 20  # type: ignore[union-attr]


def test_noise_that_cannot_be_shared_is_refused_in_the_readers_language(play: Play) -> None:
    assert play.join(epsilon="", rho="1000").status_code == 201
    with play.house.hub.database.reading() as db:
        [row] = db.query(DataSet).filter(DataSet.name == "hospitals")
    play.house.grant(row, play.analyst, by=play.owner)
    sent, client = {"sql": "SELECT COUNT(*) AS n FROM hospitals", "spend": "0.2"}, play.analyst.client
    token = re.search(r'name="form_token" value="([^"]+)"', client.get("/ask").text)
    assert token
    sites = [SiteAgent(site(name, budget=cl.ZCDP(10**3))) for name in NAMES]
    with served(play.house.hub) as address, running(sites, address):
        form = {"form_token": token[1], **sent}
        answer = client.post("/ask/explain", data=form, headers={"Accept-Language": "zh-CN"})
    assert answer.status_code == 422
    for words in ("不支持分成 3 份的尺度为 1.58114 的高斯噪声", "其中每份的尺度为 0.916", "的 1/3，或更细的"):
        assert words in answer.text


def test_a_regression_over_sites_under_a_budget_without_a_delta_is_refused_before_there_is_a_job(
    open_one: tuple[Play, str],
) -> None:
    """A table of the hub's own would be learnt from under a pure ε; over sites the noise is Gaussian."""
    play, _ = open_one
    with play.house.hub.database.reading() as db:
        [row] = db.query(DataSet).filter(DataSet.name == "hospitals")
    play.house.grant(row, play.analyst, by=play.owner, actions=("dataset.see", "learn.run", "release.see"))
    order = {"table": "hospitals", "method": "LogisticRegression", "features": ["age"], "target": "sex", "spend": "20"}
    answer = play.analyst.client.post("/api/v1/models", json=order | {"purpose": "care"}, headers=play.analyst.bearer)
    assert answer.status_code == 422, answer.text
    assert "needs a δ" in answer.text


def test_a_table_of_the_hub_and_the_rows_of_sites_are_asked_as_one(open_one: tuple[Play, str]) -> None:
    """A pool of both: one answer, noise of the sites, every population charged; and the comparison of alone and together."""
    play, address = open_one
    clinic = play.house.person("owner", email="clinic@example.org")
    declared = {
        "columns": {
            "age": {"kind": "integer", "low": 17, "high": 90},
            "sex": {"kind": "category", "values": ["F", "M"]},
        },
        "reasons": {"age": "the law", "sex": "the law"},
    }
    rows = {"age": [50] * 30, "sex": ["F"] * 20 + ["M"] * 10}
    with play.house.hub.database.reading() as db:
        hospitals = db.query(DataSet).filter(DataSet.name == "hospitals").one()
    own = play.house.sample_data_set(
        "clinic", owner=clinic, rows=rows, declaration=declared, budget=cl.PureDP(10**6), readers=[play.owner, play.analyst]
    )
    pool = {"parts": ["clinic", "hospitals"], "name": "all_of_them", "title": "All", "population": "town", "epsilon": "1000000"}
    made = play.owner.client.post("/api/v1/pooled-datasets", json=pool, headers=play.owner.bearer)
    assert made.status_code == 201, made.text
    with play.house.hub.database.reading() as db:
        whole = db.query(DataSet).filter(DataSet.name == "all_of_them").one()
    play.house.grant(whole, play.analyst, by=play.owner)
    sites = [site(name) for name in NAMES]
    with running([SiteAgent(each) for each in sites], address), cl.connect(address, token=play.analyst.token) as session:
        answer = session.sql("SELECT sex, COUNT(*) AS n FROM all_of_them GROUP BY sex", spend=1000)
        assert answer.to_pydict()["n"] == [80, 70]
    assert [each.spent for each in sites] == [cl.PureDP(1000)] * 3
    assert [play.house.hub.ledger.spent(each) for each in ("town", "clinic", "patients")] == [cl.PureDP(1000)] * 3
    asked = {"sql": "SELECT COUNT(*) AS n FROM all_of_them", "spend": "0.1"}
    compared = play.analyst.client.post("/api/v1/pooled-datasets/all_of_them/compare", json=asked, headers=play.analyst.bearer)
    assert compared.status_code == 200, compared.text
    margins = {each["way"]: each["margins"].get("n") for each in compared.json()}
    assert margins["all_of_them"] == margins["hospitals"]  # the sites' noise, once
    assert margins["apart"] > margins["hospitals"]
    assert {own.name, hospitals.name} <= set(margins)
