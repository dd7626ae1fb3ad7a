"""Guests in the hub: an algorithm provider's code runs near a data set whose rows its author may not see.

The provider registers the code as an algorithm of this service (`settings.py`), by a form or a package (`packages.py`), and
grants it; the owner of the data grants `algorithm.run` for it; whoever has both orders a run as a job (`running.py`), and what
leaves is a release. Native code and declared mechanisms run once two people have approved them, and what was stopped does not
(`admission.py`, `reviewing.py`, `pages.py`, with what author and owner see of one run).

What may not live here: a decision about who may what (`access`), rows (the session's door), and what keeps code from them
(`cloister.guests`).
"""

from fastapi import APIRouter

from cloister.hub.decisions.policy.actions import OWNER, STEWARD, Action, register_actions
from cloister.hub.service import Guide, Link, Service, SqlFunction
from cloister.hub.services.guests.admission import ADMIT
from cloister.hub.services.guests.reviewing import REVIEW
from cloister.hub.services.guests.running import GUEST_RESULT, RUN, RUNNING, Order, expected
from cloister.hub.services.guests.settings import check_settings
from cloister.hub.web.languages import N_

register_actions(
    [
        Action(
            name=ADMIT,
            title=N_("Approve and stop algorithms near a data set"),
            roles=frozenset({OWNER, STEWARD}),
            by="owner",
            overseers=frozenset({STEWARD}),
            by_token=False,
        )
    ]
)


def _pages() -> APIRouter:
    from cloister.hub.services.guests import packages, pages
    from cloister.hub.web.routing import Pages
    from cloister.hub.work.ordering import order_pages

    heading = N_("Run an algorithm")
    routes = Pages(order_pages(RUNNING, Order, "/run-algorithm", more=pages.choices, errors=expected, heading=heading))
    pages.add(routes)
    packages.pages(routes)
    return routes.router


def _api() -> APIRouter:
    from cloister.hub.services.guests import packages
    from cloister.hub.web.routing import Routes
    from cloister.hub.work.ordering import order_api

    summaries = ("Release the result of an algorithm", "Estimate the cost of a run")
    return packages.api(Routes(order_api(RUNNING, Order, "/algorithm-runs", summaries=summaries, errors=expected)))


def _run() -> SqlFunction:
    from cloister.hub.services.guests.sql import RunFunction

    return RunFunction()


SERVICE = Service(
    name="guests",
    title=N_("Algorithms near rows"),
    pages=_pages,
    api=_api,
    jobs=(RUN, REVIEW),
    releases=(GUEST_RESULT,),
    functions={"run": _run},
    algorithm=check_settings,
    links=(
        Link(
            N_("Run an algorithm"),
            "/run-algorithm",
            "algorithm.run",
            "learn",
            31,
            "run",
            help="how-to/run-a-guest",
            extra="guests",
        ),
        Link(N_("Results of algorithms"), "/algorithm-results", "release.see", "learn", 32, "chart", help="how-to/run-a-guest"),
    ),
    guides=(
        Guide(title=N_("Reviews of algorithms"), path="/algorithm-reviews", group="govern", help="how-to/run-a-guest"),
        Guide(title=N_("Packages of algorithms"), path="/algorithm-packages", group="govern", help="how-to/write-a-guest"),
        Guide(title=N_("Runs"), path="/algorithm-runs/*", group="learn", help="how-to/run-a-guest"),
    ),
)
