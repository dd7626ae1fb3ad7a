"""A worker that takes one job, and kills its own process (kill -9) at a stage of it:

    python -m tests.hub.learning.dying FOLDER DATABASE STAGE

DATABASE is the address of database and ledger, empty for files in the folder.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import Workers
from cloister.hub.platform.jobs import workers as room
from cloister.hub.services import all_services
from cloister.hub.services.learning import fitting
from cloister.hub.settings import Settings
from cloister.hub.work import orders
from cloister.ledger import Ledger
from tests.hub import forked

STAGES = ("before the charge", "after the charge", "after settling", "before it is kept", "after it was kept")


def kill_one(settings: Settings, stage: str) -> None:
    """A worker takes a job of that hub, and is killed at that stage."""
    dying = forked.python("-m", "tests.hub.learning.dying", str(settings.data), settings.database, stage)
    assert dying.wait(600) == -signal.SIGKILL


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


if __name__ == "__main__":
    work(*sys.argv[1:])
