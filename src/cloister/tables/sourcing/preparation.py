"""How the rows of a source become codes: the rules of `columns.py`, written out in SQL.

The rules are written once; what engines spell differently is in a `Spelling`. Three steps, one inside the other: `raw` reads a
value of the declared kind (or NULL) from whatever the source holds; `code` clamps and rounds; the place orders the rows of a unit
(`order.py`). None of them can fail on a row: one that fails for one person's value would say something about that person.
"""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from cloister.tables.declaring.columns import Category, Domain, Identifier, Integer, Real, Text
from cloister.tables.declaring.during import During
from cloister.tables.declaring.moments import DAY, Moment
from cloister.tables.declaring.places import Place
from cloister.tables.declaring.regions import PARTS
from cloister.tables.engines.compiler import storage
from cloister.tables.engines.order import Part, parts_of, rank_sql
from cloister.tables.sourcing.reading import FALSE_SPELLINGS, ISO_MOMENT, TRUE_SPELLINGS

MOST_OFFENDERS = 50
"""So many values of each kind that do not fit are shown to the owner."""
LONGEST_OFFENDER = 80
"""Characters of such a value."""
_EXACT_IN_DOUBLE = 2**52
_WHOLE_FLOATS = 2**62


class Spelling(ABC):
    """What one engine writes in its own way. Each method takes and gives SQL text."""

    fence: str = ""
    """What ends a subquery that the planner must not write out many times."""

    @abstractmethod
    def name(self, identifier: str) -> str:
        """A quoted identifier."""

    def literal(self, text: str) -> str:
        """A quoted text."""
        return "'" + text.replace("'", "''") + "'"

    def double(self, x: str) -> str:
        """A number as a double; for integers and floats only."""
        return f"CAST({x} AS DOUBLE)"

    def constant(self, number: float) -> str:
        """A double constant: the shortest text that reads back as the same double."""
        return self.double(f"'{number!r}'")

    def bigint(self, x: str) -> str:
        """A double or integer, known to fit, as a 64-bit integer."""
        return f"CAST({x} AS BIGINT)"

    @abstractmethod
    def integer(self, x: str, dtype: str) -> str:
        """A 64-bit integer, known to fit, as the storage type."""

    @abstractmethod
    def text(self, x: str, kind: str) -> str:
        """Anything as text, from a source column of the given kind."""

    @abstractmethod
    def finite(self, x: str) -> str:
        """The float as a double, NULL where it is NaN or infinite."""

    @abstractmethod
    def number(self, t: str) -> str:
        """The text as a double, infinite where it is too large for one, NULL where it is not a number."""

    def decimal(self, x: str) -> str:
        """A decimal as a double: by its text, which rounds correctly on every engine."""
        return self.number(self.text(x, "decimal"))

    @abstractmethod
    def whole(self, t: str) -> str:
        """The text of a whole number as a 64-bit integer, ±2^62 where it is beyond; NULL where it is not a whole number."""

    @abstractmethod
    def named_integer(self, t: str) -> str:
        """The 64-bit integer whose plain text of up to 18 digits the text is (`PLAIN_INTEGER`), NULL where it is none."""

    def settled(self, x: str) -> str:
        """The double, so that dividing it by a step cannot fail: where underflow is an error, what is below 1e-200 becomes 0."""
        return x

    @abstractmethod
    def days(self, x: str, kind: str) -> str:
        """Days since 1970-01-01 of a date, a time or a text."""

    @abstractmethod
    def seconds(self, x: str, kind: str) -> str:
        """Seconds since 1970-01-01 of a time, floored; NULL where it is infinite."""

    @abstractmethod
    def matches(self, t: str, pattern: str) -> str:
        """Whether the whole text is of the pattern."""

    def digits(self, t: str) -> str:
        """The text of a few digits as a 64-bit integer; asked of such texts only."""
        return f"TRY_CAST({t} AS BIGINT)"

    @abstractmethod
    def spelled(self, t: str) -> str:
        """The text in lower case, without space around it."""

    def shortened(self, t: str) -> str:
        """The text of a decimal with a point, without the zeros at its end."""
        return f"rtrim(rtrim({t}, '0'), '.')"

    @abstractmethod
    def plain(self, t: str) -> str:
        """The text, NULL where it holds NUL."""

    @abstractmethod
    def position(self, t: str, options: tuple[str, ...]) -> str:
        """The position of the text in the list, NULL where it is not in it."""

    @abstractmethod
    def digest(self, t: str) -> str:
        """The first 15 hexadecimal digits of the text's MD5 hash, as a number below 2^60."""


