"""A key holder as a process that is killed where a test says, and started again by its parent: `cloister csp` but for that.

    python csp_process.py FOLDER HUB POINT…

The parent has imported everything and opened nothing; each child is a fork of it. At each point in turn the child kills itself
with SIGKILL, once: "reserved", after its ledger has the charge and before anything is drawn; "kept", after the answer is on disk
and before the charge is settled; "sent", after that and before it is sent. FOLDER/process.log has a line for each draw and
answer.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from cloister.cli import cli
from cloister.ledger import Ledger
from cloister.together.sealed.holder import KeyHolder

USED = "cloister.cli.csp cloister.tables.engines.duckdb cloister.tables.sourcing.preparation cloister.together.sealed.wire httpx"
"""What a key holder imports when it needs it."""


def child(folder: Path, hub: str, points: list[str]) -> None:
    """One life of the key holder."""
    drawn, settle, answer = KeyHolder._drawn, Ledger.settle, KeyHolder.answer

    def log(*words: str) -> None:
        with (folder / "process.log").open("a", encoding="utf-8") as file:
            file.write(" ".join(words) + "\n")

    def dies(point: str) -> None:
        done = len(list(folder.glob("done *")))
        if points[done:] and points[done] == point:
            (folder / f"done {done}").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def drew(self: KeyHolder, *other: Any) -> bytes:
        dies("reserved")
        found = drawn(self, *other)
        log("drawn", hashlib.sha256(found).hexdigest())
        return found

    def settled(self: Ledger, *other: Any, **how: Any) -> None:
        dies("kept")
        settle(self, *other, **how)

    def answered(self: KeyHolder, text: bytes) -> bytes:
        found = answer(self, text)
        log("answer", hashlib.sha256(found).hexdigest())
        dies("sent")
        return found

    KeyHolder._drawn, Ledger.settle, KeyHolder.answer = drew, settled, answered  # type: ignore[method-assign, assignment]
    cli(["csp", "--data", str(folder), "--hub", hub], standalone_mode=False)


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
