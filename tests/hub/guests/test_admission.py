"""Native code and declared mechanisms come near rows once two people read them, and go when somebody stops them."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from cloister.guests.blocks import Blocks
from cloister.guests.sandbox.environments import Environment
from cloister.guests.sandbox.processes import why_not
from cloister.hub.platform.access import grant
from cloister.hub.platform.access.granting import revoke_in
from cloister.hub.platform.jobs import Workers
from cloister.hub.platform.trail import verify
from cloister.hub.records.access import Grant, GuestReview
from cloister.hub.records.trail import Alert
from cloister.hub.services.guests import reviewing
from tests.hub.guests.test_running import A1, ASKS, ORDER, Play, let, play_in, register
from tests.hub.house import House, Visitor

TOTAL = """
from fractions import Fraction

def total(rows, spend):
    return [sum(rows["age"]) + noise("laplace", BOUND / Fraction(spend["epsilon"]))]
"""
TESTS = """
def test_sum():
    assert 30 < total({"age": [40]}, {"epsilon": "1000000"})[0] < 50
"""
DECLARED: dict[str, Any] = {
    "way": "declared",
    "code": TOTAL.replace("BOUND", "90"),
    "inputs": ["age"],
    "low": [0],
    "high": [30_000],
    "names": ["years"],
    "seconds": 0.05,
    "author": "Pia",
    "mechanism": "Laplace",
    "proof": "One person moves the sum by at most 90,\nthe upper bound of age.",
    "tests": TESTS,
    "licence": "CC0",
}
NATIVE: dict[str, Any] = {**A1, "packages": ["numpy"], "seconds": 0.6, "blocks": 5}


@pytest.fixture
def play(house: House, monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.setattr(reviewing, "_RUNS", 400)
    return play_in(house)


def ready(play: Play, name: str, settings: dict[str, Any]) -> Visitor:
    """An algorithm that owner and provider both grant to U3; a steward, who may see it."""
    made = register(play.provider, name, settings)
    assert made.status_code == 201, made.text
    let(play.provider, name, play.owner, actions=["algorithm.see"])
    let(play.provider, name, play.u3, only_with=["people"])
    rules = {"actions": ["algorithm.run", "release.see"], "algorithms": [name]}
    grant(play.house.hub, play.owner.caller, data_set="people", role="runner", members={"people": [play.u3.id]}, rules=rules)
    return play.house.person("steward", email="stella@example.org", name="Stella")


def press(who: Visitor, name: str, act: str, **form: str) -> Any:
    """A button of the review page."""
    return who.client.post(f"/algorithm-reviews/{name}/people/{act}", data={"form_token": token_of(who), **form})


def token_of(who: Visitor) -> str:
    """What a form of this visitor carries."""
    token = re.search(r'name="form_token" value="([^"]+)"', who.client.get("/algorithms").text)
    assert token is not None
    return token[1]


def audit(play: Play, name: str) -> None:
    """Order an audit and let a worker do it."""
    assert press(play.owner, name, "audit", spend="1").status_code == 303
    assert Workers(play.house.hub, 0).run_one()


def was_declared(play: Play, digest: str) -> str:
    """Write down that the declaration which was reviewed was another one: what stood there."""
    with play.house.hub.database.begin() as db:
        [row] = db.scalars(select(GuestReview)).all()
        before, row.declared = row.declared, digest
    return before


def page(who: Visitor, name: str) -> str:
    """What a reviewer reads, without tags."""
    answer = who.client.get(f"/algorithm-reviews/{name}/people")
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text.split("<main")[1]))


def test_a_declared_mechanism_runs_after_an_audit_and_two_approvals_and_its_result_says_so(play: Play) -> None:
    stella = ready(play, "total", DECLARED)
    order = {**ORDER, "algorithm": "total"}
    assert "two people" in play.post("/algorithm-runs", order).text
    refused = press(play.owner, "total", "approve")
    assert refused.status_code == 409  # not before the audit
    for much in ("much", "1e300"):
        refused = press(play.owner, "total", "audit", spend=much)
        assert (refused.status_code, f'value="{much}"' in refused.text) == (422, True)
    audit(play, "total")
    said = page(play.owner, "total")
    for told in ("guarantee not broken", "broken twin caught", "1 tests passed", "One person moves the sum", "CC0", "0 of 2"):
        assert told in said, told
    assert press(play.provider, "total", "approve").status_code == 403
    assert press(stella, "total", "approve").status_code == 303
    assert press(stella, "total", "approve").status_code == 409  # one person is one approval
    assert play.post("/algorithm-runs", order).status_code == 403
    assert press(play.owner, "total", "approve").status_code == 303
    assert "Admitted" in page(play.owner, "total")
    declared = was_declared(play, "0" * 64)  # as it was before the owner widened a bound
    assert play.post("/algorithm-runs", order).status_code == 403, "what was approved for another is not approved for this one"
    assert "0 of 2" in page(play.owner, "total")
    was_declared(play, declared)
    told = play.run(algorithm="total")
    assert told["state"] == "done", told
    assert play.spent == "ε = 0.25"
    shown = play.u3.client.get(f"/algorithm-results/{told['result']['guest']}").text
    assert "declared by Pia; admitted by Stella and Olga; audited to at least" in shown
    chinese = play.u3.client.get(f"/algorithm-results/{told['result']['guest']}", headers={"accept-language": "zh-CN"}).text
    assert "由 Pia 声明；由 Stella 和 Olga 准入；审计" in chinese
    kept = play.get(f"/releases/{told['result']['guest']}").json()
    values = (kept if "values" in kept else json.loads(kept["body"]))["values"]
    assert 0 <= values["years"] <= 30_000
    assert verify(play.house.hub)


def test_one_run_has_two_sides_and_its_author_learns_neither_who_nor_what(play: Play) -> None:
    told = play.run()
    number = told["result"]["guest"]
    author = play.provider.client.get(f"/algorithm-runs/{number}")
    owner = play.owner.client.get(f"/algorithm-runs/{number}")
    assert (author.status_code, owner.status_code) == (200, 200)
    assert "research" in author.text
    assert "U3" not in author.text
    assert "0.25" not in author.text
    assert "U3" in owner.text
    assert "0.25" in owner.text
    assert play.u3.client.get(f"/algorithm-runs/{number}").status_code == 404
    assert "Number of runs: 1" in play.provider.client.get("/algorithms/a1").text
    assert f"/algorithm-runs/{number}" in play.provider.client.get("/algorithms/a1").text


def test_a_guarantee_that_an_audit_breaks_stops_the_algorithm_and_raises_an_alert(play: Play) -> None:
    ready(play, "small", {**DECLARED, "code": TOTAL.replace("BOUND", "3")})
    audit(play, "small")
    said = page(play.owner, "small")
    assert "guarantee broken" in said
    assert "an audit broke its guarantee" in said
    assert press(play.owner, "small", "lift").status_code == 303
    assert press(play.owner, "small", "approve").status_code == 409  # it stays unaudited
    with play.house.hub.database.reading() as db:
        [alert] = db.scalars(select(Alert)).all()
        assert (alert.kind, alert.about["algorithm"]) == ("algorithm", "small")


def test_an_audit_that_tells_nothing_admits_nothing(play: Play) -> None:
    """Noise of a thousand times what is needed hides the twin too; a test that fails is told to reviewers."""
    ready(play, "loud", {**DECLARED, "code": TOTAL.replace("BOUND", "90000"), "tests": TESTS})
    audit(play, "loud")
    said = page(play.owner, "loud")
    assert "broken twin not caught" in said
    assert press(play.owner, "loud", "approve").status_code == 409


def test_a_declared_mechanism_that_returned_nothing_on_as_many_rows_as_there_are_is_not_approved(play: Play) -> None:
    """Its audit is on few; a run would be charged, and release nothing."""
    slow = DECLARED["code"].replace("    return [sum", "    return 'late' if len(rows['age']) > 100 else [sum")
    ready(play, "total", {**DECLARED, "code": slow})
    audit(play, "total")
    assert "guarantee not broken" in page(play.owner, "total")
    refused = press(play.owner, "total", "approve")
    assert (refused.status_code, "made-up rows" in refused.text) == (409, True)


@pytest.mark.skipif(bool(why_not()), reason="no bubblewrap")
def test_native_code_is_read_before_it_runs_even_on_made_up_rows(play: Play) -> None:
    stella = ready(play, "native", NATIVE)
    assert play.post("/algorithm-runs", {**ORDER, "algorithm": "native"}).status_code == 403
    assert press(play.owner, "native", "audit").status_code == 409
    assert press(play.owner, "native", "approve").status_code == 303
    audit(play, "native")
    assert "5 of 5 runs on made-up rows returned what is declared" in page(stella, "native")
    assert press(stella, "native", "approve").status_code == 303
    told = play.run(algorithm="native")
    assert told["state"] == "done", told
    shown = play.provider.client.get("/algorithms/native").text.rsplit("Who approved it is for its reviewers.")[-1]
    assert "people" in shown
    assert "Stella" not in shown  # who approved it is for its reviewers
    assert "admitted by Olga and Stella" in play.u3.client.get(f"/algorithm-results/{told['result']['guest']}").text


def test_an_approval_is_for_the_files_of_its_environment(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was not built here is refused by its name; one that was built anew is another one."""
    refused = register(play.provider, "native", {**NATIVE, "environment": "statistics"})
    assert refused.status_code == 422
    assert "environment='statistics'" in refused.text
    assert "no environment of that name was built" in refused.text
    digests = {"statistics": "a" * 64}

    def held(name: str) -> Environment:
        return Environment(name=name, digest=digests[name], python="", distributions=("numpy 2",))

    monkeypatch.setattr("cloister.guests.algorithm.environment", held)
    monkeypatch.setattr("cloister.hub.services.guests.settings.environment", held)
    ready(play, "native", {**NATIVE, "environment": "statistics"})
    assert press(play.owner, "native", "approve").status_code == 303
    assert "1 of 2" in page(play.owner, "native")
    assert "Environment statistics" in page(play.owner, "native")
    digests["statistics"] = "b" * 64
    assert "0 of 2" in page(play.owner, "native")


