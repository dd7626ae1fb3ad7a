"""PREPARE, EXECUTE and DEALLOCATE as statements, and the types that are inferred for parameters."""

from __future__ import annotations

import pytest

from cloister.pgwire import Limits
from cloister.pgwire.inference import inferred, uncast
from cloister.pgwire.reading import read_all
from cloister.pgwire.routing import set_configs
from cloister.pgwire.statements import Select
from cloister.pgwire.types import TYPES
from cloister.pgwire.words import words
from tests.pgwire.conftest import Running, Start
from tests.pgwire.raw import SYNC, Raw, bind, describe, error, execute, letters, parse, rows

ASKED = "SELECT COUNT(*) AS n FROM people WHERE age > $1 AND sex = $2"
KINDS = {"age": "int8", "sex": "text", "born": "date", "pay": "float8"}


def test_a_prepared_question_is_charged_when_it_is_executed_and_not_before(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        assert letters(raw.query(f"PREPARE p (int, text) AS {ASKED}")) == "CZ"
        assert len(rows(raw.query("EXPLAIN EXECUTE p (20, 'F')"))) > 3
        assert len(rows(raw.query("EXPLAIN (FORMAT JSON) EXECUTE p (20, 'F')"))) == 1
        assert letters(raw.ask(parse("EXECUTE p (20, 'F')"), describe("S"), SYNC)) == "1tTZ"
        assert running.charges == 0
        once = rows(raw.query("EXECUTE p (20, 'F')"))
        assert rows(raw.query(f"EXECUTE p ('{20}'::text, CAST('F' AS text))")) == once
        assert rows(raw.ask(parse("EXECUTE p ($1, $2)", types=(23, 25)), bind((b"20", b"F")), execute(), SYNC)) == once
        assert rows(raw.query("SELECT COUNT(*) AS n FROM people WHERE age > 20 AND sex = 'F'")) == once
        assert running.charges == 1
        raw.query("RESET cloister.spend")
        assert error(raw.query("EXECUTE p (30, 'F')"))["C"] == "55000"
        assert running.charges == 1


def test_the_protocol_and_sql_share_the_names_of_statements(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.ask(parse("SELECT $1::int + 1", "q"), SYNC)
        assert rows(raw.query("EXECUTE q (-3)")) == [[b"-2"]]
        assert error(raw.query("PREPARE q AS SELECT 1"))["C"] == "42P05"
        raw.query("PREPARE r (int) AS SELECT $1")
        assert rows(raw.ask(bind((b"7",), name="r"), execute(), SYNC)) == [[b"7"]]
        listed = rows(raw.query("SELECT name, parameter_types, from_sql, statement FROM pg_prepared_statements ORDER BY 1"))
        assert listed == [
            [b"q", b"{int4}", b"f", b"SELECT $1::int + 1"],
            [b"r", b"{int4}", b"t", b"SELECT $1"],
        ]
        assert letters(raw.query("DEALLOCATE PREPARE q; DEALLOCATE r")) == "CCZ"
        raw.query("PREPARE r AS SELECT 1")
        assert letters(raw.query("DEALLOCATE ALL")) == "CZ"
        assert rows(raw.query("SELECT count(*) FROM pg_prepared_statements")) == [[b"0"]]
        raw.query("PREPARE r AS SELECT 1")
        raw.query("DECLARE c CURSOR WITH HOLD FOR SELECT 1")
        raw.query("DISCARD ALL")
        assert error(raw.query("EXECUTE r"))["C"] == "26000"
        assert error(raw.query("FETCH c"))["C"] == "34000"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("EXECUTE nosuch", "26000"),
        ("DEALLOCATE nosuch", "26000"),
        ("EXECUTE p", "42601"),
        ("EXECUTE p (1)", "42601"),
        ("EXECUTE p (1, 2, 3)", "42601"),
        ("EXECUTE p ($1, 'F')", "42P02"),
        ("EXECUTE p (now(), 'F')", "42601"),
        ("EXECUTE p (1 + 1, 'F')", "42601"),
        ("EXECUTE p ('many', 'F')", "22P02"),
        ("EXECUTE p ('1'::point, 'F')", "42704"),
        ("PREPARE q (point) AS SELECT $1", "42704"),
        ("PREPARE q AS INSERT INTO people VALUES (1)", "42601"),
        ("PREPARE q AS SHOW ALL", "42601"),
        ("PREPARE TRANSACTION 'x'", "0A000"),
        ("EXPLAIN EXECUTE nosuch", "26000"),
        ("EXPLAIN ANALYZE EXECUTE p (1, 'F')", "0A000"),
    ],
)
def test_errors_have_the_codes_of_postgresql(running: Running, statement: str, code: str) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        raw.query(f"PREPARE p (int, text) AS {ASKED}")
        assert error(raw.query(statement))["C"] == code
    assert running.charges == 0


