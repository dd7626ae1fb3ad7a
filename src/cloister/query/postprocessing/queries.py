"""Queries over answers: each becomes one step of SQL whose tables and columns bear names of ours, and a list of its columns.

A step is a table of the engine: the answer to a private question, rows of a public table, or a query over those before it. Of
each column it is known whether released numbers are in it, and in which column of the step their interval is. A step is *loose*
where released numbers decided which rows it has: what is said of such a row holds, but a sum over the rows might be one of other
rows.

The column `z` of a step tells its rows apart, by where they came from: what is ordered by nothing else is in its order, and ties
are broken by it, so that a result is the same each time, whatever is known of its numbers.
"""

# ruff: noqa: S608 - this file writes SQL: names are ours, values were read against a list

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from cloister import printable
from cloister.errors import CloisterError
from cloister.query.derived import excepted, resolved
from cloister.query.grammar import children, part_refused
from cloister.query.postprocessing.allowed import AGGREGATES, LIMITS, SELECT, parts_of
from cloister.query.postprocessing.expressions import Expressions, Rows, direction
from cloister.query.postprocessing.values import Kind, Value, uncertain
from cloister.query.refusals import clipped, refused, shown, unsupported, whole
from cloister.query.rows import Field, Qualifier, choose, in_common, named, places_by_name, same

_MOST_COLUMNS = 500
_FIELD = "field"
"""Where a column that * stands for keeps its key in the scope: two sources may each have one of its name."""


