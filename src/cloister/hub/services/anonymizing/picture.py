"""The picture of a trial: what is lost against how easily somebody is found, for each k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cloister.hub.services.asking.charts import INK, MAIN, svg_of

__all__ = ["frontier_svg"]


def frontier_svg(points: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> str:
    """As SVG, in the page's colours; empty where there is less than a line to draw."""
    import altair as alt

    values = [
        {"k": f"k = {each['k']}", "risk": each["prosecutor"], "mean": each["marketer"], "loss": each["loss"]}
        for each in points
        if "loss" in each
    ]
    if len(values) < 2:
        return ""
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("risk:Q", title=words["risk"], axis=alt.Axis(format="%")),
        y=alt.Y("loss:Q", title=words["loss"], axis=alt.Axis(format="%"), scale=alt.Scale(zero=True)),
    )
    line = base.mark_line(color=MAIN, point=alt.OverlayMarkDef(color=MAIN, size=60))
    names = base.mark_text(dy=-12, color=INK, fontSize=12).encode(text="k:N")
    return svg_of(alt.layer(line, names).properties(width=460, height=260))
