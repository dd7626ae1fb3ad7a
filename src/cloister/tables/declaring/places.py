"""A column of places: two numbers of the source, longitude and latitude, within a public box or public regions.

A place is one whole number, its position on the lattice of millionths of a degree that the box spans; what lies outside is one
more. So each row has its place once, bounds are known before any row is read, and cells and regions are arithmetic on whole
numbers, the same on every engine.

- A number that is missing, NaN, infinite or not a number makes the place NULL; so does 0/0, which is what a phone that does not
  know where it is sends.
- A place beyond the box is `outside`: a state of its own, counted like a cell or a region. It is never moved to the edge, where
  it would be counted at a place at which nobody was.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from cloister.errors import InvalidDeclaration, InvalidParameter, UnsupportedQuery
from cloister.privacy.rational import Exact, exact, text_of
from cloister.tables.declaring.columns import Domain, check_nullable
from cloister.tables.declaring.regions import OUTSIDE, PARTS, Region, check_degrees, geojson_of, regions_of
from cloister.tables.sourcing.reading import read_number

METRES = 111_195
"""Metres in a degree of a meridian, on a sphere of 6,371 km."""
MOST_CELLS = 65_536
_LONGEST = 120
_INSTEAD = "cl.Place((4.2, 51.9, 4.5, 52.1)): west, south, east, north"


@dataclass(frozen=True, slots=True, init=False)
class Place(Domain):
    """A place within a box (west, south, east, north, in degrees) or within the regions of a public GeoJSON. `longitude` and
    `latitude` are the columns of the source that hold the two numbers; the name of the column itself is free.

    >>> place = Place((4.2, 51.9, 4.5, 52.1), longitude="lon", latitude="lat")
    >>> place.decode(place.encode((4.3571, 52.0116))), place.decode(place.encode((0.1, 51.5))), place.encode((0, 0))
    ((4.3571, 52.0116), 'outside', None)
    """

    west: int
    south: int
    east: int
    north: int
    longitude: str
    latitude: str
    regions: tuple[Region, ...] = field(repr=False)
    nullable: bool

    kind: ClassVar[str] = "place"

    def __init__(
        self,
        box: Sequence[Exact] | None = None,
        *,
        regions: str | Path | Any = None,
        name: str = "name",
        longitude: str = "longitude",
        latitude: str = "latitude",
        nullable: bool = False,
    ) -> None:
        if (box is None) == (regions is None):
            raise InvalidDeclaration("Place(…) is invalid", why="it needs a box or regions, and one of them", instead=_INSTEAD)
        for title, column in (("longitude", longitude), ("latitude", latitude)):
            if not isinstance(column, str) or not column:
                raise InvalidDeclaration(f"{title}={column!r} is invalid", why="it names no column", instead=f'{title}="lon"')
        if longitude == latitude:
            raise InvalidDeclaration(
                f"longitude={longitude!r} is invalid", why="it is the column of the latitude, too", instead='latitude="lat"'
            )
        check_nullable(nullable)
        known = () if regions is None else regions_of(regions, name)
        ends = _box(box) if box is not None else _around(known)
        values = (*ends, longitude, latitude, known, nullable)
        slots = ("west", "south", "east", "north", "longitude", "latitude", "regions", "nullable")
        for slot, value in zip(slots, values, strict=True):
            object.__setattr__(self, slot, value)

    @property
    def columns(self) -> int:
        """Points of the lattice from west to east."""
        return self.east - self.west + 1

    @property
    def rows(self) -> int:
        """Points of the lattice from south to north."""
        return self.north - self.south + 1

    @property
    def outside(self) -> int:
        """The code of every place beyond the box."""
        return self.columns * self.rows

    @property
    def low_code(self) -> int:
        """0: the corner in the south-west."""
        return 0

    @property
    def high_code(self) -> int:
        """That of `outside`."""
        return self.outside

    def encode(self, value: object) -> int | None:
        """The code of a pair (longitude, latitude); None for what is no place."""
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
            return None
        x, y = (read_number(each) for each in value)
        if x is None or y is None or (x == 0 and y == 0):
            return None
        west, south, east, north = (end / PARTS for end in (self.west, self.south, self.east, self.north))
        if not (west <= x <= east and south <= y <= north):
            return self.outside
        column, row = (math.floor((each - low) * float(PARTS) + 0.5) for each, low in ((x, west), (y, south)))
        return column * self.rows + row

    def decode(self, code: int) -> Any:
        """The pair (longitude, latitude), or "outside"."""
        if int(code) == self.outside:
            return OUTSIDE
        column, row = divmod(int(code), self.rows)
        return (self.west + column) / PARTS, (self.south + row) / PARTS

    def values(self) -> tuple[Any, ...]:
        """Refused: there are billions."""
        raise InvalidParameter("The values of a place are not listed", why="there are billions", instead="grid(place, 500)")

    def grid(self, metres: Exact) -> Cells:
        """The square cells of a side, in metres, that cover the box."""
        return Cells.of(self, metres)

    def over(self, longitude: str, latitude: str) -> Place:
        """The same of other columns of a source."""
        made = copy.copy(self)
        object.__setattr__(made, "longitude", longitude)
        object.__setattr__(made, "latitude", latitude)
        return made

    def describe(self) -> dict[str, Any]:
        """Kind, box, source columns, regions and NULL handling."""
        ends = [text_of(Fraction(end, PARTS)) for end in (self.west, self.south, self.east, self.north)]
        return {
            "kind": "place",
            "box": ends,
            "longitude": self.longitude,
            "latitude": self.latitude,
            "regions": [[region.name, [[list(corner) for corner in ring] for ring in region.rings]] for region in self.regions],
            "nullable": self.nullable,
        }

    def __repr__(self) -> str:
        ends = ", ".join(text_of(Fraction(end, PARTS)) for end in (self.west, self.south, self.east, self.north))
        around = f", {len(self.regions)} regions" if self.regions else ""
        nullable = ", nullable=True" if self.nullable else ""
        return f"Place(({ends}){around}, longitude={self.longitude!r}, latitude={self.latitude!r}{nullable})"


def sources_of(columns: Mapping[str, Domain]) -> list[str]:
    """The columns of a source that declared ones are read from, each once: of a place its two numbers.

    >>> from cloister.tables.declaring.columns import Integer
    >>> sources_of({"home": Place((4.2, 51.9, 4.5, 52.1), longitude="lon", latitude="lat"), "age": Integer(0, 120)})
    ['lon', 'lat', 'age']
    """
    pairs = ((domain.longitude, domain.latitude) if isinstance(domain, Place) else (name,) for name, domain in columns.items())
    return list(dict.fromkeys(name for pair in pairs for name in pair))


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of a grid over a box, from the south-west on, row by row; each is called by its centre, "longitude latitude".

    A side is as long as it is asked for along a meridian, and along the parallel through the middle of the box; elsewhere in the
    box a cell is a little wider or narrower. The last column and row may reach beyond the box.

    >>> cells = Place((4.2, 51.9, 4.5, 52.1)).grid(5000)
    >>> len(cells), cells.labels()[:2]
    (25, ('4.236518 51.922483', '4.309556 51.922483'))
    """

    place: Place
    width: int
    height: int

    @classmethod
    def of(cls, place: Place, metres: Exact) -> Cells:
        """Of a side in metres; refused where the cells would be too many, with the least side that is not."""
        try:
            side = exact(metres)
        except InvalidParameter as error:
            raise UnsupportedQuery(
                f"grid(place, {metres!r}) is not supported", why=error.why, instead="grid(place, 500)"
            ) from None
        if not 1 <= side <= 20_000_000:
            raise UnsupportedQuery(
                f"grid(place, {text_of(side)}) is not supported",
                why="a side is 1 to 20,000,000 metres long",
                instead="grid(place, 500)",
            )
        found = cls._sized(place, side)
        if len(found) > MOST_CELLS:
            least = next(
                Fraction(times * 10**power) for power in range(9) for times in (1, 2, 5)
                if times * 10**power > side and len(cls._sized(place, Fraction(times * 10**power))) <= MOST_CELLS
            )  # fmt: skip
            raise UnsupportedQuery(
                f"grid(place, {text_of(side)}) is not supported",
                why=f"it has {len(found):,} cells, and each of up to {MOST_CELLS:,} gets noise of its own",
                instead=f"grid(place, {text_of(least)})",
            )
        return found

    @classmethod
    def _sized(cls, place: Place, side: Fraction) -> Cells:
        middle = math.radians((place.south + place.north) / 2 / PARTS)
        height = max(round(float(side) * PARTS / METRES), 1)
        width = max(round(float(side) * PARTS / METRES / max(math.cos(middle), 1e-3)), 1)
        return cls(place, min(width, place.columns), min(height, place.rows))

    @property
    def columns(self) -> int:
        """Cells from west to east."""
        return -(-self.place.columns // self.width)

    @property
    def rows(self) -> int:
        """Cells from south to north."""
        return -(-self.place.rows // self.height)

    def __len__(self) -> int:
        return self.columns * self.rows

    def labels(self) -> tuple[str, ...]:
        """The centre of each cell."""
        xs = [f"{(self.place.west + (column + 0.5) * self.width) / PARTS:.6f}" for column in range(self.columns)]
        ys = [f"{(self.place.south + (row + 0.5) * self.height) / PARTS:.6f}" for row in range(self.rows)]
        return tuple(f"{x} {y}" for y in ys for x in xs)

    def geojson(self) -> dict[str, Any]:
        """The cells as public GeoJSON, each with its name: for a map, or for a public table to join with."""
        place, cells = self.place, []
        for number, label in enumerate(self.labels()):
            row, column = divmod(number, self.columns)
            west, south = place.west + column * self.width, place.south + row * self.height
            east, north = west + self.width, south + self.height
            cells.append(Region(label, (((west, south), (east, south), (east, north), (west, north)),)))
        return geojson_of(cells)


def _box(given: Any) -> tuple[int, int, int, int]:
    written = f"Place({given!r})"[:_LONGEST]
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 4:
        raise InvalidDeclaration("Place(…) is invalid", why="a box is four numbers", instead=_INSTEAD)
    ends = []
    for each in given:
        try:
            ends.append(exact(each))
        except InvalidParameter as error:
            raise InvalidDeclaration("Place(…) is invalid", why=error.why, instead=_INSTEAD) from None
    west, south, east, north = ends
    for x, y in ((west, south), (east, north)):
        check_degrees(x, y, lambda why, _: _refused_box(written, f"a corner {why}"))
    if west >= east:
        raise _refused_box(written, "west is not less than east, and no box reaches over the 180th meridian")
    if south >= north:
        raise _refused_box(written, "south is not less than north")
    scaled = [end * PARTS for end in ends]
    if any(end.denominator != 1 for end in scaled):
        raise InvalidDeclaration(
            f"{written} is invalid",
            why="a bound has more than six decimals of a degree",
            instead="bounds with up to six decimals",
        )
    return int(scaled[0]), int(scaled[1]), int(scaled[2]), int(scaled[3])


def _refused_box(written: str, why: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"{written} is invalid", why=why, instead=_INSTEAD)


def _around(regions: Sequence[Region]) -> tuple[int, int, int, int]:
    boxes = [region.box for region in regions]
    wests, souths, easts, norths = zip(*boxes, strict=True)
    return min(wests), min(souths), max(easts), max(norths)
