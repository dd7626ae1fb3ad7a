"""One thread keeps the limits of all questions: who is over theirs is stopped, who has ended is not."""

from __future__ import annotations

import threading

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
