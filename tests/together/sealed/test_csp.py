"""`cloister csp`: folders, sealing from a declarations file, the wire, and a key holder that is killed at each step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli import cli
from cloister.crypto import SigningKey
from cloister.ledger import Ledger
from cloister.session import Count, Question
from cloister.together import KeyHolderAgent, KeyHolderLine
from tests.together.parties import HUB_KEY
from tests.together.sealed.cells import OWNER, ages, holder_of
from tests.together.wired import PAUSES, lines_of

ROOT = Path(__file__).resolve().parents[3]
SPEND = 50
PEOPLE = """
[tables.people]
source = "people.csv"
population = "patients"
{more}

[tables.people.columns]
age = {{ kind = "integer", low = 17, high = 90 }}
sex = {{ kind = "category", values = ["F", "M"] }}

[format]
pad_to = 16

[[marginals]]
by = ["sex"]
sums = ["age"]
"""


def run(*words: object) -> str:
    """What is printed; of a refusal, what is said."""
    found = CliRunner().invoke(cli, ["csp", *map(str, words)])
    return f"{found.output}{found.exception}" if found.exit_code else found.stdout


def folder_of(where: Path) -> tuple[Path, str]:
    """A key holder's folder that is filled in, and its public key."""
    folder = where / "keys"
    public = json.loads(run("init", folder, "--name", "keys").splitlines()[0])["keys"]
    text = (folder / "csp.toml").read_text(encoding="utf-8").replace('hub_key = ""', f'hub_key = "{HUB_KEY.public.hex()}"')
    text = text.replace("# patients = {", "patients = {").replace('"0.5"', '"1e9"')
    (folder / "csp.toml").write_text(
        text.replace("# patients = [", "patients = [").replace("5f3a…", OWNER.public.hex()), encoding="utf-8"
    )
    return folder, public


def sealed_of(where: Path, public: str, more: str = "") -> Path:
    """An owner's folder, with a batch of twenty people of each sex."""
    (where / "people.toml").write_text(PEOPLE.format(more=more), encoding="utf-8")
    lines = [f"{30 + row},{sex}" for row in range(20) for sex in "FM"]
    (where / "people.csv").write_text("\n".join(["age,sex", *lines, ""]), encoding="utf-8")
    (where / "owner.key").write_text((b"o" * 32).hex(), encoding="ascii")
    told = json.loads(run("seal", where / "people.toml", "--to", public, "--out", where / "first.masked", "--json"))
    assert told["bytes a row"] == 8 * 3 * 3
    assert told["bytes"] > 48 * 72
    assert told["owner"] == OWNER.public.hex()
    return where / "first.masked"


def test_a_key_holder_that_is_killed_at_any_step_charges_once_and_gives_the_same_bytes(tmp_path: Path) -> None:
    """With the charge reserved, with the answer on disk, and with the charge settled: then it is started again."""
    folder, public = folder_of(tmp_path)
    batch = sealed_of(tmp_path, public)
    line = KeyHolderLine(HUB_KEY, "keys", bytes.fromhex(public), deadline=240.0, wait=0.3)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    driver = str(Path(__file__).with_name("csp_process.py"))
    with line.serving() as hub:
        words = [sys.executable, driver, str(folder), hub, "reserved", "kept", "sent"]
        process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
        try:
            with cl.Session({"people": cl.SealedTable([batch], line, purpose="a report")}, budget=cl.PureDP(SPEND)) as session:
                text = "SELECT CASE sex WHEN 'F' THEN 'women' ELSE 'men' END AS who, COUNT(*) AS n FROM people GROUP BY who"
                found = session.sql(text, spend=SPEND).to_pydict()
        finally:
            process.kill()
            process.wait()
    assert all(abs(n - 20) <= 5 for n in found["n"])  # P(noise > 5 at ε = 50) < 10⁻¹⁰⁰
    assert len(list(folder.glob("done *"))) == 3
    lines = lines_of(folder)
    assert len({digest for _, digest in lines}) == 1
    assert [kind for kind, _ in lines].count("drawn") == 1
    with Ledger(folder / "ledger.db") as ledger:
        assert [(each.state, each.purpose) for each in ledger.charges("patients")] == [("settled", "a report")]
    told = json.loads(run("show", "--data", folder, "--json"))
    assert [each["event"] for each in told["log"]] == ["accepted", "charged"]
    assert (told["populations"]["patients"]["spent"], told["broken"]) == (f"ρ = {SPEND**2 // 2}", None)
    log = folder / "audit-log.jsonl"
    log.write_text(log.read_text(encoding="utf-8").replace("a report", "x").replace("accepted", "charged"), encoding="utf-8")
    assert "BROKEN: entry 1" in run("show", "--data", folder)


