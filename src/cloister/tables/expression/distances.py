"""Boxes, circles and the nearest region of a place: whole numbers compared, so that every engine finds the same.

A box is compared with the column and the row of the place on its lattice. Distances are those of a plane on which a degree of
longitude is as long as in the middle of the declared box. Both coordinates are whole metres, rounded down, of the place and of
all public points alike; squares of them fit 64 bits on the whole earth. A place beyond the declared box lies in no circle and no
box, and its nearest region is `outside`: where it is, is not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Literal

from cloister.errors import UnsupportedQuery
from cloister.tables.declaring.places import METRES, Place
from cloister.tables.declaring.regions import OUTSIDE, PARTS, Region
from cloister.tables.expression.arithmetic import as_number
from cloister.tables.expression.forms import Form, Interval, Listed, integers
from cloister.tables.expression.operations import Operations
from cloister.tables.expression.places import Border, lattice, located, regional, unless_outside
from cloister.tables.expression.scalar import Domains, Scalar
from cloister.tables.expression.scope import Scope

_BITS = 20
_FARTHEST = 20_000_000
_AN_EDGE = 40
"""Operations that the distance to an edge is written with, besides those of its coordinates."""


@dataclass(frozen=True)
class Metres(Scalar):
    """How far a place is east ("across") or north ("up") of the south-western corner of its box, in whole metres.

    >>> from cloister.tables.expression.scalars import Ref
    >>> Metres("up", Ref("place")).domain({"place": Place((4.2, 51.9, 4.5, 52.1))})
    Integer(low=0, high=22238, nullable=False)
    """

    stored: ClassVar[str] = "metres"

    axis: Literal["across", "up"]
    x: Scalar

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A whole number."""
        x = located(self.x, domains)
        which = ("across", "up").index(self.axis)
        factor, last = _factors(x.place)[which], (x.place.columns, x.place.rows - 1)[which]

        def build(scope: Scope) -> Any:
            ops = scope.operations
            return ops.quotient(lattice(ops, x.build(scope), x.place.rows)[which] * factor, ops.whole(1 << _BITS), wide=False)

        return integers(0, last * factor >> _BITS, build, x, weight=x.weight + 5)


@dataclass(frozen=True)
class InBox(Scalar):
    """Whether a place lies between two longitudes and two latitudes: from the lower ones on, and below the upper ones."""

    stored: ClassVar[str] = "inbox"

    x: Scalar
    column: Scalar
    row: Scalar
    west: Fraction
    south: Fraction
    east: Fraction
    north: Fraction

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A truth value."""
        x = located(self.x, domains)
        column, row = (as_number(each.form(domains)) for each in (self.column, self.row))
        _check_degrees((self.west, self.east), (self.south, self.north))
        if not (self.west < self.east and self.south < self.north):
            raise UnsupportedQuery(
                "ST_MakeEnvelope is not supported",
                why="its west is not less than its east, or its south not less than its north",
                instead="ST_MakeEnvelope(4.3, 52.0, 4.4, 52.1): west, south, east, north",
            )
        west, east = (math.ceil(each * PARTS) - x.place.west for each in (self.west, self.east))
        south, north = (math.ceil(each * PARTS) - x.place.south for each in (self.south, self.north))

        def build(scope: Scope) -> Any:
            ops, at = scope.operations, x.build(scope)
            across, up = column.build(scope), row.build(scope)
            there = (across >= ops.whole(west)) & (across < ops.whole(east))
            return unless_outside(ops, at, x.place, there & (up >= ops.whole(south)) & (up < ops.whole(north)))

        weight = 16 + x.weight + 2 * (column.weight + row.weight)
        return Listed(options=(False, True), build=build, nullable=x.nullable, weight=weight)


@dataclass(frozen=True)
class Near(Scalar):
    """Whether a place lies at most so many metres from a point. `across` and `up` are its `Metres`."""

    stored: ClassVar[str] = "near"

    x: Scalar
    across: Scalar
    up: Scalar
    longitude: Fraction
    latitude: Fraction
    metres: Fraction

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A truth value."""
        x = located(self.x, domains)
        across, up = (as_number(each.form(domains)) for each in (self.across, self.up))
        _check_degrees((self.longitude,), (self.latitude,))
        if not 1 <= self.metres <= _FARTHEST:
            raise UnsupportedQuery(
                "ST_DWithin is not supported",
                why="a distance is 1 to 20,000,000 metres",
                instead="ST_DWithin(place, ST_Point(4.36, 52.01), 500)",
            )
        point = _in_metres(x.place, math.floor(self.longitude * PARTS), math.floor(self.latitude * PARTS))
        reach = math.floor(self.metres) ** 2

        def build(scope: Scope) -> Any:
            ops, at = scope.operations, x.build(scope)
            apart = _squared(ops, across.build(scope), up.build(scope), point)
            return unless_outside(ops, at, x.place, apart <= ops.whole(reach))

        weight = 20 + x.weight + 2 * (across.weight + up.weight)
        return Listed(options=(False, True), build=build, nullable=x.nullable, weight=weight)


