"""How far one unit can move an answer: its sensitivity, in four norms, and which tables count as neighbours.

A *unit* is whoever is protected: a person with all of a person's rows, or one row where the owner declares that. Two tables are
*unbounded* neighbours when one has the rows of one unit more than the other, *bounded* neighbours when the rows of one unit
differ. For an answer that is a vector of numbers, the sensitivity is the largest difference between neighbours:

- L0, the number of entries that one unit can change;
- L∞, by how much one unit can change one entry;
- L1 and L2, the sum and the Euclidean length of those changes.

They are exact rationals; L2 is kept as its square, since its root rarely is one. What is not given follows, where it can, from
‖v‖∞ ≤ ‖v‖₂ ≤ ‖v‖₁ ≤ √‖v‖₀·‖v‖₂ ≤ ‖v‖₀·‖v‖∞ and ‖v‖₂² ≤ ‖v‖₁·‖v‖∞ (Cauchy–Schwarz and Hölder).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import isqrt

from cloister.errors import InvalidParameter, MissingBound, check_one_of
from cloister.privacy.rational import Exact, exact, exact_nonnegative, text_of, whole_number


class Neighbours(StrEnum):
    """Which two tables a promise must not tell apart.

    >>> Neighbours("unbounded") is Neighbours.UNBOUNDED, Neighbours.BOUNDED == "bounded"
    (True, True)
    """

    UNBOUNDED = "unbounded"
    """One unit added or removed: the default everywhere."""

    BOUNDED = "bounded"
    """One unit replaced by another: the number of units is public."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Sensitivity:
    """By how much one unit can change a vector of numbers.

    Each norm is an upper bound. Those given are tightened by one another; those that are neither given nor implied raise
    `MissingBound` when they are asked for.

    >>> Sensitivity(l1=1).l2_squared
    Fraction(1, 1)
    >>> histogram = Sensitivity(l0=3, linf=2)
    >>> histogram.l1, histogram.l2_squared
    (Fraction(6, 1), Fraction(12, 1))
    """

    _l0: Fraction | None
    _l1: Fraction | None
    _l2_squared: Fraction | None
    _linf: Fraction | None

    def __init__(
        self,
        *,
        l1: Exact | None = None,
        l2: Exact | None = None,
        l0: Exact | None = None,
        linf: Exact | None = None,
        l2_squared: Exact | None = None,
    ) -> None:
        if l2 is not None and l2_squared is not None:
            raise InvalidParameter("l2 and l2_squared were both given", why="one is the square of the other", instead="l2=…")
        square = _optional(l2_squared, "l2_squared") if l2 is None else exact_nonnegative(l2, "l2") ** 2
        entries, total, largest = _optional(l0, "l0"), _optional(l1, "l1"), _optional(linf, "linf")
        if entries is not None and entries.denominator != 1:
            raise InvalidParameter(f"l0={text_of(entries)} is invalid", why="it counts entries", instead="l0=1")
        if entries is total is square is largest is None:
            raise InvalidParameter("A sensitivity of nothing is invalid", why="no norm was given", instead="Sensitivity(l1=1)")
        for _ in range(2):  # a second pass lets what the first one derived tighten the rest; a third changes nothing
            largest = _least(largest, total, _root_up(square))
            square = _least(
                square, _product(total, total), _product(total, largest), _product(entries, _product(largest, largest))
            )
            total = _least(total, _product(entries, largest), _root_up(_product(entries, square)))
        for name, value in (("_l0", entries), ("_l1", total), ("_l2_squared", square), ("_linf", largest)):
            object.__setattr__(self, name, value)

    @classmethod
    def of_rows(cls, max_rows: int, bound: Exact = 1, *, max_groups: int | None = 1) -> Sensitivity:
        """A sum, or sums by group, where a unit has at most `max_rows` rows and each adds at most `bound` in absolute value to
        one group.

        `max_groups` is how many groups one unit's rows may fall into: 1 for a single sum, None where nothing is declared.

        >>> Sensitivity.of_rows(3, 10).l1
        Fraction(30, 1)
        >>> by_group = Sensitivity.of_rows(3, 1, max_groups=None)
        >>> by_group.l0, by_group.l1, by_group.l2_squared
        (Fraction(3, 1), Fraction(3, 1), Fraction(9, 1))
        """
        rows, each = _count(max_rows, "max_rows"), exact_nonnegative(bound, "bound")
        groups = rows if max_groups is None else min(rows, _count(max_groups, "max_groups"))
        return cls(l0=groups, l1=rows * each, linf=rows * each)

    @classmethod
    def of_groups(cls, max_groups: int, per_group: Exact = 1) -> Sensitivity:
        """Sums by group, where a unit touches at most `max_groups` of them and changes each by at most `per_group`.

        >>> Sensitivity.of_groups(4, 2).l2_squared
        Fraction(16, 1)
        """
        return cls(l0=_count(max_groups, "max_groups"), linf=per_group)

    @property
    def l0(self) -> Fraction:
        """The number of entries that one unit can change."""
        return self._known(self._l0, "l0")

    @property
    def l1(self) -> Fraction:
        """The sum of the absolute changes."""
        return self._known(self._l1, "l1")

    @property
    def l2_squared(self) -> Fraction:
        """The sum of the squared changes."""
        return self._known(self._l2_squared, "l2")

    @property
    def linf(self) -> Fraction:
        """The largest change of one entry."""
        return self._known(self._linf, "linf")

    def knows(self, norm: str) -> bool:
        """Whether a norm ("l0", "l1", "l2" or "linf") is given or implied.

        >>> Sensitivity(l2=1).knows("l1"), Sensitivity(l2=1, l0=4).knows("l1")
        (False, True)
        """
        known = {"l0": self._l0, "l1": self._l1, "l2": self._l2_squared, "l2_squared": self._l2_squared, "linf": self._linf}
        check_one_of(norm, "norm", known, why="it is not one of l0, l1, l2 and linf", instead='norm="l1"')
        return known[norm] is not None

    def scaled(self, by: Exact) -> Sensitivity:
        """The sensitivity of the vector multiplied by a number.

        >>> Sensitivity(l1=2, l0=2).scaled("-0.5").l1
        Fraction(1, 1)
        """
        factor = abs(exact(by, "by"))
        entries = Fraction(0) if factor == 0 else self._l0
        total, largest = _product(self._l1, factor), _product(self._linf, factor)
        return _made(entries, total, _product(self._l2_squared, factor * factor), largest)

    def __add__(self, other: Sensitivity) -> Sensitivity:
        """The sensitivity of two vectors of the same unit laid end to end.

        >>> both = Sensitivity(l1=1) + Sensitivity(l1=3)
        >>> both.l1, both.l2_squared, both.linf
        (Fraction(4, 1), Fraction(10, 1), Fraction(3, 1))
        """
        if not isinstance(other, Sensitivity):
            return NotImplemented
        largest = None if self._linf is None or other._linf is None else max(self._linf, other._linf)
        return _made(_sum(self._l0, other._l0), _sum(self._l1, other._l1), _sum(self._l2_squared, other._l2_squared), largest)

    def to_bounded(self, *, nonnegative: bool = False) -> Sensitivity:
        """The sensitivity for bounded neighbours, from this one for unbounded neighbours.

        To replace a unit is to remove it and to add another, so the change is v − w where ‖v‖ and ‖w‖ are within this
        sensitivity: L0, L1, L2 and L∞ at most double. Where a unit only ever adds nonnegative amounts (`nonnegative=True`, as
        counts do), v and w have no negative entries, so ‖v − w‖∞ ≤ max(‖v‖∞, ‖w‖∞) and ‖v − w‖₂² ≤ ‖v‖₂² + ‖w‖₂². There is no way
        back.

        >>> count = Sensitivity(l1=1)
        >>> count.to_bounded().l2_squared, count.to_bounded(nonnegative=True).l2_squared
        (Fraction(4, 1), Fraction(2, 1))
        """
        two = Fraction(2)
        square = _product(self._l2_squared, two if nonnegative else two * two)
        largest = self._linf if nonnegative else _product(self._linf, two)
        return _made(_product(self._l0, two), _product(self._l1, two), square, largest)

    def __repr__(self) -> str:
        norms = {"l0": self._l0, "l1": self._l1, "l2_squared": self._l2_squared, "linf": self._linf}
        inner = ", ".join(f"{name}={text_of(value)!r}" for name, value in norms.items() if value is not None)
        return f"Sensitivity({inner})"

    def _known(self, value: Fraction | None, norm: str) -> Fraction:
        if value is None:
            raise MissingBound(
                f"The {norm} sensitivity is not known",
                why=f"{self!r} does not imply it",
                instead=f"Sensitivity(…, {norm}=…), or l0= with linf=, from which every norm follows",
            )
        return value


