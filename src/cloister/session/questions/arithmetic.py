"""Arithmetic on the statistics of a question, as plain data: what `Combined` is made of.

An expression names statistics, constants and operations. It is worked out on released numbers, so it costs nothing; `combined.py`
works it out, with its margin.

>>> Operation("divide", (Named("sum_pay"), Named("count"))).names()
('sum_pay', 'count')
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from cloister.errors import InvalidParameter
from cloister.privacy import Exact, exact, text_of

Operator: TypeAlias = Literal[
    "add", "subtract", "multiply", "divide", "negate", "absolute", "round", "coalesce", "least", "greatest"
]

_PARTS = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "negate": 1, "absolute": 1, "round": 1}
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_DIGITS = 12
_LONGEST = 10**300


@dataclass(frozen=True)
class Named:
    """Another statistic of the same question, by its name.

    >>> str(Named("count"))
    'count'
    """

    name: str

    def names(self) -> tuple[str, ...]:
        """The statistics that it stands on."""
        return (self.name,)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constant:
    """A public number, exactly; a float means its shortest decimal text.

    >>> Constant("0.1").value, str(Constant(100))
    (Fraction(1, 10), '100')
    """

    value: Exact

    def __post_init__(self) -> None:
        value = exact(self.value, "Constant")
        if value and not Fraction(1, _LONGEST) <= abs(value) <= _LONGEST:
            raise InvalidParameter("A constant is invalid", why="it has more than 300 digits", instead="Constant(100)")
        object.__setattr__(self, "value", value)

    def names(self) -> tuple[str, ...]:
        """None."""
        return ()

    def __str__(self) -> str:
        return text_of(Fraction(str(self.value)))


@dataclass(frozen=True)
class Operation:
    """An operation on expressions: add, subtract, multiply, divide, negate, absolute, round (to `digits` decimals), coalesce
    (the first that is not NULL), least, greatest.

    >>> str(Operation("round", (Operation("divide", (Named("a"), Named("b"))),), digits=2))
    'ROUND((a / b), 2)'
    """

    operator: Operator
    parts: tuple[Arithmetic, ...]
    digits: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if self.operator not in get_args(Operator):
            raise InvalidParameter(
                f"The operator {self.operator!r} is invalid",
                why=f"known are {', '.join(get_args(Operator))}",
                instead='Operation("divide", (Named("a"), Named("b")))',
            )
        wanted = _PARTS.get(self.operator)
        if not self.parts or (wanted is not None and len(self.parts) != wanted):
            raise InvalidParameter(
                f"{self.operator} of {len(self.parts)} parts is invalid",
                why=f"it takes {wanted or 'at least one'}",
                instead='Operation("divide", (Named("a"), Named("b")))',
            )
        if any(not isinstance(part, Named | Constant | Operation) for part in self.parts):
            raise InvalidParameter(
                f"A part of {self.operator} is invalid",
                why="it is neither a name, nor a constant, nor an operation",
                instead='Named("count") or Constant(100)',
            )
        if isinstance(self.digits, bool) or not isinstance(self.digits, int) or abs(self.digits) > _DIGITS:
            raise InvalidParameter(
                f"digits={self.digits!r} is invalid", why=f"it must be a whole number up to {_DIGITS}", instead="digits=2"
            )

    def names(self) -> tuple[str, ...]:
        """The statistics that it stands on, each once."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.names()))

    def __str__(self) -> str:
        texts = [str(part) for part in self.parts]
        if self.operator in _SIGNS:
            return f"({texts[0]} {_SIGNS[self.operator]} {texts[1]})"
        if self.operator == "negate":
            return f"(-{texts[0]})"
        if self.operator == "round":
            return f"ROUND({texts[0]}, {self.digits})"
        return f"{'ABS' if self.operator == 'absolute' else self.operator.upper()}({', '.join(texts)})"


Arithmetic: TypeAlias = Named | Constant | Operation


def ratio(above: str, below: str) -> Operation:
    """One statistic divided by another.

    >>> str(ratio("sum_pay", "sum_hours"))
    '(sum_pay / sum_hours)'
    """
    return Operation("divide", (Named(above), Named(below)))
