"""Conditions, computed columns and relations, read from their canonical texts: what a hub may ask a site to make of its rows.

The text comes from a hub that may lie, so nothing of what follows from it is the hub's to say. A relation is built here, on the
site's own table: the domain of each computed column, how many rows a person can have in it, and so what a request costs, follow
from the site's own declaration by the rules of `tables/relations` and `tables/expression`. A name that the table does not have,
a function that is not one of these, a part too many or of another kind is refused; so is what takes long to refuse otherwise:
more parts than a session asks for, or more of them inside one another. What is read and written again has to be the very text
that was read (`reading.py`), so an owner sees, and a site computes, what the hub signed.

A public table is the site's own, by the name that the hub calls it. The text has a digest of the rows that are looked up, and of
what their codes mean: with other rows here the request is refused, since the hub would read another answer than was computed.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any, TypeAlias

from cloister.errors import InvalidDeclaration, UnknownTable, UnsupportedQuery
from cloister.noise.laws import number_from
from cloister.tables import (
    And,
    Base,
    Capped,
    Category,
    Column,
    Compare,
    Domain,
    Expression,
    Extended,
    Filtered,
    Followed,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Numbered,
    Or,
    PerUnit,
    PrivateTable,
    Projected,
    PublicJoined,
    PublicTable,
    Relation,
    Stacked,
    UnitAggregate,
    UnitJoined,
)
from cloister.tables.expression import scalars
from cloister.tables.expression.forms import HEAVIEST
from cloister.tables.expression.scalars import Case, Const, Scalar

_DEEPEST = 200
"""Conditions inside one another."""
_DEEPEST_RELATION = 80
_DEEPEST_SCALAR = 60
_LARGEST = 1 << 512
"""Of whole numbers: what the widest sums have room for."""
MOST_PARTS = 40_000
"""Of a relation's text: a regression line over a hundred columns has 26,000. They are built in seconds."""
MOST_WORK = 200_000
"""Of computed columns: their parts, times the values that are listed of what they read, in units of 32."""
MOST_WEIGHT = 3 * HEAVIEST
"""Operations of all computed columns together, written out: an engine's plan of them takes a minute at most."""
_MOST_LISTED = 100_000
"""Values of a number or of days that are written out as texts."""
MOST_ROWS = 10_000
"""Of one person, at any step: a join of rows with themselves makes many of few, and how long that takes shows from outside."""
MOST_WIDTH = 50_000
"""Columns of all steps together: each step names its own to the engine."""
_MOST_LOOKUPS = 8
"""Joins with public tables in one request: each puts its rows into a table of its own."""

