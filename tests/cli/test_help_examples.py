"""The examples that `--help` shows run unchanged, in the order of a command's help, in one empty folder for each command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cloister.cli.main import cli

NEEDS = {
    r"--hub https://|postgresql://": "a hub or a server",
    r"^cloister (demo|hub|worker|audit-trail)\b": "the folder of a hub",
    r"^cloister ledger restore\b": "a ledger that is frozen",
    r"^cloister (site|csp|vault|helper)\b": "the folder of a site, a key holder, a vault or a helper",
    r"^cloister guest\b": "an image that is built on the machine, and code of an algorithm",
    r"^cloister audit mypackage": "a package of one's own",
    r"^cloister (declare|stream|rows tables)\b|\bpeople\.(csv|json)\b|\bstays\.csv\b|--tables\b": "a file of one's own",
    r"^cloister (learn census|synth)\b": "a model, whose fit takes long",
}
"""The examples that do not, and what they need."""


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            nested = command.get_command(context, name)
            assert nested is not None
            yield from commands(nested, f"{path} {name}")


def shown(command: click.Command) -> list[str]:
    """The examples in a command's help that run without anything."""
    text = re.sub(r"\\\n\s*", " ", command.help or "")
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("cloister ")]
    return [line for line in lines if not any(re.search(pattern, line) for pattern in NEEDS)]


SHOWN = {path: examples for path, command in commands(cli, "cloister") if (examples := shown(command))}


@pytest.mark.parametrize("path", SHOWN)
def test_the_examples_of_help_run_in_an_empty_folder(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in SHOWN[path]:
        said = CliRunner().invoke(cli, shlex.split(line)[1:])
        assert said.exit_code == 0, f"{line}\n{said.output}\n{said.exception!r}"


def test_whole_groups_of_commands_are_tried() -> None:
    assert {"cloister", "cloister risk", "cloister anonymize", "cloister mine hide", "cloister query", "cloister explain"} < set(
        SHOWN
    )
    assert {f"cloister survey {name}" for name in ("make", "respond", "collect", "expected")} < set(SHOWN)
    assert {f"cloister ledger {name}" for name in ("show", "verify", "raise", "export")} < set(SHOWN)
