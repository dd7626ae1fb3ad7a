"""Models: trained on a data set with a guarantee, by looking first at what to expect; their cards, files and predictions.

- `order.py`, `fitting.py`: a model in the frame (`hub/work`), from what somebody wants to what leaves; `algorithms.py`: under
  which settings.
- `expected.py`: what made-up rows say of a method, before anything is spent and on a model's card.
- `models.py`: models as a kind of release (`hub/releases`); `predicting.py`: what one is used for.
- `released.py`: models of released tables, at no cost.
- `api.py`, `pages.py`: the routes.

What may not live here: a decision about who may what (`access`), rows (the session's door), and a method (`cloister.learn`).
"""

from cloister.hub.service import Link, Service, routes_in
from cloister.hub.services.learning.algorithms import check_settings
from cloister.hub.services.learning.fitting import FIT
from cloister.hub.services.learning.models import MODEL
from cloister.hub.services.learning.released import FREE

SERVICE = Service(
    name="learning",
    title="Models",
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    jobs=(FIT, FREE),
    releases=(MODEL,),
    algorithm=check_settings,
    links=(
        Link("Train", "/learn", "learn.run", "learn", 27, "learn", help="tutorials/a-model-to-publish", extra="learn"),
        Link("Models", "/models", "release.see", "learn", 28, "chart", help="tutorials/a-model-to-publish"),
    ),
)
