"""The kinds of values that a stored release and the digest of a plan are made of, each under the name that it is stored under.

Both are looked up by what older versions wrote, so the literals here never change; classes and fields may (`cloister.stored`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cloister.noise.laws import LAWS
from cloister.privacy import ZCDP, ApproxDP, PureDP, text_of
from cloister.session.planning.leaves import Leaves
from cloister.session.planning.moments import Moments, Side
from cloister.session.planning.zoom import Uneven, Zoom
from cloister.session.questions.arithmetic import Constant, Named, Operation
from cloister.session.questions.threshold import Threshold
from cloister.session.releases.combined import Calculated
from cloister.session.releases.formulas import Linear, Ratio, Reading, Rounded
from cloister.session.releases.frames import Series
from cloister.session.releases.moment_formulas import Moment
from cloister.session.releases.quantiles import Frequent, Ordered
from cloister.session.releases.release import Provenance, Release
from cloister.session.releases.uncertainty import Term
from cloister.session.releases.zoomed import Zoomed
from cloister.stored import Form, Stored, canonical
from cloister.tables import Boolean, Category, Date, Identifier, Integer, Real, Text
from cloister.tables.expression.computed import Periods, Stepped, SteppedInteger


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """A class that is not made from its own fields: the arguments that it is made from, and its text in a digest."""

    name: str
    told: Callable[[Any], dict[str, Any]]
    made: Callable[..., Any]
    words: Callable[[Any], str]

    def text(self, value: Any, inner: Callable[[Any], str]) -> str:
        """The value as a digest has it."""
        return f"{self.name}({self.words(value)}{', nullable=True' if value.nullable else ''})"


RELEASE = Stored(
    Release,
    "release",
    *("groups", "formulas", "readings", "cost", "spent_by", "provenance", "notes", "threshold", "cells", "names"),
    without=("buy_bias",),
)
"""The parts of a release."""

_STORED: tuple[Stored[Any], ...] = (
    Stored(Linear, "Linear", "name", "kind", "coefficients"),
    Stored(Rounded, "Rounded", "name", "kind", "coefficients", "slack"),
    Stored(Ratio, "Ratio", "name", "kind", "above", "below", "low", "width", "codes", "top"),
    Stored(Moment, "Moment", "name", "kind", "moments", "part", "lows", "widths", "sample", "tops"),
    Stored(Ordered, "Ordered", "name", "kind", "leaves", "domain", "share", "top"),
    Stored(Frequent, "Frequent", "name", "kind", "leaves", "domain"),
    Stored(Zoomed, "Zoomed", "name", "kind", "leaves", "domain", "share"),
    Stored(Calculated, "Calculated", "name", "kind", "expression", "parts"),
    Stored(Reading, "Reading", "values", "terms"),
    Stored(Series, "Series", "kind", "values"),
    Stored(Term, "Term", "weight", "noise"),
    Stored(Zoom, "Zoom", "leaves", "share", "rows", "noise"),
    Stored(Uneven, "Uneven", "leaves", "share", "rows", "noise", "part"),
    Stored(Leaves, "Leaves", "column", "low", "size", "stride", "branching", "weights"),
    Stored(Moments, "Moments", "sides"),
    Stored(Side, "Side", "column", "low", "width", "degree"),
    Stored(Threshold, "Threshold", "least", "delta"),
    Stored(
        Provenance,
        "Provenance",
        *("digest", "table", "population", "version", "who", "when", "charges", "mechanism", "neighbours", "marked", "repeated"),
    ),
    Stored(Named, "Named", "name"),
    Stored(Constant, "Constant", "value"),
    Stored(Operation, "Operation", "operator", "parts", "digits"),
    *LAWS,
    Stored(PureDP, "PureDP", "epsilon"),
    Stored(ApproxDP, "ApproxDP", "epsilon", "delta"),
    Stored(ZCDP, "ZCDP", "rho", "delta"),
    Stored(Integer, "Integer", "low", "high", "nullable"),
    Stored(Text, "Text", "nullable"),
    Stored(Identifier, "Identifier", "nullable"),
    Stored(Boolean, "Boolean", "nullable"),
    Stored(Stepped, "Stepped", "first", "last", "step_size", "nullable"),
    Stored(SteppedInteger, "SteppedInteger", "first", "last", "step_size", "nullable"),
    Stored(Periods, "Periods", "unit", "first", "last", "nullable"),
)
BY_FIELDS: Mapping[type, Stored[Any]] = {each.kind: each for each in _STORED}
BY_ARGUMENTS: Mapping[type, Arguments] = {
    Real: Arguments(
        name="Real",
        told=lambda it: {"low": it.low, "high": it.high, "step": it.step_size, "nullable": it.nullable},
        made=Real,
        words=lambda it: f"{text_of(it.low)!r}, {text_of(it.high)!r}, step={text_of(it.step_size)!r}",
    ),
    Category: Arguments(
        name="Category",
        told=lambda it: {"values": it.options, "nullable": it.nullable},
        made=Category,
        words=lambda it: repr(list(it.options)),
    ),
    Date: Arguments(
        name="Date",
        told=lambda it: {"low": it.low, "high": it.high, "nullable": it.nullable},
        made=Date,
        words=lambda it: f"{it.low.isoformat()!r}, {it.high.isoformat()!r}",
    ),
}
_FORMS: Mapping[type, Form] = {**BY_FIELDS, **BY_ARGUMENTS}


def written(value: Any) -> str:
    """A formula, or what is in one, as the digest of a plan has it.

    >>> written(Linear(name="count", kind="integer", coefficients=(("rows", 1.0),)))
    "Linear(name='count', kind='integer', coefficients=(('rows', 1.0),))"
    """
    return canonical(value, _FORMS)
