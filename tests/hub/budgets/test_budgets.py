"""Budgets: who sees what of them, what raises and shares them, and requests for more."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from cloister.errors import InvalidParameter
from cloister.hub.generation import bump
from cloister.hub.guidance import budget_of
from cloister.hub.platform.access import grant
from cloister.hub.platform.budgets import advice
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.trail import AuditLine
from cloister.hub.web.languages import language_of
from cloister.hub.web.render import ZONE_COOKIE
from cloister.privacy import ZCDP, ApproxDP, PureDP
from tests.hub.access.forms import post
from tests.hub.house import House, Visitor

People = Callable[..., Visitor]
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def owner(person: People) -> Visitor:
    return person("owner", email="olga@north.example", name="Olga")


@pytest.fixture
def bob(person: People) -> Visitor:
    return person("analyst", email="bob@south.example", name="Bob")


def ask(visitor: Visitor, sql: str = COUNT, spend: str = "0.1", **more: Any) -> Any:
    body = {"sql": sql, "spend": spend, "purpose": "research", **more}
    return visitor.client.post("/api/v1/questions", json=body, headers=visitor.bearer)


def one(visitor: Visitor, path: str = "/people") -> Any:
    return visitor.client.get(f"/api/v1/budgets{path}", headers=visitor.bearer)


def test_who_may_ask_sees_the_totals_and_their_own_charges(house: House, owner: Visitor, bob: Visitor, person: People) -> None:
    eve, stranger = person("analyst", email="eve@south.example"), person("analyst")
    house.sample_data_set(owner=owner, readers=[bob, eve])
    assert ask(bob).status_code == 201
    assert ask(eve, "SELECT AVG(age) AS a FROM people", spend="0.2").status_code == 201
    mine = one(bob).json()
    assert (mine["total"], mine["spent"], mine["remaining"]) == ({"epsilon": "1"}, {"epsilon": "0.3"}, {"epsilon": "0.7"})
    assert [each["who"] for each in one(bob, "/people/charges").json()["items"]] == ["bob@south.example"]
    assert [each["who"] for each in one(owner, "/people/charges").json()["items"]] == ["eve@south.example", "bob@south.example"]
    assert [each["population"] for each in one(bob, "").json()["items"]] == ["people"]
    assert one(stranger, "").json()["items"] == []
    assert one(stranger).status_code == one(stranger, "/nothing").status_code == 404
    assert stranger.client.get("/budgets/people/history.svg").status_code == 404
    page, full = bob.client.get("/budgets/people").text, owner.client.get("/budgets/people").text
    assert "eve@south.example" not in page
    assert "eve@south.example" in full
    for told in ("2.72 : 1 about presence", "7.39 : 1 about a value", "73.2 %", "88.1 %", "ε counts twice"):
        assert told in full, "the guidance stands beside the number, for presence and for values"
    assert "Raise the budget" in full
    assert "Raise the budget" not in page


def test_charges_come_in_pages(house: House, owner: Visitor) -> None:
    house.sample_data_set(owner=owner, budget=PureDP(100))
    for number in range(7):
        house.hub.ledger.reserve({"people": PureDP("0.5")}, who="olga", what=f"plan-{number}", purpose="<i>why</i>")
    page = one(owner, "/people/charges?limit=3").json()
    assert [each["what"] for each in page["items"]] == ["plan-6", "plan-5", "plan-4"]
    following = one(owner, f"/people/charges?limit=200&after={page['next']}").json()
    assert [each["what"] for each in following["items"]] == ["plan-3", "plan-2", "plan-1", "plan-0"]
    assert following["next"] is None
    shown = owner.client.get("/budgets/people").text
    assert "&lt;i&gt;why&lt;/i&gt;" in shown
    assert "3.5 % reserved" in shown, "what is charged and has not left is told apart"


def test_raising_needs_the_owner_a_reason_and_the_ceiling(house: House, owner: Visitor, bob: Visitor, person: People) -> None:
    house.sample_data_set(owner=owner, readers=[bob])
    steward = person("steward")
    path = "/budgets/people"
    assert post(owner, f"{path}/raise", path, amount="2", why=" ").status_code == 422
    assert post(owner, f"{path}/raise", path, amount="0.5", why="less").status_code == 422
    assert post(owner, f"{path}/raise", path, amount="nan", why="odd").status_code == 422
    assert post(bob, f"{path}/raise", path, amount="2", why="please").status_code == 403
    assert post(steward, f"{path}/raise", path, amount="2", why="office").status_code == 403
    assert house.hub.ledger.budget("people") == PureDP(1)
    assert post(owner, f"{path}/raise", path, amount="2", why="a second study").status_code == 303
    assert house.hub.ledger.budget("people") == PureDP(2)
    assert "a second study" in owner.client.get(path).text
    with house.hub.database.reading() as db:
        line = next(line for line in db.query(AuditLine) if line.action == "budget.raise")
        assert (line.person, line.details["why"], line.details["after"]) == (owner.id, "a second study", "ε = 2")
    post(steward, "/policy/rules", "/policy", title="Ceiling", epsilon_of_population="3")
    refused = post(owner, f"{path}/raise", path, amount="3.5", why="more")
    assert refused.status_code == 403
    assert "ceiling" in refused.text
    assert house.hub.ledger.budget("people") == PureDP(2)
    assert post(owner, f"{path}/raise", path, amount="3", why="up to it").status_code == 303


def test_a_ceiling_for_labelled_data_binds_the_population(house: House, owner: Visitor, person: People) -> None:
    row = house.sample_data_set(owner=owner)
    with house.hub.database.begin() as db:
        db.get_one(DataSet, row.id).metadata_ = {"policy": {"labels": ["clinical"]}}
        bump(db)
    post(person("steward"), "/policy/rules", "/policy", title="Clinical", labels="clinical", epsilon_of_population="1.5")
    assert post(owner, "/budgets/people/raise", "/budgets/people", amount="2", why="w").status_code == 403
    assert post(owner, "/budgets/people/raise", "/budgets/people", amount="1.5", why="w").status_code == 303


def test_shares_cap_people_and_projects(house: House, owner: Visitor, bob: Visitor, person: People) -> None:
    house.sample_data_set(owner=owner, readers=[bob])
    path = "/budgets/people"
    assert post(owner, f"{path}/allot", path, who="nobody at x", amount="0.1").status_code == 422
    assert post(bob, f"{path}/allot", path, who="bob@south.example", amount="1").status_code == 403
    assert post(owner, f"{path}/allot", path, who="BOB@south.example", amount="0.15").status_code == 303
    assert one(bob).json()["mine"] == {"who": "bob@south.example", "share": {"epsilon": "0.15"}, "left": {"epsilon": "0.15"}}
    assert ask(bob).status_code == 201
    over = ask(bob, "SELECT AVG(age) AS a FROM people")
    assert (over.status_code, over.json()["code"]) == (409, "budget-exceeded")
    post(bob, "/projects", name="heart", title="Heart", purpose="hearts")
    assert post(owner, f"{path}/allot", path, who="heart", amount="0.3").status_code == 303
    assert {each["who"] for each in one(owner).json()["shares"]} == {"bob@south.example", "project heart"}
    assert {each["who"] for each in one(bob).json()["shares"]} == {"bob@south.example", "project heart"}
    eve = person("analyst", email="eve@south.example")
    house.grant(_row(house), eve, by=owner)
    assert one(eve).json()["shares"] == []
    assert "project heart" in owner.client.get(path).text
    post(person("steward"), "/policy/rules", "/policy", title="Small shares", epsilon_of_allotment="0.5")
    assert post(owner, f"{path}/allot", path, who="bob@south.example", amount="0.6").status_code == 403


def _row(house: House) -> Any:
    with house.hub.database.reading() as db:
        found = db.query(DataSet).one()
        db.expunge_all()
    return found


def test_more_is_asked_for_and_granted_narrower(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner, readers=[bob])
    path = "/budgets/people"
    post(owner, f"{path}/allot", path, who="bob@south.example", amount="0.1")
    assert ask(bob).status_code == 201
    assert ask(bob, "SELECT AVG(age) AS a FROM people").status_code == 409
    assert post(bob, f"{path}/requests", path, amount="0.5", reason="a follow-up <b>study</b>").status_code == 303
    assert post(bob, f"{path}/requests", path, amount="0.6", reason="again").status_code == 409
    page = owner.client.get(path).text
    assert "a follow-up &lt;b&gt;study&lt;/b&gt;" in page
    assert '<textarea id="message-' in page, "in a field of one line Enter would grant, while a reason to refuse is written"
    assert "One request waits for you" in owner.client.get("/").text
    [asked] = owner.client.get("/api/v1/budget-requests?to_decide=true", headers=owner.csrf()).json()["items"]
    assert (asked["who"], asked["reason"]) == ("Bob", "a follow-up <b>study</b>")
    number = asked["id"]
    assert post(bob, f"{path}/requests/{number}/decide", path, decision="grant").status_code == 403
    assert post(owner, f"{path}/requests/{number}/decide", path, decision="refuse").status_code == 422, "a no has a reason"
    granted = post(owner, f"{path}/requests/{number}/decide", path, decision="grant", amount="0.3", message="not so much")
    assert granted.status_code == 303
    assert house.hub.ledger.allotment("people", "bob@south.example") == (PureDP("0.3"), PureDP("0.2"))
    assert "not so much" in bob.client.get(path).text
    assert ask(bob, "SELECT AVG(age) AS a FROM people").status_code == 201
    assert post(owner, f"{path}/requests/{number}/decide", path, decision="grant").status_code == 409


def test_a_refused_form_keeps_what_was_typed_to_itself(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner, readers=[bob])
    path = "/budgets/people"
    assert post(bob, f"{path}/requests", path, amount="0.5", reason="a follow-up").status_code == 303
    number = owner.client.get("/api/v1/budget-requests?to_decide=true", headers=owner.bearer).json()["items"][0]["id"]

    def amounts(page: Any) -> list[str]:
        assert page.status_code in (403, 409, 422), page.text
        return re.findall(r'name="amount" type="text" value="([^"]*)"', page.text)

    assert amounts(post(owner, f"{path}/raise", path, amount="7", why="")) == ["", "7", "0.5"]
    assert amounts(post(owner, f"{path}/allot", path, amount="0.3", who="nobody")) == ["0.3", "", "0.5"]
    said = post(owner, f"{path}/requests/{number}/decide", path, decision="grant", amount="x", message="not so much")
    assert amounts(said) == ["", "", "x"]
    assert "not so much</textarea>" in said.text
    assert "“x” in the field “Share in all”" in said.text


def test_the_picture_of_a_budget_goes_by_the_readers_clock(house: House, owner: Visitor) -> None:
    house.sample_data_set(owner=owner)  # at nine in the morning, UTC
    owner.client.cookies.set(ZONE_COOKIE, "Asia/Shanghai")
    assert ">17:00<" in owner.client.get("/budgets/people/history.svg").text


def test_requests_of_others_are_missing(house: House, owner: Visitor, bob: Visitor, person: People) -> None:
    house.sample_data_set(owner=owner, readers=[bob])
    eve = person("analyst", "owner")
    body = {"amount": "0.5", "reason": "mine"}
    made = bob.client.post("/api/v1/budgets/people/requests", json=body, headers=bob.csrf())
    assert made.status_code == 201, made.text
    number = made.json()["id"]
    for path, given in (("decide", {"grant": True}), ("withdraw", None)):
        answer = eve.client.post(f"/api/v1/budget-requests/{number}/{path}", json=given, headers=eve.csrf())
        assert answer.status_code == 404
    assert eve.client.post("/api/v1/budgets/people/requests", json=body, headers=eve.csrf()).status_code == 404
    for extra in ({"person": eve.id}, {"state": "granted"}):
        assert bob.client.post("/api/v1/budgets/people/requests", json=body | extra, headers=bob.csrf()).status_code == 422
    gone = bob.client.post(f"/api/v1/budget-requests/{number}/withdraw", headers=bob.csrf())
    assert gone.json()["state"] == "withdrawn"
    assert house.hub.ledger.allotment("people", "bob@south.example") is None


def test_a_share_for_an_address_is_answered_in_the_same_way_whoever_has_it(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    told = [
        post(owner, "/budgets/people/allot", "/budgets/people", who=each, amount="0.1")
        for each in (bob.caller.email, "nobody@x.example")
    ]
    assert [each.status_code for each in told] == [303, 303]
    assert house.hub.ledger.allotment("people", "nobody@x.example") == (PureDP("0.1"), PureDP("0.1"))


def test_forged_forms_change_nothing(house: House, owner: Visitor) -> None:
    house.sample_data_set(owner=owner)
    assert owner.client.post("/budgets/people/raise", data={"amount": "9", "why": "x"}).status_code == 403
    assert owner.client.post("/api/v1/budgets/people/raise", json={"amount": "9", "why": "x"}).status_code == 403
    assert house.hub.ledger.budget("people") == PureDP(1)


@pytest.mark.parametrize(("budget", "letter"), [(PureDP(2), "ε"), (ApproxDP(2, "1e-6"), "ε"), (ZCDP("0.5"), "ρ")])
def test_the_history_is_a_picture_in_every_measure(house: House, owner: Visitor, budget: Any, letter: str) -> None:
    house.sample_data_set(owner=owner, budget=budget)
    for look in ("light", "dark"):
        answer = owner.client.get(f"/budgets/people/history.svg?look={look}")
        assert answer.headers["content-type"].startswith("image/svg+xml")
        assert f"{letter} = 0" in answer.text
        assert "<script" not in answer.text
    assert owner.client.get("/budgets/people/history.svg?look=neon").status_code == 422
    assert owner.client.get("/budgets/people").status_code == 200
    assert post(owner, "/budgets/people/allot", "/budgets/people", who=owner.caller.email, amount="0.1").status_code == 303


def test_what_left_without_a_guarantee_reads_unbounded(house: House, owner: Visitor) -> None:
    house.sample_data_set(owner=owner)
    house.hub.ledger.note_not_private("people", who="olga", what="an anonymised table")
    assert one(owner).json()["unbounded"] is True
    assert "spending is not covered by the budget" in owner.client.get("/budgets/people").text
    assert "Not covered by the budget" in owner.client.get("/budgets").text


def test_names_of_populations_are_texts(house: House, owner: Visitor) -> None:
    house.sample_data_set("people", owner=owner, population="all <b>people & co")
    path = "/budgets/all%20%3Cb%3Epeople%20%26%20co"
    assert f'href="{path}"' in owner.client.get("/budgets").text
    for address in ("/budgets", path, f"{path}/history.svg"):
        answer = owner.client.get(address)
        assert answer.status_code == 200, address
        assert "<b>people" not in answer.text.lower()
    assert post(owner, f"{path}/raise", path, amount="2", why="w").headers["location"] == path


def test_who_may_only_explain_sees_no_budget(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    rules = {"actions": ["question.explain"]}
    grant(house.hub, owner.caller, data_set="people", role="planner", members={"people": [bob.id]}, rules=rules)
    assert one(bob).status_code == 404, "who may only explain sees no budget"


FAR = ["1e309", "1e400", "1000000000001"]


@pytest.mark.parametrize("amount", FAR)
def test_amounts_beyond_all_sense_are_refused_at_the_door(house: House, owner: Visitor, bob: Visitor, amount: str) -> None:
    house.sample_data_set(owner=owner, readers=[bob])
    path = "/budgets/people"
    number = bob.client.post(f"/api/v1{path}/requests", json={"amount": "2", "reason": "r"}, headers=bob.csrf()).json()["id"]
    told = [
        owner.client.post(f"/api/v1{path}/raise", json={"amount": amount, "why": "w"}, headers=owner.csrf()),
        owner.client.post(f"/api/v1{path}/shares", json={"who": bob.caller.email, "amount": amount}, headers=owner.csrf()),
        owner.client.post(
            f"/api/v1/budget-requests/{number}/decide", json={"grant": True, "amount": amount}, headers=owner.csrf()
        ),
        bob.client.post(f"/api/v1{path}/requests", json={"amount": amount, "reason": "r"}, headers=bob.csrf()),
    ]
    for each in told:
        assert (each.status_code, "at most 1,000,000,000,000" in each.json()["detail"]) == (422, True), each.text
    assert post(owner, f"{path}/raise", path, amount=amount, why="w").status_code == 422
    assert post(owner, f"{path}/allot", path, who=bob.caller.email, amount=amount).status_code == 422
    assert post(owner, f"{path}/requests/{number}/decide", path, decision="grant", amount=amount).status_code == 422
    assert house.hub.ledger.budget("people") == PureDP(1)
    assert post(owner, f"{path}/raise", path, amount="1000000000", why="w").status_code == 303


@pytest.mark.parametrize(
    "budget", [PureDP("1e309"), PureDP("1e400"), ApproxDP("1e400", "1e-390"), ZCDP("1e400"), PureDP("1e-90")]
)
def test_every_budget_that_is_kept_has_its_pages(house: House, owner: Visitor, bob: Visitor, budget: Any) -> None:
    """Of a hub that took such a budget before it was refused at the door."""
    house.sample_data_set(owner=owner, budget=budget, readers=[bob])
    house.hub.ledger.allot("people", bob.caller.email, budget, who=owner.caller.email)
    for visitor in (owner, bob):
        for page in ("/", "/budgets", "/budgets/people", "/budgets/people/history.svg", "/datasets", "/datasets/people"):
            answer = visitor.client.get(page)
            assert answer.status_code == 200, page
            assert "0" * 320 not in answer.text or page == "/budgets/people", page
        assert one(visitor).status_code == one(visitor, "").status_code == 200
    for page in ("/populations", "/populations/people", "/datasets/people/access/new"):
        assert owner.client.get(page).status_code in (200, 404), page


@pytest.mark.parametrize("told", [{"epsilon": "1e309"}, {"epsilon": "1e400", "delta": "1e-6"}, {"rho": "1000000000001"}])
def test_no_population_is_opened_with_such_a_budget(told: dict[str, str]) -> None:
    with pytest.raises(InvalidParameter, match="at most 1,000,000,000,000"):
        budget_of(**told)
    assert budget_of("1000000000") == PureDP(10**9)


def test_odds_that_are_too_long_for_digits_are_in_the_language_of_the_page() -> None:
    chinese = language_of("zh_CN").gettext
    told = [each.text for each in advice(PureDP(1000), None, "1e-5", chinese)]
    assert any("一百万以上 : 1" in each for each in told)
    assert not any("million" in each for each in told)
