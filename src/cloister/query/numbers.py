"""How each dialect rounds, casts and divides numbers, so that an answer is what its engine would have said.

Engines agree on whole numbers and differ on halves. DuckDB rounds `2.5` to 3 and casts it to 2 if it is a double, to 3 if it is
a decimal; PostgreSQL rounds halves of doubles to even and of numerics away from zero; Spark rounds away from zero and casts by
cutting off. So what matters is the dialect and whether a number is whole, a decimal or a double. That follows from the types of
the source's columns (`Source.schema`, public), from casts and from how constants are written. A declared number whose source is
text is a double, as in an engine that reads the file. Where the type is not known and the rules differ, it is refused.

The rules were taken from the engines where they are installed (`tests/engines/test_rounding.py` asks DuckDB, PostgreSQL, Spark
and SQLite again each time), and from the manuals of the others. Without a dialect the rules are DuckDB's. A number is what its
decimal digits say, as everywhere in cloister: `1.005` is halfway between 1 and 1.01, although no double is. DuckDB rounds the
double, so ROUND(x, 2) of a double is refused there where a value that x may have would go the other way; a decimal is not.

>>> RULES["postgres"].cast[DOUBLE], RULES["postgres"].cast[DECIMAL], RULES["spark"].cast[DOUBLE]
('half even', 'half away', 'truncate')
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from sqlglot import exp

from cloister.errors import CloisterError
from cloister.query.refusals import refused, shown
from cloister.tables import Base, Category, Domain, Extended, PerUnit, Projected, Relation
from cloister.tables.expression.forms import Number
from cloister.tables.expression.rounding import Mode, differ
from cloister.tables.expression.scalars import (
    Absolute,
    Add,
    Case,
    Cast,
    Ceiling,
    Clamp,
    Coalesce,
    Const,
    DateDiff,
    DatePart,
    Divide,
    Exp,
    Floor,
    GreatestOf,
    LeastOf,
    Ln,
    Modulo,
    Multiply,
    Negate,
    NullIf,
    Power,
    Ref,
    Round,
    Scalar,
    Sign,
    Sqrt,
    Subtract,
    TextFunction,
)

NumberKind: TypeAlias = Literal["whole", "decimal", "double"]
WHOLE: NumberKind = "whole"
DECIMAL: NumberKind = "decimal"
DOUBLE: NumberKind = "double"
KindOf: TypeAlias = Callable[[str], NumberKind | None]
_MOST_HALVES = 2_000_000
_OF_SOURCE: Mapping[str, NumberKind] = {"integer": WHOLE, "huge": WHOLE, "float": DOUBLE, "decimal": DECIMAL}


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What one dialect does with numbers. A kind that is missing in `round` or `cast` is one of which that is not known."""

    round: Mapping[NumberKind, Mode]
    cast: Mapping[NumberKind, Mode]
    literal: NumberKind = DECIMAL
    """What `2.5` is."""
    exponent: NumberKind = DOUBLE
    """What `25e-1` is."""
    quotient: NumberKind = WHOLE
    """What a quotient of whole numbers is."""
    decimal_quotient: NumberKind = DECIMAL
    whole_floor: NumberKind = WHOLE
    """What FLOOR and CEIL make of a whole number."""
    whole_trunc: NumberKind = WHOLE
    whole_round: NumberKind = WHOLE
    date_part: NumberKind = WHOLE
    nullif_of_both: bool = False
    """Whether NULLIF gives its first side as what it is compared as."""
    places: int | None = 0
    """To how many places CAST(x AS DECIMAL) rounds; None for all that x has."""
    scales: bool = True
    """Whether CAST(x AS DECIMAL(9, 2)) rounds at all."""
    tens: bool = True
    """Whether ROUND(x, -1) is a multiple of ten; else it is ROUND(x)."""
    digits: Mode | None = None
    """What ROUND(x, n) does where it is another than ROUND(x)."""
    text: Mode | None = None
    """How the text of a fraction is cast to a whole number; None where that fails, and is NULL here."""
    prefix: bool = False
    """Whether text that is no number is cast to the number that it begins with, or 0."""
    whole_operands: bool = False
    """Whether % cuts off the fractions of both sides first."""
    scaled: bool = False
    """Whether a double is rounded to n places as the double x * 10^n is: 1.005 to 1.0, since 1.005 * 100 is below 100.5."""
    cut: bool = True
    """Whether the whole quotient (//, DIV) of numbers with a fraction has none."""
    by_row: bool = False
    """Whether a CASE of whole and other numbers is whole in some rows, and is divided as such there."""


