"""Sums that were changed while nobody looked are not believed, however long the ledger is; and any value in any cell is found."""

from __future__ import annotations

import contextlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import CloisterError, LedgerFrozen, LedgerTampered
from cloister.ledger import Ledger, checkpoint
from cloister.ledger.checkpoint import sealed_sums
from cloister.privacy import ZCDP, ApproxDP, PureDP
from tests.tiers import by_day_and_night

TENTH = PureDP("0.1")
TABLES = {
    "lines": ["sequence", "payload", "hash"],
    "accounts": ["population", "who", "cap", "spent", "slack", "unbounded"],
    "charges": ["population", "what", "id"],
    "draws": ["population", "who", "what", "spent", "slack"],
    "sources": ["source", "population"],
    "outcomes": ["id", "state", "attempt"],
    "releases": ["id", "settled", "content"],
    "meta": ["name", "value"],
}
BLOB, NUMBER = ("hash", "content"), ("sequence", "unbounded", "id", "attempt", "settled")


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "LEAST", 10)


@pytest.fixture
def filled(durable: Any) -> Any:
    """Something of every kind, and a checkpoint."""
    with durable.open() as ledger:
        ledger.open("people", PureDP(5), who="owner")
        ledger.open("staff", ApproxDP(5, "1e-6"), who="owner")
        ledger.open("rho", ZCDP(5), who="owner")
        ledger.bind(["5f3a", "77c1"], "people", who="owner")
        ledger.allot("people", "ada", PureDP(3), who="owner")
        for number in range(6):
            reserved = ledger.reserve({"people": TENTH, "rho": PureDP("1/101")}, who="ada", what=f"plan {number}")
            ledger.settle(reserved, b"answer %d" % number)
        ledger.void(ledger.reserve({"staff": ApproxDP("0.3", "1e-7")}, who="bob", what="failed"))
        ledger.reserve({"staff": TENTH}, who="bob", what="taken over")
        ledger.reserve({"staff": TENTH}, who="bob", what="taken over")
        ledger.charge_allotment({"people": TENTH}, who="bob", what="plan 1")
        ledger.raise_budget("people", PureDP(6), who="owner", why="a second study")
        ledger.note_not_private("staff", who="owner", what="a table")
        for number in range(20):
            ledger.reserve({"people": TENTH}, who="bob", what=f"more {number}")
        assert sum(line.kind == "checkpoint" for line in ledger.lines()) >= 1
        assert ledger.verify() is True
    return durable


