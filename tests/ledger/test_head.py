"""The second file: appended by several, replaced when it has grown, never ahead of what was committed."""

from __future__ import annotations

import pytest

from cloister.ledger import Ledger, head
from cloister.ledger.head import Account, Head, HeadFile
from cloister.privacy import PureDP

KEY = bytes(32)


def record(count: int, **spent: int) -> Head:
    accounts = {name: Account(budget=["pure", "1"], spent=(units, 0)) for name, units in spent.items()}
    return Head(count=count, hash=f"{count:064x}", accounts=accounts)


@pytest.fixture
def file(tmp_path):
    opened = HeadFile(tmp_path / "head", KEY)
    opened.begin()
    yield opened
    opened.close()


def test_the_newest_record_counts_in_whatever_order_they_came(file):
    for one in (record(1, people=1), record(5, people=5), record(3, people=3, places=7), record(4)):
        file.append(one)
    known = file.read()
    assert (known.count, known.hash) == (5, f"{5:064x}")
    assert {name: account.spent for name, account in known.accounts.items()} == {"people": (5, 0), "places": (7, 0)}


def test_a_missing_file_is_no_head(tmp_path):
    assert HeadFile(tmp_path / "head", KEY).read() is None


def test_beginning_twice_keeps_what_is_there(file):
    file.append(record(5))
    file.begin()
    assert file.read().count == 5


def test_a_record_of_another_key_does_not_count(file):
    file.replace(record(5, people=5))
    assert HeadFile(file.path, b"another key, of thirty-two bytes").read() is None


def test_a_torn_record_does_not_count(file):
    file.append(record(5))
    file.append(record(6))
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[:-20])
    assert file.read().count == 5


def test_another_process_sees_that_the_file_was_replaced(file):
    other = HeadFile(file.path, KEY)
    other.append(record(1))
    file.replace(record(8, people=8))
    other.look_again()  # as the writer does when another process has written
    other.append(record(9))
    assert file.read().count == 9
    assert file.path.stat().st_nlink == 1
    other.close()


def test_it_is_replaced_when_it_has_grown(tmp_path, monkeypatch):
    monkeypatch.setattr(head, "_GROWN", 4096)
    path = tmp_path / "budget.db"
    with Ledger(path) as ledger:
        ledger.open("people", PureDP(1), who="owner")
        ledger.open("places", PureDP(1), who="owner")
        largest = 0
        for number in range(100):
            ledger.reserve({"people": PureDP("0.01")}, who="ada", what=f"plan {number}")
            largest = max(largest, path.with_name("budget.db.head").stat().st_size)
        assert largest < 6000
        known = HeadFile(path.with_name("budget.db.head"), bytes.fromhex(path.with_name("budget.db.key").read_text())).read()
        assert (known.count, known.hash) == ledger.head
        assert sorted(known.accounts) == ["people", "places"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["budget.db", "budget.db.head", "budget.db.key"]
    with Ledger(path) as ledger:
        assert ledger.frozen is None
        assert ledger.verify() is True
