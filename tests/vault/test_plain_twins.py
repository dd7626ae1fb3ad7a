"""Each attack twice: it succeeds on a plain twin, and fails on a vault."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.crypto import WrongKey
from cloister.vault import Tampered
from tests.vault.conftest import FIELDS, PEOPLE, Place


class Plain:
    """What programs write without a vault: one table of JSON, its name from the program, in a file of the server's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS people (id INTEGER PRIMARY KEY, body TEXT)")
            connection.execute("CREATE TABLE IF NOT EXISTS secrets (body TEXT)")

    def run(self, statement: str, *values: Any) -> list[Any]:
        connection = sqlite3.connect(self.path)
        with connection:
            found = (
                connection.executescript(statement).fetchall() if not values else connection.execute(statement, values).fetchall()
            )
        connection.close()
        return found

    def fill(self) -> Plain:
        for each in PEOPLE:
            self.run("INSERT OR REPLACE INTO people VALUES (?, ?)", each["_id"], json.dumps(each))
        return self

    def read(self) -> dict[int, Any]:
        connection = sqlite3.connect(self.path)
        found = {key: json.loads(body) for key, body in connection.execute("SELECT id, body FROM people")}
        connection.close()
        return found


def test_sql_through_a_name_drops_a_plain_table_and_is_a_name_here(place: Place, tmp_path: Path) -> None:
    twin = Plain(tmp_path / "plain.db").fill()
    name = "people (id INTEGER); DROP TABLE secrets; --"
    twin.run(f"CREATE TABLE IF NOT EXISTS {name}")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        twin.run("SELECT * FROM secrets WHERE ? = ?", 1, 1)
    bad = [name, '"; DROP TABLE collections; --', "x' OR '1'='1"]
    for each in bad:
        made = place.store.collection(each, {each: cl.vault.Equal() | cl.vault.PaillierSum(0, 9)})
        made.insert_one({"_id": 1, each: 3})
        assert made.find({each: 3}) == [{"_id": 1, each: 3}]
        assert made.aggregate([{"$group": {"_id": None, "n": {"$sum": f"${each}"}}}]) == [{"_id": None, "n": 3}]
    assert place.store.collections() == sorted(bad)
    assert place.store.verify()


def test_two_snapshots_show_what_changed_in_a_plain_file_and_that_something_did_here(filled: Place, tmp_path: Path) -> None:
    twin = Plain(tmp_path / "plain.db").fill()
    before = twin.read()
    twin.run("UPDATE people SET body = ? WHERE id = ?", json.dumps(PEOPLE[0] | {"age": 40}), 1)
    changed = {key: each for key, each in twin.read().items() if each != before[key]}
    assert changed == {1: PEOPLE[0] | {"age": 40}}, "who, which field, from what to what"
    cells = []
    for age in (40, 41, 40):
        filled.people().update_one({"_id": 1}, {"$set": {"age": age}})
        cells.append({part for (body,) in filled.sql("SELECT body FROM {R}") for part in json.loads(body).values()})
    assert len(cells[0] & cells[1]) == len(cells[1] & cells[2]) == 2 * 5, "the other two records, and no cell of this one"
    assert len(cells[0] & cells[2]) == 2 * 5, "what came back looks new"


def test_an_insider_reads_the_rows_of_others_in_a_plain_store_alone(place: Place, tmp_path: Path) -> None:
    """Two owners in one store: the second one has every file, and keys of their own."""
    twin = Plain(tmp_path / "plain.db").fill()
    assert len(twin.read()) == 3, "rows of every owner"
    place.people().insert_many(PEOPLE)
    insider = cl.vault.Keys.generate(tmp_path / "insider.keys")
    with pytest.raises(WrongKey):
        cl.vault.Vault(place.url, insider)
    with cl.vault.Vault(place.url, insider, join=True) as store:
        assert store.collections() == []
        mine = store.collection("canary-people", FIELDS)
        assert mine.find() == []
        table = place.people().reader.table
        theirs = [*store._store.records(table)]
        assert len(theirs) == 3, "the rows are there"
        for row in theirs:
            with pytest.raises((Tampered, WrongKey)):
                mine.reader.sealer.opened(row)


