"""Arithmetic on released statistics: post-processing, so it costs nothing; with margins from noisy values alone.

Each statistic comes with the weights of the noises in it (`linearised.py`), so noise that two statistics share is counted
once: the margin of SUM(x)/COUNT(x) is that of a mean, not the sum of two. Division by a number that its own noise could make
0 has an infinite margin; division by exactly 0 is NaN, which COALESCE replaces."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from cloister.session.questions.arithmetic import Arithmetic, Constant, Named, Operation
from cloister.session.releases.formulas import Formula, Linear, Reading
from cloister.session.releases.frames import Kind, Series
from cloister.session.releases.linearised import Certainty, Floats, Linearised, added, constant, divided, multiplied, unknown

_SHOWN = 0.95
_INTEGERS, _USUAL = 2.0**62, 2.0**40
"""Where whole numbers end; what a statistic is thought to stay below, so that its multiples are whole numbers: one that does not
has an infinite margin."""
_LARGE, _ROUNDING, _LITTLE = 2.0**40, 2.0**-52, 1e-6
"""From where on rounding is looked at; more than an operation on doubles rounds, as a share; the share of what noise does below
which it is left out."""


@dataclass(frozen=True, kw_only=True)
class Calculated(Formula):
    """An expression over other formulas."""

    expression: Arithmetic
    parts: tuple[Formula, ...]
    """The formulas that it names, under the names that it knows them by."""

    @property
    def raws(self) -> tuple[str, ...]:
        """Those of all its parts, each once."""
        return tuple(dict.fromkeys(raw for part in self.parts for raw in part.raws))

    def series(self, readings: Mapping[str, Reading]) -> Series:
        """The released column."""
        values = self.linearised(readings, self._certainty(readings, _SHOWN)).value
        if self.kind == "integer":
            return Series("integer", np.clip(np.rint(np.nan_to_num(values, nan=0.0)), -_INTEGERS, _INTEGERS).astype(np.int64))
        return Series("real", values)

    def margins(self, readings: Mapping[str, Reading], confidence: float) -> Floats:
        """The half-width of the interval of each cell; infinite where nothing is known. What a single statistic is part of, once,
        moves as that statistic does: its own margin is taken, and not the wider bounds that many may need."""
        certainty = self._certainty(readings, confidence)
        number = self.linearised(readings, certainty)
        if _named(self.expression) == 1 and not isinstance(self.parts[0], Linear):
            [part] = self.parts
            alone = unknown(part.series(readings).values.astype(np.float64), part.margins(readings, confidence))
            number = _worked_out(self.expression, {part.name: alone}, len(alone.value), certainty)
        shown = self.series(readings).values.astype(np.float64)
        if self.kind == "integer":
            return np.where(np.abs(number.value) <= _INTEGERS, np.rint(certainty.margin(number)), np.inf)
        return np.where(np.isnan(number.value), np.inf, certainty.margin_about(number, shown))

    def linearised(self, readings: Mapping[str, Reading], certainty: Certainty) -> Linearised:
        """The number with the noises that lie in it."""
        known = {part.name: part.linearised(readings, certainty) for part in self.parts}
        size = len(next(iter(readings.values())).values)
        return _worked_out(self.expression, known, size, certainty)

    def _certainty(self, readings: Mapping[str, Reading], confidence: float) -> Certainty:
        return Certainty({name: readings[name].terms for name in self.raws}, confidence)


def of_nothing(expression: Arithmetic, zero: Collection[str]) -> float:
    """What it is where no row is: the statistics that are 0 there, and the others, which have no value.

    >>> of_nothing(Operation("coalesce", (Named("mean"), Named("sum"), Constant(5))), {"sum"})
    0.0
    """
    known = {name: constant(0.0 if name in zero else np.nan, 1) for name in expression.names()}
    return float(_worked_out(expression, known, 1, Certainty({}, _SHOWN)).value[0])


def kind_of_expression(expression: Arithmetic, kinds: Mapping[str, Kind]) -> Kind:
    """Whole numbers stay whole under sums, differences and products with constants, as long as numbers of `_USUAL` fit into 64
    bits; everything else is real.

    >>> from cloister.session.questions.arithmetic import Operation
    >>> kind_of_expression(Operation("add", (Named("a"), Constant(1))), {"a": "integer"})
    'integer'
    >>> kind_of_expression(Operation("multiply", (Named("a"), Constant(10**9))), {"a": "integer"})
    'real'
    """
    return "integer" if _reach(expression, kinds) < _INTEGERS else "real"


def _named(expression: Arithmetic) -> int:
    """How often it names a statistic."""
    return sum(map(_named, expression.parts)) if isinstance(expression, Operation) else int(isinstance(expression, Named))


def _reach(expression: Arithmetic, kinds: Mapping[str, Kind]) -> float:
    """How far from 0 a whole number may be; infinity for what need not be whole."""
    if isinstance(expression, Named):
        return _USUAL if kinds[expression.name] == "integer" else np.inf
    if isinstance(expression, Constant):
        value = Fraction(expression.value)
        return float(abs(value)) if value.denominator == 1 else np.inf
    parts = [_reach(part, kinds) for part in expression.parts]
    if expression.operator in ("divide", "round"):
        return np.inf
    return max(parts[0], 1.0) * max(parts[1], 1.0) if expression.operator == "multiply" else sum(parts)


def _worked_out(expression: Arithmetic, known: Mapping[str, Linearised], size: int, certainty: Certainty) -> Linearised:
    if isinstance(expression, Named):
        return known[expression.name]
    if isinstance(expression, Constant):
        return constant(float(Fraction(expression.value)), size)
    return _with_rounding(_operated(expression, known, size, certainty), certainty)


def _with_rounding(number: Linearised, certainty: Certainty) -> Linearised:
    """With what doubles have rounded, where it may be seen beside the noise: another number of the size of this one may be taken
    off again."""
    with np.errstate(invalid="ignore"):
        if not np.any(np.abs(number.value) >= _LARGE):
            return number
        lost = np.nan_to_num(np.abs(number.value) * _ROUNDING, nan=0.0, posinf=np.inf)
        seen = (np.abs(number.value) >= _LARGE) & (lost > _LITTLE * number.reach(certainty))
    return Linearised(number.value, number.weights, np.where(seen, number.rest + lost, number.rest))


def _operated(expression: Operation, known: Mapping[str, Linearised], size: int, certainty: Certainty) -> Linearised:
    parts = [_worked_out(part, known, size, certainty) for part in expression.parts]
    operator = expression.operator
    if operator == "add":
        return added(parts[0], parts[1])
    if operator == "subtract":
        return added(parts[0], parts[1], -1.0)
    if operator == "multiply":
        return multiplied(parts[0], parts[1], certainty)
    if operator == "divide":
        return divided(parts[0], parts[1], certainty)
    if operator == "negate":
        return added(constant(0.0, size), parts[0], -1.0)
    if operator == "absolute":
        return _absolute(parts[0], certainty)
    if operator == "round":
        return _rounded(parts[0], expression.digits)
    if operator == "coalesce":
        return reduce(_first_known, parts)
    sign = 1.0 if operator == "greatest" else -1.0
    return reduce(lambda one, other: _larger(one, other, sign, certainty), parts)


def _absolute(number: Linearised, certainty: Certainty) -> Linearised:
    """Where the sign is sure, linear; elsewhere ||t| − |v|| ≤ |t − v|."""
    reach = number.reach(certainty)
    sure = np.abs(number.value) > reach
    weights = {name: np.where(sure, np.sign(number.value) * weight, 0.0) for name, weight in number.weights.items()}
    return Linearised(np.abs(number.value), weights, np.where(sure, number.rest, reach))


def _rounded(number: Linearised, digits: int) -> Linearised:
    """Halves away from zero. Two numbers move apart by at most one unit of the last digit when both are rounded."""
    tens, unit = 10.0 ** abs(digits), 10.0**-digits
    scaled = number.value * tens if digits >= 0 else number.value / tens
    whole = np.trunc(scaled)
    whole = whole + np.sign(scaled) * (np.abs(scaled - whole) >= 0.5)
    value = whole / tens if digits >= 0 else whole * tens
    return Linearised(value, number.weights, number.rest + unit)


def _first_known(one: Linearised, other: Linearised) -> Linearised:
    known = ~np.isnan(one.value)
    names = {**one.weights, **other.weights}
    weights = {name: np.where(known, one.weights.get(name, np.zeros(1)), other.weights.get(name, np.zeros(1))) for name in names}
    lost = np.where(one.rest > 0, np.inf, other.rest)  # NaN by noise: without it, it may have been a number, and any
    return Linearised(np.where(known, one.value, other.value), weights, np.where(known, one.rest, lost))


def _larger(one: Linearised, other: Linearised, sign: float, certainty: Certainty) -> Linearised:
    """The larger (or with sign −1 the smaller): linear where it is sure which; elsewhere the maximum moves by no more than the
    one that moves most."""
    mine, theirs = one.reach(certainty), other.reach(certainty)
    first = sign * one.value >= sign * other.value
    sure = np.abs(one.value - other.value) > mine + theirs
    names = {**one.weights, **other.weights}
    weights = {
        name: np.where(sure, np.where(first, one.weights.get(name, 0.0), other.weights.get(name, 0.0)), 0.0) for name in names
    }
    value = np.where(first, one.value, other.value)
    if not names:
        return unknown(value, np.where(sure, np.where(first, one.rest, other.rest), np.maximum(mine, theirs)))
    return Linearised(value, weights, np.where(sure, np.where(first, one.rest, other.rest), np.maximum(mine, theirs)))
