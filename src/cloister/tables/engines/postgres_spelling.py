"""PostgreSQL's way of writing: every cast of a text guarded, every comparison of texts by bytes.

PostgreSQL has no cast that gives NULL instead of failing, so each cast of a text stands behind a pattern and a range.
"""

import json

from cloister.tables.sourcing.preparation import Spelling
from cloister.tables.sourcing.reading import ISO_DATE, LONGEST_NUMBER, NUMBER, PLAIN_INTEGER, WHOLE

TYPES = {"int16": "smallint", "int32": "integer", "int64": "bigint"}


class PostgresSpelling(Spelling):
    """PostgreSQL's way of writing: every cast of a text guarded, every comparison of texts by bytes."""

    fence = " OFFSET 0"  # keeps the planner from writing an inner expression out many times

    def name(self, identifier_: str) -> str:
        """Quoted by psycopg."""
        return identifier(identifier_)

    def double(self, x: str) -> str:
        """A cast."""
        return f"CAST({x} AS double precision)"

    def integer(self, x: str, dtype: str) -> str:
        """A cast."""
        return f"CAST({x} AS {TYPES[dtype]})"

    def text(self, x: str, kind: str) -> str:
        """A cast, compared by bytes."""
        return f'CAST({x} AS text) COLLATE "C"'

    def finite(self, x: str) -> str:
        """NaN sorts above infinity here."""
        infinity = "CAST('Infinity' AS double precision)"
        return f"CASE WHEN {x} < {infinity} AND {x} > -{infinity} THEN CAST({x} AS double precision) END"

    def settled(self, x: str) -> str:
        """Underflow is an error here; below 1e-200 and 0 lie in the same step, since no step is below 1e-100."""
        return f"CASE WHEN abs({x}) < {self.constant(1e-200)} THEN {self.constant(0.0)} ELSE {x} END"

    def decimal(self, x: str) -> str:
        """A numeric as a double, infinite beyond 1e300, NULL for NaN and infinities."""
        return f"CASE WHEN CAST({x} AS text) NOT IN ('NaN', 'Infinity', '-Infinity') THEN {self._of_numeric(x)} END"

    def number(self, t: str) -> str:
        """Through numeric, once the pattern holds and the exponent is short enough for one."""
        digits = f"ltrim(coalesce(substring({t} from '[eE][+-]?([0-9]+)'), ''), '0')"
        nothing = f"{t} !~ '^[^eE]*[1-9]'"
        huge = (
            f"CASE WHEN {nothing} OR {t} ~ '[eE]-' THEN {self.constant(0.0)} "
            f"WHEN {self._trimmed(t)} LIKE '-%' THEN CAST('-Infinity' AS double precision) "
            f"ELSE CAST('Infinity' AS double precision) END"
        )
        return (
            f"CASE WHEN length({t}) > {LONGEST_NUMBER} OR {t} !~ '^({NUMBER})$' THEN NULL "
            f"WHEN length({digits}) > 4 THEN {huge} ELSE {self._of_numeric(f'CAST({self._trimmed(t)} AS numeric)')} END"
        )

    def whole(self, t: str) -> str:
        """Through numeric."""
        n = f"CAST({self._trimmed(t)} AS numeric)"
        limit = 2**62
        return (
            f"CASE WHEN length({t}) > {LONGEST_NUMBER} OR {t} !~ '^({WHOLE})$' THEN NULL "
            f"WHEN {n} > {limit} THEN {limit} WHEN {n} < -{limit} THEN -{limit} ELSE CAST({n} AS bigint) END"
        )

    def named_integer(self, t: str) -> str:
        """A cast behind the pattern."""
        return f"CASE WHEN {t} ~ '^({PLAIN_INTEGER})$' THEN CAST({t} AS bigint) END"

    def days(self, x: str, kind: str) -> str:
        """Whole days; a text is taken apart and its day checked against the calendar before a date is made of it."""
        if kind == "text":
            t = f"CAST({x} AS text)"
            year, month, day = (
                f"CAST(substr(ltrim({t}, ' '), {start}, {length}) AS integer)" for start, length in ((1, 4), (6, 2), (9, 2))
            )
            leap = f"({year} % 4 = 0 AND {year} % 100 <> 0) OR {year} % 400 = 0"
            february = f"CASE WHEN {leap} THEN 29 ELSE 28 END"
            last = f"CASE WHEN {month} = 2 THEN {february} WHEN {month} IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
            return (
                f"CASE WHEN {t} ~ '^({ISO_DATE})$' THEN CASE "
                f"WHEN {year} >= 1 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {last} "
                f"THEN CAST(make_date({year}, {month}, {day}) - DATE '1970-01-01' AS bigint) END END"
            )
        moment = f"({x} AT TIME ZONE 'UTC')" if kind == "timestamptz" else x
        return f"CASE WHEN isfinite({x}) THEN CAST(CAST({moment} AS date) - DATE '1970-01-01' AS bigint) END"

    def seconds(self, x: str, kind: str) -> str:
        """The epoch, which of a time without a zone is that of its clock."""
        return f"CASE WHEN isfinite({x}) THEN CAST(FLOOR(EXTRACT(EPOCH FROM {x})) AS bigint) END"

    def matches(self, t: str, pattern: str) -> str:
        """Between the ends of the text."""
        return f"({t} ~ '^({pattern})$')"

    def digits(self, t: str) -> str:
        """A cast: there is none that may fail."""
        return f"CAST({t} AS bigint)"

    def spelled(self, t: str) -> str:
        """Lower case, trimmed."""
        return f"lower({self._trimmed(t)})"

    def plain(self, t: str) -> str:
        """PostgreSQL's own text holds no NUL."""
        return t

    def position(self, t: str, options: tuple[str, ...]) -> str:
        """A CASE for a few, a lookup in a JSON object for many."""
        if len(options) <= 16:
            branches = " ".join(f"WHEN {self.literal(option)} THEN {position}" for position, option in enumerate(options))
            return f"CASE {t} {branches} END"
        lookup = self.literal(json.dumps({option: position for position, option in enumerate(options)}, ensure_ascii=False))
        return f"CAST(CAST({lookup} AS jsonb) ->> ({t}) AS integer)"

    def digest(self, t: str) -> str:
        """Through a string of 60 bits."""
        return f"CAST(CAST('x' || substr(md5({t}), 1, 15) AS bit(60)) AS bigint)"

    def _trimmed(self, t: str) -> str:
        return f"btrim({t}, E' \\t\\n\\x0b\\f\\r')"

    def _of_numeric(self, n: str) -> str:
        return (
            f"CASE WHEN {n} > 1e300 THEN CAST('Infinity' AS double precision) "
            f"WHEN {n} < -1e300 THEN CAST('-Infinity' AS double precision) "
            f"WHEN abs({n}) < 2.5e-324 THEN {self.constant(0.0)} WHEN abs({n}) < 1e-300 THEN sign({n}) * {self.constant(1e-300)} "
            f"ELSE CAST({n} AS double precision) END"
        )


def identifier(name: str) -> str:
    """A quoted identifier.

    >>> print(identifier('a "b" c'))
    "a ""b"" c"
    """
    from psycopg import sql

    return str(sql.Identifier(name).as_string(None))