@dataclass(frozen=True)
class Column:
    """A column of a step, by the name that the analyst knows it by."""

    name: str
    kind: Kind = "certain"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A table of the engine. Its column number n is `cn`, and what is known of that is `in`."""

    name: str
    columns: tuple[Column, ...]
    loose: bool = False
    counted: bool = False
    """Whether it is certain how many rows it has, though which they are is not: of LIMIT."""
    used: Callable[[int], None] = lambda place: None
    """Told which columns are read: of a public table no others are fetched."""

    def value(self, place: int, alias: str) -> Value:
        """One of its columns, under the alias that a query gives it."""
        self.used(place)
        column = self.columns[place]
        prefix = f"{alias}." if alias else ""
        return Value(f"{prefix}c{place}", column.kind, "" if column.kind == "certain" else f"{prefix}i{place}")

    def values(self, places: Iterable[int]) -> list[Value]:
        """Some of its columns, where it stands alone."""
        return [self.value(place, "") for place in places]


@dataclass(kw_only=True)
class Scope:
    """The names of one query: its sources, and how other queries within it become steps."""

    steps: Callable[[exp.Expression], Step]
    sunday: int = 0
    """What DAYOFWEEK counts a Sunday as, in the dialect."""
    fields: list[Field] = field(default_factory=list)
    values: dict[str, Callable[[], Value]] = field(default_factory=dict)
    label: str = "the query"
    aliases: dict[str, exp.Expression] = field(default_factory=dict)
    reading: set[int] = field(default_factory=set)
    """The aliases that are being read: none stands for itself."""
    single: list[Step] = field(default_factory=list)
    """The steps that must have one row at most, and may have more."""
    reader: Expressions = field(init=False)

    def add(self, step: Step, alias: str, qualifiers: Sequence[Qualifier], hidden: frozenset[str] = frozenset()) -> None:
        """One more source."""
        for place, column in enumerate(step.columns):
            key = f"{alias}.{place}"
            self.values[key] = lambda place=place: step.value(place, alias)  # type: ignore[misc]
            self.fields.append(
                Field(name=column.name, column=key, qualifiers=tuple(qualifiers), hidden=column.name.lower() in hidden)
            )

    def in_common(self, step: Step) -> list[str]:
        """What NATURAL JOIN with one more source compares: the columns of a name that both have."""
        return in_common(self.fields, [column.name for column in step.columns], "JOIN … ON a.sex = b.sex")

    def may_be_missing(self, alias: str, *, chosen: bool) -> None:
        """A source whose columns are NULL where a row of another side matches none of it. Where released numbers decide that
        (`chosen`), nothing is known of what stands there; else that a NULL is one is certain."""
        for key, read in list(self.values.items()):
            if key.startswith(f"{alias}."):
                self.values[key] = lambda read=read: _optional(read(), alias, chosen)  # type: ignore[misc]

    def hide(self, called: frozenset[str]) -> None:
        """Columns of sources before that a later one's stand for: they are found with their qualifiers."""
        self.fields = [replace(each, hidden=True) if each.name.lower() in called else each for each in self.fields]

    def either(self, called: frozenset[str], number: int) -> None:
        """Columns that are the one or the other side's, whichever a row has: those of USING in a FULL JOIN."""
        for name in called:
            sides = [each for each in self.fields if each.name.lower() == name]
            left = next(each for each in sides if not each.hidden)
            right = next(each for each in sides if str(each.column).startswith(f"s{number}."))
            read = [self.values[str(left.column)], self.values[str(right.column)]]
            key = f"either {number}.{name}"

            def value(read: list[Callable[[], Value]] = read) -> Value:
                one, other = (each() for each in read)
                sql = f"coalesce({one.sql}, {other.sql})"
                return Value(sql) if one.certain and other.certain else uncertain(sql)

            self.values[key] = value
            place = self.fields.index(left)
            self.fields[place : place + 1] = [replace(left, column=key, qualifiers=()), replace(left, hidden=True)]

    def column(self, tree: exp.Column) -> Value:
        """What a name means: a column of a source, or what an alias of the select list stands for."""
        if _FIELD in tree.meta:
            return self.values[tree.meta[_FIELD]]()
        if not tree.args.get("table") and isinstance(tree.this, exp.Identifier) and not named(self.fields, tree):
            alike = [name for name in self.aliases if name == tree.name] or [
                name for name in self.aliases if same(tree.this, name)
            ]
            if len(alike) > 1:
                raise refused(
                    f"The name {clipped(tree.name)} is not supported", "two columns of the answer bear it", "ORDER BY 1"
                )
            aliased = self.aliases[alike[0]] if alike else None
            if aliased is not None and id(aliased) not in self.reading:
                self.reading.add(id(aliased))
                try:
                    return self.reader.read(aliased)
                finally:
                    self.reading.discard(id(aliased))
        found = choose(self.fields, tree, self.label)
        return self.values[str(found.column)]()

    def scalar(self, query: exp.Expression) -> Value:
        """The one value of a query: NULL where it has no row, and refused by the engine where it has several."""
        step = self.steps(query)
        if len(step.columns) != 1:
            raise refused("A nested query is not supported", "it does not select exactly one column", "(SELECT MAX(n) FROM t)")
        value = step.value(0, "")
        sql = f"(SELECT c0 FROM {step.name})"
        self.single += [] if _one_row(query.unnest()) else [step]
        if step.loose:
            return uncertain(sql)
        known = {"number": "(SELECT i0 FROM {})", "truth": "coalesce((SELECT i0 FROM {}), t_of(NULL))"}
        known |= {"exact": "coalesce((SELECT i0 FROM {}), TRUE)", "certain": ""}
        return Value(sql, value.kind, known[value.kind].format(step.name))

    def members(self, query: exp.Expression) -> tuple[str, bool]:
        """The rows of a query, and whether they would be the same without noise."""
        step = self.steps(query)
        if len(step.columns) != 1 and not isinstance(query.parent, exp.Exists):
            raise refused("A nested query is not supported", "it does not select exactly one column", "n IN (SELECT m FROM t)")
        return step.name, not step.loose and step.value(0, "").certain


