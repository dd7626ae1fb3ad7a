"""The institution's rules bind streams: with their money when one is opened, and again at every look, by every way in."""

from __future__ import annotations

from typing import Any

import pytest
from paho.mqtt.client import Client

import cloister as cl
from cloister.hub.generation import bump
from cloister.hub.ids import new_id
from cloister.hub.records.access import InstitutionRule
from cloister.hub.records.accounts import ApiToken, WebSession
from cloister.hub.records.streams import HeldStream
from cloister.hub.services.asking.pg import HubSession
from cloister.hub.services.streams.broker import Bridge
from cloister.hub.services.streams.opening import Declared, declared_of, open_stream
from cloister.pgwire import Asking
from tests.hub.house import House, Visitor
from tests.hub.streams.test_streams import HOUSE, Play
from tests.hub.streams.test_tables import answer, released
from tests.tiers import some_by_day


@pytest.fixture
def play(house: House) -> Play:
    return Play(house, house.person("owner"), house.person("analyst"))


@pytest.fixture(scope="module")
def shown(one_house: House) -> tuple[Play, str, str]:
    """One hub for all that only look: a stream with two steps, its id and its name, under no rule between two tests."""
    play = Play(one_house, one_house.person("owner"), one_house.person("analyst"))
    number, name = released(play)
    without_second_factor(play)
    for each in (play.ada, play.bob):
        one_house.awake(each)
    return play, number, name


def rule(play: Play, **said: Any) -> str:
    """The institution writes a rule: its id."""
    with play.house.hub.database.begin() as db:
        wanted = {"title": "A rule", "made_by": play.ada.id, "created": play.house.hub.now()}
        db.add(InstitutionRule(id=(number := new_id()), rule=said, **wanted))
        bump(db)
    return number


def without_second_factor(play: Play) -> None:
    """Everybody came in with a password alone."""
    with play.house.hub.database.begin() as db:
        for kind in (WebSession, ApiToken):
            for row in db.query(kind):
                row.second_factor = False


RULES: list[dict[str, Any]] = [
    {"actions": ["stream.see"], "deny": True},
    {"actions": ["stream.see"], "second_factor": True},
    {"second_factor": True},
    {"actions": ["stream.see"], "networks": ["10.0.0.0/8"]},
    {"actions": ["stream.see"], "training": ["GCP"]},
    {"purposes": ["research"]},
]


@some_by_day(
    "said, who",
    [(said, who) for said in RULES for who in ("ada", "bob")],
    lambda case: case[1] == ("ada", "bob")[RULES.index(case[0]) % 2],
    ids=str,
)
def test_a_rule_closes_each_way_to_what_was_released(shown: tuple[Play, str, str], said: dict[str, Any], who: str) -> None:
    play, number, name = shown
    play.house.in_front()
    visitor: Visitor = getattr(play, who)
    assert [status for _, status in looks(play, visitor, number, name)] == [200] * 9
    made = rule(play, **said)
    try:
        refused = dict(looks(play, visitor, number, name))
        assert refused.pop("list") == 200
        assert set(refused.values()) <= {403, 404}, refused
        assert number not in play.api("GET", "", who=visitor).text
        assert number not in visitor.client.get("/streams").text
        session = HubSession(play.house.hub, visitor.caller.email, visitor.token, "127.0.0.1")
        assert name not in session.tables()
        with pytest.raises(cl.CloisterError):
            session.ask(f"SELECT step, room, n FROM {name}", Asking(confidence=0.95))
    finally:
        with play.house.hub.database.begin() as db:
            db.delete(db.get_one(InstitutionRule, made))
            bump(db)


def looks(play: Play, visitor: Visitor, number: str, name: str) -> list[tuple[str, int]]:
    """Each way to look at a stream, and how it is answered."""
    found = [("list", play.api("GET", "", who=visitor).status_code)]
    found += [(path, play.api("GET", f"/{number}{path}", who=visitor).status_code) for path in ("", "/steps", "/steps.csv")]
    found += [("events", play.api("GET", f"/{number}/events?seconds=0", who=visitor).status_code)]
    found += [("sql", answer(play, f"SELECT n FROM {name}", visitor).status_code)]
    found += [(path, visitor.client.get(f"/streams/{number}{path}").status_code) for path in ("/", "/fresh")[1:]]
    found += [("page", visitor.client.get(f"/streams/{number}").status_code)]
    listed = visitor.client.get("/streams")
    return [*found, ("listed", 200 if number in listed.text else 404)]