def prepared_sql(
    columns: Mapping[str, Domain],
    schema: Mapping[str, str],
    relation: str,
    unit: str | None,
    secret: str,
    spelling: Spelling,
    during: During | None = None,
) -> str:
    """The SELECT that gives the prepared rows: c0, c1, …, and with a unit `unit` and `place`. What does not lie `during` is left
    out before rows are numbered."""
    raws = [each for i, (name, domain) in enumerate(columns.items()) for each in _read(domain, name, schema, str(i), spelling)]
    codes = [f"{_coded(domain, name, schema, str(i), spelling)} AS c{i}" for i, (name, domain) in enumerate(columns.items())]
    if unit is None:
        return f"SELECT {', '.join(codes)} FROM {_raws(raws, relation, schema, spelling, during)}"
    raws.append(f"{_unit(schema[unit], spelling.name(unit), spelling)} AS u")
    names = ", ".join(f"c{i}" for i in range(len(codes)))
    digests = [f"{_unit_number(schema[unit], spelling)} AS d"]
    digests += [
        f"COALESCE({spelling.digest(f'r{i}')}, 0) AS d{i}" for i, each in enumerate(columns.values()) if isinstance(each, Text)
    ]
    x, y, rank = rank_sql(_parts(columns, spelling), secret)
    place = spelling.integer("ROW_NUMBER() OVER (PARTITION BY u ORDER BY h)", "int32")
    return (
        f"SELECT {names}, u AS {spelling.name('unit')}, {place} AS place FROM (SELECT {names}, u, {rank} AS h FROM "
        f"(SELECT {names}, u, {x} AS x, {y} AS y FROM (SELECT {', '.join(codes + digests)}, u FROM "
        f"{_raws(raws, relation, schema, spelling, during, 'u IS NOT NULL')}{spelling.fence}) AS codes"
        f"{spelling.fence}) AS mixed{spelling.fence}) AS ranked"
    )


def _parts(columns: Mapping[str, Domain], spelling: Spelling) -> list[Part]:
    """What a row's rank is made of: its unit, then its codes from 0, NULL as the last.

    A unit enters by a number that follows from its text, whatever the kind of its column: the kind of a list depends on all of
    its values, so a rank that depended on it would let one person's value move everybody's rows.
    """
    found = parts_of("d", 2**64)
    for i, domain in enumerate(columns.values()):
        if isinstance(domain, Text):
            found += parts_of(f"d{i}", 2**60)
        else:
            wide = f"COALESCE({spelling.bigint(f'c{i}')}, {domain.null_code})"
            found += parts_of(f"({wide} - {domain.low_code})", domain.null_code - domain.low_code + 1)
    return found


def _unit_number(kind: str, spelling: Spelling) -> str:
    """A whole number of up to 18 digits for itself, and any other text for its digest. Integers need no text, which is slow."""
    if kind == "integer":
        limit = 10**18
        return f"CASE WHEN u > -{limit} AND u < {limit} THEN u ELSE {spelling.digest(spelling.text('u', kind))} END"
    return f"COALESCE({spelling.named_integer('u')}, {spelling.digest('u')})"


def report_sql(
    columns: Mapping[str, Domain],
    schema: Mapping[str, str],
    relation: str,
    unit: str | None,
    spelling: Spelling,
    during: During | None = None,
) -> str:
    """One row for the owner: rows, rows without a unit, then for each column how many values were given, kept, and outside the
    bounds; all of them of the rows that lie `during`.
    """
    inner, outer = [], ["COUNT(*)"]
    outer.append("0" if unit is None else "COUNT(*) - COUNT(u)")
    if unit is not None:
        inner.append(f"{_unit(schema[unit], spelling.name(unit), spelling)} AS u")
    for i, (name, domain) in enumerate(columns.items()):
        inner += [f"{_given(domain, name, schema, spelling)[0]} AS s{i}", *_read(domain, name, schema, str(i), spelling)]
        outer += [f"COUNT(s{i})", f"COUNT({_coded(domain, name, schema, str(i), spelling)})"]
        beyond = _beyond(domain, name, schema, str(i), spelling)
        outer.append("0" if beyond is None else f"COUNT(CASE WHEN {beyond} THEN 1 END)")
    return f"SELECT {', '.join(outer)} FROM {_raws(inner, relation, schema, spelling, during)}"


