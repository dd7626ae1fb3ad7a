"""Synthetic tables as a kind of release: what their page shows, what a program reads, their files.

The rows are drawn when somebody looks or downloads, always the same ones, from the model that was kept: nothing more is charged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import AgainstRows, AsTable, File, FileKind, ReleaseKind, TableAnswer, View, json_file
from cloister.hub.releases.rows import MOST_CELLS, MOST_VALUES, row_files
from cloister.hub.releases.tables import name_in_queries
from cloister.hub.services.synthesising.order import METHODS
from cloister.hub.web.languages import N_
from cloister.hub.web.pictures import bars_of
from cloister.noise import Random
from cloister.tables.expression.names import quoted

if TYPE_CHECKING:
    from cloister.session import Frame
    from cloister.synth import SyntheticModel

_SHOWN = 10
_HIDDEN = 1_000
"""Rows of a file where the noise hides how many there are."""
_HEIGHT, _WIDTH = 90, 480
_MODELS = 16
_POOLED = N_("Pooled from tables of different populations")


@lru_cache(maxsize=_MODELS)
def _read(body: bytes) -> SyntheticModel:
    """The model of a release. It is never changed, so those that were read last are kept."""
    from cloister.synth import SyntheticModel

    return SyntheticModel.from_json(json.loads(body)["model"])


def _answer(view: View, name: str, sql: str, dialect: str | None) -> TableAnswer:
    """From the model, in closed form."""
    found = replace(_read(view.row.body), table=name).answer(sql, confidence=view.confidence, dialect=dialect)
    return TableAnswer(table=found.labelled, statistics=tuple(found.statistics), notes=found.notes)


def _drawn(view: View, most: int) -> tuple[SyntheticModel, int, Random]:
    """What rows of a release are drawn by: the same at each look, from choices that protect nothing."""
    model = _read(view.row.body)
    known = _HIDDEN if model.rows < 2 * model.rows_error else max(round(model.rows), 1)
    return model, min(known, most), Random.derived(view.hub.ledger.derive("synthesising", view.row.id))


def _rows(view: View, values: int) -> Frame:
    """At most so many values."""
    model, number, random = _drawn(view, values // len(view.row.details["columns"]))
    return model.sample(number, random=random)


def _codes(view: View, most: int) -> Mapping[str, Any]:
    model, number, random = _drawn(view, most)
    return dict(zip([each.name for each in model.columns], model.codes(number, {}, random), strict=True))


def _pooled(rows: Sequence[StoredRelease], table: str) -> tuple[bytes, Mapping[str, Any]]:
    """Of several populations, whose margins and guarantees are those of `cloister.synth.pooled`."""
    from cloister.synth import pooled

    model = pooled([_read(row.body) for row in rows], table=table or None)
    return kept(model, "")


def kept(model: SyntheticModel, title: str) -> tuple[bytes, dict[str, Any]]:
    """The body and the details of a release: with the model its public report."""
    told = {"model": model.to_json(), "report": model.report().to_html(title=title)}
    details: dict[str, Any] = {"table": model.table, "columns": [each.name for each in model.columns], "rules": list(model.rules)}
    details |= {"method": model.method, "rows": model.rows, "rows_error": model.rows_error, "rows_margin": model.rows_margin}
    return json.dumps(told, ensure_ascii=False).encode(), details


def _shown(view: View) -> dict[str, Any]:
    from cloister.synth.report import pictures_of

    model = _read(view.row.body)
    rows = _rows(view, _SHOWN * len(model.columns))
    return {
        "method": {**METHODS, "pooled": _POOLED}.get(view.row.details["method"], view.row.details["method"]),
        "sample": (rows.column_names, rows.head()),
        "pictures": [bars_of(each, _WIDTH, _HEIGHT) for each in pictures_of(model)],
        "name_in_queries": name_in_queries(view.row),
        "most": [f"{most // len(rows.column_names):,}" for most in (MOST_VALUES, MOST_CELLS)],
    }


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
    asked = f"model.answer({f'SELECT COUNT(*) AS n FROM {quoted(table)}'!r})"  # noqa: S608 it goes into the file
    code = (load, "print(model.report())", "rows = model.sample(1000)\nrows.head()", asked)
    about = f"Synthetic table of {table}, made for {cost}. Rows and answers cost nothing more."
    body = _notebook_of([("markdown", about), *(("code", each) for each in code)])
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
    against_rows=AgainstRows(
        action="synthesise.run", compare=lambda row, rows: [each.text for each in _read(row.body).compare(rows).parts()]
    ),
    as_table=AsTable(
        columns=lambda row: {each.name: each.domain for each in _read(row.body).columns},
        answer=_answer,
        codes=_codes,
        guarantee=lambda row: _read(row.body).cost,
    ),
    pooled=_pooled,
    files={
        **row_files("synthetic", _rows, lambda view, frame: (len(frame), round(_read(view.row.body).rows))),
        "report": FileKind(
            media_type="text/html; charset=utf-8",
            make=lambda view: File(name=f"report-{view.row.id}.html", body=_page(view.row.body)),
        ),
        "notebook": FileKind(media_type="application/x-ipynb+json", make=_notebook),
        "json": json_file("synthetic", _json),
    },
)


def _notebook_of(cells: Sequence[tuple[str, str]]) -> bytes:
    """A Jupyter notebook (nbformat 4.5) of cells, each `markdown` or `code` with its source.

    >>> told = json.loads(_notebook_of([("markdown", "# People"), ("code", "a = 1\\nb = 2")]))
    >>> told["nbformat"], [each["cell_type"] for each in told["cells"]], told["cells"][1]["outputs"]
    (4, ['markdown', 'code'], [])
    """
    told: list[dict[str, Any]] = [
        {"cell_type": kind, "id": f"cell-{place}", "metadata": {}, "source": source.splitlines(keepends=True)}
        | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        for place, (kind, source) in enumerate(cells)
    ]
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    whole = {"cells": told, "metadata": python, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, ensure_ascii=False, indent=1).encode()
