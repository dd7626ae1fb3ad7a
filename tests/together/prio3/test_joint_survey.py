"""Joint surveys: what a device sends and a helper keeps, against liars, stops and floods; and the browser's twin in Node."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from cloister.attacks import audit
from cloister.crypto import fingerprint
from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import Random
from cloister.together.messages import RoundRefused
from cloister.together.prio3.circuits import FIELD64
from cloister.together.prio3.helper import Helper, HelperCalls, _page, _read
from cloister.together.prio3.joint_survey import JointQuestion, JointReport, JointSurvey, list_of, new_helper_key, public_of
from cloister.together.prio3.reports import KEY_BYTES
from cloister.together.prio3.servers import noisy_share, opened

WAYS = JointQuestion(text="How do you come to work?", kind="choice", epsilon="1/3", options=("à pied", '"bus"', "车"))
SMOKES = JointQuestion(text="Do you smoke?", kind="yes-no", epsilon="0.5")
AGE = JointQuestion(text="How old are you?", kind="number", epsilon="1", low=-3, high=97)
SURVEY = JointSurvey(id="a1", title="Wege \\ «中文»", questions=(WAYS, SMOKES, AGE))
TRUE = [[1, 0, 2], [2], [123]]
KEY = bytes(range(KEY_BYTES))


class Leader:
    """The other server, honest: what it says of reports, and what it counts."""

    def __init__(self, survey: JointSurvey = SURVEY) -> None:
        self.survey, self.checked = survey, dict[str, list[tuple[Any, bytes]]]()
        self.sums = [[0] * len(each.circuit.decode([0] * each.circuit.length)) for each in survey.sums]
        self.counted: list[bytes] = []

    def page(self, *reports: JointReport) -> list[dict[str, Any]]:
        found = []
        for report in reports:
            parts = zip(self.survey.sums, report.public, report.shares, strict=True)
            checked = [prio3.check(KEY, 0, report.nonce, public, share) for prio3, public, share in parts]
            self.checked[report.nonce.hex()] = checked
            plain = {name: value for name, value in report.to_dict().items() if name != "shares"}
            found.append({**plain, "said": [own.hex() for _, own in checked]})
        return found

    def count(self, said: dict[str, list[str]]) -> None:
        for nonce, theirs in said.items():
            try:
                added = [
                    prio3.counted(kept, prio3.decided([own, bytes.fromhex(other)]))
                    for prio3, (kept, own), other in zip(self.survey.sums, self.checked[nonce], theirs, strict=True)
                ]
            except (RoundRefused, ValueError):
                continue
            fields = [each.circuit.field for each in self.survey.sums]
            self.sums = [field.add(total, each) for field, total, each in zip(fields, self.sums, added, strict=True)]
            self.counted.append(bytes.fromhex(nonce))


def sums_of(leader: Leader, shares: list[bytes], *, alone: bool = False) -> list[list[int]]:
    """What is opened; `alone`: with the helper's noise and no other."""
    found = []
    for prio3, question, total, other in zip(leader.survey.sums, leader.survey.questions, leader.sums, shares, strict=True):
        own = prio3.circuit.field.encode(total) if alone else noisy_share(prio3, question.epsilon, total)
        found.append(opened(prio3, [own, other], reports=9, epsilon=question.epsilon).counts.tolist())
    return found


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[Helper]:
    found = Helper.made(tmp_path / "helper", SURVEY, link="https://hub/joint-surveys/a1#secret", name="Registry")
    yield found
    found.close()


def reports(helper: Helper, *answers: tuple[Any, ...]) -> list[JointReport]:
    return [SURVEY.report(each, helper.public, random=Random.deterministic(seed)) for seed, each in enumerate(answers)]


