"""Anatomy's two tables: twelve employees as they are, and the reasons of absence; only the number of a group joins them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import altair as alt

from cloister.noise import Random

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "learn_sanitising.py"
COLOURS = ["#3f6c8f", "#c9714f", "#6b8e4e", "#8a5a83"]


def chart() -> alt.HConcatChart:
    """The tables as tables, the rows of a group in one colour."""
    pieces = runpy.run_path(str(EXAMPLE))["torn"](Random.deterministic(20))
    return alt.hconcat(
        table(pieces.quasi, ["age", "sex", "town", "group"], "who", 60),
        table(pieces.sensitive, ["group", "absent", "count"], "what", 80),
        spacing=60,
    )


def table(columns: dict[str, list[Any]], names: list[str], title: str, width: int) -> alt.LayerChart:
    """A table whose rows have the colour of their group."""
    cells = [
        {"column": name, "row": row, "text": str(columns[name][row]), "group": columns["group"][row]}
        for name in names
        for row in range(len(columns["group"]))
    ]
    base = alt.Chart(alt.Data(values=cells), title=title).encode(
        x=alt.X("column:N", sort=names, title=None, axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False)),
        y=alt.Y("row:O", axis=None),
    )
    boxes = base.mark_rect(opacity=0.3, stroke="white").encode(
        color=alt.Color("group:N", scale=alt.Scale(domain=[0, 1, 2, 3], range=COLOURS), legend=None)
    )
    return (boxes + base.mark_text().encode(text="text:N")).properties(width=width * len(names), height=264)
