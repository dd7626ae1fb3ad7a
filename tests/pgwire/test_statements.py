"""Words, statements, settings and parameters, without a connection."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest

from cloister.errors import CloisterError
from cloister.pgwire.failures import Refused
from cloister.pgwire.parameters import bound, spell
from cloister.pgwire.reading import read_all
from cloister.pgwire.routing import route
from cloister.pgwire.startup import is_loopback, options_of
from cloister.pgwire.statements import (
    ALL,
    Close,
    Deallocate,
    Execute,
    Explain,
    Fetch,
    Reset,
    Select,
    Set,
    Show,
    Step,
    Transaction,
)
from cloister.pgwire.types import TYPES, to_binary, to_text
from cloister.pgwire.variables import Variables
from cloister.pgwire.words import statements, unquoted, words
from tests.pgwire.conftest import people


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SELECT ';' ; SELECT ';;'", 2),
        ("SELECT E'\\';' ; SELECT 1", 2),
        ("SELECT '\\'; SELECT 1", 2),
        ("SELECT $$;$$, $a$;$$;$a$; SELECT 1", 2),
        ("SELECT /* ; /* ; */ ; */ 1 -- ;\n; SELECT 2", 2),
        ('SELECT ";""; "; SELECT 1', 2),
        (" ; ;; -- nothing\n /* at all */ ", 0),
        ("SELECT 1-$1;SELECT $2", 2),
    ],
)
def test_statements_end_where_postgresql_ends_them(text: str, count: int) -> None:
    assert len(statements(text)) == count


@pytest.mark.parametrize("text", ["SELECT 'x", 'SELECT "x', "SELECT E'x\\'", "SELECT $$x$", "SELECT /* /* */"])
def test_what_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="does not end"):
        words(text)


def test_quoted_texts_stand_for_what_postgresql_reads() -> None:
    assert [unquoted(text) for text in ("E'a\\n\\'b'", "$x$a'b$x$", "U&'d'", "''", "N'n'")] == ["a\n'b", "a'b", "d", "", "n"]
    assert unquoted("E'a\\\\x46'") == "a\\x46"
    for text in ("E'\\x46'", "E'\\\\\\106'", "E'\\u0046'", "U&'\\0046'", "B'101'", "X'1F'"):
        with pytest.raises(Refused, match="in numbers"):
            unquoted(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SET cloister.spend = '0.1'", Set("cloister.spend", "0.1")),
        ("SET LOCAL cloister.spend TO 0.1", Set("cloister.spend", "0.1", True)),
        ('SET SESSION "cloister"."spend" TO DEFAULT', Set("cloister.spend", None)),
        ("SET TIME ZONE 'UTC'", Set("timezone", "UTC")),
        ("SET NAMES 'utf8'", Set("client_encoding", "utf8")),
        ('SET search_path TO a, "B"', Set("search_path", "a, B")),
        ("SET extra_float_digits = -1", Set("extra_float_digits", "-1")),
        ("RESET ALL", Reset("all")),
        ("SHOW TRANSACTION ISOLATION LEVEL", Show("transaction_isolation")),
        ("\ufeffSHOW cloister.spend", Show("cloister.spend")),
        ("START TRANSACTION READ ONLY", Transaction("begin", tag="START TRANSACTION")),
        ("END", Transaction("commit", tag="COMMIT")),
        ("ROLLBACK TO SAVEPOINT a", Transaction("rollback to", "a", "ROLLBACK")),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", Transaction("nothing", tag="SET")),
        ("UNLISTEN *", Transaction("nothing", tag="UNLISTEN")),
        ("CLOSE c", Close("c")),
        ('CLOSE "ALL"', Close("ALL")),
        ("CLOSE ALL", Close(None)),
        ("DEALLOCATE PREPARE p", Deallocate("p")),
        ("DEALLOCATE prepare", Deallocate("prepare")),
        ("FETCH c", Fetch("c", Step("forward", 1))),
        ("FETCH FROM c", Fetch("c", Step("forward", 1))),
        ("FETCH 5 IN c", Fetch("c", Step("forward", 5))),
        ("FETCH BACKWARD 5 c", Fetch("c", Step("forward", -5))),
        ("FETCH ALL c", Fetch("c", Step("forward", ALL))),
        ("MOVE LAST FROM c", Fetch("c", Step("absolute", -1), True)),
        ("FETCH RELATIVE -2 FROM c", Fetch("c", Step("relative", -2))),
        ("EXECUTE p", Execute("p")),
    ],
)
def test_statements_are_read(text: str, found: object) -> None:
    assert read_all(text) == [found]


@pytest.mark.parametrize(
    ("text", "why", "instead"),
    [
        ("LISTEN news", "nothing is told here but answers", "SELECT …"),
        ("NOTIFY news", "nothing is told here but answers", "SELECT …"),
    ],
)
def test_news_are_refused_with_the_line_to_write_instead(text: str, why: str, instead: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        read_all(text)
    assert (refused.value.instead, refused.value.code) == (instead, "0A000")


def test_explain_holds_its_question_and_refuses_to_run_it() -> None:
    [plain, json, verbose] = read_all("EXPLAIN SELECT 1; EXPLAIN (ANALYZE off, FORMAT JSON) SELECT 1; EXPLAIN VERBOSE SELECT 1")
    assert isinstance(json, Explain)
    assert json.json
    assert isinstance(plain, Explain)
    assert isinstance(verbose, Explain)
    assert plain.question == verbose.question == Select("SELECT 1", tuple(words("SELECT 1")))
    for text in ("EXPLAIN ANALYZE SELECT 1", "EXPLAIN (ANALYZE) SELECT 1", "EXPLAIN (FORMAT XML) SELECT 1", "EXPLAIN SET x = 1"):
        with pytest.raises(Refused):
            read_all(text)


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("SELECT COUNT(*) FROM people", True),
        ('SELECT COUNT(*) FROM "people"', True),
        ("SELECT COUNT(*) FROM public.PEOPLE p", True),
        ("SELECT COUNT(*) FROM hub.public.people p", True),
        ("WITH x AS (SELECT sex FROM people) SELECT COUNT(*) FROM x", True),
        ("SELECT relname FROM pg_class WHERE oid IN (SELECT age FROM people)", True),
        ("SELECT broken FROM people WHERE (", True),
        ("SELECT relname FROM pg_catalog.pg_class WHERE relname = 'people'", False),
        ("SELECT people FROM information_schema.tables people", False),
        ("SELECT 1", False),
    ],
)
def test_a_declared_name_sends_a_question_to_the_door(text: str, private: bool) -> None:
    [found] = read_all(text)
    assert isinstance(found, Select)
    to = route(found, {"people": people()})
    assert to.private is private
    assert "public." not in to.text


def test_settings_follow_their_transaction() -> None:
    found = Variables({})
    found.set("statement_timeout", "1d")
    assert found.seconds == 86_400
    found.set("cloister.within", "1e400")
    assert found.asking().within == 1e300, "wider than any margin"
    found.set("cloister.within", None)
    found.set("cloister.purpose", "before")
    found.begin()
    found.set("cloister.purpose", "inside")
    found.set("cloister.spend", "1", local=True)
    assert found.asking().pays
    assert found.finish(commit=True)
    assert (found.get("cloister.purpose"), found.asking().pays) == ("inside", False)
    found.begin()
    found.set("cloister.confidence", "0.9")
    found.set("cloister.confidence", "0.5", local=True)
    found.mark("a")
    found.back_to("a")
    assert found.get("cloister.confidence") == "0.5"
    assert found.finish(commit=True)
    assert found.get("cloister.confidence") == "0.9", "what was set for the transaction alone ended with it"
    found.begin()
    found.set("cloister.purpose", "lost")
    found.fail()
    assert found.state == "E"
    assert not found.finish(commit=True)
    assert found.get("cloister.purpose") == "inside"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cloister.spend", "-1"),
        ("cloister.spend", "nan"),
        ("cloister.within", "0"),
        ("cloister.confidence", "1"),
        ("cloister.margins", "perhaps"),
        ("client_encoding", "EBCDIC"),
        ("datestyle", "German"),
        ("statement_timeout", "soon"),
        ("server_version", "16"),
        ("nosuch", "1"),
    ],
)
def test_wrong_settings_are_refused(name: str, value: str) -> None:
    with pytest.raises(CloisterError):
        Variables({}).set(name, value)


@pytest.mark.parametrize(
    ("value", "kind", "literal"),
    [
        (b"7", "int4", "7"),
        (struct.pack("!q", -7), "int8", "-7"),
        (struct.pack("!d", 0.5), "float8", "0.5"),
        (b"1e3", "float8", "1000.0"),
        (b"\x01", "bool", "TRUE"),
        (struct.pack("!i", -1), "date", "DATE '1999-12-31'"),
        (b"2020-01-01 10:00:00+08", "timestamptz", "TIMESTAMP WITH TIME ZONE '2020-01-01 10:00:00+08:00'"),
        (b"2020-01-01 10:00:00", "timestamptz", "TIMESTAMP WITH TIME ZONE '2020-01-01 10:00:00+00:00'"),
        (struct.pack("!q", 0), "timestamptz", "TIMESTAMP WITH TIME ZONE '2000-01-01 00:00:00+00:00'"),
        (b"it's \\", "text", "'it''s \\'"),
        (to_binary(Decimal("-12.5"), TYPES["numeric"]), "numeric", "-12.5000"),
        (to_binary(["a", None], TYPES["text[]"]), "text[]", "ARRAY['a', NULL]"),
    ],
)
def test_values_become_literals(value: bytes, kind: str, literal: str) -> None:
    binary = kind in ("int8", "bool", "date", "numeric", "text[]") or value in (struct.pack("!d", 0.5), bytes(8))
    assert spell(value, TYPES[kind].oid, binary, 1) == literal


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"1; DROP", "int8"),
        (b"nan", "float8"),
        (b"1 OR 1", "numeric"),
        (b"2020-13-01", "date"),
        (b"maybe", "bool"),
        (b"x\0y", "text"),
        (b"x", "json"),
    ],
)
def test_what_is_no_value_of_its_type_is_refused(value: bytes, kind: str) -> None:
    with pytest.raises(Refused, match=r"\$3 is invalid"):
        spell(value, TYPES[kind].oid, False, 3)


def test_a_bound_value_never_joins_what_stands_beside_it() -> None:
    assert bound("SELECT 1-$1,$2", words("SELECT 1-$1,$2"), ["-2", "'a'"]) == "SELECT 1- -2 , 'a' "


def test_values_are_written_as_postgresql_writes_them() -> None:
    assert to_text(float("inf"), TYPES["float8"]) == b"Infinity"
    assert to_text(2**70, TYPES["int8"]) == str(2**63 - 1).encode()
    assert to_text(["", 'a"b', "NULL", None], TYPES["text[]"]) == b'{"","a\\"b","NULL",NULL}'
    assert to_text(None, TYPES["text"]) is None


def test_loopback_and_options() -> None:
    assert is_loopback("::ffff:127.0.0.1")
    assert not is_loopback("::ffff:8.8.8.8")
    assert options_of("-ccloister.margins=on  -c a-b=c") == {"cloister.margins": "on", "a_b": "c"}
    with pytest.raises(Refused):
        options_of("-d 5")
