"""Cells and regions of a place: whole numbers divided and compared, so that every engine finds the same.

A place is `column * rows + row` of the lattice of its box. A cell is a quotient of each; a region is found by the crossings of a
ray to the east with its border, by products of differences that fit 64 bits. Both have one more value, `outside`, for every
place that is in none; a missing place stays NULL. All values are public before any row is read, the empty ones too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from cloister.errors import UnsupportedQuery
from cloister.tables.declaring.places import Cells, Place
from cloister.tables.declaring.regions import OUTSIDE, Region
from cloister.tables.expression.arithmetic import as_number
from cloister.tables.expression.forms import Form, Interval, Listed, Located, Number, integers, shortest
from cloister.tables.expression.operations import Operations
from cloister.tables.expression.scalar import Domains, Scalar
from cloister.tables.expression.scope import Scope

_MOST_NAMED = 5
_AN_EDGE = 12
"""Operations that an edge of a border is written with."""


def located(scalar: Scalar, domains: Domains) -> Located:
    """A place; anything else is refused."""
    form = scalar.form(domains)
    if not isinstance(form, Located):
        raise UnsupportedQuery(
            "A function of places is not supported",
            why="its argument is not a place",
            instead='"place": cl.Place((4.2, 51.9, 4.5, 52.1))',
        )
    return form


def regional(scalar: Scalar, domains: Domains) -> Located:
    """A place that is declared with regions; any other is refused."""
    form = located(scalar, domains)
    if not form.place.regions:
        raise UnsupportedQuery(
            "A function of places is not supported",
            why="the place is declared with a box and no regions",
            instead='grid(place, 500); or cl.Place(regions="districts.geojson")',
        )
    return form


@dataclass(frozen=True)
class GridCell(Scalar):
    """The square cell of a grid in which a place lies, by its centre; "outside" beyond the box.

    >>> from cloister.tables.declaring.places import Place
    >>> from cloister.tables.expression.scalars import Ref
    >>> GridCell(Ref("place"), Fraction(10_000)).domain({"place": Place((4.2, 51.9, 4.5, 52.1))}).size
    10
    """

    stored: ClassVar[str] = "gridcell"

    x: Scalar
    metres: Fraction

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A list of all cells, and outside."""
        x = located(self.x, domains)
        place, cells = x.place, Cells.of(x.place, self.metres)

        def build(scope: Scope) -> Any:
            ops, at = scope.operations, x.build(scope)
            column, row = lattice(ops, at, place.rows)
            across = ops.quotient(column, ops.whole(cells.width), wide=False)
            up = ops.quotient(row, ops.whole(cells.height), wide=False)
            cell = up * ops.whole(cells.columns) + across
            return ops.chosen([(at == place.outside, ops.whole(len(cells)))], cell)

        return Listed(options=(*cells.labels(), OUTSIDE), build=build, nullable=x.nullable, weight=3 * x.weight + 8)


