"""Data sets whose rows are at several sites: owners agree on a roster, and analysts ask such a data set like any other.

- `joining.py`: from the keys of sites to a roster, and from a signed roster to a data set.
- `pages.py`, `api.py`: the routes, and the one that sites call.

What may not live here: a sum, a key or a message of sites (`cloister.together`), and where a session finds such rows
(`catalogue`).
"""

from cloister.hub.decisions.policy import Action, register_actions
from cloister.hub.service import Link, Service, routes_in
from cloister.hub.web.languages import N_

register_actions([Action(name="site.call", title=N_("Call the hub as a site"), roles=frozenset({"nobody"}))])

SERVICE = Service(
    name="sites",
    title=N_("Rows at several sites"),
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    links=(Link(N_("Sites"), "/sites", "dataset.register", "data", 31, "people", help="how-to/run-a-site"),),
)
