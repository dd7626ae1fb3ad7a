"""The chain holds: whoever writes, whatever is changed, cut, rolled back or undone."""

from __future__ import annotations

import shutil
import threading
from datetime import timedelta

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from cloister.errors import InvalidParameter
from cloister.hub.hub import NOBODY, Caller
from cloister.hub.keys import hub_keyring, rotate
from cloister.hub.platform.trail import BrokenLine, accept, verify, write, write_alone
from cloister.hub.platform.trail.profiles import read_history
from cloister.hub.platform.trail.reading import Filters, Scope, by_day, export, of_data_set, read_batch, read_page
from cloister.hub.platform.trail.writing import keeper_of
from cloister.hub.records.trail import AuditHead, AuditLine

ADA = Caller(id="ada", via="session", address="192.0.2.7")


def fill(hub, count: int = 5) -> None:
    for number in range(count):
        write_alone(
            hub, ADA, "dataset.see", kind="data-set", object_id=f"d{number}", purpose="a study", cost={"people": "ε = 0.1"}
        )


def execute(hub, statement: str) -> None:
    with hub.database.begin() as db:
        db.execute(text(statement))


def test_a_line_holds_what_was_done(hub):
    with hub.database.begin() as db:
        number = write(
            hub,
            db,
            ADA,
            "question.ask",
            kind="release",
            object_id="r1",
            purpose="study",
            cost={"p": "ε = 1"},
            data_sets=("people",),
        )
    with hub.database.reading() as db:
        line = db.get(AuditLine, number)
        assert (line.person, line.action, line.kind, line.object, line.purpose) == (
            "ada",
            "question.ask",
            "release",
            "r1",
            "study",
        )
        assert line.cost == {"p": "ε = 1"}
        assert line.details == {"address": "192.0.2.7", "via": "session", "data_sets": ["people"]}
        assert line.when == hub.now()
    assert verify(hub) is True


def test_an_empty_trail_verifies(hub):
    assert verify(hub) is True


def test_texts_that_databases_refuse_are_kept_in_another_form(hub):
    write_alone(hub, NOBODY, "login", purpose="a\0b", object_id="x" * 500, name="\ud800", share=0.25, many=["y" * 20_000])
    assert verify(hub) is True


def test_secrets_are_not_written(hub):
    with pytest.raises(ValueError, match="no secrets: new_password"):
        write_alone(hub, NOBODY, "login", new_password="hunter2")
    assert verify(hub) is True


def test_a_name_that_people_chose_may_look_like_a_secret(hub):
    """A population called "secretaries" is asked about and opened like any other."""
    chosen = {"secretaries": "ε = 0.1", "totp_study": "ε = 1", "cookies and passwords": "ε = 2"}
    number = write_alone(hub, ADA, "dataset.register", cost=chosen, budget=chosen, rule={"labels": {"password": "x"}})
    with hub.database.reading() as db:
        line = db.get(AuditLine, number)
        assert (line.cost, line.details["budget"]) == (chosen, chosen)
    assert verify(hub) is True


def test_an_undone_transaction_leaves_no_line(hub):
    fill(hub, 2)
    with pytest.raises(ZeroDivisionError), hub.database.begin() as db:  # noqa: PT012
        write(hub, db, ADA, "dataset.delete", object_id="d1")
        raise ZeroDivisionError
    with hub.database.begin() as db:  # a part of a transaction is undone
        write(hub, db, ADA, "dataset.see", object_id="d2")
        with pytest.raises(ZeroDivisionError), db.begin_nested():  # noqa: PT012
            write(hub, db, ADA, "dataset.delete", object_id="d1")
            raise ZeroDivisionError
    with hub.database.begin() as db, db.begin_nested():
        write(hub, db, ADA, "dataset.see", object_id="d3")
    assert verify(hub) is True
    with hub.database.reading() as db:
        assert [line.object for line in db.query(AuditLine).order_by(AuditLine.number)] == ["d0", "d1", "d2", "d3"]


def test_a_line_outside_a_transaction_is_refused(hub):
    if hub.database.is_postgres:
        return  # every session of PostgreSQL is a transaction
    with Session(hub.database.engine) as db, pytest.raises(RuntimeError, match="in a transaction"):
        write(hub, db, ADA, "dataset.see")


