"""What may be charged, and what never: counted on the ledger."""

from __future__ import annotations

import psycopg
import pytest

from tests.pgwire.conftest import Running
from tests.pgwire.raw import SYNC, Raw, bind, describe, error, execute, letters, parse, rows

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def test_without_a_spend_nothing_is_asked_and_the_error_says_the_line_to_write(running: Running) -> None:
    with running.connect() as connection, pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refusal:
        connection.execute(BY_SEX)
    assert "no spend is set" in str(refusal.value)
    assert refusal.value.diag.message_hint == "SET cloister.spend = '0.1'"
    assert running.charges == 0


def test_a_question_is_charged_once_and_repeats_are_free_even_without_a_spend(running: Running) -> None:
    with running.connect() as connection:
        connection.execute("SET cloister.spend = '0.5'")
        first = connection.execute(BY_SEX).fetchall()
        assert (running.charges, str(running.session.spent)) == (1, "ε = 0.5")
        assert connection.execute(BY_SEX).fetchall() == first
        connection.execute("RESET cloister.spend")
        assert connection.execute(BY_SEX).fetchall() == first
        assert running.charges == 1
    with running.connect() as other:
        assert other.execute(BY_SEX).fetchall() == first
    assert running.charges == 1


def test_a_repeat_of_two_purchases_is_free(running: Running) -> None:
    with running.connect() as connection:
        for spend in ("0.5", "0.8"):
            connection.execute(f"SET cloister.spend = '{spend}'")
            bought = connection.execute(BY_SEX).fetchall()
        connection.execute("SET cloister.spend = ''")
        assert connection.execute(BY_SEX).fetchall() == bought
    assert (running.charges, str(running.session.spent)) == (2, "ε = 0.8")


def test_explain_parse_and_describe_never_spend(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        assert letters(raw.ask(parse(BY_SEX, "s"), describe("S", "s"), SYNC)) == "1tTZ"
        assert letters(raw.ask(bind(name="s"), describe("P"), SYNC)) == "2TZ"
        assert len(rows(raw.query("EXPLAIN " + BY_SEX))) > 3
        assert len(rows(raw.query("EXPLAIN (FORMAT JSON) " + BY_SEX))) == 1
        assert error(raw.query("EXPLAIN ANALYZE " + BY_SEX))["C"] == "0A000"
    assert running.charges == 0


def test_a_portal_runs_once_however_often_it_is_asked_for_rows(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("BEGIN")
        raw.query("SET LOCAL cloister.spend = '0.5'")
        found = raw.ask(parse(BY_SEX), bind(portal="p"), execute("p", 1), execute("p", 1), execute("p", 1), execute("p"), SYNC)
        assert letters(found) == "12DsDCCCZ"
        assert [row[0] for row in rows(found)] == [b"F", b"M"]
        assert running.charges == 1
        assert letters(raw.ask(execute("p"), SYNC)) == "CZ"
    assert running.charges == 1


def test_binding_again_is_the_same_question_and_costs_nothing_more(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        once = raw.ask(parse(BY_SEX, "s"), bind(name="s"), execute(), SYNC)
        again = raw.ask(bind(name="s"), execute(), SYNC)
        assert rows(once) == rows(again)
    assert running.charges == 1


def test_margins_switched_after_describe_are_refused_before_anything_is_charged(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        raw.ask(parse(BY_SEX, "s"), describe("S", "s"), SYNC)
        raw.query("SET cloister.margins = on")
        assert error(raw.ask(bind(name="s"), execute(), SYNC))["C"] == "0A000"
        assert running.charges == 0
        assert len(rows(raw.ask(parse(BY_SEX), bind(), describe("P"), execute(), SYNC))[0]) == 3
    assert running.charges == 1


def test_a_rolled_back_transaction_takes_the_spend_with_it_but_no_charge(running: Running) -> None:
    with running.connect(autocommit=False) as connection:
        connection.execute("SET cloister.spend = '0.5'")
        first = connection.execute(BY_SEX).fetchall()
        connection.rollback()
        assert connection.execute("SHOW cloister.spend").fetchone() == ("",)
        assert connection.execute(BY_SEX).fetchall() == first
    assert running.charges == 1


def test_within_takes_the_least_spend_and_replaces_a_spend(running: Running) -> None:
    with running.connect() as connection:
        connection.execute("SET cloister.spend = '0.5'")
        connection.execute("SET cloister.within = 10")
        assert connection.execute("SHOW cloister.spend").fetchone() == ("",)
        connection.execute("SET cloister.margins = on")
        [(_, margin)] = connection.execute("SELECT COUNT(*) AS n FROM people").fetchall()
        assert margin <= 10
    assert running.charges == 1


def test_the_purpose_stands_in_the_ledger(running: Running) -> None:
    with running.connect() as connection:
        connection.execute("SELECT set_config('cloister.purpose', %s, false)", ["the flu study"])
        connection.execute("SET cloister.spend = 1")
        connection.execute(BY_SEX)
    [charge] = running.session.ledger.charges("people")
    assert charge.purpose == "the flu study"


def test_too_little_budget_is_an_error_of_its_own(running: Running) -> None:
    with running.connect() as connection:
        connection.execute("SET cloister.spend = 1000")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
            connection.execute(BY_SEX)
    assert running.charges == 0


def test_statements_of_one_message_stand_or_fall_together(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        found = raw.query(f"SET cloister.spend = '0.5'; {BY_SEX}; SELECT nosuch FROM people")
        assert letters(found) == "CTDDCEZ"
        assert rows(raw.query("SHOW cloister.spend")) == [[b""]]
        raw.query("BEGIN; SET cloister.spend = '0.25'; COMMIT; SELECT nosuch FROM people")
        assert rows(raw.query("SHOW cloister.spend")) == [[b"0.25"]], "what was committed stays"
    assert running.charges == 1


def test_statements_up_to_a_sync_stand_or_fall_together(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        spends = parse("SET cloister.spend = '0.5'"), bind(), execute()
        assert error(raw.ask(*spends, parse("SELECT nosuch FROM people"), bind(), execute(), SYNC))["C"] == "42703"
        assert rows(raw.query("SHOW cloister.spend")) == [[b""]]
        raw.ask(*spends, SYNC)
        assert error(raw.ask(parse("SET cloister.spend = '0,1'"), bind(), execute(), SYNC))["H"] == "SET cloister.spend = '0.1'"
        assert rows(raw.query("SHOW cloister.spend")) == [[b"0.5"]]


def test_a_spend_may_be_set_as_the_connection_begins(running: Running) -> None:
    with running.connect(options="-c cloister.spend=0.5") as connection:
        assert connection.execute("SELECT COUNT(*) FROM people").fetchone() is not None
    assert running.charges == 1


def test_a_full_width_sign_behind_a_name_is_named_and_costs_nothing(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = '0.5'")
        for text in ("SELECT COUNT(*) FROM people；", "SELECT COUNT(*) FROM people　WHERE age＞30"):
            told = error(raw.query(text))
            assert "full-width signs" in told["M"], told
            assert "FROM people" in told["H"]
        assert rows(raw.query("SELECT 1 AS 人；"))
    assert running.charges == 0
