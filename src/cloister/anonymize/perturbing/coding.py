"""Top and bottom coding, and rounding: extreme values cut off, numbers told coarsely."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.perturbing.columns import Columns
from cloister.anonymize.perturbing.noise.laws import uniforms
from cloister.errors import InvalidParameter, check_one_of
from cloister.noise import Random

Floats = npt.NDArray[np.float64]

AS = ("bound", "mean", "median")
WAYS = ("nearest", "random", "down")


@dataclass(frozen=True, eq=False, kw_only=True)
class Coded:
    """A table with a column's ends cut off."""

    frame: Any
    bottom: float | None
    top: float | None
    below: int
    """How many values were under the bottom."""
    above: int
    """How many were over the top."""
    looked_up: bool
    """Whether a bound or what stands for the ends was worked out from the rows."""


@dataclass(frozen=True, kw_only=True)
class TopBottomCoding:
    """Cut off the ends of a column: whoever earns more than the top is shown as earning the top.

    Protects: the outliers, who are recognised first. Does not protect: everybody between the bounds; and that a value is at
    the bound says that it is extreme. It is not differentially private.

    Say `top` and `bottom` yourself, from public knowledge. With `top_quantile` ("0.99") or `bottom_quantile` the bound is a
    value of the table itself: somebody's exact value is then published, as many times as there are values above it; the
    result says that it was looked up. The ends become the `bound`, or their own "mean" or "median" (so that totals stay, and
    the few people behind it are told about in sum: refused for fewer than `least` of them). Whole numbers stay whole where the
    bound is. Missing values stay missing.

    >>> done = TopBottomCoding(column="pay", top=5000, bottom=800).apply(
    ...     {"pay": [500, 1200, 9000, None]}, random=Random.deterministic(1)
    ... )
    >>> done.frame, done.below, done.above, done.looked_up
    ({'pay': [1200, None, 5000, 800]}, 1, 1, False)
    """

    column: str
    top: float | None = None
    bottom: float | None = None
    top_quantile: float | None = None
    bottom_quantile: float | None = None
    shown: str = "bound"
    least: int = 3

    def __post_init__(self) -> None:
        for end, bound, quantile in (("top", self.top, self.top_quantile), ("bottom", self.bottom, self.bottom_quantile)):
            if bound is not None and quantile is not None:
                raise InvalidParameter(f"{end}= is invalid", why=f"{end}_quantile= says something else", instead=f"{end}=5000")
            if bound is not None and not math.isfinite(bound):
                raise InvalidParameter(f"{end}={bound} is invalid", why="a bound is a finite number", instead=f"{end}=5000")
            if quantile is not None and not 0 <= float(quantile) <= 1:
                raise InvalidParameter(
                    f"{end}_quantile={quantile} is invalid",
                    why="it is a share of the values, from 0 to 1",
                    instead=f"{end}_quantile=0.99",
                )
        if (self.top, self.bottom, self.top_quantile, self.bottom_quantile) == (None,) * 4:
            raise InvalidParameter("The coding is invalid", why="it has no bound", instead="top=5000")
        check_one_of(self.shown, "shown", AS, instead='shown="bound"')

    def apply(self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False) -> Coded:
        """The table with the ends of the column cut off."""
        columns, _, _ = Columns.leaving(frame, self.column, random, shuffle=shuffle, keep_index=keep_index)
        numbers = columns.numbers(self.column)
        known = np.sort(numbers[~np.isnan(numbers)])
        top, bottom = _bound(self.top, self.top_quantile, known), _bound(self.bottom, self.bottom_quantile, known)
        if top is not None and bottom is not None and bottom > top:
            raise InvalidParameter("The bounds are invalid", why="the bottom is above the top", instead="bottom=0, top=5000")
        large = columns.large(self.column)
        neither = top if top is not None else bottom
        exact = numbers if large is None else np.array([neither if value is None else value for value in large], dtype=object)
        above = (exact > top if top is not None else np.zeros(len(numbers))).astype(np.bool_)
        below = (exact < bottom if bottom is not None else np.zeros(len(numbers))).astype(np.bool_)
        fresh = numbers.copy()
        for ends, bound in ((above, top), (below, bottom)):
            if bound is not None and ends.any():
                fresh[ends] = self._shown(numbers[ends], bound)
        return Coded(
            frame=columns.replaced({self.column: columns.changed(self.column, above | below, fresh)}),
            bottom=bottom,
            top=top,
            below=int(below.sum()),
            above=int(above.sum()),
            looked_up=self.top_quantile is not None or self.bottom_quantile is not None or self.shown != "bound",
        )

    def _shown(self, ends: Floats, bound: float) -> float:
        if self.shown == "bound":
            return bound
        if len(ends) < self.least:
            raise InvalidParameter(
                f"shown={self.shown!r} is invalid",
                why=f"only {len(ends)} values lie beyond the bound, and their {self.shown} would tell of them",
                instead='shown="bound", or a bound nearer to the middle',
            )
        return float(ends.mean() if self.shown == "mean" else np.sort(ends)[(len(ends) - 1) // 2])


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """Round numbers to whole multiples of a base.

    Protects: exact values, within one base. Does not protect: the size of a value; and with "nearest" and "down", sums and
    differences of several rounded numbers narrow the originals down. It is not differentially private.

    `how`: "nearest" (halves away from zero), "down", or "random": up with a probability that makes the result unbiased, so
    that totals stay in expectation (multiples of the base stay as they are). Columns of whole numbers stay whole where the
    base is whole. Missing values stay missing.

    >>> Rounding(columns="pay", base=50).apply({"pay": [1210, 1225, None]}, random=Random.deterministic(1))
    {'pay': [1250, None, 1200]}
    """

    columns: str | Sequence[str]
    base: float
    how: str = "nearest"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.base) and self.base > 0):
            raise InvalidParameter(f"base={self.base} is invalid", why="it is a finite number above 0", instead="base=10")
        check_one_of(self.how, "how", WAYS, instead='how="nearest"')

    def apply(self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False) -> Any:
        """The table with the columns rounded."""
        columns, names, source = Columns.leaving(frame, self.columns, random, shuffle=shuffle, keep_index=keep_index)
        return columns.replaced({name: self._rounded(columns, name, source) for name in names})

    def _rounded(self, columns: Columns, name: str, random: Random) -> Any:
        numbers, large = columns.numbers(name), columns.large(name)
        exact = Fraction(str(self.base))
        if large is not None and exact.denominator == 1:
            down, rest = _parts([Fraction(value or 0) / exact for value in large])
        else:
            far = np.abs(numbers) >= 2.0**53 * self.base  # no other float is nearer to a multiple
            known = np.where(far, 0.0, numbers)
            rough = known / self.base
            down = np.floor(rough)
            rest = rough - down
            # where floats would decide it by their own rounding, fractions do: 0.3 is three tenths, and 0.15 half way to two
            near = np.abs(rough * 2 - np.rint(rough * 2)) < 1e-6
            values, inside = np.unique(known[near], return_inverse=True)
            told = _parts([Fraction(str(value)) / exact for value in values.tolist()])
            down[near], rest[near] = (part.astype(np.float64)[inside] for part in told)
        if self.how == "nearest":
            up = (rest > 0.5) | ((rest == 0.5) & (down >= 0))
        else:
            up = uniforms(len(rest), random) < rest if self.how == "random" else np.zeros(len(rest), dtype=np.bool_)
        if down.dtype == object:
            whole = ((down + up) * int(exact)).tolist()
            kept = zip(large or [], whole, strict=True)
            return columns.same_type(name, [None if value is None else made for value, made in kept])
        made = (down + up) * exact.numerator / exact.denominator
        return columns.changed(name, ~far, np.where(far, numbers, made))


def _parts(steps: list[Fraction]) -> tuple[npt.NDArray[Any], Floats]:
    """Of each number what is whole, and the rest."""
    whole = [math.floor(step) for step in steps]
    return np.array(whole, dtype=object), np.array([float(step - down) for step, down in zip(steps, whole, strict=True)])


def _bound(given: float | None, quantile: float | None, known: Floats) -> float | None:
    if quantile is None or not len(known):
        return given
    return float(known[min(len(known) - 1, math.ceil(float(quantile) * (len(known) - 1)))])
