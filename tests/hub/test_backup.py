"""A hub that is copied while it runs, lost, put back, and thawed: nothing that was spent is forgotten."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli import cli
from cloister.hub.backup import BackupRefused, back_up, put_back
from cloister.hub.locks import HubRuns, shared_lock
from cloister.hub.platform.accounts import login_link
from cloister.hub.platform.trail import verify
from cloister.hub.settings import Settings
from tests.hub.house import Clock, House, Visitor


def count(house: House, who: Visitor, low: int, spend: str = "0.1") -> Any:
    sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {low}"
    return house.client().post("/api/v1/questions", json={"sql": sql, "spend": spend, "purpose": "a study"}, headers=who.bearer)


@pytest.fixture
def copied(house: House, tmp_path: Path) -> tuple[House, Visitor, Path]:
    """A hub with one answer, a backup of it, and one answer after that."""
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    assert count(house, ana, 20).status_code == 201
    back_up(house.settings, tmp_path / "backup")
    assert count(house, ana, 30, "0.3").status_code == 201
    return house, ana, tmp_path / "backup"


def lost(house: House, *, heads: bool) -> None:
    """The disk of the hub dies; with `heads`, what lay on another disk is still there."""
    house.close()
    data = house.settings.data
    for path in data.iterdir():
        if not (path.name in ("master.key", "hub.toml") or (heads and path.name in ("ledger.head", "trail.head"))):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_what_was_spent_after_the_backup_is_known_where_the_head_survived(copied: tuple[House, Visitor, Path]) -> None:
    house, ana, backup = copied
    lost(house, heads=True)
    put_back(backup, house.settings)
    again = House(house.settings.data, Clock())
    frozen = again.hub.ledger.frozen
    assert frozen is not None
    assert frozen.losses == {"people": cl.PureDP("0.4")}
    refused = count(again, ana, 40)
    assert refused.status_code == 503
    assert "frozen" in refused.json()["detail"] + refused.json()["title"]
    assert not verify(again.hub)
    again.hub.ledger.restore(frozen.losses, who="data board", why="the disk of May")
    assert again.hub.ledger.verify()
    again.close()
    again = House(house.settings.data, Clock())
    assert again.hub.ledger.remaining("people") == cl.PureDP("0.6")
    assert count(again, ana, 40).status_code == 201
    again.close()


def test_a_hub_without_its_key_makes_no_other(copied: tuple[House, Visitor, Path]) -> None:
    """A new key would open nothing, and would stand where the right one is to be put."""
    house, _, backup = copied
    key = house.settings.data / "master.key"
    kept = key.read_bytes()
    lost(house, heads=False)
    put_back(backup, house.settings)
    key.unlink()
    for _ in range(2):
        with pytest.raises(cl.CloisterError, match=r"master key master\.key is missing"):
            House(house.settings.data, Clock())
        assert not key.exists()
    key.write_bytes(kept)
    House(house.settings.data, Clock()).close()


def test_without_the_head_it_is_frozen_too_and_what_the_backup_knows_is_the_least_loss(
    copied: tuple[House, Visitor, Path],
) -> None:
    house, ana, backup = copied
    lost(house, heads=False)
    put_back(backup, house.settings)
    again = House(house.settings.data, Clock())
    assert again.hub.ledger.frozen is not None
    with pytest.raises(cl.LedgerError):
        again.hub.ledger.restore({"people": cl.PureDP("0.05")}, who="board", why="too little")
    again.hub.ledger.restore({"people": cl.PureDP("0.9")}, who="board", why="the disk of May")
    assert count(again, ana, 40, "0.2").status_code == 409
    assert count(again, ana, 40, "0.1").status_code == 201
    again.close()


def test_an_answer_of_before_the_backup_is_still_there_and_rows_are_still_read(copied: tuple[House, Visitor, Path]) -> None:
    house, ana, backup = copied
    before = house.client().get("/api/v1/releases", headers=ana.bearer).json()["releases"]
    lost(house, heads=True)
    put_back(backup, house.settings)
    again = House(house.settings.data, Clock())
    after = again.client().get("/api/v1/releases", headers=ana.bearer).json()["releases"]
    assert after == [line for line in before if line["cost"] == {"people": "ε = 0.1"}]
    again.close()


def test_sessions_and_links_of_the_backup_let_nobody_in(house: House, tmp_path: Path) -> None:
    """Somebody who signed out since was signed in once more by the restore, and a link that was used worked a second time."""
    ana = house.person("analyst")
    link = login_link(house.hub, ana.caller.email)
    assert (ana.client.get("/account").status_code, house.client().get(link).status_code) == (200, 200)
    back_up(house.settings, tmp_path / "backup")
    lost(house, heads=True)
    put_back(tmp_path / "backup", house.settings)
    again = House(house.settings.data, Clock())
    assert (again.again(ana).client.get("/account").status_code, again.client().get(link).status_code) == (303, 404)
    again.close()


def test_neither_key_nor_head_nor_rows_in_plain_are_in_a_backup(copied: tuple[House, Visitor, Path]) -> None:
    house, _, backup = copied
    names = {path.name for path in backup.rglob("*")}
    assert not names & {"master.key", "hub.toml", "ledger.head", "ledger.db.key"}
    key = house.settings.path("master.key").read_bytes().strip()
    for path in backup.rglob("*"):
        assert path.is_dir() or key not in path.read_bytes()
    assert (backup.stat().st_mode & 0o077) == 0


def test_it_takes_the_place_of_nothing(copied: tuple[House, Visitor, Path]) -> None:
    house, _, backup = copied
    with pytest.raises(BackupRefused, match="nothing is overwritten"):
        put_back(backup, house.settings)
    with pytest.raises(BackupRefused, match="not empty"):
        back_up(house.settings, backup)


def test_it_is_not_put_back_beside_a_hub_that_runs(copied: tuple[House, Visitor, Path]) -> None:
    """Its files were moved away under it, and it goes on with them."""
    house, _, backup = copied
    lost(house, heads=True)
    words = ["hub", "restore", str(backup), "--data", str(house.settings.data)]
    with shared_lock(house.settings):
        refused = CliRunner().invoke(cli, words)
    assert isinstance(refused.exception, HubRuns)
    assert not (house.settings.data / "hub.db").exists()
    told = CliRunner().invoke(cli, words)
    assert told.exit_code == 0
    assert "revoke again what was revoked since" in told.output


@pytest.mark.parametrize("name", ["hub.db-wal", "ledger.db-wal", "ledger.db-shm", "hub.db-journal"])
def test_a_log_without_its_database_is_not_written_over_what_is_put_back(copied: tuple[House, Visitor, Path], name: str) -> None:
    """After a kill the log stays; SQLite would take it for the log of any database of that name."""
    house, _, backup = copied
    lost(house, heads=True)
    (house.settings.data / name).write_bytes(b"frames of before")
    with pytest.raises(BackupRefused, match=name):
        put_back(backup, house.settings)
    assert not (house.settings.data / "hub.db").exists()
    (house.settings.data / name).unlink()
    put_back(backup, house.settings)


def test_what_was_changed_interrupted_or_is_none_is_not_put_back(copied: tuple[House, Visitor, Path], tmp_path: Path) -> None:
    _, _, backup = copied
    target = Settings(data=tmp_path / "new")
    for number, (spoil, said) in enumerate(
        [
            (lambda at: (at / "ledger.db").write_bytes((at / "ledger.db").read_bytes()[:-1] + b"x"), "was changed"),
            (lambda at: (at / "manifest.json").unlink(), "interrupted"),
            (lambda at: (at / "hub.db").unlink(), "is missing"),
            (lambda at: rewrite(at, "../../etc/passwd"), "no backup has"),
            (lambda at: rewrite(at, "master.key"), "no backup has"),
            (lambda at: (at / "manifest.json").write_text("[]"), "no backup"),
        ]
    ):
        spoilt = tmp_path / f"spoilt-{number}"
        shutil.copytree(backup, spoilt)
        spoil(spoilt)
        with pytest.raises(cl.InvalidParameter, match=said):
            put_back(spoilt, target)
        assert not target.data.exists()


def rewrite(at: Path, name: str) -> None:
    told = json.loads((at / "manifest.json").read_text())
    told["files"][name] = "0" * 64
    (at / "manifest.json").write_text(json.dumps(told))


def test_where_there_is_no_hub_in_files_there_is_no_backup(tmp_path: Path) -> None:
    with pytest.raises(BackupRefused, match="no hub"):
        back_up(Settings(data=tmp_path), tmp_path / "backup")
    with pytest.raises(BackupRefused, match=r"(?s)PostgreSQL.*trail\.head, both databases .* vault and masked"):
        back_up(Settings(data=tmp_path, database="postgresql://hub@db/hub"), tmp_path / "backup")
    for there in ({"database": "postgresql://hub@db/hub"}, {"ledger": "postgresql://hub@db/hub"}):
        with pytest.raises(BackupRefused, match="PostgreSQL"):  # where nothing would read what is put back
            put_back(tmp_path / "nowhere", Settings(data=tmp_path / "new", **there))
    with pytest.raises(cl.InvalidParameter):
        put_back(tmp_path / "nowhere", Settings(data=tmp_path / "new"))


def test_a_disk_that_refuses_is_said_in_words(house: House, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BackupRefused, match="not a directory"):
        back_up(house.settings, tmp_path / "file" / "backup")
