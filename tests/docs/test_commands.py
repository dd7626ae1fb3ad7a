"""Each command that a page shows (`$ cloister …` in a console block) runs, in the order of the page, in one empty folder.

An audit runs a mechanism many times over, which is most of what the pages cost: by day its command runs it a few times, at night
as often as the page says.
"""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cloister.cli import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


def shown(page: Path) -> list[str]:
    """The commands in the console blocks of a page."""
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


WITH_COMMANDS = [page for page in PAGES if shown(page)]


FEW = 40
AUDITED = re.compile(r"^cloister audit (?!--).* --runs \d+")


@pytest.mark.parametrize("often", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["few runs", "as shown"])
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_the_commands_of_the_page_run(page: Path, often: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if not often:
        for module in ("cloister.cli.audit", "cloister.attacks.audit"):  # there, a name is a module's and a function's
            monkeypatch.setattr(importlib.import_module(module), "_FEWEST", FEW)
    elif not any(AUDITED.match(command) or "demo --once" in command for command in shown(page)):
        pytest.skip("by day all of it runs as shown")
    for command in shown(page):
        if not often and AUDITED.match(command):
            command = re.sub(r"--runs \d+", f"--runs {FEW}", command)
        if not often and command.startswith("cloister demo --once"):
            continue  # tests/cli/test_demo.py starts it
        program, *words = shlex.split(command)
        assert program == "cloister", f"{command}: only our own commands are shown in console blocks"
        if words[0] == "demo":  # it serves: a process of its own, as for the person who types it
            served = subprocess.run([sys.executable, "-m", "cloister", *words], capture_output=True, text=True, check=False)
            assert served.returncode == 0, f"{command}\n{served.stdout}\n{served.stderr}"
            assert served.stdout.strip(), command
            continue
        said = CliRunner().invoke(cli, words)
        assert said.exit_code == 0, f"{command}\n{said.output}\n{said.exception!r}"
        assert said.output.strip(), command


def test_the_commands_for_a_second_time_user_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a table of their own; what begins a hub is held elsewhere."""
    lines = re.findall(r"^\.venv/bin/(cloister .*?)(?:  +#.*)?$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [shlex.split(line)[1] for line in lines] == ["declare", "query", "hub"]
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age,sex\n34,F\n51,M\n", encoding="utf-8")
    for line in [*lines[:2], lines[1]]:
        said = CliRunner().invoke(cli, shlex.split(line)[1:])
        assert said.exit_code == 0, f"{line}\n{said.output}\n{said.exception!r}"
    assert (tmp_path / "budget.db").is_file()


def test_the_reference_shows_commands() -> None:
    assert "command-line" in {page.stem for page in WITH_COMMANDS}
