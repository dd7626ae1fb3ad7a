"""Two data sets about the same people, in one store: who has both files can't join them, as he can with plain pseudonyms."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from pathlib import Path

import cloister as cl

PEOPLE = [f"756.1234.{number:04}" for number in range(20)]


def pieces(file: Path) -> dict[str, set[bytes]]:
    """All that stands in each table of a store: texts, bytes, and what is inside the JSON."""
    found: dict[str, set[bytes]] = {}
    with sqlite3.connect(file) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            each = found.setdefault(name, set())
            for row in connection.execute(f'SELECT * FROM "{name}"'):
                for cell in row:
                    if isinstance(cell, bytes):
                        each.add(cell)
                    elif isinstance(cell, str) and cell.startswith("{"):
                        each |= {part.encode() for part in json.loads(cell)}
                        each |= {base64.b64decode(part) for part in json.loads(cell).values()}
    connection.close()
    return found


def test_two_data_sets_share_nothing_by_which_a_person_could_be_found_in_both(tmp_path: Path) -> None:
    url, keys = f"sqlite:///{tmp_path}/sealed.db", cl.vault.Keys.generate(tmp_path / "owner.keys")
    for data_set in ("prescriptions", "pharmacies"):
        with cl.vault.Vault(url, keys, data_set=data_set, join=True) as store:
            made = store.collection("people", {"person": cl.vault.Equal(), "what": cl.vault.Random()}, person="person")
            made.insert_many({"_id": person, "person": person, "what": data_set} for person in PEOPLE)
            assert len(made.find({"person": PEOPLE[3]})) == 1
    found = pieces(tmp_path / "sealed.db")
    records = [found[name] for name in found if name.startswith("r_")]
    index = [found[name] for name in found if name.startswith("i_")]
    assert len(records) == len(index) == 2
    assert not records[0] & records[1]
    assert not index[0] & index[1]
    names = [{name[2:] for name in found if name.startswith("r_")}, {name[2:] for name in found if name.startswith("i_")}]
    assert names[0] == names[1]
    assert len(names[0]) == 2, "one name in both data sets, two in the store"
    plain = [{hashlib.sha256(person.encode()).digest() for person in PEOPLE} for _ in records]
    assert len(plain[0] & plain[1]) == len(PEOPLE), "pseudonyms under one key join every person"