def _both(mode: Mode) -> Mapping[NumberKind, Mode]:
    return {DECIMAL: mode, DOUBLE: mode}


_AWAY, _CUT = _both("half away"), _both("truncate")
_SPLIT: Mapping[NumberKind, Mode] = {DOUBLE: "half even", DECIMAL: "half away"}
_DUCKDB = Rules(
    round=_AWAY,
    cast=_SPLIT,
    quotient=DOUBLE,
    decimal_quotient=DOUBLE,
    whole_floor=DOUBLE,
    places=3,
    text="half away",
    scaled=True,
    cut=False,
)
_SPARK = Rules(round=_AWAY, cast=_CUT, quotient=DOUBLE)
_POSTGRES = Rules(
    round=_SPLIT,
    cast=_SPLIT,
    exponent=DECIMAL,
    whole_floor=DOUBLE,
    whole_trunc=DOUBLE,
    whole_round=DOUBLE,
    date_part=DECIMAL,
    nullif_of_both=True,
    places=None,
    digits="half away",
)
_SQLITE = Rules(
    round=_AWAY,
    cast=_CUT,
    literal=DOUBLE,
    whole_round=DOUBLE,
    places=None,
    scales=False,
    tens=False,
    prefix=True,
    whole_operands=True,
    by_row=True,
)

RULES: Mapping[str, Rules] = {
    "ansi": _DUCKDB,
    "bigquery": Rules(round=_AWAY, cast=_AWAY, literal=DOUBLE, quotient=DOUBLE, places=9),
    "databricks": _SPARK,
    "duckdb": _DUCKDB,
    "mysql": Rules(round=_SPLIT, cast=_SPLIT, quotient=DECIMAL, prefix=True),
    "oracle": Rules(round=_AWAY, cast=_AWAY, quotient=DECIMAL),  # its FLOAT and DOUBLE PRECISION are decimals
    "postgres": _POSTGRES,
    "redshift": Rules(round={DECIMAL: "half away"}, cast={}),  # its manual is silent on the rest
    "snowflake": Rules(round=_AWAY, cast=_AWAY, quotient=DECIMAL),
    "spark": _SPARK,
    "sqlite": _SQLITE,
    "trino": Rules(round=_AWAY, cast=_AWAY),
    "tsql": Rules(round=_AWAY, cast=_CUT),
}
"""By dialect. Without one, our own SQL follows DuckDB ("ansi")."""


def rounding(what: Literal["round", "cast"], kind: NumberKind | None, rules: Rules, *, digits: int = 0) -> frozenset[Mode]:
    """In which ways a number of a kind may be rounded: one way where that is known, all that are possible where it is not.

    >>> sorted(rounding("cast", DOUBLE, RULES["duckdb"])), sorted(rounding("cast", None, RULES["duckdb"]))
    (['half even'], ['half away', 'half even'])
    """
    if what == "round" and (kind == WHOLE or (digits and rules.digits is not None)):
        return frozenset({rules.digits or "half away"})  # of whole numbers only tens are rounded, as decimals
    if kind == WHOLE:
        return frozenset({"half even"})  # nothing is rounded
    known = rules.round if what == "round" else rules.cast
    every: frozenset[Mode] = frozenset({"half away", "half even", "truncate"} if what == "cast" else {"half away", "half even"})
    wanted = (DECIMAL, DOUBLE) if kind is None else (kind,)
    found = frozenset(known[each] for each in wanted if each in known)
    return found if found and all(each in known for each in wanted) else every


