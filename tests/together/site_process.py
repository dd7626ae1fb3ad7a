"""A site as a process that is killed where a test says, and started again by its parent: `cloister site` but for that.

    python site_process.py FOLDER HUB POINT…

The parent has imported everything and opened nothing; each child is a fork of it. At each point in turn ("begin before", "begin
after", …, "reading") the child kills itself with SIGKILL, once: before it answers that message; after its answer is on disk, and
before it is sent; or while it reads its rows. FOLDER/process.log has a line for each answer that was made, and for each reading.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import signal
import sys
from pathlib import Path

from cloister.cli import cli
from cloister.together.agent import SiteAgent
from cloister.together.messages import opened
from cloister.together.rounds import STEPS
from cloister.together.site import SitePart

USED = (
    "cloister.cli.site cloister.tables.engines.duckdb cloister.tables.sourcing.preparation cloister.together.owner httpx"
    " cryptography.hazmat.primitives.asymmetric.ed25519 cryptography.hazmat.primitives.ciphers.aead"
)
"""What a site imports when it needs it."""


def child(folder: Path, hub: str, points: list[str]) -> None:
    """One life of the site."""
    answer, numbers = SiteAgent.answer, SitePart._numbers

    def log(*words: str) -> None:
        with (folder / "process.log").open("a", encoding="utf-8") as file:
            file.write(" ".join(words) + "\n")

    def dies(point: str) -> None:
        done = folder / f"done {len(points)}"
        left = points[len(list(folder.glob("done *"))) :]
        if left and left[0] == point:
            done.with_name(f"done {len(left)}").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def answered(self: SiteAgent, data: bytes) -> bytes:
        head = opened(data)
        if head.kind == "begin":
            log("dumpable", str(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)))
        if head.kind in STEPS:
            dies(f"{head.kind} before")
        found = answer(self, data)
        if head.kind in STEPS:
            log("answer", head.round, opened(found).kind, hashlib.sha256(found).hexdigest())
            dies(f"{head.kind} after")
        return found

    def numbered(self: SitePart, round_: object, *other: object) -> object:
        log("reading", round_.id)  # type: ignore[attr-defined]
        found = numbers(self, round_, *other)  # type: ignore[arg-type]
        dies("reading")
        return found

    SiteAgent.answer, SitePart._numbers = answered, numbered  # type: ignore[method-assign, assignment]
    cli(["site", "--data", str(folder), "--hub", hub], standalone_mode=False)


def main() -> None:
    """Start it again whenever it was killed; end with the parent's own end."""
    folder, hub, *points = sys.argv[1:]
    for each in USED.split():
        importlib.import_module(each)
    while True:
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: no child outlives the test
            child(Path(folder), hub, points)
            os._exit(1)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(1)


if __name__ == "__main__":
    main()