def test_a_roll_back_is_believed_by_a_plain_program_and_refused_here(filled: Place, tmp_path: Path) -> None:
    twin = Plain(tmp_path / "plain.db").fill()
    shutil.copy(twin.path, tmp_path / "older.db")
    twin.run("DELETE FROM people WHERE id = ? OR id = ?", 1, 2)
    shutil.copy(tmp_path / "older.db", twin.path)
    assert len(twin.read()) == 3, "who was deleted is back, and nobody is told"
    people, older = filled.people(), filled.snapshot("sealed-older.db")
    people.delete_many({"_id": {"$in": [1, 2]}})
    filled.roll_back(older)
    with pytest.raises(Tampered, match="rolled back"):
        filled.people().find()


def volumes(look: Callable[[Any], list[bytes]], values: list[str]) -> dict[int, set[str]]:
    """What a server counts: how many records each look-up returns."""
    found: dict[int, set[str]] = {}
    for value in values:
        found.setdefault(len(look(value)), set()).add(value)
    return found


def test_volume_and_access_pattern_name_towns_of_a_plain_store_and_of_equal_but_not_of_random(place: Place) -> None:
    """`Equal()` hides words until they are asked for, and says that volumes then show; `Random()` with a filter at the client
    shows one volume for every question."""
    towns = ["Basel"] * 12 + ["Bern"] * 7 + ["Chur"] * 3
    rows = [{"_id": n, "strong": town, "weak": town} for n, town in enumerate(towns)]
    public = {12: {"Basel"}, 7: {"Bern"}, 3: {"Chur"}}
    plain = volumes(lambda town: [b"" for each in rows if each["weak"] == town], ["Basel", "Bern", "Chur"])
    assert plain == public, "each volume is one town's, as everybody knows them"
    made = place.store.collection("towns", {"weak": cl.vault.Equal(), "strong": cl.vault.Random()})
    made.insert_many(rows)
    read: list[bytes] = []
    records = made.reader.store.records

    def watched(name: str, handles: list[bytes] | None = None) -> Any:
        read[:] = handles if handles is not None else [b"all"]
        return records(name, handles)

    made.reader.store.records = watched  # type: ignore[method-assign]

    def by_index(town: str) -> list[bytes]:
        made.find({"weak": town})
        return list(read)

    def by_client(town: str) -> list[bytes]:
        assert len([each for each in made.find() if each["strong"] == town]) == len([each for each in towns if each == town])
        return list(read)

    assert volumes(by_index, ["Basel", "Bern", "Chur"]) == public
    assert "how many entries they have" in str(made.explain({"weak": "Bern"})), "which is said in advance"
    assert made.leakage("weak").worst == 1.0, "and measured"
    assert volumes(by_client, ["Basel", "Bern", "Chur"]) == {1: {"Basel", "Bern", "Chur"}}
    assert made.leakage("strong").worst == made.leakage("strong").guess


HOLDING = """
import os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
import cloister as cl
from cloister.together.agent import no_core_dumps
if sys.argv[1] == "closed":
    no_core_dumps()
with cl.vault.Vault("sqlite://", cl.vault.Keys.generate()) as store:
    people = store.collection("people", {"name": cl.vault.Random()})
    people.insert_one({"_id": 1, "name": "canary-" + "Ada" * 9})
    held = people.find()
    os.abort()
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core",
    reason="core files are written elsewhere on this machine",
)
def test_a_core_dump_has_documents_of_a_plain_process_and_a_proxy_writes_none(tmp_path: Path) -> None:
    for kind in ("open", "closed"):
        folder = tmp_path / kind
        folder.mkdir()
        environment = {**os.environ, "PYTHONFAULTHANDLER": ""}
        command = [sys.executable, "-c", HOLDING, kind]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
        assert done.returncode < 0, done.stderr
        found = [path for path in folder.iterdir() if path.name.startswith("core")]
        if kind == "open" and not found:
            pytest.skip("this machine allows no core file")
        holds = any(b"canary-AdaAda" in path.read_bytes() for path in found)
        assert holds == (kind == "open")
        for path in found:
            path.unlink()


def test_the_files_of_a_stopped_client_hold_no_document(filled: Place) -> None:
    """With the proxy stopped, no memory is left to dump: what is on its disk is keys, counters and HMACs."""
    filled.people().find()
    filled.store.close()
    filled.keys.close()
    assert not [path for path in filled.folder.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]
    filled.keys = cl.vault.Keys.load(filled.keys_file)
    filled.store = filled.vault()
