"""What a parameter of a model may be: said in a table, and checked before a row is read and before anything is charged."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from cloister.errors import InvalidParameter
from cloister.privacy.rational import exact_positive, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One of `known`, or a number from `least` to `most`. `instead` is what its refusal proposes.

    >>> Limit(least=1, whole=True, instead=8).check("n_clusters", 3)
    >>> Limit(least=1, whole=True, instead=8).check("n_clusters", 0)
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: n_clusters=0 is invalid: it is a whole number, 1 or more.
      Instead: n_clusters=8
    """

    instead: Any
    known: tuple[Any, ...] = ()
    least: float = 0.0
    most: float = math.inf
    whole: bool = False
    above: bool = False
    """`least` itself is too little."""
    exact: bool = False
    """A text or a fraction is as good as a number."""
    none: bool = False
    """It may be left out."""

    def check(self, name: str, value: Any) -> None:
        """Refuse what it may not be."""
        if self.none and value is None:
            return
        number = exact_positive(value, name) if self.exact else value
        if not (self._is_known(value) if self.known else self._is_within(number)):
            raise self._refused(name, value)

    def _is_known(self, value: Any) -> bool:
        return isinstance(value, str | bool | np.bool_ | None) and value in self.known

    def _is_within(self, value: Any) -> bool:
        kinds: Any = (int, np.integer) if self.whole else (int, float, Fraction, np.integer, np.floating)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        return bool((self.least < value if self.above else self.least <= value) and value <= self.most and value < math.inf)

    def _refused(self, name: str, value: Any) -> InvalidParameter:
        value, instead = shown(value), f"{name}={self.instead!r}"
        least, most = (f"{each:g}".replace("e-0", "e-").replace("e+0", "e") for each in (self.least, self.most))
        if self.known:
            known = ", ".join(repr(each) for each in self.known)
            return InvalidParameter(f"{name}={value} is invalid", why=f"known are {known}", instead=instead)
        if self.whole and math.isfinite(self.most):
            return InvalidParameter(
                f"{name}={value} is invalid", why=f"it is a whole number from {least} to {most}", instead=instead
            )
        if math.isfinite(self.most):
            return InvalidParameter(f"{name}={value} is invalid", why=f"it is a number from {least} to {most}", instead=instead)
        if self.above:
            return InvalidParameter(f"{name}={value} is invalid", why=f"it is a number above {least}", instead=instead)
        return InvalidParameter(f"{name}={value} is invalid", why=f"it is a whole number, {least} or more", instead=instead)


Limits: TypeAlias = Mapping[str, Limit]
RADIUS = Limit(instead=None, above=True, none=True)
"""How far from the middle of the rows one may be: a length."""
SIZE = Limit(instead=10_000, exact=True, none=True)
"""How many rows there are, about: a public hint."""
YES_OR_NO = Limit(instead=True, known=(True, False))


def check_all(limits: Limits, of: Any) -> None:
    """Refuse the first parameter of a model that is not within its limit."""
    for name, limit in limits.items():
        limit.check(name, getattr(of, name))
