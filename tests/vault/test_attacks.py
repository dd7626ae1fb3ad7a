"""What an attacker who reads the claims would try: against forgetting, forward privacy, and what the store may hand back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.crypto import WrongKey
from cloister.vault import Equal, Random, Range, Sum, Tampered
from cloister.vault.keys import DataSetKeys
from cloister.vault.state import State
from cloister.vault.store import Changes, Mark
from cloister.vault.vault import store_at
from tests.vault.conftest import FIELDS, Place
from tests.vault.test_lifecycle import Killed, killed


def test_an_old_copy_and_the_owners_key_do_not_open_the_index(place: Place) -> None:
    """Somebody who has every wrapped key that the store ever had guesses words: none leads to a record."""
    made = place.store.collection("patients", {"patient": Equal(), "weight": Range(0, 255)}, person="patient")
    made.insert_one({"_id": 1, "patient": "p1", "weight": 80})
    older = place.snapshot("older.db")
    assert place.store.forget("p1") == 1
    stolen = DataSetKeys(cl.vault.Keys(bytes.fromhex(place.keys_file.read_text()), state=State()), "default")
    store = store_at(f"sqlite:///{older}")
    for number, wrapped in store.epochs(stolen.id).items():
        stolen.state.add_epoch(stolen.id, number, wrapped)
    (table,) = store.collections(stolen.id)
    for name, value in (("patient", "p1"), ("weight", 80)):
        for word in made.fields[name].words(value):
            try:
                key = stolen.word(1, table, name, word)
            except WrongKey:
                continue
            assert store.entries(table, [key.address(0)]) == {}
    store.close()


def test_a_store_and_a_state_from_a_backup_use_no_position_again(filled: Place, tmp_path: Path) -> None:
    """The server saw what was written after the backup: the same addresses would join those entries with the new ones."""
    store, keys = filled.snapshot("monday.db"), tmp_path / "monday.keys"
    filled.keys.backup(keys)
    filled.people().insert_one({"_id": 4, "town": "canary-Basel", "age": 9})
    seen = {address for (address,) in filled.sql("SELECT address FROM {I}")}
    before = {address for (address,) in filled.sql("SELECT address FROM {I}")} - _addresses(filled, store)
    assert len(before) == 9
    filled.roll_back(store)
    filled.store.close()
    filled.keys.close()
    filled.keys = cl.vault.Keys.load(keys)
    filled.store = filled.vault()
    filled.people().insert_one({"_id": 5, "town": "canary-Basel", "age": 9})
    now = {address for (address,) in filled.sql("SELECT address FROM {I}")}
    assert len(now) == len(seen)
    assert not before & now
    assert sorted(each["_id"] for each in filled.people().find({"town": "canary-Basel"})) == [1, 3, 5]
    assert filled.store.rotate()
    assert filled.store.verify()


def _addresses(place: Place, snapshot: Path) -> set[bytes]:
    import sqlite3

    table = place.people().reader.table
    with sqlite3.connect(snapshot) as connection:
        found = {address for (address,) in connection.execute(f'SELECT address FROM "i_{table}"')}
    connection.close()
    return found


def test_nothing_in_the_file_tells_in_which_order_a_batch_came(place: Place) -> None:
    """SQLite lays cells out in a page in the order in which they come: that of the documents would show."""
    people = place.people()
    written: list[bytes] = []
    write = people.reader.store.write

    def watched(name: str, mark: Mark, changes: Changes) -> None:
        written.extend(row.handle for row in changes.rows)
        write(name, mark, changes)

    people.reader.store.write = watched  # type: ignore[method-assign]
    people.insert_many({"_id": number} for number in range(40))
    assert written == sorted(written)


def test_many_are_checked_before_the_first_is_written(place: Place) -> None:
    people = place.people()
    for last in ({"name": object()}, {"name": "x" * 2**25}, {"name": {"$a": 1}}):
        with pytest.raises(cl.InvalidParameter):
            people.insert_many([*({"_id": number} for number in range(501)), last])
        assert people.count_documents({}) == 0


def test_a_count_after_a_crash_is_that_of_the_documents(filled: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "apply", killed)
    with pytest.raises(Killed):
        filled.people().insert_one({"_id": 4})
    monkeypatch.undo()
    filled.restart()
    assert filled.people().count_documents({}) == len(filled.people().find()) == 4


def test_a_version_does_not_come_back_with_the_document(filled: Place) -> None:
    """Somebody reads, another deletes and inserts again, and the first one writes: it would undo what it never saw."""
    people = filled.people()
    version = people.version(1)
    people.delete_one({"_id": 1})
    people.insert_one({"_id": 1, "name": "other"})
    with pytest.raises(cl.vault.Conflict):
        people.replace_one({"_id": 1}, {"name": "mine"}, version=version)


def test_who_loses_the_race_to_declare_a_collection_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    second = cl.vault.Vault(f"sqlite:///{place.file}", cl.vault.Keys.load(place.keys_file))
    create = cl.vault.Vault._create

    def late(vault: cl.vault.Vault, *given: Any, **named: Any) -> None:
        monkeypatch.undo()
        second.collection("people", {"town": Random()})
        create(vault, *given, **named)

    monkeypatch.setattr(cl.vault.Vault, "_create", late)
    with pytest.raises(cl.InvalidDeclaration, match="other fields"):
        place.store.collection("people", {"town": Equal(), "age": Sum()})
    second.close()


HOSTILE = {
    "no records": "DROP TABLE {R}",
    "no index": "DROP TABLE {I}",
    "a collection that is no text": "INSERT INTO collections SELECT x'ff', data_set, counter, root, mac, sealed FROM collections",
    "a collection that is a number": "INSERT INTO collections SELECT 7, data_set, counter, root, mac, sealed FROM collections",
    "a text that is none": "UPDATE {R} SET body = CAST(x'ff' AS TEXT)",
    "an epoch that is a text": "UPDATE epochs SET epoch = 'x'",
    "a wrapped key that is nothing": "UPDATE epochs SET wrapped = NULL",
    "a wrapped key that is a number": "UPDATE epochs SET wrapped = 7",
    "a wrapped key that is a text": "UPDATE epochs SET wrapped = 'x'",
    "a shorter handle": "UPDATE {R} SET handle = x'00' WHERE handle = (SELECT min(handle) FROM {R})",
}


@pytest.mark.parametrize("statement", list(HOSTILE.values()), ids=list(HOSTILE))
def test_a_store_of_another_form_is_a_problem_and_no_accident(filled: Place, statement: str) -> None:
    """Also to a client that makes its state again, and has nothing but the owner's key to check it with."""
    filled.people()
    filled.sql(statement)
    problems = filled.store.verify()
    assert not problems
    assert "canary-B" not in str(problems)
    filled.store.close()
    filled.keys.close()
    filled.keys_file.with_name(filled.keys_file.name + ".state").unlink()
    filled.keys = cl.vault.Keys.load(filled.keys_file)
    url = f"sqlite:///{filled.file}"
    with pytest.raises((Tampered, WrongKey, cl.EngineError, cl.InvalidParameter)):
        cl.vault.Vault.restore(url, filled.keys)


