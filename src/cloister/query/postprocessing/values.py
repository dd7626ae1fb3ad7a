"""What is known of a value above the cut, and the rules by which an expression's interval follows from those of its parts.

A value is one of four kinds. *certain*: no released number is in it, so it is what it would be without noise. *number*: an
interval holds what it would be. *truth*: of TRUE, FALSE and NULL, those that it may be. *exact*: anything else; a flag says
whether it is what it would be. The intervals are columns of the query itself, `STRUCT(l, h)`; NULL stands for "not known".

Rules (Moore, Interval Analysis, 1966): each is an inclusion. If the true parts lie in their intervals, the true result lies in
the interval that the rule gives; so whatever is made of intervals that hold at once with some confidence holds at once with that
confidence. A part that occurs twice only widens. An interval that is not finite becomes "not known". A rule reads each part
once (`list_transform` binds it), so that the text grows with the expression and no faster.

>>> Value("s1.c0").certain, number("s1.c1", "s1.i1").kind
(True, 'number')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["certain", "number", "truth", "exact"]

UNKNOWN = "NULL::STRUCT(l DOUBLE, h DOUBLE)"
NEVER = "FALSE"


def _of_two(body: str) -> str:
    return f"list_transform([struct_pack(a := a0, b := b0)], lambda x: {body})[1]"


def _of_one(body: str) -> str:
    return f"list_transform([a0], lambda x: {body})[1]"


_PRODUCTS = "x.a.l * x.b.l, x.a.l * x.b.h, x.a.h * x.b.l, x.a.h * x.b.h"
_WHOLE, _ROUNDING = "9007199254740992", "2.220446049250313e-16"
"""2^53, up to which a double has every whole number, and 2^−52: more than an operation rounds, as a share."""
_KEPT = f"x.a.l = x.a.h AND x.b.l = x.b.h OR {' AND '.join(f'x.{end} = trunc(x.{end})' for end in ('a.l', 'a.h', 'b.l', 'b.h'))}"
"""Of whole numbers nothing is rounded, and of two numbers without noise the engine's own result is the true one."""
_QUOTIENTS = "x.a.l / x.b.l, x.a.l / x.b.h, x.a.h / x.b.l, x.a.h / x.b.h"
_POWERS = "pow(x.a.l, x.b), pow(x.a.h, x.b)"
MACROS = {
    "v_finite(a0)": _of_one("CASE WHEN isfinite(x) THEN x END"),
    # intervals
    "i_of(l0, h0)": (
        "list_transform([struct_pack(l := CAST(l0 AS DOUBLE), h := CAST(h0 AS DOUBLE))],"
        " lambda y: CASE WHEN isfinite(y.l) AND isfinite(y.h) AND y.l <= y.h THEN y END)[1]"
    ),
    "i_near(l0, h0, e0)": (  # the engine reckons exactly with whole numbers and decimals, where the ends are rounded
        "list_transform([struct_pack(l := CAST(l0 AS DOUBLE), h := CAST(h0 AS DOUBLE), e := e0)], lambda y:"
        " CASE WHEN isfinite(y.l) AND isfinite(y.h) AND y.l <= y.h THEN"
        f" CASE WHEN y.e AND abs(y.l) <= {_WHOLE} AND abs(y.h) <= {_WHOLE} THEN struct_pack(l := y.l, h := y.h)"
        f" ELSE struct_pack(l := y.l - abs(y.l) * {_ROUNDING}, h := y.h + abs(y.h) * {_ROUNDING}) END END)[1]"
    ),
    "i_point(a0)": _of_one(  # of texts and truth values the order is another
        "CASE WHEN regexp_full_match(typeof(x), 'U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BIGNUM|DOUBLE|FLOAT|DECIMAL.*')"
        " THEN i_near(TRY_CAST(x AS DOUBLE), TRY_CAST(x AS DOUBLE), TRUE) END"
    ),
    # The engine reckons with decimals where an interval has doubles. So two numbers that are not whole may be one though they
    # differ in their last digits, and an end may lie on the other side of a step.
    "v_near(a0, b0)": _of_two("CASE WHEN x.a = trunc(x.a) AND x.b = trunc(x.b) THEN 0 ELSE 1e-12 * (abs(x.a) + abs(x.b)) END"),
    "v_whole(a0)": _of_one("CASE WHEN abs(x - round(x)) <= 1e-12 * (1 + abs(x)) THEN round(x) ELSE x END"),
    "i_exact(a0)": _of_one("coalesce(x.l = x.h, FALSE)"),
    "i_given(a0, b0)": _of_two("CASE WHEN x.b THEN i_point(x.a) END"),
    "i_neg(a0)": _of_one("i_of(-x.h, -x.l)"),
    "i_add(a0, b0)": _of_two(f"i_near(x.a.l + x.b.l, x.a.h + x.b.h, {_KEPT})"),
    "i_sub(a0, b0)": _of_two(f"i_near(x.a.l - x.b.h, x.a.h - x.b.l, {_KEPT})"),
    "i_mul(a0, b0)": _of_two(f"i_near(least({_PRODUCTS}), greatest({_PRODUCTS}), {_KEPT})"),
    "i_div(a0, b0)": _of_two(
        f"CASE WHEN x.b.l > 1e-12 OR x.b.h < -1e-12 THEN i_of(least({_QUOTIENTS}), greatest({_QUOTIENTS})) END"
    ),
    "i_abs(a0)": _of_one(
        "i_of(CASE WHEN x.l <= 0 AND x.h >= 0 THEN 0 ELSE least(abs(x.l), abs(x.h)) END, greatest(abs(x.l), abs(x.h)))"
    ),
    "i_sqrt(a0)": _of_one("CASE WHEN x.l >= 0 THEN i_of(sqrt(x.l), sqrt(x.h)) END"),
    "i_log(a0, b0)": _of_two("CASE WHEN x.a.l > 1e-12 AND x.b > 1 THEN i_of(ln(x.a.l) / ln(x.b), ln(x.a.h) / ln(x.b)) END"),
    "i_ln(a0)": _of_one("CASE WHEN x.l > 1e-12 THEN i_of(ln(x.l), ln(x.h)) END"),
    "i_exp(a0)": _of_one("i_of(exp(x.l), exp(x.h))"),
    "i_pow(a0, b0)": _of_two(
        "CASE WHEN NOT isfinite(x.b) THEN NULL"
        f" WHEN x.a.l > 0 OR (x.a.l >= 0 AND x.b > 0) THEN i_of(least({_POWERS}), greatest({_POWERS}))"
        f" WHEN x.b > 0 AND x.b % 2 = 1 THEN i_of({_POWERS})"
        " WHEN x.b > 0 AND x.b % 2 = 0 THEN"
        f" i_of(CASE WHEN x.a.l <= 0 AND x.a.h >= 0 THEN 0 ELSE least({_POWERS}) END, greatest({_POWERS})) END"
    ),
    "i_greatest(a0, b0)": _of_two(
        "CASE WHEN x.a IS NOT NULL AND x.b IS NOT NULL THEN i_of(greatest(x.a.l, x.b.l), greatest(x.a.h, x.b.h)) END"
    ),
    "i_least(a0, b0)": _of_two(
        "CASE WHEN x.a IS NOT NULL AND x.b IS NOT NULL THEN i_of(least(x.a.l, x.b.l), least(x.a.h, x.b.h)) END"
    ),
    "i_hull(a0, b0)": _of_two(
        "CASE WHEN x.a IS NOT NULL AND x.b IS NOT NULL THEN i_of(least(x.a.l, x.b.l), greatest(x.a.h, x.b.h)) END"
    ),
    "i_unless(a0, b0)": _of_two("CASE WHEN NOT x.b.t THEN x.a END"),
    # of TRUE, FALSE and NULL, those that a condition may be
    "t_any()": "struct_pack(f := TRUE, n := TRUE, t := TRUE)",
    "t_of(a0)": _of_one("struct_pack(f := coalesce(NOT x, FALSE), n := x IS NULL, t := coalesce(x, FALSE))"),
    "t_given(a0, b0)": _of_two("CASE WHEN x.b THEN t_of(x.a) ELSE t_any() END"),
    "t_exact(a0)": _of_one("x.f::INT + x.n::INT + x.t::INT = 1"),
    "t_sure(a0)": _of_one("x.t AND NOT x.f AND NOT x.n"),
    "t_not(a0)": _of_one("struct_pack(f := x.t, n := x.n, t := x.f)"),
    "t_and(a0, b0)": _of_two(
        "struct_pack(f := x.a.f OR x.b.f, n := (x.a.n AND (x.b.n OR x.b.t)) OR (x.b.n AND x.a.t), t := x.a.t AND x.b.t)"
    ),
    "t_or(a0, b0)": _of_two(
        "struct_pack(f := x.a.f AND x.b.f, n := (x.a.n AND (x.b.n OR x.b.f)) OR (x.b.n AND x.a.f), t := x.a.t OR x.b.t)"
    ),
    "t_is(a0)": _of_one("struct_pack(f := x.f OR x.n, n := FALSE, t := x.t)"),
    "t_is_null(a0)": _of_one("struct_pack(f := x.f OR x.t, n := FALSE, t := x.n)"),
    "t_lt(a0, b0)": _of_two(
        "CASE WHEN x.a IS NULL OR x.b IS NULL THEN t_any()"
        " ELSE struct_pack(f := x.a.h >= x.b.l - v_near(x.a.h, x.b.l), n := FALSE,"
        " t := x.a.l < x.b.h + v_near(x.a.l, x.b.h)) END"
    ),
    "t_eq(a0, b0)": _of_two(
        "CASE WHEN x.a IS NULL OR x.b IS NULL THEN t_any() ELSE struct_pack("
        "f := NOT (x.a.l = x.a.h AND x.b.l = x.b.h AND x.a.l = x.b.l), n := FALSE,"
        " t := x.a.l <= x.b.h + v_near(x.a.l, x.b.h) AND x.b.l <= x.a.h + v_near(x.b.l, x.a.h)) END"
    ),
    # what a CASE takes
    "i_if(c0, a0, b0)": (
        "list_transform([struct_pack(c := c0, a := a0, b := b0)],"
        " lambda x: CASE WHEN NOT x.c.t THEN x.b WHEN t_sure(x.c) THEN x.a ELSE i_hull(x.a, x.b) END)[1]"
    ),
    "x_if(c0, a0, b0)": (
        "list_transform([struct_pack(c := c0, a := a0, b := b0)],"
        " lambda x: CASE WHEN NOT x.c.t THEN x.b WHEN t_sure(x.c) THEN x.a ELSE FALSE END)[1]"
    ),
}
"""The rules, by the names under which the engine knows them; each stands on those before it."""
_CALL = re.compile(r"\b([itvx]_[a-z_]+)\(")


