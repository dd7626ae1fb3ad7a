"""The picture of a trial: what is lost against how easily people are found, for each choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10
from string import ascii_uppercase
from typing import Any

from cloister.hub.services.anonymizing.labels import SIZE, Label, Point, placed
from cloister.hub.web.pictures import INK, LINE, MAIN, SOFT, svg_of

_WIDTH, _HEIGHT, _EDGE = 520, 280, 28
"""In pixels; and how far the outermost points are from the edge."""
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
    values = [{"name": words["raw"], "of": "raw", "risk": max(before["marketer"], _LEAST), "loss": 0.0}]
    for of in ("k", "levels"):
        series = [
            {"name": name, "of": of, "risk": max(each["marketer"], _LEAST), "loss": each["loss"]}
            for name, each in drawn
            if each["of"] == of
        ]
        values += _merged(series)
    plane = _Plane.of(values)
    labels = _labels(values, plane)
    leads = [each for each in labels if "x2" in each]
    ticks = [step * 10.0**power for power in range(-6, 1) for step in (1, 3)]
    risk = alt.Axis(format=".1~p", values=ticks, labelFontSize=SIZE, titleFontSize=SIZE, gridOpacity=0.5, titlePadding=10)
    loss = alt.Axis(format="%", tickCount=5, labelFontSize=SIZE, titleFontSize=SIZE, gridOpacity=0.5)
    across = alt.Scale(type="log", domain=list(plane.risk), nice=False)
    up = alt.Scale(domain=[0, plane.loss], nice=False)
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("risk:Q", title=words["risk"], axis=risk, scale=across),
        y=alt.Y("loss:Q", title=words["loss"], axis=loss, scale=up),
    )
    named_ones = alt.Chart(alt.Data(values=labels)).encode(x="x:Q", y="y:Q", text="name:N")
    led = alt.Chart(alt.Data(values=leads)).encode(x="from_x:Q", y="from_y:Q", x2="x2:Q", y2="y2:Q")
    by_k, by_levels, raw = (base.transform_filter(f"datum.of == '{each}'") for each in ("k", "levels", "raw"))
    layers = [
        led.mark_rule(color=SOFT, strokeWidth=0.75),
        by_levels.mark_line(color=LINE, strokeWidth=2),
        by_k.mark_line(color=MAIN, strokeWidth=2),
        by_levels.mark_point(color=SOFT, filled=True, size=55, opacity=1, shape="diamond"),
        by_k.mark_point(color=MAIN, filled=True, size=70, opacity=1),
        raw.mark_point(color=INK, size=60, opacity=1),
        *(
            named_ones.transform_filter(f"(datum.of == 'levels') == {told}").mark_text(
                align="left", baseline="middle", color=colour, fontSize=SIZE
            )
            for told, colour in (("true", SOFT), ("false", INK))
        ),
    ]
    return svg_of(alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT))


@dataclass(frozen=True)
class _Plane:
    """From risk and loss to pixels and back.

    >>> plane = _Plane((0.01, 1.0), 0.5)
    >>> plane.at(0.1, 0.25), plane.back((260.0, 140.0))
    ((260.0, 140.0), (0.1, 0.25))
    """

    risk: tuple[float, float]
    """Those at the left and at the right edge."""
    loss: float
    """That at the upper edge."""

    @staticmethod
    def of(values: Sequence[Mapping[str, Any]]) -> _Plane:
        logs = [log10(each["risk"]) for each in values]
        spare = max(max(logs) - min(logs), 0.1) * _EDGE / (_WIDTH - 2 * _EDGE)
        return _Plane(
            (10 ** (min(logs) - spare), 10 ** (max(logs) + spare)), max(0.02, 1.1 * max(each["loss"] for each in values))
        )

    def at(self, risk: float, loss: float) -> Point:
        low, high = map(log10, self.risk)
        return _WIDTH * (log10(risk) - low) / (high - low), _HEIGHT * (1 - loss / self.loss)

    def back(self, point: Point) -> tuple[float, float]:
        low, high = map(log10, self.risk)
        return 10 ** (low + (high - low) * point[0] / _WIDTH), self.loss * (1 - point[1] / _HEIGHT)


def _labels(values: Sequence[Mapping[str, Any]], plane: _Plane) -> list[dict[str, Any]]:
    """The names with their places, and the ends of the lines that lead to them."""
    points = [plane.at(each["risk"], each["loss"]) for each in values]
    pairs = zip(range(len(values)), range(1, len(values)), strict=False)
    lines = [(points[one], points[other]) for one, other in pairs if values[one]["of"] == values[other]["of"]]

    def told(label: Label) -> dict[str, Any]:
        x, y = plane.back((label.box.left, (label.box.top + label.box.bottom) / 2))
        found = {"name": label.text, "of": values[label.of]["of"], "x": x, "y": y}
        if label.lead is not None:
            (from_x, from_y), (x2, y2) = (plane.back(end) for end in label.lead)
            found |= {"from_x": from_x, "from_y": from_y, "x2": x2, "y2": y2}
        return found

    return [told(each) for each in placed(points, [each["name"] for each in values], lines, _WIDTH, _HEIGHT)]


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
