"""Every refusal of work has its audit entry and its counter: what, why, and what was charged all the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloister.errors import AccessDenied, BudgetExceeded, CloisterError, stored_name
from cloister.hub.platform.access import under
from cloister.hub.platform.trail import write_alone
from cloister.hub.problems import Missing

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub


def note_refusal(
    hub: Hub,
    caller: Caller,
    action: str,
    error: Exception,
    *,
    kind: str,
    purpose: str,
    algorithm: str = "",
    cost: Mapping[str, str] | None = None,
    **details: Any,
) -> None:
    """Write down that somebody was refused work, or that it failed. `kind`: of what it was about; `algorithm`: as it was named,
    or its id."""
    outcome = "denied" if isinstance(error, AccessDenied) else "failed"
    hub.meter.question("denied" if outcome == "denied" else "over-budget" if isinstance(error, BudgetExceeded) else "refused")
    if algorithm:
        with hub.database.reading() as db:
            details |= under(db, algorithm, known=not isinstance(error, Missing))
    rule = error.rule if isinstance(error, CloisterError) else ""
    said = {"error": stored_name(error), "rule": rule, **details}
    write_alone(hub, caller, action, kind=kind, purpose=purpose, outcome=outcome, cost=dict(cost or {}), **said)
