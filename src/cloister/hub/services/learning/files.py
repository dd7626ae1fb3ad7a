"""A model as a file. That it left is a line of the trail, written before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from cloister.hub.services.learning.reading import seen_model
from cloister.hub.services.trail import write

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["file_of"]


def file_of(hub: Hub, caller: Caller, number: str) -> Response:
    """The portable JSON of a model, for those to whom the owner of its data granted downloads."""
    with hub.database.reading() as db:
        row = seen_model(hub, db, caller, number, "release.download")
    with hub.database.begin() as db:
        write(
            db,
            hub,
            caller,
            "release.download",
            kind="model",
            object_id=row.id,
            purpose=row.purpose,
            form="json",
            data_sets=list(row.data_sets),
        )
    headers = {"Content-Disposition": f'attachment; filename="model-{row.id}.json"'}
    return Response(row.body.encode(), headers=headers, media_type="application/json")
