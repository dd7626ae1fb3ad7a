"""A model, or its card, as a file. That it left is a line of the trail, written before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from cloister.hub.services.learning.order import class_of
from cloister.hub.services.learning.reading import seen_model
from cloister.hub.services.trail import left

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.records.learning import LearntModel

__all__ = ["card_of", "file_of"]


def file_of(hub: Hub, caller: Caller, number: str) -> Response:
    """The portable JSON of a model, for those to whom the owner of its data granted downloads."""
    row = _leaving(hub, caller, number, "json")
    headers = {"Content-Disposition": f'attachment; filename="model-{row.id}.json"'}
    return Response(row.body.encode(), headers=headers, media_type="application/json")


def card_of(hub: Hub, caller: Caller, number: str) -> Response:
    """The card of a model in Markdown, for the same people."""
    row = _leaving(hub, caller, number, "card")
    class_of(row.method)  # refuses where learning is not installed
    from cloister.learn.frame.card import Card

    headers = {"Content-Disposition": f'attachment; filename="card-{row.id}.md"'}
    return Response(Card.from_json(row.card).markdown().encode(), headers=headers, media_type="text/markdown; charset=utf-8")


def _leaving(hub: Hub, caller: Caller, number: str, form: str) -> LearntModel:
    """A model that may be downloaded, once the trail says so."""
    with hub.database.reading() as db:
        row = seen_model(hub, db, caller, number, "release.download")
    left(hub, caller, "model", row.id, row.data_sets, row.purpose, form)
    return row