def test_two_stewards_are_no_owner(play: Play) -> None:
    stella = ready(play, "native", NATIVE)
    other = play.house.person("steward", email="simon@example.org", name="Simon")
    assert press(stella, "native", "approve").status_code == 303
    refused = press(other, "native", "approve")
    assert refused.status_code == 409
    assert "the owner" in refused.text


def test_a_stopped_algorithm_runs_no_more_and_what_runs_then_leaves_nothing(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Blocks.release

    def stopped_meanwhile(self: Blocks, *given: Any) -> Any:
        assert press(play.owner, "a1", "stop", why="odd").status_code == 303
        return real(self, *given)

    monkeypatch.setattr(Blocks, "release", stopped_meanwhile)
    told = play.run()
    assert told["state"] == "failed"
    assert "the charge stands" in json.dumps(told)
    assert play.spent == "ε = 0.25"
    denied = play.post("/algorithm-runs", ORDER)
    assert denied.status_code == 403
    assert "odd" not in denied.text  # what a person wrote is for reviewers
    assert "odd" in page(play.owner, "a1")
    monkeypatch.undo()
    assert press(play.owner, "a1", "lift").status_code == 303
    assert play.run()["state"] == "done"


def test_an_owner_who_revokes_in_mid_run_keeps_the_result_back(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Blocks.release

    def revoked_meanwhile(self: Blocks, *given: Any) -> Any:
        play.provider.client.delete("/api/v1/algorithms/a1", headers=play.provider.bearer)
        return real(self, *given)

    monkeypatch.setattr(Blocks, "release", revoked_meanwhile)
    told = play.run()
    assert told["state"] == "failed"
    assert "the charge stands" in json.dumps(told)
    assert play.u3.client.get("/algorithm-results").text.count("/algorithm-results/") == 0


def test_an_owner_who_revokes_a_grant_or_closes_the_data_set_in_mid_run_keeps_the_result_back(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Blocks.release

    def revoke(_: Any) -> None:
        with play.house.hub.database.begin() as db:
            for each in db.scalars(select(Grant).where(Grant.role == "runner", Grant.granted_by == play.owner.id)):
                revoke_in(play.house.hub, db, play.owner.caller, each.id)

    def close(_: Any) -> None:
        assert play.owner.client.post("/datasets/people/close", data={"form_token": token_of(play.owner)}).status_code == 303

    for meanwhile, why in ((close, "was closed"), (revoke, "charge stands")):
        with monkeypatch.context() as patched:
            patched.setattr(Blocks, "release", lambda *given, act=meanwhile: (act(play), real(*given))[1])
            told = play.run()
        assert told["state"] == "failed"
        assert why in json.dumps(told)
        if meanwhile is close:
            assert play.owner.client.post("/datasets/people/open", data={"form_token": token_of(play.owner)}).status_code == 303
    assert play.u3.client.get("/algorithm-results").text.count("/algorithm-results/") == 0


@pytest.mark.skipif(bool(why_not()), reason="no bubblewrap")
def test_what_no_sandbox_has_is_said_before_anything_is_charged(play: Play) -> None:
    stella = ready(play, "native", {**NATIVE, "packages": ["nowhere_to_be_found"]})
    assert press(play.owner, "native", "approve").status_code == 303
    refused = press(stella, "native", "approve")  # nobody has seen it run
    assert refused.status_code == 409
    assert "made-up rows" in refused.text
    with play.house.hub.database.begin() as db:  # admitted on another machine, which had the package
        [row] = db.scalars(select(GuestReview)).all()
        row.found = {"trial": {"done": 5, "runs": 5}}
    assert press(stella, "native", "approve").status_code == 303
    told = play.run(algorithm="native")
    assert told["state"] == "failed"
    assert "no such package" in json.dumps(told)
    assert play.spent == "ε = 0"


def test_an_algorithm_that_asks_beyond_its_columns_runs_for_the_last_time(play: Play) -> None:
    ready(play, "a9", {"code": ASKS, "inputs": ["age"], "way": "ask", "seconds": 1})
    assert play.run(algorithm="a9")["state"] == "done"
    assert play.post("/algorithm-runs", {**ORDER, "algorithm": "a9"}).status_code == 403
    assert "does not declare" in page(play.owner, "a9")


def test_a_new_version_is_granted_and_approved_afresh(play: Play) -> None:
    body = {"name": "a1-2", "title": "A1", "service": "guests", "settings": {**A1, "blocks": 12}, "version_of": "a1"}
    made = play.provider.client.post("/api/v1/algorithms", json=body, headers=play.provider.bearer)
    assert made.status_code == 201, made.text
    assert (made.json()["package"], made.json()["version"]) == ("a1", 2)
    assert play.post("/algorithm-runs", {**ORDER, "algorithm": "a1-2"}).status_code in (403, 404)
    third = {**body, "name": "a1-3", "version_of": "a1-2", "settings": {**A1, "code": A1["code"].replace("min", "max")}}
    made = play.provider.client.post("/api/v1/algorithms", json=third, headers=play.provider.bearer)
    assert (made.json()["package"], made.json()["version"]) == ("a1", 3)
    let(play.provider, "a1-3", play.owner, actions=["algorithm.see"])
    assert "+ return [max" in page(play.owner, "a1-3").replace("&#34;", '"')
    wrong = {**body, "name": "a1-4", "version_of": "nowhere"}
    assert play.provider.client.post("/api/v1/algorithms", json=wrong, headers=play.provider.bearer).status_code == 404
    assert "version 3" in re.sub(r"<[^>]+>", "", play.provider.client.get("/algorithms/a1").text)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"proof": " "}, "declared"),
        ({"author": ""}, "declared"),
        ({"blocks": 10}, "not known"),
        ({"packages": ["numpy"]}, "not known"),
        ({"tests": "def test_("}, "never closed"),
        ({"way": "trust me"}, "way is"),
        ({"rows": ["a", "a"]}, "none twice"),
        ({"rows": ["a"], "names": None}, "one name for each"),
    ],
)
def test_settings_of_a_declared_mechanism_that_say_too_little_are_refused(play: Play, changed: dict[str, Any], says: str) -> None:
    settings = {name: each for name, each in {**DECLARED, **changed}.items() if each is not None}
    answer = register(play.provider, "b1", settings)
    assert answer.status_code == 422, answer.text
    assert says in answer.text


