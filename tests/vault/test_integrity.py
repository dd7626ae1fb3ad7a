"""What a server that is not trusted does to its file is noticed; what it is not told can't be read there."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.crypto import RandomizedCipher, WrongKey
from cloister.vault import Conflict, Tampered
from tests.vault.conftest import FIELDS, PEOPLE, Place

SECRETS = (b"canary", b"Basel", b"70001", str(2**80).encode(), hex(2**80).encode())


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_value_and_no_name_is_in_any_file_of_store_or_client(filled: Place) -> None:
    people = filled.people()
    people.find({"town": "canary-Basel", "age": {"$gte": 40}})
    people.update_one({"_id": 1}, {"$set": {"name": "canary-Adele"}})
    people.delete_one({"_id": 2})
    found = files(filled.folder)
    assert any(name.endswith("sealed.db-wal") and data for name, data in found.items())  # the log is searched, too
    assert [(name, secret) for name, data in found.items() for secret in SECRETS if secret in data] == []
    for name in FIELDS:
        assert not any(f'"{name}"'.encode() in data for data in found.values())


def test_the_same_search_finds_the_values_of_a_plain_twin(tmp_path: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(tmp_path / "plain.db")
    connection.execute("CREATE TABLE people (body TEXT)")
    connection.executemany("INSERT INTO people VALUES (?)", [[json.dumps(each)] for each in PEOPLE])
    connection.commit()
    connection.close()
    data = (tmp_path / "plain.db").read_bytes()
    assert all(secret in data for secret in SECRETS[:4])


def test_equal_values_and_equal_documents_look_different(place: Place) -> None:
    place.people().insert_many([{**PEOPLE[0], "_id": number} for number in range(20)])
    bodies = [json.loads(body) for (body,) in place.sql("SELECT body FROM {R}")]
    assert len({value for body in bodies for value in body.values()}) == 20 * len(bodies[0])
    assert len({len(body) for body in place.sql("SELECT body FROM {R}")}) == 1
    contents = [content for (content,) in place.sql("SELECT content FROM {I}")]
    assert len(set(contents)) == len(contents) == 20 * 9  # one word of the town, eight nodes of the age


def test_an_update_adds_as_many_entries_whether_the_value_moved_far_or_not(place: Place) -> None:
    people = place.people()
    people.insert_one({"_id": 1, "age": 40})
    before = added = len(place.sql("SELECT * FROM {I}"))
    for age in (41, 120, 0, None):
        people.update_one({"_id": 1}, {"$set": {"age": age}})
        added, before = len(place.sql("SELECT * FROM {I}")) - before, len(place.sql("SELECT * FROM {I}"))
        assert added == 8
        assert people.count_documents({"age": age}) == 1
    assert place.store.verify()


def test_a_missing_value_looks_like_any_other(place: Place) -> None:
    place.people().insert_one({"_id": 1, "name": "x", "age": 3, "town": "y", "pay": 1})
    full = (len(place.sql("SELECT * FROM {I}")), [len(body) for (body,) in place.sql("SELECT body FROM {R}")])
    place.people().insert_one({"_id": 2})
    assert len(place.sql("SELECT * FROM {I}")) == 2 * full[0]
    assert [len(body) for (body,) in place.sql("SELECT body FROM {R}")] == 2 * full[1]


ALTERATIONS = {
    "a flipped ciphertext": "UPDATE {R} SET body = replace(body, substr(body, 60, 4), 'AAAA') WHERE rowid_is",
    "a truncated ciphertext": "UPDATE {R} SET body = substr(body, 1, length(body) - 40) || '\"}' WHERE rowid_is",
    "an empty body": "UPDATE {R} SET body = '{}' WHERE rowid_is",
    "another version": "UPDATE {R} SET version = version + 1 WHERE rowid_is",
    "a version that is none": "UPDATE {R} SET version = -5 WHERE rowid_is",
    "a version that is a text": "UPDATE {R} SET version = 'x' WHERE rowid_is",
    "a body that is nothing": "UPDATE {R} SET body = NULL WHERE rowid_is",
    "a body that is no text": "UPDATE {R} SET body = randomblob(9) WHERE rowid_is",
    "an entry that is nothing": "UPDATE {I} SET content = NULL",
    "a counter that is none": "UPDATE collections SET counter = 'x'",
    "a negative counter": "UPDATE collections SET counter = -1",
    "a root that is nothing": "UPDATE collections SET root = NULL",
    "no declaration": "UPDATE collections SET sealed = NULL",
    "another declaration": "UPDATE collections SET sealed = randomblob(90)",
    "another epoch": "UPDATE {R} SET epoch = 0 WHERE rowid_is",
    "another handle": "UPDATE {R} SET handle = randomblob(16) WHERE rowid_is",
    "an omitted record": "DELETE FROM {R} WHERE rowid_is",
    "a duplicated record": "INSERT INTO {R} SELECT randomblob(16), epoch, version, body FROM {R} LIMIT 1",
    "another record's body": "UPDATE {R} SET body = (SELECT body FROM {R} ORDER BY handle DESC LIMIT 1) WHERE rowid_is",
    "an omitted entry": "DELETE FROM {I} WHERE address = (SELECT min(address) FROM {I})",
    "a changed entry": "UPDATE {I} SET content = randomblob(32)",
    "swapped entries": "UPDATE {I} SET content = (SELECT max(content) FROM {I})",
    "an entry too many": "INSERT INTO {I} VALUES (randomblob(16), 1, randomblob(32))",
    "a changed counter": "UPDATE collections SET counter = counter + 1",
    "a changed root": "UPDATE collections SET root = randomblob(32)",
    "a forged HMAC": "UPDATE collections SET mac = randomblob(32)",
    "no collection": "DELETE FROM collections",
    "a changed wrapped key": "UPDATE epochs SET wrapped = randomblob(60)",
}


@pytest.mark.parametrize("statement", list(ALTERATIONS.values()), ids=list(ALTERATIONS))
def test_an_alteration_is_found_by_verify(filled: Place, statement: str) -> None:
    filled.people()
    assert filled.store.verify()
    filled.sql(statement.replace("rowid_is", "handle = (SELECT min(handle) FROM {R})"))
    found = filled.store.verify()
    assert not found
    assert not any(secret.decode() in str(found).replace("canary-people", "") for secret in SECRETS)


@pytest.mark.parametrize("name", [name for name in ALTERATIONS if "record" in name or "body" in name or "ciphertext" in name])
def test_an_altered_record_is_refused_when_it_is_read(filled: Place, name: str) -> None:
    people = filled.people()
    filled.sql(ALTERATIONS[name].replace("rowid_is", "1 = 1" if "handle" not in name else "1"))
    with pytest.raises(Tampered):
        people.find()
    if "duplicated" not in name and "another record" not in name:
        with pytest.raises(Tampered):
            people.find({"town": "canary-Basel"})


def test_a_result_that_is_left_out_is_missed(filled: Place) -> None:
    people = filled.people()
    filled.sql("DELETE FROM {I}")
    for query in ({"town": "canary-Basel"}, {"age": {"$lt": 50}}):
        with pytest.raises(Tampered, match="an entry is missing"):
            people.find(query)
    assert len(people.find({"town": "canary-Nowhere"})) == 0  # a word that was never written has no entry to be missed


def test_a_record_of_an_earlier_version_is_refused(filled: Place) -> None:
    people = filled.people()
    before = filled.sql("SELECT * FROM {R}")
    people.update_one({"_id": 1}, {"$set": {"age": 40}})
    for row in before:
        filled.sql("INSERT OR REPLACE INTO {R} VALUES (?, ?, ?, ?)", *row)
    with pytest.raises(Tampered, match="not the one that this client wrote last"):
        people.find_one({"_id": 1})


def test_a_store_that_is_rolled_back_is_refused(filled: Place) -> None:
    older = filled.snapshot("older.db")
    filled.people().update_one({"_id": 1}, {"$set": {"age": 40}})
    filled.roll_back(older)
    for read in (lambda: filled.people().find(), lambda: filled.people().insert_one({"_id": 9})):
        with pytest.raises(Tampered, match="rolled back"):
            read()
    assert not filled.store.verify()


def test_a_ciphertext_opens_only_in_its_place(filled: Place) -> None:
    """Also against somebody who could forge the HMAC of a record: the place is bound to each value."""
    people = filled.people()
    rows = list(people.reader.store.records(people.reader.table))
    one, other = json.loads(rows[0].body), json.loads(rows[1].body)
    names = list(one)
    swapped = json.dumps({**one, names[0]: other[names[0]]})
    crossed = json.dumps({**one, names[0]: one[names[1]]})
    for row in (
        rows[0]._replace(body=swapped),
        rows[0]._replace(body=crossed),
        rows[0]._replace(version=rows[0].version + 1),
        rows[0]._replace(handle=rows[1].handle),
    ):
        with pytest.raises(WrongKey):
            people.reader.sealer.opened(row)
    for body in ("", "[]", "{}", '{"a": 1}', json.dumps({**one, names[0]: "%"})):
        with pytest.raises(Tampered):
            people.reader.sealer.opened(rows[0]._replace(body=body))
    short = json.dumps({**one, names[0]: base64.b64encode(b"short").decode()})
    with pytest.raises(WrongKey):
        people.reader.sealer.opened(rows[0]._replace(body=short))


def test_other_keys_and_other_data_sets_open_nothing(filled: Place) -> None:
    url = f"sqlite:///{filled.file}"
    stranger = cl.vault.Keys.generate()
    with pytest.raises(WrongKey, match="none of these"):
        cl.vault.Vault(url, stranger)
    for other in (cl.vault.Vault(url, stranger, join=True), filled.vault(data_set="other", join=True)):
        assert other.collections() == []
        mine = other.collection("canary-people", FIELDS)
        mine.insert_one(PEOPLE[0])
        assert mine.count_documents({}) == 1
        other.close()
    assert filled.people().find_one({"_id": 1}) == PEOPLE[0]
    handles = {handle for (handle,) in filled.sql("SELECT handle FROM {R}")}
    assert filled.people().reader.keys.handle("other", 1) not in handles  # no pseudonym is shared between data sets


def test_two_clients_with_states_of_their_own_are_told(filled: Place) -> None:
    copy = filled.folder / "second.keys"
    filled.keys.backup(copy)
    second = cl.vault.Vault(f"sqlite:///{filled.file}", cl.vault.Keys.load(copy))
    filled.people().insert_one({"_id": 10, "name": "x"})
    for act in (
        lambda: second.collection("canary-people").find(),
        lambda: second.collection("canary-people").insert_one({"_id": 11}),
    ):
        with pytest.raises(Conflict, match="another client"):
            act()
    assert second.root("canary-people") != filled.store.root("canary-people")
    second.close()


def test_two_clients_with_one_state_take_turns(filled: Place) -> None:
    second = cl.vault.Vault(f"sqlite:///{filled.file}", cl.vault.Keys.load(filled.keys_file))
    for number in range(10, 16):
        (filled.people() if number % 2 else second.collection("canary-people")).insert_one({"_id": number, "town": "x"})
    assert len(second.collection("canary-people").find({"town": "x"})) == len(filled.people().find({"town": "x"})) == 6
    assert filled.store.verify()
    second.close()


def test_an_entry_that_is_added_shows_nothing_of_the_word(filled: Place) -> None:
    """Forward privacy: addresses of a word that was searched are never those of entries that come later."""
    people = filled.people()
    asked: list[Any] = []
    ask = people.reader.store.entries
    people.reader.store.entries = lambda name, addresses: asked.extend(addresses) or ask(name, addresses)  # type: ignore[method-assign]
    people.find({"town": "canary-Basel"})
    before = {address for (address,) in filled.sql("SELECT address FROM {I}")}
    people.insert_one({"_id": 7, "town": "canary-Basel"})
    added = {address for (address,) in filled.sql("SELECT address FROM {I}")} - before
    assert (len(asked), len(added)) == (2, 9)
    assert not added & set(asked)
    assert asked == sorted(asked)


KEY, NONCE = "01" + "00" * 31, "03" + "00" * 11
VECTORS = [  # RFC 8452, appendix C.2 (AEAD_AES_256_GCM_SIV): plaintext, associated data, result
    ("", "", "07f5f4169bbf55a8400cd47ea6fd400f"),
    ("0100000000000000", "", "c2ef328e5c71c83b843122130f7364b761e0b97427e3df28"),
    ("010000000000000000000000", "", "9aab2aeb3faa0a34aea8e2b18ca50da9ae6559e48fd10f6e5c9ca17e"),
    ("0200000000000000", "01", "1de22967237a813291213f267e3b452f02d01ae33e4ec854"),
]


@pytest.mark.parametrize(("text", "bound", "result"), VECTORS)
def test_the_cipher_is_that_of_rfc_8452(text: str, bound: str, result: str) -> None:
    cipher = RandomizedCipher(bytes.fromhex(KEY))
    assert cipher.decrypt(bytes.fromhex(NONCE + result), bytes.fromhex(bound)) == bytes.fromhex(text)
    with pytest.raises(WrongKey):
        cipher.decrypt(bytes.fromhex(NONCE + result), bytes.fromhex(bound + "00"))
    with pytest.raises(WrongKey):
        cipher.decrypt(b"short", b"")
