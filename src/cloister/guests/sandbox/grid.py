"""When a guest's runs begin and end, and when an answer comes: moments that follow from declarations, and that no row can move.

A guest that could choose how long its run takes would say something about its rows by the clock: to whoever waits for the answer,
and, where it can read a clock, to the next run. So runs begin on a grid of steps, each is ended before its step is over, whatever
it does, and what is left of a step is waited for. An answer comes when the time of all steps is over, counted from the opening of
the sandbox, before any row is read: reading them is within it.
"""

import math
import time

SLACK = 0.15
"""Of each step, for what is not the guest's: to fork, to end, to take away its memory, to read the next rows."""


class Grid:
    """The steps of one sandbox, each as long as the seconds of a run and `SLACK`. Without `paced` nothing is waited for: for runs
    that have no rows."""

    def __init__(self, seconds: float, *, paced: bool) -> None:
        self._width, self._paced, self._step, self.began = seconds + SLACK, paced, -1, 0.0

    def begin(self) -> None:
        """Count from now on, where it is not counted yet."""
        self.began = self.began or time.monotonic()

    def await_step(self) -> float:
        """Wait for the next step: when it began. A machine that was too slow for one skips whole steps."""
        self.begin()
        now = time.monotonic()
        if not self._paced:
            return now
        self._step = max(self._step + 1, math.ceil((now - self.began) / self._width))
        begins = self.began + self._step * self._width
        time.sleep(max(begins - now, 0))
        return begins

    def await_end(self, slot: float) -> None:
        """Wait until the slot is over, as `padding` has it."""
        time.sleep(padding(time.monotonic() - self.began, slot))


def slot_of(runs: int, seconds: float) -> float:
    """How long after the beginning an answer comes: the steps of all runs, and one in twenty to spare, for reading the rows and
    for those that a busy machine is late for.

    >>> round(slot_of(100, 0.05), 6), round(slot_of(10, 0.25), 6)
    (21.0, 5.6)
    """
    return (runs + max(runs // 20, 4)) * (seconds + SLACK)


def padding(used: float, slot: float) -> float:
    """How long to wait: until the slot ends; where the machine was so slow that it is over, until twice as long, four times,
    eight times. By steps of equal length it would tell how many rows were read.

    >>> padding(3.0, 10.0), padding(25.0, 10.0)
    (7.0, 15.0)
    """
    whole = slot
    while whole < used:
        whole *= 2
    return whole - used