def test_a_table_leaves_as_a_table(play: Play) -> None:
    code = "def f(rows):\n    return [[0.5, 10], [0.25, 5]]"
    settings = {**A1, "code": code, "rows": ["old", "young"], "names": ["share", "n"], "low": [0, 0], "high": [1, 100]}
    ready(play, "shares", settings)
    told = play.run(algorithm="shares")
    found = play.get(f"/releases/{told['result']['guest']}").json()
    values = (found if "values" in found else json.loads(found["body"]))["values"]
    assert list(values) == ["old: share", "old: n", "young: share", "young: n"]


def test_the_list_of_reviews_is_for_those_who_may_admit(play: Play) -> None:
    ready(play, "total", DECLARED)
    listed = play.owner.client.get("/algorithm-reviews").text
    assert "/algorithm-reviews/total/people" in listed
    assert "/algorithm-reviews/total/others" in listed
    assert play.u3.client.get("/algorithm-reviews").status_code == 403
    assert play.u3.client.get("/algorithm-reviews/total/people").status_code == 403
    stranger = play.house.person("owner", email="oskar@example.org", name="Oskar")
    assert stranger.client.get("/algorithm-reviews/total/people").status_code == 404
    assert replace(play, owner=stranger).owner.client.get("/algorithm-reviews").status_code == 200


