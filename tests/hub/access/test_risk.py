"""A limit on the risk in a grant: written by an owner, kept by questions and models, told where it refuses; and what is told of
a data set that is not open at the moment to somebody who holds a grant on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from cloister.errors import AccessDenied
from cloister.hub.generation import bump
from cloister.hub.records.access import Grant
from cloister.hub.services.asking.authorised import ready
from cloister.hub.services.asking.question_request import QuestionRequest
from cloister.hub.work.recheck import check_standing
from cloister.ledger import Ledger
from cloister.privacy import ApproxDP, Guarantee, PureDP
from tests.hub.access.forms import post
from tests.hub.house import House, Visitor

People = Callable[..., Visitor]
PAGE = "/datasets/people/access"
COUNT = "SELECT COUNT(*) AS n FROM people"
SUM = "SELECT SUM(age) AS s FROM people"
FORM = {"role": "researcher", "people": "bob@south.example", "actions": ["question.ask"]}


@pytest.fixture
def owner(person: People, house: House) -> Visitor:
    owner = person("owner", email="olga@north.example", name="Olga")
    house.sample_data_set(owner=owner, budget=PureDP(3))
    return owner


@pytest.fixture
def bob(person: People) -> Visitor:
    return person("analyst", email="bob@south.example", name="Bob")


def ask(house: House, who: Visitor, sql: str = COUNT, spend: str = "0.1", address: str = "127.0.0.1", **more: Any) -> Any:
    body = {"sql": sql, "spend": spend, **more}
    return house.client(address).post("/api/v1/questions", json=body, headers=who.bearer)


def test_an_owner_writes_a_limit_and_reads_it_back(owner: Visitor, bob: Visitor) -> None:
    assert "Limit on the risk" in owner.client.get(f"{PAGE}/new").text
    assert post(owner, PAGE, f"{PAGE}/new", **FORM, risk="0.25").status_code == 303
    [made] = owner.client.get("/api/v1/grants?data_set=people").json()["items"]
    assert made["grant"]["rules"] == {"actions": ["question.ask"], "risk": "0.25"}
    assert "Risk: at most 0.25" in made["says"]
    assert "at most 0.25" in owner.client.get(PAGE).text


@pytest.mark.parametrize("risk", ["0", "1", "2", "-0.5"])
def test_a_limit_that_limits_nothing_or_allows_nothing_is_refused(owner: Visitor, bob: Visitor, risk: str) -> None:
    answer = post(owner, PAGE, f"{PAGE}/new", **FORM, risk=risk)
    assert answer.status_code == 422
    assert "“Limit on the risk” is invalid" in answer.text
    assert owner.client.get("/api/v1/grants?data_set=people").json()["items"] == []


@pytest.mark.parametrize(("risk", "spends"), [("0.05", ["0.1"]), ("0.5", ["0.5", "0.5"]), ("0.97", ["1", "1", "1"])])
def test_questions_are_answered_until_the_risk_is_reached(
    house: House, owner: Visitor, bob: Visitor, risk: str, spends: list[str]
) -> None:
    """All that somebody drew counts: ε = 0.1 is 0.05, ε = 1 is 0.463, ε = 3 is 0.906."""
    post(owner, PAGE, f"{PAGE}/new", **FORM, risk=risk)
    for place, spend in enumerate(spends):
        sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {20 + place}"
        assert ask(house, bob, sql, spend).status_code == 201
    if risk == "0.97":  # the budget ends before
        return
    no = ask(house, bob, SUM, "0.2")
    assert (no.status_code, no.json()["code"]) == (403, "access-denied")
    assert f"the grant allows at most {risk}" in no.text
    assert "the risk would reach" in no.text
    again = ask(house, bob, "SELECT COUNT(*) AS n FROM people WHERE age > 20", spends[0])
    assert again.status_code in (200, 201), "what was bought costs nothing more"
    eve = house.person("analyst", email="eve@south.example")
    assert ask(house, eve, COUNT).status_code == 404


def test_a_refusal_says_the_risk_before_anything_is_charged(house: House, owner: Visitor, bob: Visitor) -> None:
    post(owner, PAGE, f"{PAGE}/new", **FORM, risk="0.3")
    no = ask(house, bob, COUNT, "1").text
    assert "the risk would reach 0.463" in no
    assert "73.2 %" in no
    assert house.hub.ledger.spent("people") == PureDP(0)
    shown = house.client().post("/api/v1/questions/explain", json={"sql": COUNT, "spend": "1"}, headers=bob.bearer)
    assert shown.status_code == 200, "to explain costs nothing and risks nothing"


@pytest.mark.parametrize("budget", [PureDP(3), ApproxDP(3, "1e-5")])
def test_no_race_of_questions_passes_the_limit(
    house: House, person: People, bob: Visitor, budget: Guarantee, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two questions that are both decided on the same ledger: the charge of the second is refused."""
    owner = person("owner", email="otto@north.example")
    made = house.sample_data_set("folk", owner=owner, budget=budget, population="folk")
    house.grant(made, bob, by=owner, risk="0.3")
    monkeypatch.setattr(Ledger, "spent_by", lambda *_: PureDP(0) if isinstance(budget, PureDP) else ApproxDP(0, 0))
    assert ask(house, bob, "SELECT COUNT(*) AS n FROM folk", "0.5").status_code == 201
    no = ask(house, bob, "SELECT SUM(age) AS s FROM folk", "0.5")
    assert (no.status_code, no.json()["code"]) == (409, "budget-exceeded")
    assert "the risk would pass the most that the grant allows: 0.3" in no.text
    assert house.hub.ledger.spent("folk") <= ApproxDP("0.5", "1e-5")


