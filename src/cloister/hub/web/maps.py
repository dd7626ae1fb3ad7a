"""The map of an answer: each cell or region in the shade of its number, drawn from public outlines alone, with no tiles from
elsewhere.

A cell is called by its centre, so the cells of a grid follow from the names in the answer; a region's border stands in a public
declaration. What cannot be told from 0 is an outline without a shade; what is below 0 has a colour of its own. A map shows the
numbers of the table beside it, which is the one to read for their margins.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from cloister.hub.web.formats import number
from cloister.hub.web.languages import Language
from cloister.hub.web.pictures import INK, MAIN, SOFT
from cloister.printable import escape
from cloister.session import Release
from cloister.session.releases.chart import drawable
from cloister.session.releases.drawing import clean
from cloister.tables import Place
from cloister.tables.declaring.regions import OUTSIDE, PARTS

MOST_AREAS, SHADES = 4000, 5
_CENTRE = re.compile(r"(-?\d{1,3}\.\d{6}) (-?\d{1,2}\.\d{6})")
_WIDTH, _TALLEST = 600, 600
_ABOVE, _LINE, _ON_A_LINE = 36, 18, 95
_BELOW = "#c08a2b"

Outline = list[list[tuple[float, float]]]
"""Rings of longitudes and latitudes."""
Line = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Area:
    """One cell or region: its outline in the picture, its name and number, and its shade; 0 where it cannot be told from 0."""

    path: str
    name: str
    value: float
    margin: float
    shade: int


@dataclass(frozen=True, kw_only=True)
class Map:
    """A picture of so many units, of one number; what is outside stands in words."""

    width: int
    height: int
    statistic: str
    areas: Sequence[Area]
    outside: tuple[float, float] | None
    missing: tuple[float, float] | None
    """Of the rows whose place is NULL."""
    lines: Sequence[str] = ()
    """Public outlines besides: roads, borders."""
    ways: Sequence[str] = ()
    """Journeys that were drawn."""


def map_of(release: Release, confidence: float, places: Iterable[Place], *, joint: bool = False) -> Map | None:
    """The map of an answer with one key, which is a grid's cell or a declared region; None for any other.

    >>> from cloister.session.examples import small_release
    >>> map_of(small_release(), 0.95, []) is None
    True
    """
    keys = [name for name in release.column_names if name not in release.statistics()]
    numbers = [name for name in drawable(release) if release.take(range(0)).table.columns[name].kind != "date"]
    if len(keys) != 1 or not numbers or not 2 <= release.num_rows <= MOST_AREAS:
        return None
    names = release.table.columns[keys[0]].tolist()
    outlines = _outlines([name for name in names if isinstance(name, str)], places)
    if outlines is None:
        return None
    values = release.table.columns[numbers[0]].tolist()
    margins = [float(each) for each in release.margin(confidence, joint=joint).columns[numbers[0]].tolist()]
    told = {name: (value, margin) for name, value, margin in zip(names, values, margins, strict=True) if value is not None}
    return shaded(outlines, told, numbers[0], outside=told.get(OUTSIDE), missing=told.get(None))


def shaded(
    outlines: Mapping[str, Outline],
    told: Mapping[Any, tuple[float, float]],
    statistic: str,
    *,
    outside: tuple[float, float] | None = None,
    missing: tuple[float, float] | None = None,
    lines: Sequence[Line] = (),
    ways: Sequence[Line] = (),
    earth: bool = True,
) -> Map:
    """Areas in the shade of their numbers, by name, each with its margin; `lines` are public outlines, `ways` what is drawn over
    them. `earth`: degrees; otherwise metres of a plane.

    >>> square = [[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]]
    >>> shaded({"a": square}, {"a": (7.0, 1.0)}, "n", ways=[[(0.0, 0.0), (1.0, 1.0)]]).ways
    ['M0.0 600.0L600.0 0.0']
    """
    sizes = [abs(float(told[name][0])) for name in outlines if name in told]
    highest = max(filter(math.isfinite, sizes), default=0.0) or 1.0
    frame = _Frame.around(outlines.values(), earth=earth)
    areas = []
    for name, rings in outlines.items():
        if name in told:
            value, margin = told[name]
            share = min(abs(float(value)) / highest, 1.0)
            shade = min(math.floor(SHADES * share) + 1, SHADES) if abs(value) > margin else 0
            areas.append(Area(path=frame.path(rings), name=name, value=value, margin=margin, shade=shade))
    return Map(
        width=frame.width,
        height=frame.height,
        statistic=statistic,
        areas=areas,
        outside=outside,
        missing=missing,
        lines=[frame.line(each) for each in lines],
        ways=[frame.line(each) for each in ways],
    )


def said_beside(drawn: Map, language: Language) -> list[str]:
    """What the map does not show, in sentences.

    >>> from cloister.hub.web.languages import language_of
    >>> one = Map(width=9, height=9, statistic="n", areas=[], outside=None, missing=(1200.0, 1.0))
    >>> said_beside(one, language_of("en"))[-1]
    'NULL: 1,200 ± 1.'
    """
    _, locale = language.gettext, language.locale
    clear = [each.value for each in drawn.areas if each.shade]
    told = []
    if max(clear, default=0) > 0:
        told.append(_("The darkest areas have up to {most}.").format(most=number(max(clear), locale)))
    if min(clear, default=0) < 0:
        told.append(_("Areas in ochre are below 0, down to {least}.").format(least=number(min(clear), locale)))
    told.append(_("An outline without a shade has no number that can be told from 0."))
    for words, cell in ((_("Outside: {value} ± {margin}."), drawn.outside), (_("NULL: {value} ± {margin}."), drawn.missing)):
        if cell is not None:
            told.append(words.format(value=number(cell[0], locale), margin=number(cell[1], locale)))
    return told


def map_svg(drawn: Map, title: str, below: Sequence[str], language: Language) -> str:
    """The map as a file of its own, on white: a title above it, and sentences below.

    >>> from cloister.hub.web.languages import language_of
    >>> area = Area(path="M0 0L9 0L9 9Z", name="a & b", value=7.0, margin=1.0, shade=5)
    >>> one = Map(width=9, height=9, statistic="n", areas=[area], outside=None, missing=None)
    >>> "<title>a &amp; b: 7 ± 1</title>" in map_svg(one, "n by town", [], language_of("en"))
    True
    """
    width, locale = max(drawn.width, _WIDTH), language.locale
    lines = [line for sentence in below for line in textwrap.wrap(clean(sentence), _ON_A_LINE)]
    height = drawn.height + _ABOVE + _LINE * (len(lines) + 1)
    paths = (
        f'<path d="{each.path}" fill="{"none" if not each.shade else MAIN if each.value > 0 else _BELOW}" '
        f'fill-opacity="{each.shade / SHADES:g}">'
        f"<title>{escape(clean(each.name))}: {number(each.value, locale)} ± {number(each.margin, locale)}</title></path>"
        for each in drawn.areas
    )
    drawn_lines = [*((each, 0.3, 0.6) for each in drawn.lines), *((each, 0.7, 1.2) for each in drawn.ways)]
    strokes = (f'<path d="{each}" stroke-opacity="{dark}" stroke-width="{wide}"/>' for each, dark, wide in drawn_lines)
    texts = (
        f'<text x="8" y="{drawn.height + _ABOVE + _LINE * place}" font-size="12" fill="{SOFT}">{escape(line)}</text>'
        for place, line in enumerate(lines, 1)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 16}" height="{height}" viewBox="0 0 {width + 16} {height}" '
        'font-family="sans-serif"><rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="8" y="20" font-size="14" font-weight="bold" fill="{INK}">{escape(clean(title))}</text>'
        f'<g transform="translate(8 {_ABOVE - 4})" fill-rule="evenodd" stroke="{MAIN}" stroke-width="0.5">{"".join(paths)}</g>'
        f'<g transform="translate(8 {_ABOVE - 4})" fill="none" stroke="{INK}">'
        f"{''.join(strokes)}</g>{''.join(texts)}</svg>"
    )


def _outlines(names: Sequence[str], places: Iterable[Place]) -> dict[str, Outline] | None:
    """The outline of each area by its name; none where the names are neither cells nor the regions of a place."""
    wanted = [name for name in names if name != OUTSIDE]
    if not wanted:
        return None
    centres = [_CENTRE.fullmatch(name) for name in wanted]
    if all(centres):
        return _cells(wanted, [(float(each[1]), float(each[2])) for each in centres if each is not None])
    for place in places:
        known = {region.name: region for region in place.regions}
        if set(wanted) <= known.keys():
            rings = {name: known[name].rings for name in wanted}
            return {name: [[(x / PARTS, y / PARTS) for x, y in ring] for ring in each] for name, each in rings.items()}
    return None


def _cells(names: Sequence[str], centres: Sequence[tuple[float, float]]) -> dict[str, Outline] | None:
    """Each cell reaches half way to the next centre."""
    steps = []
    for axis in (0, 1):
        lines = sorted({centre[axis] for centre in centres})
        steps.append(median(high - low for low, high in pairwise(lines)) if len(lines) > 1 else 0.0)
    if not any(steps):
        return None
    middle = math.cos(math.radians(centres[0][1]))
    across = steps[0] or steps[1] / max(middle, 1e-3)
    up = steps[1] or steps[0] * middle
    return {
        name: [[(x + i * across / 2, y + j * up / 2) for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]]
        for name, (x, y) in zip(names, centres, strict=True)
    }


@dataclass(frozen=True)
class _Frame:
    """Degrees as units of the picture: a degree of longitude is as much shorter as it is in the middle."""

    west: float
    north: float
    across: float
    up: float
    width: int
    height: int

    @classmethod
    def around(cls, outlines: Iterable[Outline], *, earth: bool = True) -> _Frame:
        corners = [corner for rings in outlines for ring in rings for corner in ring]
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        west, south, east, north = min(xs), min(ys), max(xs), max(ys)
        squeeze = max(math.cos(math.radians((south + north) / 2)), 1e-3) if earth else 1.0
        scale = min(_WIDTH / ((east - west) * squeeze), _TALLEST / (north - south))
        return cls(
            west,
            north,
            scale * squeeze,
            scale,
            max(math.ceil((east - west) * squeeze * scale), 1),
            max(math.ceil((north - south) * scale), 1),
        )

    def path(self, rings: Outline) -> str:
        return "".join(self.line(ring) + "Z" for ring in rings)

    def line(self, corners: Line) -> str:
        return "M" + "L".join(f"{(x - self.west) * self.across:.1f} {(self.north - y) * self.up:.1f}" for x, y in corners)
