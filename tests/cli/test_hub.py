"""`cloister hub` and its commands, and questions that are put to a hub."""

from __future__ import annotations

import base64
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from cloister.cli import main
from cloister.installed import install
from cloister.privacy import PureDP
from tests.hub.house import Clock, House, Visitor, served

STORED = Path(__file__).parents[1] / "stored"
SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@dataclass(frozen=True)
class Said:
    """What a command printed."""

    stdout: str
    stderr: str


def cloister(*arguments: str, code: int = 0) -> Said:
    """The command in this process: what it imports is imported once for all tests."""
    out, err, ended = io.StringIO(), io.StringIO(), 0
    with mock.patch.object(sys, "argv", ["cloister", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            ended = int(end.code or 0)
    assert ended == code, err.getvalue()
    return Said(out.getvalue(), err.getvalue())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of a new hub."""
    (tmp_path / "hub").mkdir(mode=0o700)
    return tmp_path / "hub"


def test_check_lists_every_setting_and_says_what_is_wrong(data: Path) -> None:
    shown = cloister("hub", "check", "--data", str(data)).stdout
    assert "port = 8765" in shown
    assert "nothing is wrong or weak" in shown
    (data / "hub.toml").write_text('host = "0.0.0.0"\nmetrics_token = "very-secret"\n')
    wrong = cloister("hub", "check", "--data", str(data), "--json", code=1)
    told = json.loads(wrong.stdout)
    assert told["settings"]["metrics_token"] == "(set)"
    assert "very-secret" not in wrong.stdout + wrong.stderr
    assert [each["setting"] for each in told["weaknesses"] if each["grave"]] == ["certificate"]
    assert cloister("hub", "--data", str(data), "check", code=1).stdout.count("Instead: ") == len(told["weaknesses"])
    (data / "hub.toml").write_text("colour = 3\n")
    assert "'colour'" in cloister("hub", "check", "--data", str(data), code=1).stderr


def test_the_environment_names_the_folder_where_no_option_does(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "hub.toml").write_text('title = "Riverside"\n')
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.setenv("CLOISTER_HUB_DATA", str(data))
    shown = cloister("hub", "check").stdout
    assert f"data = {data}\ntitle = Riverside\n" in shown
    assert f"data = {tmp_path}\ntitle = cloister\n" in cloister("hub", "--data", str(tmp_path), "check").stdout


def test_a_hub_with_a_grave_fault_does_not_start(data: Path) -> None:
    refused = cloister("hub", "--data", str(data), "--host", "0.0.0.0", code=1)
    assert "was not started" in refused.stderr
    assert not (data / "hub.db").exists()


def test_key_prints_32_fresh_random_bytes() -> None:
    keys = {cloister("hub", "key").stdout.strip() for _ in range(2)}
    assert len(keys) == 2
    assert {len(base64.b64decode(key, validate=True)) for key in keys} == {32}


def test_link_is_for_the_first_administrator_and_then_for_people_who_are_there(data: Path) -> None:
    first = cloister("hub", "link", "--data", str(data)).stdout.strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:8765/link/[\w-]{43}", first)
    assert "no one here" in cloister("hub", "link", "ada@example.org", "--data", str(data), code=1).stderr
    house = House(data, Clock())
    house.person("administrator", email="ada@example.org")
    house.close()
    assert "has people already" in cloister("hub", "link", "--data", str(data), code=1).stderr
    assert "/link/" in cloister("hub", "link", "ada@example.org", "--data", str(data)).stdout


def test_rotate_key_changes_the_key_and_nothing_that_it_keeps(data: Path, tmp_path: Path) -> None:
    house = House(data, Clock())
    house.sample_data_set()
    house.hub.ledger.verify()
    sealed = house.hub.secret("ledger")
    house.close()
    (tmp_path / "new.key").write_text(cloister("hub", "key").stdout)
    assert "keys are wrapped" in cloister("hub", "rotate-key", str(tmp_path / "new.key"), "--data", str(data)).stdout
    assert "another master key" in cloister("hub", "link", "--data", str(data), code=1).stderr
    again = cloister("hub", "rotate-key", str(tmp_path / "new.key"), "--data", str(data))
    assert "keys are wrapped" in again.stdout, "a run that was killed when it had done everything, once more"
    (tmp_path / "third.key").write_text(cloister("hub", "key").stdout)
    assert "another master key" in cloister("hub", "rotate-key", str(tmp_path / "third.key"), "--data", str(data), code=1).stderr
    (tmp_path / "new.key").replace(data / "master.key")
    house = House(data, Clock())
    assert house.hub.secret("ledger") == sealed
    assert house.hub.ledger.verify()
    house.close()


def test_backup_restore_and_thaw_from_end_to_end(data: Path, tmp_path: Path) -> None:
    house = House(data, Clock())
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    asked = house.client().post("/api/v1/questions", json={"sql": SQL, "spend": "0.1", "purpose": "x"}, headers=ana.bearer)
    assert asked.status_code == 201
    house.close()
    backup, new = tmp_path / "backup", tmp_path / "new"
    said = cloister("hub", "backup", str(backup), "--data", str(data)).stdout
    assert "left out on purpose: master.key" in said
    assert "put the hub's master key back" in cloister("hub", "restore", str(backup), "--data", str(new)).stdout
    (new / "master.key").write_bytes((data / "master.key").read_bytes())
    assert "frozen" in cloister("ledger", "show", str(new)).stdout
    least = cloister("ledger", "restore", str(new), "--loss", "people=0.01", "--who", "b", "--why", "w", code=1).stderr
    assert "frozen" in least
    thaw = ("ledger", "restore", str(new), "--loss", "people=0.7", "--who", "data board", "--why", "disk of May")
    assert "ε = 0.3 left" in cloister(*thaw).stdout
    assert "none changed" in cloister("ledger", "verify", str(new)).stdout
    assert cloister("audit-trail", "verify", "--data", str(new)).stdout


def test_restore_with_the_key_in_place_says_what_the_owner_has_to_do(data: Path, tmp_path: Path) -> None:
    house = House(data, Clock())
    house.sample_data_set()
    house.close()
    cloister("hub", "backup", str(tmp_path / "backup"), "--data", str(data))
    new = tmp_path / "new"
    new.mkdir()
    (new / "master.key").write_bytes((data / "master.key").read_bytes())
    said = cloister("hub", "restore", str(tmp_path / "backup"), "--data", str(new)).stdout
    assert "the ledger is frozen" in said
    assert f"cloister ledger restore {new} --loss people=…" in said
    told = cloister("hub", "check", "--data", str(new), code=1).stdout
    assert "wrong: ledger: it is frozen: the copy of its head is missing" in told
    assert f"Instead: cloister ledger restore {new} --loss people=…" in told
    (new / "master.key").unlink()
    told = cloister("hub", "check", "--data", str(new), code=1).stdout
    assert "wrong: data: what is stored was not looked at" in told
    assert "nothing is overwritten" in cloister("hub", "restore", str(tmp_path / "backup"), "--data", str(new), code=1).stderr


def test_check_of_a_hub_that_an_older_version_left_says_that_it_was_not_read(tmp_path: Path) -> None:
    shutil.unpack_archive(STORED / "hub.tar.xz", tmp_path)
    before = (tmp_path / "hub" / "hub.db").read_bytes()
    told = cloister("hub", "check", "--data", str(tmp_path / "hub")).stdout
    assert "weak: data: what is stored was not looked at: the hub was not started since cloister was updated" in told
    assert (tmp_path / "hub" / "hub.db").read_bytes() == before


def test_names_that_a_shell_would_take_apart_are_quoted_where_a_loss_is_asked_for(data: Path, tmp_path: Path) -> None:
    house = House(data, Clock())
    house.sample_data_set("ward", population="vq 2026-Q1")
    house.sample_data_set("people")
    house.hub.ledger.settle(house.hub.ledger.reserve({"vq 2026-Q1": PureDP("0.3")}, who="ada", what="plan"), b"answer")
    house.close()
    cloister("hub", "backup", str(tmp_path / "backup"), "--data", str(data))
    new = tmp_path / "a new place"
    new.mkdir(mode=0o700)
    (new / "master.key").write_bytes((data / "master.key").read_bytes())
    said = cloister("hub", "restore", str(tmp_path / "backup"), "--data", str(new)).stdout
    [line] = [each for each in said.splitlines() if "what was spent in all" in each]
    command = shlex.split(line.partition(": ")[2])
    assert command[:4] == ["cloister", "ledger", "restore", str(new)]
    assert sorted(command[4:8]) == ["--loss", "--loss", "people=…", "vq 2026-Q1=…"]
    thaw = ("ledger", "restore", str(new), "--who", "data board", "--why", "disk", "--loss", "people=0")
    low = cloister(*thaw, "--loss", "vq 2026-Q1=0.1", code=1).stderr
    assert "at least ε = 0.3 in all" in low
    assert "Instead: --loss 'vq 2026-Q1=0.3'" in low
    assert "Instead: --loss 'vq 2026-Q1=…'" in cloister(*thaw, code=1).stderr
    assert "vq 2026-Q1: ε = 0.7 left" in cloister(*thaw, "--loss", "vq 2026-Q1=0.3").stdout


def test_what_looks_at_a_hub_makes_none_where_one_was_lost(data: Path) -> None:
    """New keys and heads would stand in the place of those that are to be put back."""
    (data / "hub.toml").write_text('title = "Lost"\n')
    why = ("--who", "board", "--why", "disk")
    for words in (
        ("ledger", "show", str(data)),
        ("ledger", "verify", str(data)),
        ("ledger", "export", str(data)),
        ("ledger", "raise", str(data), "people", "--epsilon", "1", *why),
        ("ledger", "restore", str(data), "--loss", "people=1", *why),
        ("worker", "--data", str(data)),
    ):
        assert "there is none in this folder" in cloister(*words, code=1).stderr, words
        assert [path.name for path in data.iterdir()] == ["hub.toml"], words


def test_a_hub_whose_ledger_was_lost_says_so_and_opens_no_other(data: Path) -> None:
    house = House(data, Clock())
    house.sample_data_set()
    house.close()
    (data / "ledger.db").rename(data / "kept")
    assert "ledger.db is missing" in cloister("hub", "check", "--data", str(data), code=1).stdout
    shown = cloister("ledger", "show", str(data)).stdout  # its head is there, and tells
    assert "the ledger is frozen: its database ends at line 1" in shown
    for name in ("ledger.db", "ledger.head"):
        (data / name).unlink()
    for words in (("ledger", "show", str(data)), ("hub", "link", "--data", str(data)), ("worker", "--data", str(data))):
        assert "its ledger is lost" in cloister(*words, code=1).stderr, words
    assert "its ledger is lost" in cloister("hub", "check", "--data", str(data), code=1).stdout
    (data / "kept").replace(data / "ledger.db")
    assert "frozen" in cloister("ledger", "show", str(data)).stdout


@pytest.fixture
def asked(data: Path) -> Iterator[tuple[str, Visitor]]:
    """A hub that is served, and its analyst."""
    house = House(data, Clock())
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    with served(house.hub) as url:
        yield url, ana
    house.close()


def test_query_and_explain_ask_a_hub(asked: tuple[str, Visitor]) -> None:
    url, ana = asked
    hub = ("--hub", url, "--token", ana.token)
    plan = json.loads(cloister("explain", SQL, "--spend", "0.1", "--json", *hub).stdout)
    assert plan["cost"] == {"people": "ε = 0.1"}
    told = json.loads(cloister("query", SQL, "--spend", "0.1", "--purpose", "a study", "--json", *hub).stdout)
    assert told["columns"]["sex"] == ["F", "M"]
    assert told["cost"] == {"people": "ε = 0.1"}
    assert cloister("query", SQL, "--spend", "0.1", "--csv", *hub).stdout.splitlines()[0] == "sex,n,n_margin95"
    refused = cloister("query", SQL, "--spend", "5", *hub, code=1)
    assert refused.stderr.startswith("BudgetExceeded: ")
    assert ana.token not in refused.stderr
    mixed = cloister("query", SQL, "--spend", "1", "--budget", "3", *hub, code=1).stderr
    assert "--budget is invalid" in mixed
    assert "no API token" in cloister("query", SQL, "--spend", "1", "--hub", url, code=1).stderr
    assert "plain http" in cloister("query", SQL, "--spend", "1", "--hub", "http://192.0.2.1", "--token", "x", code=1).stderr
    assert "is for a hub" in cloister("query", SQL, "--spend", "1", "--project", "p", code=1).stderr


def test_without_the_hubs_parts_other_commands_work_and_the_hubs_say_what_to_install(tmp_path: Path) -> None:
    """One after another in one process, which finds none of the parts."""
    missing = ("alembic", "argon2", "authlib", "fastapi", "prometheus_client", "sqlalchemy", "starlette", "uvicorn")
    code = f"""
import contextlib, io, json, sys
sys.modules.update(dict.fromkeys({missing!r}))
from cloister.cli import main
told = []
for sys.argv[1:] in json.loads(sys.argv[1]):
    said, status = io.StringIO(), 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
    told.append([status, said.getvalue()])
print(json.dumps(told))
"""
    fine = (["--help"], ["hub", "--help"], ["hub", "key"], ["hub", "check"], ["demo", "--terminal", "--once"])
    needs = (["hub"], ["demo", "--once"], ["worker", "--data", "."], ["audit-trail", "verify", "--data", "."])
    line = [sys.executable, "-c", code, json.dumps([*fine, *needs])]
    told = json.loads(subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, check=True).stdout)
    assert [status for status, _ in told] == [0] * len(fine) + [1] * len(needs), told
    for words, (_, refused) in zip(needs, told[len(fine) :], strict=True):
        assert install("hub") in refused, words
