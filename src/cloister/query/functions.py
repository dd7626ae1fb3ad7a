"""Functions of SQL that a row can be computed with: which parts of each are read, and the scalar that each becomes.

Every entry takes the node and a reader that turns its parts into scalars. What an engine would spell in its own way (a difference
of dates, the parts of a day) is brought to one meaning here, that of `tables/scalars.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from cloister.query.constants import NUMBERS, TEXTS, WHOLE, constant, is_constant, shifted
from cloister.query.dates import DATES, Make, ScalarReader, whole_number
from cloister.query.refusals import refused, shown, unsupported
from cloister.tables import Expression
from cloister.tables.scalars import (
    Absolute,
    Add,
    Case,
    Cast,
    Ceiling,
    Clamp,
    Coalesce,
    Const,
    DateDiff,
    DateShift,
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
    Round,
    Scalar,
    Sign,
    Sqrt,
    Subtract,
    TextFunction,
)

__all__ = ["ANONYMOUS", "FUNCTIONS", "ScalarReader"]

_DATES = (exp.DataType.Type.DATE,)


def _add(tree: exp.Add, reader: ScalarReader) -> Scalar:
    return _plus(tree, reader, 1)


def _subtract(tree: exp.Sub, reader: ScalarReader) -> Scalar:
    return _plus(tree, reader, -1)


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
            f"{shown(tree)} was refused", "to a day only a constant number of days is added", "born + INTERVAL '3' MONTH"
        )
    return Add(left, right) if sign == 1 else Subtract(left, right)


def _divide(tree: exp.Div, reader: ScalarReader) -> Scalar:
    """A quotient; whole numbers have a whole one where the dialect says so."""
    left, right = reader.scalar(tree.this), _without_nullif(tree.expression, reader)
    if tree.args.get("typed") and reader.kind(left) == reader.kind(right) == "integer":
        return truncated(Divide(left, right))
    return Divide(left, right)


def _without_nullif(tree: exp.Expression, reader: ScalarReader) -> Scalar:
    """The divisor x of NULLIF(x, 0): a quotient by 0 is NULL in any case."""
    inner = tree.unnest() if isinstance(tree, exp.Paren) else tree
    if isinstance(inner, exp.Nullif) and is_constant(inner.expression) and constant(inner.expression) == 0:
        return reader.scalar(inner.this)
    return reader.scalar(tree)


def truncated(x: Scalar) -> Scalar:
    """x without its fraction, towards 0."""
    return Multiply(Sign(x), Floor(Absolute(x)))


def _round(tree: exp.Round, reader: ScalarReader) -> Scalar:
    digits = tree.args.get("decimals")
    return Round(reader.scalar(tree.this), whole_number(digits, "ROUND(x, 2)") if digits is not None else 0)


def _truncate(tree: exp.Trunc, reader: ScalarReader) -> Scalar:
    digits = tree.args.get("decimals")
    places = whole_number(digits, "TRUNC(x, 2)") if digits is not None else 0
    if not places:
        return truncated(reader.scalar(tree.this))
    tens = Const(Fraction(10) ** places)
    return Divide(truncated(Multiply(reader.scalar(tree.this), tens)), tens)


def _floor(kind: Callable[[Scalar], Scalar]) -> Make:
    def make(tree: exp.Floor | exp.Ceil, reader: ScalarReader) -> Scalar:
        digits = tree.args.get("decimals")
        if digits is None:
            return kind(reader.scalar(tree.this))
        tens = Const(Fraction(10) ** whole_number(digits, "FLOOR(x)"))
        return Divide(kind(Multiply(reader.scalar(tree.this), tens)), tens)

    return make


def _log(tree: exp.Log, reader: ScalarReader) -> Scalar:
    """LOG(x) is to the base 10, as in the SQL of DuckDB and PostgreSQL; dialects in which it is natural are read as LN."""
    base, x = (tree.this, tree.expression) if tree.expression is not None else (exp.Literal.number(10), tree.this)
    value = constant(base) if is_constant(base) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or value <= 0 or value == 1:
        raise refused(f"{shown(tree)} was refused", "its base is no constant greater than 0 other than 1", "LOG(10, x)")
    return Divide(Ln(reader.scalar(x)), Round(Ln(Const(value)), 9))


def _power(tree: exp.Pow, reader: ScalarReader) -> Scalar:
    exponent = constant(tree.expression) if is_constant(tree.expression) else None
    if isinstance(exponent, bool) or not isinstance(exponent, int | Fraction):
        raise refused(f"{shown(tree)} was refused", "its exponent is no constant", "POWER(x, 2)")
    return Power(reader.scalar(tree.this), Fraction(exponent))


def _bucket(tree: exp.WidthBucket, reader: ScalarReader) -> Scalar:
    """0 below low, 1 to n for the n equal parts of [low, high), n + 1 from high on."""
    parts = [tree.args.get(name) for name in ("min_value", "max_value", "num_buckets")]
    values = [constant(part) if part is not None and is_constant(part) else None for part in parts]
    numbers = [Fraction(value) for value in values if isinstance(value, int | Fraction) and not isinstance(value, bool)]
    if len(numbers) != 3:
        raise refused("WIDTH_BUCKET was refused", "its bounds are no constants", "WIDTH_BUCKET(age, 0, 100, 10)")
    low, high, count = numbers
    if count.denominator != 1 or not 1 <= count <= 1_000_000 or low >= high:
        raise refused(
            "WIDTH_BUCKET was refused", "it needs low < high and a whole number of parts", "WIDTH_BUCKET(age, 0, 100, 10)"
        )
    place = Floor(Multiply(Subtract(reader.scalar(tree.this), Const(low)), Const(count / (high - low))))
    return Clamp(Add(place, Const(1)), Fraction(0), count + 1)


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
            raise refused(f"{shown(tree)} was refused", "a length would cut values off", "CAST(x AS VARCHAR)")
        return Cast(reader.scalar(inner), "text")
    if kind in WHOLE:
        return Cast(reader.scalar(inner), "integer")
    if kind in NUMBERS:
        places = tree.to.expressions[1] if len(tree.to.expressions) == 2 else None
        number = Cast(reader.scalar(inner), "real")
        if kind is exp.DataType.Type.DECIMAL and (places is not None or tree.to.expressions):
            return Round(number, whole_number(places.this, "CAST(x AS DECIMAL(10, 2))") if places is not None else 0)
        return number
    raise unsupported(shown(tree), "CAST(x AS INTEGER)")


def _text(name: str, *arguments: str) -> Make:
    def make(tree: exp.Expression, reader: ScalarReader) -> Scalar:
        given = [tree.args.get(argument) for argument in arguments]
        return TextFunction(name, reader.scalar(tree.this), tuple(reader.scalar(part) for part in given if part is not None))

    return make


def _trim(tree: exp.Trim, reader: ScalarReader) -> Scalar:
    if tree.args.get("position") or tree.expression is not None:
        raise unsupported(shown(tree), "TRIM(town)")
    return TextFunction("trim", reader.scalar(tree.this))


def _pipe(tree: exp.DPipe, reader: ScalarReader) -> Scalar:
    return _concatenated([tree.this, tree.expression], reader)


def _concat(tree: exp.Concat, reader: ScalarReader) -> Scalar:
    return _concatenated(tree.expressions, reader, coalesce=bool(tree.args.get("coalesce")))


def _concatenated(parts: Sequence[exp.Expression], reader: ScalarReader, *, coalesce: bool = False) -> Scalar:
    scalars = [reader.scalar(part) for part in parts]
    if coalesce:  # where CONCAT passes over NULL
        scalars = [each if isinstance(each, Const) else Coalesce((each, Const(""))) for each in scalars]
    return TextFunction("concat", scalars[0], tuple(scalars[1:])) if len(scalars) > 1 else scalars[0]


def _least(tree: exp.Least, reader: ScalarReader) -> Scalar:
    """LEAST(GREATEST(x, low), high) bounds x, which then needs no bounds of its own; NULL counts as low, as engines have it."""
    found = _clamped(tree, exp.Greatest, reader)
    return found if found is not None else LeastOf(tuple(reader.scalar(part) for part in (tree.this, *tree.expressions)))


def _greatest(tree: exp.Greatest, reader: ScalarReader) -> Scalar:
    """GREATEST(LEAST(x, high), low), likewise."""
    found = _clamped(tree, exp.Least, reader)
    return found if found is not None else GreatestOf(tuple(reader.scalar(part) for part in (tree.this, *tree.expressions)))


def _clamped(tree: exp.Expression, inside: type[exp.Expression], reader: ScalarReader) -> Scalar | None:
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
        raise refused("CLAMP was refused", "it takes an expression and two constant numbers", "CLAMP(pay / hours, 0, 100)")
    return Clamp(reader.scalar(parts[0]), numbers[0], numbers[1])


FUNCTIONS: dict[type[exp.Expression], Make] = {
    **DATES,
    exp.Add: _add,
    exp.Sub: _subtract,
    exp.Mul: _binary(Multiply),
    exp.Div: _divide,
    exp.IntDiv: lambda tree, reader: truncated(Divide(reader.scalar(tree.this), _without_nullif(tree.expression, reader))),
    exp.Mod: _binary(Modulo),
    exp.Neg: _unary(Negate),
    exp.Abs: _unary(Absolute),
    exp.Sign: _unary(Sign),
    exp.Round: _round,
    exp.Trunc: _truncate,
    exp.Floor: _floor(Floor),
    exp.Ceil: _floor(Ceiling),
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
    exp.Cast: _cast,
    exp.Date: lambda tree, reader: Cast(reader.scalar(tree.this), "date"),
    exp.TsOrDsToDate: lambda tree, reader: Cast(reader.scalar(tree.this), "date"),
    exp.TimeStrToTime: lambda tree, reader: Cast(reader.scalar(tree.this), "date"),
    exp.Lower: _text("lower"),
    exp.Upper: _text("upper"),
    exp.Trim: _trim,
    exp.Substring: _text("substring", "start", "length"),
    exp.Length: _text("length"),
    exp.Left: _text("left", "expression"),
    exp.Right: _text("right", "expression"),
    exp.Replace: _text("replace", "expression", "replacement"),
    exp.DPipe: _pipe,
    exp.Concat: _concat,
}
"""By the kind of the node."""

ANONYMOUS: dict[str, Callable[[Sequence[exp.Expression], ScalarReader], Scalar]] = {"CLAMP": _clamp}
"""By the name of a function that sqlglot does not know."""
