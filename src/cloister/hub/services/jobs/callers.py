"""From where and how somebody came who put a job into the queue: the policy asks it again when the job runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloister.hub.caller import Caller

if TYPE_CHECKING:
    from cloister.hub.service import Progress


def came_of(caller: Caller) -> dict[str, Any]:
    """How the caller came, as plain data for a job's payload (under "came")."""
    return {
        "address": caller.address,
        "second_factor": caller.second_factor,
        "via": caller.via,
        "scopes": None if caller.scopes is None else sorted(caller.scopes),
        "token": caller.token,
    }


def caller_of_job(progress: Progress, payload: Mapping[str, Any]) -> Caller:
    """Who submitted a job, come as they came then; whether they still may is for who calls to ask (`present`)."""
    came = payload["came"]
    scopes = None if came["scopes"] is None else frozenset(came["scopes"])
    return Caller(id=progress.who, **{**came, "scopes": scopes})
