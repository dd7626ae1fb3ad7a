"""A hub as a process that is killed where a test says, and started again by its parent.

    python hub_process.py FOLDER PORT STEP…

The parent has imported everything and opened nothing; each child is a fork of it, serves the sites a, b, c on one port, and asks
one question under a ledger on disk. At each step in turn the child kills itself with SIGKILL, when the answers of all sites to
that step are there. The last child writes its answer into FOLDER/answer.json.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from pathlib import Path

import cloister as cl
from cloister.together.rounds import HubRound
from tests.together.test_wire import COUNT
from tests.together.wired import COLUMNS, coordinator_of

USED = "uvicorn starlette.applications sqlglot cloister.tables.engines.duckdb cloister.query.session"


def child(folder: Path, port: int, steps: list[str]) -> None:
    """One life of the hub."""
    advance = HubRound.advance

    def advanced(self: HubRound) -> bool:
        if steps and self.step == steps[0]:
            (folder / f"done {steps[0]}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(self)

    HubRound.advance = advanced  # type: ignore[method-assign]
    coordinator = coordinator_of("abc")
    with coordinator.serving(port=port):
        joint = cl.JointTable(coordinator.sites, COLUMNS, overlap="none", population="patients")
        table = cl.PrivateTable.declared(joint.source, COLUMNS, like=joint, version="1")
        with cl.Session({"people": table}, budget=cl.PureDP(10**4), ledger=str(folder / "hub.db")) as session:
            found = session.sql(COUNT, spend=50).to_pydict()
    (folder / "answer.json").write_text(json.dumps(found), encoding="utf-8")


def main() -> None:
    """Start it again whenever it was killed."""
    folder, port, *steps = sys.argv[1:]
    for each in USED.split():
        importlib.import_module(each)
    while True:
        left = [step for step in steps if not (Path(folder) / f"done {step}").exists()]
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: no child outlives the test
            child(Path(folder), int(port), left)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
