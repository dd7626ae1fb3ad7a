"""The two forms of a report of one key with one end of its interval: a row of all keys, or one cell."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt

from cloister.local.frequency.domain import Indices
from cloister.local.frequency.packed import column_counts, fits, set_bits
from cloister.local.protocols.coins import WORD, bit_rows, flips, heads_above, heads_below, lanes_of, odds_below, probability
from cloister.local.protocols.protocol import Reports
from cloister.noise import Random


class Sender(ABC):
    """What `KeyValue` needs of a form. A place of −1 is the empty pair."""

    @abstractmethod
    def __init__(self, size: int, epsilon: Fraction, padding: int) -> None: ...

    @property
    @abstractmethod
    def probabilities(self) -> tuple[Fraction, Fraction, Fraction]:
        """How likely a report has the drawn key, at whichever end; how likely another key; and by how much more likely it has the
        drawn key at the true end than at the other."""

    @property
    @abstractmethod
    def coins(self) -> Mapping[str, str]: ...

    @property
    @abstractmethod
    def width(self) -> int: ...

    @property
    @abstractmethod
    def bits(self) -> int: ...

    @abstractmethod
    def report(self, places: Indices, ends: Indices, random: Random) -> Reports: ...

    @abstractmethod
    def count(self, reports: Reports) -> npt.NDArray[np.int64]:
        """For each key, how many reports have it at the low end and at the high one."""

    @abstractmethod
    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]: ...

    @abstractmethod
    def law(self, place: int, end: int) -> list[Fraction]:
        """The probability of each report, where this pair was drawn."""


class RowSender(Sender):
    """For each key two bits: whether it is there, and at which end; the second is 0 where the first is.

    A report is ⌈d/64⌉ words of the first bits, then as many of the second. Draws: coins of b for the whole row; the coin of a;
    fair coins for all ends; the coin of p. The last three don't hang on what was drawn before.
    """

    def __init__(self, size: int, epsilon: Fraction, padding: int) -> None:
        odds = odds_below(epsilon)
        self._size = size
        self._true = heads_below(odds / (odds + 1))
        p = probability(self._true)
        self._rise = heads_above(2 * p / (odds + 2 * p))

    @property
    def probabilities(self) -> tuple[Fraction, Fraction, Fraction]:
        return Fraction(1, 2), probability(self._rise), probability(self._true) - Fraction(1, 2)

    @property
    def coins(self) -> Mapping[str, str]:
        return {"rise": hex(self._rise), "true": hex(self._true)}

    @property
    def width(self) -> int:
        return 2 * lanes_of(self._size)

    @property
    def bits(self) -> int:
        return 2 * self._size

    def report(self, places: Indices, ends: Indices, random: Random) -> Reports:
        n, there = len(places), places >= 0
        told = bit_rows(self._rise, n, self._size, random)
        kept = flips(WORD // 2, n, random)
        high = bit_rows(WORD // 2, n, self._size, random)
        true = flips(self._true, n, random)
        for rows, coin in ((told, kept), (high, true == (ends == 1))):
            part = rows[there]
            set_bits(part, places[there], coin[there])
            rows[there] = part
        return np.concatenate([told, told & high], axis=1)

    def count(self, reports: Reports) -> npt.NDArray[np.int64]:
        told, high = (column_counts(each, self._size) for each in np.hsplit(reports, 2))
        return np.stack([told - high, high], axis=1)

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        sound = fits(reports, self.width * 64)
        told, high = np.hsplit(np.where(sound[:, None], reports, 0).astype(np.uint64), 2)
        return np.asarray(sound & fits(told, self._size) & ((high & ~told) == 0).all(axis=1), dtype=np.bool_)

    def law(self, place: int, end: int) -> list[Fraction]:
        """Reports in the order of the states nothing, low, high of each key."""
        p, b = probability(self._true), probability(self._rise)
        other = {None: 1 - b, 0: b / 2, 1: b / 2}
        own = {None: Fraction(1, 2), end: p / 2, 1 - end: (1 - p) / 2}
        law = []
        for states in product((None, 0, 1), repeat=self._size):
            chance = Fraction(1)
            for key, state in enumerate(states):
                chance *= own[state] if key == place else other[state]
            law.append(chance)
        return law


class CellSender(Sender):
    """One of 2d + padding cells: 2·place + end, and one for each empty pair; these are all told as 2d.

    Draws: the coin of the true cell, and the number of one of the others.
    """

    def __init__(self, size: int, epsilon: Fraction, padding: int) -> None:
        odds = padding * (odds_below(epsilon) - 1) + 1
        self._size, self._padding = size, padding
        self._cells = 2 * size + padding
        self._heads = heads_below(odds / (odds + self._cells - 1))
        self._true = probability(self._heads)
        self._other = (1 - self._true) / (self._cells - 1)

    @property
    def probabilities(self) -> tuple[Fraction, Fraction, Fraction]:
        return self._true + self._other, 2 * self._other, self._true - self._other

    @property
    def coins(self) -> Mapping[str, str]:
        return {"heads": hex(self._heads)}

    @property
    def width(self) -> int:
        return 0

    @property
    def bits(self) -> int:
        return (2 * self._size).bit_length()

    def report(self, places: Indices, ends: Indices, random: Random) -> Reports:
        cells = np.where(places >= 0, 2 * places + ends, 2 * self._size)
        truth = flips(self._heads, len(cells), random)
        others = random.below(self._cells - 1, len(cells))
        others += others >= cells
        return np.minimum(np.where(truth, cells, others), 2 * self._size)

    def count(self, reports: Reports) -> npt.NDArray[np.int64]:
        cells = np.bincount(reports.astype(np.int64), minlength=2 * self._size + 1)
        return cells[:-1].reshape(self._size, 2).astype(np.int64)

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= 0) & (reports <= 2 * self._size), dtype=np.bool_)

    def law(self, place: int, end: int) -> list[Fraction]:
        law = [self._other] * (2 * self._size) + [self._padding * self._other]
        law[2 * place + end if place >= 0 else -1] += self._true - self._other
        return law
