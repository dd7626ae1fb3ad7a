"""Joins of private tables: rows of the same unit, and rows reached through a key that the unit's rows hold.

Both are joins inside one unit. A unit's derived rows are pairs of its own rows, so another unit's coming and going changes none
of them, and their number is at most the product of the two bounds.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from cloister.errors import UnsupportedQuery
from cloister.tables.declaring.columns import Domain, Identifier
from cloister.tables.engines.ibis_compilers import ibis
from cloister.tables.expression.names import quoted
from cloister.tables.expression.unify import recoded, unified, with_nullable
from cloister.tables.relations.derived import Relation, bounded, known, needs_unit, unique


@dataclass(frozen=True, kw_only=True)
class UnitJoined(Relation):
    """Pairs of a left and a right row of one unit, with equal values in each pair of columns of `on`.

    Rows of a unit: pairs of its own rows, chosen by the pair alone: at most left.max_rows · right.max_rows. NULL equals nothing.
    With `outer`, a left row without a partner stays, with NULL in the columns of the right side: one row for a left row that
    would else have none, so the bound holds. Where the columns of `on` tell the unit's right rows apart (`tells_apart`), a left
    row has at most one partner, since two would agree in all of them: so there are at most left.max_rows, `outer` or not. Where
    they tell its left rows apart, a right row has at most one partner, and without `outer` there are at most right.max_rows.
    The place (left.place - 1) · right.span + right.place tells the pairs apart; a left row that stays alone takes the first place
    of its stretch.

    With `full`, which goes with `outer`, a right row without a partner stays, too, with NULL in the columns of the left side,
    behind the places of all pairs: it is its own unit's, and no other unit's rows decide whether it has a partner. With L and R
    rows of which a and b stay alone there are at most (L - a)(R - b) + a + b. That is linear in a and in b, so the most is at a
    corner: L·R where none stays alone, L + R where all do. Without `on` a row stays alone only where the other side has none, so
    there are L·R at most; where each row of one side has at most one partner, L + R.

    Units are the same where their names are: 4 and "4" (`preparation.py`). That both tables speak of the same people is what
    one population means; a session refuses a join of two.

    >>> from cloister.tables import Base, Integer, PrivateTable
    >>> visits = PrivateTable({"who": ["a"], "cost": [3]}, {"cost": Integer(0, 9)}, unit="who", max_rows=3)
    >>> tests = PrivateTable({"who": ["a"], "score": [1]}, {"score": Integer(0, 5)}, unit="who", max_rows=2)
    >>> joined = UnitJoined(left=Base(name="visits", table=visits), right=Base(name="tests", table=tests))
    >>> joined.max_rows, list(joined.columns)
    (6, ['cost', 'score'])
    """

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...] = ()
    outer: bool = False
    full: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", tuple((left, right) for left, right in self.on))
        object.__setattr__(self, "outer", self.outer or self.full)
        for side in (self.left, self.right):
            needs_unit(side, "A join of private tables")
        if self.left.through != self.right.through:
            raise UnsupportedQuery(
                "A join of private tables is not supported",
                why=f"the units of one are {_called(self.left)} and of the other {_called(self.right)}",
                instead=_through(self.left.through or self.right.through or ""),
            )
        unique([*self.left.columns, *self.right.columns])
        for left, right in self.on:
            known(self.left, left)
            known(self.right, right)
            unified(f"{left} = {right}", [self.left.columns[left], self.right.columns[right]])
        bounded("A join of private tables", self.max_rows, self.span)
        self._check_extent()

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """Those of the left, then those of the right; these have a group of NULL in an outer join."""
        sides = ((self.left, self.full), (self.right, self.outer))
        return MappingProxyType(
            {
                name: with_nullable(domain, missing or domain.nullable)
                for side, missing in sides
                for name, domain in side.columns.items()
            }
        )

    @cached_property
    def max_rows(self) -> int:
        """The product, or the bound of one side where each of its rows has at most one partner. Worked out once: the bounds below
        ask for each other."""
        left, right = self.left.max_rows or 1, self.right.max_rows or 1
        if self.full and self.on:
            sides = (self.left, self.right)
            once = any(side.tells_apart(frozenset(pair[place] for pair in self.on)) for place, side in enumerate(sides))
            return left + right if once else max(left * right, left + right)
        if self.full:
            return left * right
        found = [left * right]
        if self.right.tells_apart(frozenset(other for _, other in self.on)):
            found.append(left)
        if not self.outer and self.left.tells_apart(frozenset(one for one, _ in self.on)):
            found.append(right)
        return min(found)

    @property
    def span(self) -> int:
        """The product, and the right side's beside it where its rows may stay alone."""
        return self.left.span * self.right.span + (self.right.span if self.full else 0)

    @property
    def unit_type(self) -> str:
        """Text, unless both are numbers."""
        return self.left.unit_type if self.left.unit_type == self.right.unit_type else "string"

    @property
    def parts(self) -> tuple[Relation, ...]:
        """Left and right."""
        return (self.left, self.right)

    def origins(self, name: str) -> frozenset[str]:
        """Those of the side that has the column."""
        return (self.left if name in self.left.columns else self.right).origins(name)

    def _variety(self, names: frozenset[str]) -> int:
        """A tuple is one of the left's and one of the right's, or with `outer` one of the left's and NULL throughout, or with
        `full` NULL throughout and one of the right's."""
        right = names & self.right.columns.keys()
        left = names - right
        found = self.right.variety(right) + self.outer if right else 1
        return (self.left.variety(left) + self.full if left else 1) * found

    def describe(self) -> Any:
        """Both sides, the pairs, and whether it is outer or full."""
        pairs = [list(pair) for pair in self.on]
        return ["joined", self.left.describe(), self.right.describe(), pairs, "full" if self.full else self.outer]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A join on the unit's name and the codes of the pairs."""
        left = self.left.build(sources, dialect).view()
        right = renamed(self.right.build(sources, dialect), len(self.right.columns))
        conditions = [left.unit.cast(self.unit_type) == right.right_unit.cast(self.unit_type)]
        lefts, rights = list(self.left.columns), list(self.right.columns)
        for one, other in self.on:
            domains = self.left.columns[one], self.right.columns[other]
            target = unified(one, domains)
            mine, theirs = left[f"c{lefts.index(one)}"], right[f"r{rights.index(other)}"]
            conditions.append(recoded(mine, domains[0], target) == recoded(theirs, domains[1], target))
        rows = (left.outer_join if self.full else left.left_join if self.outer else left.inner_join)(right, conditions)
        partner = ibis.coalesce(rows.right_place, 1) if self.outer else rows.right_place
        codes = {f"c{i}": rows[f"c{i}"] for i in range(len(lefts))}
        codes |= {f"c{len(lefts) + i}": rows[f"r{i}"] for i in range(len(rights))}
        place, unit = (rows.place - 1) * self.right.span + partner, rows.unit.cast(self.unit_type)
        if self.full:
            place = ibis.coalesce(place, self.left.span * self.right.span + rows.right_place)
            unit = ibis.coalesce(unit, rows.right_unit.cast(self.unit_type))
        return rows.select(**codes, unit=unit, place=place)


