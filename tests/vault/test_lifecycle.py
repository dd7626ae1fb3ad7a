"""Crashes, rotation, forgetting and restoration: nothing is lost, nothing comes back that should not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.crypto import WrongKey
from cloister.vault import Conflict, Equal, Random, Range, Tampered
from cloister.vault.collection import Collection
from cloister.vault.state import State
from cloister.vault.store import Store
from tests.vault.conftest import FIELDS, PEOPLE, Place


class Killed(Exception):
    """The process ends here."""


def killed(*_: Any, **__: Any) -> Any:
    raise Killed


def killed_after(act: Callable[..., Any]) -> Callable[..., Any]:
    def acting(*given: Any, **named: Any) -> Any:
        act(*given, **named)
        raise Killed

    return acting


CRASHES = {
    "before the change is proposed": (State, "propose", False, False),
    "between proposal and store": (Store, "write", False, False),
    "before the store commits": (Store, "write", True, False),
    "between store and state": (State, "apply", False, True),
    "after the state": (State, "apply", True, True),
}


@pytest.mark.parametrize("where", list(CRASHES))
@pytest.mark.parametrize("act", ["insert", "update", "delete"])
def test_a_killed_change_is_whole_or_not_there(filled: Place, where: str, act: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, name, after, done = CRASHES[where]
    people = filled.people()
    monkeypatch.setattr(kind, name, killed_after(getattr(kind, name)) if after else killed)
    acts: dict[str, Callable[[], Any]] = {
        "insert": lambda: people.insert_one({"_id": 4, "town": "canary-Basel", "age": 9}),
        "update": lambda: people.update_one({"_id": 1}, {"$set": {"town": "canary-Bern"}}),
        "delete": lambda: people.delete_one({"_id": 1}),
    }
    with pytest.raises(Killed):
        acts[act]()
    monkeypatch.undo()
    filled.restart()
    people = filled.people()
    expected = {"insert": [1, 3, 4], "update": [3], "delete": [3]}[act] if done else [1, 3]
    assert sorted(each["_id"] for each in people.find({"town": "canary-Basel"})) == expected
    people.insert_one({"_id": 5, "town": "canary-Basel", "age": 10})
    assert sorted(each["_id"] for each in people.find({"town": "canary-Basel"})) == [*expected, 5]
    assert filled.store.verify()


def test_a_position_that_a_killed_change_used_is_never_used_again(filled: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store may have seen what it says was never written: two entries under one mask would show equal words."""
    seen: list[bytes] = []
    write = Store.write

    def watched(self: Store, name: str, mark: Any, changes: Any) -> None:
        seen.extend(address for address, _, _ in changes.entries)
        raise Killed

    monkeypatch.setattr(Store, "write", watched)
    with pytest.raises(Killed):
        filled.people().insert_one({"_id": 4, "town": "canary-Basel", "age": 9})
    monkeypatch.setattr(Store, "write", write)
    filled.restart()
    filled.people().insert_one({"_id": 4, "town": "canary-Basel", "age": 9})
    now = {address for (address,) in filled.sql("SELECT address FROM {I}")}
    assert len(seen) == 9
    assert not now & set(seen)