def offenders_sql(
    name: str, domain: Domain, schema: Mapping[str, str], relation: str, spelling: Spelling, during: During | None = None
) -> str:
    """For the owner: the values of a column that are none of the declared ones (0) or beyond a bound (1), each with how often it
    is there, the commonest `MOST_OFFENDERS` of either kind. Values are cut to `LONGEST_OFFENDER` characters before they are
    grouped, so that one that is long costs no more than another."""
    given, kind = _given(domain, name, schema, spelling)
    inner = [f"substr({spelling.text('s', kind)}, 1, {LONGEST_OFFENDER + 1}) AS value"]
    coded = _coded(domain, name, schema, "", spelling)
    outside = _beyond(domain, name, schema, "", spelling)
    beyond = "" if outside is None else f" WHEN {outside} THEN 1"
    inner.append(f"CASE WHEN s IS NOT NULL AND {coded} IS NULL THEN 0{beyond} END AS what")
    columns = [f"{given} AS s", *_read(domain, name, schema, "", spelling)]
    values = f"SELECT {', '.join(inner)} FROM {_raws(columns, relation, schema, spelling, during)}{spelling.fence}"
    counted = f"SELECT what, value, COUNT(*) AS n FROM ({values}) AS offending WHERE what IS NOT NULL GROUP BY what, value"
    ranked = (
        f"SELECT what, value, n, ROW_NUMBER() OVER (PARTITION BY what ORDER BY n DESC, value) AS place FROM ({counted}) AS found"
    )
    return f"SELECT what, value, n FROM ({ranked}) AS ranked WHERE place <= {MOST_OFFENDERS} ORDER BY what, place"


def outside_sql(schema: Mapping[str, str], relation: str, spelling: Spelling, during: During) -> str:
    """One row for the owner: rows that lie before these days, after them, and on no day."""
    days = f"SELECT {_day(during, schema, spelling)} AS day FROM {relation}{spelling.fence}"
    low, high = during.domain.low_code, during.domain.high_code
    return (
        f"SELECT COUNT(CASE WHEN day < {low} THEN 1 END), COUNT(CASE WHEN day > {high} THEN 1 END), COUNT(*) - COUNT(day) "
        f"FROM ({days}) AS days"
    )


def units_sql(
    domain: Domain, name: str, schema: Mapping[str, str], relation: str, spelling: Spelling, during: During | None = None
) -> str:
    """One row for the owner: how many values of a unit or an identifier there are, and how many rows the fullest has."""
    value = f"{raw(domain, schema[name], spelling.name(name), spelling)} AS u"
    counted = f"SELECT COUNT(*) AS n FROM {_raws([value], relation, schema, spelling, during, 'u IS NOT NULL')} GROUP BY u"
    return f"SELECT COUNT(*), COALESCE(MAX(n), 0) FROM ({counted}) AS counted"


def _day(during: During, schema: Mapping[str, str], spelling: Spelling) -> str:
    """The day of a row as it is in the source, in no bounds."""
    return raw(during.domain, schema[during.column], spelling.name(during.column), spelling)


def _raws(
    columns: Sequence[str], relation: str, schema: Mapping[str, str], spelling: Spelling, during: During | None, *conditions: str
) -> str:
    """A subquery of these columns, of the rows that lie `during` and for which the conditions hold."""
    chosen, kept = list(columns), list(conditions)
    if during is not None:
        chosen.append(f"{_day(during, schema, spelling)} AS day")
        kept.append(f"day BETWEEN {during.domain.low_code} AND {during.domain.high_code}")
    where = f" WHERE {' AND '.join(kept)}" if kept else ""
    return f"(SELECT {', '.join(chosen)} FROM {relation}{spelling.fence}) AS raws{where}"