def test_a_page_is_answered_by_the_same_bytes_and_counts_once(helper: Helper, tmp_path: Path) -> None:
    leader = Leader()
    page = leader.page(*reports(helper, ("à pied", "yes", 20), ("车", "no", -3), ("车", "yes", 97)))
    said = helper.said(KEY, page)
    assert helper.said(KEY, page) == said
    assert helper.reports == 3
    again = Helper(tmp_path / "helper")  # after a stop, at any place
    assert again.said(KEY, page) == said
    assert again.reports == 3
    again.close()
    leader.count(said)
    share = helper.share(list_of(leader.counted))
    assert helper.share(list_of(leader.counted)) == share, "noise is drawn once"
    assert helper.ended
    [late] = reports(helper, ("车", "no", 1))
    with pytest.raises(RoundRefused, match="given its share"):
        helper.said(KEY, leader.page(replace(late, nonce=bytes(16))))
    assert sums_of(leader, share, alone=True) != TRUE, "this share alone has the whole noise"
    assert sums_of(leader, share) != sums_of(leader, share), "the leader's is drawn anew here"


def test_nothing_is_said_of_what_no_device_made(helper: Helper) -> None:
    other = SURVEY.report(("车", "no", 0), helper.public, random=Random.deterministic(99))
    wrong: list[dict[str, Any]] = [
        {"sealed": other.sealed.hex()},  # another report's shares
        {"nonce": other.nonce.hex()},
        {"public": [each.hex() for each in other.public]},
        {"sealed": "00"},
        {"sealed": "04" + "00" * (len(other.sealed) - 1)},  # no point of the curve
        {"sealed": 7},
        {"said": ["zz"] * 3},
        {"said": None},
        {"nonce": None},
    ]
    answers = [("à pied", "yes", place) for place in range(len(wrong))]
    for report, each in zip(reports(helper, *answers), wrong, strict=True):
        [page] = Leader().page(report)
        assert list(helper.said(KEY, [{**page, **each}]).values()) == [[]], each
    assert helper.reports == 0
    assert helper.said(KEY, [{}]) == {"None": []}


def test_a_report_that_lies_or_comes_again_in_other_words_is_not_counted(helper: Helper) -> None:
    leader = Leader()
    [report] = reports(helper, ("à pied", "yes", 20))
    forged = bytearray(report.shares[0])
    forged[0] ^= 1  # the leader's share of a value that may not be sent
    lying = replace(report, shares=(bytes(forged), *report.shares[1:]))
    said = helper.said(KEY, leader.page(lying))
    leader.count(said)
    assert said[report.nonce.hex()]
    assert not leader.counted
    assert helper.reports == 0
    assert helper.said(KEY, leader.page(report)) == said, "what was said once of a report is not said in other words"
    assert helper.reports == 0
    [page] = leader.page(report)
    assert helper.said(KEY, [{**page, "sealed": page["sealed"][:-2] + "00"}]) == {report.nonce.hex(): []}
    with pytest.raises(RoundRefused, match="another than before"):
        helper.said(bytes(KEY_BYTES), leader.page(report))


def test_a_share_is_given_for_the_helpers_own_list_alone(helper: Helper) -> None:
    leader = Leader()
    leader.count(helper.said(KEY, leader.page(*reports(helper, ("à pied", "yes", 20), ("车", "no", 0)))))
    for wrong in ([], leader.counted[:1], [*leader.counted, bytes(16)]):
        with pytest.raises(RoundRefused, match="other reports"):
            helper.share(list_of(wrong))
    assert not helper.ended
    assert len(helper.share(list_of(leader.counted))) == 3
    with pytest.raises(RoundRefused, match="other reports"):
        helper.share(list_of(leader.counted[:1]))


def test_a_page_that_is_cut_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = JointSurvey(id="b2", title="b", questions=tuple(replace(each, epsilon="90000") for each in SURVEY.questions))
    helper, leader = Helper.made(tmp_path / "helper", quiet, link="x", name="y"), Leader(quiet)
    page = leader.page(*(quiet.report(each, helper.public) for each in (("à pied", "yes", 20), ("车", "no", 0))))
    put, calls = Helper._put, iter([None, None, None])

    def fails(self: Helper, name: str, value: str) -> None:
        if name == "sums" and next(calls, "end") == "end":
            raise KeyboardInterrupt
        put(self, name, value)

    monkeypatch.setattr(Helper, "_put", fails)
    next(calls), next(calls)
    with pytest.raises(KeyboardInterrupt):
        helper.said(KEY, page)
    monkeypatch.undo()
    assert helper.reports == 0
    leader.count(helper.said(KEY, page))
    assert helper.reports == len(leader.counted) == 2
    helper.close()
    assert sums_of(leader, Helper(tmp_path / "helper").share(list_of(leader.counted))) == [[1, 0, 1], [1], [26]]