@dataclass(kw_only=True)
class Select:
    """One SELECT over steps."""

    tree: exp.Select
    scope: Scope
    source: str
    """Its FROM, as SQL; empty for none."""
    places: str
    """What tells the rows of its FROM apart."""
    loose: bool
    over_rows: bool = False
    """Whether anything in it is worked out over several rows."""
    sets: bool = False
    """Whether it has grouping sets."""
    plain_keys: list[str] = field(default_factory=list)

    def read(self, name: str) -> tuple[str, Step]:
        """The SQL of the step, and its columns."""
        tree = self.tree
        parts_of(tree, SELECT, "a query over answers")
        written = self._written()
        aggregated = tree.args.get("group") is not None or any(map(_aggregates, self._trees(written)))
        self.over_rows = aggregated or any(each.find(exp.Window) is not None for each in self._trees(written))
        rows = Rows(
            loose=self.loose,
            places=self.places,
            one_by_one=self.places,
            windows={each.this.name.lower(): each for each in tree.args.get("windows") or ()},
        )
        plain = self.scope.reader = Expressions(names=self.scope, rows=rows)
        clauses: list[str] = [f"FROM {self.source}"] if self.source else []
        wheres = [plain.read(each) for each in self._where("where")]
        noisy = [each for each in wheres if not each.certain]
        keys: list[str] = []
        if aggregated:
            rows.where = _both(noisy)
            wheres = [each for each in wheres if each.certain]
        if wheres:
            clauses.append("WHERE " + " AND ".join(each.sql for each in wheres))
        loose = rows.after = self.loose or bool(noisy)
        reader = plain
        self.scope.aliases = {each.alias: each.this for each in tree.expressions if isinstance(each, exp.Alias)}
        if aggregated:
            keys, clean = self._group(plain, written)
            rows.places = self._places_of_groups()
            rows.loose = self.loose or not clean
            loose = rows.after = rows.loose or bool(noisy and keys)
            reader = self.scope.reader = Expressions(names=self.scope, rows=rows, grouped=True)
            if keys:
                clauses.append("GROUP BY " + ", ".join(keys))
        having = [reader.read(each) for each in self._where("having")]
        loose = rows.after = loose or any(not each.certain for each in having)
        values = [reader.read(each.unalias()) for each in written]
        if rows.where is not None and keys:
            everything = f" OR grouping({', '.join(self.plain_keys)}) = {2 ** len(self.plain_keys) - 1}" if self.sets else ""
            having.append(
                Value(f"(count(*) FILTER (WHERE {rows.where.sql}) > 0{everything})")
            )  # a grand total is there of no rows
        if having and not aggregated:
            raise unsupported("HAVING without an aggregate", "WHERE n > 10")
        if having:
            clauses.append("HAVING " + " AND ".join(each.sql for each in having))
        qualify = [reader.read(each) for each in self._where("qualify")]
        if qualify:
            clauses.append("QUALIFY " + " AND ".join(each.sql for each in qualify))
        loose = loose or any(not each.certain for each in qualify)
        columns = [Column(label, value.kind) for label, value in zip(self._names(written), values, strict=True)]
        distinct = tree.args.get("distinct")
        if distinct is not None:
            if distinct.args.get("on") is not None:
                raise unsupported("DISTINCT ON", "SELECT DISTINCT sex")
            return self._distinct(name, clauses, columns, values, loose)
        order, certain = self._ordered(reader, columns, values)
        limit, counted = _limits(tree), not loose
        loose = loose or (bool(limit) and not (order and certain))
        sql = f"SELECT {_listed(values)}, {rows.places} AS z {' '.join(clauses)} ORDER BY {order}z{limit}"
        return sql, Step(name=name, columns=tuple(columns), loose=loose, counted=counted)

    def _where(self, part: str) -> list[exp.Expression]:
        clause = self.tree.args.get(part)
        return [] if clause is None else [clause.this]

    def _trees(self, written: Sequence[exp.Expression]) -> list[exp.Expression]:
        order = self.tree.args.get("order")
        return [*written, *self._where("having"), *self._where("qualify"), *(order.expressions if order is not None else ())]

    def _written(self) -> list[exp.Expression]:
        """The select list, with every * spelled out."""
        found: list[exp.Expression] = []
        for each in self.tree.expressions:
            inner = each.unalias()
            starred = isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star))
            if not starred:
                found.append(each)
                continue
            star = inner if isinstance(inner, exp.Star) else inner.this
            if any(value for part, value in star.args.items() if part != "except_"):
                raise unsupported("What stands beside *", "the columns by name")
            probe = exp.Column(this=exp.to_identifier("x"), **{part: inner.args.get(part) for part in ("table", "db", "catalog")})
            fields = [each for each in self.scope.fields if not each.hidden]
            if isinstance(inner, exp.Column):
                fields = [each for each in self.scope.fields if _matches(each, probe)]
            if not fields:
                raise refused(f"{shown(inner)} is not supported", "there is no column that it stands for", "SELECT n")
            left_out = excepted(star, [one.name for one in fields])
            for one in fields:
                if one.name in left_out:
                    continue
                found.append(exp.Column(this=exp.to_identifier(one.name, quoted=True)))
                found[-1].meta[_FIELD] = one.column
        if len(found) > _MOST_COLUMNS:
            raise refused("The query is not supported", f"it has more than {_MOST_COLUMNS} columns", "the columns by name")
        return found

    @staticmethod
    def _names(written: Sequence[exp.Expression]) -> list[str]:
        """What the columns are called: by their aliases, by the names of plain columns, by their text; each once."""
        found: list[str] = []
        for each in written:
            chosen = isinstance(each, exp.Alias)
            if chosen and not each.alias:
                raise refused("An empty name is not supported", "no column of the answer can bear it", "… AS n")
            if chosen and each.alias in found:
                raise refused(
                    f"The name {clipped(each.alias)} is not supported",
                    "two columns of the answer would bear it",
                    "… AS another_name",
                )
            inner = each.unalias()
            name = each.alias if chosen else inner.name if isinstance(inner, exp.Column) else ""
            name = name or shown_name(inner)
            number, base = 0, name
            while name in found:
                number += 1
                name = f"{base}_{number}"
            found.append(name)
        return found

    def _places_of_groups(self) -> str:
        """What tells groups apart: their first rows, and which keys a grouping set leaves out."""
        first = f"min({self.places})"
        return f"list_prepend(CAST(grouping({', '.join(self.plain_keys)}) AS INTEGER), {first})" if self.sets else first

    def _group(self, plain: Expressions, written: Sequence[exp.Expression]) -> tuple[list[str], bool]:
        """GROUP BY as SQL, and whether the groups would be the same without noise."""
        group = self.tree.args.get("group")
        if group is None:
            return [], True
        parts_of(group, frozenset({"expressions", "rollup", "cube", "grouping_sets"}), "GROUP BY")
        clean = True

        def key(tree: exp.Expression) -> str:
            nonlocal clean
            if isinstance(tree, exp.Tuple):
                return f"({', '.join(key(each) for each in tree.expressions)})"
            if isinstance(tree, exp.Rollup | exp.Cube):
                return f"{tree.key.upper()} ({', '.join(key(each) for each in tree.expressions)})"
            if isinstance(tree, exp.GroupingSets):
                return f"GROUPING SETS ({', '.join(key(each) for each in tree.expressions)})"
            inner = resolved(tree, written)
            if _aggregates(inner):
                raise refused(f"GROUP BY {shown(inner)} is not supported", "it is an aggregate", "GROUP BY sex")
            value = plain.read(inner)
            clean = clean and value.certain
            if not value.certain:
                plain.rows.keys.add(value.sql)
            self.plain_keys += [] if value.sql in self.plain_keys else [value.sql]
            return value.sql

        trees = [
            *group.expressions,
            *(each for part in ("rollup", "cube", "grouping_sets") for each in group.args.get(part) or ()),
        ]
        if any(isinstance(each, exp.Rollup | exp.Cube) and not each.expressions for each in trees):
            raise unsupported("WITH ROLLUP over an answer", "GROUP BY ROLLUP (sex)")
        self.sets = len(trees) > len(group.expressions)
        return [key(each) for each in trees], clean

    def _distinct(
        self, name: str, clauses: list[str], columns: list[Column], values: list[Value], loose: bool
    ) -> tuple[str, Step]:
        """SELECT DISTINCT: rows with released numbers in them are alike by chance, so nothing more is known of these."""
        certain = all(value.certain for value in values)
        outer = [Column(each.name, each.kind if each.kind == "certain" else "exact") for each in columns]
        inner = (
            f"SELECT DISTINCT {', '.join(f'{value.sql} AS c{place}' for place, value in enumerate(values))} {' '.join(clauses)}"
        )
        step = Step(name=name, columns=tuple(outer), loose=loose or not certain)
        order, sure = by_columns(self.tree, step)
        limit = _limits(self.tree)
        chosen = step.loose or (bool(limit) and not (order and sure))
        step = Step(name=name, columns=step.columns, loose=chosen, counted=not step.loose)
        return f"SELECT {flagged(step)} FROM ({inner}) ORDER BY {order}z{limit}", step

    def _ordered(self, reader: Expressions, columns: Sequence[Column], values: Sequence[Value]) -> tuple[str, bool]:
        """ORDER BY as SQL, and whether no released number is in it."""
        order = self.tree.args.get("order")
        found, certain = [], True
        for each in order.expressions if order is not None else ():
            place = _place(each.this, [column.name for column in columns])
            value = values[place] if place is not None else reader.read(each.this)
            certain = certain and value.certain
            found.append(f"{value.sql}{direction(each)}, ")
        return "".join(found), certain