@pytest.mark.parametrize(("risk", "leaves"), [("0.2", False), ("0.25", True), (None, True)])
def test_a_lower_limit_keeps_back_an_answer_that_is_being_made(
    house: House, owner: Visitor, bob: Visitor, risk: str | None, *, leaves: bool
) -> None:
    post(owner, PAGE, f"{PAGE}/new", **FORM, risk="0.5")
    wish = QuestionRequest(sql=COUNT, spend="0.5")
    with house.hub.database.reading() as db:
        found = ready(house.hub, db, bob.caller, wish, "question.ask")
    house.hub.ledger.reserve({"people": PureDP("0.5")}, who=bob.caller.email, what="plan")
    with house.hub.database.begin() as db:
        row = db.scalars(select(Grant)).one()
        row.rules = {"actions": ["question.ask"], **({} if risk is None else {"risk": risk})}
        bump(db)
    with house.hub.database.reading() as db:
        if leaves:
            check_standing(house.hub, db, bob.caller, found)
            return
        with pytest.raises(AccessDenied, match="the risk would reach") as caught:
            check_standing(house.hub, db, bob.caller, found)
    assert "the risk would reach 0.245" in caught.value.why


def test_models_keep_to_the_limit_too(house: House, owner: Visitor, bob: Visitor) -> None:
    post(owner, PAGE, f"{PAGE}/new", **{**FORM, "actions": ["question.ask", "learn.run"]}, risk="0.25")
    order = {"table": "people", "method": "GaussianNB", "features": ["age", "pay"], "target": "sex"}
    assert ask(house, bob, COUNT, "0.1").status_code == 201
    for spend, status in (("0.5", 403), ("0.3", 202)):
        answer = house.client().post("/api/v1/models", json={**order, "spend": spend}, headers=bob.bearer)
        assert (answer.status_code, "at most 0.25" in answer.text) == (status, status == 403), answer.text


