"""A grant's share of the budget lives as long as the grant and leaves nothing behind: alone, beside others, and in a race."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from cloister.hub.generation import bump
from cloister.hub.records.access import Grant, Project, ProjectMember
from cloister.hub.services.asking import answering
from cloister.privacy import PureDP
from tests.hub.asking.conftest import COUNT, MAY, Stage
from tests.hub.house import Visitor

_NUMBERS = count()


@pytest.fixture
def rea(stage: Stage) -> Visitor:
    return stage.house.person("analyst", email="rea@example.org", name="Rea")


def given(stage: Stage, who: Visitor, share: str, **rules: Any) -> str:
    return stage.house.grant(stage.people, who, by=stage.owner, actions=MAY, share={"epsilon": share}, **rules)


def revoked(stage: Stage, *grants: str) -> None:
    with stage.hub.database.begin() as db:
        for each in grants:
            db.get_one(Grant, each).revoked = stage.hub.now()
        bump(db)


def asks(stage: Stage, who: Visitor, spend: str, **more: Any) -> Any:
    """A question that nobody has asked yet."""
    return stage.post("/questions", {"sql": f"{COUNT} WHERE pay > {next(_NUMBERS) % 199 / 2}", "spend": spend, **more}, who)


def drawn(stage: Stage, who: Visitor) -> Any:
    return stage.hub.ledger.spent_by("people", who.caller.email)


def test_a_share_becomes_no_allotment(stage: Stage, rea: Visitor):
    given(stage, rea, "0.3")
    assert asks(stage, rea, "0.2").status_code == 201
    assert asks(stage, rea, "0.2").status_code == 403
    assert stage.hub.ledger.allotment("people", rea.caller.email) is None


@pytest.mark.parametrize("ends", ["revoked", "expired"])
def test_nothing_of_it_outlives_the_grant(stage: Stage, rea: Visitor, ends: str):
    first = given(stage, rea, "0.2", **({"until": "2026-03-03"} if ends == "expired" else {}))
    assert asks(stage, rea, "0.2").status_code == 201
    if ends == "expired":
        stage.house.clock.move(days=3)
    else:
        revoked(stage, first)
    assert asks(stage, rea, "0.1").status_code != 201, "nothing lets her ask"
    given(stage, rea, "0.5")
    assert asks(stage, rea, "0.3").status_code == 201, "the old share stands in nobody's way"
    refused = asks(stage, rea, "0.1")
    assert refused.status_code == 403, "what was spent under the old one stays counted"
    assert "share of the budget under this grant is used up: ε = 0.5" in refused.json()["detail"]
    assert drawn(stage, rea) == PureDP("0.5")


def test_an_attempt_that_died_is_made_once_more_within_a_share_that_it_filled(
    stage: Stage, rea: Visitor, monkeypatch: pytest.MonkeyPatch
):
    given(stage, rea, "0.2")
    asked = {"sql": f"{COUNT} WHERE pay > 3", "spend": "0.2"}

    def dies(*_: Any) -> Any:
        raise RuntimeError("the process was killed here")

    with monkeypatch.context() as broken:
        broken.setattr("cloister.session.execution.buying.measured", dies)
        assert stage.post("/questions", asked, rea).status_code >= 500
    assert drawn(stage, rea) == PureDP("0.2"), "it was charged"
    assert asks(stage, rea, "0.2").status_code == 403, "the share is full for anything else"
    assert stage.post("/questions", {**asked, "spend": "0.19"}, rea).status_code == 403, "and for another price"
    assert stage.post("/questions", asked, rea).status_code == 201
    assert drawn(stage, rea) == PureDP("0.2"), "under the same charge"
    assert stage.hub.ledger.verify() is True


def test_a_smaller_share_given_anew_gives_nothing_more(stage: Stage, rea: Visitor):
    first = given(stage, rea, "0.4")
    assert asks(stage, rea, "0.3").status_code == 201
    revoked(stage, first)
    given(stage, rea, "0.2")
    assert asks(stage, rea, "0.05").status_code == 403
    assert drawn(stage, rea) == PureDP("0.3")


def test_without_a_share_the_budget_alone_bounds(stage: Stage, rea: Visitor):
    first = given(stage, rea, "0.2")
    assert asks(stage, rea, "0.2").status_code == 201
    revoked(stage, first)
    stage.house.grant(stage.people, rea, by=stage.owner, actions=MAY)
    assert asks(stage, rea, "0.6").status_code == 201


def test_of_two_shares_the_larger_that_stands_holds_and_they_do_not_add_up(stage: Stage, rea: Visitor):
    given(stage, rea, "0.2")
    large = given(stage, rea, "0.4")
    assert [asks(stage, rea, "0.2").status_code for _ in range(3)] == [201, 201, 403]
    revoked(stage, large)
    assert asks(stage, rea, "0.01").status_code == 403
    assert drawn(stage, rea) == PureDP("0.4")


def test_of_two_alike_the_larger_is_told_and_kept_to_at_once(stage: Stage, rea: Visitor):
    given(stage, rea, "0.2")
    given(stage, rea, "0.4")
    with ThreadPoolExecutor(8) as at_once:
        answers = list(at_once.map(lambda _: asks(stage, rea, "0.1").status_code, range(8)))
    assert answers.count(201) == 4
    left = stage.post("/questions/explain", {"sql": COUNT, "spend": "0.1"}, rea).json()["left"]
    mine = [each for each in left if each["of_share"]]
    assert [each["before"] for each in mine] == ["ε = 0"], "of the larger"


def test_what_the_owner_set_by_hand_stays_when_the_grant_ends(stage: Stage, rea: Visitor):
    stage.hub.ledger.allot("people", rea.caller.email, PureDP("0.3"), who="olga@example.org")
    first = given(stage, rea, "0.5")
    assert asks(stage, rea, "0.4").status_code == 409, "the smaller of the two holds"
    revoked(stage, first)
    stage.house.grant(stage.people, rea, by=stage.owner, actions=MAY)
    assert asks(stage, rea, "0.4").status_code == 409
    assert asks(stage, rea, "0.3").status_code == 201
    assert stage.hub.ledger.allotment("people", rea.caller.email) == (PureDP("0.3"), PureDP(0))


def test_a_project_draws_one_share_for_all_its_members(stage: Stage, rea: Visitor):
    with stage.hub.database.begin() as db:
        db.add(Project(id="study", name="study", title="The study", lead=rea.id, created=stage.hub.now()))
        db.flush()
        db.add_all([ProjectMember(project="study", person=each.id, joined=stage.hub.now()) for each in (rea, stage.ana)])
        rules = {"actions": sorted(MAY), "share": {"epsilon": "0.3"}}
        members = {"projects": ["study"], "people": [rea.id, stage.ana.id]}
        about = {"kind": "data-set", "object": stage.people.id, "role": "member", "attributes": members, "rules": rules}
        db.add(Grant(id="to-study", granted_by=stage.owner.id, created=stage.hub.now(), **about))
        bump(db)
    assert asks(stage, rea, "0.2", project="study").status_code == 201
    assert asks(stage, stage.ana, "0.2", project="study").status_code == 403
    assert asks(stage, stage.ana, "0.1", project="study").status_code == 201
    assert stage.hub.ledger.allotment("people", "project study") is None


def test_an_answer_that_was_paid_under_a_larger_share_is_withheld(stage: Stage, rea: Visitor, monkeypatch: Any):
    """Between its charge and its way out the grant is revoked, and one with a smaller share is given."""
    first, real = given(stage, rea, "0.4"), answering.keep
    later: list[str] = []

    def meanwhile(*how: Any) -> Any:
        revoked(stage, first)
        later.append(given(stage, rea, "0.1"))
        return real(*how)

    monkeypatch.setattr(answering, "keep", meanwhile)
    answer = asks(stage, rea, "0.3")
    assert (answer.status_code, answer.json()["title"]) == (403, "The answer was not released")
    assert answer.json()["rule"] == f"grant:{later[0]}"
    assert "your share of the budget under this grant is used up: ε = 0.1" in answer.json()["detail"]
    assert drawn(stage, rea) == PureDP("0.3"), "charge first, fail closed"
    monkeypatch.setattr(answering, "keep", real)
    given(stage, rea, "0.4")
    assert asks(stage, rea, "0.1").status_code == 201


def test_an_answer_that_fits_the_share_of_now_leaves(stage: Stage, rea: Visitor, monkeypatch: Any):
    first, real = given(stage, rea, "0.4"), answering.keep

    def meanwhile(*how: Any) -> Any:
        revoked(stage, first)
        given(stage, rea, "0.1")
        given(stage, rea, "0.3")
        return real(*how)

    monkeypatch.setattr(answering, "keep", meanwhile)
    assert asks(stage, rea, "0.3").status_code == 201, "another of her grants allows it"


def test_24_at_once_never_pass_any_share_while_the_grant_is_revoked_and_given_anew(stage: Stage, rea: Visitor):
    standing = [given(stage, rea, "0.3")]

    def hers(number: int) -> list[int]:
        return [
            int(
                stage.post(
                    "/questions", {"sql": f"{COUNT} WHERE age > {18 + (number + each) % 70}", "spend": spend}, rea
                ).status_code
            )
            for each, spend in enumerate(("0.02", "0.03", "0.05"))
        ]

    with ThreadPoolExecutor(24) as at_once:
        work = [at_once.submit(hers, 3 * number) for number in range(24)]
        for share in ("0.2", "0.3", "0.1", "0.3", "0.2", "0.3"):
            revoked(stage, *standing)
            standing = [given(stage, rea, share)]
            next((each for each in work if each.running()), work[-1]).result()
        answers = [code for each in work for code in each.result()]
    assert set(answers) <= {201, 400, 403, 404, 409}
    assert drawn(stage, rea) <= PureDP("0.3")
    assert str(drawn(stage, rea)) == stage.spent
    revoked(stage, *standing)
    before = drawn(stage, rea)
    given(stage, rea, "0.01")
    with ThreadPoolExecutor(24) as at_once:
        late = list(at_once.map(lambda _: asks(stage, rea, "0.02").status_code, range(24)))
    assert 201 not in late
    assert drawn(stage, rea) == before
