"""The SQL that is read when no dialect is named, the names of those that can be, and what all of them are read with.

Our own SQL is sqlglot's default dialect, with what people bring from elsewhere: names in backticks, `DATE_DIFF` in each
of its orders, `DATE_TRUNC` with the unit first or last, `DATE_PART`. NULL sorts as the largest value, as it does in the answers.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType

from cloister.errors import UnsupportedQuery

_READ = "ansi bigquery databricks duckdb mysql oracle postgres redshift snowflake spark sqlite trino tsql"
DIALECTS = tuple(_READ.split())
_WORDS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_UNITS = frozenset({*_WORDS, *(f"{word}s" for word in _WORDS)})
_ALIASES = {"cloister": "", "postgresql": "postgres", "sqlserver": "tsql", "mssql": "tsql", "pyspark": "spark"}


def _unit(part: object) -> str | None:
    """The unit of time that an argument names, as a word or as a text."""
    if isinstance(part, exp.Literal) and part.is_string:
        word = str(part.this)
    elif isinstance(part, exp.Column | exp.Var | exp.Identifier) and not part.args.get("table"):
        word = part.name
    else:
        return None
    if word.lower() in _UNITS:
        return word.lower().removesuffix("s")
    return word if isinstance(part, exp.Literal) and word.isascii() and word.isalpha() else None  # refused by its name


def _difference(args: Sequence[Any]) -> exp.Expression:
    """DATE_DIFF(unit, from, to), DATE_DIFF(to, from, unit) or DATEDIFF(to, from) in days."""
    if len(args) == 3 and (unit := _unit(args[0])):
        return exp.DateDiff(this=args[2], expression=args[1], unit=exp.var(unit.upper()))
    if len(args) == 3 and (unit := _unit(args[2])):
        return exp.DateDiff(this=args[0], expression=args[1], unit=exp.var(unit.upper()))
    if len(args) == 2:
        return exp.DateDiff(this=args[0], expression=args[1], unit=exp.var("DAY"))
    return exp.Anonymous(this="DATE_DIFF", expressions=list(args))


def _truncation(args: Sequence[Any]) -> exp.Expression:
    """DATE_TRUNC('month', day) or DATE_TRUNC(day, MONTH)."""
    for unit, day in ((0, 1), (1, 0)):
        if len(args) == 2 and (word := _unit(args[unit])):
            return exp.DateTrunc(this=args[day], unit=exp.Literal.string(word.upper()))
    return exp.Anonymous(this="DATE_TRUNC", expressions=list(args))


def _part(args: Sequence[Any]) -> exp.Expression:
    """DATE_PART('year', day)."""
    if len(args) == 2 and isinstance(args[0], exp.Literal) and args[0].is_string:
        return exp.Extract(this=exp.var(args[0].this.upper()), expression=args[1])
    return exp.Anonymous(this="DATE_PART", expressions=list(args))


def _shift(args: Sequence[Any]) -> exp.Expression:
    """DATEADD(unit, count, day)."""
    if len(args) == 3 and (unit := _unit(args[0])):
        return exp.DateAdd(this=args[2], expression=exp.Interval(this=args[1], unit=exp.var(unit.upper())))
    return exp.Anonymous(this="DATEADD", expressions=list(args))


class Cloister(sqlglot.Dialect):  # type: ignore[misc]
    """Our own SQL."""

    NULL_ORDERING = "nulls_are_large"

    class Tokenizer(sqlglot.Tokenizer):  # type: ignore[misc]
        """Names in double quotes or backticks."""

        IDENTIFIERS: ClassVar[list[str]] = ['"', "`"]
        KEYWORDS: ClassVar[dict[str, TokenType]] = {**sqlglot.Tokenizer.KEYWORDS, "//": TokenType.DIV}

    class Parser(sqlglot.Parser):  # type: ignore[misc]
        """Dates in each of their spellings."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **sqlglot.Parser.FUNCTIONS,
            "DATEADD": _shift,
            "DATEDIFF": _difference,
            "DATE_DIFF": _difference,
            "DATE_PART": _part,
            "DATE_TRUNC": _truncation,
        }


