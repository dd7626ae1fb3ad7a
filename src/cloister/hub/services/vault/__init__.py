"""Data sets of masked cells: owners upload what this hub can't read, and analysts ask such a data set like any other.

- `keeping.py`: from an upload to a data set, its next version, and its cells under another key holder's pads.
- `pages.py`, `api.py`: the routes.

What may not live here: a key of a cell or of a document, or the value of one. Documents are read where their owner's keys are
(`cloister vault proxy`); where a session finds masked cells says `catalogue`.
"""

from cloister.hub.service import Link, Service, routes_in
from cloister.hub.web.languages import N_

SERVICE = Service(
    name="vault",
    title=N_("Masked data sets"),
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    links=(Link(N_("Masked data sets"), "/masked", "dataset.register", "data", 32, "lock", help="how-to/keep-a-sealed-store"),),
)
