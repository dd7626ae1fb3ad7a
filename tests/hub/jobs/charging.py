"""A hub whose jobs ask private questions, and a process that runs them until it is killed:

    python -m tests.hub.jobs.charging FOLDER DATABASE LEDGER

DATABASE and LEDGER are empty for files in the folder.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import SERVICE, Timing, Workers
from cloister.hub.platform.trail import SERVICE as TRAIL
from cloister.hub.service import JobType, Progress, Service
from cloister.hub.settings import Settings
from cloister.privacy import PureDP

COST = PureDP("0.001")
QUICK = Timing(look=0.05, beat=0.1, lost=1.0)


def charge(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
    """What a question does to the ledger: charge, work, settle; a repeat answers from what is stored."""
    what = str(payload["what"])
    found = hub.ledger.find(what, ["people"])
    if not found:
        reservation = hub.ledger.reserve({"people": COST}, who=progress.who, what=what)
        progress.tell("counting", None)
        time.sleep(0.005)
        hub.ledger.settle(reservation, f"answer to {what}".encode())
        found = hub.ledger.find(what, ["people"])
    time.sleep(0.005)
    return {"release": found[0].release.decode()}


CHARGING = Service(name="charging", title="Charging", jobs=(JobType(kind="charge", title="Charge", run=charge),))


def open_hub(folder: Path, database: str = "", ledger: str = "") -> Hub:
    """The hub, with no worker of its own."""
    return Hub(Settings(data=folder, database=database, ledger=ledger, workers=0), (TRAIL, SERVICE, CHARGING))


def main(folder: str, database: str, ledger: str) -> None:
    """Run jobs until the end."""
    hub = open_hub(Path(folder), database, ledger)
    Workers(hub, 2, QUICK).start()
    print("ready", flush=True)
    time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
