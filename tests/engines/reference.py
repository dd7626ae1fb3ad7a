"""What the engines should answer, in plain Python: slow, obvious, and written without looking at any SQL."""

from __future__ import annotations

import hashlib
import itertools
import operator
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from cloister.tables import (
    Aggregate,
    And,
    Between,
    Column,
    Compare,
    Domain,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Text,
)

COMPARISONS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
Row = dict[str, Any]


def prepared(columns: Mapping[str, Domain], data: Mapping[str, Sequence[Any]], unit: str | None, secret: str) -> list[Row]:
    """Rows of codes (text for Text), with `unit` and `place` where there is a unit."""
    length = len(next(iter(data.values())))
    rows: list[Row] = []
    for i in range(length):
        row: Row = {name: _code(domain, data[name][i]) for name, domain in columns.items()}
        if unit is None:
            rows.append(row)
        elif data[unit][i] is not None:
            rows.append({**row, "unit": data[unit][i]})
    if unit is not None:
        by_unit = defaultdict(list)
        for row in rows:
            by_unit[row["unit"]].append(row)
        for its in by_unit.values():
            its.sort(key=lambda row: _rank(columns, row, secret))
            for place, row in enumerate(its, start=1):
                row["place"] = place
    return rows


def aggregate(
    columns: Mapping[str, Domain],
    rows: Sequence[Row],
    *,
    where: Expression | None = None,
    keys: Sequence[str] = (),
    aggregates: Sequence[Aggregate],
    max_rows: int | None = None,
) -> dict[tuple[Any, ...], dict[str, int]]:
    """The groups by key."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    if not keys:
        groups[()] = []
    for row in rows:
        if max_rows is not None and row["place"] > max_rows:
            continue
        if where is not None and truth(where, columns, row) is not True:
            continue
        key = []
        for name in keys:
            code = row[name]
            if code is None and not isinstance(columns[name], Text):
                code = columns[name].null_code
            key.append(code)
        if any(row[name] is None and not columns[name].nullable for name in keys):
            continue
        groups[tuple(key)].append(row)
    return {key: {each.name: _measure(each, its) for each in aggregates} for key, its in groups.items()}


def truth(expression: Expression, columns: Mapping[str, Domain], row: Row) -> bool | None:
    """Three-valued: True, False or None, on decoded exact values instead of codes."""
    match expression:
        case And(parts=parts):
            found = [truth(part, columns, row) for part in parts]
            return False if False in found else None if None in found else True
        case Or(parts=parts):
            found = [truth(part, columns, row) for part in parts]
            return True if True in found else None if None in found else False
        case Not(part=part):
            inner = truth(part, columns, row)
            return None if inner is None else not inner
        case IsNull(column=column):
            return row[column.name] is None
        case Literal(value=value):
            return value
        case Column(name=name):
            return None if row[name] is None else bool(row[name])
        case Between(column=column, low=low, high=high):
            return truth(And(Compare(">=", column, low), Compare("<=", column, high)), columns, row)
        case In(column=column, values=values):
            return truth(Or(*(Compare("=", column, Literal(value)) for value in values)), columns, row)
        case Like(column=column, pattern=pattern):
            value = _value(column, columns, row)
            regex = "".join(".*" if part == "%" else "." if part == "_" else re.escape(part) for part in pattern)
            return None if value is None else re.fullmatch(regex, value, re.DOTALL) is not None
        case Compare(op=op, left=left, right=right):
            first, second = _value(left, columns, row), _value(right, columns, row)
            return None if first is None or second is None else COMPARISONS[op](first, second)
    raise AssertionError(expression)


def _value(side: Expression, columns: Mapping[str, Domain], row: Row) -> Any:
    if isinstance(side, Literal):
        return (
            Fraction(str(side.value)) if isinstance(side.value, int | float) and not isinstance(side.value, bool) else side.value
        )
    assert isinstance(side, Column)
    domain, code = columns[side.name], row[side.name]
    if code is None or isinstance(domain, Text):
        return code
    return domain.origin + code * domain.step if domain.kind == "real" else domain.decode(code)


def _code(domain: Domain, value: Any) -> Any:
    if isinstance(domain, Text):
        return value if isinstance(value, str) and "\0" not in value else None
    return domain.encode(value)


def _rank(columns: Mapping[str, Domain], row: Row, secret: str) -> int:
    prime = 2**31 - 69
    unit = str(row["unit"])
    plain = re.fullmatch("0|-?[1-9][0-9]{0,17}", unit) is not None
    parts = _thirty_bits(int(unit) if plain else _digest(unit), 64)
    for name, domain in columns.items():
        content = row[name]
        if isinstance(domain, Text):
            parts += _thirty_bits(0 if content is None else _digest(content), 60)
        else:
            span = domain.null_code - domain.low_code
            parts += _thirty_bits((domain.null_code if content is None else content) - domain.low_code, span.bit_length())
    drawn = (int(hashlib.sha256(f"{secret}:{i}".encode()).hexdigest(), 16) % (prime - 1) + 1 for i in itertools.count())
    x, y = ((next(drawn) + sum(next(drawn) * part for part in parts)) % prime for _ in range(2))
    return pow(x, 3, prime) * 2**31 + y


def _thirty_bits(number: int, bits: int) -> list[int]:
    return [(number >> shift) % 2**30 for shift in range(0, max(bits, 1), 30)]


def _digest(text: str) -> int:
    return int(hashlib.md5(text.encode()).hexdigest()[:15], 16)


def _measure(aggregate: Aggregate, rows: Sequence[Row]) -> int:
    present = [row for row in rows if all(row[name] is not None for name, _ in aggregate.factors)]
    if aggregate.kind == "rows":
        return len(rows)
    if aggregate.kind == "values":
        return len(present)
    if aggregate.kind == "units":
        return len({row["unit"] for row in rows}) if rows and "unit" in rows[0] else len(rows)
    total = 0
    for row in present:
        product = 1
        for name, offset in aggregate.factors:
            product *= row[name] - offset
        total += product
    return total