def test_writers_at_once_make_one_chain(opens):
    hubs = [opens() for _ in range(3)]
    threads = [threading.Thread(target=fill, args=(hubs[number % 3], 15)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for hub in hubs:
        assert verify(hub) is True
    with hubs[0].database.reading() as db:
        assert db.query(AuditLine).count() == 90
        assert db.get(AuditHead, 1).number == 90


@pytest.mark.parametrize(
    ("statement", "number", "reason"),
    [
        ("UPDATE trail SET person = 'bob' WHERE number = 3", 3, "changed"),
        ("UPDATE trail SET outcome = 'denied' WHERE number = 5", 5, "changed"),
        ("UPDATE trail SET details = '{}' WHERE number = 1", 1, "changed"),
        ('UPDATE trail SET cost = \'{"people": "ε = 0.0"}\' WHERE number = 2', 2, "changed"),
        ("DELETE FROM trail_about WHERE number = 3", 3, "index"),
        ("UPDATE trail_about SET object = 'd9' WHERE number = 4", 4, "index"),
        ("UPDATE trail_head SET number = 4, hash = (SELECT hash FROM trail WHERE number = 4)", 5, "cut or rolled back"),
        ("DELETE FROM trail_head", 1, "the end of the chain is missing"),
    ],
)
def test_what_is_changed_is_found(hub, statement, number, reason):
    fill(hub)
    execute(hub, statement)
    broken = verify(hub)
    assert isinstance(broken, BrokenLine)
    assert (broken.number, reason in broken.reason) == (number, True), broken


def test_lines_that_are_gone_are_found(hub):
    fill(hub)
    execute(hub, "DELETE FROM trail_about WHERE number IN (2, 5)")
    execute(hub, "DELETE FROM trail WHERE number = 2")
    assert str(verify(hub)) == "line 2: it is missing"
    execute(hub, "UPDATE trail SET number = number - 1 WHERE number > 2") if not hub.database.is_postgres else None
    assert verify(hub).number == 2


def test_a_cut_end_is_found_when_the_head_row_is_cut_too(hub):
    """Whoever writes to the database cuts the newest lines and moves the head back: the file tells."""
    fill(hub)
    execute(hub, "DELETE FROM trail_about WHERE number > 3")
    execute(hub, "DELETE FROM trail WHERE number > 3")
    execute(hub, "UPDATE trail_head SET number = 3, hash = (SELECT hash FROM trail WHERE number = 3)")
    assert "line 5 is known" in verify(hub).reason


BEHIND = """INSERT INTO trail (number, moment, person, action, kind, object, purpose, cost, outcome, details, hash)
SELECT number + {further}, moment, person, action, kind, object, 'forged', cost, outcome, details, hash FROM trail
WHERE number = 5"""


@pytest.mark.parametrize("further", [1, 500])
def test_a_line_behind_the_end_is_found_and_not_shown(hub, further):
    """Whoever writes to the database can put a line behind the end, where no hash follows it."""
    fill(hub)
    execute(hub, BEHIND.format(further=further))
    execute(hub, f"INSERT INTO trail_about (object, number) VALUES ('data-set:d4', {5 + further})")
    broken = verify(hub)
    assert isinstance(broken, BrokenLine)
    assert (broken.number, "behind the end" in broken.reason) == (5 + further, True)
    with hub.database.reading() as db:
        whole, about = read_page(db, Filters(), Scope()), read_page(db, Filters(), Scope(objects=("data-set:d4",)))
        assert [line.number for line in whole.lines] == [5, 4, 3, 2, 1]
        assert [line.number for line in about.lines] == [5]
        assert sum(count for _, count in by_day(hub, db, Filters(), Scope())) == 5
        assert db.scalars(select(AuditLine.number).where(of_data_set("d4"))).all() == [5]
        assert [line.number for line in read_batch(db, Filters(), Scope(), after=0, until=10**6)] == [1, 2, 3, 4, 5]
        assert read_history(db, "ada").total == 0
    assert "forged" not in "".join(export(hub, "jsonl", Filters(), Scope()))


def test_an_index_entry_behind_the_end_is_found(hub):
    fill(hub, 3)
    execute(hub, BEHIND.replace("number = 5", "number = 3").format(further=7))
    execute(hub, "INSERT INTO trail_about (object, number) VALUES ('data-set:d0', 10)")
    assert verify(hub).number == 10


def test_without_the_head_file_nothing_is_verified_and_the_next_process_writes_that_down(hub, opens, settings):
    """Cut the end, move the head's row, and take the file that would tell: what cannot be told is not called whole."""
    fill(hub)
    cut(hub, 3)
    (settings.data / "trail.head").unlink()
    broken = verify(hub)
    assert isinstance(broken, BrokenLine)
    assert (broken.number, "head file is missing" in broken.reason) == (4, True)
    again = opens()
    broken = verify(again)
    assert (broken.number, "nobody has answered" in broken.reason) == (4, True)
    accept(again, ADA, who="the board", why="the folder was moved")
    assert verify(again) is True


def test_a_head_file_without_a_record_that_holds_is_as_good_as_none(hub, settings):
    fill(hub)
    (settings.data / "trail.head").write_text("5 " + "0" * 64)
    assert "head file is missing" in verify(hub).reason


def cut(hub, number: int) -> None:
    execute(hub, f"DELETE FROM trail_about WHERE number > {number}")
    execute(hub, f"DELETE FROM trail WHERE number > {number}")
    execute(hub, f"UPDATE trail_head SET number = {number}, hash = (SELECT hash FROM trail WHERE number = {number})")


def test_a_loss_is_written_down_and_somebody_answers_for_it(hub, opens):
    fill(hub)
    with pytest.raises(InvalidParameter, match="no gap"):
        accept(hub, ADA, who="the board", why="nothing happened")
    cut(hub, 3)
    again = opens()
    broken = verify(again)
    assert (broken.number, "nobody has answered" in broken.reason) == (4, True)
    fill(again, 4)  # work goes on, and does not hide it
    assert verify(again).number == 4
    accept(again, ADA, who="the board", why="the disk of May")
    assert verify(again) is True
    assert verify(opens()) is True


def test_a_loss_under_a_running_hub_is_written_down_too(hub):
    fill(hub)
    cut(hub, 2)
    fill(hub, 1)
    assert verify(hub).number == 3
    accept(hub, ADA, who="the board", why="restored")
    assert verify(hub) is True


def test_another_history_of_the_same_length_is_found(hub, opens, settings, clock):
    """A copy of the folder goes on by itself, and its database comes back in the place of the first."""
    if hub.database.is_postgres:
        return
    fill(hub, 3)
    with hub.database.engine.connect() as connection:
        connection.exec_driver_sql(f"VACUUM INTO '{settings.data / 'copy.db'}'")
    fill(hub, 2)
    hub.close()
    shutil.copy(settings.data / "copy.db", settings.data / "hub.db")
    for rest in ("hub.db-wal", "hub.db-shm"):
        (settings.data / rest).unlink(missing_ok=True)
    (settings.data / "trail.head").rename(settings.data / "aside")
    changed = opens()
    clock.now += timedelta(minutes=1)
    fill(changed, 1)
    accept(changed, ADA, who="the board", why="the head file was lost")
    assert verify(changed) is True
    changed.close()
    (settings.data / "aside").rename(settings.data / "trail.head")
    assert "nobody has answered" in verify(opens()).reason


def test_another_master_key_leaves_the_chain_as_it_is(hub, opens):
    fill(hub)
    other = hub_keyring(bytes(range(32)))
    rotate(hub, other)
    hub.keys = other
    hub.parts.clear()  # as a process that begins with the other key
    hub._secrets.clear()
    fill(hub)
    assert verify(hub) is True


def test_the_file_is_written_anew_when_it_has_grown(hub, settings, monkeypatch):
    monkeypatch.setattr("cloister.ledger.head._GROWN", 500)
    keeper_of(hub)._file._limit = 500
    fill(hub, 30)
    assert (settings.data / "trail.head").stat().st_size < 1000
    assert verify(hub) is True