def test_a_column_too_many_changes_nothing_that_is_read(filled: Place) -> None:
    filled.sql("ALTER TABLE {R} ADD COLUMN more TEXT")
    assert len(filled.people().find()) == 3
    assert filled.store.verify()


def test_what_python_would_refuse_is_refused_in_our_words(filled: Place) -> None:
    people = filled.people()
    deep: dict[str, Any] = {"_id": 1}
    key: Any = "$town"
    for _ in range(5_000):
        deep, key = {"$and": [deep]}, {"a": key}
    with pytest.raises(cl.InvalidParameter, match="100 levels"):
        people.find(deep)
    with pytest.raises(cl.InvalidParameter, match="100 levels"):
        people.aggregate([{"$group": {"_id": key}}])
    people.update_one({"_id": 1}, {"$set": {"pay": 10**400}})
    with pytest.raises(cl.InvalidParameter, match="finite"):
        people.update_one({"_id": 1}, {"$inc": {"pay": 0.5}})
    with pytest.raises(cl.InvalidParameter, match="only SQLite"):
        cl.vault.Vault("sqlite:///a\0b", filled.keys)
    with pytest.raises(cl.InvalidParameter, match="two operators"):
        people.update_one({"_id": 1}, {"$set": {"pay": 1}, "$inc": {"pay": 1}})
    for projection in ([["age"]], [7], "age", 7):
        with pytest.raises((cl.InvalidParameter, cl.UnknownColumn)):
            people.find({}, projection)
    assert filled.store.verify()


