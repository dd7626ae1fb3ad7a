"""Regions that are public: named polygons of a GeoJSON, on whole millionths of a degree.

Longitude comes before latitude, as RFC 7946 has it. All rings of a region count together by the even-odd rule: a point lies in
the region if a ray from it crosses its rings an odd number of times, so an inner ring is a hole. An edge takes its lower end
and not its upper one, and the points on a border that two regions share lie in exactly one of them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cloister.errors import InvalidDeclaration
from cloister.printable import LONGEST_VALUE, is_printable

PARTS = 1_000_000
"""So many parts of a degree: one is some 11 cm of a meridian."""
OUTSIDE = "outside"
"""What a place is called that lies in no region, or in no cell."""
MOST_REGIONS, MOST_CORNERS = 500, 1000
_MOST_BYTES = 20_000_000
_MOST_READ = 200_000
_FARTHEST = 1e9  # NaN is not below it, and a whole number of a thousand digits is not made a float
_EXAMPLE = '{"type": "FeatureCollection", "features": […]}'

Corner = tuple[int, int]
Ring = tuple[Corner, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """A name, and the rings of its border without their closing corner, in millionths of a degree.

    >>> square = Region("Square", (((0, 0), (4, 0), (4, 4), (0, 4)),))
    >>> square.holds(2, 2), square.holds(0, 0), square.holds(4, 4)
    (True, True, False)
    """

    name: str
    rings: tuple[Ring, ...]

    def edges(self) -> list[tuple[int, int, int, int]]:
        """(x, y, x', y') of each edge that is not level, upwards."""
        found = []
        for ring in self.rings:
            for (x, y), (u, v) in pairwise((*ring, ring[0])):
                if y != v:
                    found.append((x, y, u, v) if y < v else (u, v, x, y))
        return found

    def holds(self, x: int, y: int) -> bool:
        """Whether a point lies in it."""
        return sum(b <= y < d and (x - a) * (d - b) < (y - b) * (c - a) for a, b, c, d in self.edges()) % 2 == 1

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The least and the greatest corners: west, south, east, north."""
        xs, ys = zip(*(corner for ring in self.rings for corner in ring), strict=True)
        return min(xs), min(ys), max(xs), max(ys)


def regions_of(given: object, name: str = "name") -> tuple[Region, ...]:
    """The regions of a GeoJSON: a path to a file, its text, or the mapping that it holds. `name` is the property that names each.

    >>> ring = [[4.0, 52.0], [4.1, 52.0], [4.1, 52.1], [4.0, 52.0]]
    >>> feature = {"type": "Feature", "properties": {"name": "Delft"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    >>> regions_of({"type": "FeatureCollection", "features": [feature]})[0].name
    'Delft'
    """
    features = _features(_loaded(given))
    if len(features) > MOST_REGIONS:
        raise refused(f"it has more than {MOST_REGIONS} regions", "fewer regions, or grid(place, 500) on a box")
    budget = [_MOST_READ]
    found = [_region(feature, name, budget) for feature in features]
    names = [region.name for region in found]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise refused(f"{twice!r} is the name of two regions", "one feature of type MultiPolygon")
    corners = sum(len(ring) for region in found for ring in region.rings)
    if corners > MOST_CORNERS:
        raise refused(
            f"its borders have {corners:,} corners, and every row is compared with each of up to {MOST_CORNERS:,}",
            "borders simplified by the tool that made them: mapshaper in.geojson -simplify 5% -o out.geojson",
        )
    for region in found:
        if _crosses(region):
            raise refused(f"the border of {region.name!r} crosses itself", "borders that are repaired: ST_MakeValid(border)")
    return tuple(found)


def geojson_of(regions: Iterable[Region]) -> dict[str, Any]:
    """Regions as GeoJSON, from which `regions_of` reads the same again.

    >>> square = Region("Square", (((0, 0), (4, 0), (4, 4), (0, 4)),))
    >>> regions_of(geojson_of([square])) == (square,)
    True
    """
    features = []
    for region in regions:
        rings = [[[x / PARTS, y / PARTS] for x, y in (*ring, ring[0])] for ring in region.rings]
        border = {"type": "Polygon", "coordinates": rings}
        features.append({"type": "Feature", "properties": {"name": region.name}, "geometry": border})
    return {"type": "FeatureCollection", "features": features}


def regions_kept(plain: Any) -> list[Region]:
    """Regions as a declaration keeps them, a name with rings of whole millionths of a degree: not yet checked for what they mean.

    >>> regions_kept([["Square", [[[0, 0], [4, 0], [4, 4], [0, 4]]]]])[0].box
    (0, 0, 4, 4)
    """
    try:
        found = [Region(name, tuple(tuple((x, y) for x, y in ring) for ring in rings)) for name, rings in plain]
    except (TypeError, ValueError):
        raise refused("its regions are not names with rings") from None
    whole = all(
        type(end) is int and abs(end) <= 180 * PARTS for each in found for ring in each.rings for at in ring for end in at
    )
    if not whole or not all(ring for each in found for ring in each.rings):
        raise refused("its rings are not of whole millionths of a degree")
    return found


def refused(why: str, instead: str = _EXAMPLE) -> InvalidDeclaration:
    """The refusal of a GeoJSON."""
    return InvalidDeclaration("regions=… is invalid", why=why, instead=instead)


