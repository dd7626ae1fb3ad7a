"""Cursors: one cursor is one question, charged once however it is read; and they live and die as PostgreSQL's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import cloister as cl
from cloister.pgwire import Backend, Limits, PgSession
from tests.pgwire.conftest import Running, Start
from tests.pgwire.raw import SYNC, Raw, bind, describe, error, execute, fields, letters, parse, rows

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
DECLARE = f"DECLARE c SCROLL CURSOR FOR {BY_SEX}"


def tag(messages: list[tuple[str, bytes]]) -> str:
    """The tag of the last statement."""
    return [body for letter, body in messages if letter == "C"][-1][:-1].decode()


def firsts(messages: list[tuple[str, bytes]]) -> list[bytes]:
    """The first value of each row."""
    return [row[0] for row in rows(messages)]


def test_a_cursor_is_charged_at_its_first_row_and_never_again(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'; BEGIN")
        raw.query("BEGIN")
        assert tag(raw.query(DECLARE)) == "DECLARE CURSOR"
        assert tag(raw.query("FETCH 0 FROM c")) == "FETCH 0"
        assert tag(raw.query("MOVE 0 FROM c")) == "MOVE 0"
        assert running.charges == 0
        found = raw.query("FETCH c")
        assert (letters(found), tag(found), firsts(found)) == ("TDCZ", "FETCH 1", [b"F"])
        for step, steps_tag, values in (
            ("FETCH ALL FROM c", "FETCH 1", [b"M"]),
            ("FETCH NEXT IN c", "FETCH 0", []),
            ("FETCH BACKWARD ALL c", "FETCH 2", [b"M", b"F"]),
            ("MOVE FORWARD 5 IN c", "MOVE 2", []),
            ("FETCH PRIOR c", "FETCH 1", [b"M"]),
            ("FETCH RELATIVE 0 FROM c", "FETCH 1", [b"M"]),
            ("FETCH ABSOLUTE -2 FROM c", "FETCH 1", [b"F"]),
            ("FETCH LAST c", "FETCH 1", [b"M"]),
            ("FETCH FIRST c", "FETCH 1", [b"F"]),
            ("FETCH -1 FROM c", "FETCH 0", []),
            ("FETCH FORWARD ALL FROM c", "FETCH 2", [b"F", b"M"]),
        ):
            found = raw.query(step)
            assert (tag(found), firsts(found)) == (steps_tag, values), step
        assert tag(raw.query("CLOSE c")) == "CLOSE CURSOR"
        assert running.charges == 1
        raw.query(DECLARE)
        assert firsts(raw.query("FETCH ALL FROM c")) == [b"F", b"M"], "declared again, it is a repeat of what was paid for"
        assert running.charges == 1


def test_it_is_asked_as_is_set_when_it_runs_and_without_a_spend_it_is_not(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("BEGIN")
        raw.query("SET LOCAL cloister.spend = '0.5'")
        raw.query(f"DECLARE c CURSOR WITH HOLD FOR {BY_SEX}")
        raw.query("COMMIT")
        assert running.charges == 0, "a commit is no request to run"
        assert error(raw.query("FETCH c"))["C"] == "55000"
        assert running.charges == 0
        assert error(raw.query("FETCH c"))["C"] == "24000", "a cursor runs once, whatever came of it"
        raw.query("CLOSE c")
        raw.query(f"DECLARE c CURSOR WITH HOLD FOR {BY_SEX}")
        raw.query("SET cloister.spend = '0.25'")
        assert firsts(raw.query("FETCH c")) == [b"F"]
        assert str(running.session.spent) == "ε = 0.25"


def test_what_cannot_be_asked_is_refused_as_it_is_declared(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        for question, code in (
            ("SELECT nosuch FROM people", "42703"),
            ("SELECT x FROM nosuch", "42P01"),
            ("SELECT * FROM people", "0A000"),
            ("SELECT * FROM towns", "0A000"),
        ):
            raw.query("BEGIN")
            assert error(raw.query(f"DECLARE c CURSOR FOR {question}"))["C"] == code, question
            raw.query("ROLLBACK")
    assert running.charges == 0


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        (["FETCH c"], "34000"),
        (["MOVE c"], "34000"),
        (["CLOSE c"], "34000"),
        ([DECLARE], "25P01"),
        (["BEGIN", DECLARE, DECLARE], "42P03"),
        (["BEGIN", DECLARE, "COMMIT", "FETCH c"], "34000"),
        (["BEGIN", DECLARE, "ROLLBACK", "FETCH c"], "34000"),
        (["BEGIN", f"DECLARE c CURSOR WITH HOLD FOR {BY_SEX}", "ROLLBACK", "FETCH c"], "34000"),
        (["BEGIN", f"DECLARE c NO SCROLL CURSOR FOR {BY_SEX}", "FETCH 2 FROM c", "FETCH PRIOR FROM c"], "55000"),
        (["BEGIN", f"DECLARE c NO SCROLL CURSOR FOR {BY_SEX}", "FETCH 2 FROM c", "FETCH ABSOLUTE 1 FROM c"], "55000"),
        (["BEGIN", "DECLARE c CURSOR FOR INSERT INTO people VALUES (1)"], "42601"),
        (["BEGIN", "DECLARE c CURSOR"], "42601"),
        (["BEGIN", "DECLARE c CURSOR FOR SHOW ALL"], "42601"),
        (["BEGIN", DECLARE, "FETCH SIDEWAYS FROM c"], "42601"),
        (["BEGIN", DECLARE, "FETCH 1.5 FROM c"], "42601"),
        (["BEGIN", DECLARE, "FETCH 99999999999999999999 FROM c"], "42601"),
        (["BEGIN", DECLARE, "SELECT nosuch FROM people", "FETCH c"], "25P02"),
        (["BEGIN", "SELECT nosuch FROM people", "FETCH nosuch"], "25P02"),
        (["BEGIN", "SELECT nosuch FROM people", "EXECUTE nosuch"], "25P02"),
        (["BEGIN", DECLARE, "UPDATE people SET age = 1 WHERE CURRENT OF c"], "25006"),
        (["BEGIN", "DISCARD ALL"], "25001"),
    ],
)
def test_errors_have_the_codes_of_postgresql(running: Running, statements: list[str], code: str) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        *before, last = statements
        for each in before:
            raw.query(each)
        told = error(raw.query(last))
        assert told["C"] == code
        assert told["M"]
        assert "H" in told or code == "25P02"


def test_savepoints_take_cursors_that_were_made_behind_them(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        for each in ("BEGIN", "DECLARE a CURSOR FOR SELECT 1", "SAVEPOINT s", "DECLARE b CURSOR FOR SELECT 1", "SAVEPOINT t"):
            raw.query(each)
        raw.query("DECLARE d CURSOR FOR SELECT 1")
        raw.query("RELEASE t")
        assert tag(raw.query("FETCH d")) == "FETCH 1"
        raw.query("SELECT nosuch FROM pg_class")
        raw.query("ROLLBACK TO s")
        assert tag(raw.query("FETCH a")) == "FETCH 1"
        for name in "bd":
            raw.query("SAVEPOINT u")
            assert error(raw.query(f"FETCH {name}"))["C"] == "34000"
            raw.query("ROLLBACK TO u")
        raw.query("DECLARE h CURSOR WITH HOLD FOR SELECT 1")
        raw.query("COMMIT")
        assert tag(raw.query("FETCH h")) == "FETCH 1"
        raw.query("BEGIN")
        raw.query("ROLLBACK")
        assert tag(raw.query("MOVE ABSOLUTE 1 IN h")) == "MOVE 1", "what was held outlives later transactions"
        assert tag(raw.query("CLOSE ALL")) == "CLOSE CURSOR ALL"
        assert error(raw.query("FETCH h"))["C"] == "34000"


def test_statements_of_one_message_are_one_transaction(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        found = raw.query("DECLARE c CURSOR FOR SELECT 1; FETCH c; DECLARE h CURSOR WITH HOLD FOR SELECT 2")
        assert letters(found) == "CTDCCZ"
        assert error(raw.query("FETCH c"))["C"] == "34000"
        assert firsts(raw.query("FETCH h")) == [b"2"]
        raw.query("DECLARE i CURSOR WITH HOLD FOR SELECT 3; SELECT nosuch FROM pg_class")
        assert error(raw.query("FETCH i"))["C"] == "34000"


def test_a_binary_cursor_says_so(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("BEGIN")
        raw.query("DECLARE c BINARY CURSOR FOR SELECT 7::int")
        assert rows(raw.query("FETCH c")) == [[b"\0\0\0\7"]]


def test_portals_of_the_protocol_and_cursors_share_their_names(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        raw.query("BEGIN")
        raw.ask(parse(BY_SEX), bind(portal="p"), SYNC)
        assert firsts(raw.query("FETCH p")) == [b"F"]
        assert error(raw.query("SAVEPOINT s; DECLARE p CURSOR FOR SELECT 1"))["C"] == "42P03"
        raw.query("ROLLBACK TO s")
        raw.query(DECLARE)
        described = raw.ask(describe("P", "c"), SYNC)
        assert letters(described) == "TZ"
        assert firsts(raw.ask(execute("c", 1), SYNC)) == [b"F"]
        assert firsts(raw.query("FETCH ALL FROM c")) == [b"M"]
        raw.ask(parse("FETCH ALL FROM q"), SYNC)
        assert running.charges == 1


def test_a_portal_that_fetches_itself_ends(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("BEGIN")
        raw.ask(parse("SELECT 1"), bind(portal="p"), SYNC)
        found = raw.ask(parse("FETCH ALL FROM p"), message_close("p"), bind(portal="p"), execute("p"), SYNC)
        assert error(found)["C"] == "24000"


def message_close(name: str) -> bytes:
    """Close of a portal."""
    from tests.pgwire.raw import message, text

    return message("C", b"P" + text(name))


def test_margins_switched_after_declare_are_refused_before_anything_is_charged(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'; BEGIN")
        raw.query("BEGIN")
        raw.query(DECLARE)
        raw.query("SET cloister.margins = on")
        assert "columns changed" in error(raw.query("FETCH c"))["M"]
    assert running.charges == 0


def test_names_are_what_postgresql_takes_for_names(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("BEGIN")
        rude = '"c""; DROP TABLE people; -- \' "'
        raw.query(f"DECLARE {rude} CURSOR FOR SELECT 1")
        assert tag(raw.query(f"FETCH {rude}")) == "FETCH 1"
        raw.query("DECLARE Plain CURSOR FOR SELECT 1")
        assert tag(raw.query("FETCH PLAIN")) == "FETCH 1"
        named = rows(raw.query("SELECT name, is_holdable, is_scrollable, statement FROM pg_cursors ORDER BY 1"))
        assert [row[0] for row in named] == [b"c\"; DROP TABLE people; -- ' ", b"plain"]
        assert named[1][1:] == [b"f", b"t", b"DECLARE Plain CURSOR FOR SELECT 1"]
        assert tag(raw.query('CLOSE "plain"')) == "CLOSE CURSOR"


def test_cursors_are_counted(start: Start) -> None:
    running = start(Limits(prepared=3))
    with Raw(running.port).log_in() as raw:
        for name in "abc":
            raw.query(f"DECLARE {name} CURSOR WITH HOLD FOR SELECT 1")
        told = error(raw.query("DECLARE d CURSOR WITH HOLD FOR SELECT 1"))
        assert (told["C"], told["M"]) == ("53400", "The cursor 'd' was refused: 3 are open already")
        assert rows(raw.ask(parse("SELECT 1"), bind(), execute(), SYNC)) == [[b"1"]], "what has no name is still run"
        raw.query("CLOSE a")
        assert tag(raw.query("DECLARE d CURSOR WITH HOLD FOR SELECT 1")) == "DECLARE CURSOR"


def test_what_cursors_hold_is_limited_before_anything_is_charged(start: Start) -> None:
    running = start(Limits(held=100_000))
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'; BEGIN")
        raw.query("BEGIN")
        raw.query(f"DECLARE a CURSOR FOR SELECT '{'x' * 1000}' FROM generate_series(1, 200)")
        assert tag(raw.query("MOVE ALL IN a")) == "MOVE 200"
        raw.query(DECLARE)
        assert error(raw.query("FETCH c"))["C"] == "53400"
    assert running.charges == 0


def test_long_rows_are_refused_before_they_fill_the_memory(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        told = error(raw.query(f"SELECT '{'x' * 90_000}' FROM generate_series(1, 90000)"))
        assert "32,000,000 bytes" in told["M"]


class Ended:
    """A backend that can be told that nobody may ask any more."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.ended = backend, False

    def login(self, user: str, token: str, address: str) -> PgSession:
        session: Any = self.backend.login(user, token, address)

        def unless_ended(call: Callable[..., Any]) -> Callable[..., Any]:
            def called(*given: Any) -> Any:
                if self.ended:
                    raise cl.AccessDenied("You could not be signed in", why="the token was revoked", instead="another")
                return call(*given)

            return called

        for name in ("tables", "check"):
            setattr(session, name, unless_ended(getattr(session, name)))
        found: PgSession = session
        return found


