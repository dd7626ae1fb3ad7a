"""A hub whose databases are moved from its folder to PostgreSQL and back: nothing is lost, spent twice, or left half done."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli.hub import hub as hub_command
from cloister.errors import LedgerUnavailable
from cloister.hub import moving
from cloister.hub.hub import Hub
from cloister.hub.moving import MoveRefused, move
from cloister.hub.platform.trail import verify
from cloister.hub.records.streams import HeldStream
from cloister.hub.services.streams import release_due
from scripts import postgres
from tests.hub.house import START, Clock, House, Visitor
from tests.hub.streams.test_streams import Play
from tests.hub.test_backup import count
from tests.hub.trail.conftest import new_schema, postgres_server

__all__ = ["postgres_server"]
pytestmark = pytest.mark.postgres


def tables(address: str) -> int:
    with psycopg.connect(address) as connection:
        [found] = connection.execute("SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema()").fetchone() or [0]
    return int(found)


@contextmanager
def away(*_: object, **__: object) -> Iterator[None]:
    """A ledger's server that goes away when all else was copied."""
    raise cl.LedgerError("The ledger was not copied", why="its server is away")
    yield


def command(house: House, *words: str) -> str:
    done = CliRunner().invoke(hub_command, ["move", *words, "--data", str(house.settings.data)])
    assert done.exit_code == 0, done.output
    return done.output


def there(house: House, address: str) -> House:
    return House(house.settings.data, Clock(), database=address, ledger=address)


@pytest.fixture
def asked(house: House) -> tuple[House, Visitor]:
    """A hub with one answer, which ends."""
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    assert count(house, ana, 20).status_code == 201
    house.close()
    return house, ana


def test_there_and_back(asked: tuple[House, Visitor], postgres_server: postgres.Server, tmp_path: Path) -> None:
    house, ana = asked
    address, before = new_schema(postgres_server), (house.settings.data / "hub.db").read_bytes()
    assert "nothing has changed" in command(house, address, "--dry-run")
    assert tables(address) == 0
    assert "hub.toml" in command(house, address)
    assert (house.settings.data / "hub.db").read_bytes() == before

    moved = there(house, address)
    assert moved.hub.ledger.remaining("people") == cl.PureDP("0.9")
    assert count(moved, ana, 20).status_code == 201, "a stored answer"
    assert count(moved, ana, 30, "0.3").status_code == 201
    assert moved.hub.ledger.remaining("people") == cl.PureDP("0.6")
    assert (bool(verify(moved.hub)), moved.hub.ledger.verify()) == (True, True)
    moved.close()

    shutil.copytree(house.settings.data, tmp_path / "old")
    old = House(tmp_path / "old", Clock())
    assert old.hub.ledger.frozen is not None, "what it was moved from is behind its head"
    assert not verify(old.hub)
    old.close()

    for name in ("hub.db", "ledger.db"):
        for path in house.settings.data.glob(f"{name}*"):
            path.unlink()
    (house.settings.data / "hub.toml").write_text(f'database = "{address}"\nledger = "{address}"\n')
    assert "take the lines" in command(house, "files")
    back = House(house.settings.data, Clock())
    assert back.hub.ledger.frozen is None
    assert back.hub.ledger.remaining("people") == cl.PureDP("0.6")
    assert count(back, ana, 40).status_code == 201
    assert (bool(verify(back.hub)), back.hub.ledger.verify()) == (True, True)
    back.close()