def over_cap_sql(cap: int, relation: str) -> str:
    """One row for the owner: units with more rows than the cap, and the rows that the cap leaves out."""
    return f"SELECT COUNT(CASE WHEN place = {cap} + 1 THEN 1 END), COUNT(CASE WHEN place > {cap} THEN 1 END) FROM {relation}"


def _read(domain: Domain, name: str, schema: Mapping[str, str], i: str, spelling: Spelling) -> list[str]:
    """The raw values of a column: `r`, and of a place `r` and `y`, its longitude and latitude."""
    if isinstance(domain, Place):
        both = (("r", domain.longitude), ("y", domain.latitude))
        return [f"{_number(schema[column], spelling.name(column), spelling)} AS {letter}{i}" for letter, column in both]
    return [f"{raw(domain, schema[name], spelling.name(name), spelling)} AS r{i}"]


def _number(kind: str, x: str, spelling: Spelling) -> str:
    return spelling.double("NULL") if kind == "null" else _double(kind, x, spelling)


def _coded(domain: Domain, name: str, schema: Mapping[str, str], i: str, spelling: Spelling) -> str:
    """The code of what `_read` gives."""
    return (
        _place(domain, f"r{i}", f"y{i}", spelling) if isinstance(domain, Place) else code(domain, schema[name], f"r{i}", spelling)
    )


def _given(domain: Domain, name: str, schema: Mapping[str, str], spelling: Spelling) -> tuple[str, str]:
    """What is in the source, and its kind; of a place both numbers, as a text, where there is one."""
    if not isinstance(domain, Place):
        return spelling.name(name), schema[name]
    names = [spelling.name(column) for column in (domain.longitude, domain.latitude)]
    kinds = [schema[column] for column in (domain.longitude, domain.latitude)]
    texts = " || ' ' || ".join(f"COALESCE({spelling.text(x, kind)}, '')" for x, kind in zip(names, kinds, strict=True))
    return f"CASE WHEN {names[0]} IS NOT NULL OR {names[1]} IS NOT NULL THEN {texts} END", "text"


def _beyond(domain: Domain, name: str, schema: Mapping[str, str], i: str, spelling: Spelling) -> str | None:
    """Whether a value lies beyond the bounds, where it has any."""
    if isinstance(domain, Place):
        return f"{_coded(domain, name, schema, i, spelling)} = {domain.outside}"
    bounds = _raw_bounds(domain, schema[name], spelling)
    return None if bounds is None else f"r{i} < {bounds[0]} OR r{i} > {bounds[1]}"


def _place(domain: Place, x: str, y: str, spelling: Spelling) -> str:
    """column * rows + row on the lattice of the box; one more for what lies outside."""
    west, south, east, north = (spelling.constant(end / PARTS) for end in (domain.west, domain.south, domain.east, domain.north))
    parts, half = spelling.constant(float(PARTS)), spelling.constant(0.5)
    column, row = (spelling.bigint(f"FLOOR(({each} - {low}) * {parts} + {half})") for each, low in ((x, west), (y, south)))
    return spelling.integer(
        f"CASE WHEN {x} IS NULL OR {y} IS NULL OR ({x} = 0 AND {y} = 0) THEN NULL "
        f"WHEN {x} >= {west} AND {x} <= {east} AND {y} >= {south} AND {y} <= {north} THEN {column} * {domain.rows} + {row} "
        f"ELSE {domain.outside} END",
        storage(domain),
    )


def _seconds(domain: Moment, x: str, kind: str, spelling: Spelling) -> str:
    """Seconds since 1970-01-01."""
    if kind in ("timestamp", "timestamptz"):
        return spelling.seconds(x, kind)
    days = spelling.days(x, kind)
    first, last = domain.low_code // DAY - 2, domain.high_code // DAY + 2  # a zone moves a moment by less than a day
    begun = f"CASE WHEN {days} BETWEEN {first} AND {last} THEN {spelling.bigint(days)} * {DAY} END"
    return f"{begun} + {_clock(x, kind, spelling, 'NULL')}" if kind == "text" else begun


def _days(x: str, kind: str, spelling: Spelling) -> str:
    """Days since 1970-01-01; a text that says a moment with a zone is one of the day that it is in UTC."""
    days = spelling.days(x, kind)
    if kind != "text":
        return days
    clock = _clock(x, kind, spelling, "0")
    return f"({days} + {spelling.bigint(f'FLOOR({clock} / {spelling.constant(float(DAY))})')})"