def test_a_helpers_key_and_terms_are_its_own(helper: Helper, tmp_path: Path) -> None:
    folder = tmp_path / "helper"
    assert (folder / "helper.db").stat().st_mode & 0o077 == 0
    with pytest.raises(InvalidParameter, match="cloister helper run"):
        Helper.made(folder, SURVEY, link="x", name="y")
    with pytest.raises(InvalidParameter, match="is no helper's"):
        Helper(tmp_path)
    with sqlite3.connect(folder / "helper.db") as db:
        assert not [each for (each,) in db.execute("SELECT said FROM report")]
    other = JointSurvey(id="a1", title=SURVEY.title, questions=(replace(WAYS, epsilon="2"), SMOKES, AGE))
    report = other.report(("à pied", "yes", 20), helper.public)
    with pytest.raises(RoundRefused, match="made for another report, survey or helper"):
        SURVEY.helper_shares(report, helper._key)


def test_two_processes_of_one_folder_draw_noise_once(helper: Helper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one that asks while the first one draws waits for it, and gives the same bytes."""
    other, found = Helper(tmp_path / "helper"), list[list[bytes]]()
    second = Thread(target=lambda: found.append(other.share(list_of([]))))

    def slowly(*given: Any) -> bytes:
        if second.ident is None:
            second.start()
            second.join(0.3)
        return noisy_share(*given)

    monkeypatch.setattr("cloister.together.prio3.helper.noisy_share", slowly)
    first = helper.share(list_of([]))
    second.join()
    assert found == [first]
    other.close()


def test_what_a_leader_may_send_is_refused_in_words(helper: Helper) -> None:
    for page in ((None, []), ("é", [{}]), ("AA==", [1]), ("AA==", {"nonce": 1})):
        with pytest.raises(RoundRefused, match="its form is another"):
            _page(*page)
    for sent in (b"[" * 100_000, b"1", b"\xff", b""):
        with pytest.raises(InvalidParameter, match="not JSON of a hub"):
            _read(sent)
    for said in ({"title": "\ud800", "questions": [SMOKES.to_dict()]}, {"title": "a", "questions": "a"}, {}):
        with pytest.raises(InvalidParameter):
            JointSurvey.from_dict({"id": "a", **said})
    with pytest.raises(InvalidParameter, match="proxy is invalid"):
        HelperCalls("https://hub.example.org/joint-surveys/a#b", proxy="nonsense")


def told(asked: int, epsilon: str, folder: Path) -> Any:
    """What a helper's share tells the leader of one yes or no: without what the leader knows."""
    survey = JointSurvey(id="a", title="audit", questions=(replace(SMOKES, epsilon=epsilon),))
    helper, size = Helper.made(folder / f"{asked} {epsilon}", survey, link="x", name="y"), FIELD64.modulus
    helper._db.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")

    def shares(value: int, runs: int, random: Random) -> Any:
        found = []
        helper._put("sums", json.dumps([[value]]))
        for _ in range(runs):
            helper._put("share", "")
            sums = []
            for _ in range(asked):
                if asked > 1:
                    helper._put("share", "")  # broken: the noise of each call is its own
                sums += FIELD64.decode(helper.share(list_of([]), random=random)[0])
            found.append([max(each - size if each > size // 2 else each for each in sums)])
        return np.array(found, dtype=np.int64)

    return shares


@pytest.mark.parametrize(("asked", "epsilon", "refuted"), [(1, "1", False), (1, "2", True), (3, "1", True)])
def test_the_guarantee_of_a_helper(asked: int, epsilon: str, refuted: bool, tmp_path: Path) -> None:
    """An audit of ε = 1 refutes nothing, and catches a helper whose noise is of ε = 2, and one that draws it at each call."""
    found = audit(told(asked, epsilon, tmp_path), 0, 1, runs=1_000, random=Random.deterministic(9))
    assert (found.epsilon > 1) == refuted, found


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "place"},
        {"text": ""},
        {"text": "a" * 501},
        {"epsilon": "0"},
        {"epsilon": "much"},
        {"kind": "choice", "options": ["a"]},
        {"kind": "choice", "options": ["a", "a"]},
        {"kind": "choice", "options": [1, 2]},
        {"kind": "number", "low": 3, "high": 3},
        {"kind": "number", "low": 0, "high": 10**7},
        {"kind": "number", "low": True, "high": 3},
        {"colour": "red"},
        "a question",
    ],
)
def test_what_can_not_be_asked_is_refused(wrong: Any) -> None:
    said = wrong if isinstance(wrong, str) else {"text": "Do you smoke?", "kind": "yes-no", "epsilon": "1", **wrong}
    with pytest.raises(InvalidParameter):
        JointSurvey.from_dict({"id": "a", "title": "b", "questions": [said]})


def test_a_survey_is_read_back_and_answers_are_checked() -> None:
    assert JointSurvey.from_dict(json.loads(SURVEY.text)) == SURVEY
    key = public_of(new_helper_key())
    for answers in (("bus", "yes", 1), ("车", "maybe", 1), ("车", "yes", 98), ("车", "yes", 1.5), ("车", "yes")):
        with pytest.raises(InvalidParameter):
            SURVEY.report(answers, key)
    https = "https://hub.example.org"
    for link in (
        "http://hub.example.org/joint-surveys/a#b",
        f"{https}/joint-surveys/a",
        "ftp://x/a#b",
        "https://[bad/a#b",
        f"{https}:x/a#b",
        f"{https}/a#é",
    ):
        with pytest.raises(CloisterError, match="link is invalid") as refused:
            HelperCalls(link)
        assert ("over https alone" in str(refused.value)) == (not link.startswith("https"))


def test_a_leader_that_drips_is_given_up_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time and the page never does: the helper would hang without a word."""
    monkeypatch.setattr("cloister.together.prio3.helper._PATIENCE", 0.0)

    def serve(listening: socket.socket) -> None:
        with listening.accept()[0] as there:
            there.recv(65_536)
            there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            there.recv(1)  # until the helper hangs up

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        threads.submit(serve, listening)
        link = f"http://127.0.0.1:{listening.getsockname()[1]}/joint-surveys/a#b"
        with HelperCalls(link) as calls, pytest.raises(InvalidParameter, match=r"not reached: .* or too slowly"):
            calls.terms()


def test_the_twin_in_node() -> None:
    node = shutil.which("node")
    if node is None:
        assert os.environ.get("CLOISTER_REQUIRE_ENGINES") != "1", "Node is required here"
        pytest.skip("!!! Node is not here: the browser's twin is NOT TESTED (as root: apt-get install nodejs)")
    key, answers = new_helper_key(), ("车", "yes", 77)
    drawn = Random.deterministic(7).bytes(16 + sum(each.random_bytes for each in SURVEY.sums))
    wanted = SURVEY.report(answers, public_of(key), random=Random.deterministic(7))
    values = [question.value_of(answer) for question, answer in zip(SURVEY.questions, answers, strict=True)]
    told = {"survey": SURVEY.to_dict(), "values": values, "helper": public_of(key).hex(), "drawn": drawn.hex()}
    told |= {"digest": SURVEY.digest, "fingerprint": fingerprint(public_of(key)), **wanted.to_dict()}
    said = subprocess.run(
        [node, "--test", "--test-reporter", "tap", str(Path(__file__).parent / "browser.test.mjs")],
        env={**os.environ, "JOINT_SURVEY": json.dumps(told)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert said.returncode == 0
    assert "# skipped 0" in said.stdout, said.stdout + said.stderr
    [line] = [each for each in said.stdout.splitlines() if "REPORT {" in each]
    report = JointReport.from_dict(json.loads(line[line.index("{") :]), SURVEY)
    assert SURVEY.helper_shares(report, key) == SURVEY.helper_shares(wanted, key), "HPKE of two programs is one"
