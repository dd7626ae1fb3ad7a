"""A picture of an answer whose keys hold anything: the library that draws would end the process at what XML forbids."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from cloister.session.releases.drawing import clean, svg

CODE = """
from cloister.session.releases.drawing import svg
key = "".join(map(chr, range(32))) + "\\ufffe\\uffff\\ud800 ok \\u202e\\U0001F600"
spec = {"data": {"values": [{"a\\x01": key, "b": 1}]}, "mark": "bar",
        "encoding": {"x": {"field": "a\\x01", "type": "nominal"}, "y": {"field": "b", "type": "quantitative"}}}
assert "⟨U+0000⟩" in svg(spec)
"""


@pytest.mark.skipif(importlib.util.find_spec("vl_convert") is None, reason="vl-convert is not installed")
def test_characters_that_no_picture_can_hold_do_not_end_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-500:]


def test_what_cannot_be_printed_is_shown_by_its_number_and_long_texts_are_cut() -> None:
    kept = "r é東🏠\u200d"
    assert clean(kept) == kept
    assert clean("\t\u202e") == "⟨U+0009⟩⟨U+202E⟩"
    assert clean({"a": ("\x0b", 1, None, 2.5)}) == {"a": ["⟨U+000B⟩", 1, None, 2.5]}
    one, other = (clean({"values": ["🏠" * 50 + end]})["values"][0] for end in "ab")
    assert one != other, "two keys stay two"
    assert one.startswith("🏠" * 18 + "… ")


def test_the_same_picture_is_the_same_text_however_many_were_drawn_before() -> None:
    heat = {
        "data": {"values": [{"a": 1, "n": 3}, {"a": 2, "n": 5}]},
        "mark": "rect",
        "encoding": {"x": {"field": "a", "type": "ordinal"}, "color": {"field": "n", "type": "quantitative"}},
    }
    first = svg(heat)
    assert 'id="gradient_0"' in first
    assert svg(heat) == first