def test_a_process_that_is_killed_leaves_a_vault_that_opens(place: Place) -> None:
    place.people().insert_one({"_id": -1, "town": "x", "age": 1})
    place.store.close()
    program = (
        "import sys, cloister as cl\n"
        "people = cl.vault.Vault('sqlite:///' + sys.argv[1], cl.vault.Keys.load(sys.argv[2])).collection('canary-people')\n"
        "for number in range(10**6):\n"
        "    people.insert_one({'_id': number, 'town': 'x', 'age': number % 100})\n"
        "    print(number, flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, place.file, place.keys_file], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = [int(child.stdout.readline()) for _ in range(20)]
    os.kill(child.pid, signal.SIGKILL)
    said += [int(line) for line in child.stdout.read().split()]
    child.wait()
    place.restart()
    found = sorted(each["_id"] for each in place.people().find({"town": "x"}))
    assert found[: len(said) + 1] == [-1, *said]  # every acknowledged one; the last may be there unacknowledged
    assert len(found) <= len(said) + 2
    assert place.store.verify()


@pytest.mark.parametrize("batches", [0, 1, None])
def test_a_rotation_after_a_crash_loses_nothing(place: Place, batches: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store has a record that the state has not heard of yet: the key of its epoch stays until it is under another one."""
    people = place.people()
    with monkeypatch.context() as patched:
        patched.setattr(State, "apply", killed)
        with pytest.raises(Killed):
            people.insert_one({"_id": 4, "town": "canary-Basel", "age": 9})
    place.restart()
    place.store.rotate(batches=batches)
    assert [each["_id"] for each in place.people().find()] == [4]


def test_keys_rotate_while_the_vault_is_in_use(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.vault.vault.BATCH", 4)
    people = place.people()
    people.insert_many({"_id": number, "town": f"t{number % 3}", "age": number} for number in range(20))
    old = {body for (body,) in place.sql("SELECT body FROM {R}")}
    addresses = {address for (address,) in place.sql("SELECT address FROM {I}")}
    assert place.store.rotate(batches=2) is False
    assert sorted({epoch for (epoch,) in place.sql("SELECT epoch FROM {R}")}) == [1, 2]
    place.restart()
    people = place.people()
    people.insert_one({"_id": 20, "town": "t0", "age": 20})
    people.update_one({"_id": 19}, {"$set": {"town": "t0"}})
    people.delete_one({"_id": 0})
    for _ in range(20):
        expected = [number for number in range(21) if number and (number > 18 or number % 3 == 0)]
        assert sorted(each["_id"] for each in people.find({"town": "t0"})) == expected
        assert sorted(each["_id"] for each in people.find({"age": {"$gt": 17}})) == [18, 19, 20]
        assert place.store.verify()
        if place.store.rotate(batches=1):
            break
    else:
        pytest.fail("the rotation did not end")
    assert {epoch for (epoch,) in place.sql("SELECT epoch FROM {R}")} == {2}
    assert not old & {body for (body,) in place.sql("SELECT body FROM {R}")}
    assert not addresses & {address for (address,) in place.sql("SELECT address FROM {I}")}
    assert place.sql("SELECT epoch FROM epochs") == [(2,)]
    assert list(place.keys._state.epochs(people.reader.keys.id)) == [2]


def patients(place: Place) -> Collection:
    fields = {"patient": Equal(), "note": Random(), "weight": Range(0, 255)}
    return place.store.collection("patients", fields, person="patient")


def test_a_person_is_forgotten_in_old_copies_too(place: Place) -> None:
    made = patients(place)
    made.insert_many({"_id": number, "patient": f"p{number % 3}", "note": "n", "weight": number} for number in range(9))
    older = place.snapshot("older.db")
    row = next(row for row in made.reader.store.records(made.reader.table) if made.reader.sealer.opened(row)["patient"] == "p1")
    entries = len(place.sql("SELECT * FROM {I}"))
    wrapped = place.keys._state.person(made.reader.keys.id, made.reader.keys._person("p1"))
    assert wrapped is not None
    assert any(wrapped[1] in path.read_bytes() for path in place.keys_file.parent.iterdir())
    assert place.store.forget("p1") == 3
    assert not any(secret in path.read_bytes() for path in place.keys_file.parent.iterdir() for secret in wrapped)
    assert place.store.forget("p1") == 0
    assert len(place.sql("SELECT * FROM {R}")) == 6
    assert len(place.sql("SELECT * FROM {I}")) == entries - 3 * 10  # one word of the patient, nine nodes of the weight
    assert made.find({"patient": "p1"}) == []
    assert sorted(each["_id"] for each in made.find({"weight": {"$lt": 9}})) == [0, 2, 3, 5, 6, 8]
    assert place.store.verify()
    with pytest.raises(WrongKey, match="forgotten"):
        made.reader.sealer.opened(row)  # with the owner's key, from before
    place.roll_back(older)
    url = f"sqlite:///{place.file}"
    with pytest.raises(Conflict, match="3 records of people whose keys are not in the client's state"):
        cl.vault.Vault.restore(url, place.keys)
    restored = cl.vault.Vault.restore(url, place.keys, delete_people=True)
    assert len(restored.collection("patients").find()) == 6
    assert restored.verify()
    restored.close()
    made = patients(place)
    made.insert_one({"_id": 1, "patient": "p1", "weight": 3})  # a new key, a new pseudonym
    assert made.find({"patient": "p1"}) == [{"_id": 1, "patient": "p1", "weight": 3}]
    with pytest.raises(cl.InvalidParameter, match="whose record it is"):
        made.insert_one({"_id": 99, "weight": 3})


def test_whatever_the_store_does_the_key_of_a_person_goes(place: Place) -> None:
    """An altered entry of the index, then a table that is not there: the call fails, and no old copy is readable any more."""
    made, state = patients(place), place.keys._state
    made.insert_many({"_id": number, "patient": f"p{number % 3}", "note": "n", "weight": number} for number in range(9))
    place.sql("UPDATE {I} SET content = zeroblob(length(content))")
    with pytest.raises(Tampered):
        place.store.forget("p1")
    assert len(place.sql("SELECT * FROM {R}")) == 6
    assert place.store.forget("p1") == 0
    assert state.person(made.reader.keys.id, made.reader.keys._person("p1")) is None
    wrapped = state.person(made.reader.keys.id, made.reader.keys._person("p2"))
    assert wrapped is not None
    kept = place.sql("SELECT handle, body FROM {R}")
    place.sql("UPDATE {R} SET body = 'x'")
    with pytest.raises(Tampered):
        place.store.forget("p2")
    assert not any(wrapped[1] in path.read_bytes() for path in place.keys_file.parent.iterdir())
    for handle, body in kept:  # the store is mended
        place.sql("UPDATE {R} SET body = ? WHERE handle = ?", body, handle)
    with pytest.raises(Tampered):  # of its entries, once more
        place.store.forget("p0")
    with pytest.raises(WrongKey, match="forgotten"):
        made.find()
    assert place.store.forget("p2") == 3
    assert made.find() == []


def test_a_collection_that_the_store_lists_no_longer_is_a_problem(place: Place) -> None:
    patients(place)
    assert place.store.verify()
    place.sql("UPDATE collections SET data_set = 'else'")
    found = place.store.verify()
    assert not found
    assert "lists a collection no longer" in found.problems[0]


def test_a_lost_state_is_made_again(filled: Place) -> None:
    filled.store.close()
    filled.keys.close()
    for path in filled.keys_file.parent.glob("*.state*"):
        path.unlink()
    filled.keys = cl.vault.Keys.load(filled.keys_file)
    with pytest.raises(Conflict, match="has lost it"):
        filled.vault()
    filled.store = cl.vault.Vault.restore(f"sqlite:///{filled.file}", filled.keys)
    people = filled.store.collection("canary-people")
    assert sorted(people.find(), key=lambda each: each["_id"]) == PEOPLE
    assert [each["_id"] for each in people.find({"age": {"$gte": 60}})] == [3]
    assert filled.store.verify()
    filled.restart()
    assert filled.people().count_documents({}) == 3


def test_a_state_that_is_lost_takes_no_persons_records_with_it_unasked(place: Place, tmp_path: Path) -> None:
    patients(place).insert_many({"_id": number, "patient": f"p{number}", "note": "n"} for number in range(4))
    monday, url = tmp_path / "monday.keys", f"sqlite:///{place.file}"
    place.keys.backup(monday)
    place.store.close()
    place.keys.close()
    state = place.keys_file.with_name(f"{place.keys_file.name}.state")
    for path in place.keys_file.parent.glob("*.state*"):
        path.unlink()
    keys = cl.vault.Keys.load(place.keys_file)
    with pytest.raises(Conflict, match="4 records of people"):
        cl.vault.Vault.restore(url, keys)
    keys.close()
    for path in place.keys_file.parent.glob("*.state*"):
        path.unlink()
    shutil.copy(monday.with_name("monday.keys.state"), state)
    place.keys = cl.vault.Keys.load(place.keys_file)
    place.store = cl.vault.Vault.restore(url, place.keys)
    assert sorted(each["_id"] for each in place.store.collection("patients").find()) == [0, 1, 2, 3]
    assert place.store.verify()


def test_a_copy_from_before_a_rotation_is_restored(filled: Place) -> None:
    older = filled.snapshot("older.db")
    assert filled.store.rotate()
    filled.people().delete_one({"_id": 1})
    filled.roll_back(older)
    with pytest.raises(Tampered, match="rolled back"):
        filled.people().find()
    filled.store.close()
    filled.store = cl.vault.Vault.restore(f"sqlite:///{filled.file}", filled.keys)
    assert sorted(filled.people().find(), key=lambda each: each["_id"]) == PEOPLE
    assert filled.sql("SELECT epoch FROM epochs") == [(3,)]
    assert filled.store.verify()


def test_a_restoration_that_is_killed_is_begun_again(filled: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{filled.file}"
    monkeypatch.setattr(Collection, "end_epoch", killed)
    with pytest.raises(Killed):
        cl.vault.Vault.restore(url, filled.keys)
    monkeypatch.undo()
    with pytest.raises(Conflict, match="restoration"):
        filled.vault()
    filled.store = cl.vault.Vault.restore(url, filled.keys)
    assert len(filled.people().find({"town": "canary-Basel"})) == 2
    assert filled.store.verify()


def test_a_restoration_refuses_what_the_owner_did_not_write(filled: Place) -> None:
    filled.sql("DELETE FROM {R} WHERE handle = (SELECT min(handle) FROM {R})")
    with pytest.raises(Tampered, match="not as its owner wrote it"):
        cl.vault.Vault.restore(f"sqlite:///{filled.file}", filled.keys)
    with pytest.raises(cl.InvalidParameter, match="nothing of this owner"):
        cl.vault.Vault.restore(f"sqlite:///{filled.file}", cl.vault.Keys.generate())


def test_backups_of_both_sides_open_together(filled: Place, tmp_path: Path) -> None:
    store, keys = filled.snapshot("monday.db"), tmp_path / "monday.keys"
    filled.keys.backup(keys)
    filled.people().delete_one({"_id": 1})
    shutil.copy(store, tmp_path / "again.db")
    with cl.vault.Vault(f"sqlite:///{tmp_path}/again.db", cl.vault.Keys.load(keys)) as found:
        assert found.collection("canary-people").count_documents({}) == 3
        assert found.verify()
    for path in (keys, *filled.keys_file.parent.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path.name
    assert keys.with_name("monday.keys.state").stat().st_mode & 0o077 == 0
    with pytest.raises(cl.InvalidParameter, match="there already"):
        filled.keys.backup(keys)
    with pytest.raises(cl.InvalidParameter, match="there already"):
        cl.vault.Keys.generate(keys)
    with pytest.raises(cl.InvalidParameter, match="missing"):
        cl.vault.Keys.load(tmp_path / "none.keys")


def test_a_backup_that_was_killed_is_none_and_is_made_again(
    filled: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise Killed

    monday, half = tmp_path / "monday.keys", tmp_path / "monday.keys.state"
    for name in ("copy", "call_copied"):
        with monkeypatch.context() as once:
            once.setattr(f"cloister.vault.{'database.Database' if name == 'copy' else 'state.State'}.{name}", killed)
            with pytest.raises(Killed):
                filled.keys.backup(monday)
        assert half.exists()
        with pytest.raises(cl.InvalidParameter, match="the file is missing"):
            cl.vault.Keys.load(monday)
    filled.keys.backup(monday)
    cl.vault.Keys.load(monday).close()


def test_a_backup_opens_until_its_last_day_and_goes_on_if_it_is_used(
    filled: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(days=days)

    days, today = 0, datetime.now(UTC).date()
    monkeypatch.setattr("cloister.vault.keys.datetime", Later)
    last = today + timedelta(days=7)
    store = filled.snapshot("monday.db")
    for name in ("one", "two"):
        filled.keys.backup(tmp_path / name, expires=last)
    filled.keys.backup(tmp_path / "endless")
    days = 5
    cl.vault.Keys.load(tmp_path / "one").close()
    used = cl.vault.Keys.load(tmp_path / "two")
    with cl.vault.Vault(f"sqlite:///{store}", used) as going_on:
        assert going_on.collection("canary-people").count_documents({}) == 3
    used.close()
    days = 9
    with pytest.raises(cl.vault.BackupExpired, match=f"its last day was {last}") as caught:
        cl.vault.Keys.load(tmp_path / "one")
    assert "delete this one" in str(caught.value)
    for name in ("two", "endless"):
        cl.vault.Keys.load(tmp_path / name).close()
    for wrong in (today, datetime.now(UTC), "2030-01-01"):
        with pytest.raises(cl.InvalidParameter, match="from today on"):
            filled.keys.backup(tmp_path / "three", expires=wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "three").exists()


def test_a_vault_in_process_notes_each_detection_once(filled: Place) -> None:
    noted: list[tuple[str, Mapping[str, str]]] = []
    filled.people()
    with filled.vault(note=lambda event, details: noted.append((event, details))) as store:
        people = store.collection("canary-people")
        people.find()
        assert store.verify()
        with pytest.raises(cl.vault.DuplicateKey):
            people.insert_one({"_id": 1})
        assert noted == []
        filled.sql("DELETE FROM {R} WHERE handle = (SELECT min(handle) FROM {R})")
        for act in (people.find, lambda: people.aggregate([{"$sort": {"age": 1}}]), lambda: people.delete_many({})):
            with pytest.raises(Tampered):
                act()
        assert [(event, details["what"]) for event, details in noted] == [("alert", "A record is missing")] * 3
        del noted[:]
        assert not store.verify()
        assert len(noted) == 1
        assert "canary-B" not in str(noted)


@pytest.mark.parametrize("url", ["mysql://x", "sealed.db", "sqlite://sealed.db", "sqlite:///"])
def test_only_files_of_sqlite_are_stores(url: str) -> None:
    with pytest.raises(cl.InvalidParameter, match="only SQLite files and PostgreSQL"):
        cl.vault.Vault(url, cl.vault.Keys.generate())


def test_a_store_that_is_down_says_nothing_of_what_is_in_it(filled: Place) -> None:
    people = filled.people()
    filled.store.close()
    with pytest.raises(cl.EngineError) as caught:
        people.insert_one({"_id": 4, "name": "canary-Dee"})
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None
    filled.store = filled.vault()
    filled.file.with_name("bad.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(cl.EngineError):
        cl.vault.Vault(f"sqlite:///{filled.folder}/bad.db", filled.keys)


def test_versions_count_and_names_are_stable(filled: Place) -> None:
    people = filled.people()
    filled.people().update_one({"_id": 1}, {"$inc": {"pay": 1}})
    assert people.version(1) == 2
    assert people.replace_one({"_id": 1}, {"town": "x"}, version=2).modified_count == 1
    with pytest.raises(cl.InvalidParameter, match="not found"):
        people.version(99)
    assert repr(filled.keys) == "<Keys>"
    assert FIELDS.keys() == people.fields.keys()
    assert filled.store.collections() == ["canary-people"]
