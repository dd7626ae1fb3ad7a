"""Joint learning: directions of the rows of several owners, who hand them to nobody; the result goes to all of them.

- `exact.py`: the same without noise, of rows at sites, with a key holder: by the marked door.
- `order.py`: what somebody wants. `learning.py`: the order as work of the frame, what to expect of it, and who has answered.
- `results.py`: the result as a kind of release, and as each owner takes it away. `pages.py`, `api.py`: beside the frame's routes.

What may not live here: a decision about who may what (`access`), sums of owners (`cloister.together`), and a method
(`cloister.compress`).
"""

from functools import partial

from cloister.hub.service import Guide, Link, Service, routes_in, routes_of
from cloister.hub.services.joint_learning.exact import EXACT, EXACT_JOB, RESULT, ExactJoint, before
from cloister.hub.services.joint_learning.learning import LEARN, LEARNING, expected, expected_in_words
from cloister.hub.services.joint_learning.order import ACTION, JointLearning
from cloister.hub.services.joint_learning.pages import EXACT_PATH, PATH, choices, exact_choices
from cloister.hub.services.joint_learning.results import JOINT
from cloister.hub.web.languages import N_
from cloister.hub.work.ordering import order_api, order_pages

_FORM, _EXACT_FORM = "joint_learning/order.html", "joint_learning/exact.html"
_SUMMARIES = ("Train directions of several owners", "Estimate what joint learning costs and tells")
_EXACT_SUMMARIES = ("Train exact directions of rows at sites",)
SERVICE = Service(
    name="joint learning",
    title=N_("Joint learning"),
    pages=routes_of(
        routes_in(__name__, "pages"),
        partial(order_pages, LEARNING, JointLearning, PATH, _FORM, more=choices, errors=expected),
        partial(order_pages, EXACT, ExactJoint, EXACT_PATH, _EXACT_FORM, more=exact_choices, before=before),
    ),
    api=routes_of(
        routes_in(__name__, "api"),
        partial(order_api, LEARNING, JointLearning, PATH, summaries=_SUMMARIES, errors=expected_in_words),
        partial(order_api, EXACT, ExactJoint, EXACT_PATH, summaries=_EXACT_SUMMARIES),
    ),
    jobs=(LEARN, EXACT_JOB),
    releases=(JOINT, RESULT),
    links=(Link(N_("Joint learning"), "/joint-learning", ACTION, "data", 33, "people", help="how-to/learn-jointly"),),
    guides=(
        Guide(title=N_("Joint results"), path="/joint-results", group="data", help="how-to/learn-jointly"),
        Guide(title=N_("Exact joint learning"), path="/joint-learning/exact", group="data", help="how-to/learn-jointly"),
        Guide(title=N_("Exact joint results"), path="/exact-joint-results", group="data", help="how-to/learn-jointly"),
    ),
)