def test_a_rule_of_a_purpose_is_kept_by_a_stream_that_states_it(play: Play) -> None:
    rule(play, purposes=["research"])
    assert play.api("POST", "", HOUSE).status_code == 403
    number, name = released(play, purpose="research")
    assert {status for _, status in looks(play, play.bob, number, name)[:6]} == {200}


@pytest.mark.parametrize(
    ("said", "more", "why"),
    [
        ({"epsilon_of_population": "1"}, {"rho": "", "epsilon": "1000"}, "ceiling of ε = 1"),
        ({"epsilon_of_population": "1", "actions": ["stream.open"]}, {"rho": "", "epsilon": "1.1"}, "ceiling of ε = 1"),
        ({"epsilon_of_allotment": "1"}, {"rho": "", "epsilon": "5"}, "ceiling of ε = 1"),
        ({"epsilon_of_population": "1"}, {"rho": "1000"}, "compared with this guarantee"),
        ({"epsilon_of_population": "1", "delta": "1e-6"}, {"rho": "1000"}, "ceiling of ε = 1"),
        ({"actions": ["stream.open"], "deny": True}, {}, "does not allow this"),
        ({"actions": ["stream.open"], "second_factor": True}, {}, "two-step verification"),
        ({"second_factor": True}, {}, "two-step verification"),
        ({"purposes": ["research"]}, {"purpose": "marketing"}, "purpose must be one of: research"),
        ({}, {"rho": "1e13"}, "at most 1,000,000,000,000"),
    ],
)
def test_a_stream_that_a_rule_refuses_is_not_opened_and_charges_nothing(
    play: Play, said: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    without_second_factor(play)
    rule(play, **said)
    before = play.house.hub.ledger.populations()
    body = HOUSE | more
    refused = play.api("POST", "", body)
    assert (refused.status_code, why in refused.text) == (422 if not said else 403, True), refused.text
    if body["rho"]:
        token = play.ada.csrf()["X-CSRF-Token"]
        typed = {**body, "columns": '{"room": {"kind": "category", "values": ["hall", "attic"]}}', "form_token": token}
        page = play.ada.client.post("/streams", data=typed)
        assert (page.status_code, "A new stream" in page.text or "policy" in page.text) == (422 if not said else 403, True)
    assert play.house.hub.ledger.populations() == before
    with play.house.hub.database.reading() as db:
        assert db.query(HeldStream).count() == 0


def test_a_stream_below_the_ceiling_is_opened(play: Play) -> None:
    rule(play, epsilon_of_population="1")
    assert play.api("POST", "", HOUSE | {"rho": "", "epsilon": "1"}).status_code == 201


def test_a_rule_of_another_institution_leaves_a_stream_alone(play: Play) -> None:
    rule(play, institution="elsewhere", actions=["stream.see", "stream.open"], deny=True)
    number, name = released(play)
    assert {status for _, status in looks(play, play.bob, number, name)[:6]} == {200}


def test_a_stream_can_be_closed_that_nobody_may_see(play: Play) -> None:
    number, _ = released(play)
    rule(play, actions=["stream.see"], deny=True)
    assert play.api("POST", f"/{number}/close").json()["state"] == "closed"


@pytest.mark.parametrize(("said", "told"), [({"deny": True}, 0), ({"second_factor": True}, 0), ({"institution": "x"}, 1)])
def test_a_broker_gets_what_somebody_from_nowhere_might_see(
    play: Play, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], told: int
) -> None:
    released(play)
    rule(play, actions=["stream.see"], **said)
    sent: list[str] = []
    monkeypatch.setattr(Client, "publish", lambda _, topic, *__, **___: sent.append(topic))
    monkeypatch.setattr(Client, "connect_async", lambda *_, **__: None)
    bridge = Bridge(play.house.hub, "mqtt://localhost")
    try:
        bridge._publish()
    finally:
        bridge.close()
    assert len([each for each in sent if each.endswith("/steps")]) == told


def test_a_stream_that_was_opened_before_streams_had_a_purpose_is_read(play: Play) -> None:
    declared = Declared(**{**HOUSE, "until": "2026-03-02T14:00:00Z"})
    number = open_stream(play.house.hub, play.ada.caller, declared)
    with play.house.hub.database.reading() as db:
        row = db.get_one(HeldStream, number)
        assert "purpose" not in row.declared
        assert declared_of(row) == declared
