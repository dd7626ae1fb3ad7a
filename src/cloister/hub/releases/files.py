"""A release leaves as a file: for those to whom the owners of its data granted that, and with a line of the trail before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from cloister.hub.problems import Missing
from cloister.hub.releases.kinds import View, kind_of
from cloister.hub.releases.reading import seen_release
from cloister.hub.services.trail import left
from cloister.hub.web.languages import language_of

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.web.languages import Language


def file_of(
    hub: Hub,
    caller: Caller,
    number: str,
    form: str,
    *,
    kind: str = "",
    confidence: float = 0.95,
    language: Language | None = None,
) -> Response:
    """The file. With a `kind` any other release is missing."""
    with hub.database.reading() as db:
        row = seen_release(hub, db, caller, number, "release.download", kind=kind)
    own = kind_of(hub, row)
    if form not in own.files:
        raise Missing("There is no such file", why="it is not available in this form", instead=", ".join(own.files))
    which = own.files[form]
    found = which.make(View(hub=hub, caller=caller, row=row, language=language or language_of("en"), confidence=confidence))
    left(hub, caller, own.trail, row.id, row.data_sets, row.purpose, form)
    if isinstance(found.body, bytes):
        return Response(found.body, headers=attachment(found.name), media_type=which.media_type)
    return StreamingResponse(found.body, headers=attachment(found.name), media_type=which.media_type)


def attachment(name: str) -> dict[str, str]:
    """The headers that make a browser keep it as a file."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
