"""Several options at once: each option's tick is a coin, and the promise holds for the whole list of ticks."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.packed import column_counts, fits
from cloister.local.protocols.coins import (
    WORD,
    bit_rows,
    check_epsilon,
    heads_above,
    heads_below,
    lanes_of,
    odds_below,
    probability,
)
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy.rational import Exact

Rows = npt.NDArray[np.uint64]


class Ticks:
    """Which of `size` options apply to a person, at most `most` of them: one randomised bit for each option.

    Guarantee: ε-local privacy for the whole list. A ticked option gives 1 with probability s ("stay"), another one with r
    ("rise"), independently. Proof: let a = s/r and b = (1 − r)/(1 − s). Two lists differ in at most u ticks that only the
    first has and v that only the second has, u, v ≤ most and u + v ≤ size; the likelihood ratio of a report is at most
    a^u·b^v. Two choices of (s, r) keep that at e^ε or below, and the one with the lesser variance is taken:

    - both alike: s = 1 − r = e'/(1 + e') with e' = e^(ε/Δ), Δ = min(size, 2·most), so that a = b = e' (ε is split over Δ bits);
    - optimised: s = ½, r = 1/(1 + e') with e' = e^(ε/most), so that a·b = e' and a, b ≤ e' (Wang et al. 2017, for one tick).

    Probabilities are whole numbers of 2⁻⁶⁴, rounded towards less being told.

    Error: an estimated count has variance n·r(1 − r)/(s − r)² where nobody ticks the option.

    >>> ticks = Ticks(6, most=2, epsilon=1)
    >>> reports = ticks.randomize([{0, 3}] * 4000, random=Random.deterministic(1))
    >>> counts = ticks.estimate(ticks.count(reports), 4000)
    >>> bool(abs(counts[3] - 4000) < 5 * ticks.variance(4000, 1) ** 0.5)
    True
    """

    protocol = "ticks"

    def __init__(self, size: int, *, most: int, epsilon: Exact = 1) -> None:
        if not 1 <= most <= size or size < 2:
            raise InvalidParameter(
                f"most={most} is invalid", why=f"from 1 to all {size} options may be ticked", instead=f"most={min(size, 3)}"
            )
        self.size = size
        self.most = most
        self.epsilon = check_epsilon(epsilon)
        spread = min(size, 2 * most)
        alike, apart = odds_below(self.epsilon / spread), odds_below(self.epsilon / most)
        stay = heads_below(alike / (1 + alike))
        choices = [(stay, WORD - stay), (WORD // 2, heads_above(1 / (1 + apart)))]
        self._stay, self._rise = min(choices, key=lambda each: _variance(each[0], each[1], 0.0))

    @property
    def client(self) -> Mapping[str, Any]:
        """What a person's own machine needs, as plain JSON.

        >>> sorted(Ticks(3, most=1).client)
        ['most', 'protocol', 'rise', 'size', 'stay']
        """
        return {"protocol": self.protocol, "size": self.size, "most": self.most, "stay": hex(self._stay), "rise": hex(self._rise)}

    def randomize(self, ticked: Any, *, random: Random | None = None) -> Rows:
        """A row of bits for each set of ticked places, 64 in a word. For one person: the words of a whole row of "rise", then
        those of a whole row of "stay"; a bit is the second row's where the option is ticked, else the first's."""
        sets = [frozenset(each) for each in ticked]
        if any(len(each) > self.most or not all(0 <= place < self.size for place in each) for each in sets):
            raise InvalidParameter(
                "An answer is invalid",
                why=f"it ticks more than {self.most} options, or one that is not there",
                instead=f"at most {self.most} of the options",
            )
        masks = np.zeros((len(sets), lanes_of(self.size)), dtype=np.uint64)
        for row, each in enumerate(sets):
            for place in each:
                masks[row, place // 64] |= np.uint64(1 << place % 64)
        drawn = source(random)
        risen = bit_rows(self._rise, len(sets), self.size, drawn)
        stayed = bit_rows(self._stay, len(sets), self.size, drawn)
        return np.asarray(risen ^ (masks & (risen ^ stayed)), dtype=np.uint64)

    def valid(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Which rows could be reports: any bits, but none beyond the options."""
        return fits(rows, self.size)

    def count(self, rows: Rows) -> npt.NDArray[np.int64]:
        """How many reports have each bit."""
        return column_counts(rows, self.size)

    def estimate(self, counts: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.float64]:
        """How many people ticked each option, unbiased."""
        stay, rise = float(probability(self._stay)), float(probability(self._rise))
        return np.asarray((counts - n * rise) / (stay - rise), dtype=np.float64)

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Of an estimated count among n people, of whom the share `frequency` ticked the option."""
        return n * _variance(self._stay, self._rise, frequency)

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact probability of each report for each list that may be ticked (few options only).

        >>> from cloister.attacks import audit_channel
        >>> 0.9999 < audit_channel(Ticks(3, most=3, epsilon=1).channel()).epsilon <= 1
        True
        """
        if self.size > 8:
            raise InvalidParameter("The channel was not written out", why="it has too many reports", instead="at most 8 options")
        stay, rise = probability(self._stay), probability(self._rise)
        lists = [each for each in product((0, 1), repeat=self.size) if sum(each) <= self.most]
        reports = list(product((0, 1), repeat=self.size))
        return tuple(tuple(_chance(each, said, stay, rise) for said in reports) for each in lists)


def odds_of_ticks(size: int, most: int, stay: int, rise: int) -> Fraction:
    """The most that a report of ticks can shift odds, from the integers themselves.

    >>> odds_of_ticks(4, 4, 3 << 62, 1 << 62), odds_of_ticks(4, 4, 1 << 62, 3 << 62)
    (Fraction(81, 1), Fraction(81, 1))
    """
    a = max(Fraction(stay, rise), Fraction(WORD - stay, WORD - rise))
    b = max(Fraction(WORD - rise, WORD - stay), Fraction(rise, stay))
    spread = min(size, 2 * most)
    # The logarithm of a^u·b^(spread − u) is a straight line in u, so the largest is at an end.
    return max(a**u * b ** (spread - u) for u in {max(0, spread - most), min(most, spread)})


def _variance(stay: int, rise: int, frequency: float) -> float:
    s, r = float(probability(stay)), float(probability(rise))
    return (r * (1 - r) + frequency * (s * (1 - s) - r * (1 - r))) / (s - r) ** 2


def _chance(ticked: tuple[int, ...], said: tuple[int, ...], stay: Fraction, rise: Fraction) -> Fraction:
    """How likely a report is for a list of ticks."""
    result = Fraction(1)
    for true, bit in zip(ticked, said, strict=True):
        chance = stay if true else rise
        result *= chance if bit else 1 - chance
    return result
