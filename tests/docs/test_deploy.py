"""The scripts of "Run it for an institution" do what the page says: a hub is copied, lost, put back, thawed; its key changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cloister as cl
from tests.hub.house import Clock, House, compiled_once, migrated_once

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs" / "deploy"
QUESTION = "SELECT COUNT(*) AS n FROM people WHERE age > {}"


def script(name: str | Path, **variables: object) -> str:
    """Run a script of the page as cron would: what it said."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        **{key: str(value) for key, value in variables.items()},
    }
    done = subprocess.run(["sh", str(DEPLOY / name)], env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ask(folder: Path, age: int, token: str) -> int:
    house = House(folder, Clock())
    body = {"sql": QUESTION.format(age), "spend": "0.1"}
    answer = house.client().post("/api/v1/questions", json=body, headers={"Authorization": f"Bearer {token}"})
    house.close()
    return int(answer.status_code)


@pytest.fixture(scope="module", autouse=True)
def _compiled_once() -> Iterator[None]:
    with compiled_once(), migrated_once():
        yield


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a hub that has answered once, and the token of somebody who may ask it."""
    folder = tmp_path_factory.mktemp("answered") / "hub"
    house = House(folder, Clock())
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    house.close()
    assert ask(folder, 20, ana.token) == 201
    return folder, ana.token


@pytest.fixture(scope="module")
def backed_up(answered: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it was copied to, beside the copies of three days before; two are kept."""
    backups = tmp_path_factory.mktemp("backups")
    for day in (1, 2, 3):
        (backups / f"2026-01-0{day}T010000Z").mkdir()
    said = script("backup.sh", DATA=answered[0], BACKUPS=backups, KEEP=2)
    return Path(said.splitlines()[-1])


@pytest.fixture
def hub(answered: tuple[Path, str], backed_up: Path, tmp_path: Path) -> tuple[Path, str]:
    """A copy of that hub as it is since its backup."""
    shutil.copytree(answered[0], tmp_path / "hub")
    return tmp_path / "hub", answered[1]


def test_a_hub_is_copied_lost_put_back_and_thawed(hub: tuple[Path, str], backed_up: Path) -> None:
    folder, token = hub
    assert (backed_up / "manifest.json").is_file()
    assert not (backed_up / "master.key").exists()
    assert ask(folder, 30, token) == 201
    (folder / "hub.db").write_bytes(b"the disk died")
    script("restore.sh", DATA=folder, BACKUP=backed_up)
    assert ask(folder, 40, token) == 503
    house = House(folder, Clock())
    assert house.hub.ledger.frozen is not None
    assert house.hub.ledger.frozen.losses == {"people": cl.PureDP("0.2")}
    house.hub.ledger.restore(house.hub.ledger.frozen.losses, who="data board", why="the disk of May")
    house.close()
    assert ask(folder, 50, token) == 201


def test_old_backups_go(backed_up: Path) -> None:
    kept = sorted(path.name for path in backed_up.parent.iterdir())
    assert kept == ["2026-01-03T010000Z", backed_up.name]


def test_the_key_is_changed(hub: tuple[Path, str]) -> None:
    folder, token = hub
    before = (folder / "master.key").read_text()
    script("rotate-key.sh", DATA=folder)
    assert (folder / "master.key").read_text() != before
    assert (folder / "master.key.old").read_text() == before
    assert (folder / "master.key").stat().st_mode & 0o077 == 0
    assert ask(folder, 60, token) == 201
    shutil.copy(folder / "master.key.old", folder / "master.key")
    with pytest.raises(cl.CloisterError, match="could not be read"):
        House(folder, Clock())


@pytest.mark.parametrize("last", ["cloister hub rotate-key", 'mv "$DATA/master.key" '])
def test_a_change_of_key_that_is_killed_after_its_last_step_goes_on(hub: tuple[Path, str], tmp_path: Path, last: str) -> None:
    """Run again, it wrote another key over the only one that opened the hub."""
    folder, token = hub
    before = (folder / "master.key").read_text()
    text = (DEPLOY / "rotate-key.sh").read_text()
    at = text.index("\n", text.index(last))
    (tmp_path / "killed.sh").write_text(f"{text[:at]}\nkill -9 $$\n{text[at:]}")
    with pytest.raises(AssertionError):
        script(tmp_path / "killed.sh", DATA=folder)
    new = (folder / "master.key.new").read_text()
    script("rotate-key.sh", DATA=folder)
    assert ((folder / "master.key").read_text(), (folder / "master.key.old").read_text()) == (new, before)
    assert ask(folder, 60, token) == 201


def test_every_script_is_on_the_page() -> None:
    page = (ROOT / "docs" / "how-to" / "run-a-hub-for-an-institution.md").read_text(encoding="utf-8")
    assert [path.name for path in DEPLOY.iterdir() if f"../deploy/{path.name}" not in page] == []