@pytest.mark.parametrize("question", [BY_SEX, "SELECT relname FROM pg_class"])
def test_rows_that_were_answered_are_not_given_to_whoever_lost_the_right(start: Start, question: str) -> None:
    wrapped: list[Ended] = []

    def wrap(backend: Backend) -> Backend:
        wrapped.append(Ended(backend))
        return wrapped[0]

    running = start(None, wrap)
    with Raw(running.port).log_in() as raw, Raw(running.port).log_in() as other:
        for each in (raw, other):
            each.query("SET cloister.spend = '0.5'; BEGIN")
            each.query("BEGIN")
        raw.query(f"DECLARE c SCROLL CURSOR FOR {question}")
        assert len(rows(raw.query("FETCH 1 FROM c"))) == 1
        other.ask(parse(question), bind(portal="p"), execute("p", 1), SYNC)
        wrapped[0].ended = True
        assert error(raw.query("FETCH FIRST FROM c"))["C"] == "42501"
        assert error(other.ask(execute("p", 1), SYNC))["C"] == "42501"


def test_a_client_that_dies_half_way_leaves_nothing_behind(running: Running) -> None:
    raw = Raw(running.port).log_in()
    raw.query("SET cloister.spend = '0.5'; BEGIN")
    raw.query("BEGIN")
    raw.query(DECLARE)
    raw.query("FETCH 1 FROM c")
    raw.socket.close()
    with Raw(running.port).log_in() as again:
        assert error(again.query("FETCH c"))["C"] == "34000"
        again.query("BEGIN")
        again.query(DECLARE)
        assert firsts(again.query("FETCH ALL FROM c")) == [b"F", b"M"], "what was paid for is answered again"
    assert running.charges == 1


