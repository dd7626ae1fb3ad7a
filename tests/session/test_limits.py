"""One thread keeps the limits of all questions: who is over theirs is stopped, who has ended is not."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cloister.errors import EngineError
from cloister.session.questions import limits
from cloister.session.questions.limits import Clock, stopped_after


class Engine:
    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.thread: int | None = None

    def cancel(self, thread: int | None = None) -> None:
        self.thread = thread
        self.stopped.set()


def test_a_short_limit_rings_though_longer_ones_wait():
    engine, others = Engine(), Engine()
    with stopped_after(1000, [others]), stopped_after(0.01, [engine]) as clock:
        assert engine.stopped.wait(60)
        with pytest.raises(EngineError):
            clock.check()
    assert engine.thread == threading.get_ident()
    assert not others.stopped.is_set()


def test_what_has_ended_is_not_stopped():
    engine = Engine()
    clock = Clock(1000, [engine])
    clock.start()
    clock.end()
    clock.ring()
    clock.check()
    assert not engine.stopped.is_set()


def test_no_thread_for_each_question():
    with stopped_after(1000, []):
        before = threading.active_count()
        for _ in range(300):
            with stopped_after(1000, []):
                assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("busy", "firm", "limit"), [(1.2, False, 0.02), (3.0, False, 0.06), (3.0, True, 0.02), (99.0, False, 0.4)]
)
def test_a_busy_machine_gives_more_time_and_a_chosen_limit_stands(
    monkeypatch: pytest.MonkeyPatch, busy: float, firm: bool, limit: float
) -> None:
    monkeypatch.setattr(limits, "busyness", lambda: busy)
    engine = Engine()
    with stopped_after(0.02, [engine], firm=firm) as clock:
        assert engine.stopped.wait(60)
        with pytest.raises(EngineError, match="first repetition is not charged"):
            clock.check()
    assert clock.seconds == pytest.approx(limit)


@pytest.mark.parametrize(
    ("how", "limit", "told"),
    [
        ({"firm": False}, 0.02, "not charged and may take ten times as long"),
        ({"firm": False, "attempt": 2}, 0.2, "time_limit=900.*it is charged again"),
        ({"firm": True}, 0.02, "time_limit=900.*the first repetition is not charged"),
        ({"firm": True, "attempt": 2}, 0.02, "time_limit=900.*it is charged again"),
    ],
)
def test_a_stopped_question_says_what_it_may_need_and_goes_on_for_longer(
    monkeypatch: pytest.MonkeyPatch, how: Any, limit: float, told: str
) -> None:
    """By its declared size and the machine's speed: 60 seconds alone, on a machine that is 1.5 times slower."""
    monkeypatch.setattr(limits, "busyness", lambda: 1.5)
    engine = Engine()
    with stopped_after(0.02, [engine], needs=60, **how) as clock:
        assert clock.seconds == pytest.approx(limit)
        assert engine.stopped.wait(60)
        with pytest.raises(EngineError, match=rf"(?s)stays charged; by its declared size= it may need 90 .*{told}"):
            clock.check()