def test_values_of_every_kind_are_taken(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("PREPARE p (text, bool, date, numeric, int[], text) AS SELECT $1 AS a, $2 AS b, $3 AS c, $4 AS d, $6 AS f")
        found = rows(raw.query("EXECUTE p ('it''s', true, DATE '2020-01-31', -2.50, '{1,2}', NULL)"))
        assert found == [[b"it's", b"t", b"2020-01-31", b"-2.50", None]]
        assert rows(raw.query("EXECUTE p (5, 'off', '2020-01-31', 1e3, ARRAY[1, 2], E'a\\n')"))[0][:2] == [b"5", b"f"]


def test_statements_without_an_end_in_sight_are_counted(start: Start) -> None:
    running = start(Limits(prepared=2))
    with Raw(running.port).log_in() as raw:
        raw.query("PREPARE a AS SELECT 1; PREPARE b AS SELECT 1")
        assert error(raw.query("PREPARE c AS SELECT 1"))["C"] == "53400"
        assert rows(raw.ask(parse("SELECT 1"), bind(), execute(), SYNC)) == [[b"1"]]


def test_a_statement_that_executes_itself_is_refused(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.ask(parse("EXECUTE p", "p"), SYNC)
        assert error(raw.query("EXECUTE p"))["C"] == "0A000"


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        ("age > $1 AND $2 <= p.born", ["int8", "date"]),
        ("age IN ($1,$2) AND sex NOT IN ('x', $3)", ["int8", "int8", "text"]),
        ("age BETWEEN $1 AND $2 AND pay NOT BETWEEN 0 AND $3", ["int8", "int8", "float8"]),
        ("age = ANY($1) AND sex <> ALL ($2)", ["int8[]", "text[]"]),
        ("age = $1::smallint AND sex = CAST($2 AS varchar(3)) AND age = ANY($3::int[])", ["int2", "varchar", "int4[]"]),
        ("nosuch = $1 AND age + 1 = $2 AND age + $3 > 50", ["", "int8", "int8"]),
        (
            "ABS(pay) > $1 AND EXTRACT(YEAR FROM born) = $2 AND LOWER(sex) = $3 AND born + 1 < $4",
            ["float8", "float8", "", "date"],
        ),
        ("TRUE HAVING COUNT(*) > $1 AND AVG(age) < $2 LIMIT $3 OFFSET $4", ["int8", "float8", "int8", "int8"]),
    ],
)
def test_parameters_are_of_the_type_that_the_question_says(where: str, kinds: list[str]) -> None:
    own = words(f"SELECT COUNT(*) FROM people p WHERE {where}")
    assert inferred(own, [0] * len(kinds), KINDS) == tuple(TYPES[kind].oid if kind else 0 for kind in kinds)
    assert inferred(own, [25] * len(kinds), KINDS) == (25,) * len(kinds), "what a client said stands"


def test_drivers_that_ask_for_types_are_told_them(running: Running) -> None:
    import struct

    with Raw(running.port).log_in() as raw:
        found = raw.ask(parse("SELECT COUNT(*) FROM people WHERE age IN ($1,$2) AND born > $3", "s"), describe("S", "s"), SYNC)
        told = next(body for letter, body in found if letter == "t")
        assert struct.unpack("!H3I", told) == (3, 20, 20, 1082)
        found = raw.ask(parse("SELECT $1::int AS a", "u"), describe("S", "u"), SYNC)
        assert struct.unpack("!HI", next(body for letter, body in found if letter == "t")) == (1, 23)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("age > '20'::int4", "age > 20"),
        ("age > ('-20'::int4)", "age > (-20)"),
        ("sex = 'F'::character varying(3)::text", "sex = 'F'"),
        ("born > DATE '2020-01-31'::date", "born > DATE '2020-01-31'"),
        ("born > NULL::date", "born > NULL"),
        ("pay < CAST('1.5' AS double precision)", "pay < 1.5"),
        ("sex = 'it''s'::text", "sex = 'it''s'"),
        ("age::text = '5'", "age::text = '5'"),
        ("age > 'many'::int", "age > 'many'::int"),
        ("age > CAST(pay AS int)", "age > CAST(pay AS int)"),
        ("sex = 'x'::point", "sex = 'x'::point"),
        ("pay > 2.5::numeric(3,1)", "pay > 2.5"),
        ("pay > 2.55::numeric(3,1)", "pay > 2.55::numeric(3,1)"),
        ("pay > 1e-5::numeric(3,1)", "pay > 1e-5::numeric(3,1)"),
        ("pay > 'NaN'::numeric(3,1)", "pay > 'NaN'::numeric(3,1)"),
        ("sex = 'FM'::varchar(1)", "sex = 'FM'::varchar(1)"),
        ("sex = 'FM'::char", "sex = 'FM'::char"),
        ("sex = 'F'::char", "sex = 'F'"),
        ("pay > 2.5::float(53)", "pay > 2.5"),
        ("sex = E'\\x46'::text", "sex = E'\\x46'::text"),
    ],
)
def test_a_constant_with_a_cast_is_written_as_what_it_is(text: str, told: str) -> None:
    assert uncast(text) == told


def test_settings_are_made_beside_other_columns(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        asked = "SELECT current_setting('cloister.margins') AS cur, set_config('cloister.margins', 'on', false) AS new"
        assert rows(raw.query(asked)) == [[b"off", b"on"]]
        assert rows(raw.query("SHOW cloister.margins")) == [[b"on"]]
        assert error(raw.query("SELECT set_config('nosuch', 'on', false)"))["C"] == "42704"
        raw.ask(parse("SELECT set_config($1, $2, false)"), bind((b"cloister.margins", b"off")), describe("P"), SYNC)
        assert rows(raw.query("SHOW cloister.margins")) == [[b"on"]], "Describe sets nothing"
    [question] = read_all("SELECT set_config('a', b, false)")
    assert isinstance(question, Select)
    assert set_configs(question) == (question, ())


def test_untyped_values_of_limits_and_beside_calls_are_numbers(running: Running) -> None:
    """As drivers send them that leave all types to the server, and as those that send a text."""
    text = "SELECT sex, COUNT(*) AS n FROM people WHERE age + 1 > $1 GROUP BY sex HAVING COUNT(*) > $2 ORDER BY sex LIMIT $3"
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        found = [raw.ask(parse(text, types=types), bind((b"1", b"-1000000", b"1")), execute(), SYNC) for types in ((), (25, 25))]
        assert [len(rows(each)) for each in found] == [1, 1]
    assert running.charges == 1