_OURS = Cloister()


def canonical(name: str | None) -> str | None:
    """The name that a dialect goes by here; None for our own.

    >>> canonical("SQLServer"), canonical("cloister")
    ('tsql', None)
    """
    wanted = name.lower() if isinstance(name, str) else ""
    wanted = _ALIASES.get(wanted, wanted)
    return None if wanted in ("", "ansi") else wanted


def dialect_named(name: str | None) -> sqlglot.Dialect:
    """The dialect of that name; None is our own.

    >>> type(dialect_named(None)).__name__, type(dialect_named("Postgres")).__name__
    ('Cloister', 'Postgres')
    """
    wanted = name.lower() if isinstance(name, str) else "" if name is None else "?"
    wanted = _ALIASES.get(wanted, wanted)
    if wanted in ("", "ansi"):
        return _OURS
    if wanted not in DIALECTS:
        raise UnsupportedQuery(
            "The dialect is not supported", why=f"known are {', '.join(DIALECTS)}", instead='dialect="postgres"'
        )
    found = sqlglot.Dialect.get_or_raise(wanted)
    found.SUPPORTS_ORDER_BY_ALL = False  # `rewriting.py` reads it, and there a name in quotes is one
    return found


class _Grouped:
    """After ROLLUP (…), CUBE (…), GROUPING SETS (…) or WITH ROLLUP a key follows a comma; sqlglot looks for one without it.

    Left alone it takes LIMIT, OFFSET, WINDOW and LOCK for names of columns there, and fails on the words behind them.
    """

    _closed = -1
    """Where the last of these ended: nothing that begins there is a key."""

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:
        return self._closing(super()._parse_cube_or_rollup(with_prefix))  # type: ignore[misc]

    def _parse_grouping_sets(self) -> Any:
        return self._closing(super()._parse_grouping_sets())  # type: ignore[misc]

    def _closing(self, found: Any) -> Any:
        if found is not None:
            self._closed = self._index  # type: ignore[attr-defined]
        return found

    def _parse_derived_table_values(self) -> Any:
        """VALUES (…); a table that is called "values" is none, though sqlglot takes it for one."""
        named = self._curr and self._curr.token_type is TokenType.IDENTIFIER  # type: ignore[attr-defined]
        return None if named else super()._parse_derived_table_values()  # type: ignore[misc]

    def _parse_disjunction(self) -> Any:
        return None if self._index == self._closed else super()._parse_disjunction()  # type: ignore[attr-defined, misc]


@cache
def _grouped(parser: type[sqlglot.Parser]) -> type[sqlglot.Parser]:
    functions = dict(parser.FUNCTIONS)
    usual = functions.get("TO_CHAR")

    def as_written(args: Sequence[Any]) -> Any:
        """TO_CHAR with its letters: some dialects turn them into those of strftime, and names into nonsense."""
        if len(args) == 2 or usual is None:
            return exp.ToChar.from_arg_list(args)
        return usual(args)

    functions["TO_CHAR"] = as_written
    if parser is sqlglot.Dialect.get_or_raise("mysql").parser_class:  # where these divide by n
        functions |= {"VARIANCE": exp.VariancePop.from_arg_list, **dict.fromkeys(("STD", "STDDEV"), exp.StddevPop.from_arg_list)}
    return type(parser.__name__, (_Grouped, parser), {"FUNCTIONS": functions})


def parser_of(dialect: sqlglot.Dialect) -> sqlglot.Parser:
    """A parser of that dialect, for one text: it raises what it cannot read.

    >>> ours = dialect_named(None)
    >>> sql = "SELECT sex FROM people GROUP BY ROLLUP (sex) LIMIT 2"
    >>> (tree,) = parser_of(ours).parse(ours.tokenize(sql), sql)
    >>> tree.args["limit"].sql()
    'LIMIT 2'
    """
    return _grouped(dialect.parser_class)(dialect=dialect, error_level=sqlglot.ErrorLevel.RAISE)