def test_psycopg_reads_a_cursor_on_the_server(running: Running) -> None:
    asked = "SELECT smoker, sex, COUNT(*) AS n FROM people WHERE age > %s GROUP BY smoker, sex"
    with running.connect(autocommit=False) as connection:
        connection.execute("SET cloister.spend = 9")
        whole = connection.execute(asked, (20,)).fetchall()
        with connection.cursor('a "name"') as cursor:
            cursor.itersize = 3
            cursor.execute(asked, (20,))
            assert [column.name for column in cursor.description or []] == ["smoker", "sex", "n"]
            assert list(cursor) == whole
        with connection.cursor("scrolled", scrollable=True) as cursor:
            cursor.execute(asked, (20,), binary=True)
            cursor.scroll(2)
            assert cursor.fetchall() == whole[2:]
            cursor.scroll(1, mode="absolute")
            assert cursor.fetchone() == whole[1]
        held = connection.cursor("held", withhold=True)
        held.execute(asked, (20,))
        first = held.fetchmany(2)
        connection.commit()
        assert first + held.fetchall() == whole
        held.close()
    with running.connect() as connection, pytest.raises(psycopg.errors.NoActiveSqlTransaction) as refused:
        connection.cursor("none").execute("SELECT 1")
    assert "WITH HOLD" in str(refused.value.diag.message_hint)
    assert running.charges == 1


def test_the_cost_is_told_with_the_first_rows(running: Running) -> None:
    heard: list[str] = []
    with running.connect(autocommit=False) as connection:
        connection.add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
        connection.execute("SET cloister.spend = 1")
        cursor = connection.cursor("c")
        cursor.execute(BY_SEX)
        assert heard == []
        cursor.fetchone()
        cursor.fetchone()
    assert [each.partition(";")[0] for each in heard] == ["cost ε = 1 of 'people'"]


def test_fields_of_a_refusal_name_the_cursor_and_no_more_than_its_beginning(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        told = fields(next(body for letter, body in raw.query(f'FETCH "{"x" * 5000}"') if letter == "E"))
    assert len(told["M"]) < 200
