"""The most frequent itemsets under differential privacy: chosen by peeling, counted with noise.

The universe of items is declared, and so is how many items of a basket count: neither is looked up. Candidates are all sets of up
to `max_size` items of the universe, whether anybody holds them or not.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.mining.baskets import Baskets, Codes, Item
from cloister.mining.reading import read_baskets
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Exponential, PermuteAndFlip, Random, default_random
from cloister.noise.mechanism import check_confidence
from cloister.printable import margin_text
from cloister.privacy import ZCDP, ApproxDP, Exact, Guarantee, PureDP, exact_positive, zcdp_within
from cloister.session.releases.frames import Frame, Series

MOST_CANDIDATES = 3_000_000
_CHUNK = 4_000_000


@dataclass(frozen=True, kw_only=True)
class NoisyItemset:
    """A released itemset with its noisy count: whole, unbiased given the choice of the sets, and below zero at times."""

    items: tuple[Item, ...]
    count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyItemsets(Sequence[NoisyItemset]):
    """What may be published: itemsets in the order in which they were chosen, their noisy counts, and how far off both may be."""

    itemsets: tuple[tuple[Item, ...], ...]
    counts: Codes
    guarantee: Guarantee
    noise: DiscreteLaplace | DiscreteGaussian
    choice: PermuteAndFlip | Exponential
    candidates: int
    marked: bool = False
    """Whether the noise came of a generator made for tests."""

    def __len__(self) -> int:
        return len(self.itemsets)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        return NoisyItemset(items=self.itemsets[place], count=int(self.counts[place]))

    def margin(self, confidence: Exact = 0.95) -> float:
        """The half-width of the interval about each count."""
        return float(self.noise.margin(confidence))

    def choice_margin(self, confidence: Exact = 0.95) -> float:
        """With this probability each chosen set is held by at most so many fewer baskets than the best that was left.

        By the mechanism's exact bound for one choice, and the union bound over all.
        """
        miss = (1 - check_confidence(confidence)) / max(1, len(self))
        return float(self.choice.margin(1 - miss, candidates=self.candidates))

    def to_frame(self) -> Frame:
        """Columns itemset (a text), size and count (noisy)."""
        texts = np.array([", ".join(map(str, each)) for each in self.itemsets], dtype=object)
        sizes = np.array([len(each) for each in self.itemsets], dtype=np.int64)
        return Frame(
            {"itemset": Series("text", texts), "size": Series("integer", sizes), "count": Series("integer", self.counts)}
        )

    def __str__(self) -> str:
        lines = [f"{len(self)} itemsets of {self.candidates:,} candidates, under {self.guarantee}"]
        lines += [f"  {', '.join(map(str, each.items))}: {each.count:,} ± {margin_text(self.margin())}" for each in self]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Picker:
    """The mechanism on counts: k choices, then k noisy numbers.

    **Guarantee.** `guarantee`, between data sets that differ in one unit (one more or less), if the count of every candidate
    moves by at most `sensitivity`, all in the same direction, and the counts of any k of them together by at most `total`
    (`squares`) in the sum of sizes (of squares).

    *Theorem and proof.* Half of the guarantee pays for the choices, half for the numbers.
    Pure: each of k choices is permute-and-flip (McKenna & Sheldon 2020) on monotone counts, ε/2k-private, the chosen candidate
    being left out of what follows; that is adaptive composition (Dwork & Roth 2014, Theorem 3.16; "peeling", Bhaskar, Laxman,
    Smith & Thakurta, KDD 2010). The counts of the chosen are then a vector of whole numbers that moves by at most `total`:
    discrete Laplace noise of scale `total`/(ε/2) on each (Ghosh, Roughgarden & Sundararajan 2009).
    zCDP: each choice is the exponential mechanism on monotone counts with rate ε₀/sensitivity, whose log-probabilities move
    within an interval of length ε₀, so it is ε₀²/8-zCDP (Cesar & Rogers 2021): ε₀ = √(8ρ/2k), rounded down. The numbers get
    discrete Gaussian noise with σ² = `squares`/ρ (Canonne, Kamath & Steinke 2020: ρ/2 each half). ρ adds (Bun & Steinke 2016).
    (ε, δ): by the largest ρ that implies it (`zcdp_within`); with δ = 0 the pure way. ∎

    All choices and all noise are drawn exactly on whole numbers: nothing is added to δ.
    """

    k: int
    guarantee: Guarantee
    sensitivity: int = 1
    total: int
    squares: int

    @cached_property
    def parts(self) -> tuple[PermuteAndFlip | Exponential, DiscreteLaplace | DiscreteGaussian]:
        """The mechanism of each choice, and the noise of each number."""
        promise = self.guarantee
        if isinstance(promise, ApproxDP):
            promise = zcdp_within(epsilon=promise.epsilon, delta=promise.delta) if promise.delta else PureDP(promise.epsilon)
        if isinstance(promise, PureDP):
            half = exact_positive(promise.epsilon, "epsilon") / 2
            choice = PermuteAndFlip(epsilon=half / self.k, sensitivity=self.sensitivity, monotone=True)
            self._check(self.total / half)
            return choice, DiscreteLaplace(scale=self.total / half, sensitivity=self.total)
        if not isinstance(promise, ZCDP) or promise.delta:
            raise InvalidParameter(
                f"{promise!r} is invalid", why="itemsets are chosen under ε, ρ, or ε with δ", instead="cl.PureDP(1)"
            )
        half = exact_positive(promise.rho, "rho") / 2
        epsilon = Fraction(math.isqrt(int(8 * half / self.k * 2**80)), 2**40)
        self._check(math.isqrt(math.ceil(self.squares / (2 * half))))
        noise = DiscreteGaussian(scale_squared=self.squares / (2 * half), sensitivity_squared=self.squares)
        return Exponential(epsilon=epsilon, sensitivity=self.sensitivity, monotone=True), noise

    def _check(self, scale: Fraction | int) -> None:
        if scale > 1 << 56:
            why = "its noise is wider than the counts of any table"
            raise InvalidParameter(f"{self.guarantee} is invalid", why=why, instead="cl.PureDP(1)")

    def pick(self, counts: Codes, random: Random | None = None) -> tuple[list[int], Codes]:
        """The places that were chosen, and their noisy counts."""
        source = random or default_random()
        choice, noise = self.parts
        left = np.arange(len(counts), dtype=np.int64)
        chosen: list[int] = []
        for _ in range(min(self.k, len(counts))):
            place = int(choice.release(counts[left], random=source))
            chosen.append(int(left[place]))
            left = np.delete(left, place)
        noisy = np.asarray(noise.release(counts[chosen], random=source), dtype=np.int64)
        return chosen, noisy


@dataclass(frozen=True, kw_only=True)
class TopItemsets:
    """The k most frequent sets of up to `max_size` of the declared `items`, from baskets at hand, out of a budget of its own.

    Of a basket count at most `max_items` items (a random choice of them), so a basket more or less moves the count of each set by
    at most 1, and of at most Σⱼ C(max_items, j) sets at all.

    **Guarantee.** `guarantee` = ε (or ε with δ), for one basket more or less: the theorem and its proof stand at `Picker`, with
    sensitivity 1, since a basket holds a set once, and adding one lowers no count. What is kept of a basket depends on this
    basket and on coins of its own. **Error.** `margin` of the result for the counts, `choice_margin` for the choice.

    >>> from cloister.noise import Random
    >>> mechanism = TopItemsets(items=["tea", "milk", "jam"], k=2, epsilon=2, max_items=3)
    >>> found = mechanism.release([["tea", "milk"]] * 500 + [["tea"]] * 400 + [["jam"]] * 100, random=Random.deterministic(1))
    >>> isinstance(found, NoisyItemsets)
    True
    >>> [each.items for each in found], str(found.guarantee)
    ([('tea',), ('milk',)], 'ε = 2')
    >>> bool(abs(found[0].count - 900) <= found.margin("0.999"))
    True
    """

    items: Sequence[Item]
    k: int
    epsilon: Exact
    max_items: int
    delta: Exact = 0
    max_size: int = 2
    min_size: int = 1

    @property
    def guarantee(self) -> Guarantee:
        """For one basket more or less."""
        return ApproxDP(self.epsilon, self.delta) if self.delta not in (None, 0) else PureDP(self.epsilon)

    @property
    def picker(self) -> Picker:
        """The mechanism on counts."""
        most = _whole(self.max_items, "max_items")
        check_universe(len(_universe(self.items)), k=self.k, min_size=self.min_size, max_size=self.max_size)
        moved = min(self.k, sum(math.comb(most, size) for size in range(self.min_size, self.max_size + 1)))
        return Picker(k=self.k, guarantee=self.guarantee, total=max(1, moved), squares=max(1, moved))

    def release(self, baskets: Any, *, random: Random | None = None, **columns: str) -> NoisyItemsets:
        """Choose and count. Items that are not declared count for nothing, silently: who holds them is private."""
        picker, source = self.picker, random or default_random()
        universe = _universe(self.items)
        codes = _capped(_coded(read_baskets(baskets, **columns), universe), _whole(self.max_items, "max_items"), source)
        counts = counted(codes, len(universe), self.min_size, self.max_size)
        return picked(picker, counts, tuple(universe), self.min_size, self.max_size, source)


def picked(picker: Picker, counts: Codes, items: tuple[Item, ...], min_size: int, max_size: int, source: Random) -> NoisyItemsets:
    """Choose by counts, and put the names back."""
    chosen, noisy = picker.pick(counts, source)
    choice, noise = picker.parts
    return NoisyItemsets(
        itemsets=tuple(tuple(items[place] for place in each) for each in sets_of(chosen, len(items), min_size, max_size)),
        counts=noisy,
        guarantee=picker.guarantee,
        noise=noise,
        choice=choice,
        candidates=len(counts),
        marked=source.marked,
    )


def check_universe(items: int, *, k: int, min_size: int, max_size: int) -> int:
    """How many candidates there are; public facts alone.

    >>> check_universe(169, k=10, min_size=1, max_size=2)
    14365
    """
    _whole(k, "k")
    if not 1 <= _whole(min_size, "min_size") <= _whole(max_size, "max_size"):
        raise InvalidParameter(f"min_size={min_size} is invalid", why="it is above max_size", instead="min_size=1")
    candidates = sum(math.comb(items, size) for size in range(min_size, max_size + 1))
    if not candidates or k > candidates:
        raise InvalidParameter(f"k={k} is invalid", why=f"there are {candidates} candidates", instead=f"k={max(1, candidates)}")
    if candidates > MOST_CANDIDATES:
        raise InvalidParameter(
            f"max_size={max_size} is invalid",
            why=f"{items:,} items make {candidates:,} candidates, more than {MOST_CANDIDATES:,}",
            instead=f"max_size={max(1, max_size - 1)}, or fewer items",
        )
    return candidates


def counted(codes: Iterable[tuple[int, Codes]], items: int, min_size: int, max_size: int) -> Codes:
    """The count of every candidate: all sets of `min_size` items, then of one more, each size in colexicographic order.

    `codes` are pairs of a size s and a table with s ascending places a row, a row a basket.
    """
    totals = {size: np.zeros(math.comb(items, size), dtype=np.int64) for size in range(min_size, max_size + 1)}
    tables = [np.array([math.comb(place, size) for place in range(items)], dtype=np.int64) for size in range(max_size + 1)]
    for width, rows in codes:
        for size, total in totals.items():
            if size > width:
                continue
            picks = np.array(list(combinations(range(width), size)), dtype=np.int64)
            step = max(1, _CHUNK // picks.size)
            for start in range(0, len(rows), step):
                block = rows[start : start + step][:, picks]
                ranks = sum((tables[place + 1][block[:, :, place]] for place in range(size)), np.zeros(block.shape[:2], np.int64))
                total += np.bincount(ranks.ravel(), minlength=len(total))
    return np.concatenate(list(totals.values()))


def sets_of(places: Iterable[int], items: int, min_size: int, max_size: int) -> list[tuple[int, ...]]:
    """From places among the candidates back to sets.

    >>> sets_of([0, 2, 3, 4, 5], 3, 1, 2)
    [(0,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    found = []
    for place in places:
        size = min_size
        while size < max_size and place >= math.comb(items, size):
            place -= math.comb(items, size)
            size += 1
        members: list[int] = []
        for left in range(size, 0, -1):
            item = left - 1
            while math.comb(item + 1, left) <= place:
                item += 1
            members.append(item)
            place -= math.comb(item, left)
        found.append(tuple(reversed(members)))
    return found


def by_width(item: Codes, basket: Codes) -> list[tuple[int, Codes]]:
    """Pairs without repetition, as tables of baskets of equal size, the places of each row ascending."""
    if not len(item):
        return []
    order = np.lexsort((item, basket))
    item, numbers = item[order], np.unique(basket[order], return_inverse=True)[1]
    widths = np.bincount(numbers)
    starts = np.cumsum(widths) - widths
    found = []
    for width in np.unique(widths).tolist():
        begun = starts[widths == width]
        found.append((int(width), item[begun[:, None] + np.arange(width)]))
    return found


def _universe(items: Sequence[Item]) -> dict[Item, int]:
    try:
        listed: list[Any] = [items] if isinstance(items, str | bytes) else list(items)
        universe = {item: place for place, item in enumerate(dict.fromkeys(listed))}
    except TypeError:
        listed, universe = [items], {}
    if isinstance(items, str | bytes) or not universe:
        raise InvalidParameter("items is invalid", why="it is the list of all items that count", instead='items=["tea", "milk"]')
    if len(universe) < len(listed):
        raise InvalidParameter("items is invalid", why="an item is in it twice", instead="items=sorted(set(items))")
    return universe


def _coded(baskets: Baskets, universe: dict[Item, int]) -> tuple[Codes, Codes]:
    places = np.array([universe.get(item, -1) for item in baskets.items], dtype=np.int64)
    codes = places[baskets.item] if len(places) else np.zeros(0, np.int64)
    return codes[codes >= 0], baskets.basket[codes >= 0]


def _capped(pairs: tuple[Codes, Codes], most: int, source: Random) -> list[tuple[int, Codes]]:
    """Of a basket with too many items a uniform choice of `most`."""
    item, basket = pairs
    shuffled = source.permutation(len(item))
    order = shuffled[np.argsort(basket[shuffled], kind="stable")]
    item, basket = item[order], basket[order]
    numbers = np.unique(basket, return_inverse=True)[1] if len(basket) else basket
    widths = np.bincount(numbers) if len(basket) else np.zeros(0, np.int64)
    within = np.arange(len(item)) - np.repeat(np.cumsum(widths) - widths, widths)
    return by_width(item[within < most], basket[within < most])


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidParameter(f"{name}={value!r} is invalid", why="it is a whole number from 1 on", instead=f"{name}=10")
    return int(value)