@dataclass(frozen=True)
class Lattice(Scalar):
    """The column or the row of a place on the lattice of its box; of one outside, the column after the last and the row 0.

    A region compares each of them with every edge of its border, so they are columns of their own.
    """

    stored: ClassVar[str] = "lattice"

    axis: Literal["column", "row"]
    x: Scalar

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A whole number."""
        x = located(self.x, domains)
        rows, which = x.place.rows, ("column", "row").index(self.axis)
        high = (x.place.columns, rows - 1)[which]

        def build(scope: Scope) -> Any:
            return lattice(scope.operations, x.build(scope), rows)[which]

        return integers(0, high, build, x, weight=x.weight + 2)


@dataclass(frozen=True)
class RegionOf(Scalar):
    """The first declared region in which a place lies; "outside" where it lies in none. `column` and `row` are its `Lattice`.

    >>> from cloister.tables.declaring.places import Place
    >>> from cloister.tables.expression.scalars import Ref
    >>> ring = [[4.0, 52.0], [4.1, 52.0], [4.1, 52.1], [4.0, 52.0]]
    >>> feature = {"type": "Feature", "properties": {"name": "Delft"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    >>> place = Place(regions={"type": "FeatureCollection", "features": [feature]})
    >>> x = Ref("place")
    >>> RegionOf(x, Lattice("column", x), Lattice("row", x)).domain({"place": place})
    Category(['Delft', 'outside'])
    """

    stored: ClassVar[str] = "regionof"

    x: Scalar
    column: Scalar
    row: Scalar

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A list of all regions, and outside."""
        x = regional(self.x, domains)
        border = Border.of(x, self.column, self.row, domains)
        regions = x.place.regions

        def build(scope: Scope) -> Any:
            ops, at = scope.operations, x.build(scope)
            nowhere = ops.whole(len(regions))
            branches = [(border.inside(scope, region), ops.whole(number)) for number, region in enumerate(regions)]
            found = ops.chosen(branches, nowhere)
            return ops.chosen([(at == x.place.outside, nowhere), (at.notnull(), found)], ops.nothing())

        names = (*(region.name for region in regions), OUTSIDE)
        return Listed(options=names, build=build, nullable=x.nullable, weight=border.weight(regions))


@dataclass(frozen=True)
class Within(Scalar):
    """Whether a place lies in a declared region, whatever else it lies in; NULL where there is no place."""

    stored: ClassVar[str] = "within"

    x: Scalar
    column: Scalar
    row: Scalar
    name: str

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A truth value."""
        x = regional(self.x, domains)
        region = next((each for each in x.place.regions if each.name == self.name), None)
        if region is None:
            names = [each.name for each in x.place.regions][:_MOST_NAMED]
            raise UnsupportedQuery(
                f"The region {self.name[:80]!r} is not known",
                why=f"declared are {', '.join(map(repr, names))}",
                instead=f"ST_Within(place, '{names[0]}')",
            )
        border = Border.of(x, self.column, self.row, domains)

        def build(scope: Scope) -> Any:
            ops, at = scope.operations, x.build(scope)
            return unless_outside(ops, at, x.place, border.inside(scope, region))

        return Listed(options=(False, True), build=build, nullable=x.nullable, weight=border.weight((region,)))


def unless_outside(ops: Operations, at: Any, place: Place, condition: Any) -> Any:
    """1 or 0, where there is a place; 0 for one beyond the box."""
    found = ops.chosen([(condition, ops.whole(1))], ops.whole(0))
    return ops.chosen([(at == place.outside, ops.whole(0)), (at.notnull(), found)], ops.nothing())


def lattice(ops: Operations, at: Any, rows: int) -> tuple[Any, Any]:
    """Column and row of a place."""
    return ops.quotient(at, ops.whole(rows), wide=False), ops.remainder(at, ops.whole(rows))


@dataclass(frozen=True)
class Border:
    """Where a place lies to the borders of regions: its column and row are compared with numbers that are all known."""

    place: Place
    column: Number
    row: Number

    @classmethod
    def of(cls, x: Located, column: Scalar, row: Scalar, domains: Domains) -> Border:
        """Of a place with its `Lattice`."""
        return cls(x.place, as_number(column.form(domains)), as_number(row.form(domains)))

    def weight(self, regions: Sequence[Region]) -> int:
        """Operations written out for these regions."""
        each = self.column.weight + self.row.weight
        return 20 + sum((_AN_EDGE + 2 * each) * len(region.edges()) + 8 for region in regions)

    def inside(self, scope: Scope, region: Region) -> Any:
        """Whether a ray to the east crosses the border an odd number of times; asked of what lies in the region's own box only.

        The crossing of an edge upwards from (x, y) to (u, v) lies east of the place if (u - x) row - (v - y) column, which is
        whole and below 2^58, passes what it is on the edge.
        """
        column, row = self.column.build(scope), self.row.build(scope)
        west, south, east, north = region.box
        across, up = shortest(self.column, scope), shortest(self.row, scope)
        low = (across >= west - self.place.west) & (up >= south - self.place.south)
        box = low & (across <= east - self.place.west) & (up <= north - self.place.south)
        crossings = []
        for x, y, u, v in region.edges():
            a, b, d = x - self.place.west, y - self.place.south, v - self.place.south
            crossed = column * (v - y) < row * (u - x) + (a * (v - y) - b * (u - x))
            crossings.append((up >= b) & (up < d) & crossed)
        ops = scope.operations
        return ops.chosen([(box, ops.truth(_odd(crossings)))], ops.whole(0)) == 1


def _odd(conditions: Sequence[Any]) -> Any:
    """Whether an odd number of conditions holds: by halves, since a chain of a thousand would be a thousand deep."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return _odd(conditions[:middle]) != _odd(conditions[middle:])