def _made(l0: Fraction | None, l1: Fraction | None, l2_squared: Fraction | None, linf: Fraction | None) -> Sensitivity:
    return Sensitivity(l0=l0, l1=l1, l2_squared=l2_squared, linf=linf)


def _optional(value: Exact | None, name: str) -> Fraction | None:
    return None if value is None else exact_nonnegative(value, name)


def _count(value: int, name: str) -> int:
    return whole_number(exact_nonnegative(value, name), name, least=1)


def _least(*values: Fraction | None) -> Fraction | None:
    return min((value for value in values if value is not None), default=None)


def _product(left: Fraction | None, right: Fraction | None) -> Fraction | None:
    return None if left is None or right is None else left * right


def _sum(left: Fraction | None, right: Fraction | None) -> Fraction | None:
    return None if left is None or right is None else left + right


def _root_up(square: Fraction | None) -> Fraction | None:
    """A rational that is not below the square root: the root itself where that is rational, else within 10⁻¹⁵ of it."""
    if square is None or square == 0:
        return square
    above, below = isqrt(square.numerator), isqrt(square.denominator)
    if above * above == square.numerator and below * below == square.denominator:
        return Fraction(above, below)
    shift = max(0, 120 + square.denominator.bit_length() - square.numerator.bit_length()) // 2
    return Fraction(isqrt((square.numerator << 2 * shift) // square.denominator) + 1, 1 << shift)