def stacked(tree: exp.SetOperation, left: Step, right: Step, name: str) -> tuple[str, Step]:
    """UNION, EXCEPT or INTERSECT of two steps."""
    read = {"this", "expression", "distinct", "with_", "order", "limit", "offset"}
    parts_of(tree, frozenset(read | ({"by_name"} if isinstance(tree, exp.Union) else set())), tree.key.upper())
    if len(left.columns) != len(right.columns):
        raise refused(
            f"{tree.key.upper()} is not supported",
            "its parts have not the same number of columns",
            "SELECT a, b … UNION ALL SELECT a, b …",
        )
    names, others = ([column.name for column in step.columns] for step in (left, right))
    places = places_by_name(names, others) if tree.args.get("by_name") else range(len(right.columns))
    parts = ((left, range(len(left.columns))), (right, places))
    pairs = [(one, right.columns[place]) for one, place in zip(left.columns, places, strict=True)]
    certain = all(one.kind == other.kind == "certain" for one, other in pairs)
    whole_rows = isinstance(tree, exp.Union) and not tree.args.get("distinct")
    loose = left.loose or right.loose or not (certain or whole_rows)
    word = tree.key.upper() + ("" if tree.args.get("distinct") else " ALL")
    if whole_rows:
        kinds: list[Kind] = [_joined(one.kind, other.kind) for one, other in pairs]
        sides = [
            f"SELECT {_listed(_as(step, order, kinds))}, list_prepend({side}, z) AS z FROM {step.name}"
            for side, (step, order) in enumerate(parts)
        ]
        inner = f" {word} ".join(sides)
    else:
        kinds = ["certain" if one.kind == other.kind == "certain" else "exact" for one, other in pairs]
        sides = [
            f"SELECT {', '.join(f'{value.sql} AS c{place}' for place, value in enumerate(step.values(order)))} FROM {step.name}"
            for step, order in parts
        ]
        inner = f" {word} ".join(sides)
    columns = tuple(Column(one.name, kind) for (one, _), kind in zip(pairs, kinds, strict=True))
    step = Step(name=name, columns=columns, loose=loose)
    order, sure = by_columns(tree, step)
    limit = _limits(tree)
    listed = "*" if whole_rows else flagged(step)
    step = Step(name=name, columns=columns, loose=loose or (bool(limit) and not (order and sure)))
    return f"SELECT {listed} FROM ({inner}) ORDER BY {order}z{limit}", step


