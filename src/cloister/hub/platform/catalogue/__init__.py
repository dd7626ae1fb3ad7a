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

from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue.joint import SITES as SITES
from cloister.hub.platform.catalogue.joint import Joined as Joined
from cloister.hub.platform.catalogue.joint import SiteRows as SiteRows
from cloister.hub.platform.catalogue.joint import coordinators_of as coordinators_of
from cloister.hub.platform.catalogue.joint import joined_in as joined_in
from cloister.hub.platform.catalogue.joint import key_of as key_of
from cloister.hub.platform.catalogue.joint import versions_at_sites as versions_at_sites
from cloister.hub.platform.catalogue.live import live_of as live_of
from cloister.hub.platform.catalogue.live import sweep_scratch
from cloister.hub.platform.catalogue.masked import MASKED
from cloister.hub.platform.catalogue.masked import Masked as Masked
from cloister.hub.platform.catalogue.masked import MaskedRows as MaskedRows
from cloister.hub.platform.catalogue.masked import batch_file as batch_file
from cloister.hub.platform.catalogue.masked import folder_of as folder_of
from cloister.hub.platform.catalogue.masked import line_of as line_of
from cloister.hub.platform.catalogue.masked import lines_of as lines_of
from cloister.hub.platform.catalogue.masked import masked_in as masked_in
from cloister.hub.platform.catalogue.masked import masked_versions as masked_versions
from cloister.hub.platform.catalogue.masked import sweep_masked as sweep_masked
from cloister.hub.platform.catalogue.metadata import plain_word as plain_word
from cloister.hub.platform.catalogue.reading import money_of as money_of
from cloister.hub.platform.catalogue.reading import owned as owned
from cloister.hub.platform.catalogue.reading import populations_of as populations_of
from cloister.hub.platform.catalogue.reading import search as search
from cloister.hub.platform.catalogue.reading import seen as seen
from cloister.hub.platform.catalogue.registering import Wanted as Wanted
from cloister.hub.platform.catalogue.registering import made_of as made_of
from cloister.hub.platform.catalogue.registering import register as register
from cloister.hub.platform.catalogue.remote import legible as legible
from cloister.hub.platform.catalogue.retention import EXPIRE, KEEPER, Keeper
from cloister.hub.platform.catalogue.retention import expire as expire
from cloister.hub.platform.catalogue.shared import others_of
from cloister.hub.platform.catalogue.sources import PooledRows as PooledRows
from cloister.hub.platform.catalogue.sources import source_of as source_of
from cloister.hub.platform.catalogue.versions import add_masked as add_masked
from cloister.hub.platform.catalogue.versions import add_rows as add_rows
from cloister.hub.platform.catalogue.windows import window_with as window_with
from cloister.hub.service import Card, Guide, Link, Service, routes_in

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
    api=routes_in(__name__, "api"),
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
