"""The picture of a trial: what is lost against how easily people are found, for each choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from string import ascii_uppercase
from typing import Any

from cloister.hub.services.asking.charts import INK, LINE, MAIN, SOFT, svg_of

__all__ = ["frontier_svg", "named"]

_LEAST = 1e-6
"""A risk below this is drawn as this: the axis has ratios."""


def named(points: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Each choice with what it is called on the page: its k, or a letter.

    >>> [name for name, _ in named([{"of": "k", "k": 5}, {"of": "levels", "k": 5}, {"of": "levels", "k": 5}])]
    ['k = 5', 'A', 'B']
    """
    letters = iter(ascii_uppercase)
    return [(f"k = {each['k']}" if each["of"] == "k" else next(letters), each) for each in points]


def frontier_svg(points: Sequence[Mapping[str, Any]], before: Mapping[str, Any], words: Mapping[str, str]) -> str:
    """As SVG, in the page's colours; empty where there is nothing to compare.

    `words` name the axes (`risk`, `loss`) and the rows as they are (`raw`).
    """
    import altair as alt

    drawn = [(name, each) for name, each in named(points) if "loss" in each]
    if len(drawn) < 2:
        return ""
    raw_risk = max(before["marketer"], _LEAST)
    values = [{"name": words["raw"], "of": "raw", "risk": raw_risk, "loss": 0.0}]
    for of in ("k", "levels"):
        series = [
            {"name": name, "of": of, "risk": max(each["marketer"], _LEAST), "loss": each["loss"]}
            for name, each in drawn
            if each["of"] == of
        ]
        values += _merged(series)
    ticks = [step * 10.0**power for power in range(-6, 1) for step in (1, 3)]
    risk = alt.Axis(format=".1~p", values=ticks, labelFontSize=12, titleFontSize=12, gridOpacity=0.5, titlePadding=10)
    loss = alt.Axis(format="%", tickCount=5, labelFontSize=12, titleFontSize=12, gridOpacity=0.5)
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("risk:Q", title=words["risk"], axis=risk, scale=alt.Scale(type="log", padding=28, nice=False)),
        y=alt.Y("loss:Q", title=words["loss"], axis=loss, scale=alt.Scale(zero=True)),
    )
    by_k, by_levels, raw = (base.transform_filter(f"datum.of == '{each}'") for each in ("k", "levels", "raw"))
    layers = [
        by_levels.mark_line(color=LINE, strokeWidth=2),
        by_k.mark_line(color=MAIN, strokeWidth=2),
        by_levels.mark_point(color=SOFT, filled=True, size=55, opacity=1, shape="diamond"),
        by_k.mark_point(color=MAIN, filled=True, size=70, opacity=1),
        raw.mark_point(color=INK, size=60, opacity=1),
        by_levels.mark_text(dx=-7, dy=9, align="right", color=SOFT, fontSize=12).encode(text="name:N"),
        by_k.mark_text(dx=5, dy=-11, align="left", color=INK, fontSize=12).encode(text="name:N"),
        raw.mark_text(dy=-13, color=INK, fontSize=12).encode(text="name:N"),
    ]
    return svg_of(alt.layer(*layers).properties(width=520, height=280))


def _merged(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points that stand on one another get one label.

    >>> close = [{"name": f"k = {k}", "risk": 0.01 - k / 1e5, "loss": 0.1} for k in (2, 3)]
    >>> [each["name"] for each in _merged(close)]
    ['k = 2, 3', '']
    """
    found: list[dict[str, Any]] = []
    last: dict[str, Any] | None = None
    for point in series:
        if last is not None and abs(log10(last["risk"] / point["risk"])) < 0.12 and abs(last["loss"] - point["loss"]) < 0.03:
            last["name"] += ", " + point["name"].removeprefix("k = ")
            found.append({**point, "name": ""})
        else:
            last = dict(point)
            found.append(last)
    return found
