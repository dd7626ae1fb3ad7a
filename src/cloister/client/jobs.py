"""An order that a hub carries out as a job: sent once, followed until its result or its refusal, and stopped with us."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from cloister.client.refusals import HubUnreachable, refusal_of
from cloister.client.transport import Transport, new_key
from cloister.errors import CloisterError, InvalidParameter

_WAITS = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between two looks at a job; then always the last."""


def ordered(
    transport: Transport, path: str, order: Mapping[str, Any], progress: Callable[[str], None], *, what: str, instead: str
) -> Mapping[str, Any]:
    """The result of an order; `progress` hears each stage. `what` and `instead` are said where its job was cancelled. Who is
    interrupted cancels it there: what it has charged or marked stays so."""
    job = transport.post(path, order, key=new_key())["job"]
    try:
        return _awaited(transport, job, progress, what=what, instead=instead)
    except HubUnreachable as error:  # an order that is sent again is another job, and another charge
        again = f"job {job} goes on at the hub, and its result is kept there: see /jobs/{job}"
        raise HubUnreachable(error.what, why=error.why, instead=again) from None
    except KeyboardInterrupt:
        with suppress(CloisterError):
            transport.post(f"/jobs/{job}/cancel", {})
        raise


def _awaited(transport: Transport, job: str, progress: Callable[[str], None], *, what: str, instead: str) -> Mapping[str, Any]:
    waits, told = iter(_WAITS), ""
    while True:
        found = transport.get(f"/jobs/{job}")
        state, stage = found["state"], found.get("stage") or found["state"]
        if stage != told and state in ("waiting", "running"):
            told = stage
            progress(stage)
        if state == "done":
            result: Mapping[str, Any] = found["result"]
            return result
        if state == "failed":
            problem = found.get("problem") or {}
            raise refusal_of(int(problem.get("status", 500)), problem)
        if state == "cancelled":
            raise InvalidParameter(what, why="its job was cancelled at the hub", instead=instead)
        transport.pause(next(waits, _WAITS[-1]))