@dataclass(frozen=True)
class NearestRegion(Scalar):
    """The declared region whose border is nearest, or in which a place lies; of several the first.

    `column` and `row` are its `Lattice`, `across` and `up` its `Metres`.
    """

    stored: ClassVar[str] = "nearest"

    x: Scalar
    column: Scalar
    row: Scalar
    across: Scalar
    up: Scalar

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A list of all regions, and outside."""
        x = regional(self.x, domains)
        border = Border.of(x, self.column, self.row, domains)
        across, up = (as_number(each.form(domains)) for each in (self.across, self.up))
        regions = x.place.regions

        def build(scope: Scope) -> Any:
            """The least of distance times number of regions plus the number of the region: what is left over says which."""
            ops, at = scope.operations, x.build(scope)
            here, keys = (across.build(scope), up.build(scope)), []
            for number, region in enumerate(regions):
                apart = [_to_edge(ops, *here, edge) for edge in _edges(x.place, region)]
                nearest = apart[0] if len(apart) == 1 else ops.least(apart)
                far = ops.chosen([(border.inside(scope, region), ops.whole(0))], nearest)
                keys.append(far * ops.whole(len(regions)) + ops.whole(number))
            best = keys[0] if len(keys) == 1 else ops.least(keys)
            found = ops.remainder(best, ops.whole(len(regions)))
            return ops.chosen([(at == x.place.outside, ops.whole(len(regions))), (at.notnull(), found)], ops.nothing())

        edges = sum(len(_edges(x.place, region)) for region in regions)
        weight = border.weight(regions) + edges * (_AN_EDGE + 8 * (across.weight + up.weight))
        return Listed(options=(*(each.name for each in regions), OUTSIDE), build=build, nullable=x.nullable, weight=weight)


def _factors(place: Place) -> tuple[int, int]:
    """Metres in a point of the lattice, east and north, in units of 2⁻²⁰."""
    up = METRES * 2**_BITS / PARTS
    middle = math.radians((place.south + place.north) / 2 / PARTS)
    return max(round(up * math.cos(middle)), 1), round(up)


def _in_metres(place: Place, x: int, y: int) -> tuple[int, int]:
    """A public point, in millionths of a degree, as the place's own are."""
    across, up = _factors(place)
    return (x - place.west) * across >> _BITS, (y - place.south) * up >> _BITS


def _edges(place: Place, region: Region) -> list[tuple[int, int, int, int]]:
    """The edges of a border in metres, without those that are too short to have a length."""
    rings = [[_in_metres(place, x, y) for x, y in ring] for ring in region.rings]
    found = [(*a, *b) for ring in rings for a, b in pairwise((*ring, ring[0])) if a != b]
    return found or [(*rings[0][0], *rings[0][0])]


def _squared(ops: Operations, across: Any, up: Any, point: tuple[int, int]) -> Any:
    x, y = across - ops.whole(point[0]), up - ops.whole(point[1])
    return x * x + y * y


def _to_edge(ops: Operations, across: Any, up: Any, edge: tuple[int, int, int, int]) -> Any:
    """The square of the distance to an edge: to its nearer end, or, where the place lies beside it, along the perpendicular,
    whose length is rounded down."""
    a, b, c, d = edge
    wide, high = c - a, d - b
    square = wide * wide + high * high
    start = _squared(ops, across, up, (a, b))
    if not square:
        return start
    x, y = across - ops.whole(a), up - ops.whole(b)
    along = x * ops.whole(wide) + y * ops.whole(high)
    cross = x * ops.whole(high) - y * ops.whole(wide)
    beside = ops.quotient(ops.greatest([cross, -cross]), ops.whole(math.isqrt(square)), wide=False)
    ends = [(along <= ops.whole(0), start), (along >= ops.whole(square), _squared(ops, across, up, (c, d)))]
    return ops.chosen(ends, beside * beside)


def _check_degrees(longitudes: Sequence[Fraction], latitudes: Sequence[Fraction]) -> None:
    if any(abs(each) > 180 for each in longitudes) or any(abs(each) > 90 for each in latitudes):
        raise UnsupportedQuery(
            "A function of places is not supported",
            why="a longitude lies beyond ±180 or a latitude beyond ±90 degrees: they may be swapped",
            instead="ST_Point(4.36, 52.01): longitude, latitude",
        )