def as_rounded(
    x: Scalar, digits: int, modes: frozenset[Mode], domains: Mapping[str, Domain], tree: exp.Expression, *, scaled: bool = False
) -> Round:
    """x rounded in the one way that it can be, or in any where they agree on all that x may be; else a refusal. With `scaled` the
    engine rounds the double x * 10^digits: refused where that puts a half elsewhere.

    >>> from cloister.tables import Integer, Real
    >>> half, ways = Real(0, 9, step="0.5"), frozenset({"half away", "half even"})
    >>> as_rounded(Ref("x"), 1, ways, {"x": half}, exp.column("x")).digits
    1
    >>> as_rounded(Ref("x"), 0, ways, {"x": half}, exp.column("x"))
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: 'x' is not supported: whether it is a decimal or a double is not known, and their...
      Instead: ROUND(CAST(x AS DECIMAL(38, 1)), 0)
    """
    mode = sorted(modes)[0]
    form = _form(x, domains) if len(modes) > 1 or (scaled and digits > 0) else None
    if scaled and digits > 0 and form is not None and _halves_lost(x, form, digits):
        raise refused(
            f"{shown(tree)} is not supported",
            "the engine rounds doubles, in which some halves are not exact, and would round some of these differently",
            f"ROUND(CAST({tree.this.sql()} AS DECIMAL(38, {_places(form)})), {digits})",
        )
    if len(modes) > 1 and (form is None or differ(form, Fraction(10) ** -digits, set(modes))):
        inner = tree.this.sql() if isinstance(tree, exp.Round | exp.Cast) else tree.sql()
        raise refused(
            f"{shown(tree)} is not supported",
            "whether it is a decimal or a double is not known, and their halves differ",
            f"ROUND(CAST({inner} AS DECIMAL(38, {_places(form)})), {digits})",
        )
    return Round(x, digits, mode)


