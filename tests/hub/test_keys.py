"""The hub's master key: where it comes from, what is wrapped by it, and that a new one changes nothing."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from sqlalchemy import LargeBinary, select

from cloister.crypto import WrongKey
from cloister.errors import InvalidParameter
from cloister.hub.database import Base, every_model
from cloister.hub.hub import Hub
from cloister.hub.keys import ROTATED, _wrapped, hub_keyring, master_key, rotate, stored_secret
from cloister.hub.platform.catalogue.arrivals import kept as kept_upload
from cloister.hub.platform.catalogue.arrivals import sent, stored
from cloister.hub.platform.catalogue.registering import Wanted, registered
from cloister.hub.records.accounts import Person, WebSession
from cloister.hub.records.catalogue import Arrival, DataSet, DataSetVersion
from cloister.hub.records.jobs import Job
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.sites import SiteMessage
from cloister.hub.records.streams import HeldStream, StreamBatch
from cloister.hub.services.asking import QuestionRequest, ask
from cloister.hub.settings import Settings
from tests.hub.house import PEOPLE, Clock, House, Visitor

OTHER = hub_keyring(bytes(range(1, 33)))


def test_a_file_that_is_no_key_is_refused_without_being_shown(tmp_path: Path) -> None:
    (tmp_path / "master.key").write_text("canary !!!")
    with pytest.raises(InvalidParameter, match="not base64") as refused:
        master_key(None, tmp_path / "master.key", make=True)
    assert "canary" not in str(refused.value)
    (tmp_path / "raw.key").write_bytes(bytes(range(224, 256)))
    with pytest.raises(InvalidParameter, match="not base64"):
        master_key(None, tmp_path / "raw.key", make=False)
    made = master_key(None, tmp_path / "new.key", make=True)
    assert master_key(None, tmp_path / "new.key", make=False) == made
    assert master_key(base64.b64encode(made).decode() + "\n", tmp_path / "unused", make=False) == made


def test_a_secret_is_made_once_and_lies_wrapped(house: House) -> None:
    first = stored_secret(house.hub.database, house.hub.keys, "canary")
    assert stored_secret(house.hub.database, house.hub.keys, "canary") == first
    assert len(first) == 32
    assert first not in (house.settings.path("hub.db").read_bytes() + _wal(house.settings.data))
    with pytest.raises(WrongKey):
        stored_secret(house.hub.database, OTHER, "canary")


def _wal(data: Path) -> bytes:
    path = data / "hub.db-wal"
    return path.read_bytes() if path.exists() else b""


PLAIN = {
    "stored_release.body": "a release",
    "idempotency.response": "an answer that left",
}
"""Columns of bytes that are not wrapped, each with what it holds."""


def test_every_column_of_bytes_is_rotated_or_holds_no_secret() -> None:
    every_model()
    found = {
        f"{table.name}.{column.name}"
        for table in Base.metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, LargeBinary)
    }
    assert found == ROTATED | set(PLAIN)


def test_rotation_wraps_everything_and_what_it_wraps_still_opens(tmp_path: Path) -> None:
    house = House(tmp_path / "hub", Clock())
    ana, otto = house.person("analyst"), house.person("owner")
    house.sample_data_set(readers=[ana], owner=otto)
    sealed = house.hub.secret("ledger")
    with house.hub.database.begin() as db:
        db.get_one(Person, ana.id).totp = house.hub.keys.wrap(b"a second factor", f"second factor {ana.id}")
        session = db.scalars(select(WebSession).where(WebSession.person == ana.id)).one()
        session.setup = house.hub.keys.wrap(b"a setup", f"second factor setup {session.digest}")
    arrived = kept_upload(house.hub, otto.caller, sent(house.hub, [b"age,sex,pay\n30,F,1\n"], "csv"))
    _all_others(house, otto)
    fresh = hub_keyring(bytes(range(3, 35)))
    with house.hub.database.reading() as db:
        assert {f"{row.__tablename__}.{column}" for row, column, _ in _wrapped(db)} == ROTATED
        listed = sorted(getattr(row, column) for row, column, _ in _wrapped(db))
    assert listed == sorted(_bytes_in(house)), "every value of every column of bytes that holds a secret is on the list"
    assert rotate(house.hub, fresh) == len(listed)
    assert not set(listed) & set(_bytes_in(house)), "and none of them is as it was"
    house.close()
    with pytest.raises(WrongKey):
        House(tmp_path / "hub", Clock())
    (tmp_path / "hub" / "master.key").write_text(base64.b64encode(bytes(range(3, 35))).decode())
    again = House(tmp_path / "hub", Clock())
    assert again.hub.secret("ledger") == sealed
    with again.hub.database.reading() as db:
        for row, column, about in _wrapped(db):
            assert again.hub.keys.unwrap(getattr(row, column), about)
    asked = ask(again.hub, ana.caller, QuestionRequest(sql="SELECT COUNT(*) AS n FROM people", spend="0.1", purpose="x"))
    assert asked.release.num_rows == 1
    made = registered(
        again.hub, otto.caller, arrived.id, Wanted(name="more", title="More", declaration=PEOPLE, population="people")
    )
    assert made.state == "open"
    again.close()


def _all_others(house: House, otto: Visitor) -> None:
    """A connection that arrived, one that is a version, an upload, a trial, a job that waits, readings of a stream, and a message
    of another process with its answer."""
    keys, now = house.hub.keys, house.hub.now()
    columns = {"person": otto.id, "columns": [], "typed": {}, "created": now}
    waiting = kept_upload(house.hub, otto.caller, sent(house.hub, [b"age,sex,pay\n31,F,1\n"], "csv"))
    stored(house.hub, waiting)
    row = house.sample_data_set("elsewhere", owner=otto)
    with house.hub.database.begin() as db:
        db.add(Arrival(id="c1", kind="connection", wrapped=keys.wrap(b"an address", "connection c1"), **columns))
        db.get_one(DataSet, row.id).state = "closed"
        version = DataSetVersion(id="c2", data_set=row.id, number=2, kind="connection", created=now, created_by=otto.id)
        version.address = keys.wrap(b"an address", f"connection {version.place}")
        db.add(version)
        trial = OwnerView(id="t1", kind="trial", person=otto.id, data_set=row.id, order={}, created=now, wrapped=b"")
        trial.wrapped = keys.wrap(b"{}", trial.about)
        db.add(trial)
        job = Job(id="j1", kind="anonymizing.try", person=otto.id, payload={}, created=now)
        job.secret = keys.wrap(b"{}", job.about)
        db.add(job)
        told = {"parties": "p", "name": "north", "digest": "d", "round": "r", "most": 1, "since": 0.0, "ends": 0.0}
        message = SiteMessage(id="m1", **told)
        message.message, message.answer = keys.wrap(b"?", message.about), keys.wrap(b"!", f"answer to {message.about}")
        db.add(message)
        db.add(HeldStream(id="s1", owner=otto.id, title="A stream", declared={}, created=now))
        db.flush()
        db.add(StreamBatch(id="b1", stream="s1", arrived=now, last=1, body=keys.wrap(b"[]", "stream batch b1")))


def _bytes_in(house: House) -> list[bytes]:
    """Every value of every column of bytes, but those that hold no secret."""
    every_model()
    columns = [
        column
        for table in Base.metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, LargeBinary) and f"{table.name}.{column.name}" not in PLAIN
    ]
    with house.hub.database.reading() as db:
        return [value for column in columns for value in db.scalars(select(column).where(column.is_not(None)))]


def test_a_rotation_that_fails_changes_nothing(tmp_path: Path) -> None:
    house = House(tmp_path / "hub", Clock())
    ana = house.person("analyst")
    with house.hub.database.begin() as db:
        db.get_one(Person, ana.id).totp = OTHER.wrap(b"x", "of another hub")
    with pytest.raises(WrongKey):
        rotate(house.hub, OTHER)
    house.close()
    with Hub(Settings(data=tmp_path / "hub"), []) as hub:
        assert len(hub.secret("ledger")) == 32
