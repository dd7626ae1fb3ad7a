"""Projected data: few numbers of each row, in which one label shows and a secret does not.

- `orders.py`: what somebody wants. `jobs.py`: projections of one's own data set with their attackers, by the marked door; and
  directions that are differentially private, for one charge.
- `kinds.py`: both as kinds of releases: page, picture, file.

What may not live here: a decision about who may what (`access`), rows of people (the session's door), and a method
(`cloister.compress`).
"""

from functools import partial

from cloister.hub.service import Link, Service, routes_of
from cloister.hub.services.projecting.jobs import ATTACK, ATTACKING, FIT, FITTING
from cloister.hub.services.projecting.kinds import DIRECTIONS, PROJECTED
from cloister.hub.services.projecting.orders import ACTION, Attack, Fit, choices
from cloister.hub.web.languages import N_
from cloister.hub.work.ordering import order_api, order_pages

_SUMMARIES = ("Release a private projection", "Estimate the cost of a projection")
SERVICE = Service(
    name="projecting",
    title=N_("Projected data"),
    pages=routes_of(
        partial(order_pages, ATTACKING, Attack, "/project-data", more=partial(choices, marked=True), heading=N_("Project data")),
        partial(order_pages, FITTING, Fit, "/fit-projection", more=choices, heading=N_("Fit a projection")),
    ),
    api=routes_of(
        partial(order_api, ATTACKING, Attack, "/projected-data", summaries=("Release projections with their attackers",)),
        partial(order_api, FITTING, Fit, "/projections", summaries=_SUMMARIES),
    ),
    jobs=(ATTACK, FIT),
    releases=(PROJECTED, DIRECTIONS),
    links=(
        Link(
            N_("Project data"),
            "/project-data",
            "dataset.manage",
            "publish",
            33,
            "run",
            help="learn/compressive-privacy",
            extra="learn",
        ),
        Link(N_("Projected data"), "/projected", "release.see", "publish", 34, "chart", help="learn/compressive-privacy"),
        Link(
            N_("Fit a projection"), "/fit-projection", ACTION, "learn", 35, "run", help="reference/compress/index", extra="learn"
        ),
        Link(N_("Projections"), "/projections", "release.see", "learn", 36, "chart", help="reference/compress/index"),
    ),
)