Kinds: TypeAlias = tuple[str, ...]
PARTS: Mapping[str, tuple[Callable[..., Scalar], Kinds]] = {
    "ref": (scalars.Ref, ("text",)),
    "case": (Case, ("branches", "else")),
    "coalesce": (scalars.Coalesce, ("scalars",)),
    "leastof": (scalars.LeastOf, ("scalars",)),
    "greatestof": (scalars.GreatestOf, ("scalars",)),
    "nullif": (scalars.NullIf, ("scalar", "scalar")),
    "truth": (scalars.Truth, ("condition",)),
    "textfunction": (scalars.TextFunction, ("text", "scalar", "scalars")),
    "add": (scalars.Add, ("scalar", "scalar")),
    "subtract": (scalars.Subtract, ("scalar", "scalar")),
    "multiply": (scalars.Multiply, ("scalar", "scalar")),
    "modulo": (scalars.Modulo, ("scalar", "scalar")),
    "negate": (scalars.Negate, ("scalar",)),
    "absolute": (scalars.Absolute, ("scalar",)),
    "sign": (scalars.Sign, ("scalar",)),
    "cast": (scalars.Cast, ("scalar", "text")),
    "datepart": (scalars.DatePart, ("text", "scalar")),
    "datetrunc": (scalars.DateTrunc, ("text", "scalar")),
    "dateshift": (scalars.DateShift, ("scalar", "whole", "text")),
    "datediff": (scalars.DateDiff, ("text", "scalar", "scalar")),
    "gridcell": (scalars.GridCell, ("scalar", "number")),
    "lattice": (scalars.Lattice, ("text", "scalar")),
    "regionof": (scalars.RegionOf, ("scalar", "scalar", "scalar")),
    "within": (scalars.Within, ("scalar", "scalar", "scalar", "text")),
    "inbox": (scalars.InBox, ("scalar", "scalar", "scalar", "number", "number", "number", "number")),
    "metres": (scalars.Metres, ("text", "scalar")),
    "near": (scalars.Near, ("scalar", "scalar", "scalar", "number", "number", "number")),
    "nearest": (scalars.NearestRegion, ("scalar", "scalar", "scalar", "scalar", "scalar")),
    "round": (scalars.Round, ("scalar", "whole", "text")),
    "floor": (scalars.Floor, ("scalar",)),
    "ceiling": (scalars.Ceiling, ("scalar",)),
    "clamp": (scalars.Clamp, ("scalar", "number", "number")),
    "divide": (scalars.Divide, ("scalar", "scalar")),
    "sqrt": (scalars.Sqrt, ("scalar",)),
    "ln": (scalars.Ln, ("scalar",)),
    "exp": (scalars.Exp, ("scalar",)),
    "power": (scalars.Power, ("scalar", "number")),
}
"""Each computed column by its word in a text, and what its parts are. A constant is read by itself."""


@dataclass(frozen=True, kw_only=True)
class Over:
    """What a relation may stand on: the one private table of a site, and the public tables that it has by name."""

    table: PrivateTable
    public: Mapping[str, PublicTable] = field(default_factory=dict)
    may_open: Callable[[str], object] | None = None
    """Raises where a public table may not be opened: it is called before the first look into one."""

    def relation(self, told: Any) -> Relation:
        """The relation that has this canonical form.

        >>> from cloister.tables import Integer
        >>> over = Over(table=PrivateTable({"age": [39]}, columns={"age": Integer(17, 90)}))
        >>> twice = ["multiply", ["const", "integer", "2"], ["ref", "age"]]
        >>> over.relation(["extended", ["table", "people"], [["twice", twice]]]).column("twice")
        SteppedInteger(first=17, last=90, step_size=Fraction(2, 1), nullable=False)
        """
        if lists_in(told, MOST_PARTS) > MOST_PARTS:
            raise too_much(f"its rows are made of more than {MOST_PARTS:,} parts")
        return _Reader(self).relation(told, 0)


