"""What was done behind the ledger's back is found: a changed, dropped, moved, inserted or cut line, a changed table, an older
copy."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest

from cloister.crypto import canonical_json
from cloister.errors import LedgerError, LedgerFrozen, LedgerTampered
from cloister.ledger import Ledger
from cloister.ledger.chain import chained
from cloister.privacy import ApproxDP, PureDP
from tests.ledger.conftest import KEY

TENTH = PureDP("0.1")


@pytest.fixture
def filled(durable):
    """A ledger of some dozen lines, closed."""
    with durable.open() as ledger:
        ledger.open("people", PureDP(1), who="owner")
        ledger.allot("people", "ada", PureDP("0.9"), who="owner")
        for number in range(4):
            ledger.settle(ledger.reserve({"people": TENTH}, who="ada", what=f"plan {number}"), b"answer %d" % number)
        ledger.void(ledger.reserve({"people": TENTH}, who="ada", what="a plan that failed"))
        ledger.reserve({"people": TENTH}, who="ada", what="a plan that waits")
        ledger.reserve({"people": TENTH}, who="ada", what="a plan taken over")
        ledger.reserve({"people": TENTH}, who="ada", what="a plan taken over")
        assert ledger.verify() is True
        assert ledger.head[0] == 16
    return durable


def found(place):
    with place.open() as ledger:
        return ledger.verify()


class TestLines:
    def test_an_untouched_ledger_verifies(self, filled):
        assert found(filled) is True

    @pytest.mark.parametrize("line", [2, 5, 9, 15, 16])
    def test_a_changed_line(self, filled, sql, line):
        ((text,),) = sql("SELECT payload FROM lines WHERE sequence = ?", line)
        sql("UPDATE lines SET payload = ? WHERE sequence = ?", canonical_json(json.loads(text) | {"who": "eve"}), line)
        broken = found(filled)
        assert not broken
        assert broken.line == line
        assert "changed" in broken.reason

    def test_a_changed_hash(self, filled, sql):
        sql("UPDATE lines SET hash = ? WHERE sequence = 7", bytes(32))
        assert found(filled).line == 7

    def test_a_changed_first_line_is_found_on_opening(self, filled, sql):
        sql("UPDATE lines SET hash = ? WHERE sequence = 1", bytes(32))
        with pytest.raises(LedgerTampered, match="first line"):
            filled.open()

    def test_a_dropped_line(self, filled, sql):
        sql("DELETE FROM lines WHERE sequence = 6")
        broken = found(filled)
        assert (broken.line, broken.reason) == (6, "the line is missing")

    def test_a_dropped_line_with_the_others_moved_up(self, filled, sql):
        sql("DELETE FROM lines WHERE sequence = 6")
        for number in range(7, 17):
            sql("UPDATE lines SET sequence = ? WHERE sequence = ?", number - 1, number)
        assert found(filled).line == 6

    def test_moved_lines(self, filled, sql):
        for old, new in ((6, 1000), (8, 6), (1000, 8)):
            sql("UPDATE lines SET sequence = ? WHERE sequence = ?", new, old)
        assert found(filled).line == 6

    @pytest.mark.parametrize("lines", [1, 2, 10])
    def test_lines_cut_from_the_end(self, filled, sql, lines):
        sql("DELETE FROM lines WHERE sequence > ?", 16 - lines)
        with filled.open() as ledger:
            assert ledger.frozen is not None
            assert "line 16 had been written" in ledger.frozen.reason
            assert ledger.verify().line == 17 - lines
            with pytest.raises(LedgerFrozen):
                ledger.reserve({"people": TENTH}, who="ada", what="plan")

    def test_a_line_made_without_the_key(self, filled, sql):
        ((end,),) = sql("SELECT hash FROM lines WHERE sequence = 16")
        text = canonical_json(
            {"kind": "raised", "at": 10**16, "population": "people", "budget": ["pure", "9"], "who": "eve", "why": "because"}
        )
        sql("INSERT INTO lines (sequence, payload, hash) VALUES (17, ?, ?)", text, chained(bytes(32), 17, bytes(end), text))
        assert found(filled).line == 17

    @pytest.mark.parametrize(
        "payload",
        [
            {"kind": "reserved", "who": "eve", "what": "plan", "purpose": "", "costs": {"people": ["pure", "5"]}},
            {"kind": "raised", "population": "people", "budget": ["pure", "0.5"], "who": "eve", "why": "to harm"},
            {"kind": "settled", "id": 4, "attempt": 1, "release": "00"},
            {"kind": "voided", "id": 13},
            {"kind": "claimed", "id": 2, "who": "eve"},
            {"kind": "opened", "population": "people", "budget": ["pure", "5"], "who": "eve"},
            {"kind": "created", "format": 2},
            {
                "kind": "restored",
                "losses": {"people": ["pure", "0"]},
                "budgets": {},
                "unbounded": [],
                "who": "eve",
                "why": "to spend again",
            },
            {"kind": "invented"},
            {"kind": "raised"},
        ],
    )
    def test_a_line_made_with_the_key_must_still_make_sense(self, filled, sql, payload):
        ((end,),) = sql("SELECT hash FROM lines WHERE sequence = 16")
        text = canonical_json(payload | {"at": 10**16})
        sql("INSERT INTO lines (sequence, payload, hash) VALUES (17, ?, ?)", text, chained(KEY, 17, bytes(end), text))
        assert found(filled).line == 17


class TestTables:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE accounts SET spent = '0' WHERE who = ''",
            "UPDATE accounts SET cap = 'pure 5' WHERE who = ''",
            "UPDATE accounts SET cap = 'pure 5' WHERE who = 'ada'",
            "UPDATE accounts SET spent = '1' WHERE who = 'ada'",
            "UPDATE accounts SET unbounded = 1 WHERE who = ''",
            "DELETE FROM accounts WHERE who = 'ada'",
            "DELETE FROM charges WHERE id = 4",
            "DELETE FROM outcomes",
            "UPDATE outcomes SET state = 'voided', attempt = 1",
            "UPDATE charges SET what = 'another plan' WHERE id = 4",
            "UPDATE charges SET population = 'places' WHERE id = 4",
            "DELETE FROM releases WHERE id = 4",
            "UPDATE releases SET id = 99 WHERE id = 4",
        ],
    )
    def test_a_table_that_does_not_follow_from_the_lines(self, filled, sql, statement):
        sql(statement)
        assert not found(filled)

    def test_a_changed_release_is_neither_verified_nor_returned(self, filled, sql):
        sql("UPDATE releases SET content = ? WHERE id = 4", b"forged")
        assert found(filled).line == 5
        with filled.open() as ledger:
            with pytest.raises(LedgerTampered, match="not the one that was settled"):
                ledger.find("plan 0", ["people"])
            assert ledger.find("plan 1", ["people"])[0].release == b"answer 1"

    def test_a_changed_release_with_its_line_changed_to_match(self, filled, sql):
        ((text,),) = sql("SELECT payload FROM lines WHERE sequence = 5")
        forged = canonical_json(json.loads(text) | {"release": hashlib.sha256(b"forged").hexdigest()})
        sql("UPDATE lines SET payload = ? WHERE sequence = 5", forged)
        sql("UPDATE releases SET content = ? WHERE id = 4", b"forged")
        assert found(filled).line == 5
        with filled.open() as ledger, pytest.raises(LedgerTampered):
            ledger.find("plan 0", ["people"])

    @pytest.mark.parametrize(
        ("statement", "what"),
        [
            ("DELETE FROM releases WHERE id = 4", "plan 0"),
            ("UPDATE releases SET id = 99 WHERE id = 4", "plan 0"),
            ("DELETE FROM outcomes", "a plan that failed"),
            ("DELETE FROM outcomes", "a plan taken over"),
        ],
    )
    def test_what_ended_is_not_taken_over_where_its_row_is_gone(self, filled, sql, statement, what):
        """It would be answered once more under a charge that is used up, or that was given back."""
        with filled.open() as ledger:
            sql(statement)
            spent, head = ledger.spent("people"), ledger.head
            with pytest.raises(LedgerTampered, match="had ended"):
                ledger.reserve({"people": TENTH}, who="ada", what=what)
            assert (ledger.spent("people"), ledger.head) == (spent, head)
            assert ledger.reserve({"people": TENTH}, who="ada", what="a plan that waits").attempt == 2
            assert ledger.reserve({"people": TENTH}, who="ada", what='4,"id":4,"kind":"settled').attempt == 1


class TestKeys:
    def test_the_wrong_key_opens_nothing(self, filled):
        with pytest.raises(LedgerTampered, match="not this ledger's"):
            filled.open(key=bytes(32))

    def test_a_key_file_is_made_once_and_only_for_its_owner(self, tmp_path):
        path = tmp_path / "budget.db"
        Ledger(path).close()
        key = tmp_path / "budget.db.key"
        assert key.stat().st_mode & 0o777 == 0o600
        assert len(bytes.fromhex(key.read_text())) == 32
        before = key.read_text()
        Ledger(path).close()
        assert key.read_text() == before

    def test_a_lost_key_is_not_replaced(self, tmp_path):
        Ledger(tmp_path / "budget.db").close()
        (tmp_path / "budget.db.key").unlink()
        with pytest.raises(LedgerError, match=r"key file budget\.db\.key is missing"):
            Ledger(tmp_path / "budget.db")
        assert not (tmp_path / "budget.db.key").exists()

    def test_the_key_may_be_elsewhere(self, tmp_path, monkeypatch):
        Ledger(tmp_path / "a.db", key=tmp_path / "elsewhere.key").close()
        assert not (tmp_path / "a.db.key").exists()
        monkeypatch.setenv("CLOISTER_LEDGER_KEY", (tmp_path / "elsewhere.key").read_text())
        with Ledger(tmp_path / "a.db") as ledger:
            assert ledger.verify() is True
        monkeypatch.setenv("CLOISTER_LEDGER_KEY", "not hexadecimal")
        with pytest.raises(LedgerError, match="hexadecimal"):
            Ledger(tmp_path / "a.db")
        with pytest.raises(LedgerError, match="shorter than 32 bytes"):
            Ledger(tmp_path / "a.db", key=b"short")


@pytest.fixture
def rolled_back(tmp_path):
    """A database put back to an older copy, two charges and a raised budget behind, and a population that the copy did not
    have."""
    path, copy = tmp_path / "budget.db", tmp_path / "copy.db"
    with Ledger(path) as ledger:
        ledger.open("people", PureDP(1), who="owner")
        ledger.settle(ledger.reserve({"people": TENTH}, who="ada", what="before"), b"answer")
    shutil.copy(path, copy)
    with Ledger(path) as ledger:
        ledger.settle(ledger.reserve({"people": PureDP("0.3")}, who="ada", what="after"), b"answer")
        ledger.open("places", ApproxDP(1, "1e-6"), who="owner")
        ledger.reserve({"places": ApproxDP("0.5", "1e-7")}, who="ada", what="after")
        ledger.note_not_private("places", who="owner", what="a table")
    shutil.copy(copy, path)
    return path


class TestRollback:
    def test_it_is_found_and_the_ledger_is_frozen(self, rolled_back):
        with Ledger(rolled_back) as ledger:
            assert ledger.frozen.count == 9
            assert ledger.frozen.losses == {"people": PureDP("0.4"), "places": ApproxDP("0.5", "1e-7")}
            broken = ledger.verify()
            assert (broken.line, "9 lines had been written" in broken.reason) == (5, True)
            for act in (
                lambda: ledger.reserve({"people": TENTH}, who="ada", what="plan"),
                lambda: ledger.check({"people": TENTH}, who="ada"),
                lambda: ledger.open("people", PureDP(1), who="owner"),
                lambda: ledger.open("new", PureDP(1), who="owner"),
                lambda: ledger.raise_budget("people", PureDP(2), who="owner", why="more"),
                lambda: ledger.allot("people", "ada", TENTH, who="owner"),
                lambda: ledger.remaining("people"),
            ):
                with pytest.raises(LedgerFrozen, match="restore"):
                    act()
            ledger.check({}, who="ada")  # what costs nothing
            assert [row.what for row in ledger.charges("people")] == ["before"]

    def test_a_loss_below_what_is_known_is_refused(self, rolled_back):
        with Ledger(rolled_back) as ledger:
            known = dict(ledger.frozen.losses)
            for losses in (
                {"people": PureDP("0.4")},
                known | {"people": PureDP("0.39")},
                known | {"places": ApproxDP("0.5", "1e-8")},
                known | {"strangers": TENTH},
            ):
                with pytest.raises(LedgerError):
                    ledger.restore(losses, who="owner", why="the disk died")
                assert ledger.frozen is not None

    def test_it_goes_on_once_the_owner_has_entered_the_loss(self, rolled_back):
        with Ledger(rolled_back) as ledger:
            ledger.restore(ledger.frozen.losses | {"people": PureDP("0.95")}, who="owner", why="the disk died")
            assert ledger.frozen is None
            assert ledger.spent("people") == PureDP("0.95")
            assert ledger.spent("places") == ApproxDP("0.5", "1e-7")
            assert ledger.budget("places") == ApproxDP(1, "1e-6")
            assert ledger.unbounded("places")
            assert not ledger.unbounded("people")
            lost = ledger.charges("people")[-1]
            assert (lost.state, lost.cost, lost.what) == ("lost", PureDP("0.85"), "the disk died")
            ledger.reserve({"people": PureDP("0.05")}, who="ada", what="plan")
            assert ledger.verify() is True
        with Ledger(rolled_back) as ledger:
            assert ledger.frozen is None
            assert ledger.remaining("people") == PureDP(0)
            assert ledger.verify() is True

    @pytest.mark.parametrize("head", [True, False])
    def test_what_was_open_in_the_backup_is_charged_again(self, tmp_path, head):
        """Its answer may have left since: another draw under the same charge would be one that nobody paid for."""
        path, ask = tmp_path / "budget.db", {"who": "ada", "what": "plan"}
        with Ledger(path) as ledger:
            ledger.open("people", PureDP(1), who="owner")
            charge = ledger.reserve({"people": TENTH}, **ask)
        shutil.copy(path, tmp_path / "backup.db")
        with Ledger(path) as ledger:
            ledger.settle(charge, b"an answer that leaves")
        for beside in tmp_path.glob("budget.db-*"):
            beside.unlink()
        shutil.copy(tmp_path / "backup.db", path)
        if not head:
            path.with_name("budget.db.head").unlink()
        with Ledger(path) as ledger:
            ledger.restore(ledger.frozen.losses, who="owner", why="the disk died")
            assert ledger.waiting({"people": TENTH}, **ask) is None
            assert ledger.reserve({"people": TENTH}, **ask).attempt == 1
            assert ledger.spent("people") == PureDP("0.2")
            assert ledger.reserve({"people": TENTH}, **ask).attempt == 2, "what was begun since is taken over"
            assert ledger.verify() is True

    def test_a_ledger_in_good_order_is_not_restored(self, tmp_path):
        with Ledger(tmp_path / "budget.db") as ledger, pytest.raises(LedgerError, match="not frozen"):
            ledger.restore({}, who="owner", why="just so")

    def test_an_old_copy_that_went_on_is_found(self, rolled_back):
        head = rolled_back.with_name("budget.db.head")
        newest = head.read_bytes()
        head.unlink()
        with Ledger(rolled_back) as ledger:  # without the head, it only knows that it knows nothing
            assert "missing" in ledger.frozen.reason
            ledger.restore({"people": TENTH}, who="eve", why="to spend again")
            for number in range(5):
                ledger.reserve({"people": TENTH}, who="eve", what=f"plan {number}")
        head.write_bytes(newest)
        with Ledger(rolled_back) as ledger:
            assert "line 9 of its database is not the line" in ledger.frozen.reason
            assert ledger.verify().line == 9

    def test_a_database_that_is_gone_is_not_begun_anew(self, tmp_path):
        with Ledger(tmp_path / "budget.db") as ledger:
            ledger.open("people", PureDP(1), who="owner")
            ledger.reserve({"people": TENTH}, who="ada", what="plan")
        (tmp_path / "budget.db").unlink()
        with Ledger(tmp_path / "budget.db") as ledger:
            assert ledger.frozen.losses == {"people": TENTH}
            ledger.restore({"people": TENTH}, who="owner", why="the disk died")
            assert ledger.remaining("people") == PureDP("0.9")
            assert ledger.verify() is True

    def test_a_rollback_under_a_running_process_is_found(self, tmp_path):
        path = tmp_path / "budget.db"
        with Ledger(path) as ledger:
            ledger.open("people", PureDP(1), who="owner")
            ledger.reserve({"people": TENTH}, who="ada", what="plan")
            import sqlite3

            with sqlite3.connect(path) as connection:
                connection.execute("DELETE FROM lines WHERE sequence = 3")
            with pytest.raises(LedgerTampered, match="lost lines"):
                ledger.reserve({"people": TENTH}, who="ada", what="another plan")

    def test_a_forged_or_torn_head_counts_for_nothing(self, tmp_path):
        path, head = tmp_path / "budget.db", tmp_path / "budget.db.head"
        with Ledger(path) as ledger:
            ledger.open("people", PureDP(1), who="owner")
        with head.open("ab") as file:
            file.write(b"\n99 " + b"0" * 64 + b' {"people":["pure 1","0","0",0]} ' + b"0" * 64 + b"\n99 " + b"0" * 64)
        with Ledger(path) as ledger:
            assert ledger.frozen is None
            ledger.reserve({"people": TENTH}, who="ada", what="plan")
        with Ledger(path) as ledger:
            assert ledger.frozen is None
            assert ledger.verify() is True
        head.write_bytes(b"\n99 " + b"0" * 64)
        with Ledger(path) as ledger:
            assert "does not verify" in ledger.frozen.reason
