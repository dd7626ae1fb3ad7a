"""The picture of a trial: what is lost against how easily people are found, for each choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, hypot, log10, pi, sin
from string import ascii_uppercase
from typing import Any, TypeAlias
from unicodedata import east_asian_width

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


SIZE = 12.0
"""Of the letters, in pixels."""
_LETTERS, _GAP = 14.0, 3.0
_RADII = (6.0, 9.0, 13.0, 19.0, 27.0, 37.0, 50.0, 66.0, 85.0, 110.0, 140.0)
_LEADS = 13.0
"""From this distance on a line leads from a name to its point."""
_ANGLES = tuple(pi * each / 8 for each in (-1, 1, -3, 3, 7, 5, -5, -7, 0, 8, -4, 4, -2, 2, 6, -6))
"""Around a point, in the order in which places as good as each other are taken."""
_WIDTHS = {**dict.fromkeys(" ,.:;'|", 0.45), **dict.fromkeys("mwMW%", 1.0), **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ=+<>", 0.85)}

Point: TypeAlias = tuple[float, float]
Segment: TypeAlias = tuple[Point, Point]


@dataclass(frozen=True)
class Box:
    """A rectangle, in pixels; y grows downwards.

    >>> Box(0, 0, 10, 10).meets(Box(9, 9, 20, 20)), Box(0, 0, 10, 10).meets(Box(10, 0, 20, 10))
    (True, False)
    """

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether they share more than an edge."""
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def crossed(self, segment: Segment) -> bool:
        """Whether a line goes through its inside."""
        begin, end = 0.0, 1.0  # the part of the line that may be inside
        for low, high, at, to in zip((self.left, self.top), (self.right, self.bottom), *segment, strict=True):
            if at == to:
                end = end if low < at < high else 0.0
            else:
                one, other = (low - at) / (to - at), (high - at) / (to - at)
                begin, end = max(begin, min(one, other)), min(end, max(one, other))
        return begin < end


@dataclass(frozen=True)
class Label:
    """A name with its place: of its left edge, half way up."""

    text: str
    of: int
    """Which point it names."""
    box: Box
    lead: Segment | None
    """The line to its point, where it is far from it."""


def width_of(text: str, size: float = SIZE) -> float:
    """How wide a text is at most, in a plain typeface.

    >>> width_of("k = 50") < width_of("k = 50, 100") < width_of("WWWWWWWWWWW")
    True
    """
    return size * sum(1.0 if east_asian_width(each) in "WF" else _WIDTHS.get(each, 0.62) for each in text)


def placed(points: Sequence[Point], names: Sequence[str], lines: Sequence[Segment], width: float, height: float) -> list[Label]:
    """A place for each name that is not empty: within the picture, near its point, off every other name and every point.

    The widest are placed first. A place off the lines is taken before one nearer to the point, and one whose lead crosses a name
    only where there is no other. A name for which there is no room is left out: whoever draws has the names beside the picture.

    >>> one, other = placed([(50, 50), (52, 51)], ["A", "B"], [], 99, 99)
    >>> one.box.meets(other.box)
    False
    """
    marks = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    taken: list[Label] = []
    for of in sorted(range(len(points)), key=lambda place: (-width_of(names[place]), points[place])):
        if not names[of]:
            continue
        free = [found for found in _around(points[of], names[of], of, width, height) if not _on(found, marks, taken)]
        here = [found for found in free if not _tangled(found, of, marks, taken)] or free
        best = min(here, key=lambda found: _worse(found, points[of], lines), default=None)
        if best is not None:
            taken.append(best)
    return sorted(taken, key=lambda each: each.of)


def _around(point: Point, text: str, of: int, width: float, height: float) -> list[Label]:
    """Every place that is looked at for a name, the nearest first, within the picture."""
    x, y = point
    long = width_of(text)
    found = []
    for radius in _RADII:
        for angle in _ANGLES:
            edge_x, edge_y = x + radius * cos(angle), y + radius * sin(angle)
            left = edge_x - long * (1 - cos(angle)) / 2
            middle = edge_y + _LETTERS / 2 * sin(angle)
            box = Box(left, middle - _LETTERS / 2, left + long, middle + _LETTERS / 2)
            if box.left >= 0 and box.right <= width and box.top >= 0 and box.bottom <= height:
                found.append(Label(text, of, box, (point, (edge_x, edge_y)) if radius >= _LEADS else None))
    return found


def _on(found: Label, marks: Sequence[Box], taken: Sequence[Label]) -> bool:
    """Whether it is on another name, or on a point."""
    wide = Box(found.box.left - _GAP, found.box.top - _GAP, found.box.right + _GAP, found.box.bottom + _GAP)
    return any(wide.meets(each.box) for each in taken) or any(found.box.meets(each) for each in marks)


def _tangled(found: Label, of: int, marks: Sequence[Box], taken: Sequence[Label]) -> bool:
    """Whether a lead goes through a name or through a point that it does not name."""
    if any(found.box.crossed(each.lead) for each in taken if each.lead is not None):
        return True
    return found.lead is not None and (
        any(each.box.crossed(found.lead) for each in taken)
        or any(mark.crossed(found.lead) for place, mark in enumerate(marks) if place != of and not mark.meets(marks[of]))
    )


def _worse(found: Label, point: Point, lines: Sequence[Segment]) -> float:
    """How far it is, and how many lines go through it."""
    x = min(max(point[0], found.box.left), found.box.right)
    y = min(max(point[1], found.box.top), found.box.bottom)
    return hypot(x - point[0], y - point[1]) + 25.0 * sum(found.box.crossed(each) for each in lines)
