"""A plan as plain data, for a page, a client far away or a log of requests: all that is known before anything is spent.

Money travels as exact texts, never as floats. A margin of which nothing is known, or that has no bound, is None.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cloister.privacy import Guarantee, text_of
from cloister.session.releases.stored_kinds import BY_FIELDS

if TYPE_CHECKING:
    from cloister.session.planning.plan import Plan


def guarantee_as_data(guarantee: Guarantee) -> dict[str, str]:
    """A guarantee as texts: its kind, how it is written, and its exact numbers.

    >>> from cloister.privacy import PureDP
    >>> guarantee_as_data(PureDP("0.1"))
    {'kind': 'PureDP', 'text': 'ε = 0.1', 'epsilon': '0.1'}
    """
    form = BY_FIELDS[type(guarantee)]
    numbers = {name: text_of(amount) for name, amount in form.told(guarantee).items()}
    return {"kind": form.name, "text": str(guarantee), **numbers}


def summary_of(plan: Plan, confidence: float, group_size: float | None) -> dict[str, Any]:
    """The plan, ready for JSON.

    >>> from cloister.session.examples import small_plan
    >>> summary_of(small_plan(), 0.95, None)["costs"]
    {'people': {'kind': 'PureDP', 'text': 'ε = 0.5', 'epsilon': '0.5'}}
    """
    margins = plan.margin(confidence, group_size=group_size)
    return {
        "cost": guarantee_as_data(plan.cost),
        "costs": {population: guarantee_as_data(cost) for population, cost in plan.costs.items()},
        "digest": plan.digest,
        "repeated": plan.repeated,
        "confidence": confidence,
        "margins": {name: _number(series.values[0]) for name, series in margins.columns.items()},
        "together": [
            {"question": words, "margins": {name: _number(margin) for name, margin in known.items()}}
            for words, known in plan.wanted
        ],
        "names": dict(plan.names),
        "notes": list(plan.notes),
        "time_limit": plan.time_limit,
        "text": str(plan),
        "picture": plan.picture(),
    }


def _number(margin: Any) -> float | None:
    return float(margin) if math.isfinite(margin) else None