def _joined(one: Kind, other: Kind) -> Kind:
    if one == other:
        return one
    return "number" if {one, other} == {"number", "certain"} else "exact"


def _as(step: Step, places: Iterable[int], kinds: Sequence[Kind]) -> list[Value]:
    """These columns of a step, with what is known of them in the form that a kind has."""
    found = []
    for value, kind in zip(step.values(places), kinds, strict=True):
        bound = {"certain": "", "number": value.interval, "truth": value.truth, "exact": value.exact}[kind]
        found.append(Value(value.sql, kind, bound))
    return found


def shown_name(tree: exp.Expression) -> str:
    """What a column is called that nobody gave a name: its text.

    >>> import sqlglot
    >>> shown_name(sqlglot.parse_one("SQRT(n) / 2"))
    'SQRT(n) / 2'
    """
    return printable.shown(tree.sql(comments=False))[: printable.LONGEST_NAME].strip() or "column"


def by_columns(tree: exp.Expression, step: Step) -> tuple[str, bool]:
    """ORDER BY columns of a result, by name or place, and whether no released number is in it."""
    order = tree.args.get("order")
    found, certain = [], True
    for each in order.expressions if order is not None else ():
        place = _place(each.this, [column.name for column in step.columns])
        if place is None:
            raise unsupported(f"ORDER BY {shown(each.this)} here", "ORDER BY a column of the answer, by its name")
        certain = certain and step.columns[place].kind == "certain"
        found.append(f"c{place}{direction(each)}, ")
    return "".join(found), certain


