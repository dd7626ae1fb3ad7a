"""A run of a guest as work of the frame (`hub/work/orders.py`): which algorithm on which data set, its cost, and what is kept.

The charge is that of the order, whatever the code does; the proof is in `cloister.guests.blocks`, that of a declared mechanism
is its author's (`admission.py`). The job lasts as long as all blocks may last, so that its end says nothing. Of way "ask" the
charge is at most that of the order, over all attempts of the job: the code asks about the declared columns alone, and its
answers come at ticks.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter
from cloister.guests import Guest
from cloister.guests.blocks import Blocks
from cloister.hub.description import example
from cloister.hub.hub import Caller, Hub
from cloister.hub.labels import check_purpose
from cloister.hub.platform.access import named_algorithm
from cloister.hub.records.access import Algorithm
from cloister.hub.records.catalogue import DataSet
from cloister.hub.releases.kinds import ReleaseKind, View, json_file, stored
from cloister.hub.services.guests.admission import check_admitted, quarantine
from cloister.hub.services.guests.settings import guest_of
from cloister.hub.web.formats import brief
from cloister.hub.web.languages import N_
from cloister.hub.work.attempts import AttemptSession
from cloister.hub.work.authorise import Words
from cloister.hub.work.one_table import ReadyTable, ready_table
from cloister.hub.work.ordering import asked
from cloister.hub.work.orders import FREE, OrderedWork, Product, job_of
from cloister.lazily import check_installed
from cloister.printable import margin_text
from cloister.privacy import Guarantee, exact_positive, zero_of
from cloister.query import Session
from cloister.session.questions.spend import spend_of
from cloister.stored import Stored
from cloister.tables import PrivateTable

ACTION, NAME = "algorithm.run", "guests"
_UNKNOWN = "–"
"""The margin of a median, which follows from how the blocks lie, and of what a guest made of answers."""
_LONGEST_QUERY = 1000


@dataclass(frozen=True, kw_only=True)
class Order:
    """A run of an algorithm near a data set."""

    __pydantic_config__ = example(table="people", algorithm="middle", spend="0.5", purpose="research") | {"extra": "forbid"}

    algorithm: str = asked(N_("Algorithm"), N_("one that its provider and the data owner both granted"))
    table: str
    spend: str
    purpose: str = ""
    project: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        if not self.algorithm:
            raise InvalidParameter("The algorithm is invalid", why="none is named", instead="the name of an algorithm")
        check_purpose(self.purpose)
        _ = exact_positive(self.spend, "spend")


def _lines(view: View) -> list[list[Any]]:
    """Each number, and the margin of its noise."""
    told = json.loads(view.row.body)
    if "asked" in told:
        _ = view.language.gettext
        why = [[_("Returned nothing"), told["why"], _UNKNOWN]] if told["why"] else []
        asked = [[_("Query"), each, _UNKNOWN] for each in told["asked"]]
        return [[_("Result"), json.dumps(told["values"], ensure_ascii=False), _UNKNOWN], *why, *asked]
    margins = {name: f"± {brief(margin, 4)}" for name, margin in told["margins"].items()}
    return [[name, brief(value, 6), margins.get(name, _UNKNOWN)] for name, value in told["values"].items()]


def _shown(view: View) -> dict[str, Any]:
    _ = view.language.gettext
    details = view.row.details
    pairs = [
        (_("Algorithm"), details["algorithm"]),
        (_("Data set"), details["table"]),
        (_("Columns"), ", ".join(details["inputs"])),
    ]
    if "queries" in details:
        pairs.append((_("Queries"), details["queries"]))
    if "blocks" in details:
        pairs.append((_("Blocks of people"), details["blocks"]))
    told = json.loads(view.row.body)
    if failed := told.get("failed"):  # earlier results do not say
        about = {"n": f"{failed['count']:z.0f}", "margin": margin_text(failed["margin"]), "blocks": failed["blocks"]}
        said = _("about %(n)s ± %(margin)s of %(blocks)s: the middle of the range stood in for them", **about)
        pairs.append((_("Blocks without a value"), said))
    elif (why := told.get("why")) and "asked" not in told:
        pairs.append((_("Returned nothing"), _(why)))
    if provenance := details.get("provenance"):
        pairs.append((_("Provenance"), _(provenance)))
    pairs.append((_("Digest of the code"), details["digest"][:16]))
    return {"pairs": pairs, "columns": [_("Number"), _("Value"), _("Margin")], "lines": _lines(view)}


GUEST_RESULT = ReleaseKind(
    name="guest",
    path="/algorithm-results",
    trail="algorithm-result",
    title=N_("Results of algorithms"),
    made_at="/run-algorithm",
    missing=N_("There is no such result"),
    shown=_shown,
    told=stored,
    files={"json": json_file("result")},
)


@dataclass(frozen=True, kw_only=True)
class ReadyRun(ReadyTable[Order]):
    """A run that may be carried out."""

    guest: Guest
    provenance: str
    """Who admitted it and what it was audited to, where that is asked for."""
    noticed: list[str] = field(default_factory=list)
    """What was seen of the run for which the hub stops an algorithm: keys of `admission.REASONS`."""


class _Running(OrderedWork[Order, ReadyRun]):
    """Orders of runs."""

    job, title, action, release = "guests.run", N_("Run of an algorithm"), ACTION, GUEST_RESULT
    stored = Stored(Order, "GuestRun", "algorithm", "table", "spend", "purpose", "project", "title")
    stages = FREE | {N_("running the algorithm"): 0.3, N_("keeping the result"): 0.9}
    words = Words(
        name="The result",
        invalid=N_("The run is invalid"),
        denied=N_("The request was denied"),
        withheld=N_("The result was not released"),
    )

    def ready(self, hub: Hub, db: Db, caller: Caller, order: Order, **how: Any) -> ReadyRun:
        """With the algorithm as it is now: a run is of the code that was registered, which never changes under its id."""
        row = named_algorithm(hub, db, caller, order.algorithm, NAME)
        guest = guest_of(row.name, row.settings)
        order = replace(order, algorithm=row.id)

        def charge(session: Session, _: PrivateTable, budget: Guarantee) -> Guarantee:
            if guest.way == "ask":
                return spend_of(order.spend, budget).whole()
            return guest.explain(session, order.table, order.spend)[0].cost

        found = ready_table(self, hub, db, caller, order, **how, columns=tuple(guest.inputs), charge=charge)
        provenance = check_admitted(db, row.id, found.which.id, guest, found.table)
        made = ReadyRun(**vars(found), guest=guest, provenance=provenance)
        if guest.way != "ask":
            return made
        columns = {order.table: tuple(guest.inputs)}  # what the policy was asked about, and no more
        return replace(made, session=found.session.on_behalf(found.session.who, columns=columns))

    def rehearse(self, found: ReadyRun) -> None:
        """Native code runs in a process of the machine, and needs none of the extra."""
        check_installed("" if found.guest.needs.native else "guests", self.words.withheld)

    def run(self, hub: Hub, found: ReadyRun, session: Callable[[], AttemptSession]) -> Product:
        guest = found.guest
        if guest.way == "ask":
            return _by_asking(hub, found, session())
        method = guest.method(found.table)
        with method.open() as sandbox:
            outcome = session().run(
                replace(method, opened=sandbox), found.order.table, found.order.spend, purpose=found.order.purpose
            )
        result = guest.result(method, outcome, found.provenance)
        told = {"values": dict(result.values), "margins": result.margins, "cost": str(outcome.cost)}
        told |= {"why": result.why} if result.failed is None else {"failed": vars(result.failed)}
        more = {"blocks": method.blocks} if isinstance(method, Blocks) else {"way": guest.way}
        return Product(
            body=json.dumps(told, ensure_ascii=False).encode(),
            cost={found.which.population: outcome.cost},
            details=_details(found) | more,
        )

    def still(self, hub: Hub, db: Db, found: ReadyRun) -> None:
        """Code that was stopped meanwhile releases nothing. What is noticed of this run stops those that come after it."""
        check_admitted(db, found.order.algorithm, found.which.id, found.guest, found.table)
        for reason in found.noticed[:1]:
            quarantine(hub, db, db.get_one(Algorithm, found.order.algorithm), db.get_one(DataSet, found.which.id), reason)


def _details(found: ReadyRun) -> dict[str, Any]:
    about = {"algorithm": found.guest.name, "table": found.order.table, "inputs": list(found.guest.inputs)}
    return about | {"digest": found.guest.digest, "provenance": found.provenance}


def _by_asking(hub: Hub, found: ReadyRun, session: AttemptSession) -> Product:
    """The result is any plain value, made of private answers alone: so is the reason why there is none."""
    order, tick = found.order, hub.settings.tick_ms / 1000
    result = found.guest.by_asking(session, order.table, order.spend, purpose=order.purpose, tick=tick)
    if result.beyond:
        found.noticed.append("beyond")
    asked = [each[:_LONGEST_QUERY] for each in result.asked]
    cost = session.charged.get(found.which.population) or zero_of(found.cost)
    told = {"values": result.values, "margins": {}, "cost": str(cost), "asked": asked, "why": result.why[-_LONGEST_QUERY:]}
    try:
        body = json.dumps(json.loads(json.dumps(told), parse_constant=lambda _: None))  # what is no number is no JSON either
    except RecursionError:
        body = json.dumps(told | {"values": None})
    details = _details(found) | {"way": "ask", "queries": len(asked)}
    return Product(body=body.encode(), cost={found.which.population: cost}, details=details)


def expected(_: Hub, found: ReadyTable[Order], confidence: float = 0.95) -> list[dict[str, Any]]:
    """The margins of the noise of each mean, from the declarations alone."""
    assert isinstance(found, ReadyRun)
    margins = found.guest.by_blocks(found.table).margins(found.cost, confidence) if found.guest.way == "blocks" else {}
    return [{"name": name, "margin": margin} for name, margin in margins.items()]


RUNNING = _Running()
RUN = job_of(RUNNING)
