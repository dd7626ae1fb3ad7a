"""Workers that each take one job, and kill their own process (kill -9) at a stage of it:

    python -m tests.hub.learning.dying

Each line of its input is a JSON list of the hub's folder, the address of database and ledger (empty for files in the folder) and
the stage; it is answered with how that worker's process ended. The modules are read once, and each worker is a fork.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import Workers
from cloister.hub.platform.jobs import workers as room
from cloister.hub.services import all_services
from cloister.hub.services.learning import fitting
from cloister.hub.settings import Settings
from cloister.hub.work import orders
from cloister.learn import GaussianNB, LogisticRegression
from cloister.ledger import Ledger

LEARNT = (GaussianNB, LogisticRegression)
"""Read before the forks."""
STAGES = ("before the charge", "after the charge", "after settling", "before it is kept", "after it was kept")


@contextmanager
def started() -> Iterator[subprocess.Popen[str]]:
    """What starts the workers that are killed."""
    words = [sys.executable, "-m", "tests.hub.learning.dying"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def kill_one(workers: subprocess.Popen[str], settings: Settings, stage: str) -> None:
    """A worker takes a job of that hub, and is killed at that stage."""
    assert workers.stdin is not None
    assert workers.stdout is not None
    workers.stdin.write(json.dumps([str(settings.data), settings.database, stage]) + "\n")
    workers.stdin.flush()
    assert workers.stdout.readline() == f"{-signal.SIGKILL}\n"


def dies(*_: Any, **__: Any) -> Any:
    """The end of this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def and_dies(work: Callable[..., Any]) -> Callable[..., Any]:
    """The work, and then the end."""

    def done(*how: Any, **more: Any) -> None:
        work(*how, **more)
        dies()

    return done


def prepare(stage: str) -> None:
    """Let the process die there."""
    where: dict[str, tuple[Any, str, Callable[..., Any]]] = {
        "before the charge": (Ledger, "reserve", dies),
        "after the charge": (Ledger, "reserve", and_dies(Ledger.reserve)),
        "after settling": (Ledger, "settle", and_dies(Ledger.settle)),
        "before it is kept": (orders, "keep", dies),
        "after it was kept": (room, "finish", dies),
    }
    setattr(*where[stage])


def quick() -> None:
    """Leave out what a card says of made-up rows: it takes longer than all the rest."""
    fitting.attacked = fitting.lost = lambda *_: None  # type: ignore[assignment]


def work(folder: str, database: str, stage: str) -> None:
    """Take the job."""
    with Hub(Settings(data=Path(folder), database=database, ledger=database, workers=0), all_services()) as hub:
        quick()
        prepare(stage)
        Workers(hub, 0).run_one()


def main() -> None:
    """A process for each line."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            work(*json.loads(line))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
