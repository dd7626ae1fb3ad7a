"""A hub in which everything that was begun never ends: `python -m tests.hub.faults.busy FOLDER PORT PG_PORT`; without ports a
worker.

Requests, questions, statements of PostgreSQL clients, jobs, the clock of streams and the watch over profiles each reach a place
that waits for ever, as one within an engine or on a silent machine does, and say so in the file `busy` of the folder.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from cloister.cli import cli
from cloister.hub import middleware
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue import reading
from cloister.hub.platform.jobs import submit
from cloister.hub.records.accounts import Person
from cloister.hub.services.asking import QUESTION, pg
from cloister.hub.services.asking.watching import look_later
from cloister.hub.services.streams import releasing

PARTS = ("request", "question", "statement", "job", "clock", "watch")


def forever(part: str, folder: Path) -> Any:
    """What stands in the place of a part's work."""

    def wait(*_: Any, **__: Any) -> NoReturn:
        with (folder / "busy").open("a", encoding="utf-8") as file:
            file.write(f"{part}\n")
        threading.Event().wait()
        raise AssertionError("it never ends")

    return wait


def main(folder: Path, *ports: str) -> None:
    """Serve, with every part held up."""
    middleware.Middleware._answered = forever("question", folder)  # type: ignore[method-assign]
    pg.HubSession.ask = forever("statement", folder)  # type: ignore[method-assign]
    pg.HubSession.shape = forever("statement", folder)  # type: ignore[method-assign]
    releasing.release_due = forever("clock", folder)
    import_module("cloister.hub.services.asking.watching").watch = forever("watch", folder)  # type: ignore[attr-defined]
    object.__setattr__(QUESTION, "run", forever("job", folder))
    reading.search = forever("request", folder)
    opened = Hub.__init__

    def open_busy(self: Hub, *how: Any, **more: Any) -> None:
        opened(self, *how, **more)
        with self.database.begin() as db:
            caller = Caller(id=db.query(Person.id).limit(1).scalar() or "", name="somebody", via="system")
            submit(self, db, caller, QUESTION.kind, {})
        look_later(self, caller, 0)

    Hub.__init__ = open_busy  # type: ignore[method-assign]
    if ports:
        os.environ.update(CLOISTER_HUB_WORKERS="1", CLOISTER_HUB_PG_PORT=ports[1])
        cli(["hub", "--data", str(folder), "--port", ports[0]], standalone_mode=False)
    else:
        cli(["worker", "--data", str(folder), "--grace", "1"], standalone_mode=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
