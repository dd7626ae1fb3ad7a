"""`cloister audit`: what is refuted, what is not, what is refused, and what is left of an audit that was stopped."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cloister.cli import cli
from cloister.errors import CloisterError

OWN = '''
"""Mechanisms of a user."""

from cloister.noise import DiscreteLaplace

honest = DiscreteLaplace(scale=1)
number = 3
nothing = object()
calls = 0
LEFT, RIGHT = [1, 2], [1, 3]


def overstated(data, n, random):
    """Noise of scale 1 is ε = 1, whatever its author says."""
    return data + honest.sample(n, random=random)


def in_turn(data, n, random):
    return [(data + int(draw),) for draw in honest.sample(n, random=random)]


def summed(data, n, random):
    return sum(data) + honest.sample(n, random=random)


def failing(data, n, random):
    raise RuntimeError("row 17: Ada, 36, diagnosis 5")


def short(data, n, random):
    return [1]


def single(data, n, random):
    return 7


def stopped(data, n, random):
    """Interrupted in the middle of the second half."""
    global calls
    calls += n
    if calls > 6_000:
        raise KeyboardInterrupt
    return overstated(data, min(n, 1_000), random) if n <= 1_000 else overstated(data, n, random)


def stopped_at_once(data, n, random):
    raise KeyboardInterrupt


class Kind:
    def __call__(self, data, n, random):
        return overstated(data, n, random)
'''
PEOPLE = """
[tables.people]
source = "people.csv"
[tables.people.columns]
age = { kind = "integer", low = 0, high = 100 }
town = { kind = "text" }

[tables.visits]
source = "visits.csv"
unit = "who"
max_rows = 2
population = "patients"
[tables.visits.columns]
who = { kind = "integer", low = 0, high = 9 }

[tables.patients]
source = "patients.csv"
unit = "who"
max_rows = 1
population = "patients"
[tables.patients.columns]
who = { kind = "integer", low = 0, high = 9 }

