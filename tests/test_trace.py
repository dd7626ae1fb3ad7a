"""The way of a warm question grows no longer unnoticed."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.trace_question import in_python, over_http, room_of

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "how-a-request-runs.md"


def test_a_room_is_a_package_and_each_service_is_one() -> None:
    files = ["session/door.py", "errors.py", "hub/middleware.py", "hub/services/asking/authorised.py", "hub/services/__init__.py"]
    assert [room_of(each) for each in files] == ["session", "errors", "hub", "hub/services/asking", "hub"]


def test_in_python() -> None:
    trace = in_python()
    assert trace.calls <= 560
    assert trace.files <= 60
    assert trace.changes.total() <= 36
    assert trace.facts["seen"] <= 2
    assert trace.facts["aggregation checked"] == 1


def test_over_http() -> None:
    trace = over_http()
    assert 600 < trace.calls <= 1110  # 1,091 on a quiet machine; the threads wait in a few calls more or less when it is busy
    assert trace.files <= 114
    assert trace.changes.total() <= 110
    assert trace.facts["seen"] <= 6
    assert trace.facts["aggregation checked"] == 1
    assert trace.facts["policy decided"] == 1
    named, way = re.findall(r"`([\w/]+\.py)`", PAGE.read_text(encoding="utf-8")), iter(trace.way)
    assert len(named) > 20
    lost = [file for file in named if file not in way]  # an iterator: each is looked for after the one before
    assert not lost, "the page names the files of a question in the order in which they run"