def test_nothing_is_overwritten_and_nothing_stays_of_what_failed(
    asked: tuple[House, Visitor], postgres_server: postgres.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, _ = asked
    address = new_schema(postgres_server)
    with Hub(house.settings, ()) as hub:
        for wrong, why in (("files", "there already"), ("mysql://db/hub", "not PostgreSQL's")):
            with pytest.raises(cl.CloisterError, match=why):
                move(hub, wrong)
        for wrong in ("ledger2.db", "files", "mysql://db/ledger"):
            with pytest.raises(cl.InvalidParameter, match="not PostgreSQL's"):
                move(hub, address, wrong, dry_run=True)
            assert not Path(wrong).exists()
        with monkeypatch.context() as patched:
            patched.setattr("cloister.hub.moving.ledger_copied", away)
            with pytest.raises(cl.LedgerError, match="away"):
                move(hub, address)
        assert tables(address) == 0
        move(hub, address)
        with pytest.raises(MoveRefused, match="there is a hub in that database"):
            move(hub, address)
    settings = dataclasses.replace(house.settings, database=address, ledger=address)
    with Hub(settings, ()) as hub:
        for there in ("ledger.db", "hub.db"):
            with pytest.raises(MoveRefused, match=f"there is a {there} in .*, and nothing is overwritten"):
                move(hub, "files")
            (house.settings.data / there).unlink()
        (house.settings.data / "hub.db-wal").write_bytes(b"frames of before")
        with pytest.raises(MoveRefused, match=r"hub\.db-wal"):
            move(hub, "files")
    assert not list(house.settings.data.glob("*.part*"))


def test_a_move_that_was_killed_between_its_two_databases_is_made_by_the_same_command(
    asked: tuple[House, Visitor], postgres_server: postgres.Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    house, ana = asked
    address, other, foreign = (new_schema(postgres_server) for _ in range(3))
    copied = moving.ledger_copied

    @contextmanager
    def killed(*given: Any, **how: Any) -> Iterator[tuple[int, Callable[[], None]]]:
        with copied(*given, **how) as (lines, commit):

            def last() -> None:
                commit()
                raise KeyboardInterrupt

            yield lines, last

    with monkeypatch.context() as patched, Hub(house.settings, ()) as hub:
        patched.setattr(moving, "ledger_copied", killed)
        with pytest.raises(KeyboardInterrupt):
            move(hub, address)
    assert 0 < tables(address) < 10, "the ledger's alone"
    old = House(house.settings.data, Clock())
    assert count(old, ana, 30, "0.2").status_code == 201, "what it is copied from goes on meanwhile"
    old.close()
    with psycopg.connect(foreign) as connection:
        connection.execute("CREATE TABLE steps AS SELECT 7 AS taken")
    cl.Ledger(other, key=bytes(32), head=tmp_path / "head").close()
    for taken in (other, foreign):
        with Hub(house.settings, ()) as hub, pytest.raises(cl.LedgerError, match="there is a ledger in that database"):
            move(hub, address, taken)
    with psycopg.connect(foreign) as connection:
        assert connection.execute("SELECT taken FROM steps").fetchall() == [(7,)], "another program's"
    command(house, address)
    moved = there(house, address)
    assert (moved.hub.ledger.remaining("people"), moved.hub.ledger.verify()) == (cl.PureDP("0.7"), True)
    assert count(moved, ana, 40).status_code == 201
    moved.close()


def test_a_stream_goes_on_in_another_database(house: House, postgres_server: postgres.Server) -> None:
    address, data, play = new_schema(postgres_server), house.settings.data, Play(house, house.person("owner"), house.person())
    begins = datetime.fromtimestamp(START, UTC)
    number, key = play.stream(until=(begins + timedelta(hours=4)).isoformat())
    play.send(number, key, begins.isoformat())
    for step, to in enumerate((address, "files", ""), start=1):
        house.clock.move(hours=1, seconds=10)
        assert release_due(house.hub) == 1
        with house.hub.database.reading() as db:
            assert db.get_one(HeldStream, number).taken == step
        house.close()
        if to:
            command(house, to)
            for path in (*data.glob("hub.db*"), *data.glob("ledger.db*")) if to == address else ():
                path.unlink()
            (data / "hub.toml").write_text(f'database = "{address}"\nledger = "{address}"\n')
            place = address if to == address else ""
            house = House(data, house.clock, database=place, ledger=place)


def test_a_ledger_that_was_changed_is_not_copied(asked: tuple[House, Visitor], postgres_server: postgres.Server) -> None:
    house, _ = asked
    address = new_schema(postgres_server)
    with Hub(house.settings, ()) as hub:
        with sqlite3.connect(house.settings.data / "ledger.db") as changed:
            changed.execute("UPDATE accounts SET spent = '0'")
        with pytest.raises(cl.CloisterError, match="not what the lines add up to"):
            move(hub, address)
    assert tables(address) == 0


def test_a_row_that_cannot_be_read_is_told_before_anything_is_moved(
    asked: tuple[House, Visitor], postgres_server: postgres.Server
) -> None:
    house, _ = asked
    address = new_schema(postgres_server)
    with Hub(house.settings, ()) as hub:
        with sqlite3.connect(house.settings.data / "hub.db") as changed:
            changed.execute("UPDATE person SET training = '{'")
        with pytest.raises(MoveRefused, match="a row of person can't be read"):
            move(hub, address)
    assert tables(address) == 0


def test_a_ledger_of_postgresql_that_is_empty_is_put_back_from_its_own_backup(
    house: House, postgres_server: postgres.Server
) -> None:
    house.sample_data_set()
    house.close()
    (house.settings.data / "ledger.head").unlink()
    settings = dataclasses.replace(house.settings, ledger=new_schema(postgres_server))
    with pytest.raises(LedgerUnavailable, match="its ledger is lost") as refused:
        Hub(settings, services=())
    assert refused.value.instead == "put it back from the backup of the hub's database"