def test_an_index_follows_from_the_declaration(filled: Place) -> None:
    people = filled.people()
    assert people.create_index("town") == "town_1"
    assert people.create_index([("age", -1)]) == "age_-1"
    assert people.create_index("_id") == "_id_1"
    with pytest.raises(cl.UnsupportedQuery, match=r"Equal\(\) or Range"):
        people.create_index("name")
    with pytest.raises(cl.UnknownColumn):
        people.create_index("canary")
    for wrong in ([], [("town", 1), ("age", 1)], {"town": 1}, ["town"], 3):
        with pytest.raises(cl.UnsupportedQuery, match="one field"):
            people.create_index(wrong)  # type: ignore[arg-type]


def test_what_users_of_pymongo_expect(filled: Place) -> None:
    from datetime import UTC, datetime, timedelta, timezone

    people = filled.people()
    assert people.find_one({"_id": 1}, {"_id": 1}) == {"_id": 1}
    assert people.find_one({"_id": 1}, []) == {"_id": 1}
    visits = filled.store.collection("visits", {"at": Equal()})
    visits.insert_one({"_id": 1, "at": datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))})
    assert visits.count_documents({"at": datetime(2026, 1, 1, 12, tzinfo=UTC)}) == 1


def test_a_state_from_a_backup_meets_a_newer_store(filled: Place, tmp_path: Path) -> None:
    """It begins an epoch of its own on an older copy of the store; the newer one has another key under the same number."""
    keys = tmp_path / "monday.keys"
    older = filled.snapshot("older.db")
    filled.keys.backup(keys)
    filled.people().insert_one({"_id": 4, "town": "canary-Basel"})
    assert filled.store.rotate()
    newer = filled.snapshot("newer.db")
    filled.keys.close()
    filled.keys = cl.vault.Keys.load(keys)
    filled.roll_back(older)
    filled.people().insert_one({"_id": 5, "town": "canary-Bern"})
    filled.roll_back(newer)
    with pytest.raises(cl.CloisterError):
        filled.people().find()
    filled.store.close()
    filled.store = cl.vault.Vault.restore(f"sqlite:///{filled.file}", filled.keys)
    assert sorted(each["_id"] for each in filled.people().find()) == [1, 2, 3, 4]
    assert sorted(each["_id"] for each in filled.people().find({"town": "canary-Basel"})) == [1, 3, 4]
    assert filled.store.verify()


def test_a_collection_that_the_store_lost_is_missing_and_not_unknown(filled: Place) -> None:
    filled.sql("DELETE FROM collections")
    filled.restart()
    for fields in (None, FIELDS):
        with pytest.raises(Tampered, match="missing"):
            filled.store.collection("canary-people", fields)


def test_a_file_whose_schema_is_no_text_is_refused_in_our_words(filled: Place) -> None:
    filled.people()
    filled.snapshot("copy.db")
    data = (filled.folder / "copy.db").read_bytes()
    for old in (b"CREATE TABLE", b"WITHOUT ROWID"):
        (filled.folder / "bad.db").write_bytes(data.replace(old, b"\xd7" * len(old)))
        with pytest.raises(cl.EngineError):
            cl.vault.Vault(f"sqlite:///{filled.folder}/bad.db", filled.keys)


def test_a_rotation_deletes_the_key_of_the_index_everywhere(filled: Place) -> None:
    """So an old copy of the index opens to nobody: no file has the key any more."""
    keys = filled.people().reader.keys
    (wrapped,) = keys.state.index_keys(keys.id).values()

    def holders() -> list[Path]:
        return [path for path in filled.folder.rglob("*") if path.is_file() and wrapped in path.read_bytes()]

    assert {path.parent for path in holders()} == {filled.keys_file.parent}
    assert filled.store.rotate()
    assert holders() == []
