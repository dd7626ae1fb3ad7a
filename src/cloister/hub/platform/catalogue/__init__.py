"""The catalogue: populations, data sets and their versions; how they come in, what is public of them, how they go.

- `arrivals.py`: uploads and connections, and what is kept of them until they are registered.
- `typed.py`, `metadata.py`: what an owner says. `filling.py`: what fills it in, from names, codebooks and other declarations.
  `trial.py`, `cleaning.py`: what of an upload does not fit that, and how its cells are to be read.
- `registering.py`, `versions.py`: data sets and their versions. `row_sources.py`, `origins.py`: whence rows come, and whose they
  are.
- `joint.py`: data sets whose rows are at several sites. `sources.py`: those that are made of others, of several owners, too.
  `masked.py`: those of masked cells, whose keys a key holder has.
- `windows.py`: a data set that grows, cut into windows of time.
- `managing.py`, `retention.py`, `shared.py`: what becomes of them. `live.py`: the session that questions go through.
- `reading.py`: who finds what. `pages*.py`, `api.py`, `shapes.py`: the routes.

What may not live here: a decision about who may what (`access`), a release of anything (`asking`), an upload in plain.
"""

from sqlalchemy.orm import Session as Db

from cloister.hub.caller import Caller
from cloister.hub.hub import Hub
from cloister.hub.platform.catalogue.joint import SITES, Joined, SiteRows, coordinators_of, joined_in, key_of, versions_at_sites
from cloister.hub.platform.catalogue.live import live_of, sweep_scratch
from cloister.hub.platform.catalogue.masked import (
    MASKED,
    Masked,
    MaskedRows,
    batch_file,
    folder_of,
    line_of,
    lines_of,
    masked_in,
    masked_versions,
    sweep_masked,
)
from cloister.hub.platform.catalogue.metadata import plain_word
from cloister.hub.platform.catalogue.reading import money_of, owned, populations_of, search, seen
from cloister.hub.platform.catalogue.registering import Wanted, made_of, register
from cloister.hub.platform.catalogue.remote import legible
from cloister.hub.platform.catalogue.retention import EXPIRE, KEEPER, Keeper, expire
from cloister.hub.platform.catalogue.shared import others_of
from cloister.hub.platform.catalogue.sources import PooledRows, source_of
from cloister.hub.platform.catalogue.versions import add_masked, add_rows
from cloister.hub.platform.catalogue.windows import window_with
from cloister.hub.service import Card, Guide, Link, Service, routes_in

__all__ = [
    "SERVICE",
    "SITES",
    "Joined",
    "Masked",
    "MaskedRows",
    "PooledRows",
    "SiteRows",
    "Wanted",
    "add_masked",
    "add_rows",
    "batch_file",
    "coordinators_of",
    "expire",
    "folder_of",
    "joined_in",
    "key_of",
    "legible",
    "line_of",
    "lines_of",
    "live_of",
    "made_of",
    "masked_in",
    "masked_versions",
    "money_of",
    "owned",
    "plain_word",
    "populations_of",
    "register",
    "search",
    "seen",
    "source_of",
    "sweep_masked",
    "versions_at_sites",
    "window_with",
]


_SHOWN = 6


def _cards(hub: Hub, db: Db, caller: Caller) -> list[Card]:
    """For owners their own data sets; for anyone who asks, what they may ask."""
    found: list[Card] = []
    broken = live_of(hub).closed_for
    if caller.has("owner"):
        own, _ = search(hub, db, caller, mine=True, limit=_SHOWN)
        items = [
            (each.row, f"/datasets/{each.row.name}/manage", each.row.name in broken, others_of(db, each.row) is not None)
            for each in own
        ]
        found.append(Card(template="catalogue/card.html", values={"which": "own", "items": items}, order=10))
    if caller.has("analyst", "owner"):
        everything, _ = search(hub, db, caller, limit=200)
        open_to = [each for each in everything if each.may_ask and not each.mine][:_SHOWN]
        items = [(each.row, f"/datasets/{each.row.name}", False, False) for each in open_to]
        found.append(Card(template="catalogue/card.html", values={"which": "open", "items": items}, order=20))
    return found


def _opened(hub: Hub) -> None:
    hub.parts[KEEPER] = Keeper(hub)
    sweep_scratch(hub)
    if hub.settings.path(MASKED).is_dir():
        sweep_masked(hub)


def _closed(hub: Hub) -> None:
    keeper: Keeper | None = hub.parts.pop(KEEPER, None)
    if keeper is not None:
        keeper.close()
    live = hub.parts.pop("live tables", None)
    if live is not None:
        live.close()


SERVICE = Service(
    name="catalogue",
    title="Data",
    pages=routes_in(__name__, "pages", "pages", "pages_owner", "pages_register", "pages_upload"),
    api=routes_in(__name__, "api", "api"),
    jobs=(EXPIRE,),
    links=(
        Link("Data sets", "/datasets", "dataset.see", "data", 10, "data", help="how-to/share-a-data-set"),
        Link("Populations", "/populations", "dataset.register", "data", 30, "people", help="explanation/ledger"),
    ),
    guides=(
        Guide(title="Register a data set", path="/register", group="data", help="how-to/share-a-data-set"),
        Guide(title="Declare the table", path="/register/*", group="data", help="how-to/declare-a-table"),
    ),
    cards=_cards,
    opened=_opened,
    closed=_closed,
)
