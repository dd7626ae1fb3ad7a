"""A vault on a PostgreSQL server that logs and keeps statistics of every statement: it works as in a file, and nothing shows."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

import cloister as cl
from scripts import postgres
from tests.tiers import by_day_and_night
from tests.vault.conftest import FIELDS, PEOPLE, Place
from tests.vault.test_paillier import check_sums
from tests.vault.test_replay import Replay

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("vault postgres")]
_NUMBERS = itertools.count()
TELLING = {
    "shared_preload_libraries": "pg_stat_statements",
    "log_statement": "all",
    "log_min_duration_statement": "0",
    "log_parameter_max_length_on_error": "-1",
    "wal_level": "logical",
}
"""What an administrator may turn on to see what clients do."""


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    pytest.importorskip("psycopg")
    try:
        found = postgres.start(**TELLING)
    except postgres.CannotStart as error:
        pytest.skip(str(error))
    yield found
    postgres.stop(found.folder, found.pid)


def asked(server: postgres.Server, *statements: Any) -> list[Any]:
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        for text, *values in statements:
            found = connection.execute(text, values or None)
        return found.fetchall() if found.description else []


def schema(server: postgres.Server) -> tuple[str, str]:
    name = f"vault_{next(_NUMBERS)}"
    asked(server, [f"CREATE SCHEMA {name}"])
    return name, f"{server.url}?options=-csearch_path%3D{name}"


@pytest.fixture
def place(server: postgres.Server, tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, schema(server)[1])
    made.people().insert_many(PEOPLE)
    yield made
    made.store.close()
    made.keys.close()


def traces(server: postgres.Server, word: bytes) -> list[str]:
    """Where a word stands: data files, write-ahead log, the server's own log; statistics and history of statements."""
    asked(server, ["CHECKPOINT"])
    files = [path for path in server.folder.rglob("*") if path.is_file() and word in path.read_bytes()]
    found = {"log" if path.name == "log" else path.relative_to(server.folder / "data").parts[0] for path in files}
    told = asked(server, ["CREATE EXTENSION IF NOT EXISTS pg_stat_statements"], ["SELECT query FROM pg_stat_statements"])
    told += asked(server, ["SELECT query FROM pg_stat_activity WHERE pid <> pg_backend_pid()"])
    return sorted({*found, *({"statements"} if any(word in (text or "").encode() for (text,) in told) else ())})


def test_nothing_of_a_document_is_in_any_file_log_or_statistic_of_the_server(server: postgres.Server, place: Place) -> None:
    people = place.people()
    people.update_one({"town": "canary-Basel"}, {"$set": {"name": "canary-new"}})
    assert len(people.find({"age": {"$gte": 40}, "town": "canary-Bern"})) == 1
    people.delete_one({"_id": 2})
    place.store.rotate()
    with pytest.raises(cl.vault.DuplicateKey):
        people.insert_one({"_id": 1, "name": "canary-twice"})
    assert traces(server, b"canary") == []
    name, _ = schema(server)
    rows = [[json.dumps(each)] for each in PEOPLE]
    asked(server, [f"CREATE TABLE {name}.people (body JSONB)"])
    asked(server, *([f"INSERT INTO {name}.people VALUES (%s)", *row] for row in rows))
    asked(server, [f"SELECT body FROM {name}.people WHERE body->>'town' = 'twin-canary'"])
    assert {"base", "pg_wal", "log"} <= {*traces(server, b"canary-Basel")}, "the search finds the plain twin's values"
    assert "log" in traces(server, b"twin-canary")


def test_what_a_plain_server_answers_this_one_does(server: postgres.Server, place: Place) -> None:
    people = place.people()
    assert sorted(people.find(), key=lambda each: each["_id"]) == PEOPLE
    assert [each["age"] for each in people.find({"age": {"$gt": 39}}, sort=[("age", -1)])] == [71, 52]
    second = cl.vault.Vault(place.url, cl.vault.Keys.load(place.keys_file))
    second.collection("canary-people").insert_one({"_id": 4, "town": "canary-Basel", "age": 9})
    people.insert_one({"_id": 5, "town": "canary-Basel", "age": 10})
    assert sorted(each["_id"] for each in second.collection("canary-people").find({"town": "canary-Basel"})) == [1, 3, 4, 5]
    second.close()
    place.restart()
    assert place.store.verify()
    place.store.close()
    with cl.vault.Vault.restore(place.url, place.keys) as restored:
        assert restored.collection("canary-people").count_documents({}) == 5
        assert restored.verify()
    place.store = place.vault()


