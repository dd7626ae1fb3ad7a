"""People named in a file of ratings by what is known of them; and members recognised against the accuracy of a model."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import altair as alt

from cloister.learn import LogisticRegression
from scripts.curves import COLOURS

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "learn_famous_attacks.py"
DAYS = {"day within 3": 3.0, "within two weeks": 14.0, "within a year": 365.0}


def chart() -> alt.HConcatChart:
    """Ratings on the left, regularisation on the right."""
    example = runpy.run_path(str(EXAMPLE))
    records = example["ratings"](1000, 1500, 1)
    shares = [
        {"x": known, "y": example["named"](records, known, days=days, tries=60, seed=known)[0], "what": name}
        for name, days in DAYS.items()
        for known in (1, 2, 3, 4, 6, 8)
    ]
    models: list[tuple[str, str, Any]] = [
        *(("penalty", f"{each:g}", lambda each=each: example["penalised"](each)) for each in (0.1, 1, 10, 100)),
        *(("ε", f"ε = {each}", lambda each=each: LogisticRegression(epsilon=each, bounds=(-1, 1))) for each in (1, 10)),
    ]
    points = []
    for what, name, make in models:
        told, accuracy = example["remembered"](make, shadows=16)
        points.append({"x": accuracy, "y": told, "what": what, "name": name})
    return alt.hconcat(_shares(shares), _points(points), spacing=30).resolve_scale(color="independent")


def _shares(points: list[dict[str, Any]]) -> alt.Chart:
    base = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=2.5, point=True)
    y = alt.Y("y:Q", title="share of people named", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    return base.encode(x=alt.X("x:Q", title="ratings known"), y=y, color=_colour(list(DAYS))).properties(width=250, height=230)


def _points(points: list[dict[str, Any]]) -> alt.LayerChart:
    base = alt.Chart(alt.Data(values=points))
    y = alt.Y("y:Q", title="a member is ranked above another", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0.45, 0.8]))
    x = alt.X("x:Q", title="accuracy on others", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0.45, 0.85]))
    dots = base.mark_point(filled=True, size=90).encode(x=x, y=y, color=_colour(["penalty", "ε"]))
    names = base.mark_text(dy=-12).encode(x=x, y=y, text="name:N")
    return (dots + names).properties(width=250, height=230)


def _colour(names: list[str]) -> alt.Color:
    scale = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    return alt.Color("what:N", title=None, sort=names, scale=scale, legend=alt.Legend(orient="top"))