def test_over_the_wire_refusals_have_the_key_holders_words(tmp_path: Path) -> None:
    holder = holder_of(cl.PureDP(1), name="keys", owners={"patients": [OWNER.public]})
    batch = ages(tmp_path, holder)
    line = KeyHolderLine(HUB_KEY, "keys", holder.public, deadline=240.0, wait=0.3)
    stop, told = threading.Event(), list[str]()
    strangers = KeyHolderAgent(holder, SigningKey(bytes(32)).public)
    with line.serving() as hub:
        agent = KeyHolderAgent(holder, HUB_KEY.public)
        thread = threading.Thread(target=agent.run, args=(hub,), kwargs={"stop": stop, "told": told.append, "pauses": PAUSES})
        thread.start()
        try:
            with cl.Session({"people": cl.SealedTable([batch.path], line)}, budget=cl.PureDP(9)) as session:
                session.sql("SELECT AVG(age) FILTER (WHERE sex = 'F') AS a FROM people", spend="0.5")
                with pytest.raises(cl.BudgetExceeded, match="'keys' says: The key holder refused a request: it costs ε = 2"):
                    session.sql("SELECT COUNT(*) AS n FROM people WHERE sex = 'F'", spend=2)
                with pytest.raises(cl.BudgetExceeded, match=r"it costs ε = 0\.8, and ε = 0\.5"):  # each part is 0.4
                    session.measure_all([Question(table="people", by=by, statistics=[Count()]) for by in ((), ("sex",))], "0.8")
                assert str(session.spent) == str(holder.spent("patients")) == "ε = 0.5"  # refused before anything was charged
        finally:
            stop.set()
            thread.join()
    assert b"signed" in strangers.answer(line._roster)
    line.deadline = 0.01
    with pytest.raises(cl.EngineError, match=r"'keys' is silent.*\n.*cloister csp"):
        line.agreed(b"")
    with pytest.raises(cl.InvalidDeclaration, match="32 bytes"):
        KeyHolderAgent(holder, b"")


def test_what_a_folder_or_a_declaration_lacks_is_said(tmp_path: Path) -> None:
    folder, public = folder_of(tmp_path)
    lacks = run("show", "--data", tmp_path / "nowhere")
    assert f"The folder {str(tmp_path / 'nowhere')!r} is invalid: no csp.toml can be read in it" in lacks
    assert "cloister csp init" in lacks
    for name in ("", "keys\nmore"):
        assert "--name keys" in run("init", tmp_path / "unnamed", "--name", name)
        assert not (tmp_path / "unnamed").exists()
    assert json.loads(run("init", folder, "--name", "other").splitlines()[0])["keys"] == public  # a key is made once
    held = (folder / "csp.toml").read_text(encoding="utf-8")
    for old, new, why in (
        (HUB_KEY.public.hex(), "7", "hub_key"),
        ('name = "keys"', "", "names no key holder"),
        ("a_day = 1000", "a_day = 0", "a_day"),
        ("a_day = 1000", "a_dya = 5", "'a_dya' is not one of the words of [key_holder]"),
        (OWNER.public.hex(), "7f", "[owners]"),
        ("patients = [", "patients = 5 # [", "[owners]"),
    ):
        (folder / "csp.toml").write_text(held.replace(old, new), encoding="utf-8")
        assert why in run("--data", folder)
    sealed_of(tmp_path, public)
    assert "has other characters" in run("seal", tmp_path / "people.toml", "--to", "z", "--out", tmp_path / "b")
    (tmp_path / "people.toml").write_text(PEOPLE.format(more="").replace('population = "patients"', ""), encoding="utf-8")
    assert "names no population" in run("seal", tmp_path / "people.toml", "--to", public, "--out", tmp_path / "b")
    (tmp_path / "people.toml").write_text(PEOPLE.format(more='during = ["at", "2026-01-01", "2026-03-31"]'), encoding="utf-8")
    (tmp_path / "people.csv").write_text("at,age,sex\n2025-01-01,39,F\n", encoding="utf-8")
    assert "through or during says otherwise" in run("seal", tmp_path / "people.toml", "--to", public, "--out", tmp_path / "b")
    (tmp_path / "people.toml").write_text(PEOPLE.format(more="").replace("sums =", "totals ="), encoding="utf-8")
    assert "parts of another form" in run("seal", tmp_path / "people.toml", "--to", public, "--out", tmp_path / "b")


def test_units_are_counted_in_the_owners_folder(tmp_path: Path) -> None:
    _, public = folder_of(tmp_path)
    (tmp_path / "people.toml").write_text(PEOPLE.format(more='unit = "who"\nmax_rows = 1'), encoding="utf-8")
    (tmp_path / "people.csv").write_text("who,age,sex\nada,39,F\n", encoding="utf-8")
    words = ["seal", tmp_path / "people.toml", "--to", public, "--out", tmp_path / "b.masked"]
    assert "counts=" in run(*words)
    assert "0 in all" in run(*words, "--dry-run")
    told = run(*words, "--counts", tmp_path / "counts")
    assert "by sex: 3 cells of 3 numbers, 72 bytes a row" in told
    assert "1 rows count; 0 are left out" in told
    [folder] = (tmp_path / "counts").iterdir()
    kept = (folder / "rows").read_text(encoding="utf-8")
    assert list(json.loads(kept).values()) == [1]
    assert "ada" not in kept
    again = json.loads(run(*words, "--counts", tmp_path / "counts", "--json"))
    assert (again["rows"], again["over max_rows"]) == (0, 1)  # the owner hears that nobody is in the second batch


def test_a_key_holder_whose_key_was_copied_writes_differences(tmp_path: Path) -> None:
    runner = CliRunner()
    for name in ("old", "new"):
        runner.invoke(cli, ["csp", "init", str(tmp_path / name), "--name", name], catch_exceptions=False)
    public = {
        n: json.loads(runner.invoke(cli, ["csp", "show", "--data", str(tmp_path / n), "--json"]).output)["key"]
        for n in ("old", "new")
    }
    found = runner.invoke(
        cli, ["csp", "renew", "--data", str(tmp_path / "old"), "--to", public["new"], "--out", str(tmp_path / "out")]
    )
    assert "0 differences" in found.output
    log = json.loads(runner.invoke(cli, ["csp", "show", "--data", str(tmp_path / "old"), "--json"]).output)["log"]
    assert [each["event"] for each in log] == ["renewed"]
    wrong = runner.invoke(cli, ["csp", "renew", "--data", str(tmp_path / "old"), "--to", "x", "--out", str(tmp_path / "out")])
    assert "other characters" in str(wrong.exception)
