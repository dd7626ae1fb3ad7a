"""Rows of a release as files: CSV, Parquet, a workbook. They are rows that may leave, whatever they are made of."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from cloister.hub.releases.kinds import File, FileKind, View
from cloister.hub.spreadsheets import csv_pieces
from cloister.hub.workbooks import MEDIA_TYPE, Sheet, workbook

if TYPE_CHECKING:
    from cloister.session import Frame

    Rows = Callable[[View, int], Frame]
    """By the most values, rows times columns, that a file may have."""

MOST_VALUES = 5_000_000
"""Of a file; who has a model draws as many rows as they like."""
MOST_CELLS = 1_000_000
"""Of a workbook: what a spreadsheet opens at ease, and fewer rows than it may have."""
_AT_ONCE = 5_000
_WIDTH = 14


def row_files(stem: str, rows: Rows, whole: Callable[[View, Frame], tuple[int, int]]) -> dict[str, FileKind]:
    """The three files. `stem`: what their names begin with, before the id; `whole`: how many there are in those rows, and about
    how many there would be in all."""

    def named(view: View, ending: str) -> str:
        return f"{stem}-{view.row.id}.{ending}"

    def as_csv(view: View) -> File:
        frame = rows(view, MOST_VALUES)
        texts = ([str(each) if isinstance(each, bool) else each for each in line] for line in _lines(frame))
        return File(name=named(view, "csv"), body=csv_pieces(frame.column_names, texts))

    def as_parquet(view: View) -> File:
        body = io.BytesIO()
        rows(view, MOST_VALUES).to_polars().write_parquet(body)
        return File(name=named(view, "parquet"), body=body.getvalue())

    def as_workbook(view: View) -> File:
        _, row = view.language.gettext, view.row
        frame = rows(view, MOST_CELLS)
        drawn, known = whole(view, frame)
        cut = _("{drawn} of about {known}; the model draws more").format(drawn=f"{drawn:,}", known=f"{known:,}")
        facts = [
            (_("Title"), row.title or named(view, "xlsx")),
            (_("Made of"), str(row.details.get("table", ""))),
            *((_("Guarantee for {population}").format(population=name), cost) for name, cost in row.cost.items()),
            (_("Purpose"), row.purpose),
            (_("Drawn"), cut if drawn < known else ""),
        ]
        widths = dict.fromkeys(range(len(frame.column_names)), _WIDTH)
        made = [
            Sheet(name=_("Rows"), head=frame.column_names, rows=_lines(frame), widths=widths),
            Sheet(name=_("Provenance"), rows=[each for each in facts if each[1]], widths={0: 28, 1: 60}),
        ]
        return File(name=named(view, "xlsx"), body=workbook(made))

    return {
        "csv": FileKind(media_type="text/csv; charset=utf-8", make=as_csv),
        "parquet": FileKind(media_type="application/vnd.apache.parquet", make=as_parquet),
        "xlsx": FileKind(media_type=MEDIA_TYPE, make=as_workbook),
    }


def _lines(rows: Frame) -> Iterator[tuple[Any, ...]]:
    """Row by row; not all at once, since values of Python take more room than columns."""
    for start in range(0, len(rows), _AT_ONCE):
        parts = [series.values[start : start + _AT_ONCE].tolist() for series in rows.columns.values()]
        yield from zip(*parts, strict=True)
