"""What the form of an order shows besides: the data sets that hold journeys, their columns, the public data sets of roads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloister.hub.services.journeys.fitting import ACTION
from cloister.hub.work.offers import offers
from cloister.session.questions.spend import measure_of
from cloister.tables import Date, Integer, Moment, Place, PrivateTable, PublicTable, Real, Text

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.work.offer import Offer


def choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The data sets, what can be chosen of the one that is, and what was typed; first the columns that fit."""
    found = offers(hub, db, caller, ACTION, under=(), anyhow=True)
    opened = {each.which.name: each for each in found if _holds_journeys(each.table)}
    name = typed["table"] if typed["table"] in opened else next(iter(opened), "")
    offer = opened.get(name)
    kinds = _columns(offer)
    first = {
        "moment": next(iter(kinds["moments"]), ""),
        "place": next(iter(kinds["places"]), ""),
        "x": "",
        "y": "",
        "cells": "12",
        "zones": "4",
        "spend": "1",
        **dict.fromkeys(("fastest", "nodes", "edges", "purpose", "project", "title"), ""),
    }
    if not kinds["places"]:
        first |= dict(zip(("x", "y"), kinds["numbers"], strict=False))
    return {
        "opened": list(opened),
        "chosen": name,
        **kinds,
        "roads": [each.which.name for each in found if isinstance(each.table, PublicTable)],
        "measure": "" if offer is None else measure_of(hub.ledger.budget(offer.which.population)),
        "purposes": () if offer is None else offer.purposes,
        "names_purpose": offer is not None and offer.names_purpose,
        "typed": {**first, **typed},
    }


def _holds_journeys(table: PrivateTable | PublicTable) -> bool:
    """Whether its units are journeys: a column of text says whose a row is, and others say when and where."""
    if not isinstance(table, PrivateTable) or not isinstance(table.columns.get(table.unit or ""), Text):
        return False
    kinds = [type(each) for each in table.columns.values()]
    return Place in kinds or sum(kind in (Integer, Real) for kind in kinds) >= 2


def _columns(offer: Offer | None) -> dict[str, list[str]]:
    table = None if offer is None else offer.table
    if not isinstance(table, PrivateTable):
        return {"moments": [], "places": [], "numbers": []}
    numbers = [name for name, each in table.columns.items() if isinstance(each, Integer | Real)]
    clocks = [name for name, each in table.columns.items() if isinstance(each, Moment | Date)]
    return {
        "moments": [*clocks, *numbers],
        "places": [name for name, each in table.columns.items() if isinstance(each, Place)],
        "numbers": [name for name in numbers if clocks or name != numbers[0]],
    }