def test_a_server_adds_up_sorts_and_finds_words(server: postgres.Server, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    check_sums(place, monkeypatch)
    for layer in (cl.vault.OrderRevealing, cl.vault.Range):
        made = place.store.collection(layer.__name__, {"v": layer(0, 10), "tags": cl.vault.Words(3)})
        made.insert_many({"_id": n, "v": n * 7 % 97 / 10, "tags": ["a", "b", "c"][: n % 4]} for n in range(97))
        assert [each["v"] for each in made.find(sort=[("v", 1)], skip=2, limit=3)] == [0.2, 0.3, 0.4]
        assert [each["v"] for each in made.find({"v": {"$lt": 5}}, sort=[("v", -1)], limit=2)] == [4.9, 4.8]
        assert made.count_documents({"tags": "c"}) == 24
    assert place.store.verify()


def test_replication_and_spill_files_have_ciphertexts(server: postgres.Server, place: Place) -> None:
    """What a replica is sent, decoded by the server itself, and what a sort that has no memory writes to its disk."""
    import psycopg

    people, name = place.people(), place.url.rpartition("%3D")[2]
    twin, _ = schema(server)
    asked(server, ["SELECT pg_create_logical_replication_slot('copy', 'test_decoding')"])
    try:
        asked(server, [f"CREATE TABLE {twin}.people (body JSONB)"])
        body = json.dumps({"name": "canary-" + "x" * 300})
        asked(server, [f"INSERT INTO {twin}.people SELECT %s FROM generate_series(1, 1000)", body])
        people.insert_many({"_id": number, "name": "canary-" + "x" * 300} for number in range(10, 500))
        told = asked(server, ["SELECT data FROM pg_logical_slot_get_changes('copy', NULL, NULL)"])
    finally:
        asked(server, ["SELECT pg_drop_replication_slot('copy')"])
    changes = [text for (text,) in told]
    assert any("canary" in text for text in changes if twin in text), "a replica of the plain twin reads it"
    assert any(f"{name}.r_" in text for text in changes)
    assert not any("canary" in text for text in changes if twin not in text)
    for where, table, shows in ((twin, "people", True), (name, f"r_{people.reader.table}", False)):
        with psycopg.connect(server.url) as connection:
            connection.execute("SET work_mem = '64kB'")
            connection.execute(f'DECLARE slow CURSOR FOR SELECT body FROM {where}."{table}" ORDER BY body DESC')
            connection.execute("FETCH 1 FROM slow")
            spilled = [path.read_bytes() for path in (server.folder / "data").rglob("pgsql_tmp*/*") if path.is_file()]
            assert spilled, "the sort spilled"
            assert any(b"canary" in each for each in spilled) == shows


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {R} SET body = jsonb_set(body, ARRAY[(SELECT min(key) FROM jsonb_each(body))], '\"AAAA\"')",
        "UPDATE {R} SET body = '[1]'",
        "DELETE FROM {R} WHERE handle = (SELECT handle FROM {R} ORDER BY handle LIMIT 1)",
        "UPDATE {I} SET content = decode(repeat('00', 32), 'hex')",
        "UPDATE collections SET counter = counter - 1",
    ],
)
def test_an_alteration_is_noticed(server: postgres.Server, place: Place, statement: str) -> None:
    name = place.url.rpartition("%3D")[2]
    tables = [each for (each,) in asked(server, ["SELECT tablename FROM pg_tables WHERE schemaname = %s", name])]
    records, index = (next(each for each in tables if each.startswith(letter)) for letter in ("r_", "i_"))
    text = statement.replace("{R}", f'"{records}"').replace("{I}", f'"{index}"')
    asked(server, [f"SET search_path = {name}"], [text])
    found = place.store.verify()
    assert not found
    assert "canary" not in str(found).replace("canary-people", "")


def test_a_server_that_is_down_says_nothing_and_is_found_again(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    try:
        here = postgres.start()
    except postgres.CannotStart as error:
        pytest.skip(str(error))
    try:
        place = Place(tmp_path, here.url)
        people = place.store.collection("canary-people", FIELDS)
        people.insert_one({"_id": 1, "town": "canary-Basel"})
        postgres.kill(here)
        with pytest.raises(cl.EngineError, match="server answers") as caught:
            people.insert_one({"_id": 2, "town": "canary-Bern"})
        assert here.url not in str(caught.value)
        assert caught.value.__context__ is None
        here = postgres.again(here)
        people.insert_one({"_id": 2, "town": "canary-Bern"})
        assert people.count_documents({}) == 2
        assert place.store.verify()
        place.store.close()
        place.keys.close()
    finally:
        postgres.stop(here.folder, here.pid)


@pytest.mark.timeout(1800)
@by_day_and_night("examples", 2, 50)
def test_a_vault_on_a_server_equals_a_plain_store(server: postgres.Server, examples: int) -> None:
    class OnServer(Replay):
        def made(self, folder: Path) -> Place:
            return Place(folder, schema(server)[1])

    chosen = settings(max_examples=examples, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(OnServer, settings=chosen)  # type: ignore[no-untyped-call]
