"""The real psql: its own commands, its variables, its way to ask several statements at once."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.pgwire.conftest import Running

pytestmark = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")


def psql(running: Running, *commands: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """What psql prints for some commands, one after the other in one connection."""
    given = [word for command in commands for word in ("-c", command)]
    found = subprocess.run(
        ["psql", "-X", "-A", "-v", "VERBOSITY=verbose", *given],
        env=running.environment() | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not check or found.returncode == 0, found.stderr
    return found


def test_tables_and_columns_are_listed_from_declarations(running: Running) -> None:
    found = psql(running, r"\d", r"\dt+", r"\d people", r"\d+ people").stdout
    assert "public|people|table|ada" in found
    assert "public|towns|table|ada|permanent|heap||public: no protection and no cost" in found
    assert "age|bigint||not null|" in found
    assert "pay|double precision|||" in found
    assert "age|bigint||not null||plain|||17 to 90" in found
    assert "sex|text||not null||extended|||one of F, M" in found
    assert running.charges == 0


LISTINGS = """
    l l+ d+ dn dn+ du dg+ df df+ da di dv dm ds dE dP dx dx+ db db+ dT dT+ dp z dd ddp do do+ dO dO+ dc dc+ dC dC+ dD dL dL+ dF
    dFd dFp dFt dA dAc dAf dAo dAp des det deu dew dew+ drds dRp dRp+ dRs dX dy dconfig lo_list
