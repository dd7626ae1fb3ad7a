"""Data sets of several owners, asked as one: made of data sets that are declared alike, each with its owner's policy and budget.

- `making.py`: such a data set, and what each owner gave to it. `comparing.py`: one question alone, together, and added up.
- `pages.py`, `api.py`: the routes.

What may not live here: a sum or a charge (`cloister.together.pooled`, the ledger), where a session finds the rows (`catalogue`),
and whether somebody may ask (`hub/work/authorise.py` asks the policy of every part).
"""

from cloister.hub.service import Link, Service, routes_in
from cloister.hub.web.languages import N_

SERVICE = Service(
    name="pooling",
    title=N_("Data sets of several owners"),
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    links=(Link(N_("Several owners"), "/pools", "dataset.see", "data", 32, "people", help="how-to/ask-several-owners"),),
)
