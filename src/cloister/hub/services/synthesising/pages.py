"""What the form of an order shows besides what every order has: the data sets that are open, and their columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.hub.services.synthesising.making import ACTION
from cloister.hub.services.synthesising.order import METHODS, USES
from cloister.hub.web.pictures import lines_of
from cloister.hub.work.offers import offers
from cloister.session.questions.spend import measure_of
from cloister.tables import PrivateTable, PublicTable, Text

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub


def choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The data sets, the columns of the chosen one, and what was typed; at first every column is ticked."""
    found = offers(hub, db, caller, ACTION, under=(), anyhow=True)
    opened = {each.which.name: each for each in found if isinstance(each.table, PrivateTable)}
    name = typed["table"] if typed["table"] in opened else next(iter(opened), "")
    offer = opened.get(name)
    columns = {} if offer is None else {each: kind for each, kind in offer.columns.items() if _fits(offer.table, each)}
    first = {
        "columns": tuple(columns),
        "method": "auto",
        "spend": "1",
        **dict.fromkeys(("purpose", "project", "title", "rules", "use", "target", "workload", "earlier", "ranges"), ""),
    }
    return {
        "opened": list(opened),
        "chosen": name,
        "columns": columns,
        "measure": "" if offer is None else measure_of(hub.ledger.budget(offer.which.population)),
        "methods": list(METHODS.items()),
        "uses_of": list(USES.items()),
        "curve": _curve,
        "purposes": () if offer is None else offer.purposes,
        "names_purpose": offer is not None and offer.names_purpose,
        "typed": {**first, **typed},
    }


def _curve(errors: Sequence[Mapping[str, Any]], spend: str, _: Callable[[str], str]) -> str:
    """The margins of error by spend, as a picture."""
    lines = {
        name: [(float(Fraction(each["spend"])), each[key]) for each in errors if each[key]]
        for key, name in (("one", _("1 column")), ("two", _("2 columns")), ("three", _("3 columns")))
    }
    drawn = {name: points for name, points in lines.items() if points}
    return lines_of(drawn, x=_("Spend"), y=_("Margin of error, in rows"), chosen=float(Fraction(spend)))


def _fits(table: PrivateTable | PublicTable, name: str) -> bool:
    """Whether a column can be in a synthetic table: not free text, and not the one that names people."""
    return isinstance(table, PrivateTable) and name != table.unit and not isinstance(table.columns[name], Text)
