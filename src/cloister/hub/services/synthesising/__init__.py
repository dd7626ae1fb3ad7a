"""Synthetic tables: noisy counts of a data set are measured once, and anybody who sees the release draws rows for nothing more.

- `order.py`: what somebody wants, and what its form shows. `making.py`: an order in the frame (`hub/work`), and what to expect
  of it in advance.
- `tables.py`: synthetic tables as a kind of release (`hub/releases`): page, files, rows.
- The routes are those of every order (`hub/work/ordering.py`).

What may not live here: a decision about who may what (`access`), rows of people (the session's door), and a method
(`cloister.synth`).
"""

from functools import partial

from cloister.hub.releases.comparing import COMPARE
from cloister.hub.service import Link, Service
from cloister.hub.services.synthesising.making import MAKE, SYNTHESISING, doubt, expected
from cloister.hub.services.synthesising.order import ACTION, Synthesis, choices
from cloister.hub.services.synthesising.tables import SYNTHETIC
from cloister.hub.work.ordering import order_api, order_pages

_FORM = "synthesising/order.html"
_SUMMARIES = ("Release a synthetic table", "Estimate the cost of a synthetic table")
SERVICE = Service(
    name="synthesising",
    title="Synthetic tables",
    pages=partial(order_pages, SYNTHESISING, Synthesis, "/synthesise", _FORM, more=choices, errors=expected, doubt=doubt),
    api=partial(order_api, SYNTHESISING, Synthesis, "/synthetic-tables", summaries=_SUMMARIES, errors=expected),
    jobs=(MAKE, COMPARE),
    releases=(SYNTHETIC,),
    links=(
        Link("Synthesise", "/synthesise", ACTION, "publish", 31, "run", help="tutorials/publish-a-synthetic-table"),
        Link("Synthetic tables", "/synthetic", "release.see", "publish", 32, "chart", help="tutorials/publish-a-synthetic-table"),
    ),
)