CHANGES = [
    "UPDATE accounts SET spent = '0' WHERE population = 'people' AND who = ''",
    "UPDATE accounts SET spent = '0'",
    "UPDATE accounts SET cap = 'pure 50' WHERE population = 'people' AND who = ''",
    "UPDATE accounts SET cap = NULL WHERE who = 'ada'",
    "UPDATE accounts SET unbounded = 0",
    "UPDATE accounts SET slack = '-1' WHERE population = 'staff' AND who = ''",
    "DELETE FROM accounts WHERE who = 'bob'",
    "DELETE FROM accounts WHERE population = 'people'",
    "INSERT INTO accounts (population, who, cap, spent, slack, unbounded) VALUES ('new', '', 'pure 9', '0', '0', 0)",
    "DELETE FROM sources WHERE source = '5f3a'",
    "UPDATE sources SET population = 'staff' WHERE source = '5f3a'",
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_while_the_ledger_was_closed_is_not_believed(filled: Any, sql: Any, change: str) -> None:
    with filled.open() as ledger:
        spent = {name: ledger.spent(name) for name in ledger.populations()}
    sql(change)
    with filled.open() as ledger:
        assert ledger.frozen is not None
        assert "sealed lines" in ledger.frozen.reason
        assert ledger.frozen.losses == spent
        with pytest.raises(LedgerFrozen):
            ledger.reserve({"people": TENTH}, who="ada", what="a plan")
        assert not ledger.verify()
        with pytest.raises(CloisterError, match="known to be at least"):
            ledger.restore(dict.fromkeys(spent, PureDP(0)), who="owner", why="mended")
        assert ledger.frozen is not None
        ledger.restore(ledger.frozen.losses, who="owner", why="somebody wrote to the tables")
        assert ledger.frozen is None
        assert {name: ledger.spent(name) for name in ledger.populations()} == spent
        assert ledger.bound("5f3a") == "people"
        assert ledger.budget("people") == PureDP(6)
        assert ledger.unbounded("staff")
        ledger.reserve({"people": TENTH}, who="ada", what="a plan")
        assert ledger.verify() is True
    with filled.open() as ledger:
        assert ledger.frozen is None


def test_only_what_came_after_the_newest_checkpoint_is_read(filled: Any) -> None:
    with filled.open() as ledger:
        last = max(line.sequence for line in ledger.lines() if line.kind == "checkpoint")
        for number in range(300):
            ledger.reserve({"rho": ZCDP("1/1000")}, who=f"u{number % 3}", what=f"many {number}")
        lines = list(ledger.lines())
        points = [line.sequence for line in lines if line.kind == "checkpoint"]
        apart = [later - one for one, later in itertools.pairwise(points)]
        assert points[-1] > last
        assert max(apart) <= 60  # four lines an account
        assert len(lines) - points[-1] <= 60
        store, read = ledger._store.another(), []
        execute = store.execute
        store.execute = lambda sql, values=(): read.append(sql) or execute(sql, values)  # type: ignore[assignment, func-returns-value]
        sums, broken = sealed_sums(store, ledger._opened.key, len(lines))
        store.close()
        assert broken is None
        assert sums.number == len(lines)
        assert len(read) <= 4
        assert ledger.verify() is True


def test_a_changed_line_after_the_checkpoint_freezes_and_no_restore_goes_on_over_it(filled: Any, sql: Any) -> None:
    [(last, text)] = sql("SELECT sequence, payload FROM lines ORDER BY sequence DESC LIMIT 1")
    sql("UPDATE lines SET payload = ? WHERE sequence = ?", text.replace("bob", "eve"), last)
    with filled.open() as ledger:
        assert ledger.frozen is not None
        with pytest.raises(LedgerTampered):
            ledger.restore(ledger.frozen.losses, who="owner", why="mended")
        assert ledger.frozen is not None
        assert ledger.spent("people") == PureDP("2.6")  # the tables stand as they were
        assert ledger.verify().line == last


BEFORE_THE_CHECKPOINT = [
    ("DELETE FROM lines WHERE sequence = {id} + 1", "not what was written"),
    ("UPDATE lines SET payload = '{{}}' WHERE sequence = {id} + 1", "not what was written"),
    ("DELETE FROM lines WHERE sequence = {id} - 1", "not what was written"),
    ("UPDATE lines SET payload = replace(payload, 'plan 5', 'plan 6') WHERE sequence = {id}", "not what was written"),
    ("SELECT 1", "had ended"),
]


@pytest.mark.parametrize(("change", "why"), BEFORE_THE_CHECKPOINT)
def test_a_settled_charge_pays_for_nothing_more_though_its_line_is_gone(filled: Any, sql: Any, change: str, why: str) -> None:
    """Lines before the newest checkpoint are not read at opening: one that was dropped there is missed where it matters."""
    with filled.open() as ledger:
        [charge] = [charge for charge in ledger.charges("people") if charge.what == "plan 5"]
        ids = [line.sequence for line in ledger.lines() if line.kind == "checkpoint"]
        assert max(ids) > charge.id + 1
    sql(change.format(id=charge.id))
    sql(f"DELETE FROM releases WHERE id = {charge.id:d}")
    with filled.open() as ledger:
        assert ledger.frozen is None
        what = "plan 6" if "replace" in change else "plan 5"
        if what == "plan 6":
            sql(f"UPDATE charges SET what = 'plan 6' WHERE id = {charge.id:d}")
        with pytest.raises(LedgerTampered, match=why):
            ledger.reserve({"people": TENTH, "rho": PureDP("1/101")}, who="ada", what=what)


def test_a_reservation_pays_for_its_own_plan_alone(filled: Any, sql: Any) -> None:
    with filled.open() as ledger:
        waits = next(charge.id for charge in ledger.charges("people") if charge.what == "more 3")
        sql(f"UPDATE charges SET what = 'another plan' WHERE id = {waits:d}")
        with pytest.raises(LedgerTampered, match="another plan"):
            ledger.reserve({"people": TENTH}, who="bob", what="another plan")
        assert ledger.reserve({"people": TENTH}, who="bob", what="more 4").attempt == 2


def test_a_checkpoint_of_somebody_else_is_none(filled: Any, sql: Any) -> None:
    """Sums that are written into the text of a checkpoint are not sealed."""
    [(number, text)] = sql(
        "SELECT sequence, payload FROM lines WHERE payload LIKE ? ORDER BY sequence DESC LIMIT 1", '{"accounts"%'
    )
    payload = json.loads(text)
    payload["accounts"] = [[*row[:3], "0", *row[4:]] for row in payload["accounts"]]
    sql("UPDATE lines SET payload = ? WHERE sequence = ?", json.dumps(payload, separators=(",", ":"), sort_keys=True), number)
    with filled.open() as ledger:
        assert ledger.frozen is not None
        assert ledger.verify().line == number


def test_a_worker_that_reads_an_account_again_holds_it_against_the_lines(filled: Any, sql: Any) -> None:
    """Two processes: one writes, somebody changes the sum, and the other reads it."""
    with filled.open() as one, filled.open() as other:
        one.reserve({"people": TENTH}, who="ada", what="first")
        other.reserve({"people": TENTH}, who="ada", what="second")
        sql("UPDATE accounts SET spent = '0' WHERE population = 'people' AND who = ''")
        with pytest.raises(LedgerTampered, match="sealed lines"):
            one.reserve({"people": TENTH}, who="ada", what="third")
        assert other.spent("staff") == ApproxDP("0.1", 0)
    with filled.open() as ledger:
        assert ledger.frozen is not None
        assert ledger.frozen.losses["people"] == PureDP("2.8")


def test_two_processes_that_take_turns_agree_with_the_lines(filled: Any) -> None:
    with filled.open() as one, filled.open() as other:
        for number in range(30):
            for ledger in (one, other):
                reserved = ledger.reserve(
                    {"people": PureDP("0.01"), "staff": ApproxDP("0.001", 0)}, who="ada", what=f"turn {number}"
                )
                if number % 3 == 0:
                    ledger.void(reserved)
                elif number % 3 == 1:
                    ledger.settle(reserved, b"answer")
        assert one.verify() is True
        assert one.frozen is other.frozen is None


def test_an_older_ledger_without_checkpoints_gets_one(durable: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr(checkpoint, "LEAST", 10**9)
        with durable.open() as ledger:
            ledger.open("people", PureDP(5), who="owner")
            for number in range(30):
                ledger.reserve({"people": TENTH}, who="ada", what=f"plan {number}")
    with durable.open() as ledger:
        ledger.reserve({"people": TENTH}, who="ada", what="one more")
        assert [line.kind for line in ledger.lines()][-1] == "checkpoint"
        assert ledger.verify() is True


VALUES = [
    None,
    b"\x00\xff",
    b"",
    2**62,
    -1,
    0,
    1.5,
    "0",
    "",
    "x" * 5000,
    "9" * 5000,
    "a\x00b",
    "pure",
    "[]",
    "{}",
    "\u202e\u00e9",
]
INVALID = "CAST(X'ff00fe' AS TEXT)"


def opened_and_verified(place: Any) -> Any:
    """What a reader hears: true, where it is broken, or a refusal of ours; nothing else."""
    try:
        with place.open() as ledger:
            for population in ("people", "staff"):
                with contextlib.suppress(CloisterError):
                    ledger.spent(population)
            return ledger.verify()
    except CloisterError as error:
        return error


def test_verify_survives_any_value_in_any_cell_of_sqlite(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    import shutil
    import sqlite3

    from tests.ledger.conftest import Place

    folder = tmp_path / "first"
    folder.mkdir()
    first = Place(folder / "ledger.db", folder / "ledger.db.head", folder)
    small(first)
    with sqlite3.connect(folder / "ledger.db") as connection:  # as whoever can write to the file can have it: nothing is checked
        for table, columns in TABLES.items():
            connection.execute(f"ALTER TABLE {table} RENAME TO old")
            connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            connection.execute(f"INSERT INTO {table} SELECT {', '.join(columns)} FROM old")
            connection.execute("DROP TABLE old")
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    place = Place(tmp_path / "ledger.db", tmp_path / "ledger.db.head", tmp_path)
    heads = (folder / "ledger.db.head").read_bytes()

    def changed(statement: str, *values: Any) -> Any:
        for each in ("ledger.db-wal", "ledger.db-shm"):
            (tmp_path / each).unlink(missing_ok=True)
        shutil.copy(folder / "ledger.db", tmp_path / "ledger.db")
        (tmp_path / "ledger.db.head").write_bytes(heads)
        with sqlite3.connect(tmp_path / "ledger.db") as connection:
            connection.execute(statement, values)
        connection.close()
        return opened_and_verified(place)

    assert changed("SELECT 1") is True
    wrong = []
    for table, columns in TABLES.items():
        for column in columns:
            for which in ("MIN", "MAX"):
                row = f"WHERE rowid = (SELECT {which}(rowid) FROM {table})"
                for value in (*VALUES, INVALID):
                    how = value if value is INVALID else "?"
                    given = () if value is INVALID else (value,)
                    with sqlite3.connect(folder / "ledger.db") as source:
                        [(before,)] = source.execute(f"SELECT CAST({column} AS BLOB) FROM {table} {row}").fetchall()
                        [(after,)] = source.execute(f"SELECT CAST({how} AS BLOB)", given).fetchall()
                    source.close()
                    outcome = changed(f"UPDATE {table} SET {column} = {how} {row}", *given)
                    if outcome is True and before != after:
                        wrong.append((table, column, which, value))
    assert wrong == []


def small(place: Any) -> None:
    """A row or two in each table."""
    with place.open() as ledger:
        ledger.open("people", PureDP(5), who="owner")
        ledger.bind("5f3a", "people", who="owner")
        ledger.allot("people", "ada", PureDP(3), who="owner")
        ledger.settle(ledger.reserve({"people": TENTH}, who="ada", what="plan"), b"answer")
        ledger.void(ledger.reserve({"people": TENTH}, who="ada", what="failed"))
        ledger.charge_allotment({"people": TENTH}, who="bob", what="plan")


@pytest.mark.postgres
@by_day_and_night("parts", 3, 1)
def test_verify_survives_any_value_in_any_cell_of_postgres(postgres_server: Any, tmp_path: Path, parts: int) -> None:
    """By day every cell has a third of the values, in turn: what is read of them is read as from SQLite, which has them all."""
    import psycopg

    from tests.ledger.conftest import Place, new_schema

    url = new_schema(postgres_server)
    place = Place(url, tmp_path / "ledger.head", tmp_path)
    small(place)
    head = (tmp_path / "ledger.head").read_bytes()
    texts = ["", "0", "9" * 5000, "pure", "{}", "\u202e\u00e9", "-1", None]
    kinds: dict[str, list[Any]] = {"blob": [b"\x00\xff", b"", None], "number": [2**31 - 1, -1, 0, None], "text": texts}
    wrong = []
    with psycopg.connect(url, autocommit=True) as connection:
        for table, columns in TABLES.items():
            connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {table}_pkey")
            for turn, column in enumerate(columns):
                connection.execute(f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")
                kind = "blob" if column in BLOB else "number" if column in NUMBER else "text"
                for value in kinds[kind][turn % parts :: parts]:
                    row = f"WHERE ctid = (SELECT MAX(ctid) FROM {table})"
                    [(before,)] = connection.execute(f"SELECT {column} FROM {table} {row}").fetchall()
                    if before == value:
                        continue
                    connection.execute(f"CREATE TABLE kept AS SELECT * FROM {table}")
                    connection.execute(f"UPDATE {table} SET {column} = %s {row}", (value,))
                    if opened_and_verified(place) is True:
                        wrong.append((table, column, value))
                    connection.execute(f"DELETE FROM {table}")
                    connection.execute(f"INSERT INTO {table} SELECT * FROM kept")
                    connection.execute("DROP TABLE kept")
                    (tmp_path / "ledger.head").write_bytes(head)
    assert wrong == []
    assert opened_and_verified(place) is True


def test_a_ledger_in_memory_needs_no_checkpoints() -> None:
    with Ledger() as ledger:
        ledger.open("people", PureDP(5), who="owner")
        for number in range(30):
            ledger.reserve({"people": TENTH}, who="ada", what=f"plan {number}")
        assert {line.kind for line in ledger.lines()} == {"created", "opened", "reserved"}
        assert ledger.verify() is True