"""


def test_other_listings_answer(running: Running) -> None:
    asked = [f"\\{name}" for name in LISTINGS.split()]
    told = psql(running, *asked, r"\d *", r"\z people", r"\dt people").stderr
    assert "ERROR" not in told
    assert running.charges == 0


def test_connection_info_and_an_unknown_table(running: Running) -> None:
    found = psql(running, r"\conninfo", r"\d nosuch", check=False)
    assert 'connected to database "hub" as user "ada"' in found.stdout
    assert 'Did not find any relation named "nosuch"' in found.stderr


def test_a_question_with_margins_and_its_cost_as_a_notice(running: Running) -> None:
    found = psql(
        running,
        "SET cloister.spend = '0.5'",
        "SET cloister.margins = on",
        "SELECT sex, COUNT(*) AS n FROM public.people GROUP BY 1",
    )
    assert "sex|n|n_margin" in found.stdout
    assert "cost ε = 0.5 of 'people'" in found.stderr
    assert running.charges == 1


def test_without_columns_of_margins_the_notice_says_them(running: Running) -> None:
    whole = psql(running, "SET cloister.spend = '0.5'", "SELECT COUNT(*) AS n, AVG(age) AS age FROM people").stderr
    assert re.search(r"cost ε = 0\.5 of 'people'; with 95 % confidence n ± [\d,]+, age ± [\d.]+", whole), whole
    grouped = "SELECT sex, smoker, AVG(pay) AS pay FROM people GROUP BY sex, smoker"
    told = psql(running, "SET cloister.spend = '0.5'", "SET cloister.confidence = '0.9'", grouped).stderr
    assert re.search(r"with 90 % confidence pay ± [\d.]+", told), told
    asked_for = psql(running, "SET cloister.spend = '0.5'", "SET cloister.margins = on", "SELECT COUNT(*) AS n FROM people")
    assert "confidence" not in asked_for.stderr


def test_fresh_buys_what_follows_from_a_finer_answer(running: Running) -> None:
    """As cloister.help says: a total follows from groups that were paid for. The same query again costs nothing either way."""
    told = psql(running, "SELECT what FROM cloister.help WHERE topic = 'cloister.fresh'").stdout
    assert "Charge even what follows from a finer answer that this session holds." in told
    groups, total = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "SELECT COUNT(*) AS n FROM people"
    asked = ((groups, "off", 1), (total, "off", 1), (total, "on", 2), (total, "on", 2), (groups, "on", 2))
    for sql, fresh, charges in asked:
        psql(running, "SET cloister.spend = '0.1'", f"SET cloister.fresh = {fresh}", sql)
        assert running.charges == charges, (sql, fresh)


def test_an_unknown_name_is_answered_with_the_nearest(running: Running) -> None:
    assert '"smoker"' in psql(running, "SELECT COUNT(*) FROM people WHERE smokr", check=False).stderr


def test_explain_prints_the_plan(running: Running) -> None:
    found = psql(running, "EXPLAIN SELECT COUNT(*) FROM people")
    assert "no spend is set, so this is an example" in found.stdout
    assert "nothing was spent and no row was read" in found.stdout


def test_an_error_has_its_code_and_the_line_to_write_instead(running: Running) -> None:
    found = psql(running, "SELECT nosuch FROM people", check=False)
    assert found.returncode == 1
    assert "ERROR:  42703: The column 'nosuch' is unknown" in found.stderr
    assert "HINT:" in found.stderr


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("INSERT INTO people VALUES (1)", "25006"),
        ("UPDATE people SET age = 1", "25006"),
        ("COPY people TO STDOUT", "25006"),
        ("CREATE TABLE x (y int)", "25006"),
        ("DECLARE c CURSOR FOR SELECT 1", "25P01"),
        (r"\copy people TO '/dev/null'", "25006"),
        ("FROBNICATE", "42601"),
        ("SELECT x FROM nosuch", "42P01"),
        ("SELECT 'open", "42601"),
        ("SET nosuch = 1", "42704"),
        ("SET cloister.spend = 'much'", "22023"),
        ("SET ROLE eve", "42501"),
        ("ROLLBACK TO s", "25P01"),
    ],
)
def test_what_is_refused_says_so_with_its_code(running: Running, statement: str, code: str) -> None:
    found = psql(running, statement, check=False)
    assert f"{code}: " in found.stderr
    assert running.charges == 0


@pytest.mark.parametrize(
    ("said", "hint"), [("peopel", "… FROM people"), ("public.peple", "… FROM people"), ("pg_nosuch", "pg_class")]
)
def test_a_wrong_name_of_a_table_is_answered_by_the_nearest(running: Running, said: str, hint: str) -> None:
    found = psql(running, f"SELECT COUNT(*) FROM {said}", check=False)
    assert hint in found.stderr.partition("HINT:")[2]


def test_a_wrong_token_is_refused(running: Running) -> None:
    found = psql(running, "SELECT 1", check=False, PGPASSWORD="wrong")
    assert found.returncode == 2
    assert "the name or the token is wrong" in found.stderr


def test_quiet_clients_hear_no_notice(running: Running) -> None:
    found = psql(running, "SELECT COUNT(*) FROM people", PGOPTIONS="-c cloister.spend=1 -c client_min_messages=warning")
    assert found.stderr == ""


def test_a_question_is_read_a_few_rows_at_a_time(running: Running) -> None:
    asked = "SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY sex, smoker"
    whole = psql(running, "SET cloister.spend = 1", asked).stdout
    piecewise = psql(running, r"\set FETCH_COUNT 3", "SET cloister.spend = 1", asked).stdout
    assert piecewise == whole
    assert running.charges == 1


def test_its_ways_to_show_and_keep_an_answer(running: Running) -> None:
    script = r"""
        SET cloister.spend = 1;
        SELECT COUNT(*) AS n FROM people \gset my_
        SELECT :my_n = :my_n AS kept;
        SELECT COUNT(*) AS n FROM people \gx
        SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY sex, smoker \crosstabview
        SELECT sex, COUNT(*) AS n FROM people GROUP BY sex \gdesc
        PREPARE p (int) AS SELECT COUNT(*) AS n FROM people WHERE age > $1;
        EXECUTE p (20);
        EXPLAIN EXECUTE p (20);
        BEGIN;
        DECLARE c CURSOR FOR EXECUTE p (20);
        ROLLBACK;
    """
    found = subprocess.run(
        ["psql", "-X", "-A"], input=script, env=running.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    for told in ("kept\nt\n", "n|", "sex|f|t", "n|bigint", "PREPARE", "nothing was spent and no row was read"):
        assert told in found.stdout, told
    assert found.stderr.count("ERROR") == 1, "a cursor is for a question"
    assert running.charges == 3


def test_a_question_that_is_watched_is_charged_once(running: Running) -> None:
    script = "SET cloister.spend = 1;\nSELECT COUNT(*) AS n FROM people \\watch 0.1\n"
    with subprocess.Popen(
        ["psql", "-X", "-A", "-t"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=running.environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(script)
        process.stdin.close()
        counts: list[str] = []
        while len(counts) < 3:
            line = process.stdout.readline()
            assert line
            counts += [line.strip()] if line.strip().lstrip("-").isdigit() else []
        process.kill()
    assert len(set(counts)) == 1
    assert running.charges == 1