def test_the_preview_is_not_denied_for_what_is_not_priced(owner: Visitor, bob: Visitor) -> None:
    post(owner, PAGE, f"{PAGE}/new", **FORM, risk="0.25")
    given = {"data_set": "people", "person": "bob@south.example"}
    items = owner.client.get("/api/v1/grants/preview", params=given).json()["items"]
    [found] = [each for each in items if each["action"] == "question.ask"]
    assert found["allowed"]


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"networks": ["10.0.0.0/8"]}, "it is not allowed from your network"),
        ({"hours": [{"days": ["sunday"]}]}, "the grant does not hold at this hour"),
        ({"not_before": "2026-06-01T00:00:00Z"}, "the grant begins at 2026-06-01"),
    ],
)
def test_whoever_holds_a_grant_is_told_why_it_does_not_hold_now(
    house: House, person: People, bob: Visitor, rules: dict[str, Any], told: str
) -> None:
    """The data set is not in the catalogue; who holds nothing on it hears the words for what does not exist."""
    owner = person("owner", email="otto@north.example")
    made = house.sample_data_set("secret_ward", owner=owner)
    house.grant(made, bob, by=owner, **rules)
    sql = "SELECT COUNT(*) AS n FROM secret_ward"
    no = ask(house, bob, sql)
    assert (no.status_code, no.json()["code"]) == (403, "access-denied")
    assert told in no.text
    assert "age" not in no.text
    explained = house.client().post("/api/v1/questions/explain", json={"sql": sql, "spend": "0.1"}, headers=bob.bearer)
    assert (explained.status_code, told in explained.text) == (403, True)
    eve = person("analyst", email="eve@south.example")
    other, none = (ask(house, eve, sql.replace("secret_ward", name)) for name in ("secret_ward", "secret_wart"))
    assert other.status_code == none.status_code == 404
    assert other.text.replace("secret_ward", "secret_wart") == none.text.replace("secret_ward", "secret_wart")


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"anybody": True}, 404),
        ({"training": ["GCP"]}, 404),
        ({"anybody": True, "training": ["GCP"]}, 404),
        ({"institutions": ["South"]}, 404),
    ],
)
def test_a_grant_that_names_nobody_tells_nobody(
    house: House, person: People, bob: Visitor, members: dict[str, Any], status: int
) -> None:
    owner = person("owner", email="otto@north.example")
    made = house.sample_data_set("secret_ward", owner=owner)
    number = house.grant(made, bob, by=owner, networks=["10.0.0.0/8"])
    with house.hub.database.begin() as db:
        db.get_one(Grant, number).attributes = members
        bump(db)
    assert ask(house, bob, "SELECT COUNT(*) AS n FROM secret_ward").status_code == status


def test_a_grant_that_is_over_tells_nothing(house: House, person: People, bob: Visitor) -> None:
    owner = person("owner", email="otto@north.example")
    made = house.sample_data_set("secret_ward", owner=owner)
    number = house.grant(made, bob, by=owner, networks=["10.0.0.0/8"])
    with house.hub.database.begin() as db:
        db.get_one(Grant, number).revoked = house.hub.now()
        bump(db)
    house.grant(made, bob, by=owner, until="2026-01-01T00:00:00Z")
    assert ask(house, bob, "SELECT COUNT(*) AS n FROM secret_ward").status_code == 404


def test_an_owner_is_told_that_their_data_set_is_closed(house: House, owner: Visitor, bob: Visitor) -> None:
    post(owner, PAGE, f"{PAGE}/new", **FORM)
    assert post(owner, "/datasets/people/close", "/datasets/people/manage").status_code == 303
    told = ask(house, owner, COUNT)
    assert (told.status_code, told.json()["code"]) == (404, "unknown-table")
    assert "the data set is closed" in told.text
    assert "/datasets/people/manage" in told.text
    no = ask(house, bob, COUNT)
    assert (no.status_code, "closed" in no.text) == (404, False)
    assert "no data set of that name is open to you" in no.text


def test_a_certificate_that_is_missing_is_not_hidden_by_an_old_grant(house: House, owner: Visitor, bob: Visitor) -> None:
    post(owner, PAGE, f"{PAGE}/new", **FORM)
    [old] = owner.client.get("/api/v1/grants?data_set=people").json()["items"]
    assert post(owner, f"{PAGE}/{old['id']}/revoke", PAGE).status_code == 303
    post(owner, PAGE, f"{PAGE}/new", preset="listed")
    post(owner, PAGE, f"{PAGE}/new", **FORM, training="GCP")
    no = ask(house, bob, COUNT)
    assert (no.status_code, "it takes a valid certificate: GCP" in no.text) == (403, True)
    assert "revoked" not in no.text
