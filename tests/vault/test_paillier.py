"""Sums that the store computes: right, on every store and through rotations; a wrong one is refused; nothing else shows."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.crypto.paillier import EncryptedVector, Paillier, Slots
from cloister.vault import Equal, PaillierSum, Random, Range, Sum, Tampered, paillier
from cloister.vault.keys import DataSetKeys
from cloister.vault.state import State
from cloister.vault.store import Store
from tests.vault.conftest import Place

FIELDS = {"pay": PaillierSum(-1000, 500_000), "town": Equal(), "age": Range(0, 120) | Sum()}
ROWS: list[dict[str, Any]] = [
    {"_id": n, "pay": None if n % 5 == 0 else n * 7_919 % 400_000 - 900, "town": "ab"[n % 2], "age": n} for n in range(12)
]
ALL = [{"$group": {"_id": None, "sum": {"$sum": "$pay"}, "mean": {"$avg": "$pay"}, "n": {"$count": {}}, "two": {"$sum": 2}}}]


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known = [each["pay"] for each in rows if each.get("pay") is not None]
    mean = sum(known) / len(known) if known else None
    return [{"_id": None, "sum": sum(known), "mean": mean, "n": len(rows), "two": 2 * len(rows)}] if rows else []


def check_sums(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a sum must be, on any store."""
    people = place.store.collection("people", FIELDS)
    assert people.aggregate(ALL) == []
    people.insert_many(ROWS)
    rows = {each["_id"]: dict(each) for each in ROWS}
    read: list[str] = []
    records = Store.records

    def watched(store: Store, name: str, handles: list[bytes] | None = None) -> Any:
        read.append(name)
        return records(store, name, handles)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "records", watched)
        assert people.aggregate(ALL) == plain(list(rows.values()))
        some = [{"$match": {"_id": {"$in": [1, 2, 99]}}}, *ALL]
        assert people.aggregate(some) == plain([rows[1], rows[2]])
        assert people.aggregate([{"$match": {"_id": 5}}, *ALL]) == plain([rows[5]])
        assert people.aggregate([{"$match": {"_id": 99}}, *ALL]) == []
        assert people.aggregate([*ALL, {"$match": {"n": {"$gt": 99}}}]) == []
        assert people.aggregate([{"$match": {"town": "a"}}, *ALL]) == plain([each for each in ROWS if each["town"] == "a"])
        assert people.aggregate([{"$match": {"town": {"$in": ["a", "b", "c"]}}}, *ALL]) == plain(ROWS)
        assert people.aggregate([{"$match": {"town": {"$in": []}}}, *ALL]) == []
        assert not read, "no record was read"
        young = [{"$match": {"age": {"$lt": 4}}}, *ALL]
        assert people.aggregate(young) == plain(ROWS[:4])
        assert read, "what lies beside a bound in a cell of the tree is told apart by the client"
    people.update_one({"_id": 3}, {"$set": {"pay": 77}})
    people.update_one({"_id": 0}, {"$set": {"pay": -1000}, "$unset": {"age": 1}})
    people.update_one({"_id": 1}, {"$unset": {"pay": 1}})
    people.delete_many({"_id": {"$in": [4, 6]}})
    rows[3]["pay"], rows[0]["pay"], rows[1]["pay"] = 77, -1000, None
    del rows[4], rows[6]
    assert people.aggregate(ALL) == plain(list(rows.values()))
    place.store.rotate(batches=0)
    people.insert_one({"_id": 50, "pay": 1})
    people.update_one({"_id": 3}, {"$inc": {"pay": 1}})
    rows[3]["pay"], rows[50] = 78, {"pay": 1}
    assert people.aggregate(ALL) == plain(list(rows.values())), "of two epochs"
    assert place.store.verify()
    assert place.store.rotate()
    assert people.aggregate(ALL) == plain(list(rows.values()))
    assert place.store.verify()


def test_the_store_adds_up_as_a_plain_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    check_sums(place, monkeypatch)
    place.restart()
    people = place.store.collection("people")
    assert people.fields == FIELDS
    assert people.aggregate(ALL)[0]["n"] == 11


