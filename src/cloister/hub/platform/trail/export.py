"""Lines as a file: CSV for spreadsheets, JSON lines for programs, made batch by batch while they leave.

A cell that a spreadsheet would take for a formula begins with an apostrophe, since names and purposes are typed by people.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import func, select
from starlette.responses import StreamingResponse

from cloister.hub.platform.trail.reading import Filters, Scope, read_batch
from cloister.hub.records.trail import AuditLine
from cloister.hub.spreadsheets import safe
from cloister.hub.web.routing import attachment
from cloister.printable import json_of

if TYPE_CHECKING:
    from cloister.hub.hub import Hub

Form = Literal["csv", "jsonl"]
COLUMNS = ("number", "when", "person", "action", "kind", "object", "purpose", "cost", "outcome", "details", "hash")
_BATCH = 1000


def export(hub: Hub, form: Form, filters: Filters, scope: Scope) -> Iterator[str]:
    """The lines, the oldest first, in pieces; those that are written meanwhile are not among them."""
    write = _csv if form == "csv" else _jsonl
    if form == "csv":
        yield ",".join(COLUMNS) + "\r\n"
    with hub.database.reading() as db:
        until = db.scalar(select(func.max(AuditLine.number))) or 0
    after = 0
    while True:
        with hub.database.reading() as db:
            lines = read_batch(db, filters, scope, after=after, until=until, limit=_BATCH)
            if lines:
                after = lines[-1].number
                text = write([as_mapping(line) for line in lines])
        if not lines:
            return
        yield text
        if len(lines) < _BATCH:
            return


def response(hub: Hub, form: Form, filters: Filters, scope: Scope) -> StreamingResponse:
    """The file, as a download."""
    kinds = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
    headers = attachment(f"trail-{hub.now():%Y-%m-%d}.{form}")
    return StreamingResponse(export(hub, form, filters, scope), media_type=kinds[form], headers=headers)


def as_mapping(line: AuditLine) -> dict[str, Any]:
    """A line for programs."""
    told = {name: getattr(line, name) for name in COLUMNS}
    return {**told, "when": line.when.astimezone(UTC).isoformat(timespec="microseconds")}


def harmless(cell: str) -> str:
    """A cell that no spreadsheet computes.

    >>> harmless("=1+2"), harmless("a study"), harmless("-3")
    ("'=1+2", 'a study', "'-3")
    """
    return f"'{cell}" if cell[:1] == "'" else safe(cell)


def _csv(lines: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([_cell(line[name]) for name in COLUMNS] for line in lines)
    return text.getvalue()


def _cell(value: Any) -> str:
    return harmless(json_of(value, sort_keys=True) if isinstance(value, dict) else str(value))


def _jsonl(lines: list[dict[str, Any]]) -> str:
    return "".join(json_of(line) + "\n" for line in lines)
