"""Joint surveys: the hub leads, a helper in a folder of its own calls it, respondents' devices send shares."""

from __future__ import annotations

import base64
import html
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from sqlalchemy import text, update

from cloister.cli import cli
from cloister.crypto import fingerprint
from cloister.hub.records.accounts import Person
from cloister.hub.records.surveys import JointReportRow, JointTicket
from cloister.noise import Random
from cloister.together.messages import RoundRefused
from cloister.together.prio3.helper import Helper, HelperCalls
from cloister.together.prio3.joint_survey import JointSurvey, list_of
from cloister.together.prio3.servers import noisy_share
from tests.hub.house import House, served

WAYS = {"text": "How do you come to work?", "kind": "choice", "epsilon": "300", "options": ["walk", "bus", "car"]}
SMOKES = {"text": "Do you smoke?", "kind": "yes-no", "epsilon": "300"}
AGE = {"text": "How old are you?", "kind": "number", "epsilon": "30000", "low": 18, "high": 100}
ANSWERS = [["bus", "yes", 40], ["walk", "no", 18], ["bus", "no", 100], ["car", "yes", 50]]


class Joint:
    """A house, a researcher, a survey, and its helper."""

    def __init__(self, house: House, folder: Path) -> None:
        self.house, self.folder, self.ana = house, folder, house.person("analyst")
        house.hub.settings = replace(house.hub.settings, survey_cap="100000")

    def ask(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        answer = self.house.client().request(method, f"/api/v1/joint-surveys{path}", json=body, headers=self.ana.bearer)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def made(self, *questions: Any, **more: Any) -> str:
        return str(self.ask("POST", "", {"title": "Ways", "questions": list(questions), **more}, status=201)["id"])

    def call(self, number: str, secret: str, body: Any, *, status: int = 200) -> Any:
        path, headers = f"/api/v1/joint-surveys/{number}/helper", {"Helper-Key": secret, "Content-Type": "application/json"}
        answer = self.house.client().post(path, content=json.dumps(body), headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    def joined(self, *questions: Any, **more: Any) -> tuple[str, str, Helper]:
        """An open survey whose helper has joined: its id, the secret, the helper."""
        number = self.made(*questions, **more)
        secret = self.ask("POST", f"/{number}/link")["secret"]
        survey = JointSurvey.from_dict(self.call(number, secret, {})["survey"])
        helper = Helper.made(self.folder / number, survey, link=f"#{secret}", name="Registry")
        self.call(number, secret, {"name": "Registry", "key": helper.public.hex()})
        self.ask("POST", f"/{number}/open")
        return number, secret, helper

    def form(self, number: str) -> tuple[JointSurvey, bytes]:
        told = self.house.client().get(f"/api/v1/joint-surveys/{number}/form").json()
        survey = JointSurvey.from_dict(told["survey"])
        assert survey.digest == told["digest"]
        return survey, bytes.fromhex(told["helper"])

    def answered(self, number: str, answers: Any, *, seed: int = 0, **more: Any) -> Any:
        survey, key = self.form(number)
        report = survey.report(answers, key, random=Random.deterministic(seed)).to_dict()
        return self.send(number, {**report, **more})

    def send(self, number: str, body: Any) -> Any:
        return self.house.client().post(f"/api/v1/joint-surveys/{number}/reports", json=body)

    def turn(self, number: str, secret: str, helper: Helper, answer: Any) -> Any:
        """What the helper says to what it is told."""
        told = self.call(number, secret, answer)
        if told.get("reports"):
            return {"said": helper.said(base64.b64decode(told["check"]), told["reports"])}
        if told.get("list"):
            return {"shares": [each.hex() for each in helper.share(told["list"])], "list": told["list"]}
        return {"done": told["state"]}


@pytest.fixture
def joint(house: House, tmp_path: Path) -> Joint:
    return Joint(house, tmp_path)


def test_two_servers_add_up_what_neither_reads(joint: Joint) -> None:
    number, secret, helper = joint.joined(WAYS, SMOKES, AGE)
    for seed, answers in enumerate(ANSWERS):
        assert joint.answered(number, answers, seed=seed).status_code == 201
    said = joint.turn(number, secret, helper, {})
    joint.ask("POST", f"/{number}/close")
    shares = joint.turn(number, secret, helper, said)
    assert joint.turn(number, secret, helper, shares) == {"done": "done"}
    whole = joint.ask("GET", f"/{number}")
    assert whole["reports"] == {"new": 0, "counted": 4, "dropped": 0}
    ways, smokes, age = whole["results"]
    assert ways["counts"] == {"walk": 1, "bus": 2, "car": 1}
    assert smokes["counts"] == {"no": 2, "yes": 2}
    assert age["mean"] == 52
    assert age["margin"] < 1
    with joint.house.hub.database.reading() as db:
        assert {each.body for each in db.query(JointReportRow)} == {""}, "shares are deleted once they are added"
    assert helper.ended
    helper.close()


def test_the_page_with_the_helpers_link_is_loaded_again_and_the_link_holds(joint: Joint) -> None:
    """A browser sends the form again for that: the link that was on its way to the helper was dead."""
    number = joint.made(SMOKES)
    [once, *_] = re.findall(r'name="form_once" value="([^"]+)"', joint.ana.client.get(f"/joint-surveys/{number}").text)
    form = {"form_token": joint.ana.csrf()["X-CSRF-Token"], "form_once": once}
    first, again = (joint.ana.client.post(f"/joint-surveys/{number}/link", data=form).text for _ in range(2))
    [secret] = re.findall(rf"/joint-surveys/{number}#([\w-]+)", first)
    assert again == first
    assert joint.call(number, secret, {})["state"] == "joining"


def test_the_page_that_waits_for_a_helper_is_loaded_again_when_one_joins(joint: Joint) -> None:
    """It went on saying that nobody had joined, and showed no fingerprint to compare."""
    number = joint.made(SMOKES)
    secret, page, ana = joint.ask("POST", f"/{number}/link")["secret"], f"/joint-surveys/{number}", joint.ana.client

    def address() -> str:
        return html.unescape(re.findall(r'data-poll="([^"]+)"', ana.get(page).text)[0])

    alone = address()
    assert "X-Go" not in ana.get(alone).headers
    helper = Helper.made(
        joint.folder / "helper", JointSurvey.from_dict(joint.call(number, secret, {})["survey"]), link="#", name="R"
    )
    joint.call(number, secret, {"name": "R", "key": helper.public.hex()})
    helper.close()
    assert ana.get(alone).headers["X-Go"] == page
    joined = address()
    assert "X-Go" not in ana.get(joined).headers
    joint.ask("POST", f"/{number}/open")
    assert ana.get(joined).headers["X-Go"] == page
    assert "X-Go" not in ana.get(address()).headers


def test_what_is_out_of_order_is_refused_and_changes_nothing(joint: Joint) -> None:
    number = joint.made(SMOKES)
    joint.ask("POST", f"/{number}/open", status=409)
    secret = joint.ask("POST", f"/{number}/link")["secret"]
    joint.ask("POST", f"/{number}/open", status=409)  # nobody has joined
    newer = joint.ask("POST", f"/{number}/link")["secret"]
    for wrong in (secret, "", "0" * 43):
        joint.call(number, wrong, {}, status=404)
    assert joint.call(number, newer, {})["state"] == "joining"
    assert joint.send(number, {}).status_code == 404  # not open yet
    for wrong in ({"name": "", "key": "00"}, {"name": "R", "key": "zz"}, {"name": "R", "key": "04" + "11" * 64}):
        joint.call(number, newer, wrong, status=422)
    helper = Helper.made(joint.folder / "a", JointSurvey.from_dict(joint.call(number, newer, {})["survey"]), link="x", name="R")
    joined = {"name": "R", "key": helper.public.hex()}
    joint.call(number, newer, joined)
    joint.call(number, newer, joined)  # the answer to the first one was lost
    joint.call(number, newer, {**joined, "name": "Mallory"}, status=409)
    assert joint.ask("POST", f"/{number}/open")["fingerprint"] == fingerprint(helper.public)
    joint.ask("POST", f"/{number}/link", status=409)
    joint.ask("DELETE", f"/{number}", status=409)
    joint.call(number, newer, {"shares": ["00"], "list": ""})  # it is open: no sum is opened
    assert joint.ask("GET", f"/{number}")["state"] == "open"
    stranger = joint.house.person("analyst")
    assert joint.house.client().get(f"/api/v1/joint-surveys/{number}", headers=stranger.bearer).status_code == 404
    helper.close()


def test_a_helper_that_is_not_the_one_who_was_asked_is_let_go(joint: Joint) -> None:
    """Its fingerprint is not the one that was read by phone: a new link makes its own void, and the survey is not lost."""
    number = joint.made(SMOKES)
    wrong = joint.ask("POST", f"/{number}/link")["secret"]
    survey = JointSurvey.from_dict(joint.call(number, wrong, {})["survey"])
    mallory, registry = (Helper.made(joint.folder / name, survey, link="x", name=name) for name in ("Mallory", "Registry"))
    joint.call(number, wrong, {"name": "Mallory", "key": mallory.public.hex()})
    seen = joint.ana.client.get(f"/joint-surveys/{number}").text
    assert all(each in seen for each in (fingerprint(mallory.public), "Make a new link", "Discard the draft"))
    right = joint.ask("POST", f"/{number}/link")["secret"]
    joint.call(number, wrong, {}, status=404)
    joint.ask("POST", f"/{number}/open", status=409)
    joint.call(number, right, {"name": "Registry", "key": registry.public.hex()})
    token = {"form_token": joint.ana.csrf()["X-CSRF-Token"]}
    stale = joint.ana.client.post(f"/joint-surveys/{number}/open", data={**token, "fingerprint": fingerprint(mallory.public)})
    assert (stale.status_code, "another helper has joined since" in stale.text) == (409, True)
    assert joint.ask("POST", f"/{number}/open")["fingerprint"] == fingerprint(registry.public)
    mallory.close(), registry.close()
    dropped = joint.made(SMOKES)
    joint.ask("POST", f"/{dropped}/link")
    joint.ask("DELETE", f"/{dropped}", status=204)
    joint.ask("GET", f"/{dropped}", status=404)


def test_a_form_that_is_sent_twice_changes_a_draft_once(joint: Joint) -> None:
    """A second click on Add asks nothing twice, which respondents would pay for; one on Remove takes out no other question."""
    number, token = joint.made(SMOKES), {"form_token": joint.ana.csrf()["X-CSRF-Token"]}

    def post(path: str, **form: str) -> tuple[int, list[str]]:
        answer = joint.ana.client.post(f"/joint-surveys/{number}/questions{path}", data={**token, **form})
        return answer.status_code, [each["text"] for each in joint.ask("GET", f"/{number}")["questions"]]

    drinks = {"text": 'Do you drink "a lot" & often?', "kind": "yes-no", "epsilon": "1"}
    assert post("", **drinks) == (303, [SMOKES["text"], drinks["text"]])
    assert post("", **drinks) == (422, [SMOKES["text"], drinks["text"]])
    assert post("", **{**drinks, "text": "DO YOU SMOKE? "}) == (422, [SMOKES["text"], drinks["text"]])
    page = joint.ana.client.get(f"/joint-surveys/{number}").text
    first = html.unescape(re.findall(r'name="text" value="([^"]*)"', page)[0])
    assert first == SMOKES["text"]
    assert post("/remove", text=first) == (303, [drinks["text"]])
    assert post("/remove", text=first) == (404, [drinks["text"]])
    assert post("/remove", text=drinks["text"]) == (303, [])


def test_a_number_is_read_as_people_type_it(joint: Joint) -> None:
    number, token = joint.made(SMOKES), {"form_token": joint.ana.csrf()["X-CSRF-Token"]}
    pay = {"text": "Profit or loss?", "kind": "number", "epsilon": "1", "low": "-1,000", "high": "10 000"}
    assert joint.ana.client.post(f"/joint-surveys/{number}/questions", data={**token, **pay}).status_code == 303
    assert joint.ask("GET", f"/{number}")["questions"][-1] == {**pay, "low": -1000, "high": 10_000}
    wrong = joint.ana.client.post(f"/joint-surveys/{number}/questions", data={**token, **pay, "text": "Pay?", "low": "1,5"})
    assert wrong.status_code == 422


def test_a_report_counts_once_and_one_that_lies_is_dropped(joint: Joint) -> None:
    number, secret, helper = joint.joined(SMOKES)
    survey, key = joint.form(number)
    report = survey.report(["yes"], key).to_dict()
    assert joint.send(number, report).json() == {"received": True}
    assert joint.send(number, report).json() == {"received": True, "again": True}
    lying = survey.report(["yes"], key).to_dict()
    lying["shares"] = [survey.report(["no"], key).to_dict()["shares"][0]]
    assert joint.send(number, lying).status_code == 201  # it can't be told from another one by this hub alone
    for wrong in (
        {},
        {"nonce": 1},
        {**report, "nonce": "00"},
        {**report, "shares": []},
        {**report, "sealed": "00"},
        {**report, "shares": ["ff" * 100]},
    ):
        assert joint.send(number, wrong).status_code == 400, wrong
    said = joint.turn(number, secret, helper, {})
    joint.call(number, secret, {"said": {"no such": [], **said["said"]}})
    joint.call(number, secret, said)  # once more: nothing is added twice
    assert joint.ask("GET", f"/{number}")["reports"] == {"new": 0, "counted": 1, "dropped": 1}
    joint.ask("POST", f"/{number}/close")
    assert joint.send(number, survey.report(["yes"], key).to_dict()).status_code == 409
    assert joint.send(number, report).json() == {"received": True, "again": True}, "the first answer may have been lost"
    for wrong in (17, "x", "00" * 16):
        assert joint.send(number, {**report, "nonce": wrong}).status_code == 409
    other = joint.call(number, secret, {})["list"]
    joint.call(number, secret, {"shares": [], "list": other}, status=422)
    joint.call(number, secret, {"shares": ["00"], "list": "0" * 64})  # of another list: nothing is opened
    assert joint.ask("GET", f"/{number}")["state"] == "closed"
    joint.turn(number, secret, helper, joint.turn(number, secret, helper, {}))
    assert joint.ask("GET", f"/{number}")["results"][0]["counts"] == {"no": 0, "yes": 1}
    assert joint.call(number, secret, {"shares": ["00"], "list": other})["state"] == "done"
    helper.close()


def test_a_closed_survey_whose_helper_is_lost_is_discarded(joint: Joint) -> None:
    """Nothing but that helper could read what lies here: the shares go, and nobody waits for sums."""
    number, secret, helper = joint.joined(SMOKES, invited=True)
    (ticket,) = joint.ask("POST", f"/{number}/invitations", {"count": 1}, status=201)["tokens"]
    assert joint.answered(number, ["yes"], ticket=ticket).status_code == 201
    joint.ask("DELETE", f"/{number}", status=409)  # it is open: people answer
    joint.ask("POST", f"/{number}/close")
    home, token = f"/joint-surveys/{number}", {"form_token": joint.ana.csrf()["X-CSRF-Token"]}
    assert "Discard the survey" in joint.ana.client.get(home).text
    assert joint.ana.client.post(f"{home}/drop", data=token).status_code == 303
    joint.ask("GET", f"/{number}", status=404)
    joint.call(number, secret, {}, status=404)
    with joint.house.hub.database.reading() as db:
        assert (db.query(JointReportRow).count(), db.query(JointTicket).count()) == (0, 0)
    helper.close()


def test_a_joint_survey_takes_nothing_while_its_author_is_blocked(joint: Joint) -> None:
    number, _, helper = joint.joined(SMOKES)
    for blocked, status in ((True, 409), (False, 201)):
        with joint.house.hub.database.begin() as db:
            db.execute(update(Person).values(blocked=blocked))
        assert ("This survey is closed" in joint.house.client().get(f"/j/{number}").text) is blocked
        assert joint.answered(number, ["yes"]).status_code == status
    helper.close()


def test_a_helper_that_has_ended_lets_no_answer_be_dropped(joint: Joint) -> None:
    """The hub's database was put back to when the survey was open: the helper says so, and stops."""
    number, secret, helper = joint.joined(SMOKES)
    joint.answered(number, ["yes"])
    helper.share(list_of([]))
    with pytest.raises(RoundRefused, match="a backup was put back"):
        joint.turn(number, secret, helper, {})
    assert joint.ask("GET", f"/{number}")["reports"] == {"new": 1, "counted": 0, "dropped": 0}
    helper.close()


def test_an_invitation_is_good_for_one_report(joint: Joint) -> None:
    number, _, helper = joint.joined(SMOKES, invited=True)
    [token] = joint.ask("POST", f"/{number}/invitations", {"count": 1}, status=201)["tokens"]
    assert joint.answered(number, ["yes"], seed=1).status_code == 403
    assert joint.answered(number, ["yes"], seed=2, ticket=token).status_code == 201
    assert joint.answered(number, ["no"], seed=3, ticket=token).status_code == 403
    helper.close()


def test_the_institutions_cap_holds(joint: Joint) -> None:
    joint.house.hub.settings = replace(joint.house.hub.settings, survey_cap="2")
    told = {"title": "Ways", "questions": [{**SMOKES, "epsilon": "1"}, {**SMOKES, "epsilon": "1.1"}]}
    answer = joint.house.client().post("/api/v1/joint-surveys", json=told, headers=joint.ana.bearer)
    assert answer.status_code == 422
    assert "ε = 2.1" in answer.text


def test_a_helper_as_a_process(joint: Joint) -> None:
    """`cloister helper` over HTTP: joined, killed in the middle, run to the end."""
    with served(joint.house.hub) as address:
        number = joint.made(WAYS, SMOKES)
        link = f"{address}/joint-surveys/{number}#{joint.ask('POST', f'/{number}/link')['secret']}"
        folder = str(joint.folder / "helper")

        def helper(*words: str) -> list[str]:
            return [sys.executable, "-m", "cloister", "helper", *words, "--folder", folder]

        def run(*words: str) -> str:
            said = subprocess.run(helper(*words), capture_output=True, text=True, check=False, timeout=60)
            return said.stdout if said.returncode == 0 else said.stderr

        said = run("join", link, "--name", "Cancer Registry", "--yes")
        assert "How do you come to work? (walk, bus, car): ε = 300" in said
        assert "ε = 600" in said, said
        print_ = joint.ask("GET", f"/{number}")["fingerprint"]
        assert print_ in said
        assert print_ in run("show")
        second = [sys.executable, "-m", "cloister", "helper", "join", link, "--name", "B", "--yes", "--folder", f"{folder}2"]
        said = subprocess.run(second, capture_output=True, text=True, check=False, timeout=60).stderr
        assert "another one has joined this survey" in said
        assert "tries again" not in said
        assert not list(Path(f"{folder}2").iterdir()), "the folder is free for another link"
        joint.ask("POST", f"/{number}/open")
        assert "helper run --folder" in run("join", link, "--name", "Cancer Registry", "--yes")
        first = subprocess.Popen(helper("run"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for seed in range(6):
            joint.answered(number, ["bus", "yes"], seed=seed)
        while not joint.ask("GET", f"/{number}")["reports"]["counted"]:
            assert first.poll() is None
            time.sleep(0.05)
        assert "runs the one in helper already" in run("run")
        first.kill()
        first.communicate()
        joint.answered(number, ["car", "no"], seed=7)
        joint.ask("POST", f"/{number}/close")
        assert (
            "the sums of 7 reports are opened"
            in subprocess.run(helper("run"), capture_output=True, text=True, check=True, timeout=60).stderr
        )
    ways, smokes = joint.ask("GET", f"/{number}")["results"]
    assert ways["counts"] == {"walk": 0, "bus": 6, "car": 1}
    assert smokes["counts"] == {"no": 1, "yes": 6}


def test_a_helper_that_sends_wrong_shares_meets_one_noise(joint: Joint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each refusal tells whether the hub's noisy sum lies within bounds: were the noise drawn anew each time, many would tell the
    sum without noise."""
    drawn: list[str] = []
    for name in ("cloister.together.prio3.servers", "cloister.together.prio3.helper"):
        monkeypatch.setattr(f"{name}.noisy_share", lambda *given, name=name: drawn.append(name) or noisy_share(*given))
    number, secret, helper = joint.joined(SMOKES, {**SMOKES, "text": "Do you drink?"})
    joint.answered(number, ["yes", "no"])
    said = joint.turn(number, secret, helper, {})
    joint.ask("POST", f"/{number}/close")
    shares = joint.turn(number, secret, helper, said)
    wrong = {**shares, "shares": [shares["shares"][0], "00"]}
    for each in (wrong, wrong, {**shares, "shares": ["00" * 8] * 2}, shares):
        joint.call(number, secret, each, status=200 if each is shares else 400)
    assert joint.ask("GET", f"/{number}")["state"] == "done"
    assert sorted(drawn) == ["cloister.together.prio3.helper"] * 2 + ["cloister.together.prio3.servers"] * 2
    helper.close()


def test_a_damaged_report_holds_no_other_back(joint: Joint) -> None:
    number, secret, helper = joint.joined(SMOKES)
    for seed in range(5):
        joint.answered(number, ["yes"], seed=seed)
    with joint.house.hub.database.begin() as db:
        for row, wrong in zip(
            db.query(JointReportRow).order_by(JointReportRow.nonce), ('{"a": [1,', "17", "{}", ""), strict=False
        ):
            row.body = wrong
    said = joint.turn(number, secret, helper, {})
    joint.call(number, secret, {"said": {**said["said"], "\x00": [], "\ud800": [], "zz" * 16: []}})
    assert joint.ask("GET", f"/{number}")["reports"] == {"new": 0, "counted": 1, "dropped": 4}
    helper.close()


def test_sums_that_are_damaged_stop_their_own_survey_alone(joint: Joint) -> None:
    """At each step in which they are read: a refusal that names the damage, and all goes on once they are mended."""
    (other, _, idle), (number, secret, helper) = joint.joined(SMOKES), joint.joined(SMOKES)
    joint.answered(number, ["yes"])
    said = joint.turn(number, secret, helper, {})
    wrong = ("x", "17", "{}", "[]", '[["a"]]', '{"own": [17]}', '{"reports": 1, "questions": [{"sums": [1], "margin": "x"}]}')

    def damaged(column: str, body: Any) -> None:
        """Each wrong form of the column is named to the helper, or to the author where the sums are opened."""
        with joint.house.hub.database.begin() as db:
            before = db.execute(text(f"SELECT {column} FROM joint_survey WHERE id = :id"), {"id": number}).scalar_one()
        for each in (*wrong, before):
            with joint.house.hub.database.begin() as db:
                db.execute(text(f"UPDATE joint_survey SET {column} = :to WHERE id = :id"), {"to": each, "id": number})
            assert joint.ask("GET", f"/{other}")["state"] == "open"
            if each is not before:
                called = (
                    joint.call(number, secret, body, status=409)
                    if body is not None
                    else joint.ask("GET", f"/{number}", status=409)
                )
                assert called["title"] == "A stored row can't be read"
                assert joint.ana.client.get(f"/joint-surveys/{number}").status_code == (409 if body is None else 200)

    damaged("sums", said)
    said = joint.turn(number, secret, helper, said)
    joint.ask("POST", f"/{number}/close")
    damaged("sums", {})
    shares = joint.turn(number, secret, helper, {})
    damaged("result", shares)
    assert joint.turn(number, secret, helper, shares) == {"done": "done"}
    damaged("result", None)
    assert joint.ask("GET", f"/{number}")["results"][0]["counts"] == {"no": 0, "yes": 1}
    idle.close(), helper.close()


def test_the_list_and_what_is_damaged_in_it(joint: Joint) -> None:
    draft, (number, _, helper) = joint.made(SMOKES), joint.joined(SMOKES)
    browser, ways = joint.ana.client, (f"/joint-surveys/{number}", f"/j/{number}", f"/api/v1/joint-surveys/{number}/form")
    assert all(each in browser.get("/joint-surveys").text for each in (draft, number, "Registry"))
    with joint.house.hub.database.begin() as db:
        db.execute(text("UPDATE joint_survey SET helper = '{}' WHERE id = :id"), {"id": number})
    assert draft in browser.get("/joint-surveys").text
    assert [browser.get(each).status_code for each in ways] == [409] * 3
    helper.close()


def test_what_would_stop_a_survey_later_is_refused_at_once(joint: Joint) -> None:
    for epsilon in ("1e-300", "1e-60", "1\u2028"):
        joint.ask("POST", "", {"title": "Ways", "questions": [{**SMOKES, "epsilon": epsilon}]}, status=422)
    number, _, helper = joint.joined(SMOKES, invited=True)
    assert joint.answered(number, ["yes"], ticket="\x00").status_code == 403
    body = json.dumps({**helper.survey.report(["yes"], helper.public).to_dict(), "ticket": "\ud800"})
    address, headers = f"/api/v1/joint-surveys/{number}/reports", {"Content-Type": "application/json"}
    assert joint.house.client().post(address, content=body, headers=headers).status_code == 403
    helper.close()
    asked, unasked = joint.made(SMOKES), joint.made(SMOKES)
    secret = joint.ask("POST", f"/{asked}/link")["secret"]
    joint.call(asked, secret, {"name": "R", "key": helper.public.hex()})
    joint.house.hub.settings = replace(joint.house.hub.settings, survey_cap="2")
    joint.ask("POST", f"/{asked}/open", status=422)
    joint.ask("POST", f"/{unasked}/link", status=422)


def test_a_gateway_that_gives_up_does_not_cost_the_helper_its_key(joint: Joint, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub took the key, and a gateway in between answered 504 in JSON: without the key its survey could never be counted."""
    with served(joint.house.hub) as address:
        number = joint.made(SMOKES)
        link, folder = f"{address}/joint-surveys/{number}#{joint.ask('POST', f'/{number}/link')['secret']}", joint.folder / "h"
        sent = httpx.Client.stream

        @contextmanager
        def late(self: httpx.Client, *given: Any, json: Any, **how: Any) -> Iterator[httpx.Response]:
            with sent(self, *given, json=json, **how) as found:
                yield httpx.Response(504, stream=httpx.ByteStream(b'{"message": "too late"}')) if json else found

        monkeypatch.setattr(httpx.Client, "stream", late)
        said = CliRunner().invoke(cli, ["helper", "join", link, "--name", "Registry", "--yes", "--folder", str(folder)])
        assert "tries again" in str(said.exception), said.output
    with closing(Helper(folder)) as helper:
        assert joint.ask("GET", f"/{number}")["fingerprint"] == fingerprint(helper.public)


def test_a_join_that_was_cut_off_is_made_up_for(joint: Joint) -> None:
    """`cloister helper run` joins where `join` could not, and where its answer was lost."""
    with served(joint.house.hub) as address:
        number = joint.made(SMOKES)
        link = f"{address}/joint-surveys/{number}#{joint.ask('POST', f'/{number}/link')['secret']}"
        with HelperCalls(link) as calls:
            helper = Helper.made(joint.folder / "h", calls.terms(), link=link, name="Registry")
            stop = Event()
            stop.wait = lambda timeout=None: stop.set() or True  # type: ignore[method-assign, func-returns-value]
            calls.run(helper, stop=stop)
        assert joint.ask("GET", f"/{number}")["fingerprint"] == fingerprint(helper.public)
        helper.close()


def test_a_helper_whose_survey_was_discarded_stops(joint: Joint) -> None:
    """It called for ever. What a gateway in between says of an address is not the hub's word."""
    number, secret, helper = joint.joined(SMOKES)
    joint.ask("POST", f"/{number}/close")
    assert joint.house.client().delete(f"/api/v1/joint-surveys/{number}", headers=joint.ana.bearer).status_code == 204
    stop, told = Event(), list[str]()
    stop.wait = lambda timeout=None: stop.set() or True  # type: ignore[method-assign, func-returns-value]
    with served(joint.house.hub) as address, HelperCalls(f"{address}/joint-surveys/{number}#{secret}") as calls:
        with pytest.raises(RoundRefused, match="it does not exist"):
            calls.run(helper, stop=stop, told=told.append)
        page = httpx.ByteStream(b'{"detail": "Not Found"}')
        calls._client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(404, stream=page)))
        stop.clear()
        calls.run(helper, stop=stop, told=told.append)
    assert len(told) == 1, told
    assert "Not Found" in told[0]
    helper.close()
