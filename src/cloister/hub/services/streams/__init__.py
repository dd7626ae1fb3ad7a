"""Streams: readings of devices that never end, released step by step by the hub's clock, under one charge.

- `opening.py`: what is declared, the charge, the keys of devices; `intake.py`: what devices send, and their quotas.
  `broker.py`: the same over MQTT, and released steps out.
- `releasing.py`: which steps are over, and what is released of them; `showing.py`: a step as a table, a chart, CSV.
- `tables.py`: released steps as a table in SQL. `pages.py`, `api.py`: the routes; subscribers get released steps alone.

What may not live here: noise or an exact sum (`cloister.traces.watch`). Each stream is a population of its own: its devices.
"""

from cloister.hub.decisions.policy import Action, register_actions
from cloister.hub.service import Link, Service, routes_in
from cloister.hub.services.streams.releasing import closed, opened
from cloister.hub.services.streams.releasing import release_due as release_due
from cloister.hub.services.streams.tables import tables
from cloister.hub.web.languages import N_

_OWNERS, _READERS = frozenset({"owner"}), frozenset({"owner", "analyst"})

register_actions(
    [
        Action(name="stream.open", title=N_("Open a stream"), roles=_OWNERS, data=True),
        Action(name="stream.see", title=N_("See a stream"), roles=_READERS, by="owner", data=True),
        Action(name="stream.manage", title=N_("Manage a stream"), roles=_OWNERS, by="owner"),
        Action(name="stream.send", title=N_("Send readings"), roles=frozenset({"nobody"})),
    ]
)

SERVICE = Service(
    name="streams",
    title=N_("Streams"),
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    links=(
        Link(N_("Streams"), "/streams", "stream.see", "collect", 30, "history", help="tutorials/from-sensors-to-a-live-page"),
    ),
    tables=tables,
    opened=opened,
    closed=closed,
)
