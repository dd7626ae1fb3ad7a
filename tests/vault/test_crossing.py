"""Two data sets about the same people, in one store: who has both files can't join them, as he can with plain pseudonyms."""

from __future__ import annotations

import base64
import hmac
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.vault.index import HANDLE, WordKey
from cloister.vault.keys import DataSetKeys
from cloister.vault.values import comparable

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


def two_data_sets(folder: Path) -> dict[str, list[set[bytes]]]:
    """What stands in the records and the index of each of two data sets about the same people."""
    url, keys = f"sqlite:///{folder}/sealed.db", cl.vault.Keys.generate(folder / "owner.keys")
    for data_set in ("prescriptions", "pharmacies"):
        with cl.vault.Vault(url, keys, data_set=data_set, join=True) as store:
            made = store.collection("people", {"person": cl.vault.Equal(), "what": cl.vault.Random()}, person="person")
            made.insert_many({"_id": person, "person": person, "what": data_set} for person in PEOPLE)
            assert len(made.find({"person": PEOPLE[3]})) == 1
    found = pieces(folder / "sealed.db")
    names = [{name[2:] for name in found if name.startswith(kind)} for kind in ("r_", "i_")]
    assert names[0] == names[1]
    assert len(names[0]) == 2, "one name in both data sets, two in the store"
    return {kind: [found[f"{kind}_{name}"] for name in sorted(names[0])] for kind in ("r", "i")}


def test_two_data_sets_share_nothing_by_which_a_person_could_be_found_in_both(tmp_path: Path) -> None:
    for one, other in two_data_sets(tmp_path).values():
        assert min(len(one), len(other)) >= len(PEOPLE)
        assert not one & other


@pytest.mark.parametrize(
    ("broken", "made", "where"),
    [
        ("handle", lambda _, __, identity: hmac.digest(bytes(32), comparable(identity), "sha256")[:HANDLE], "r"),
        ("_word", lambda _, __, ___, ____, word: WordKey(hmac.digest(bytes(32), word, "sha256")), "i"),
    ],
)
def test_pseudonyms_under_one_key_would_join_every_person(
    broken: str, made: Any, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BROKEN twins of the store, which the test above would catch."""
    monkeypatch.setattr(DataSetKeys, broken, made)
    one, other = two_data_sets(tmp_path)[where]
    assert len(one & other) >= len(PEOPLE)
