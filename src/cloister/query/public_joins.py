"""Public tables joined with one another, row by row in plain Python: `FROM supplier, nation WHERE s_nationkey = n_nationkey`.

An equality of columns of two of them finds the partners of a row; what else ON and WHERE say is asked of the joined rows. Nothing
here is private, so the only limit is how many rows are put together.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlglot import exp

from cloister.query.conditions import conjuncts
from cloister.query.evaluation import kind_of, plain
from cloister.query.publics import PublicRows
from cloister.query.refusals import refused, unsupported
from cloister.query.rows import Field, choose
from cloister.query.sources import Item

_MOST_ROWS = 2_000_000
_ONE = "one public table that holds the join"


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicJoin:
    """The rows of several public tables that fit one another."""

    name: str
    """That of the first: a session must know the name under which rows are looked up."""
    sources: tuple[PublicRows, ...]
    named: tuple[tuple[Field, ...], ...]
    """The fields of each source; the column of a field is its name in the join."""
    links: tuple[tuple[str, str], ...]
    """Columns of two sources that are equal."""
    conditions: tuple[exp.Expression, ...] = ()

    def fields(self) -> list[Field]:
        """The columns of all."""
        return [each for fields in self.named for each in fields]

    def is_boolean(self, column: str) -> bool:
        """Whether its values are truth values."""
        place, own = self._home[column]
        return self.sources[place].is_boolean(own)

    @cached_property
    def _home(self) -> dict[str, tuple[int, str]]:
        """The source of each column, and its name there."""
        return {
            str(each.column): (place, str(own.column))
            for place, (fields, source) in enumerate(zip(self.named, self.sources, strict=True))
            for each, own in zip(fields, source.fields(), strict=True)
        }

    def lists(self, columns: Sequence[str]) -> list[list[Any]]:
        """The values of some of the columns in the joined rows."""
        wanted = dict.fromkeys((*columns, *(column for pair in self.links for column in pair)))
        values: dict[str, list[Any]] = {}
        lengths = []
        for place, source in enumerate(self.sources):
            own = [column for column in wanted if self._home[column][0] == place]
            # a source of which nothing is wanted still says how many rows there are
            found = source.lists([self._home[column][1] for column in own] or [str(source.fields()[0].column)])
            lengths.append(len(found[0]))
            values |= dict(zip(own, found, strict=False))
        rows = self._rows(values, lengths)
        return [[values[column][row[self._home[column][0]]] for row in rows] for column in columns]

    def _rows(self, values: Mapping[str, list[Any]], lengths: Sequence[int]) -> list[tuple[int, ...]]:
        """Which row of each source stands in each joined row."""
        for left, right in self.links:
            _check_kinds(values[left], values[right])
        done = [0]
        rows: list[tuple[int, ...]] = [(number,) for number in range(lengths[0])]
        while len(done) < len(self.sources):
            place, pairs = self._next(done)
            partners = defaultdict(list)
            for number in range(lengths[place]):
                key = tuple(plain(values[mine][number]) for _, mine in pairs)
                if None not in key:
                    partners[key].append(number)
            before = [(done.index(self._home[other][0]), values[other]) for other, _ in pairs]
            joined: list[tuple[int, ...]] = []
            for row in rows:
                joined += [(*row, each) for each in partners.get(tuple(plain(all_[row[at]]) for at, all_ in before), ())]
                if len(joined) > _MOST_ROWS:
                    raise refused("The join of public tables is not supported", f"it has more than {_MOST_ROWS:,} rows", _ONE)
            done, rows = [*done, place], joined
        order = [done.index(place) for place in range(len(done))]
        return [tuple(row[at] for at in order) for row in rows]

    def _next(self, done: Sequence[int]) -> tuple[int, list[tuple[str, str]]]:
        """The source that is joined next, one that is linked if there is any, and its links: (joined column, its column)."""
        waiting = [place for place in range(len(self.sources)) if place not in done]
        both = [*self.links, *((right, left) for left, right in self.links)]
        found = {
            place: [(one, other) for one, other in both if self._home[one][0] in done and self._home[other][0] == place]
            for place in waiting
        }
        place = next((each for each in waiting if found[each]), waiting[0])
        return place, found[place]


def public_join(select: exp.Select, items: Sequence[Item]) -> PublicJoin:
    """The joined rows that a FROM clause of public tables describes."""
    if any(item.outer for item in items):
        raise unsupported("LEFT JOIN of public tables alone", _ONE)
    sources = tuple(item.public for item in items if item.public is not None)
    named = [[replace(each, column=f"{place}.{each.column}") for each in item.fields] for place, item in enumerate(items)]
    links: list[tuple[str, str]] = []
    for place, item in enumerate(items):
        for column in (exp.Column(this=name) for name in item.using):
            before = [each for fields in named[:place] for each in fields]
            left, right = choose(before, column, "the tables before it"), choose(named[place], column, item.label)
            links.append((str(left.column), str(right.column)))
            named[place] = [replace(each, hidden=True) if each is right else each for each in named[place]]
    conditions = [part for item in items if item.on is not None for part in conjuncts(item.on)]
    where = select.args.get("where")
    everything = [each for fields in named for each in fields]
    label = " and ".join(dict.fromkeys(item.label for item in items))
    for part in (*conditions, *(conjuncts(where.this) if where is not None else ())):
        inner = part.unnest() if isinstance(part, exp.Paren) else part
        sides = [inner.this.unnest(), inner.expression.unnest()] if isinstance(inner, exp.EQ) else []
        if sides and all(isinstance(side, exp.Column) and isinstance(side.this, exp.Identifier) for side in sides):
            one, other = (str(choose(everything, side, label).column) for side in sides)
            if one.partition(".")[0] != other.partition(".")[0]:
                links.append((one, other))
    return PublicJoin(
        name=sources[0].name, sources=sources, named=tuple(map(tuple, named)), links=tuple(links), conditions=tuple(conditions)
    )


def _check_kinds(left: Sequence[Any], right: Sequence[Any]) -> None:
    """Values of one kind are equal where they look so."""
    kinds = sorted({kind_of(value) for values in (left, right) for value in map(plain, values) if value is not None})
    if len(kinds) > 1:
        raise refused("A comparison is not supported", f"{kinds[0]} are compared with {kinds[1]}", "values of one kind")
