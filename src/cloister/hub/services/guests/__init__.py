"""Guests in the hub: an algorithm provider's code runs near a data set whose rows its author may not see.

The provider registers the code as an algorithm of this service (`settings.py`), and grants it; the owner of the data grants
`algorithm.run` for it; whoever has both orders a run as a job (`running.py`), and what leaves is a release.

What may not live here: a decision about who may what (`access`), rows (the session's door), and what keeps code from them
(`cloister.guests`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.hub.service import Link, Service
from cloister.hub.services.guests.running import GUEST_RESULT, RUN, RUNNING, Order, expected
from cloister.hub.services.guests.settings import check_settings
from cloister.hub.web.languages import N_

if TYPE_CHECKING:
    from fastapi import APIRouter

__all__ = ["SERVICE"]


def _pages() -> APIRouter:
    from cloister.hub.work.ordering import order_pages

    return order_pages(RUNNING, Order, "/run-algorithm", errors=expected)


def _api() -> APIRouter:
    from cloister.hub.work.ordering import order_api

    return order_api(
        RUNNING,
        Order,
        "/algorithm-runs",
        summaries=("Release the result of an algorithm", "Estimate the cost of a run"),
        errors=expected,
    )


SERVICE = Service(
    name="guests",
    title=N_("Algorithms near rows"),
    pages=_pages,
    api=_api,
    jobs=(RUN,),
    releases=(GUEST_RESULT,),
    algorithm=check_settings,
    links=(
        Link(
            title=N_("Run an algorithm"),
            path="/run-algorithm",
            group="learn",
            help="how-to/run-a-guest",
            action="algorithm.run",
            order=31,
            icon="run",
        ),
        Link(
            title=N_("Results of algorithms"),
            path="/algorithm-results",
            group="learn",
            help="how-to/run-a-guest",
            action="release.see",
            order=32,
            icon="chart",
        ),
    ),
)
