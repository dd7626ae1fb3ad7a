"""Synthetic tables as a kind of release: what their page shows, what a program reads, their files.

The rows are drawn when somebody looks or downloads, always the same ones, from the model that was kept: nothing more is charged.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cloister.hub.releases.kinds import AgainstRows, AsTable, File, FileKind, ReleaseKind, TableAnswer, View
from cloister.hub.releases.notebooks import notebook
from cloister.hub.releases.tables import name_in_queries
from cloister.hub.services.synthesising.order import METHODS
from cloister.hub.spreadsheets import csv_pieces
from cloister.hub.web.languages import N_
from cloister.noise import Random

if TYPE_CHECKING:
    from cloister.session import Frame
    from cloister.synth import SyntheticModel
    from cloister.synth.report import Picture

_SHOWN = 10
_HIDDEN = 1_000
"""Rows of a file where the noise hides how many there are."""
_MOST_VALUES = 5_000_000
"""Of a file; a program that has the model draws as many rows as it likes."""
_HEIGHT, _WIDTH = 90, 480
_AT_ONCE = 5_000
_MODELS = 16


@lru_cache(maxsize=_MODELS)
def _read(body: bytes) -> SyntheticModel:
    """The model of a release. It is never changed, so those that were read last are kept."""
    from cloister.synth import SyntheticModel

    return SyntheticModel.from_json(json.loads(body)["model"])


def _model(view: View) -> SyntheticModel:
    return _read(view.row.body)


def _answer(view: View, name: str, sql: str, dialect: str | None) -> TableAnswer:
    """From the model, in closed form."""
    found = replace(_model(view), table=name).answer(sql, confidence=view.confidence, dialect=dialect)
    return TableAnswer(table=found.labelled, statistics=tuple(found.statistics), notes=found.notes)


def _rows(view: View, model: SyntheticModel, most: int | None = None) -> Frame:
    """Rows of a release: the same at each look, from choices that protect nothing."""
    known = _HIDDEN if model.rows < 2 * model.rows_error else max(round(model.rows), 1)
    number = min(known, _MOST_VALUES // len(model.columns))
    secret = view.hub.ledger.derive("synthesising", view.row.id)
    return model.sample(number if most is None else min(number, most), random=Random.derived(secret))


def _shown(view: View) -> dict[str, Any]:
    from cloister.synth.report import pictures_of

    model = _model(view)
    rows = _rows(view, model, _SHOWN)
    return {
        "method": METHODS.get(view.row.details["method"], view.row.details["method"]),
        "sample": (rows.column_names, rows.head()),
        "pictures": [_drawn(each) for each in pictures_of(model)],
        "name_in_queries": name_in_queries(view.row),
        "most": f"{_MOST_VALUES // len(rows.column_names):,}",
    }


def _drawn(picture: Picture) -> dict[str, Any]:
    """Where the bars of the model and the error bars of the counts stand, in a picture of fixed size."""
    texts = zip(picture.labels, picture.counts or picture.model, picture.model, strict=True)
    bars = [
        {**{name: round(value, 2) for name, value in bar._asdict().items()}, "text": text}
        for bar, text in zip(picture.bars(_WIDTH, _HEIGHT), texts, strict=True)
    ]
    return {"name": picture.name, "margin": picture.margin, "bars": bars, "width": _WIDTH, "height": _HEIGHT}


def _csv(view: View) -> File:
    rows = _rows(view, _model(view))
    return File(name=f"synthetic-{view.row.id}.csv", body=csv_pieces(rows.column_names, _lines(rows)))


def _lines(rows: Frame) -> Iterator[tuple[Any, ...]]:
    """Row by row, a truth as Python writes it; not all at once, since values of Python take more room than columns."""
    for start in range(0, len(rows), _AT_ONCE):
        parts = [series.values[start : start + _AT_ONCE].tolist() for series in rows.columns.values()]
        yield from zip(*[[str(each) if isinstance(each, bool) else each for each in part] for part in parts], strict=True)


def _parquet(view: View) -> File:
    body = io.BytesIO()
    _rows(view, _model(view)).to_polars().write_parquet(body)
    return File(name=f"synthetic-{view.row.id}.parquet", body=body.getvalue())


@lru_cache(maxsize=_MODELS)
def _page(body: bytes) -> bytes:
    """The public report as a page that stands alone: as it was written with the release; of an older one, written once here."""
    page: str = json.loads(body).get("report") or _read(body).report().to_html()
    return page.encode()


def _notebook(view: View) -> File:
    table, number = view.row.details["table"], view.row.id
    cost = ", ".join(f"{each} of {population}" for population, each in view.row.cost.items())
    there = f"model = cl.connect({view.hub.settings.origin!r}, token=…).synthetic({number!r})"
    load = f"import cloister as cl\n\n# or, from the hub: {there}\nmodel = cl.synth.load('synthetic-{number}.json')"
    asked = f"model.answer('SELECT COUNT(*) AS n FROM {table}')"  # noqa: S608 it goes into the file
    code = (load, "print(model.report())", "rows = model.sample(1000)\nrows.head()", asked)
    about = f"Synthetic table of {table}, made for {cost}. Rows and answers cost nothing more."
    body = notebook([("markdown", about), *(("code", each) for each in code)])
    return File(name=f"synthetic-{number}.ipynb", body=body)


def _json(view: View) -> bytes:
    """The model, as `cl.synth.load` reads it."""
    text: str = json.loads(view.row.body)["model"]
    return text.encode()


SYNTHETIC = ReleaseKind(
    name="synthetic",
    path="/synthetic",
    trail="synthetic-table",
    missing=N_("There is no such table"),
    title=N_("Synthetic tables"),
    list_template="synthesising/tables.html",
    template="synthesising/table.html",
    shown=_shown,
    told=_json,
    against_rows=AgainstRows(action="synthesise.run", compare=lambda row, rows: _read(row.body).compare(rows)),
    as_table=AsTable(columns=lambda row: {each.name: each.domain for each in _read(row.body).columns}, answer=_answer),
    files={
        "csv": FileKind(media_type="text/csv; charset=utf-8", make=_csv),
        "parquet": FileKind(media_type="application/vnd.apache.parquet", make=_parquet),
        "report": FileKind(
            media_type="text/html; charset=utf-8",
            make=lambda view: File(name=f"report-{view.row.id}.html", body=_page(view.row.body)),
        ),
        "notebook": FileKind(media_type="application/x-ipynb+json", make=_notebook),
        "json": FileKind(
            media_type="application/json", make=lambda view: File(name=f"synthetic-{view.row.id}.json", body=_json(view))
        ),
    },
)