def _clock(x: str, kind: str, spelling: Spelling, other: str) -> str:
    """Seconds, in UTC, since the day began with which a text of the pattern begins: its places are known. `other` of no such."""
    t = f"trim({spelling.text(x, kind)})"

    def digits(start: int, length: int = 2) -> str:
        return spelling.digits(f"substr({t}, {start}, {length})")

    def from_end(back: int, length: int = 1) -> str:
        return f"substr({t}, length({t}) - {back - 1}, {length})"

    second = f"CASE WHEN substr({t}, 17, 1) <> ':' THEN 0 WHEN {digits(18)} > 59 THEN 59 ELSE {digits(18)} END"
    hours = f"{spelling.digits(from_end(5, 2))} * 3600 + {spelling.digits(from_end(2, 2))} * 60"
    ahead = (
        f"CASE WHEN {from_end(6)} = '+' THEN {hours} WHEN {from_end(6)} = '-' THEN -({hours}) "
        f"WHEN {from_end(3)} = '+' THEN {spelling.digits(from_end(2, 2))} * 3600 "
        f"WHEN {from_end(3)} = '-' THEN -{spelling.digits(from_end(2, 2))} * 3600 ELSE 0 END"
    )
    clock = f"{digits(12)} * 3600 + {digits(15)} * 60 + {second} - ({ahead})"
    of_day = f"CASE WHEN length({t}) > {len('2026-01-31')} THEN {clock} ELSE 0 END"
    return f"CASE WHEN {spelling.matches(spelling.text(x, kind), ISO_MOMENT)} THEN {of_day} ELSE {other} END"


def raw(domain: Domain, kind: str, x: str, spelling: Spelling) -> str:
    """The value as its kind reads it: a double, an integer or a text; NULL where it is none."""
    if kind == "null":
        return spelling.text("NULL", kind) if isinstance(domain, Text) else spelling.double("NULL")
    if isinstance(domain, Identifier):
        name = _unit(kind, x, spelling)
        return spelling.plain(spelling.text(name, kind) if kind == "integer" else name)
    if isinstance(domain, Text):
        return spelling.plain(spelling.text(x, kind))
    if isinstance(domain, Category):
        first = domain.options[0]
        if isinstance(first, bool):
            return _truth(kind, x, spelling)
        return _double(kind, x, spelling) if isinstance(first, int) else spelling.text(x, kind)
    if domain.kind == "boolean":
        return _truth(kind, x, spelling)
    if domain.kind == "date":
        return _days(x, kind, spelling)
    if isinstance(domain, Moment):
        return _seconds(domain, x, kind, spelling)
    if isinstance(domain, Integer):
        if kind == "integer":
            return spelling.bigint(x)
        if not _narrow(domain):
            rounded = spelling.bigint(
                f"FLOOR({_between(_double(kind, x, spelling), float(domain.low), float(domain.high), spelling)} + 0.5)"
            )
            if kind == "float":
                return rounded
            return f"COALESCE({spelling.whole(spelling.text(x, kind))}, {rounded})"
    return _double(kind, x, spelling)


def code(domain: Domain, kind: str, r: str, spelling: Spelling) -> str:
    """The code of a raw value, in its storage type."""
    if isinstance(domain, Text):
        return r
    if kind == "null":
        return spelling.integer("NULL", storage(domain))
    if isinstance(domain, Category):
        return spelling.integer(_category(domain, r, spelling), storage(domain))
    low, high = domain.low_code, domain.high_code
    if isinstance(domain, Moment):
        return spelling.integer(f"CASE WHEN {r} BETWEEN {low} AND {high} THEN {r} END", storage(domain))
    if isinstance(domain, Real):
        shift, times, over = float(domain.origin), float(domain.step.denominator), float(domain.step.numerator)
        scaled = spelling.settled(_between(r, float(domain.low), float(domain.high), spelling))
        scaled = f"({scaled}) - {spelling.constant(shift)}" if shift else scaled
        scaled = f"({scaled}) * {spelling.constant(times)}" if times != 1 else scaled
        scaled = f"({scaled}) / {spelling.constant(over)}" if over != 1 else scaled
        return spelling.integer(
            _clamp(spelling.bigint(f"FLOOR({scaled} + {spelling.constant(0.5)})"), low, high), storage(domain)
        )
    if isinstance(domain, Integer) and kind != "integer" and _narrow(domain):
        rounded = spelling.bigint(f"FLOOR({_between(r, float(low), float(high), spelling)} + {spelling.constant(0.5)})")
        return spelling.integer(_clamp(rounded, low, high), storage(domain))
    return spelling.integer(_clamp(r, low, high), storage(domain))


