"""Synthetic tables as a kind of release: what their page shows, what a program reads, their files.

The rows are drawn when somebody looks or downloads, always the same ones, from the model that was kept: nothing more is charged.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cloister.hub.releases.kinds import AsTable, File, FileKind, ReleaseKind, TableAnswer, View
from cloister.hub.releases.tables import name_in_queries
from cloister.hub.services.synthesising.order import METHODS
from cloister.hub.spreadsheets import safe
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
    return File(name=f"synthetic-{view.row.id}.csv", body=_pieces(_rows(view, _model(view))))


def _pieces(rows: Frame) -> Iterator[bytes]:
    """Rows as CSV, in pieces. What a spreadsheet would compute stays a text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([safe(each) for each in rows.column_names])
    columns = [(series.kind == "text", series.values) for series in rows.columns.values()]
    for start in range(0, len(rows), _AT_ONCE):
        parts = [(is_text, values[start : start + _AT_ONCE].tolist()) for is_text, values in columns]
        lists = [[safe(each) if is_text and each is not None else each for each in part] for is_text, part in parts]
        writer.writerows(zip(*lists, strict=True))
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()


def _parquet(view: View) -> File:
    body = io.BytesIO()
    _rows(view, _model(view)).to_polars().write_parquet(body)
    return File(name=f"synthetic-{view.row.id}.parquet", body=body.getvalue())


def _report(view: View) -> File:
    """The public report as a page that stands alone: as it was written with the release; of an older one, written now."""
    page: str = json.loads(view.row.body).get("report") or _model(view).report().to_html()
    return File(name=f"report-{view.row.id}.html", body=page.encode())


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
    as_table=AsTable(columns=lambda row: {each.name: each.domain for each in _read(row.body).columns}, answer=_answer),
    files={
        "csv": FileKind(media_type="text/csv; charset=utf-8", make=_csv),
        "parquet": FileKind(media_type="application/vnd.apache.parquet", make=_parquet),
        "report": FileKind(media_type="text/html; charset=utf-8", make=_report),
        "json": FileKind(
            media_type="application/json", make=lambda view: File(name=f"synthetic-{view.row.id}.json", body=_json(view))
        ),
    },
)
