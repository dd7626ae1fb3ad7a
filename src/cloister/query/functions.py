"""Functions of SQL that a row can be computed with: which parts of each are read, and the scalar that each becomes.

Every entry takes the node and a reader that turns its parts into scalars. What an engine would spell in its own way (a difference
of dates, the parts of a day) is brought to one meaning here, that of `tables/expression/scalars.py`.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from sqlglot import exp

from cloister.errors import MissingBound
from cloister.query.constants import NUMBERS, TEXTS, WHOLE, between_words, constant, is_constant, shifted
from cloister.query.dates import DATES, FROM_MONDAY_0, Make, ScalarReader, whole_number
from cloister.query.numbers import RULES, Rules, as_rounded, rounding
from cloister.query.refusals import refused, shown, unsupported
from cloister.tables import Expression
from cloister.tables.expression.forms import Listed
from cloister.tables.expression.rounding import Mode
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
    DateShift,
    Divide,
    Exp,
    Floor,
    GreatestOf,
    GridCell,
    InBox,
    Lattice,
    LeastOf,
    Ln,
    Metres,
    Modulo,
    Multiply,
    Near,
    NearestRegion,
    Negate,
    NullIf,
    Power,
    RegionOf,
    Round,
    Scalar,
    Sign,
    Sqrt,
    Subtract,
    TextFunction,
    Within,
)

__all__ = ["ANONYMOUS", "FUNCTIONS", "ScalarReader"]

_DATES = (exp.DataType.Type.DATE,)
_NULL_DECIDES = ("mysql", "bigquery", "snowflake", "oracle", "trino", "sqlite")
"""Where LEAST and GREATEST are NULL as soon as one part is."""
_PLACES_BEFORE_1 = ("postgres", "redshift", "tsql")
"""Where SUBSTRING counts places on below 1, as the standard does."""


def _plus(tree: exp.Binary, reader: ScalarReader, sign: int) -> Scalar:
    if isinstance(tree.expression, exp.Interval):
        count, unit = shifted(tree.expression)
        return DateShift(reader.scalar(tree.this), sign * count, unit)
    if isinstance(tree.this, exp.Interval) and sign == 1:
        count, unit = shifted(tree.this)
        return DateShift(reader.scalar(tree.expression), count, unit)
    left, right = reader.scalar(tree.this), reader.scalar(tree.expression)
    if reader.kind(left) == "date":
        if reader.kind(right) == "date" and sign == -1:
            return DateDiff("day", left, right)
        days = constant(tree.expression) if is_constant(tree.expression) else None
        if isinstance(days, int) and not isinstance(days, bool):
            return DateShift(left, sign * days, "day")
        raise refused(
            f"{shown(tree)} is not supported", "to a day only a constant number of days is added", "born + INTERVAL '3' MONTH"
        )
    return Add(left, right) if sign == 1 else Subtract(left, right)


def _divide(tree: exp.Div, reader: ScalarReader) -> Scalar:
    """A quotient; whole numbers have a whole one where the dialect says so."""
    left, right = reader.scalar(tree.this), _without_nullif(tree.expression, reader)
    if not tree.args.get("typed"):
        return Divide(left, right)
    if _rules(reader).by_row and None in (reader.number_kind(left), reader.number_kind(right)):
        raise refused(
            f"{shown(tree)} is not supported",
            f"{reader.dialect} cuts the fraction off in those rows in which both sides are whole numbers",
            f"CAST({tree.this.sql()} AS REAL) / {tree.expression.sql()}",
        )
    return _whole_part(left, right) if _is_whole(left, reader) and _is_whole(right, reader) else Divide(left, right)


def _is_whole(x: Scalar, reader: ScalarReader) -> bool:
    """Whether it is of a whole type in the dialect; where that is not known, whether all its values are whole."""
    return (reader.number_kind(x) or reader.kind(x)) in ("whole", "integer")


def _whole_part(left: Scalar, right: Scalar) -> Scalar:
    """left / right without its fraction, as a whole number."""
    return Cast(Round(Divide(left, right), 0, "truncate"), "integer")


def _whole_quotient(tree: exp.IntDiv, reader: ScalarReader) -> Scalar:
    left, right = reader.scalar(tree.this), _without_nullif(tree.expression, reader)
    if not _rules(reader).cut and not (_is_whole(left, reader) and _is_whole(right, reader)):
        inner = f"{tree.this.sql()} / {tree.expression.sql()}"
        raise refused(
            f"{shown(tree)} is not supported",
            "its sides are not whole numbers, and DuckDB then keeps the fraction",
            f"TRUNC({inner})",
        )
    return _whole_part(left, right)


def _remainder(tree: exp.Mod, reader: ScalarReader) -> Scalar:
    sides = [reader.scalar(tree.this), reader.scalar(tree.expression)]
    if _rules(reader).whole_operands:
        sides = [side if _is_whole(side, reader) else Round(side, 0, "truncate") for side in sides]
    return Modulo(*sides)


def _rules(reader: ScalarReader) -> Rules:
    return RULES[reader.dialect or "ansi"]


def _without_nullif(tree: exp.Expression, reader: ScalarReader) -> Scalar:
    """The divisor x of NULLIF(x, 0): a quotient by 0 is NULL in any case."""
    inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
    if isinstance(inner, exp.Nullif) and is_constant(inner.expression) and constant(inner.expression) == 0:
        return reader.scalar(inner.this)
    return reader.scalar(tree)


def _round(tree: exp.Round, reader: ScalarReader) -> Scalar:
    x, rules = reader.scalar(tree.this), _rules(reader)
    places = _digits(tree, "decimals")
    given = tree.args.get("truncate")
    how = constant(given) if given is not None and is_constant(given) else given
    if reader.dialect == "tsql" and isinstance(how, int):  # ROUND(x, 2, 1) cuts off
        return Round(x, places, "truncate" if how else "half away")
    if reader.dialect == "bigquery" and how in _NAMED:
        return Round(x, places, _NAMED[how])
    if how is not None:
        raise unsupported(f"The third argument of {shown(tree)}", f"ROUND({tree.this.sql()}, {places})")
    if not rules.tens:
        places = max(places, 0)
    kind = reader.number_kind(x)
    modes = rounding("round", kind, rules, digits=places)
    return as_rounded(x, places, modes, reader.domains(x), tree, scaled=rules.scaled and kind not in ("whole", "decimal"))


_NAMED: dict[object, Mode] = {"ROUND_HALF_EVEN": "half even", "ROUND_HALF_AWAY_FROM_ZERO": "half away"}


def _digits(tree: exp.Expression, part: str) -> int:
    given = tree.args.get(part)
    return 0 if given is None else whole_number(given, f"{tree.key.upper()}({tree.this.sql()}, 2)")


def _in_direction(mode: Mode) -> Make:
    def make(tree: exp.Floor | exp.Ceil | exp.Trunc, reader: ScalarReader) -> Scalar:
        return Round(reader.scalar(tree.this), _digits(tree, "decimals"), mode)

    return make


def _floor(kind: Callable[[Scalar], Scalar], mode: Mode) -> Make:
    def make(tree: exp.Floor | exp.Ceil, reader: ScalarReader) -> Scalar:
        return kind(reader.scalar(tree.this)) if tree.args.get("decimals") is None else _in_direction(mode)(tree, reader)

    return make


def _log(tree: exp.Log, reader: ScalarReader) -> Scalar:
    """LOG(x) is to the base 10, as in the SQL of DuckDB and PostgreSQL; dialects in which it is natural are read as LN."""
    base, x = (tree.this, tree.expression) if tree.expression is not None else (exp.Literal.number(10), tree.this)
    value = constant(base) if is_constant(base) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or value <= 0 or value == 1:
        raise refused(f"{shown(tree)} is not supported", "its base is not a constant greater than 0 other than 1", "LOG(10, x)")
    return Divide(Ln(reader.scalar(x)), Round(Ln(Const(value)), 9))


def _power(tree: exp.Pow, reader: ScalarReader) -> Scalar:
    exponent = constant(tree.expression) if is_constant(tree.expression) else None
    if isinstance(exponent, bool) or not isinstance(exponent, int | Fraction):
        raise refused(f"{shown(tree)} is not supported", "its exponent is not a constant", "POWER(x, 2)")
    return Power(reader.scalar(tree.this), Fraction(exponent))


def _bucket(tree: exp.WidthBucket, reader: ScalarReader) -> Scalar:
    """0 below low, 1 to n for the n equal parts of [low, high), n + 1 from high on."""
    parts = [tree.args.get(name) for name in ("min_value", "max_value", "num_buckets")]
    values = [constant(part) if part is not None and is_constant(part) else None for part in parts]
    numbers = [Fraction(value) for value in values if isinstance(value, int | Fraction) and not isinstance(value, bool)]
    if len(numbers) != 3:
        raise refused("WIDTH_BUCKET is not supported", "its bounds are not constants", "WIDTH_BUCKET(age, 0, 100, 10)")
    low, high, count = numbers
    if count.denominator != 1 or not 1 <= count <= 1_000_000 or low >= high:
        raise refused(
            "WIDTH_BUCKET is not supported", "it needs low < high and a whole number of parts", "WIDTH_BUCKET(age, 0, 100, 10)"
        )
    place = Floor(Multiply(Subtract(reader.scalar(tree.this), Const(low)), Const(count / (high - low))))
    found = Clamp(Add(place, Const(1)), Fraction(0), count + 1)
    return Cast(found, "integer") if _rules(reader).quotient == "whole" else found  # a whole number is divided as one


def _case(tree: exp.Case, reader: ScalarReader) -> Scalar:
    branches: list[tuple[Expression, Scalar]] = []
    for branch in tree.args["ifs"]:
        wanted = exp.EQ(this=tree.this.copy(), expression=branch.this.copy()) if tree.this is not None else branch.this
        branches.append((reader.condition(wanted), reader.scalar(branch.args["true"])))
    default = tree.args.get("default")
    return Case(tuple(branches), None if default is None else reader.scalar(default))


def _if(tree: exp.If, reader: ScalarReader) -> Scalar:
    default = tree.args.get("false")
    branch = (reader.condition(tree.this), reader.scalar(tree.args["true"]))
    return Case((branch,), None if default is None else reader.scalar(default))


def _all(kind: Callable[[tuple[Scalar, ...]], Scalar]) -> Make:
    def make(tree: exp.Expression, reader: ScalarReader) -> Scalar:
        return kind(tuple(reader.scalar(part) for part in (tree.this, *tree.expressions)))

    return make


def _binary(kind: Callable[[Scalar, Scalar], Scalar]) -> Make:
    return lambda tree, reader: kind(reader.scalar(tree.this), reader.scalar(tree.expression))


def _unary(kind: Callable[[Scalar], Scalar]) -> Make:
    return lambda tree, reader: kind(reader.scalar(tree.this))


def _cast(tree: exp.Cast, reader: ScalarReader) -> Scalar:
    kind, inner = tree.to.this, tree.this
    if kind in _DATES:
        return Cast(reader.scalar(inner), "date")
    if kind is exp.DataType.Type.BOOLEAN:
        return Cast(reader.scalar(inner), "boolean")
    if kind in TEXTS:
        if tree.to.expressions:
            raise refused(f"{shown(tree)} is not supported", "a length would cut values off", f"CAST({inner.sql()} AS VARCHAR)")
        return Cast(reader.scalar(inner), "text")
    if kind in WHOLE:
        return _as_whole(tree, reader.scalar(inner), reader)
    if kind in NUMBERS:
        x = _readable(tree, reader.scalar(inner), reader)
        return Cast(x, "real") if kind is not exp.DataType.Type.DECIMAL else _as_decimal(tree, x, reader)
    raise unsupported(shown(tree), f"CAST({inner.sql()} AS INTEGER)")


def _as_whole(tree: exp.Cast, x: Scalar, reader: ScalarReader) -> Scalar:
    """As each dialect does it; what is whole already, a truth value, and a text are brought in as they are."""
    x, rules = _readable(tree, x, reader), _rules(reader)
    kind = reader.kind(x)
    if kind in ("boolean", "date", "text") or _texts(x, reader):
        if kind in ("boolean", "date") or rules.text is None:
            return Cast(x, "integer")
        return Round(Cast(x, "decimal"), 0, rules.text)
    return Cast(as_rounded(x, 0, rounding("cast", reader.number_kind(x), rules), reader.domains(x), tree), "integer")


def _as_decimal(tree: exp.Cast, x: Scalar, reader: ScalarReader) -> Scalar:
    rules, number = _rules(reader), Cast(x, "decimal")
    if not rules.scales:  # a number stays what it is, and the text of a whole number is one
        return Cast(x, "integer") if _is_whole(x, reader) or _texts(x, reader) else number
    size = [whole_number(part.this, "CAST(x AS DECIMAL(10, 2))") for part in tree.to.expressions]
    places = rules.places if not size else size[1] if len(size) == 2 else 0
    if places is None:
        return number
    if rules.scaled and reader.number_kind(x) not in ("whole", "decimal"):
        as_rounded(x, places, frozenset({"half away"}), reader.domains(x), tree, scaled=True)  # refuses what would differ
    return Round(number, places)


def _texts(x: Scalar, reader: ScalarReader) -> tuple[object, ...]:
    """The list of texts that x is one of, where it is such a list."""
    try:
        form = x.form(reader.domains(x))
    except MissingBound:
        return ()
    return form.options if isinstance(form, Listed) and isinstance(form.options[0], str) else ()


def _readable(tree: exp.Cast, x: Scalar, reader: ScalarReader) -> Scalar:
    """x, unless a text of its list is cast to the number that it begins with."""
    wanted = [text for text in _texts(x, reader) if not re.fullmatch(r"-?[0-9]+", str(text))] if _rules(reader).prefix else []
    if wanted:
        raise refused(
            f"{shown(tree)} is not supported",
            f"{reader.dialect} makes a number of the beginning of a text, and not all of these texts are whole numbers",
            f"CASE {tree.this.sql()} WHEN {exp.Literal.string(str(wanted[0])).sql()} THEN 0 END",
        )
    return x


def _text(name: str, *arguments: str) -> Make:
    def make(tree: exp.Expression, reader: ScalarReader) -> Scalar:
        given = [tree.args.get(argument) for argument in arguments]
        return TextFunction(name, reader.scalar(tree.this), tuple(reader.scalar(part) for part in given if part is not None))

    return make


def _substring(tree: exp.Substring, reader: ScalarReader) -> Scalar:
    """From a place on; what a place before the first means is not the same everywhere."""
    start = tree.args.get("start")
    place = constant(start) if start is not None and is_constant(start) else 1
    if isinstance(place, int) and place < 1:
        alike = _PLACES_BEFORE_1 if place else (*_PLACES_BEFORE_1, None, "duckdb", "sqlite")
        if reader.dialect not in alike:
            raise refused(
                f"{shown(tree)} is not supported",
                "where it begins at a place below 1, it has another meaning from one engine to the next",
                f"RIGHT({tree.this.sql()}, {abs(place) or 1})",
            )
    return _text("substring", "start", "length")(tree, reader)


def _pad(tree: exp.Pad, reader: ScalarReader) -> Scalar:
    fill = tree.args.get("fill_pattern")
    given = (reader.scalar(tree.expression), Const(" ") if fill is None else reader.scalar(fill))
    return TextFunction("lpad" if tree.args.get("is_left") else "rpad", reader.scalar(tree.this), given)


def _trim(tree: exp.Trim, reader: ScalarReader) -> Scalar:
    if tree.args.get("position") or tree.expression is not None:
        raise unsupported(shown(tree), "TRIM(town)")
    return TextFunction("trim", reader.scalar(tree.this))


def _concat_ws(tree: exp.ConcatWs, reader: ScalarReader) -> Scalar:
    """What is there, with the separator between; a part that is NULL is passed over together with its separator."""
    sign, *parts = tree.expressions
    between = constant(sign) if is_constant(sign) else None
    if not isinstance(between, str) or not parts:
        raise refused("CONCAT_WS is not supported", "its separator is not a text constant", "CONCAT_WS('-', sex, town)")
    after = [_or_nothing(between, reader.scalar(part)) for part in parts]
    whole = TextFunction("concat", after[0], tuple(after[1:])) if len(after) > 1 else after[0]
    return TextFunction("substring", whole, (Const(len(between) + 1),))


def _initcap(tree: exp.Initcap, reader: ScalarReader) -> Scalar:
    between = between_words(tree)
    return TextFunction("initcap", reader.scalar(tree.this), () if between is None else (Const(between.replace("\\", "")),))


def _concatenated(parts: Sequence[exp.Expression], reader: ScalarReader, *, coalesce: bool = False) -> Scalar:
    scalars = [reader.scalar(part) for part in parts]
    if coalesce:  # where CONCAT passes over NULL
        scalars = [each if isinstance(each, Const) else _or_nothing("", each) for each in scalars]
    return TextFunction("concat", scalars[0], tuple(scalars[1:])) if len(scalars) > 1 else scalars[0]


def _or_nothing(before: str, part: Scalar) -> Scalar:
    """What is there as a text, behind another one; nothing at all where it is NULL."""
    return Coalesce((TextFunction("concat", Const(before), (part,)), Const("")))


def _least(tree: exp.Least, reader: ScalarReader) -> Scalar:
    """LEAST(GREATEST(x, low), high) bounds x, which then needs no bounds of its own; NULL counts as low, as engines have it."""
    return _outermost(tree, exp.Greatest, LeastOf, reader)


def _greatest(tree: exp.Greatest, reader: ScalarReader) -> Scalar:
    """GREATEST(LEAST(x, high), low), likewise."""
    return _outermost(tree, exp.Least, GreatestOf, reader)


def _outermost(tree: exp.Least | exp.Greatest, inside: type[exp.Expression], kind: Any, reader: ScalarReader) -> Scalar:
    """Parts that are NULL are passed over, or make it NULL, as the dialect has it."""
    found, strict = _clamped(tree, inside, reader), reader.dialect in _NULL_DECIDES
    strict = strict and not (reader.dialect == "snowflake" and tree.args.get("ignore_nulls"))
    if found is not None:
        return found.parts[0] if strict else found
    parts = [tree.this, *tree.expressions]
    largest: Scalar = kind(tuple(reader.scalar(part) for part in parts))
    if not strict:
        return largest
    known = [exp.Not(this=exp.Is(this=part.copy(), expression=exp.Null())) for part in parts if not is_constant(part)]
    return Case(((reader.condition(exp.and_(*known)), largest),)) if known else largest


def _clamped(tree: exp.Expression, inside: type[exp.Expression], reader: ScalarReader) -> Coalesce | None:
    ends: list[Fraction] = []
    for kind in (type(tree), inside):
        parts = [tree.this, *tree.expressions] if type(tree) is kind else []
        numbers = [constant(part) for part in parts if is_constant(part)]
        rest = [part.unnest() for part in parts if not is_constant(part)]
        if len(rest) != 1 or len(numbers) != 1 or isinstance(numbers[0], bool) or not isinstance(numbers[0], int | Fraction):
            return None
        ends.append(Fraction(numbers[0]))
        tree = rest[0]
    high, low = ends if inside is exp.Greatest else reversed(ends)
    if low >= high:
        return None
    missing = Const(ends[1])
    return Coalesce((Clamp(reader.scalar(tree), low, high), missing))


def _clamp(parts: Sequence[exp.Expression], reader: ScalarReader) -> Scalar:
    ends = [constant(part) if is_constant(part) else None for part in parts[1:]]
    numbers = [Fraction(end) for end in ends if isinstance(end, int | Fraction) and not isinstance(end, bool)]
    if len(ends) != 2 or len(numbers) != 2:
        raise refused("CLAMP is not supported", "it takes an expression and two constant numbers", "CLAMP(pay / hours, 0, 100)")
    return Clamp(reader.scalar(parts[0]), numbers[0], numbers[1])


def _round_even(parts: Sequence[exp.Expression], reader: ScalarReader) -> Scalar:
    """DuckDB's ROUND_EVEN(x, n), Spark's BROUND(x, n)."""
    return _rounded(parts, reader, "half even")


def _trunc(parts: Sequence[exp.Expression], reader: ScalarReader) -> Scalar:
    """TRUNC where a dialect has it for dates, too."""
    return _rounded(parts, reader, "truncate")


def _rounded(parts: Sequence[exp.Expression], reader: ScalarReader, mode: Mode) -> Scalar:
    if not 1 <= len(parts) <= 2:
        raise refused("Rounding is not supported", "it takes a number and how many digits stay", "ROUND(AVG(…), 2)")
    digits = whole_number(parts[1], f"ROUND({parts[0].sql()}, 2)") if len(parts) == 2 else 0
    return Round(reader.scalar(parts[0]), digits, mode)


FUNCTIONS: dict[type[exp.Expression], Make] = {
    **DATES,
    exp.Add: lambda tree, reader: _plus(tree, reader, 1),
    exp.Sub: lambda tree, reader: _plus(tree, reader, -1),
    exp.Mul: _binary(Multiply),
    exp.Div: _divide,
    exp.IntDiv: _whole_quotient,
    exp.Mod: _remainder,
    exp.Neg: _unary(Negate),
    exp.Abs: _unary(Absolute),
    exp.Sign: _unary(Sign),
    exp.Round: _round,
    exp.Trunc: _in_direction("truncate"),
    exp.Floor: _floor(Floor, "floor"),
    exp.Ceil: _floor(Ceiling, "ceiling"),
    exp.Sqrt: _unary(Sqrt),
    exp.Ln: _unary(Ln),
    exp.Log: _log,
    exp.Exp: _unary(Exp),
    exp.Pow: _power,
    exp.WidthBucket: _bucket,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _all(Coalesce),
    exp.Nullif: _binary(NullIf),
    exp.Greatest: _greatest,
    exp.Least: _least,
    exp.StPoint: lambda *_: _point_alone(),
    exp.Cast: _cast,
    exp.TryCast: _cast,  # no cast fails: what cannot be cast is NULL
    exp.Date: lambda tree, reader: Cast(reader.scalar(tree.this), "date"),
    exp.TsOrDsToDate: lambda tree, reader: Cast(reader.scalar(tree.this), "date"),
    exp.TimeStrToTime: lambda tree, reader: Cast(reader.scalar(tree.this), "date"),
    exp.Lower: _text("lower"),
    exp.Upper: _text("upper"),
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Length: _text("length"),
    exp.StrPosition: _text("position", "substr"),
    exp.Left: _text("left", "expression"),
    exp.Right: _text("right", "expression"),
    exp.SplitPart: _text("split", "delimiter", "part_index"),
    exp.Pad: _pad,
    exp.Replace: _text("replace", "expression", "replacement"),
    exp.DPipe: lambda tree, reader: _concatenated([tree.this, tree.expression], reader, coalesce=reader.dialect == "oracle"),
    exp.Concat: lambda tree, reader: _concatenated(
        tree.expressions, reader, coalesce=reader.dialect in (None, "oracle") or bool(tree.args.get("coalesce"))
    ),
    exp.ConcatWs: _concat_ws,
    exp.Reverse: _text("reverse"),
    exp.Translate: _text("translate", "from_", "to"),
    exp.Initcap: _initcap,
}
"""By the kind of the node."""


def _grid(parts: Sequence[exp.Expression], reader: ScalarReader) -> Scalar:
    metres = constant(parts[1]) if len(parts) == 2 and is_constant(parts[1]) else None
    if isinstance(metres, bool) or not isinstance(metres, int | Fraction):
        raise refused("GRID is not supported", "it takes a place and a constant number of metres", "GRID(place, 500)")
    return GridCell(reader.scalar(parts[0]), Fraction(metres))


def _region(parts: Sequence[exp.Expression], reader: ScalarReader) -> Scalar:
    if len(parts) != 1:
        raise refused("REGION is not supported", "it takes a place", "REGION(place)")
    return RegionOf(*_on_lattice(parts[0], reader))


def _within(parts: Sequence[exp.Expression], reader: ScalarReader) -> Scalar:
    if len(parts) == 2 and isinstance(parts[1], exp.Anonymous) and parts[1].name.upper() == "ST_MAKEENVELOPE":
        box = _degrees(parts[1].expressions, 4, _BOX)
        return InBox(*_on_lattice(parts[0], reader), *box)
    name = constant(parts[1]) if len(parts) == 2 and is_constant(parts[1]) else None
    if not isinstance(name, str):
        raise refused(
            "ST_WITHIN is not supported", "it takes a place and the name of a declared region", "ST_WITHIN(place, 'Centrum')"
        )
    return Within(*_on_lattice(parts[0], reader), name)


_BOX, _CIRCLE = "ST_WITHIN(place, ST_MakeEnvelope(4.3, 52.0, 4.4, 52.1))", "ST_DWITHIN(place, ST_Point(4.36, 52.01), 500)"


def _degrees(parts: Sequence[exp.Expression], count: int, instead: str) -> list[Fraction]:
    """Constant numbers, so many of them."""
    found = [constant(each) if is_constant(each) else None for each in parts]
    if len(found) != count or any(isinstance(each, bool) or not isinstance(each, int | Fraction) for each in found):
        raise refused("A function of places is not supported", "it takes a place and constant numbers", instead)
    return [Fraction(each) for each in found if isinstance(each, int | Fraction)]


def _near(parts: Sequence[exp.Expression], reader: ScalarReader) -> Scalar:
    if len(parts) != 3 or not isinstance(parts[1], exp.StPoint):
        raise refused("ST_DWITHIN is not supported", "it takes a place, a point and a constant number of metres", _CIRCLE)
    circle = _degrees([parts[1].this, parts[1].expression, parts[2]], 3, _CIRCLE)
    place, *_ = _on_lattice(parts[0], reader)
    return Near(place, *_in_metres(parts[0], place, reader), *circle)


def _nearest(parts: Sequence[exp.Expression], reader: ScalarReader) -> Scalar:
    if len(parts) != 1:
        raise refused("NEAREST is not supported", "it takes a place", "NEAREST(place)")
    where = _on_lattice(parts[0], reader)
    return NearestRegion(*where, *_in_metres(parts[0], where[0], reader))


def _in_metres(tree: exp.Expression, place: Scalar, reader: ScalarReader) -> tuple[Scalar, Scalar]:
    across, up = (reader.named(Metres(axis, place), f"metres {axis} of {tree.sql()}") for axis in ("across", "up"))
    return across, up


def _box_alone(*_: Any) -> NoReturn:
    raise refused("ST_MAKEENVELOPE is not supported here", "it stands within ST_WITHIN", _BOX)


def _point_alone(*_: Any) -> NoReturn:
    raise refused("ST_POINT is not supported here", "it stands within ST_DWITHIN", _CIRCLE)


def _on_lattice(tree: exp.Expression, reader: ScalarReader) -> tuple[Scalar, Scalar, Scalar]:
    """A place, its column and its row: both as columns of their own, which a border names often."""
    place = reader.scalar(tree)
    column, row = (reader.named(Lattice(axis, place), f"{axis} of {tree.sql()}") for axis in ("column", "row"))
    return place, column, row


def _weekday(parts: Sequence[exp.Expression], reader: ScalarReader) -> Scalar:
    """From Sunday = 0, as DAYOFWEEK; in the dialects that have a WEEKDAY of their own, as there."""
    if len(parts) != 1:
        raise refused("WEEKDAY is not supported", "it takes a day", "WEEKDAY(at)")
    day = reader.scalar(parts[0])
    return Subtract(DatePart("isodow", day), Const(1)) if reader.dialect in FROM_MONDAY_0 else DatePart("dayofweek", day)


ANONYMOUS: dict[str, Callable[[Sequence[exp.Expression], ScalarReader], Scalar]] = {
    "BROUND": _round_even,
    "CLAMP": _clamp,
    "GRID": _grid,
    "NEAREST": _nearest,
    "REGION": _region,
    "ST_DWITHIN": _near,
    "ST_MAKEENVELOPE": _box_alone,
    "ROUND_EVEN": _round_even,
    "ST_WITHIN": _within,
    "TRUNC": _trunc,
    "WEEKDAY": _weekday,
}
"""By the name of a function that sqlglot does not know."""
