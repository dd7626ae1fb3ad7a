"""`cloister audit-trail`, beside a hub and without one."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from cloister.cli.trail import audit_trail
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail import SERVICE, write_alone
from cloister.hub.settings import Settings


@pytest.fixture
def folder(tmp_path):
    with Hub(Settings(data=tmp_path / "hub"), [SERVICE]) as hub:
        for number in range(4):
            write_alone(
                hub, Caller(id="ada", via="token"), "dataset.see" if number % 2 else "question.ask", object_id=f"d{number}"
            )
    return tmp_path / "hub"


def run(*arguments):
    return CliRunner().invoke(audit_trail, [str(each) for each in arguments])


def change(folder, statement: str) -> None:
    with Hub(Settings(data=folder), []) as hub, hub.database.begin() as db:
        db.execute(text(statement))


def test_a_whole_trail(folder):
    outcome = run("verify", "--data", folder)
    assert (outcome.exit_code, outcome.output) == (0, "every line was checked: none was changed, dropped or rolled back\n")


def test_a_changed_line(folder):
    change(folder, "UPDATE trail SET person = 'bob' WHERE number = 2")
    outcome = run("verify", "--data", folder)
    assert outcome.exit_code == 1
    assert "BROKEN: line 2: it, or the line before it, was changed" in outcome.output


def test_a_lost_end_that_somebody_answers_for(folder):
    change(folder, "DELETE FROM trail_about WHERE number = 4")
    change(folder, "DELETE FROM trail WHERE number = 4")
    change(folder, "UPDATE trail_head SET number = 3, hash = (SELECT hash FROM trail WHERE number = 3)")
    assert "lost lines" in run("verify", "--data", folder).output
    assert run("accept", "--data", folder, "--who", "data board", "--why", "disk").output == "written as line 5\n"
    assert run("verify", "--data", folder).exit_code == 0


def test_exports(folder):
    lines = run("export", "--data", folder, "--action", "question").output.splitlines()
    assert [json.loads(line)["object"] for line in lines] == ["d0", "d2"]
    rows = run("export", "--data", folder, "--format", "csv", "--object", "d3").output.splitlines()
    assert rows[0].startswith("number,when,person,action")
    assert len(rows) == 2


@pytest.mark.parametrize("words", [("verify",), ("export",), ("accept", "--who", "w", "--why", "y")])
def test_a_folder_without_a_hub_is_refused_and_stays_empty(tmp_path, words):
    outcome = run(*words, "--data", tmp_path)
    assert outcome.exit_code == 1
    assert "there is none in this folder" in str(outcome.exception)
    assert list(tmp_path.iterdir()) == []


def test_help_shows_examples():
    for command in ("verify", "export", "accept"):
        assert f"cloister audit-trail {command} --data" in run(command, "--help").output