def flagged(step: Step) -> str:
    """Its columns, each row once, and nothing known of those with released numbers in them."""
    places = ", ".join(f"c{place}" for place in range(len(step.columns)))
    found = [f"[CAST(row_number() OVER (ORDER BY {places}) AS INTEGER)] AS z"]
    for place, column in enumerate(step.columns):
        found.append(f"c{place}")
        if column.kind != "certain":
            found.append(f"FALSE AS i{place}")
    return ", ".join(found)


def _optional(value: Value, alias: str, chosen: bool) -> Value:
    """A column of a source that a row may have no match in."""
    if chosen:
        return uncertain(value.sql)
    if value.kind == "truth":
        return Value(value.sql, "truth", f"CASE WHEN {alias}.z IS NULL THEN t_of(NULL) ELSE {value.bound} END")
    return Value(value.sql, "exact", f"coalesce({value.bound}, TRUE)") if value.kind == "exact" else value


def _listed(values: Sequence[Value]) -> str:
    found = []
    for place, value in enumerate(values):
        found.append(f"{value.sql} AS c{place}")
        if not value.certain:
            found.append(f"{value.bound} AS i{place}")
    return ", ".join(found)


def _both(conditions: Sequence[Value]) -> Value | None:
    if not conditions:
        return None
    first = conditions[0]
    for each in conditions[1:]:
        first = Value(f"({first.sql} AND {each.sql})", "truth", f"t_and({first.truth}, {each.truth})")
    return first


def _limits(tree: exp.Expression) -> str:
    """LIMIT and OFFSET, of constants."""
    found = ""
    for part in sorted(LIMITS):
        clause = tree.args.get(part)
        if clause is None:
            continue
        options = clause.args.get("limit_options")
        if clause.args.get("expressions"):
            raise part_refused(exp.Limit, "expressions")
        if options is not None and not isinstance(clause, exp.Fetch):
            raise part_refused(exp.Limit, "limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise part_refused(exp.LimitOptions, "percent" if options.args.get("percent") else "with_ties")
        count = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression
        count = count.unnest() if isinstance(count, exp.Paren) else count
        number = whole(count.this) if isinstance(count, exp.Literal) and not count.is_string else None
        number = 1 if count is None and isinstance(clause, exp.Fetch) else number  # FETCH FIRST ROW ONLY
        if number is None:
            raise unsupported(f"This {part.upper()}", f"{part.upper()} 10")
        found += f" {part.upper()} {number}"
    return found


def _one_row(tree: exp.Expression) -> bool:
    """Whether a query has one row at most, whatever its numbers are."""
    alone = isinstance(tree, exp.Select) and tree.args.get("group") is None and any(map(_aggregates, tree.expressions))
    limit = tree.args.get("limit")
    most = None if limit is None else limit.args.get("count") or limit.args.get("expression") or limit
    return alone or (most is not None and most.name in ("", "0", "1"))


def _place(target: exp.Expression, names: Sequence[str]) -> int | None:
    """The column of the answer that an order names, by place or by name."""
    if isinstance(target, exp.Literal) and not target.is_string:
        place = whole(target.this) or 0
        if not 1 <= place <= len(names):
            raise refused(f"ORDER BY {clipped(target.this)} is not supported", "no such column is selected", "ORDER BY 1")
        return place - 1
    if isinstance(target, exp.Column) and isinstance(target.this, exp.Identifier) and not target.args.get("table"):
        exactly = [place for place, name in enumerate(names) if name == target.name]
        alike = exactly or [place for place, name in enumerate(names) if same(target.this, name)]
        return alike[0] if len(alike) == 1 else None
    return None


def _aggregates(tree: exp.Expression) -> bool:
    """Whether it holds an aggregate over rows that is not one over a window, questions within it not counted."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Window):
            inner = node.this.this if isinstance(node.this, exp.Filter) else node.this
            waiting += list(inner.iter_expressions())
            waiting += [each for part in ("partition_by", "order") for each in children(node.args.get(part))]
            continue
        if type(node) in AGGREGATES or isinstance(node, exp.WithinGroup):
            return True
        waiting += list(node.iter_expressions())
    return False


def _matches(known: Field, probe: exp.Column) -> bool:
    try:
        return bool(named([Field(name=probe.name, column="x", qualifiers=known.qualifiers)], probe))
    except CloisterError:
        return False