[budgets]
people = { epsilon = "100", delta = "0.1" }
patients = { rho = "100" }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder: code of their own, and tables."""
    (tmp_path / "own_noise.py").write_text(OWN)
    (tmp_path / "broken_import.py").write_text("raise RuntimeError('row 17')\n")
    (tmp_path / "needs_more.py").write_text("import no_such_package_at_all\n")
    (tmp_path / "tables.toml").write_text(PEOPLE)
    (tmp_path / "people.csv").write_text("age,town\n100,a\n0,b\n0,c\n")
    (tmp_path / "visits.csv").write_text("who,cost\n1,3\n,4\n1,5\n2,6\n")
    (tmp_path / "patients.csv").write_text("who\n1\n2\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("own_noise", "broken_import", "needs_more"):
        sys.modules.pop(name, None)


def audit(*words: str, code: int = 0) -> Result:
    said = CliRunner().invoke(cli, ["audit", *words])
    assert said.exit_code == code, f"{said.output}\n{said.exception!r}"
    return said


def refusal(*words: str) -> str:
    said = CliRunner().invoke(cli, ["audit", *words])
    assert isinstance(said.exception, CloisterError), f"{said.output}\n{said.exception!r}"
    assert said.exception.why
    assert said.exception.instead
    return str(said.exception)


@pytest.mark.parametrize(
    "words",
    [
        ("laplace", "--epsilon", "2"),
        ("laplace", "--epsilon", "2", "--sensitivity", "5", "--left", "10", "--right", "15"),
        ("geometric", "--epsilon", "2"),
        ("staircase", "--epsilon", "2"),
        ("gaussian", "--rho", "2"),
        ("exponential", "--epsilon", "2"),
        ("permute-and-flip", "--epsilon", "2"),
        ("binary-response", "--epsilon", "2"),
        ("kary-response", "--epsilon", "2", "--categories", "3"),
    ],
    ids=" ".join,
)
def test_a_named_mechanism_keeps_its_promise_and_the_bound_is_near_it(words: tuple[str, ...]) -> None:
    found = json.loads(audit(*words, "--runs", "40000", "--json").output)
    assert not found["refuted"]
    assert found["runs"] == 40_000
    amount = found["rho"] if words[0] == "gaussian" else found["epsilon"]
    assert (0.7 if words[0] == "gaussian" else 0.9) < amount <= 2


def test_what_is_printed() -> None:
    lines = audit("laplace", "--epsilon", "0.5", "--runs", "50000", "--confidence", "0.999").output.splitlines()
    said = {line[:9].strip(): line[9:] for line in lines}
    assert said["audited"] == "laplace: DiscreteLaplace(scale='2', sensitivity='1')"
    assert said["worlds"] == "0 against 1"
    assert said["claimed"] == "ε = 0.5"
    assert said["found"].startswith("ε ≥ 0.4")
    assert said["found"].endswith("with confidence 0.999")
    assert " in at least " in said["event"]
    assert said["runs"] == "50,000 in each world"
    assert said["verdict"] == "no contradiction found"


@pytest.mark.parametrize("name", ["noise used twice", "direct encoding, off by one", "scale 1 whatever ε"])
def test_a_broken_mechanism_is_refuted_and_that_is_success(name: str) -> None:
    said = audit("--broken", name).output
    assert "REFUTED" in said
    assert "(broken on purpose)" in said


def test_a_broken_mechanism_whose_law_is_written_down_is_refuted_by_arithmetic() -> None:
    said = audit("--broken", "ties dropped on one side").output
    assert "ε = 2.0" in said
    assert ", by arithmetic, nothing sampled" in said
    found = json.loads(audit("--broken", "ties dropped on one side", "--json").output)
    assert found["refuted"]
    assert found["runs"] == 0


def test_a_demonstration_that_shows_nothing_fails() -> None:
    too_sure = ("--runs", "400", "--confidence", "0." + "9" * 100)
    assert "no contradiction found" in audit("--broken", "scale 1 whatever ε", *too_sure, code=1).output


def test_the_list_names_what_can_be_audited() -> None:
    assert "laplace" in audit("--list").output
    names = json.loads(audit("--list", "--json").output)
    assert "gaussian" in names["mechanisms"]
    assert "noise used twice" in names["broken"]


@pytest.mark.usefixtures("folder")
def test_a_mechanism_of_the_users_own() -> None:
    kept = json.loads(audit("own_noise:honest", "--left", "0", "--right", "1", "--runs", "40000", "--json").output)
    assert not kept["refuted"]
    assert kept["claimed"] == "ε = 1"
    assert 0.7 < kept["epsilon"] <= 1
    own = ("--left", "0", "--right", "1", "--runs", "40000")
    said = audit("own_noise:overstated", "--epsilon", "0.1", *own, code=1).output
    assert "REFUTED: the promise is broken" in said
    assert "no contradiction" in audit("own_noise:overstated", "--epsilon", "0.1", "--delta", "0.9", *own).output
    assert "REFUTED" in audit("own_noise:in_turn", "--rho", "0.001", *own, code=1).output
    worlds = ("--left", "own_noise:LEFT", "--right", "own_noise:RIGHT", "--runs", "20000")
    assert "no contradiction" in audit("own_noise:summed", "--epsilon", "1", *worlds).output


@pytest.mark.usefixtures("folder")
def test_an_audit_that_was_stopped_tells_of_the_runs_that_it_had() -> None:
    worlds = ("--left", "0", "--right", "50", "--runs", "4000")
    said = audit("own_noise:stopped", "--epsilon", "0.1", *worlds, code=130).output
    assert "(stopped)" in said
    assert "REFUTED" in said
    sys.modules["own_noise"].calls = 0  # type: ignore[attr-defined]
    found = json.loads(audit("own_noise:stopped", "--epsilon", "0.1", *worlds, "--json", code=130).stdout)
    assert found["stopped"]
    assert found["refuted"]
    assert 400 <= found["runs"] < 4000
    early = audit("own_noise:stopped_at_once", "--epsilon", "0.1", *worlds, code=130)
    assert "nothing was found yet: 0 runs" in early.output


def test_a_question_in_sql_with_one_person_removed(folder: Path) -> None:
    sql = ("sql", "SELECT SUM(age) AS total FROM people", "--spend", "4", "--tables", "tables.toml", "--runs", "400", "--json")
    mine = json.loads(audit(*sql, "--remove", "0").output)
    assert mine["claimed"].startswith("ε = 4")
    assert not mine["refuted"]
    assert mine["epsilon"] > 0.3  # the first person's age is the whole sum
    assert json.loads(audit(*sql, "--remove", "1").output)["epsilon"] <= 0.3  # the second's is 0, and moves nothing


def test_a_person_of_a_unit_is_removed_from_all_tables_of_the_population(folder: Path) -> None:
    from cloister.cli.audited_sql import _declared, _without
    from cloister.privacy import PureDP
    from cloister.query import Session

    tables, _ = _declared(folder / "tables.toml")
    count = "SELECT who, COUNT(*) AS n FROM {} GROUP BY who"
    for place, who in ((0, 1), (3, 2)):
        with Session(_without(tables, "visits", place), budget=PureDP(10**7)) as session:  # so much that the noise is nothing
            for name, had in (("visits", [0, 2, 1]), ("patients", [0, 1, 1])):
                left = session.sql(count.format(name), spend="1000000").to_pydict()["n"][:3]
                assert left == [0 if each == who else n for each, n in enumerate(had)]


def test_zero_concentrated_questions_claim_rho(folder: Path) -> None:
    words = ("sql", "SELECT COUNT(*) AS n FROM visits", "--spend", "0.5", "--tables", "tables.toml", "--remove", "0")
    found = json.loads(audit(*words, "--runs", "400", "--json").output)
    assert found["claimed"] == "ρ = 0.5"
    assert not found["refuted"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "names nothing"),
        (("laplace",), "--epsilon"),
        (("laplace", "--epsilon", "1", "--rho", "1"), "pure ε"),
        (("gaussian", "--epsilon", "1"), "--rho"),
        (("laplase", "--epsilon", "1"), "cloister audit laplace"),
        (("laplace", "--epsilon", "x"), "epsilon"),
        (("laplace", "--epsilon", "1", "--left", "0", "--right", "2"), "2 apart"),
        (("laplace", "--epsilon", "1", "--left", "0.5"), "a whole number"),
        (("laplace", "--epsilon", "1", "--left", "["), "neither JSON"),
        (("laplace", "--epsilon", "1", "--left", "NaN"), "neither JSON"),
        (("laplace", "--epsilon", "1", "--left", "9" * 5000), "neither JSON"),
        (("laplace", "--epsilon", "1", "--left", "[" * 5000), "neither JSON"),
        (("laplace", "--epsilon", "1", "--categories", "3"), "no such parameter"),
        (("binary-response", "--epsilon", "1", "--sensitivity", "3"), "no such parameter"),
        (("binary-response", "--epsilon", "1", "--left", "1"), "true or false"),
        (("exponential", "--epsilon", "1", "--left", "[1, 2]"), "differ in length"),
        (("exponential", "--epsilon", "1", "--left", "[]"), "a list of whole numbers"),
        (("laplace", "--epsilon", "1", "--runs", "3"), "at least 400"),
        (("laplace", "--epsilon", "1", "--confidence", "0.1"), "confidence"),
        (("laplace", "--epsilon", "1", "--confidence", "x"), "confidence"),
        (("laplace", "--epsilon", "1", "--spend", "1"), "an audit of sql"),
        (("laplace", "SELECT 1", "--epsilon", "1"), "options alone"),
        (("laplace", "--broken", "noise used twice"), "its own mechanism"),
        (("--broken", "noise used thrice"), "noise used twice"),
        (("--broken", "noise used twice", "--epsilon", "1"), "a mechanism"),
        (("sql",), "needs a question"),
        (("sql", "SELECT COUNT(*) FROM people", "--spend", "1"), "--remove"),
        (("sql", "SELECT COUNT(*) FROM people", "--remove", "0"), "--spend"),
        (("sql", "SELECT COUNT(*) FROM people", "--spend", "1", "--remove", "0", "--left", "0"), "a mechanism"),
        (("sql", "SELECT COUNT(*) FROM people", "--spend", "1", "--remove", "0"), "people"),
        (("own_noise:missing", "--epsilon", "1"), "no 'missing'"),
        (("own_noise:", "--epsilon", "1"), "a module and an object"),
        (("no_such_module:x", "--epsilon", "1"), "no module 'no_such_module'"),
        (("needs_more:x", "--epsilon", "1"), "needs the module 'no_such_package_at_all'"),
        (("broken_import:x", "--epsilon", "1"), "failed with a RuntimeError"),
        (("own_noise:Kind", "--epsilon", "1"), "it is a class"),
        (("own_noise:overstated", "--left", "0", "--right", "1"), "states no guarantee"),
        (("own_noise:overstated", "--delta", "0.1", "--left", "0", "--right", "1"), "belongs to an ε"),
        (("own_noise:overstated", "--epsilon", "1", "--rho", "1"), "stated in one"),
        (("own_noise:overstated", "--epsilon", "1"), "two worlds"),
        (("own_noise:overstated", "--epsilon", "1", "--sensitivity", "1"), "holds already"),
        (("own_noise:nothing", "--epsilon", "1", "--left", "0", "--right", "1"), "neither .sample nor .release"),
        (("own_noise:failing", "--epsilon", "1", "--left", "0", "--right", "1"), "failed with a RuntimeError"),
        (("own_noise:short", "--epsilon", "1", "--left", "0", "--right", "1"), "something else than"),
        (("own_noise:single", "--epsilon", "1", "--left", "0", "--right", "1"), "something else than"),
        (("own_noise:overstated", "--epsilon", "1", "--left", "own_noise:LOST", "--right", "1"), "no 'LOST'"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else None,
)
@pytest.mark.usefixtures("folder")
def test_each_mistake_has_a_message_of_its_own(words: tuple[str, ...], said: str) -> None:
    message = refusal(*words)
    assert said in message
    assert "Ada" not in message


@pytest.mark.parametrize(
    ("sql", "remove", "said"),
    [
        ("SELECT COUNT(*) FROM people", "3", "no such row"),
        ("SELECT COUNT(*) FROM people", "-1", "number of a row"),
        ("SELECT COUNT(*) FROM people", "visits:0", "no private table 'visits'"),
        ("SELECT COUNT(*) FROM visits", "1", "names nobody"),
        ("SELECT COUNT(*) FROM visits AS v JOIN patients AS p ON p.who = v.who", "0", "--remove patients:0"),
        ("SELECT town, COUNT(*) AS n FROM people GROUP BY town", "0", "groups differ"),
        ("SELECT who, COUNT(*) AS n FROM visits GROUP BY who HAVING COUNT(*) > 0", "0", "rows differ"),
        ("SELECT nobody FROM people", "0", "nobody"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_each_mistake_of_a_question_has_a_message_of_its_own(sql: str, remove: str, said: str) -> None:
    assert said in refusal("sql", sql, "--spend", "100", "--tables", "tables.toml", "--remove", remove, "--runs", "400")


def test_a_terminal_sees_a_bar_and_a_program_does_not(folder: Path) -> None:
    line = [sys.executable, "-m", "cloister", "audit", "laplace", "--epsilon", "1", "--runs", "4000", "--json"]
    master, terminal = pty.openpty()
    ended = subprocess.run(
        line, stdout=subprocess.PIPE, stderr=terminal, cwd=folder, check=True, env={**os.environ, "TERM": "xterm"}
    )
    os.close(terminal)
    shown = os.read(master, 65536).decode(errors="replace")
    os.close(master)
    assert "running in both worlds" in shown
    assert json.loads(ended.stdout)["runs"] == 4000
    assert subprocess.run(line, capture_output=True, cwd=folder, check=True).stderr == b""
