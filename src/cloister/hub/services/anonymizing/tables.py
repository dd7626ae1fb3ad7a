"""Anonymised tables as a kind of release: what their page shows, what a program reads, their files and papers."""

import json
from typing import Any, Self

from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import File, FileKind, ReleaseKind, View
from cloister.hub.releases.shapes import Line
from cloister.hub.services.anonymizing.papers import page_in, words_in
from cloister.hub.services.anonymizing.reading import csv_of, parquet_of, source_of_table
from cloister.hub.services.anonymizing.words import ATTACKERS, LOSSES, SEARCHED
from cloister.hub.web.languages import N_


class AnonymizedLine(Line):
    """A released table, in a list."""

    table: str
    data_set: str
    """The id of the data set that its rows became."""


class Anonymized(AnonymizedLine):
    """A released table with its report and its certificate."""

    report: dict[str, Any]
    certificate: dict[str, Any]

    @classmethod
    def of(cls, row: StoredRelease, **more: Any) -> Self:
        """With what is kept of it besides."""
        papers = json.loads(row.body)
        return super().of(row, report=papers["report"], certificate=papers["certificate"], **more)


def _shown(view: View) -> dict[str, Any]:
    with view.hub.database.reading() as db:
        made = db.get(DataSet, view.row.data_set)
    papers = json.loads(view.row.body)
    return {
        "report": papers["report"],
        "certificate": papers["certificate"],
        "made": made if made is not None and made.state != "deleted" else None,
        "searches": SEARCHED,
        "attackers": ATTACKERS,
        "losses": LOSSES,
        "told": words_in(view.language),
    }


def _rows(view: View, form: str) -> File:
    with view.hub.database.reading() as db:
        name, source = source_of_table(view.hub, db, view.row)
    return File(name=f"{name}.{form}", body=csv_of(name, source) if form == "csv" else parquet_of(name, source))


def _paper(view: View, paper: str) -> File:
    """A page that stands alone, to print and to sign, in the reader's language."""
    page = json.loads(view.row.body)[f"{paper}_page"]
    return File(name=f"{paper}-{view.row.id}.html", body=page_in(page, view.language).encode())


TABLE = ReleaseKind(
    name="anonymised",
    path="/anonymised",
    trail="anonymized-table",
    missing=N_("There is no such table"),
    private=False,
    audience="data set",
    first="all",
    list_template="anonymizing/tables.html",
    template="anonymizing/table.html",
    shown=_shown,
    told=lambda view: Anonymized.of(view.row).model_dump_json().encode(),
    files={
        "csv": FileKind(media_type="text/csv; charset=utf-8", make=lambda view: _rows(view, "csv")),
        "parquet": FileKind(media_type="application/vnd.apache.parquet", make=lambda view: _rows(view, "parquet")),
        "report": FileKind(media_type="text/html; charset=utf-8", make=lambda view: _paper(view, "report")),
        "certificate": FileKind(media_type="text/html; charset=utf-8", make=lambda view: _paper(view, "certificate")),
    },
)
