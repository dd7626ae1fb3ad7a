"""What clients wish for: another encoding than UTF-8, as psql does on Chinese and Western Windows, a time zone, settings."""

from __future__ import annotations

import psycopg
import pytest

from tests.pgwire.conftest import Running
from tests.pgwire.raw import Raw, bind, describe, error, execute, letters, message, parse, rows


@pytest.mark.parametrize(
    ("name", "spoken", "codec", "text"),
    [
        ("GBK", "GBK", "gbk", "北京\\誠"),
        ("cp936", "GBK", "gbk", "誠"),
        ("gb18030", "GB18030", "gb18030", "北京😀"),
        ("latin1", "LATIN1", "latin-1", "Größe"),
        ("iso_8859_1", "LATIN1", "latin-1", "é"),
        ("WIN1252", "WIN1252", "cp1252", "5 €"),
        ("utf-8", "UTF8", "utf-8", "北京 €"),
    ],
)
def test_texts_come_and_go_in_the_encoding_of_the_client(running: Running, name: str, spoken: str, codec: str, text: str) -> None:
    with Raw(running.port).log_in(client_encoding=name) as raw:
        assert rows(raw.query("SHOW client_encoding")) == [[spoken.encode()]]
        sent = text.encode(codec)
        quoted = message("Q", b"SELECT '" + sent + b"' AS \"" + sent + b'"\0')
        told = raw.ask(quoted)
        assert rows(told) == [[sent]]
        assert sent + b"\0" in next(body for letter, body in told if letter == "T")
        for binary in (False, True):
            told = raw.ask(parse("SELECT $1::text"), bind((sent,), binary=binary), describe("P"), execute(), message("S"))
            assert rows(told) == [[sent]]
        copied = raw.ask(message("Q", b"COPY (SELECT '" + sent + b"') TO STDOUT (FORMAT csv)\0"))
        assert [body for letter, body in copied if letter == "d"] == [sent + b"\n"]
        raw.query("SET client_encoding = 'UTF8'")
        assert rows(raw.query(f"SELECT '{text}'")) == [[text.encode()]]


def test_what_an_encoding_does_not_have_is_refused_in_words(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        told = raw.query("SET client_encoding = LATIN1; SELECT '北'")
        assert error(told)["C"] == "22P05"
        assert "LATIN1" in error(told)["M"]
        assert letters(told)[-1] == "Z"
        assert rows(raw.query("SELECT 1")) == [[b"1"]]
        raw.query("SET client_encoding = GBK")
        assert rows(raw.query("SHOW client_encoding")) == [[b"GBK"]]
        assert error(raw.ask(message("Q", b"SELECT '\xff\xff'\0")))["C"] == "22021"
    with pytest.raises(psycopg.OperationalError, match="client_encoding"):
        running.connect(client_encoding="EBCDIC")


def test_the_present_is_shown_in_the_time_zone_of_the_connection(running: Running) -> None:
    with running.connect() as connection:

        def hours(zone: str) -> float:
            connection.execute(f"SET TimeZone = '{zone}'")
            here = connection.execute("SELECT now()").fetchone()
            connection.execute("SET TimeZone = 'UTC'")
            there = connection.execute("SELECT localtimestamp").fetchone()
            assert here is not None
            assert there is not None
            return float(round((here[0] - there[0]).total_seconds() / 900) / 4)

        assert [hours(each) for each in ("Asia/Shanghai", "asia/kolkata", "-3", "GMT-08:00", "+08:00", "+8", "Etc/UTC")] == [
            8,
            5.5,
            -3,
            8,
            -8,
            8,
            0,
        ]
        for wrong in ("Nowhere/Land", "../UTC", "99"):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="TimeZone"):
                connection.execute(f"SET TimeZone = '{wrong}'")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("EXPLAIN (NONSENSE) SELECT COUNT(*) FROM people", "42601"),
        ("COMMIT AND CHAIN", "25P01"),
        ("SET standard_conforming_strings = off", "22023"),
        ("SET SESSION AUTHORIZATION eve", "42501"),
        ("SET ROLE eve", "42501"),
        ("BEGIN NONSENSE", "42601"),
        ("SET TRANSACTION ISOLATION LEVEL nonsense", "42601"),
    ],
)
def test_what_postgresql_refuses_is_refused(running: Running, asked: str, code: str) -> None:
    with Raw(running.port).log_in() as raw:
        assert error(raw.query(asked))["C"] == code


@pytest.mark.parametrize(
    "asked",
    [
        "EXPLAIN (COSTS off, VERBOSE, FORMAT text) SELECT COUNT(*) FROM people",
        "SET NAMES DEFAULT; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; DISCARD SEQUENCES; DISCARD TEMP",
        "SELECT pg_advisory_unlock_all()",
        "SET ROLE NONE; RESET ROLE; RESET SESSION AUTHORIZATION",
        "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY, NOT DEFERRABLE; COMMIT AND CHAIN; ROLLBACK AND CHAIN; ROLLBACK",
        "START TRANSACTION READ WRITE; COMMIT",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
        "SET work_mem = '64MB'; SHOW work_mem; SHOW ssl; SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off",
        "SET lc_messages = 'C'; SHOW max_connections; SET standard_conforming_strings = on; SET ssl_renegotiation_limit = 0",
    ],
)
def test_what_drivers_send_is_done(running: Running, asked: str) -> None:
    with Raw(running.port).log_in() as raw:
        assert "E" not in letters(raw.query(asked))


def test_a_chained_transaction_begins_at_once(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        assert raw.query("BEGIN")[-1] == ("Z", b"T")
        assert raw.query("COMMIT AND CHAIN")[-1] == ("Z", b"T")
        raw.query("SET cloister.purpose = 'lost'")
        assert raw.query("ROLLBACK AND CHAIN")[-1] == ("Z", b"T")
        assert rows(raw.query("SHOW cloister.purpose")) == [[b""]]
        assert raw.query("COMMIT")[-1] == ("Z", b"I")
