"""The way of a warm question grows no longer unnoticed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cloister.session.questions import limits
from scripts.trace_question import WARM, in_python, over_http, room_of

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "how-a-request-runs.md"


def test_a_room_is_a_package_and_each_service_is_one() -> None:
    files = ["session/door.py", "errors.py", "hub/middleware.py", "hub/services/asking/authorised.py", "hub/services/__init__.py"]
    assert [room_of(each) for each in files] == ["session", "errors", "hub", "hub/services/asking", "hub"]


@pytest.mark.parametrize("before", [0, limits._FORGET - WARM])
def test_in_python(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the clocks of earlier questions are forgotten just then."""
    monkeypatch.setattr(limits._ALARMS, "_ended", before)
    trace = in_python()
    assert trace.calls - trace.functions["noise/random.py", "word"] <= 422
    assert trace.files <= 57
    assert trace.changes.total() <= 30
    assert trace.facts["seen"] <= 2
    assert trace.facts["aggregation checked"] == 1


def test_over_http() -> None:
    trace = over_http()
    drawn = trace.functions["noise/random.py", "word"]  # how often a sampler tries again is chance
    assert 600 < trace.calls - drawn <= 795
    assert trace.files <= 102
    assert trace.changes.total() <= 92
    assert trace.facts["seen"] <= 6
    assert trace.facts["aggregation checked"] == 1
    assert trace.facts["policy decided"] == 1
    named, way = re.findall(r"`([\w/]+\.py)`", PAGE.read_text(encoding="utf-8")), iter(trace.way)
    assert len(named) > 20
    lost = [file for file in named if file not in way]  # an iterator: each is looked for after the one before
    assert not lost, "the page names the files of a question in the order in which they run"
