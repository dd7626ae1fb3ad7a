"""`cloister demo` as a person starts it: a hub that is really there, people who really log in, an end that leaves nothing."""

from __future__ import annotations

import json
import os
import queue
import re
import shlex
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import psycopg
import pytest
from sqlalchemy import func

import cloister as cl
from cloister.cli.demo_hub import FIRST, PEOPLE, SECOND, SPEND, demo_survey
from cloister.hub.records.surveys import HeldSurvey, SurveyReport
from tests.cli.test_cli import cloister
from tests.hub import forked
from tests.hub.house import Clock, House

pytestmark = pytest.mark.xdist_group("documentation")  # the pages start demos too: one after another, for the usual port

JOIN = "SELECT p.town, COUNT(*) AS n FROM patients AS p JOIN visits AS v ON v.patient = p.patient GROUP BY p.town"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a demonstration that ran once, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "hub"
    process = forked.python("-m", "cloister", "demo", "--once", "--data", str(folder), stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as said:
        shown = said.read()
    assert process.wait(100) == 0
    return folder, shown


def test_a_survey_that_nobody_answered_before_an_interruption_is_answered_once(tmp_path: Path) -> None:
    house = House(tmp_path / "hub", Clock())
    ana = house.person("analyst").caller
    with patch("cloister.cli.demo_hub._answered", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        demo_survey(house.hub, ana)
    found = {demo_survey(house.hub, ana) for _ in range(2)}
    with house.hub.database.reading() as db:
        reports = db.query(HeldSurvey.id, func.count()).join(SurveyReport, isouter=True).group_by(HeldSurvey.id)
        assert [tuple(row) for row in reports] == [(each, 4000) for each in found]
    house.close()


def copied(opened: tuple[Path, str], into: Path) -> str:
    """A copy of that folder: opening it takes half as long as filling a new one."""
    shutil.copytree(opened[0], into / "hub")
    return str(into / "hub")


@contextmanager
def running(*arguments: str, temporary: Path, sites: bool = False) -> Iterator[tuple[forked.Forked, dict[str, Any]]]:
    """A demonstration that serves at any port, and what it printed."""
    words = ["-m", "cloister", "demo", "--json", *(() if sites else ("--no-sites",)), *arguments]
    env = {**os.environ, "CLOISTER_HUB_PORT": "0", "TMPDIR": str(temporary)}
    process = forked.python(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
    try:
        yield process, json.loads(lines.get(timeout=100))
    finally:
        process.kill()
        process.wait(30)


def test_it_prints_an_answer_with_its_error_its_cost_and_the_ways_in(opened: tuple[Path, str], tmp_path: Path) -> None:
    folder, shown = copied(opened, tmp_path), opened[1]
    assert FIRST in shown
    assert "±" in shown
    assert "cost ε = 0.1 of 'census'" in shown
    assert shown.count("/link/") == len(PEOPLE)
    assert "Ctrl-C" not in shown, "it has ended"
    assert "cost ε = 0.1 of 'clinics'" in shown, "three processes answered together"
    with socket.socket() as taken:  # the usual port: another one is taken then
        try:
            taken.bind(("127.0.0.1", 8765))
        except OSError:
            pass  # somebody else has it: as good
        else:
            taken.listen()
        words = ["-m", "cloister", "demo", "--once", "--json", "--no-sites", "--data", folder]
        process = forked.python(*words, stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout as said:
            again = json.load(said)
        assert process.wait(100) == 0
    assert not again["address"].endswith(":8765")
    assert again["columns"]["sex"] == ["Female", "Male"]
    assert again["cost"] == {"census": "ε = 0.1"}
    assert set(again["links"]) == set(PEOPLE)
    charges = json.loads(cloister("ledger", "show", folder, "census", "--json", at=tmp_path).stdout)
    assert [charge["who"] for charge in charges if charge["state"] == "settled"] == ["ana@example.org"]  # the second was a repeat


def ended(process: forked.Forked, how: signal.Signals) -> None:
    process.send_signal(how)
    assert process.wait(30) == 0
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


def test_it_serves_until_it_is_interrupted_and_leaves_nothing(tmp_path: Path) -> None:
    with running("--port", "0", temporary=tmp_path) as (process, found):
        address = found["address"]
        assert httpx.get(f"{address}/healthz", timeout=120).json()["status"] == "ok"
        assert any(each.name.startswith("cloister-demo-") for each in tmp_path.iterdir())
        with cl.connect(address, token=found["token"], purpose="look") as session:
            towns = session.sql(JOIN, spend="0.2").to_pydict()["town"]
            assert set(towns) == {"Delft", "Gouda", "Leiden", "Zoetermeer"}
        chapters = list[list[str]]()
        for role, link in found["links"].items():
            with httpx.Client(base_url=address, timeout=120) as browser:
                assert logged_in(browser, link) == PEOPLE[role][1]
                assert browser.get(link).status_code == 404  # once
                steps = re.findall(
                    r'<li><a href="([^"]+)">', browser.get("/").text.partition('id="story"')[2].partition("</ol>")[0]
                )
                assert len(steps) >= 2, "each has a part in the story"
                chapters.append(re.findall(r"Minute (\d)", browser.get("/").text))
                assert [at for at in steps if browser.get(at).status_code != 200] == []
        assert {role for _, _, roles, _ in PEOPLE.values() for role in roles} == {
            *("administrator", "steward", "owner", "analyst", "algorithm-provider")
        }
        assert sorted(chapters) == [[str(minute)] for minute in range(1, 6)], "a minute each"
        ended(process, signal.SIGINT)
    assert list(tmp_path.iterdir()) == []


def test_its_clinics_go_on_answering_and_clients_of_postgresql_come_in(opened: tuple[Path, str], tmp_path: Path) -> None:
    """Nobody of the demonstration can say yes for a clinic: so none waits for that, and one purpose is refused by all. It serves
    until it is told to end, at the address that it prints, though the setting named none."""
    (tmp_path / "temporary").mkdir()
    with running("--data", copied(opened, tmp_path), temporary=tmp_path / "temporary", sites=True) as (process, found):
        assert httpx.get(f"{found['address']}/healthz", timeout=120).json()["status"] == "ok"
        assert found["columns"]["sex"] == ["Female", "Male"]
        assert found["sites"]["columns"]["diabetes"] == [False, True]
        assert not found["address"].endswith((":0", ":8765"))
        for purpose in ("care", "a second look"):
            with cl.connect(found["address"], token=found["token"], purpose=purpose) as session:
                assert session.sql("SELECT COUNT(*) AS n FROM clinics WHERE age >= 40", spend="0.1", fresh=True).to_pydict()["n"]
        with (
            cl.connect(found["address"], token=found["token"], purpose="marketing") as session,
            pytest.raises(cl.CloisterError, match="its owner allows nothing"),
        ):
            session.sql("SELECT COUNT(*) AS n FROM clinics WHERE age >= 41", spend="0.1")
        place = shlex.split(found["psql"])[1]
        with psycopg.connect(place, password=found["token"], autocommit=True) as client:
            client.execute(f"SET cloister.spend = '{SPEND}'")
            assert len(client.execute(SECOND).fetchall()) > 1
        ended(process, signal.SIGTERM)
    assert [each for each in (tmp_path / "temporary").rglob("*") if each.is_file() and each.stat().st_size] == []
    assert (tmp_path / "hub" / "hub.db").exists(), "a folder that was named stays"


def test_a_port_that_was_named_is_that_one_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        by_option = cloister("demo", "--once", "--port", port, at=tmp_path, code=1)
        monkeypatch.setenv("CLOISTER_HUB_PORT", port)
        by_setting = cloister("demo", "--once", at=tmp_path, code=1)
    for refused in (by_option, by_setting):
        assert f"port {port} of 127.0.0.1 is taken" in refused.stderr
        assert "--port 0" in refused.stderr


def logged_in(browser: httpx.Client, link: str) -> str:
    """The address of who is logged in, after the form behind the link was sent."""
    import html

    page = browser.get(link)
    form = re.search(r'name="form_token" value="([^"]+)"', page.text)
    assert form is not None
    answer = browser.post(link, data={"form_token": html.unescape(form[1])})
    assert answer.status_code == 303, answer.text
    email: str = browser.get("/api/v1/me").json()["email"]
    return email