def macros(sql: str) -> list[str]:
    """The statements that teach the engine the rules that a text calls, and those that these call: all of them take it longer
    than most texts.

    >>> [each.split(" AS ")[0] for each in macros("SELECT i_neg(i0)")]
    ['CREATE TEMP MACRO i_of(l0, h0)', 'CREATE TEMP MACRO i_neg(a0)']
    """
    called = {*_CALL.findall(sql)}
    for head, body in reversed(MACROS.items()):
        if head.partition("(")[0] in called:
            called.update(_CALL.findall(body))
    return [f"CREATE TEMP MACRO {head} AS {body}" for head, body in MACROS.items() if head.partition("(")[0] in called]


@dataclass(frozen=True)
class Value:
    """The SQL of a value, and that of what is known of it: nothing for *certain*, an interval for *number*, a set of truth values
    for *truth*, a flag for *exact*."""

    sql: str
    kind: Kind = "certain"
    bound: str = ""

    @property
    def certain(self) -> bool:
        """Whether no released number is in it."""
        return self.kind == "certain"

    @property
    def interval(self) -> str:
        """Its interval."""
        if self.kind == "number":
            return self.bound
        if self.kind == "certain":
            return f"i_point({self.sql})"
        return UNKNOWN if self.kind == "truth" or self.bound == NEVER else f"i_given({self.sql}, {self.bound})"

    @property
    def truth(self) -> str:
        """What it may be, as a condition."""
        if self.kind == "truth":
            return self.bound
        if self.kind == "certain":
            return f"t_of(CAST({self.sql} AS BOOLEAN))"
        return (
            "t_any()" if self.kind == "number" or self.bound == NEVER else f"t_given(CAST({self.sql} AS BOOLEAN), {self.bound})"
        )

    @property
    def exact(self) -> str:
        """Whether it is what it would be without noise."""
        if self.kind == "certain":
            return "TRUE"
        return {"number": f"i_exact({self.bound})", "truth": f"t_exact({self.bound})", "exact": self.bound}[self.kind]

    def named(self, sql: str, bound: str) -> Value:
        """The same value under the names of the columns that hold it."""
        return Value(sql, self.kind, "" if self.certain else bound)


def number(sql: str, bound: str) -> Value:
    """A number with an interval."""
    return Value(sql, "number", bound)


def truth(sql: str, bound: str) -> Value:
    """A condition with the values that it may have."""
    return Value(sql, "truth", bound)


def uncertain(sql: str) -> Value:
    """A value of which nothing is known."""
    return Value(sql, "exact", NEVER)


def follows(sql: str, parts: Sequence[Value]) -> Value:
    """What any function makes of its parts: what it would be where all of these are.

    >>> follows("upper(s1.c0)", [Value("s1.c0")]).kind
    'certain'
    """
    noisy = [part for part in parts if not part.certain]
    if not noisy:
        return Value(sql)
    flags = [part.exact for part in noisy]
    return Value(
        sql, "exact", NEVER if NEVER in flags else " AND ".join(flags) if len(flags) == 1 else f"({' AND '.join(flags)})"
    )


def folded(rule: str, bounds: Sequence[str]) -> str:
    """A rule for two, applied to several.

    >>> folded("i_add", ["a", "b", "c"])
    'i_add(i_add(a, b), c)'
    """
    first, *rest = bounds
    for each in rest:
        first = f"{rule}({first}, {each})"
    return first