class _Reader:
    """One request's relation, with what it may have left."""

    def __init__(self, over: Over) -> None:
        self._over = over
        self._work, self._weight, self._lookups = MOST_WORK, MOST_WEIGHT, _MOST_LOOKUPS
        self._width = MOST_WIDTH
        self._base: Base | None = None

    def relation(self, told: Any, depth: int) -> Relation:
        kind, *parts = _entered(told, depth, _DEEPEST_RELATION)
        if kind in _RELATIONS:
            made = _RELATIONS[kind](self, depth + 1, *parts)
        elif kind in _OVER_ONE:
            source, *rest = parts
            made = _OVER_ONE[kind](self, self.relation(source, depth + 1), *rest)
        else:
            raise refused(f"it has a relation of the kind {_named(kind)}")
        self._width -= len(made.columns)
        if self._width < 0:
            raise too_much(f"its steps have more than {MOST_WIDTH:,} columns together")
        if kind != "table" and (made.max_rows or 1) > max(MOST_ROWS, self._over.table.max_rows or 1):
            raise too_much(f"one person would count in more than {MOST_ROWS:,} rows")
        return made

    def scalar(self, told: Any, depth: int) -> Scalar:
        kind, *parts = _entered(told, depth, _DEEPEST_SCALAR)
        if kind == "const":
            return _constant(*parts)
        made, kinds = PARTS.get(kind, (None, ()))
        if made is None:
            raise refused(f"it has a computed column of the kind {_named(kind)}")
        if len(parts) != len(kinds):
            raise refused(f"{kind!r} has {len(parts)} parts, and takes {len(kinds)}")
        return made(*(self._part(each, part, depth + 1) for each, part in zip(kinds, parts, strict=True)))

    def table(self, _: int, name: Any) -> Base:
        if self._base is None:
            self._base = Base(name=text_in(name), table=self._over.table)
        if self._base.name != name:
            raise refused("it is about two private tables")
        return self._base

    def stacked(self, depth: int, sources: Any) -> Relation:
        return Stacked(sources=tuple(self.relation(each, depth) for each in sources))

    def joined(self, depth: int, left: Any, right: Any, on: Any, outer: Any) -> Relation:
        sides = {"left": self.relation(left, depth), "right": self.relation(right, depth)}
        full = outer == "full"
        return UnitJoined(**sides, on=_pairs(on), outer=full or _truth(outer), full=full)

    def looked_up(self, depth: int, source: Any, name: Any, digest: Any, on: Any, taken: Any, outer: Any) -> Relation:
        self._lookups -= 1
        if self._lookups < 0:
            raise too_much(f"it has more than {_MOST_LOOKUPS} joins with public tables")
        table = self._over.public.get(text_in(name))
        if table is None:
            raise UnknownTable(
                f"The public table {_named(name)} is not known",
                why="the site has no public table of that name",
                instead="a query without it, or the same file at the site: public = true under [tables.…] in its site.toml",
            )
        if self._over.may_open is not None:
            self._over.may_open(name)
        if max(len(_pairs(on)), len(_pairs(taken))) > 2 * len(table.names) + 2:
            raise refused("it names columns of a public table many times over")
        joined = PublicJoined(
            source=self.relation(source, depth), name=name, table=table, on=_pairs(on), columns=_pairs(taken), outer=_truth(outer)
        )
        if joined.codes.digest != digest:
            raise InvalidDeclaration(
                f"The public table {_named(name)} is another",
                why="its rows at the site are not those at the hub, or stand in another order",
                instead="the same file at the hub and at every site",
            )
        return joined

    def extended(self, below: Relation, columns: Any) -> Relation:
        found = tuple((text_in(name), self.scalar(each, 0)) for name, each in columns)
        for (_, each), (_, scalar) in zip(columns, found, strict=True):
            self._count(each, scalar, below)
        return Extended(source=below, scalars=found)

    def filtered(self, below: Relation, where: Any) -> Relation:
        self._work -= weight_of(where, below.columns)
        if self._work < 0:
            raise too_much("its conditions take too long to bound")
        return Filtered(source=below, where=condition(where))

    def numbered(self, below: Relation, kind: Any, keys: Any, by: Any, number: Any) -> Relation:
        order = tuple((text_in(name), _truth(down), _truth(first)) for name, down, first in by)
        return Numbered(source=below, number=text_in(number), keys=_names(keys), by=order, kind=kind)

    def followed(self, below: Relation, by: Any, number: Any, previous: Any, rows: Any) -> Relation:
        how = {"by": text_in(by), "number": text_in(number)}
        return Followed(source=below, **how, previous=_pairs(previous), rows=whole_in(rows))

    def per_unit(self, below: Relation, keys: Any, aggregates: Any) -> Relation:
        found = tuple(
            UnitAggregate(name=text_in(name), kind=kind, column=None if column is None else text_in(column))
            for name, kind, column in aggregates
        )
        return PerUnit(source=below, keys=_names(keys), aggregates=found)

    def _count(self, told: Any, scalar: Scalar, source: Relation) -> None:
        """What a computed column takes to bound, before it is bounded; then what it takes to compile. A function of texts goes
        through the list of all values that it may be given, and makes one of numbers and days, which have none."""
        for name in sorted(scalar.columns()):
            source.column(name)
        domains = [source.columns[name] for name in scalar.columns()]
        listed = _listed_by(domains)
        if any(not isinstance(each, Category) for each in domains) and _has_texts(told):
            listed += _MOST_LISTED
        self._work -= _weight(told, listed)
        if self._work >= 0 and not isinstance(scalar, scalars.Ref):
            self._weight -= scalar.form(source.columns).weight
        if min(self._work, self._weight) < 0:
            raise too_much("its computed columns take too long to bound, or to compile")

    def _part(self, kind: str, told: Any, depth: int) -> Any:
        if kind == "scalar":
            return self.scalar(told, depth)
        if kind == "scalars":
            return tuple(self.scalar(each, depth) for each in _listed(told))
        if kind == "branches":
            return tuple((condition(where), self.scalar(value, depth)) for where, value in _listed(told))
        if kind == "else":
            return None if told is None else self.scalar(told, depth)
        return _PLAIN[kind](told)


