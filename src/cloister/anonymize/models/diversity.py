"""ℓ-diversity: every class has ℓ well-represented sensitive values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, Spread
from cloister.anonymize.encoded import Encoded
from cloister.anonymize.models.base import Attained, PrivacyModel, evened
from cloister.anonymize.models.distances import per_class
from cloister.anonymize.models.ratios import Ratios, fits
from cloister.errors import InvalidParameter, check_one_of
from cloister.privacy.precision import context
from cloister.privacy.rational import Exact, exact

DIVERSITIES = ("distinct", "entropy", "recursive")

_ROUNDING = 1e-9
"""In nats: how far floating point may be off. Three values with a third of the rows each have an entropy of ln 3, and it may miss
that."""


def distinct_values(spread: Spread) -> npt.NDArray[np.int64]:
    """How many different values stand in each class."""
    return np.diff(spread.first)


def effective_values(spread: Spread) -> npt.NDArray[np.float64]:
    """e to the power of the entropy of each class: how many equally common values would be as hard to guess."""
    shares = spread.shares
    return np.asarray(np.exp(-per_class(spread, shares * np.log(shares)).astype(np.float64)), dtype=np.float64)


def recursive_ratios(spread: Spread, l: int) -> Ratios:  # noqa: E741 - the field's own name
    """Rows of the commonest value, over rows of the ℓ-th commonest and all rarer ones; n/0 where there are fewer."""
    kind = np.int64 if fits(float(spread.sizes.max(initial=1)), float(len(spread.sizes))) else np.float64
    order = np.lexsort((-spread.count, spread.owner))
    ranked = spread.count[order].astype(kind)
    starts = spread.first[:-1]
    rank = np.arange(len(ranked)) - np.repeat(starts, np.diff(spread.first))
    rest = per_class(spread, np.where(rank >= l - 1, ranked, 0))
    most = ranked[starts] if len(starts) else ranked
    return Ratios(top=np.asarray(most), bottom=np.asarray(rest))


@dataclass(frozen=True)
class LDiversity(PrivacyModel):
    """Every class has ℓ well-represented values of the sensitive column (Machanavajjhala, Kifer, Gehrke and
    Venkitasubramaniam 2006).

    - `kind="distinct"`: at least ℓ different values.
    - `kind="entropy"`: the entropy of the class is at least ln ℓ; ℓ need not be whole.
    - `kind="recursive"`: the commonest value has fewer than `c` times the rows of the ℓ-th commonest and all rarer ones together.

    The attacks that made it necessary are homogeneity (all of a class have one disease) and background knowledge (someone who
    knows that the target has none of ℓ − 2 others). It says nothing about how *alike* the values are, nor how rare they are
    elsewhere: that is what t-closeness is for.

    >>> from cloister.anonymize.encoded import EncodedColumn
    >>> column = EncodedColumn(name="ill", codes=np.array([0, 1, 1, 1, 1], dtype=np.int32), values=["flu", "gout"], kind="text")
    >>> classes = Classes.of(np.array([0, 0, 0, 1, 1]), 2, sensitive={"ill": column})
    >>> LDiversity(2).satisfied(classes, "ill").tolist(), LDiversity(2).attained(classes, "ill").reached
    ([True, False], 'l = 1')
    >>> LDiversity(2, kind="entropy").satisfied(classes, "ill").tolist()
    [False, False]
    >>> LDiversity(2, kind="recursive", c=3).satisfied(classes, "ill").tolist()
    [True, False]
    """

    l: int | float  # noqa: E741 - the field's own name
    kind: str = "distinct"
    c: Exact | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        check_one_of(self.kind, "kind", DIVERSITIES, instead=f'LDiversity({self.l}, kind="entropy")')
        whole = isinstance(self.l, int) and not isinstance(self.l, bool)
        real = self.kind == "entropy" and isinstance(self.l, float) and math.isfinite(self.l)
        if not (whole or real) or self.l < 1:
            raise InvalidParameter(
                f"l={self.l!r} is invalid",
                why="it is not a number of values from 1 on" + ("" if self.kind == "entropy" else ", and whole"),
                instead="LDiversity(3)",
            )
        if (self.c is not None) != (self.kind == "recursive"):
            raise InvalidParameter(
                f"c={self.c!r} is invalid" if self.c is not None else "Recursive diversity is invalid",
                why="only recursive diversity has a c" if self.c is not None else "its c is missing",
                instead=f'LDiversity({self.l}, kind="recursive", c=3)',
            )
        if self.c is not None and exact(self.c, "c") <= 0:
            raise InvalidParameter(
                f"c={self.c!r} is invalid", why="it is not above 0", instead=f'LDiversity({self.l}, kind="recursive", c=3)'
            )

    @property
    def absorbing(self) -> bool:  # type: ignore[override]
        """A class of ℓ different values keeps them, whatever joins it; its entropy can fall."""
        return self.kind == "distinct"

    @property
    def name(self) -> str:
        """ℓ-diversity with its ℓ."""
        if self.kind == "recursive":
            return f"recursive ({self.c}, {self.l})-diversity"
        return f"{'entropy ' if self.kind == 'entropy' else ''}{self.l:g}-diversity"

    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Classes with ℓ well-represented values."""
        assert column is not None
        spread = classes.spread(column)
        distinct = distinct_values(spread)
        if self.kind == "distinct":
            return np.asarray(distinct >= self.l)
        if self.kind == "entropy":
            return np.asarray((distinct >= self.l) & self._even_enough(spread))
        return self._recursive(spread)

    def _even_enough(self, spread: Spread) -> npt.NDArray[np.bool_]:
        """Entropies of at least ln ℓ: in floating point, and with sixty digits where that is too close to tell."""
        over = np.log(effective_values(spread)) - math.log(self.l)
        met = over >= 0
        if not len(met):
            return np.asarray(met)
        commonest, rarest = (how.reduceat(spread.count, spread.first[:-1]) for how in (np.maximum, np.minimum))
        uniform = (commonest == rarest) & (distinct_values(spread) >= self.l)
        met |= uniform
        for place in np.flatnonzero((np.abs(over) <= _ROUNDING) & ~uniform).tolist():
            met[place] = _entropy_reaches(spread.count[spread.first[place] : spread.first[place + 1]].tolist(), self.l)
        return np.asarray(met)

    def _recursive(self, spread: Spread) -> npt.NDArray[np.bool_]:
        assert self.c is not None
        enough = distinct_values(spread) >= self.l
        return np.asarray(enough & recursive_ratios(spread, int(self.l)).at_most(exact(self.c), strictly=True))

    def attained(self, classes: Classes, column: str | None) -> Attained:
        """The least diverse class."""
        assert column is not None
        spread = classes.spread(column)
        if self.kind == "distinct":
            asked, reached = f"l ≥ {self.l}", f"l = {int(distinct_values(spread).min(initial=_MANY)) if classes.count else 0}"
        elif self.kind == "entropy":
            asked = f"l ≥ {self.l:g}"
            reached = f"l = {float(effective_values(spread).min()) if classes.count else 0:.6g}"
        else:
            most = recursive_ratios(spread, int(self.l)).largest
            asked = f"c < {self.c}"
            reached = f"c = {most:.6g}" if math.isfinite(most) else f"no c: a class has fewer than {self.l} values"
        return Attained(
            model=self.name, asked=asked, reached=reached, holds=bool(self.satisfied(classes, column).all()), column=column
        )

    def check(self, table: Encoded, columns: Sequence[str | None], limit: int | None = None) -> None:
        """A table with fewer values than ℓ, or with values that are too uneven even as one class, has no class that meets it."""
        for name in columns:
            assert name is not None
            counts = table.columns[name].counts
            there = int(np.count_nonzero(counts))
            if 0 < there < self.l:
                raise InvalidParameter(
                    f"{self.name} is invalid",
                    why=f"the sensitive column {name!r} has {there} different values: no class has more"
                    if there > 1
                    else f"the sensitive column {name!r} has one value: no class has more",
                    instead=self._with(there) if there > 1 else f"a model without {name!r}: its value is known of everybody",
                )
            if there and self.kind != "distinct":
                self._check_evenness(name, evened(counts, limit))

    def _check_evenness(self, name: str, counts: npt.NDArray[np.int64]) -> None:
        counts = np.sort(counts[counts > 0])[::-1]
        if self.kind == "entropy":
            shares = counts / counts.sum()
            best = float(np.exp(-(shares * np.log(shares)).sum()))
            if math.log(best) < math.log(self.l) - _ROUNDING:
                raise InvalidParameter(
                    f"{self.name} is invalid",
                    why=f"the values of {name!r} are so uneven that all rows as one class are worth {best:.4g} values, and with "
                    "several classes one of them is worth no more",
                    instead=f'LDiversity({math.floor(best * 100) / 100:g}, kind="entropy"), or LDiversity({int(self.l)})',
                )
        elif self.kind == "recursive":
            assert self.c is not None
            tail = int(counts[int(self.l) - 1 :].sum())
            if not int(counts[0]) < exact(self.c) * tail:
                least = Fraction(int(counts[0]), tail)
                raise InvalidParameter(
                    f"{self.name} is invalid",
                    why=f"the commonest value of {name!r} has {float(least):.4g} times the rows of those that must outweigh it",
                    instead=f'LDiversity({self.l}, kind="recursive", c={math.floor(float(least)) + 1})',
                )

    def _with(self, l: int) -> str:  # noqa: E741
        more = "" if self.kind == "distinct" else f', kind="{self.kind}"' + (f", c={self.c}" if self.c is not None else "")
        return f"LDiversity({l}{more})"


def _entropy_reaches(counts: Sequence[int], l: float) -> bool:  # noqa: E741
    """Whether the entropy is at least ln ℓ: two numbers that agree to fifty digits are the same.

    >>> _entropy_reaches([2, 2], 2), _entropy_reaches([500_001, 499_999], 2), _entropy_reaches([4, 1, 1, 1, 1], 4)
    (True, False, True)
    """
    number = context()
    rows = sum(counts)
    entropy = number.log(rows) - number.fsum(count * number.log(count) for count in counts) / rows
    return bool(entropy - number.log(number.mpf(l)) >= -(number.mpf(10) ** -50))


_MANY = np.iinfo(np.int64).max
