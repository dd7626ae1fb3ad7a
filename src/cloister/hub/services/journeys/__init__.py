"""Synthetic journeys: a few noisy counts of how people move are released once, and whoever sees them draws journeys at no cost.

A data set holds journeys where it has a unit that is a column of text, a moment, and places with declared bounds.

- `order.py`: what somebody wants, and what the form shows. `fitting.py`: the order in the frame (`hub/work`), its cost and its
  margins in advance.
- `models.py`: a release as page, map and files, and what its owner alone compares with the rows.

What may not live here: a decision about who may what (`access`), rows of people (the session's door), and a method
(`cloister.traces`).
"""

from functools import partial

from cloister.hub.service import Guide, Link, Service
from cloister.hub.services.journeys.fitting import FIT, FITTING, expected
from cloister.hub.services.journeys.models import JOURNEYS
from cloister.hub.services.journeys.order import JourneyOrder, choices
from cloister.hub.web.languages import N_
from cloister.hub.work.ordering import order_api, order_pages

_SUMMARIES = ("Release synthetic journeys", "Estimate the cost of synthetic journeys")
SERVICE = Service(
    name="journeys",
    title=N_("Journeys"),
    pages=partial(
        order_pages, FITTING, JourneyOrder, "/synthesise-journeys", "journeys/order.html", more=choices, errors=expected
    ),
    api=partial(order_api, FITTING, JourneyOrder, "/journeys", summaries=_SUMMARIES, errors=expected),
    jobs=(FIT,),
    releases=(JOURNEYS,),
    guides=(
        Guide(title=N_("Make synthetic journeys"), path="/synthesise-journeys", group="collect", help="how-to/publish-journeys"),
    ),
    links=(Link(N_("Journeys"), "/journeys", "release.see", "collect", 33, "chart", help="how-to/publish-journeys"),),
)
