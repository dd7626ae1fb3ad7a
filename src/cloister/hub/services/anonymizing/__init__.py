"""Anonymised tables: tried for the owner's eyes, released by the marked door, attacked first, and a data set of their own then.

- `order.py`, `authorised.py`: what an owner wants, whether it may be, and the jobs that do it.
- `trying.py`: risk against loss, to choose from; `trees.py`: the hierarchies; `picture.py`: the frontier.
- `releasing.py`: the table leaves, with its report and its certificate. `tables.py`: such tables as a kind of release
  (`hub/releases`). `reading.py`: trials, and the stored rows of a table.
- `api.py`, `pages.py` (`words.py`): the routes.

What may not live here: a decision about who may what (`access`), a search or a model (`cloister.anonymize`), how rows are stored.
"""

from cloister.hub.service import Link, Service, routes_in
from cloister.hub.services.anonymizing.releasing import RELEASE
from cloister.hub.services.anonymizing.tables import TABLE
from cloister.hub.services.anonymizing.trying import TRY

SERVICE = Service(
    name="anonymizing",
    title="Anonymised tables",
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    jobs=(TRY, RELEASE),
    releases=(TABLE,),
    links=(
        Link(
            "Anonymise",
            "/anonymise",
            "dataset.manage",
            "publish",
            29,
            "policy",
            help="how-to/anonymise-a-data-set",
            extra="anonymize",
        ),
        Link("Anonymised tables", "/anonymised", "release.see", "publish", 30, "data", help="how-to/anonymise-a-data-set"),
    ),
)
