"""The scripts of "Run it for an institution" do what the page says: a hub is copied, lost, put back, thawed; its key changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cloister as cl
from tests.hub.house import Clock, House

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs" / "deploy"
QUESTION = "SELECT COUNT(*) AS n FROM people WHERE age > {}"


def script(name: str, **variables: object) -> str:
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


@pytest.fixture
def hub(tmp_path: Path) -> tuple[Path, str]:
    """A folder with a hub that has answered once, and the token of somebody who may ask it."""
    house = House(tmp_path / "hub", Clock())
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    house.close()
    assert ask(tmp_path / "hub", 20, ana.token) == 201
    return tmp_path / "hub", ana.token


def test_a_hub_is_copied_lost_put_back_and_thawed(hub: tuple[Path, str], tmp_path: Path) -> None:
    folder, token = hub
    said = script("backup.sh", DATA=folder, BACKUPS=tmp_path / "backups", KEEP=2)
    backup = Path(said.splitlines()[-1])
    assert (backup / "manifest.json").is_file()
    assert not (backup / "master.key").exists()
    assert ask(folder, 30, token) == 201
    (folder / "hub.db").write_bytes(b"the disk died")
    script("restore.sh", DATA=folder, BACKUP=backup)
    assert ask(folder, 40, token) == 503
    house = House(folder, Clock())
    assert house.hub.ledger.frozen is not None
    assert house.hub.ledger.frozen.losses == {"people": cl.PureDP("0.2")}
    house.hub.ledger.restore(house.hub.ledger.frozen.losses, who="data board", why="the disk of May")
    house.close()
    assert ask(folder, 50, token) == 201


def test_old_backups_go(hub: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = hub
    backups = tmp_path / "backups"
    for day in (1, 2, 3):
        (backups / f"2026-01-0{day}T010000Z").mkdir(parents=True)
    script("backup.sh", DATA=folder, BACKUPS=backups, KEEP=2)
    kept = sorted(path.name for path in backups.iterdir())
    assert len(kept) == 2
    assert kept[0] == "2026-01-03T010000Z"


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


def test_every_script_is_on_the_page() -> None:
    page = (ROOT / "docs" / "how-to" / "run-a-hub-for-an-institution.md").read_text(encoding="utf-8")
    assert [path.name for path in DEPLOY.iterdir() if f"../deploy/{path.name}" not in page] == []
