"""Where the names of points go in a picture: beside their points, on no other name and on no other point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin
from typing import TypeAlias
from unicodedata import east_asian_width

SIZE = 12.0
"""Of the letters, in pixels."""
_HEIGHT, _GAP = 14.0, 3.0
_RADII = (6.0, 9.0, 13.0, 19.0, 27.0, 37.0, 50.0, 66.0, 85.0, 110.0, 140.0)
_LEADS = 13.0
"""From this distance on a line leads from a name to its point."""
_ANGLES = tuple(pi * each / 8 for each in (-1, 1, -3, 3, 7, 5, -5, -7, 0, 8, -4, 4, -2, 2, 6, -6))
"""Around a point, in the order in which places as good as each other are taken."""
_WIDTHS = {
    **dict.fromkeys(" ,.:;'|", 0.45),
    **dict.fromkeys("mwMW%", 1.0),
    **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ=+<>", 0.85),
}

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
        """Whether a line goes through it: looked at every two pixels."""
        (x, y), (to_x, to_y) = segment
        steps = max(1, int(hypot(to_x - x, to_y - y) / 2))
        at = ((x + (to_x - x) * step / steps, y + (to_y - y) * step / steps) for step in range(steps + 1))
        return any(self.left < one < self.right and self.top < other < self.bottom for one, other in at)


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
            middle = edge_y + _HEIGHT / 2 * sin(angle)
            box = Box(left, middle - _HEIGHT / 2, left + long, middle + _HEIGHT / 2)
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