def test_the_owner_is_led_to_one_grant_with_all_that_a_run_needs(play: Play) -> None:
    made = register(play.provider, "total", DECLARED)
    assert made.status_code == 201, made.text
    let(play.provider, "total", play.owner, actions=["algorithm.see"])
    review = play.owner.client.get("/algorithm-reviews/total/people").text
    link = re.search(r'href="(/datasets/people/access/new\?[^"]+)"', review)
    assert link is not None
    form = html.unescape(play.owner.client.get(html.unescape(link[1])).text)
    ticked = set(re.findall(r'name="(actions|columns)" value="([a-z.]+)" checked', form))
    assert ticked == {("actions", "algorithm.run"), ("actions", "release.download"), ("columns", "age")}
    assert re.search(r'name="algorithms"[^>]* value="total"', form)
    sent = {"form_token": token_of(play.owner), "role": "analyst", "people": "zoe@example.org", "algorithms": "total"}
    sent |= {"columns": "age", "actions": "algorithm.run"}
    assert play.owner.client.post("/datasets/people/access", data=sent).status_code == 303
    with play.house.hub.database.reading() as db:
        [kept] = [each for each in db.scalars(select(Grant)) if each.attributes.get("people") == ["zoe@example.org"]]
    assert (kept.rules["actions"], kept.rules["columns"], len(kept.rules["algorithms"])) == (["algorithm.run"], ["age"], 1)