def _narrow(domain: Integer) -> bool:
    return max(abs(domain.low), abs(domain.high)) <= _EXACT_IN_DOUBLE


def _raw_bounds(domain: Domain, kind: str, spelling: Spelling) -> tuple[str, str] | None:
    if kind == "null" or isinstance(domain, Category | Text | Moment) or domain.kind == "boolean":
        return None
    if isinstance(domain, Real) or (isinstance(domain, Integer) and kind != "integer" and _narrow(domain)):
        low, high = (domain.low, domain.high) if isinstance(domain, Real) else (Fraction(domain.low), Fraction(domain.high))
        return spelling.constant(float(low)), spelling.constant(float(high))
    return str(domain.low_code), str(domain.high_code)


def _unit(kind: str, x: str, spelling: Spelling) -> str:
    """A number or a text whose text is the same for equal values of any kind: 4, 4.0 and "4" are one person."""
    if kind == "integer":
        return spelling.bigint(x)
    if kind == "decimal":
        t = spelling.text(x, kind)
        return f"CASE WHEN {t} LIKE '%.%' THEN {spelling.shortened(t)} ELSE {t} END"
    if kind == "float":
        d = spelling.finite(x)
        whole = spelling.bigint(_between(d, -float(_WHOLE_FLOATS), float(_WHOLE_FLOATS), spelling))
        limit = spelling.constant(float(_WHOLE_FLOATS))
        return (
            f"CASE WHEN {d} = FLOOR({d}) AND abs({d}) < {limit} THEN {spelling.text(whole, 'integer')} "
            f"ELSE {spelling.text(d, kind)} END"
        )
    return spelling.text(x, kind)


def _double(kind: str, x: str, spelling: Spelling) -> str:
    if kind == "integer":
        return spelling.double(x)
    if kind == "decimal":
        return spelling.decimal(x)
    return spelling.finite(x) if kind == "float" else spelling.number(spelling.text(x, kind))


def _truth(kind: str, x: str, spelling: Spelling) -> str:
    if kind == "boolean":
        return f"CASE WHEN {x} THEN 1 WHEN NOT {x} THEN 0 END"
    if kind in ("integer", "float"):
        return f"CASE WHEN {x} = 1 THEN 1 WHEN {x} = 0 THEN 0 END"
    spelled = spelling.spelled(spelling.text(x, kind))
    true, false = (", ".join(spelling.literal(word) for word in words) for words in (TRUE_SPELLINGS, FALSE_SPELLINGS))
    return f"CASE WHEN {spelled} IN ({true}) THEN 1 WHEN {spelled} IN ({false}) THEN 0 END"


def _category(domain: Category, r: str, spelling: Spelling) -> str:
    first = domain.options[0]
    if isinstance(first, bool):
        branches = " ".join(f"WHEN {int(option)} THEN {position}" for position, option in enumerate(domain.options))
        return f"CASE {r} {branches} END"
    if isinstance(first, int):
        small = spelling.constant(float(_EXACT_IN_DOUBLE))
        number = spelling.bigint(_between(r, -float(_EXACT_IN_DOUBLE), float(_EXACT_IN_DOUBLE), spelling))
        whole = f"CASE WHEN {r} = FLOOR({r}) AND {r} >= -{small} AND {r} <= {small} THEN {number} END"
        r = spelling.text(whole, "integer")
    return spelling.position(r, tuple(str(option) for option in domain.options))


def _between(x: str, low: float, high: float, spelling: Spelling) -> str:
    return _clamp(x, spelling.constant(low), spelling.constant(high))


def _clamp(x: str, low: Any, high: Any) -> str:
    """CASE, since GREATEST and LEAST ignore NULL: they would turn a missing value into a bound."""
    return f"CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END"