_RELATIONS: dict[str, Callable[..., Relation]] = {
    "table": _Reader.table,
    "stacked": _Reader.stacked,
    "joined": _Reader.joined,
    "looked up": _Reader.looked_up,
}
"""By their words, those that read for themselves what they stand on."""
_OVER_ONE: dict[str, Callable[..., Relation]] = {
    "extended": _Reader.extended,
    "filtered": _Reader.filtered,
    "projected": lambda _, below, names: Projected(source=below, names=_pairs(names)),
    "capped": lambda _, below, rows: Capped(source=below, rows=whole_in(rows)),
    "numbered": _Reader.numbered,
    "followed": _Reader.followed,
    "per unit": _Reader.per_unit,
}
"""Those over one relation, which is read first."""


def weight_of(where: Any, columns: Mapping[str, Domain]) -> int:
    """What a condition takes to bound, in the units of `MOST_WORK`: each of its parts may go through all values of a category.

    >>> weight_of(["and", ["like", "town", "D%"], ["like", "town", "%t"]], {})
    3
    """
    named = {each for told in _lists(where) for each in told if type(each) is str}
    return _weight(where, _listed_by(columns[name] for name in named & columns.keys()))


def _weight(told: Any, listed: int) -> int:
    """Parts, times the values that each may go through."""
    return lists_in(told, MOST_PARTS) * (1 + listed // 32)


def _listed_by(domains: Iterable[Domain]) -> int:
    """How many values are listed of these columns."""
    return sum(len(each.values()) for each in domains if isinstance(each, Category))


def _lists(told: Any) -> Iterator[list[Any]]:
    """Every list in plain data, itself included."""
    waiting = [told]
    while waiting:
        each = waiting.pop()
        if type(each) is list:
            yield each
            waiting += each


def lists_in(told: Any, most: int) -> int:
    """How many lists stand in plain data, itself included; it is not counted far beyond `most`.

    >>> lists_in(["and", ["column", "ill"], ["column", "old"]], 10)
    3
    """
    return sum(1 for _ in islice(_lists(told), most + 1))


def _has_texts(told: Any) -> bool:
    """Whether a computed column has a part that makes texts."""
    return any(each[:1] in (["textfunction"], ["cast"]) for each in _lists(told))


def _entered(told: Any, depth: int, most: int) -> list[Any]:
    """The parts of what is to be read, if it does not stand too deep."""
    if depth > most:
        raise refused(f"more than {most} of its parts stand inside one another")
    return _listed(told)


def _constant(kind: Any, value: Any) -> Const:
    if kind == "null":
        return Const(None)
    if kind == "truth":
        return Const(_truth(value))
    if kind == "text":
        return Const(text_in(value))
    if kind == "day":
        return Const(datetime.date.fromisoformat(value))
    number = _number(value)
    return Const(number.numerator if kind == "integer" and number.denominator == 1 else number)


# ── conditions ───────────────────────────────────────────────────────────────────────────────────


def condition(told: Any, depth: int = 0) -> Expression:
    """The condition that has this canonical form.

    >>> condition(["compare", ">", ["column", "age"], ["literal", "number", "40"]]).columns()
    frozenset({'age'})
    """
    kind, *parts = _listed(told)
    if depth > _DEEPEST:
        raise refused("a condition is nested too deeply")
    reader = _CONDITIONS.get(kind)
    if reader is None:
        raise refused(f"it has a condition of the kind {_named(kind)}")
    return reader(parts, depth + 1)


def _literal(parts: Any, depth: int) -> Literal:
    kind, value = parts
    if kind == "number":
        number = _number(value)
        return Literal(number.numerator if number.denominator == 1 else number)
    return Literal(datetime.date.fromisoformat(value) if kind == "date" else value)


def _side(told: Any, depth: int) -> Column | Literal:
    found = condition(told, depth)
    if not isinstance(found, Column | Literal):
        raise refused("a comparison has another condition as a side")
    return found


def _value(told: Any, depth: int) -> Any:
    kind, *parts = _listed(told)
    if kind != "literal":
        raise refused("a list of values holds something else")
    return _literal(parts, depth).value


def _like(column: Any, pattern: Any) -> Like:
    return Like(text_in(column), text_in(pattern))


_CONDITIONS: dict[str, Callable[[Any, int], Expression]] = {
    "column": lambda parts, depth: Column(*map(text_in, parts)),
    "literal": _literal,
    "compare": lambda parts, depth: Compare(text_in(parts[0]), _side(parts[1], depth), _side(parts[2], depth)),
    "in": lambda parts, depth: In(text_in(parts[0]), [_value(each, depth) for each in _listed(parts[1])]),
    "null": lambda parts, depth: IsNull(*map(text_in, parts)),
    "like": lambda parts, depth: _like(*parts),
    "and": lambda parts, depth: And(*(condition(each, depth) for each in parts)),
    "or": lambda parts, depth: Or(*(condition(each, depth) for each in parts)),
    "not": lambda parts, depth: Not(condition(parts[0], depth)),
}


# ── plain parts ──────────────────────────────────────────────────────────────────────────────────


def whole_in(value: Any) -> int:
    """A whole number in a text, and not a very large one; TypeError for anything else."""
    if type(value) is not int or abs(value) > _LARGEST:
        raise TypeError
    return value


def text_in(value: Any) -> str:
    """A text in a text; TypeError for anything else."""
    if type(value) is not str:
        raise TypeError
    return value


def _number(value: Any) -> Fraction:
    return number_from(text_in(value))


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError
    return value


def _listed(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError
    return value


def _names(told: Any) -> tuple[str, ...]:
    return tuple(map(text_in, _listed(told)))


def _pairs(told: Any) -> tuple[tuple[str, str], ...]:
    return tuple((text_in(one), text_in(other)) for one, other in map(_listed, _listed(told)))


_PLAIN: dict[str, Callable[[Any], Any]] = {"text": text_in, "whole": whole_in, "number": _number, "condition": condition}


def _named(told: Any) -> str:
    """A name of the hub's in a message."""
    return repr(told[:80]) if isinstance(told, str) else f"of the type {type(told).__name__}"


def too_much(why: str) -> UnsupportedQuery:
    """The refusal of a text that takes long to bound or to compile."""
    return UnsupportedQuery("A request was not read", why=why, instead="fewer computed columns, or the same in several questions")


def refused(why: str) -> UnsupportedQuery:
    """The refusal of a text that no request has."""
    return UnsupportedQuery("A request was not read", why=why, instead="a request about one table, as its hub wrote it")
