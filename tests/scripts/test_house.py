"""The house gets no heavier: no room has more lines than were written down, and no new circle, small file or avoided word."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from scripts import measure_house

MOST: dict[str, int] = json.loads(measure_house.MOST.read_text(encoding="utf-8"))


def test_no_room_has_more_lines_than_were_written_down() -> None:
    """Where one must grow, `scripts/measure_house.py --write` says so in the same commit, and something else has shrunk."""
    found = measure_house.lines_by_room()
    assert {room: lines for room, lines in found.items() if lines > MOST.get(room, 0)} == {}


def test_a_clone_has_everything_that_it_needs() -> None:
    """A link points out of the tree, to what is on one machine alone: an environment that was committed kept every clone from
    making its own."""
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=measure_house.ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone")
    assert [line for line in listed.stdout.splitlines() if line.startswith("120000")] == []


@pytest.mark.slow
def test_nothing_else_grew() -> None:
    found = measure_house.measured()
    assert {name: number for name, number in found.items() if number > MOST.get(name, 0)} == {}


def test_a_circle_is_found_and_what_types_alone_need_is_none(tmp_path: Path) -> None:
    texts = {
        "a": "from house import b\n",
        "b": "from house.c import x\n",
        "c": "try:\n    import house.a\nexcept ImportError:\n    pass\nx = 1\n",
        "d": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house import e\n",
        "e": "from house import d\n\n\ndef late() -> None:\n    import house.e\n",
    }
    modules = {}
    for name, text in texts.items():
        modules[f"house.{name}"] = tmp_path / f"{name}.py"
        modules[f"house.{name}"].write_text(text, encoding="utf-8")
    assert measure_house.circles(modules) == [["house.a", "house.b", "house.c"]]


def test_words_are_looked_for_in_what_is_said_and_in_no_text_of_the_program(tmp_path: Path) -> None:
    path = tmp_path / "said.py"
    path.write_text('"""An asker."""\n# of persons\ndef trail_of(asker: str) -> str:\n    return "anew"\n', encoding="utf-8")
    assert measure_house.avoided([path]) == 4
