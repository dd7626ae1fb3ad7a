"""Drawn faces by number of dimensions: who it is, and how far off rebuilt pictures are: as published, and by regression."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from cloister.compress import PCA, drawn_faces
from scripts.curves import COLOURS

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "learn_compressive.py"
DIMENSIONS = (2, 5, 14, 30, 60)


def chart() -> alt.HConcatChart:
    """Recognition on the left, errors on the right."""
    example, faces = runpy.run_path(str(EXAMPLE)), drawn_faces(15, 10)
    pixels, people = faces.pixels * 255, faces.person
    known, others = next(example["splits"](people, 0.3, 1))
    seen, errors = list[dict[str, Any]](), list[dict[str, Any]]()
    for count in DIMENSIONS:
        for name, made in (("PCA", PCA(count)), ("DCA", example["discriminant"](count))):
            made.fit(pixels[known], people[known])
            seen.append({"x": count, "y": example["recognised"](made, pixels, people, known, others), "what": name})
            published = example["errors"](made, pixels, np.arange(len(pixels)))[1]
            for kind, value in (("as published", published), ("regression", example["rebuilt"](made, pixels, known, others))):
                errors.append({"x": count, "y": value, "what": f"{name}, {kind}"})
    return alt.hconcat(_lines(seen, "who it is, accuracy"), _lines(errors, "distance from the picture")).resolve_scale(
        color="independent"
    )


def _lines(points: list[dict[str, Any]], title: str) -> alt.Chart:
    names = list(dict.fromkeys(each["what"] for each in points))
    colour = alt.Color(
        "what:N", title=None, sort=names, scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])),
        legend=alt.Legend(orient="top", columns=2),
    )  # fmt: skip
    x = alt.X("x:Q", title="dimensions", scale=alt.Scale(type="log", nice=False, padding=12))
    base = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=2.5, point=True)
    return base.encode(x=x, y=alt.Y("y:Q", title=title), color=colour).properties(width=260, height=230)
