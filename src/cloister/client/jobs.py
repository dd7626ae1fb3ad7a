"""A job of a hub until it ends: its result, or the refusal that it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cloister.client.refusals import refusal_of
from cloister.client.transport import Transport
from cloister.errors import InvalidParameter

__all__ = ["awaited"]

_WAITS = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between two looks at a job; then always the last."""


def awaited(transport: Transport, job: str, progress: Callable[[str], None], *, what: str, instead: str) -> Mapping[str, Any]:
    """The result once it has ended; `progress` hears each stage. `what` and `instead` are said where it was cancelled."""
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
