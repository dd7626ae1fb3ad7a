"""Synthetic journeys: a few noisy counts of how people move are released once, and whoever sees them draws journeys at no cost.

A data set holds journeys where it has a unit that is a column of text, a moment, and places with declared bounds.

- `order.py`: what somebody wants, and what the form shows. `fitting.py`: the order in the frame (`hub/work`), its cost and its
  margins in advance.
- `models.py`: a release as page, map and files, and what its owner alone compares with the rows.

What may not live here: a decision about who may what (`access`), rows of people (the session's door), and a method
(`cloister.traces`).
"""

from fastapi import APIRouter

from cloister.hub.service import Guide, Link, Service
from cloister.hub.services.journeys.fitting import FIT, FITTING, expected
from cloister.hub.services.journeys.models import JOURNEYS
from cloister.hub.services.journeys.order import JourneyOrder
from cloister.hub.web.languages import N_


def _pages() -> APIRouter:
    from cloister.hub.services.journeys.order import choices
    from cloister.hub.work.ordering import order_pages

    return order_pages(FITTING, JourneyOrder, "/synthesise-journeys", "journeys/order.html", more=choices, errors=expected)


def _api() -> APIRouter:
    from cloister.hub.work.ordering import order_api

    summaries = ("Release synthetic journeys", "Estimate the cost of synthetic journeys")
    return order_api(FITTING, JourneyOrder, "/journeys", summaries=summaries, errors=expected)


SERVICE = Service(
    name="journeys",
    title=N_("Journeys"),
    pages=_pages,
    api=_api,
    jobs=(FIT,),
    releases=(JOURNEYS,),
    guides=(
        Guide(title=N_("Make synthetic journeys"), path="/synthesise-journeys", group="collect", help="how-to/publish-journeys"),
    ),
    links=(Link(N_("Journeys"), "/journeys", "release.see", "collect", 33, "chart", help="how-to/publish-journeys"),),
)
