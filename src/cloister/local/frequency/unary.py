"""Unary encodings: a bit for each value of the domain, kept or raised by coins; symmetric (SUE) and optimised (OUE)."""

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.domain import Indices
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.frequency.packed import column_counts, fits, set_bits
from cloister.local.protocols.coins import WORD, bit_rows, flips, heads_above, heads_below, lanes_of, odds_below, probability
from cloister.noise import Random
from cloister.privacy.rational import Exact

_LISTED = 10
"""The largest domain whose 2^d reports are written out."""


class Bits(FrequencyOracle):
    """What every protocol does that sends a bit for each value: the true value's bit is 1 with probability p = `stay`/2⁶⁴, every
    other bit with probability q = `rise`/2⁶⁴, all of them independently.

    Lemma: for p > q such reports are ln(p(1 − q)/(q(1 − p)))-locally private, and not less. Proof: under two values v and w the
    laws of a report differ in the bits v and w only. The ratio of its probabilities is the product of that of bit v (p/q if it is
    1, (1 − p)/(1 − q) if 0) and that of bit w (q/p or (1 − q)/(1 − p)); it is largest for v = 1, w = 0.

    A report is a row of ⌈d/64⌉ words: bit j of word i belongs to the value at place 64·i + j.
    """

    protocol: ClassVar[str] = "unary"

    def __init__(self, domain: Any, epsilon: Exact = 1) -> None:
        super().__init__(domain, epsilon)
        self._stay, self._rise = self._heads()

    @abstractmethod
    def _heads(self) -> tuple[int, int]:
        """The heads of the coin of the true value's bit, and of every other bit's."""

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """p and q, exactly: how likely the true value's bit is 1, and another value's.

        >>> [float(each) for each in UnaryEncoding(["a", "b"], epsilon=1).probabilities]
        [0.5, 0.2689414213699951]
        """
        return probability(self._stay), probability(self._rise)

    @property
    def client(self) -> Mapping[str, Any]:
        return {"protocol": self.protocol, "size": len(self.domain), "stay": hex(self._stay), "rise": hex(self._rise)}

    @property
    def report_size(self) -> int:
        return len(self.domain)

    @property
    def _width(self) -> int:
        return lanes_of(len(self.domain))

    def variance(self, n: int, frequency: float = 0.0) -> float:
        p, q = self._floats()
        return n * (q * (1 - q) + frequency * (p * (1 - p) - q * (1 - q))) / (p - q) ** 2

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return fits(reports, len(self.domain))

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        """Report r, of 2^d, has the bits of the number r."""
        size = len(self.domain)
        if size > _LISTED:
            return super().channel()
        return tuple(tuple(self._likelihood(report, truth) for report in range(1 << size)) for truth in range(size))

    def _likelihood(self, report: int, truth: int) -> Fraction:
        p, q = self.probabilities
        result = Fraction(1)
        for place in range(len(self.domain)):
            chance = p if place == truth else q
            result *= chance if report >> place & 1 else 1 - chance
        return result

    def _report(self, places: Indices, random: Random) -> Reports:
        """Coins of q for the whole row, then one coin of p, which replaces the true value's bit. The number of words says nothing
        of the value."""
        rows = bit_rows(self._rise, len(places), len(self.domain), random)
        set_bits(rows, places, flips(self._stay, len(places), random))
        return rows

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        return column_counts(reports, len(self.domain))

    def _read(self, sketch: Sketch) -> npt.NDArray[np.float64]:
        p, q = self._floats()
        return np.asarray((sketch.counts - sketch.n * q) / (p - q), dtype=np.float64)

    @property
    def _part(self) -> float:
        p, q = self._floats()
        return 1 / (p - q)

    def _floats(self) -> tuple[float, float]:
        return self._stay / WORD, self._rise / WORD


class UnaryEncoding(Bits):
    """A bit for each value of the domain, and each of them randomised by itself.

    Guarantee: ε-local privacy. Optimised (OUE: Wang, Blocki, Li & Jha 2017): p = ½, q = 1/(e^ε + 1). Symmetric (SUE, the basic
    form of RAPPOR: Erlingsson, Pihur & Korolova 2014): p = e^(ε/2)/(e^(ε/2) + 1), q = 1 − p. Proof: by the lemma of `Bits` the
    ratio is p(1 − q)/(q(1 − p)). OUE: (1 − q)/q, at most e^ε since q is rounded up to a whole number of 2⁻⁶⁴. SUE: (p/(1 − p))²,
    at most e^ε since p is rounded down and q is what is left.

    Error: an estimated count has variance 4n·e^ε/(e^ε − 1)² (OUE) or n·e^(ε/2)/(e^(ε/2) − 1)² (SUE) where nobody holds the value,
    whatever the size of the domain. For those who hold it, OUE adds 1 each.

    >>> import numpy as np
    >>> optimised, symmetric = UnaryEncoding(range(100), epsilon=1), UnaryEncoding(range(100), epsilon=1, optimized=False)
    >>> round(optimised.variance(1), 3), round(symmetric.variance(1), 3)
    (3.683, 3.918)
    >>> reports = optimised.randomize(np.arange(100).repeat(10))
    >>> reports.shape, reports.dtype
    ((1000, 2), dtype('uint64'))
    """

    optimized: bool

    def __init__(self, domain: Any, epsilon: Exact = 1, optimized: bool = True) -> None:
        if not isinstance(optimized, bool):
            raise InvalidParameter(
                "optimized= is invalid", why="it is True (OUE) or False (SUE)", instead="UnaryEncoding(domain, epsilon=1)"
            )
        self.optimized = optimized
        super().__init__(domain, epsilon)

    def _heads(self) -> tuple[int, int]:
        if self.optimized:
            return WORD // 2, heads_above(1 / (odds_below(self.epsilon) + 1))
        odds = odds_below(self.epsilon / 2)
        stay = heads_below(odds / (odds + 1))
        return stay, WORD - stay
