"""Looks at profiles: after the answers, one for all that somebody asked within a moment, and none is lost at the end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cloister.hub.hub import Caller
from cloister.hub.services.asking.watching import look_later, watched, watching

ADA, BOB = Caller(id="ada", via="system"), Caller(id="bob", via="system")


@pytest.fixture
def looks(monkeypatch) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    monkeypatch.setitem(watching.__globals__, "watch", lambda hub, caller, line: found.append((caller.id, line)))
    return found


def test_one_look_for_all_that_somebody_asked_within_a_moment(looks):
    hub = SimpleNamespace(parts={}, patience=lambda most: most)
    watching(hub)
    for caller, line in ((ADA, 7), (BOB, 8), (ADA, 9)):
        look_later(hub, caller, line)
    watched(hub)
    assert looks == [("ada", 7), ("bob", 8)]


def test_without_a_thread_the_look_is_at_once(looks):
    look_later(SimpleNamespace(parts={}), ADA, 3)
    assert looks == [("ada", 3)]
