"""Association rules: what is held together with what, and how surely.

A rule X → Y is there where at least `min_support` of all baskets hold X and Y, and at least `min_confidence` of those with X
hold Y, too (Agrawal, Imieliński & Swami 1993). X and Y share no item, and neither is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.mining.baskets import Baskets, Codes, Item
from cloister.mining.itemsets import Engine, Mined, mine
from cloister.mining.reading import read_baskets
from cloister.mining.thresholds import Thresholds
from cloister.privacy import Exact
from cloister.session.releases.frames import Frame, Series

MOST = 5_000_000
"""Of rules: the same thought as with itemsets."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """X → Y with its counts.

    >>> Rule(antecedent=("tea",), consequent=("milk",), count=2, antecedent_count=4, consequent_count=3, baskets=8).support
    0.25
    """

    antecedent: tuple[Item, ...]
    consequent: tuple[Item, ...]
    count: int
    """Baskets that hold both sides."""
    antecedent_count: int
    consequent_count: int
    baskets: int

    @property
    def support(self) -> float:
        """The share of all baskets that hold both sides."""
        return self.count / self.baskets

    @property
    def confidence(self) -> float:
        """The share of baskets with X that hold Y."""
        return self.count / self.antecedent_count

    @property
    def lift(self) -> float:
        """Confidence over the share of all baskets that hold Y: 1 says that the two have nothing to do with one another."""
        return self.confidence * self.baskets / self.consequent_count

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.antecedent))} → {', '.join(map(str, self.consequent))}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Rules as places in the mined sets: what is counted with."""

    mined: Mined
    whole: Codes
    left: Codes

    @cached_property
    def keys(self) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Each rule as its antecedent and its whole set."""
        sets = self.mined.sets
        return {(sets[left], sets[whole]) for left, whole in zip(self.left.tolist(), self.whole.tolist(), strict=True)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules(Sequence[Rule]):
    """All rules, the surest first. Exact counts: not for publication."""

    baskets: Baskets
    thresholds: Thresholds
    found: Found

    def __len__(self) -> int:
        return len(self.found.whole)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        each = int(self._order[place])
        sets, counts, index = self.found.mined.sets, self.found.mined.counts, self.found.mined.index
        whole, left = int(self.found.whole[each]), int(self.found.left[each])
        right = tuple(item for item in sets[whole] if item not in sets[left])
        names = self.baskets.items
        return Rule(
            antecedent=tuple(names[item] for item in sets[left]),
            consequent=tuple(names[item] for item in right),
            count=int(counts[whole]),
            antecedent_count=int(counts[left]),
            consequent_count=int(counts[index[right]]),
            baskets=len(self.baskets),
        )

    @cached_property
    def _order(self) -> npt.NDArray[np.intp]:
        counts = self.found.mined.counts
        if not len(self):
            return np.zeros(0, dtype=np.intp)
        return np.lexsort((-counts[self.found.whole], -(counts[self.found.whole] / counts[self.found.left])))

    def to_frame(self) -> Frame:
        """Columns antecedent, consequent (texts), count, support, confidence and lift."""
        rules = list(self)

        def texts(sides: list[tuple[Item, ...]]) -> Series:
            return Series("text", np.array([", ".join(map(str, side)) for side in sides], dtype=object))

        def reals(values: list[float]) -> Series:
            return Series("real", np.array(values, dtype=np.float64))

        return Frame(
            {
                "antecedent": texts([rule.antecedent for rule in rules]),
                "consequent": texts([rule.consequent for rule in rules]),
                "count": Series("integer", np.array([rule.count for rule in rules], dtype=np.int64)),
                "support": reals([rule.support for rule in rules]),
                "confidence": reals([rule.confidence for rule in rules]),
                "lift": reals([rule.lift for rule in rules]),
            }
        )

    def __repr__(self) -> str:
        return f"{len(self):,} rules of {self.baskets!r}"


def association_rules(
    baskets: Any,
    *,
    min_support: Exact,
    min_confidence: Exact,
    max_size: int | None = None,
    engine: Engine = "bits",
    **columns: str,
) -> Rules:
    """Every rule that is frequent and sure enough; of at most `max_size` items in all, if that is given.

    >>> found = association_rules([["tea", "milk"], ["tea"], ["tea", "milk"]], min_support="0.5", min_confidence="0.6")
    >>> [(str(rule), round(rule.confidence, 2)) for rule in found]
    [('milk → tea', 1.0), ('tea → milk', 0.67)]
    """
    read = read_baskets(baskets, **columns)
    thresholds = Thresholds.of(len(read), min_support=min_support, min_confidence=min_confidence)
    mined = mine(read, thresholds.least, max_size, engine)
    return Rules(baskets=read, thresholds=thresholds, found=find_rules(mined, thresholds))


def find_rules(mined: Mined, thresholds: Thresholds) -> Found:
    """The rules of the mined sets. Each part of a frequent set is frequent itself, so its count is at hand.

    Antecedents are tried from the largest down: where X → S∖X is not sure enough, no part of X as an antecedent is (its count is
    larger), so only parts of those that are sure are looked at (Agrawal & Srikant 1994).
    """
    index, counts = mined.index, mined.counts.tolist()
    whole: list[int] = []
    left: list[int] = []
    for place, each in enumerate(mined.sets):
        if len(each) < 2:
            continue
        sure: set[tuple[int, ...]] = {each}
        for size in range(len(each) - 1, 0, -1):
            tried = {part for larger in sure for part in combinations(larger, size)}
            sure = {part for part in tried if thresholds.confident(counts[place], counts[index[part]])}
            if not sure:
                break
            found = sorted(index[part] for part in sure)
            whole += [place] * len(found)
            left += found
        if len(whole) > MOST:
            raise InvalidParameter(
                "The thresholds are invalid",
                why=f"more than {MOST:,} rules reach them",
                instead="a larger min_support= or min_confidence=, or max_size=3",
            )
    return Found(mined=mined, whole=np.array(whole, dtype=np.int64), left=np.array(left, dtype=np.int64))
