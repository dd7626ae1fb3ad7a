"""Joint learning: directions of the rows of several owners, who hand them to nobody; the result goes to all of them.

- `exact.py`: the same without noise, of rows at sites, with a key holder: by the marked door.
- `order.py`: what somebody wants. `learning.py`: the order as work of the frame, what to expect of it, and who has answered.
- `results.py`: the result as a kind of release, and as each owner takes it away. `pages.py`, `api.py`: beside the frame's routes.

What may not live here: a decision about who may what (`access`), sums of owners (`cloister.together`), and a method
(`cloister.compress`).
"""

from fastapi import APIRouter

from cloister.hub.service import Guide, Link, Service, routes_in
from cloister.hub.services.joint_learning.exact import EXACT, EXACT_JOB, RESULT, ExactJoint, before
from cloister.hub.services.joint_learning.learning import LEARN, LEARNING, expected, expected_in_words
from cloister.hub.services.joint_learning.order import ACTION, JointLearning
from cloister.hub.services.joint_learning.results import JOINT
from cloister.hub.web.languages import N_


def _pages() -> APIRouter:
    from cloister.hub.services.joint_learning.pages import EXACT_PATH, PATH, choices, exact_choices
    from cloister.hub.work.ordering import order_pages

    router = routes_in(__name__, "pages")()
    template = "joint_learning/order.html"
    router.include_router(order_pages(LEARNING, JointLearning, PATH, template, more=choices, errors=expected))
    template = "joint_learning/exact.html"
    router.include_router(order_pages(EXACT, ExactJoint, EXACT_PATH, template, more=exact_choices, before=before))
    return router


def _api() -> APIRouter:
    from cloister.hub.work.ordering import order_api

    router = routes_in(__name__, "api")()
    summaries = ("Train directions of several owners", "Estimate what joint learning costs and tells")
    router.include_router(order_api(LEARNING, JointLearning, "/joint-learning", summaries=summaries, errors=expected_in_words))
    exact = ("Train exact directions of rows at sites",)
    router.include_router(order_api(EXACT, ExactJoint, "/joint-learning/exact", summaries=exact))
    return router


SERVICE = Service(
    name="joint learning",
    title=N_("Joint learning"),
    pages=_pages,
    api=_api,
    jobs=(LEARN, EXACT_JOB),
    releases=(JOINT, RESULT),
    links=(Link(N_("Joint learning"), "/joint-learning", ACTION, "data", 33, "people", help="how-to/learn-jointly"),),
    guides=(
        Guide(title=N_("Joint results"), path="/joint-results", group="data", help="how-to/learn-jointly"),
        Guide(title=N_("Exact joint learning"), path="/joint-learning/exact", group="data", help="how-to/learn-jointly"),
        Guide(title=N_("Exact joint results"), path="/exact-joint-results", group="data", help="how-to/learn-jointly"),
    ),
)