def test_a_sum_of_a_value_in_an_index_reads_what_has_changed_since_and_no_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records move, go and come back under the same `_id`; entries of the index stay, and lead to what they once were."""
    people = place.store.collection("people", FIELDS)
    people.insert_many(ROWS)
    rows = {each["_id"]: dict(each) for each in ROWS}
    read: list[bytes] = []
    records = Store.records

    def watched(store: Store, name: str, handles: list[bytes] | None = None) -> Any:
        read.extend(handles or [])
        return records(store, name, handles)

    def check(most: int) -> None:
        for town in ("a", "b", None):
            read.clear()
            with monkeypatch.context() as patched:
                patched.setattr(Store, "records", watched)
                found = people.aggregate([{"$match": {"town": town}}, *ALL])
            assert found == plain([each for each in rows.values() if each.get("town") == town])
            assert len(read) <= most

    check(0)
    people.update_one({"_id": 1}, {"$set": {"town": "a"}})
    people.update_one({"_id": 2}, {"$unset": {"town": 1}})
    people.delete_one({"_id": 3})
    rows[1]["town"], rows[2]["town"] = "a", None
    del rows[3]
    check(2)
    people.insert_one({"_id": 3, "town": "a", "pay": 5})
    rows[3] = {"pay": 5, "town": "a"}
    check(3)
    place.store.rotate(batches=0)
    people.update_one({"_id": 4}, {"$set": {"town": "b"}})
    rows[4]["town"] = "b"
    check(4)
    assert place.store.rotate()
    check(0)
    state = people.reader.state.database
    state.run("DELETE FROM moved")
    state.run("PRAGMA user_version = 0")  # a state that was written before this was kept
    place.restart()
    people = place.store.collection("people")
    check(len(rows))
    people.update_one({"_id": 5}, {"$set": {"town": "a"}})
    rows[5]["town"] = "a"
    check(len(rows))


def tables(place: Place) -> str:
    return next(name for (name,) in place.sql("SELECT name FROM sqlite_master") if name.startswith("p_"))


def test_a_sum_that_was_altered_is_refused(place: Place) -> None:
    """The store has the public key: it can add to a cell, multiply one, swap, leave out, and bring back an older one."""
    people = place.store.collection("people", FIELDS)
    people.insert_many(ROWS)
    table, adder = tables(place), people.reader.sealer.adder
    older = place.sql(f"SELECT handle, cell FROM {table} ORDER BY handle")
    people.update_one({"_id": 3}, {"$set": {"pay": 77}})
    kept = place.sql(f"SELECT handle, cell FROM {table} ORDER BY handle")
    square = adder._pair(1, make=False).public.modulus ** 2
    public = adder._pair(1, make=False).public
    one = int(kept[0][1].hex(), 16)
    more = public.encrypt([1], slots=paillier._slots()).cells[0]
    changed = next(at for at, (old, new) in enumerate(zip(older, kept, strict=True)) if old != new)
    put = f"UPDATE {table} SET cell = ? WHERE handle = ?"
    for act in (
        lambda: place.sql(put, (one * (1 + public.modulus) % square).to_bytes(512, "big"), kept[0][0]),
        lambda: place.sql(put, (one * more % square).to_bytes(512, "big"), kept[0][0]),
        lambda: place.sql(put, (one * one % square).to_bytes(512, "big"), kept[0][0]),
        lambda: place.sql(put, (1).to_bytes(512, "big"), kept[0][0]),
        lambda: place.sql(put, bytes(512), kept[0][0]),
        lambda: place.sql(put, kept[1][1], kept[0][0]),
        lambda: place.sql(put, older[changed][1], older[changed][0]),
        lambda: place.sql(f"DELETE FROM {table} WHERE handle = ?", kept[0][0]),
        lambda: place.sql(f"DELETE FROM {table}"),
        lambda: place.sql(f"INSERT INTO {table} SELECT field, epoch, x'00', cell FROM {table} LIMIT 1"),
    ):
        act()
        with pytest.raises(Tampered, match="The sum was changed"):
            people.aggregate(ALL)
        assert "The sum was changed" in str(place.store.verify())
        place.sql(f"DELETE FROM {table} WHERE handle = x'00'")
        for handle, cell in kept:
            told = people.reader.sealer.adder._columns["pay"][0]
            place.sql(f"INSERT OR REPLACE INTO {table} VALUES (?, 1, ?, ?)", told, handle, cell)
        assert place.store.verify()
    place.sql(put, "text", kept[0][0])
    with pytest.raises((cl.EngineError, Tampered)):
        people.aggregate(ALL)


def test_two_swapped_cells_are_noticed_where_one_of_them_is_asked(place: Place) -> None:
    people = place.store.collection("people", FIELDS)
    people.insert_many(ROWS)
    table = tables(place)
    (one, first), (two, second) = place.sql(f"SELECT handle, cell FROM {table} LIMIT 2")
    place.sql(f"UPDATE {table} SET cell = ? WHERE handle = ?", second, one)
    place.sql(f"UPDATE {table} SET cell = ? WHERE handle = ?", first, two)
    assert people.aggregate(ALL) == plain(ROWS)
    handles = {people.reader.keys.handle(people.reader.table, each["_id"]): each["_id"] for each in ROWS}
    with pytest.raises(Tampered):
        people.aggregate([{"$match": {"_id": handles[one]}}, *ALL])


def test_the_published_sum_is_altered_unseen() -> None:
    """The broken twin: a Paillier sum with no tag decrypts to whatever was added to it."""
    keys = Paillier.generate(512, insecure=True)
    slots = Slots(bits=64, blind=False)
    total = EncryptedVector.total(keys.public.encrypt([n], slots=slots) for n in range(10))
    cell = total.cells[0] * (1 + 1_000_000 * keys.public.modulus) % keys.public.modulus**2
    forged = EncryptedVector(key=keys.public, cells=(cell,), length=1, slots=slots, count=10)
    assert keys.decrypt(forged).tolist() == [1_000_045]


def test_the_store_has_ciphertexts_of_one_length_and_the_state_alone_has_the_key(place: Place) -> None:
    people = place.store.collection("people", FIELDS)
    people.insert_many({"_id": n, "pay": value} for n, value in enumerate([None, 0, 0, 500_000]))
    cells = [cell for (cell,) in place.sql(f"SELECT cell FROM {tables(place)}")]
    assert ({len(cell) for cell in cells} <= {511, 512}, len({*cells})) == (True, 4)
    older = place.snapshot("older.db")
    wrapped = people.reader.state.paillier(people.reader.table, 1)
    assert wrapped
    assert wrapped not in older.read_bytes()
    stolen = DataSetKeys(cl.vault.Keys(bytes.fromhex(place.keys_file.read_text()), state=State()), "default")
    assert stolen.paillier(1, people.reader.table) is None
    assert place.store.rotate()
    assert people.reader.state.paillier(people.reader.table, 1) is None
    assert people.aggregate(ALL)[0]["sum"] == 500_000


def test_a_lost_state_adds_up_again_after_a_restoration(place: Place) -> None:
    place.store.collection("people", FIELDS).insert_many(ROWS)
    place.store.close()
    place.keys.close()
    place.keys_file.with_name("owner.keys.state").unlink()
    place.keys = cl.vault.Keys.load(place.keys_file)
    place.store = cl.vault.Vault.restore(place.url, place.keys)
    assert place.store.collection("people").aggregate(ALL) == plain(ROWS)
    assert place.store.verify()


def test_it_is_had_by_name_and_says_what_it_shows(place: Place) -> None:
    people = place.store.collection("people", FIELDS)
    said = people.explain(ALL)
    assert said.found_by == ("products of Paillier cells of 'pay'", "every record")
    assert "a sum was asked of 'pay'" in str(said)
    assert "every record was read" not in str(said)
    assert "which records are in it" in str(people.explain([{"$match": {"_id": 1}}, *ALL]))
    assert "every record was read" in str(people.explain([{"$group": {"_id": None, "n": {"$max": "$pay"}}}]))
    filtered = people.explain([{"$match": {"town": "a"}}, *ALL])
    assert filtered.found_by == ("products of Paillier cells of 'pay'", "1 word of 'town'")
    assert "those which changed since the last rotation were read" in str(filtered)
    assert "Computed by the store, as a product of ciphertexts of 'pay'" in str(filtered)
    for other in ([{"$match": {"age": 3}}, *ALL], [{"$match": {"town": "a", "age": 3}}, *ALL], [{"$group": {"_id": "$town"}}]):
        assert "Computed by the client, on what it reads" in str(people.explain(other))
    assert "Computed" not in str(people.explain({"town": "a"}))
    assert not any(each.added for each in (Sum(), Equal(), Range(0, 9), Random()))
    for wrong in ((0, 0), (0, 2**40), (0.5, 3), (True, 7), (3, 1)):
        with pytest.raises(cl.InvalidDeclaration, match="2\\^40 apart"):
            PaillierSum(*wrong)  # type: ignore[arg-type]
    with pytest.raises(cl.InvalidDeclaration, match="two different bounds"):
        PaillierSum(0, 1) | PaillierSum(0, 2)
    for value in (-1001, 500_001, 3.0, "x", True):
        with pytest.raises(cl.InvalidParameter, match="whole number from -1000 to 500000"):
            people.insert_one({"pay": value})


def test_a_database_that_never_heard_of_sums_opens_as_before(tmp_path: Path) -> None:
    keys = cl.vault.Keys.generate(tmp_path / "owner.keys")
    store = cl.vault.Vault(f"sqlite:///{tmp_path}/sealed.db", keys)
    store.collection("people", {"pay": Sum()}).insert_one({"_id": 1, "pay": 3})
    with sqlite3.connect(tmp_path / "sealed.db") as connection:
        assert not [name for (name,) in connection.execute("SELECT name FROM sqlite_master") if name.startswith("p_")]
    connection.close()


def test_a_mean_beyond_doubles_is_infinite_as_that_of_a_sum_is() -> None:
    fields = {"a": cl.vault.PaillierSum(10**400, 10**400 + 5), "b": cl.vault.Sum()}
    people = cl.vault.Vault("sqlite://", cl.vault.Keys.generate()).collection("m", fields)
    people.insert_one({"_id": 1, "a": 10**400 + 1, "b": 10**400 + 1})
    (found,) = people.aggregate([{"$group": {"_id": None, "a": {"$avg": "$a"}, "b": {"$avg": "$b"}}}])
    assert found["a"] == found["b"] == float("inf")
