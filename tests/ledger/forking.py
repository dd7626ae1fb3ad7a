"""A child that was forked charges a ledger that its parent opened: a program of its own, since a child of a process with threads
may hang.

python -m tests.ledger.forking WHERE HEAD|memory
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cloister.errors import LedgerError
from cloister.ledger import Ledger
from cloister.privacy import PureDP
from tests.ledger.conftest import KEY

COST = PureDP("0.001")


def settled_in_child(ledger: Ledger) -> bool:
    """Whether a child could charge it."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            ledger.settle(ledger.reserve({"people": COST}, who="child", what="plan"), b"answer")
            status = 0
        except LedgerError:
            status = 1
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1)
    return not status


def main(where: str, head: str = "") -> None:
    """Who was charged, in the order of the ledger, and whether it verifies."""
    place = where if "://" in where else Path(where)
    with Ledger() if where == "memory" else Ledger(place, key=KEY, head=Path(head)) as ledger:
        ledger.open("people", PureDP(1), who="owner")
        print("child was", "charged" if settled_in_child(ledger) else "refused")
        ledger.reserve({"people": COST}, who="parent", what="plan")
        print(*[row.who for row in ledger.charges("people")], ledger.verify())


if __name__ == "__main__":
    main(*sys.argv[1:])
