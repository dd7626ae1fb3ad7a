"""`cloister guest`: all that a guest returned, prints and raises is told, in characters that a terminal only shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import cloister as cl
from cloister.cli.main import cli
from cloister.errors import InvalidParameter

HALF = 'def f(rows):\n    print("p \\ud800 \\x1b[31m")\n    return "é\\ud800"\n'
RAISED = 'def f(rows):\n    raise ValueError("\\ud800\\x1b]0;x\\x07")\n'


def guest(folder: Path, verb: str, code: str | bytes, *how: str) -> Result:
    (folder / "people.csv").write_text("age\n" + "30\n" * 40)
    (folder / "f.py").write_bytes(code if isinstance(code, bytes) else code.encode())
    return CliRunner().invoke(
        cli, ["guest", verb, str(folder / "f.py"), str(folder / "people.csv"), "--bounds", "age=17:90", *how]
    )


def by_blocks(folder: Path, code: str | bytes, *how: str) -> Result:
    return guest(folder, "try", code, "--inputs", "age", "--output", "0:1", "--blocks", "5", *how)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ('{"n": 3, "mean": 2.5, "by": ["a", None], "why": "x"}', '  n  3\n  mean  2.5\n  by  ["a", null]\n  why  "x"\n'),
        ("[1, True]", "  [1, true]\n"),
        ("7", "  7\n"),
        ("{}", "  {}\n"),
        ("None", "  null\n"),
    ],
)
def test_what_a_guest_made_of_its_answers_is_told_whatever_it_is(tmp_path: Path, returned: str, told: str) -> None:
    found = guest(tmp_path, "run", f"def f(about):\n    return {returned}\n", "--way", "ask")
    assert found.output == f"f by ask, ε = 0\n{told}"


def test_what_returned_nothing_says_only_why() -> None:
    found = cl.guests.Result(guest="f", way="ask", values=None, margins={}, cost=cl.PureDP(1), digest="", why="it ended")
    assert str(found) == "f by ask, ε = 1\n  it returned nothing: it ended"


def test_no_half_of_a_character_loses_an_answer_that_was_charged(tmp_path: Path) -> None:
    code = 'def f(about):\n    return {"n": 3, "why\\x07": "\\ud800\\x1b"}\n'
    assert json.loads(guest(tmp_path, "run", code, "--way", "ask", "--json").output)["values"] == {"n": 3, "why\7": "\ud800\x1b"}
    assert '  n  3\n  why⟨U+0007⟩  "\\ud800\\u001b"' in guest(tmp_path, "run", code, "--way", "ask").output
    assert '{"n": 3, "why\\u0007": "\\ud800\\u001b"}' in guest(tmp_path, "try", code, "--way", "ask").output


def test_no_terminal_takes_commands_of_a_guest(tmp_path: Path) -> None:
    said = by_blocks(tmp_path, HALF).output
    assert 'it returned "é\\ud800", and not 1 number\n  printed: p ⟨U+D800⟩ ⟨U+001B⟩[31m' in said
    assert "ValueError: ⟨U+D800⟩⟨U+001B⟩]0;x⟨U+0007⟩" in by_blocks(tmp_path, RAISED).output
    (tmp_path / "tests.py").write_text("def test_one():\n    f({})\n")
    assert "failed: test_one: ValueError: ⟨U+D800⟩" in by_blocks(tmp_path, RAISED, "--tests", str(tmp_path / "tests.py")).output


def test_a_file_is_in_utf_8_with_or_without_its_mark(tmp_path: Path) -> None:
    latin, fine = b"def f(rows):\n    # caf\xe9\n    return [1]\n", b"def f(rows):\n    return [1]\n"
    (tmp_path / "tests.py").write_bytes(b"# caf\xe9\n")
    assert by_blocks(tmp_path, b"\xef\xbb\xbf" + fine).exit_code == 0
    for name, found in (
        ("f.py", by_blocks(tmp_path, latin)),
        ("tests.py", by_blocks(tmp_path, fine, "--tests", str(tmp_path / "tests.py"))),
    ):
        assert isinstance(found.exception, InvalidParameter)
        assert str(found.exception) == f"The file {name!r} is invalid: it is not in UTF-8.\n  Instead: the file, saved as UTF-8"


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ("output=cl.Vector([(0, 1)]), block=5", "block= of the decorator is invalid"),
        ("output=(0, 1)", "output= is invalid"),
        ("output=[(0, 1)]", "output= is invalid"),
        ("output=cl.Vector([(0, 1)]), blocks=int(5)", "blocks= of the decorator is invalid"),
        ("output=cl.Vector([(0, 1)]), author=5", "author= is invalid"),
        ("output=cl.Vector([(0, 1)]), language='r'", "entry='f' is invalid"),
    ],
)
def test_slips_of_a_decorator_are_told_in_words(tmp_path: Path, declared: str, says: str) -> None:
    code = f"import cloister as cl\n@cl.guest(inputs=['age'], {declared})\ndef f(rows):\n    return [1]\n"
    refused = guest(tmp_path, "review", code).exception
    assert isinstance(refused, InvalidParameter)
    assert says in str(refused)