def _halves_lost(x: Scalar, form: Number, digits: int) -> bool:
    """Whether an engine that rounds the double x * 10^digits puts any half elsewhere than the exact number belongs.

    Nothing but a half can: everything else is a step away from one. On a grid whose denominator is a power of two doubles are
    exact. The halves of a column are tried out; those of a computed double are as its operations left them, so they are refused.
    """
    step = Fraction(1, 10**digits)
    ratio = form.grid / step
    if not differ(form, step, {"half away", "half even"}) or not form.grid.denominator & (form.grid.denominator - 1):
        return False
    if not isinstance(x, Ref):
        return isinstance(x, Add | Subtract | Multiply | Divide)
    under = ratio.denominator
    first = pow(ratio.numerator, -1, under) * (under // 2) % under
    first += -(-(form.low - first) // under) * under  # the first half that is not below the bound
    if (form.high - first) // under > _MOST_HALVES or max(abs(form.low), abs(form.high)) * form.grid.numerator >= 2**53:
        return True
    halves = np.arange(first, form.high + 1, under, dtype=np.int64)
    doubles = (halves * form.grid.numerator).astype(np.float64) / float(form.grid.denominator) * 10.0**digits
    return bool((np.abs(doubles - np.trunc(doubles)) != 0.5).any())


def _form(x: Scalar, domains: Mapping[str, Domain]) -> Number | None:
    try:
        form = x.form(domains)
    except CloisterError:
        return None
    return form if isinstance(form, Number) else None


def _places(form: Number | None) -> int:
    """How many decimals write every value; 9 where none do."""
    for places in range(10) if form is not None else ():
        if (form.grid * 10**places).denominator == 1:  # type: ignore[union-attr]
            return places
    return 9


def _together(kinds: Sequence[NumberKind | None]) -> NumberKind | None:
    """A double beside anything is a double; else a decimal beside a whole number is a decimal."""
    return DOUBLE if DOUBLE in kinds else None if None in kinds else DECIMAL if DECIMAL in kinds else WHOLE


def kind_of(x: Scalar, of: KindOf, rules: Rules) -> NumberKind | None:
    """Which kind of number an expression is in the dialect, from the kinds of the columns that it reads; None where not known.

    >>> kind_of(Multiply(Ref("age"), Const(Fraction(1, 2))), {"age": WHOLE}.get, RULES["duckdb"])
    'decimal'
    """

    def kind(part: Scalar) -> NumberKind | None:
        return kind_of(part, of, rules)

    def one_of(parts: Sequence[Scalar]) -> NumberKind | None:
        kinds = {kind(part) for part in parts if not (isinstance(part, Const) and part.kind == "null")}
        return None if rules.by_row and WHOLE in kinds and len(kinds) > 1 else _together(list(kinds))

    match x:
        case Ref():
            return of(x.name)
        case Const():
            return {"integer": WHOLE, "number": rules.literal}.get(x.kind)
        case Cast():
            return {"integer": WHOLE, "decimal": DECIMAL, "real": DOUBLE}.get(x.kind)
        case Add() | Subtract() | Multiply() | Modulo():
            return _together([kind(x.left), kind(x.right)])
        case Divide():
            both = _together([kind(x.left), kind(x.right)])
            return {WHOLE: rules.quotient, DECIMAL: rules.decimal_quotient, DOUBLE: DOUBLE, None: None}[both]
        case Coalesce() | LeastOf() | GreatestOf():
            return one_of(x.parts)
        case Case():
            return one_of([value for _, value in x.branches] + ([] if x.otherwise is None else [x.otherwise]))
        case NullIf():
            return _together([kind(x.left), kind(x.right)]) if rules.nullif_of_both else kind(x.left)
        case Negate() | Absolute() | Clamp():
            return kind(x.x)
        case Floor() | Ceiling() | Round():
            inner = kind(x.x)
            if inner != WHOLE:
                return inner
            if not isinstance(x, Round) or x.mode in ("floor", "ceiling"):
                return rules.whole_floor
            return rules.whole_trunc if x.mode == "truncate" else rules.whole_round
        case Sign() if rules.quotient == WHOLE and not rules.by_row:  # elsewhere it is whole, or its quotients never are
            return rules.whole_trunc if kind(x.x) == WHOLE else kind(x.x)
        case Sign() | DateDiff():
            return WHOLE
        case DatePart():
            return rules.date_part
        case TextFunction() if x.name == "length":
            return WHOLE
        case Sqrt() | Ln() | Exp() | Power():
            return None if kind(x.x) in (DECIMAL, None) else DOUBLE  # of a decimal some engines make a decimal
    return None


def kind_in(relation: Relation, name: str, rules: Rules) -> NumberKind | None:
    """Which kind of number a column of a relation is: that of the source's column, or as it is computed."""
    if isinstance(relation, Base):
        found = _OF_SOURCE.get(relation.table.source.schema.get(name, ""))
        return found if found is not None else _declared(relation.columns[name])
    if isinstance(relation, Projected):
        return kind_in(relation.source, dict(relation.names)[name], rules)
    if isinstance(relation, Extended) and name not in relation.source.columns:
        return kind_of(dict(relation.scalars)[name], lambda part: kind_in(relation.source, part, rules), rules)
    if isinstance(relation, PerUnit) and name not in relation.keys:
        aggregate = next(each for each in relation.aggregates if each.name == name)
        if aggregate.column is None or aggregate.kind in ("values", "distinct"):
            return WHOLE
        inner = kind_in(relation.source, aggregate.column, rules)
        return inner if aggregate.kind != "mean" else DOUBLE if inner == DOUBLE else None
    found_in = [part for part in relation.parts if name in part.columns]
    return _together([kind_in(part, name, rules) for part in found_in]) if found_in else _of_public(relation.columns[name])


def _declared(domain: Domain) -> NumberKind | None:
    """What an engine makes of a column of text that holds such numbers."""
    if domain.kind == "integer" or (isinstance(domain, Category) and isinstance(domain.options[0], int)):
        return WHOLE
    return DOUBLE if domain.kind == "real" else None


def _of_public(domain: Domain) -> NumberKind | None:
    return WHOLE if _declared(domain) == WHOLE else None