def _loaded(given: object) -> Mapping[str, Any]:
    if isinstance(given, str) and given.lstrip().startswith("{"):
        text = given
    elif isinstance(given, str | Path):
        try:
            with Path(given).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
            text = data.decode("utf-8-sig")
        except (OSError, ValueError):
            why = f"there is no such file as {Path(given).name!r}, or it is not text in UTF-8"
            raise refused(why, 'regions="districts.geojson"') from None
    elif isinstance(given, Mapping):
        return given
    else:
        raise refused("it is not a path, a text or a mapping", 'regions="districts.geojson"')
    if len(text) > _MOST_BYTES:
        raise refused(f"it is larger than {_MOST_BYTES // 1_000_000} MB", "the borders of these regions alone")
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        raise refused("it is not JSON") from None
    if not isinstance(read, Mapping):
        raise refused("it is not a FeatureCollection")
    return read


def _features(data: Mapping[str, Any]) -> Sequence[Any]:
    if data.get("type") != "FeatureCollection":
        raise refused("it is not a FeatureCollection")
    crs = data.get("crs")
    if crs is not None and not any(known in str(crs)[:300].upper() for known in ("CRS84", "4326")):
        raise refused(
            "it has a coordinate system of its own, and GeoJSON is in degrees", "ogr2ogr -t_srs EPSG:4326 out.geojson in.geojson"
        )
    features = data.get("features")
    if not isinstance(features, Sequence) or isinstance(features, str) or not features:
        raise refused("it has no features")
    return features


def _region(feature: Any, title: str, budget: list[int]) -> Region:
    properties = feature.get("properties") if isinstance(feature, Mapping) else None
    name = properties.get(title) if isinstance(properties, Mapping) else None
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_VALUE or not is_printable(name):
        raise refused(f"a feature has no property {title!r} that names it", 'name="district", the property with the names')
    if name == OUTSIDE:
        raise refused(f"{OUTSIDE!r} is what places in no region are called", "another name of this region")
    geometry = feature.get("geometry")
    kind = geometry.get("type") if isinstance(geometry, Mapping) else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise refused(f"the geometry of {name!r} is neither a Polygon nor a MultiPolygon", "features with an area")
    coordinates = geometry.get("coordinates")
    polygons = coordinates if kind == "MultiPolygon" else [coordinates]
    rings = tuple(_ring(ring, name, budget) for polygon in _list(polygons, name) for ring in _list(polygon, name))
    if not rings:
        raise refused(f"{name!r} has no border", "features with an area")
    return Region(name, rings)


def _list(given: Any, name: str) -> Sequence[Any]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise refused(f"the coordinates of {name!r} are not lists of rings", "[[[4.3, 52.0], [4.4, 52.0], …, [4.3, 52.0]]]")
    return given


def _ring(given: Any, name: str, budget: list[int]) -> Ring:
    positions = _list(given, name)
    budget[0] -= len(positions)
    if budget[0] < 0:
        raise refused(f"its borders have more than {_MOST_READ:,} corners", "borders simplified by the tool that made them")
    corners = [_corner(position, name) for position in positions]
    if len(corners) < 4 or corners[0] != corners[-1]:
        raise refused(f"a ring of {name!r} is not closed", "a ring of at least 4 positions, of which the last is the first again")
    ring = _without_straight(corners[:-1])
    if len(ring) < 3 or not _area(ring):
        raise refused(f"a ring of {name!r} has no area", "a ring around an area")
    return tuple(ring)


def _corner(position: Any, name: str) -> Corner:
    pair = position[:2] if isinstance(position, Sequence) and not isinstance(position, str) else ()
    numbers = [number for number in pair if isinstance(number, int | float) and not isinstance(number, bool)]
    if len(numbers) != 2 or not all(abs(number) < _FARTHEST for number in numbers):
        raise refused(f"a position of {name!r} is not two numbers", "[4.3571, 52.0116]")
    longitude, latitude = numbers
    check_degrees(longitude, latitude, lambda why, instead: refused(f"a position of {name!r} {why}", instead))
    return round(longitude * PARTS), round(latitude * PARTS)


def check_degrees(longitude: Any, latitude: Any, refusal: Callable[[str, str], InvalidDeclaration]) -> None:
    """Refuse what is no longitude and latitude, in this order."""
    if abs(longitude) > 180 or abs(latitude) > 180:
        raise refusal("is not in degrees", "degrees: ogr2ogr -t_srs EPSG:4326 out.geojson in.geojson")
    if abs(latitude) > 90:
        raise refusal("has a latitude beyond ±90: its longitude must come first", "[longitude, latitude]: [151.21, -33.87]")


def _without_straight(corners: list[Corner]) -> list[Corner]:
    """Without corners that repeat the one before, or at which the border goes straight on."""
    kept: list[Corner] = []
    for corner in corners:
        while len(kept) >= 2 and _turn(kept[-2], kept[-1], corner) == 0:
            kept.pop()
        if not kept or kept[-1] != corner:
            kept.append(corner)
    while len(kept) >= 3 and _turn(kept[-2], kept[-1], kept[0]) == 0:
        kept.pop()
    while len(kept) >= 3 and _turn(kept[-1], kept[0], kept[1]) == 0:
        kept.pop(0)
    return kept


def _turn(a: Corner, b: Corner, c: Corner) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _area(ring: Iterable[Corner]) -> int:
    corners = list(ring)
    return sum(x * v - u * y for (x, y), (u, v) in pairwise((*corners, corners[0])))


def _crosses(region: Region) -> bool:
    """Whether two edges cross each other in a point that is an end of neither."""
    edges = [(*a, *b) for ring in region.rings for a, b in pairwise((*ring, ring[0]))]
    ends = np.asarray(edges, dtype=np.int64)
    x, y, u, v = ends.T
    for a, b, c, d in ends:
        one = np.sign((c - a) * (y - b) - (d - b) * (x - a)) * np.sign((c - a) * (v - b) - (d - b) * (u - a))
        two = np.sign((u - x) * (b - y) - (v - y) * (a - x)) * np.sign((u - x) * (d - y) - (v - y) * (c - x))
        if ((one < 0) & (two < 0)).any():
            return True
    return False