@dataclass(frozen=True, kw_only=True)
class KeyJoined(Relation):
    """Rows of `right`, a relation of people, each with the rows of `left` whose unit is the value of `right_key`.

    `left` stands on a table declared `through=`: its units are not people but values of a column of another table, such as the
    visits that prescriptions belong to. The result belongs to the people of `right`.

    Rows of a unit: pairs of one of its own rows and a left row with that row's key. Which left rows there are for a key (their
    cap acts key by key) follows from the rows of that key. So at most right.max_rows · left.max_rows.

    When a key occurs with several people, its left rows belong to each of them, and each has them in its derived rows. Removing
    a person removes that person's right rows, and of the left rows those that belong to nobody else. The left rows of every key
    that another person has are then the same as before, all of them, and so are that person's pairs. Hence the claim of
    `derived.py` holds, whether or not keys are unique. Left rows whose key nobody has are in no derived row.

    A person has a key by a row of the table and column that `through=` names. So `right_key` must hold the values of that very
    column: were it any other, a person could reach rows that are somebody else's, and lose them when that one goes.

    With `outer`, a right row without a partner stays, with NULL in the columns of the left side.

    >>> from cloister.tables import Base, Integer, PrivateTable
    >>> visits = PrivateTable({"who": ["a"], "visit": [7]}, {"visit": Identifier()}, unit="who", max_rows=3)
    >>> unit = {"unit": "visit", "max_rows": 4, "through": "visits.visit"}
    >>> drugs = PrivateTable({"visit": [7], "dose": [1]}, {"dose": Integer(0, 9)}, **unit)
    >>> left, right = Base(name="drugs", table=drugs), Base(name="visits", table=visits)
    >>> joined = KeyJoined(left=left, right=right, left_key="visit", right_key="visit")
    >>> joined.unit, joined.max_rows, joined.through, list(joined.columns)
    ('who', 12, None, ['visit', 'dose'])
    """

    left: Relation
    right: Relation
    left_key: str
    right_key: str
    outer: bool = False

    def __post_init__(self) -> None:
        for side in (self.left, self.right):
            needs_unit(side, "A join of private tables")
        known(self.right, self.right_key)
        if self.left.through is None or self.left_key != self.left.unit:
            raise UnsupportedQuery(
                f"A join on {self.left_key!r} is not supported",
                why="a private table is joined on its unit, or on the unit column of a table declared through=",
                instead=f'cl.PrivateTable(…, unit="{self.left_key}", max_rows=10, through="other_table.{self.right_key}")',
            )
        if not isinstance(self.right.columns[self.right_key], Identifier):
            raise UnsupportedQuery(
                f"A join on {self.right_key!r} is not supported",
                why="it is not declared an identifier",
                instead=f'"{self.right_key}": cl.Identifier()',
            )
        if self.right.origins(self.right_key) != {self.left.through}:
            raise UnsupportedQuery(
                f"A join on {self.right_key!r} is not supported",
                why=f"it does not hold the values of {self.left.through} as they are declared",
                instead=_through(self.left.through),
            )
        unique([*self.right.columns, *self.left.columns])
        bounded("A join of private tables", self.max_rows, self.span)
        self._check_extent()

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """Those of the right, then those of the left; these have a group of NULL in an outer join."""
        left = self.left.columns.items()
        return MappingProxyType(
            {**self.right.columns, **{name: with_nullable(domain, self.outer or domain.nullable) for name, domain in left}}
        )

    @property
    def unit(self) -> str | None:
        """That of the right."""
        return self.right.unit

    @property
    def through(self) -> str | None:
        """That of the right, where its units are in turn values of a column."""
        return self.right.through

    @property
    def unit_type(self) -> str:
        """That of the right."""
        return self.right.unit_type

    @property
    def max_rows(self) -> int:
        """The product."""
        return (self.left.max_rows or 1) * (self.right.max_rows or 1)

    @property
    def span(self) -> int:
        """The product."""
        return self.left.span * self.right.span

    @property
    def parts(self) -> tuple[Relation, ...]:
        """Right and left."""
        return (self.right, self.left)

    def origins(self, name: str) -> frozenset[str]:
        """Those of the side that has the column."""
        return (self.left if name in self.left.columns else self.right).origins(name)

    def _variety(self, names: frozenset[str]) -> int:
        """Without columns of the left, the tuples are the right's. With them: what stands beside a right row follows from its
        key, so with one tuple of the right's columns and the key stand at most as many tuples as the left has for one key; or,
        with `outer` and where the key has none, the one that is NULL throughout."""
        left = names & self.left.columns.keys()
        if not left:
            return self.right.variety(names)
        return self.right.variety(names - left | {self.right_key}) * self.left.variety(left)

    def describe(self) -> Any:
        """Both sides and the key."""
        return ["through", self.left.describe(), self.right.describe(), self.right_key, self.outer]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A join on the key's name."""
        right = self.right.build(sources, dialect).view()
        left = renamed(self.left.build(sources, dialect), len(self.left.columns))
        rights = list(self.right.columns)
        condition = right[f"c{rights.index(self.right_key)}"] == left.right_unit.cast("string")
        rows = (right.left_join if self.outer else right.inner_join)(left, [condition])
        partner = ibis.coalesce(rows.right_place, 1) if self.outer else rows.right_place
        codes = {f"c{i}": rows[f"c{i}"] for i in range(len(rights))}
        codes |= {f"c{len(rights) + i}": rows[f"r{i}"] for i in range(len(self.left.columns))}
        return rows.select(**codes, unit=rows.unit, place=(rows.place - 1) * self.left.span + partner)


def renamed(rows: Any, width: int) -> Any:
    """The rows of a second side, with names of their own: r0, r1, …, right_unit and right_place.

    Both sides of a join are views, since the first may hold the very same expression as the second, or be a join that has it
    inside, and Ibis would not know which of the two is meant.
    """
    codes = {f"r{i}": rows[f"c{i}"] for i in range(width)}
    return rows.select(**codes, right_unit=rows.unit, right_place=rows.place).view()


def _called(relation: Relation) -> str:
    return "persons" if relation.through is None else f"values of {relation.through}"


def _through(column: str) -> str:
    table, _, name = column.rpartition(".")
    return f"JOIN {quoted(table)} ON … = {quoted(table)}.{quoted(name)}"
