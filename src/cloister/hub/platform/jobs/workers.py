"""Workers: threads that claim jobs and run them, one more that says they live.

They run in the hub's own process, or in `cloister worker`. Ending, they take nothing new, wait for what runs, and give back
what takes too long; a thread cannot be stopped from outside, so its process should end then.
"""

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from cloister.errors import CloisterError
from cloister.hub.hub import Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.jobs.queue import Claim, Superseded, beat, claim, end, finish, give_back, note, waits
from cloister.hub.problems import Problem, problem_of
from cloister.hub.service import Progress

_LOG = logging.getLogger("cloister.hub.jobs")
_GRACE = 10.0
_AWAY = 503


class Stopped(CloisterError):
    """What a job raises when it was asked to stop, and did."""

    stored = "Stopped"

    def __init__(self, what: str = "The job was stopped", *, why: str = "", instead: str = "") -> None:
        super().__init__(what, why=why, instead=instead)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How often workers look and say that they live, and after which silence one is taken for dead."""

    look: float = 1.0
    beat: float = 5.0
    lost: float = 60.0


class _Running:
    """A job that runs here, and what its progress last said."""

    def __init__(self, hub: Hub, claimed: Claim) -> None:
        self.claim = claimed
        self.stopping = False
        self._hub = hub
        self._turn = threading.Lock()
        self._stage = ""
        self._share: float | None = None
        self._told: float | None = None

    def tell(self, stage: str, share: float | None = None) -> None:
        """Keep what is said; write it now where nothing was written for half a second, else with the next beat."""
        with self._turn:
            changed = stage != self._stage
            self._stage, self._share = stage, None if share is None else min(max(float(share), 0.0), 1.0)
        if changed or self._told is None or time.monotonic() - self._told > 0.5:
            self.say()

    def say(self) -> None:
        """Write it down, and hear whether to stop."""
        with self._turn:
            stage, share = self._stage, self._share
            self._told = time.monotonic()
        try:
            stopping = beat(self._hub, self.claim, stage, share)
        except (CloisterError, SQLAlchemyError):  # the database is away: the next beat may reach it
            return
        self.stopping = stopping is None or stopping

    def stopped(self) -> bool:
        """Whether the job should stop; looks into the database at most twice a second."""
        if not self.stopping and (self._told is None or time.monotonic() - self._told > 0.5):
            self.say()
        return self.stopping


class Workers:
    """Some threads that run jobs of this hub."""

    def __init__(self, hub: Hub, number: int, timing: Timing | None = None) -> None:
        self.timing = timing or Timing()
        self._hub = hub
        self._name = f"{socket.gethostname()[:40]} {os.getpid()}"
        self._ending = threading.Event()
        self._ended = threading.Event()
        self._work = threading.Condition()
        self._woken = 0
        self._running: dict[str, _Running] = {}
        self._threads = [threading.Thread(target=self._loop, name=f"job worker {each}", daemon=True) for each in range(number)]
        self._beats = threading.Thread(target=self._beat, name="job beats", daemon=True)

    def start(self) -> None:
        """Begin."""
        for thread in (*self._threads, *([self._beats] if self._threads else [])):
            thread.start()

    def notify(self) -> None:
        """There may be work."""
        with self._work:
            self._woken += 1
            self._work.notify()

    def stop(self, grace: float = _GRACE) -> None:
        """Take nothing new; wait for what runs; after the grace, give it back."""
        self._ending.set()
        with self._work:
            self._work.notify_all()
        end = time.monotonic() + grace
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        for running in list(self._running.values()):
            try:
                if give_back(self._hub, running.claim):
                    _LOG.info("the job %s was given back", running.claim.job)
            except (CloisterError, SQLAlchemyError):
                _LOG.warning("the job %s could not be given back; it counts as lost", running.claim.job)
            running.stopping = True
        self._ended.set()

    def run_one(self) -> bool:
        """Claim a job and run it, here and now; False where there was none."""
        claimed = claim(self._hub, self._name, timedelta(seconds=self.timing.lost))
        if claimed is None:
            return False
        running = self._running[claimed.job] = _Running(self._hub, claimed)
        try:
            ended = self._run(running)
            for pause in (0.1, 1.0, 5.0, 0.0):  # the work is done: a database that is away for a moment must not lose it
                try:
                    self._end(claimed, ended)
                    break
                except (CloisterError, SQLAlchemyError):
                    if not pause:
                        _LOG.warning("how the job %s ended could not be written; it counts as lost", claimed.job)
                    self._ended.wait(pause)
        finally:
            self._running.pop(claimed.job, None)
        return True

    def _end(self, claimed: Claim, ended: Mapping[str, Any]) -> None:
        """Write down how it ended; work that found the database or the ledger away waits for its second attempt instead."""
        problem = ended.get("problem")
        away = problem is not None and problem.status == _AWAY
        if not (away and give_back(self._hub, claimed)):
            finish(self._hub, claimed, **ended)

    def _run(self, running: _Running) -> dict[str, Any]:
        """The work; how it ended, as `finish` writes it."""
        claimed = running.claim
        progress = Progress(
            job=claimed.job,
            who=claimed.person,
            tell=running.tell,
            stopped=running.stopped,
            attempt=claimed.attempt,
            notes=claimed.notes,
            note=partial(note, self._hub, claimed),
            finish=lambda db, result: end(self._hub, db, claimed, result),
        )
        try:
            result: Mapping[str, Any] = self._hub.jobs[claimed.kind].run(self._hub, claimed.payload, progress)
            json.dumps(result := dict(result), allow_nan=False)
            return {"state": "done", "result": result}
        except (Stopped, Superseded):  # nothing is written of the latter: it is another worker's
            return {"state": "cancelled"}
        except CloisterError as error:
            return {"state": "failed", "problem": problem_of(error)}
        except Exception as error:  # its words may hold a row, so neither the job nor the log has them
            reference = new_id()
            _LOG.error("unforeseen %s in a job of kind %s, reference %s", type(error).__name__, claimed.kind, reference)
            why = f"the log knows it as {reference}"
            problem = Problem(status=500, code="failed", title="The job failed", why=why, instead="tell the administrator")
            return {"state": "failed", "problem": problem}

    def _loop(self) -> None:
        while not self._ending.is_set():
            with self._work:
                woken = self._woken
            try:
                with self._hub.database.reading() as db:
                    some = waits(self._hub, db, timedelta(seconds=self.timing.lost))
                if some and self.run_one():
                    continue
            except (CloisterError, SQLAlchemyError) as error:
                _LOG.warning("a worker could not reach the queue: %s", type(error).__name__)
            with self._work:
                if self._woken == woken and not self._ending.is_set():
                    self._work.wait(self.timing.look)

    def _beat(self) -> None:
        while not self._ended.wait(self.timing.beat):
            for running in list(self._running.values()):
                running.say()


def opened(hub: Hub) -> None:
    """Begin as many workers as the settings say."""
    workers = hub.parts["jobs"] = Workers(hub, hub.settings.workers)
    workers.start()


def closed(hub: Hub) -> None:
    """End them."""
    stop_workers(hub, hub.patience(_GRACE))


def stop_workers(hub: Hub, grace: float) -> None:
    """End this process's workers: what runs may end within the grace, and is given back then."""
    workers: Workers | None = hub.parts.pop("jobs", None)
    if workers is not None:
        workers.stop(grace)
