"""Declarations as plain data: what a file, a form or a database keeps of a column, and the declaration that it stands for.

`domain.describe()` writes the form that `domain_of` reads: `{"kind": "integer", "low": 17, "high": 90}`. A place names two
columns of its source, and a box or regions: `{"kind": "place", "box": [4, 51, 5, 52], "longitude": "x", "latitude": "y"}`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.privacy.rational import exact
from cloister.tables.declaring.columns import Boolean, Category, Date, Domain, Identifier, Integer, Real, Text
from cloister.tables.declaring.moments import Moment
from cloister.tables.declaring.places import Place
from cloister.tables.declaring.regions import PARTS, geojson_of, regions_kept

KINDS: Mapping[str, tuple[Callable[..., Domain], tuple[str, ...]]] = {
    "integer": (Integer, ("low", "high")),
    "real": (Real, ("low", "high", "step")),
    "category": (Category, ("values",)),
    "date": (Date, ("low", "high")),
    "moment": (Moment, ("low", "high")),
    "boolean": (Boolean, ()),
    "text": (Text, ()),
    "identifier": (Identifier, ()),
}
"""The kinds of columns, each with what has to be said of it (a step may be left out); a place is a kind of its own."""
_KEYWORDS = ("step", "nullable")
_OF_A_PLACE = ("kind", "box", "regions", "name", "longitude", "latitude", "nullable")
_PLACE = '{ kind = "place", box = [4.2, 51.9, 4.5, 52.1], longitude = "lon", latitude = "lat" }'


def domain_of(column: str, declared: Any, *, table: str, folder: Path | None = None) -> Domain:
    """The declaration that plain data stand for; what is wrong with them is refused with the table's name. The regions of a place
    may be a file in `folder`; where there is none, no file is read, whoever names one.

    >>> domain_of("age", {"kind": "integer", "low": 17, "high": 90}, table="people")
    Integer(low=17, high=90, nullable=False)
    """
    kind = declared.get("kind") if isinstance(declared, Mapping) else None
    if kind == "place":
        return _place(column, declared, table, folder)
    if not isinstance(kind, str) or kind not in KINDS:
        raise _wrong(
            table,
            f"the column {column!r} has no kind among {', '.join(KINDS)}, place",
            f'{column} = {{ kind = "integer", low = 0, high = 99 }}',
        )
    make, names = KINDS[kind]
    known = {"kind", "nullable", *names}
    unknown = [option for option in declared if option not in known]
    if unknown:
        raise _wrong(table, f"{unknown[0]!r} means nothing for a column of kind {kind!r}", f"{', '.join(sorted(known))}")
    missing = [option for option in names if option not in declared and option != "step"]
    if missing:
        raise _wrong(table, f"the column {column!r} lacks {missing[0]!r}", f"{missing[0]} = …")
    for option, value in declared.items():
        if isinstance(value, dict) or (isinstance(value, list) and option != "values"):
            raise _wrong(table, f"{option} of the column {column!r} is not one value", f"{option} = …")
    positional = [declared[option] for option in names if option != "step"]
    keywords = {option: declared[option] for option in _KEYWORDS if option in declared}
    return make(*positional, **keywords)


def _place(column: str, declared: Mapping[str, Any], table: str, folder: Path | None) -> Place:
    """A place as it is written, or as `describe` keeps it: regions are then names with rings, and the box is theirs."""
    unknown = [option for option in declared if option not in _OF_A_PLACE]
    if unknown:
        raise _wrong(table, f"{unknown[0]!r} means nothing for a column of kind 'place'", ", ".join(_OF_A_PLACE))
    box, regions = declared.get("box"), declared.get("regions") or None
    texts = {option: declared[option] for option in ("name", "longitude", "latitude") if option in declared}
    if not all(isinstance(text, str) for text in texts.values()):
        raise _wrong(table, f"the column {column!r} names its columns with no texts", f"{column} = {_PLACE}")
    kept, nullable = isinstance(regions, list), declared.get("nullable", False)
    if kept:
        regions = geojson_of(regions_kept(regions))
    elif isinstance(regions, str) and not regions.lstrip().startswith("{"):
        if folder is None:
            raise _wrong(table, f"the regions of {column!r} are a file, and none is read here", "the GeoJSON itself")
        regions = folder / regions
    place = Place(None if kept else box, regions=regions, **texts, nullable=nullable)
    if kept and box is not None and _ends(box) != (place.west, place.south, place.east, place.north):
        raise _wrong(table, f"the box of {column!r} is not that of its regions", f"{column} = {_PLACE}")
    return place


def _ends(box: Any) -> tuple[Any, ...]:
    try:
        return tuple(exact(end) * PARTS for end in box)
    except (InvalidParameter, TypeError):
        return ()


def _wrong(table: str, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"The declaration of table {table!r} is invalid", why=why, instead=instead)
