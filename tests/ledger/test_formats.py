"""A ledger that an older version wrote is brought to the current format on opening, with nothing lost."""

from __future__ import annotations

import hashlib
import sqlite3

import pytest

from cloister.crypto import canonical_json
from cloister.errors import LedgerError, LedgerTampered
from cloister.ledger import Ledger
from cloister.ledger.chain import BEGINNING, chained
from cloister.ledger.head import Account, Head, HeadFile
from cloister.ledger.measure import GRID
from cloister.ledger.store import FORMAT
from cloister.privacy import PureDP

KEY = bytes(range(32))
ANSWER = b"an answer of long ago"
LINES = [
    {"kind": "created", "format": 1},
    {"kind": "opened", "population": "people", "budget": ["pure", "1"], "who": "owner"},
    {"kind": "allotted", "population": "people", "user": "ada", "share": ["pure", "0.5"], "who": "owner"},
    {"kind": "reserved", "who": "ada", "what": "plan 1", "costs": {"people": ["pure", "0.1"]}},
    {"kind": "settled", "id": 4, "attempt": 1, "release": hashlib.sha256(ANSWER).hexdigest()},
    {"kind": "reserved", "who": "ada", "what": "plan 2", "costs": {"people": ["pure", "0.2"]}},
    {"kind": "reserved", "who": "ada", "what": "plan 3", "costs": {"people": ["pure", "0.05"]}},
    {"kind": "voided", "id": 7},
    {"kind": "reserved", "who": "bob", "what": "plan 4", "costs": {"people": ["pure", "0.3"]}},
    {"kind": "claimed", "id": 9, "who": "bob"},
    {"kind": "not private", "population": "people", "who": "owner", "what": "a table"},
]


@pytest.fixture
def old(tmp_path):
    """A ledger of format 1, made by hand as that version made it."""
    path = tmp_path / "budget.db"
    connection = sqlite3.connect(path)
    connection.executescript("""
        CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE lines (sequence INTEGER PRIMARY KEY, payload TEXT NOT NULL, hash BLOB NOT NULL);
        CREATE TABLE accounts (population TEXT PRIMARY KEY, cap TEXT NOT NULL, spent TEXT NOT NULL);
        CREATE TABLE releases (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
        INSERT INTO meta VALUES ('format', '1');
    """)
    parent = BEGINNING
    for number, line in enumerate(LINES, start=1):
        text = canonical_json(line | {"at": 1_600_000_000_000_000 + number})
        parent = chained(KEY, number, parent, text)
        connection.execute("INSERT INTO lines VALUES (?, ?, ?)", (number, text, parent))
    connection.execute("INSERT INTO accounts VALUES ('people', 'pure 1', '0.6')")
    connection.execute("INSERT INTO releases VALUES (4, ?)", (ANSWER,))
    connection.commit()
    connection.close()
    head = HeadFile(tmp_path / "budget.db.head", KEY)
    spent = (6 * GRID // 10, 0)
    head.replace(Head(count=len(LINES), hash=parent.hex(), accounts={"people": Account(budget=["pure", "1"], spent=spent)}))
    return path


def test_an_older_format_is_migrated(old):
    with Ledger(old, key=KEY) as ledger:
        assert ledger.frozen is None
        assert ledger.verify() is True
        assert ledger.budget("people") == PureDP(1)
        assert ledger.spent("people") == PureDP("0.6")
        assert ledger.unbounded("people")
        assert ledger.allotment("people", "ada") == (PureDP("0.5"), PureDP("0.2"))  # format 1 did not count it
        rows = [(row.what, row.state, row.attempt, row.purpose) for row in ledger.charges("people")]
        assert rows == [
            ("plan 1", "settled", 1, ""),
            ("plan 2", "reserved", 1, ""),
            ("plan 3", "voided", 1, ""),
            ("plan 4", "reserved", 2, ""),
            ("a table", "not private", 1, ""),
        ]
        assert ledger.find("plan 1", ["people"])[0].release == ANSWER
        again = ledger.reserve({"people": PureDP("0.2")}, who="ada", what="plan 2", purpose="format 1 knew none")
        assert (again.id, again.attempt) == (6, 2)
        ledger.settle(again, b"answer")
        assert [line.kind for line in ledger.lines(after=len(LINES))] == ["migrated", "claimed", "settled"]
        assert ledger.verify() is True


def test_it_is_migrated_once(old):
    Ledger(old, key=KEY).close()
    with Ledger(old, key=KEY) as ledger:
        assert ledger.head[0] == len(LINES) + 1
        assert ledger.verify() is True


def test_a_tampered_older_ledger_is_not_migrated(old):
    connection = sqlite3.connect(old)
    connection.execute("UPDATE lines SET payload = replace(payload, '0.3', '0.03') WHERE sequence = 9")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerTampered, match="Line 9"):
        Ledger(old, key=KEY)
    with sqlite3.connect(old) as connection:
        assert connection.execute("SELECT value FROM meta").fetchall() == [("1",)]


@pytest.mark.parametrize("version", ["0", str(FORMAT + 1), "77"])
def test_an_unknown_format_is_refused(tmp_path, version):
    Ledger(tmp_path / "budget.db", key=KEY).close()
    with sqlite3.connect(tmp_path / "budget.db") as connection:
        connection.execute("UPDATE meta SET value = ?", (version,))
    with pytest.raises(LedgerError, match="format"):
        Ledger(tmp_path / "budget.db", key=KEY)


def test_a_new_ledger_is_of_the_current_format(tmp_path):
    with Ledger(tmp_path / "budget.db") as ledger:
        assert next(ledger.lines()).payload["format"] == FORMAT
