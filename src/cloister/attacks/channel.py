"""Exact privacy of a finite channel: every input and every output written out, nothing sampled.

Where a mechanism has few inputs and outputs (a randomised response, an exponential mechanism on a list), or where a sufficient
statistic has (the number of truthful answers in a composition), its privacy is arithmetic: ε is the ln of the largest ratio
between two entries of a column, and the least δ at ε is the hockey-stick divergence Σ max(0, p − e^ε·q), taken over the worst
pair of rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import mpmath
import numpy as np

from cloister.attacks.result import FAILURES, rho_of
from cloister.errors import InvalidParameter
from cloister.privacy import ZCDP, Exact, Guarantee, PureDP, exact_nonnegative, exact_probability, float_up

_DIGITS = 60
_SUM_SLACK = Fraction(1, 10**9)
_FLOAT_SLACK = Fraction(1, 10**12)


@dataclass(frozen=True, kw_only=True)
class ChannelAudit:
    """The exact privacy of a finite channel, and where it is worst.

    `rows` are the outputs' probabilities for each input; `pairs` the inputs that are neighbours.
    """

    rows: tuple[tuple[Fraction, ...], ...]
    pairs: tuple[tuple[int, int], ...]
    slack: Fraction = Fraction(0)
    """By how much, relatively, the entries may be off: 0 unless some were floats."""

    @property
    def ratio(self) -> Fraction | None:
        """The largest ratio of two entries of a column: e^ε. None where it is infinite.

        >>> audit_channel([["3/4", "1/4"], ["1/4", "3/4"]]).ratio
        Fraction(3, 1)
        """
        worst: Fraction = Fraction(1)
        for here, there in self._both_ways():
            for p, q in zip(here, there, strict=True):
                if q == 0 and p > 0:
                    return None
                if q > 0:
                    worst = max(worst, p / q)
        return worst

    @property
    def epsilon(self) -> float:
        """The exact ε to the nearest float; infinity where an output is possible for one input only.

        >>> audit_channel([["3/4", "1/4"], ["1/4", "3/4"]]).epsilon, audit_channel([[1, 0], ["1/2", "1/2"]]).epsilon
        (1.0986122886681098, inf)
        """
        ratio = self.ratio
        if ratio is None:
            return float("inf")
        with mpmath.workdps(_DIGITS):
            return float(mpmath.log(ratio.numerator) - mpmath.log(ratio.denominator))

    def delta_at(self, epsilon: Exact) -> float:
        """The least δ at this ε.

        >>> audit_channel([["3/4", "1/4"], ["1/4", "3/4"]]).delta_at(0)
        0.5
        """
        allowed = exact_nonnegative(epsilon, "epsilon")
        with mpmath.workdps(_DIGITS):
            factor = mpmath.exp(mpmath.mpf(allowed.numerator) / allowed.denominator)
            return float(max(self._hockey_stick(here, there, factor) for here, there in self._both_ways()))

    def epsilon_at(self, delta: Exact) -> float:
        """The least ε at this δ, to about 12 digits; infinity where there is none.

        >>> round(audit_channel([["3/4", "1/4"], ["1/4", "3/4"]]).epsilon_at("0.25"), 6)
        0.693147
        """
        allowed = exact_probability(delta)
        if allowed == 0:
            return self.epsilon
        with mpmath.workdps(_DIGITS):
            ways = list(self._both_ways())
            target = mpmath.mpf(allowed.numerator) / allowed.denominator
            if max(sum((p for p, q in zip(*way, strict=True) if q == 0), Fraction(0)) for way in ways) > allowed:
                return float("inf")
            low, high = mpmath.mpf(0), mpmath.mpf(1)
            while max(self._hockey_stick(*way, mpmath.exp(high)) for way in ways) > target:
                high *= 2
            for _ in range(60):
                middle = (low + high) / 2
                if max(self._hockey_stick(*way, mpmath.exp(middle)) for way in ways) > target:
                    low = middle
                else:
                    high = middle
            return float(high)

    @property
    def rho(self) -> float:
        """A lower bound of ρ, by the best two-valued post-processing: one set of outputs against the rest."""
        best = 0.0
        for here, there in self._both_ways():
            order = sorted(range(len(here)), key=lambda i: here[i] / there[i] if there[i] else Fraction(10**30), reverse=True)
            p, q = (np.array([float(each) for each in accumulate(way[i] for i in order)][:-1]) for way in (here, there))
            if len(p):
                best = max(best, float(rho_of(p, q).max()))
        return best

    def contradicts(self, guarantee: Guarantee) -> bool:
        """Whether the guarantee is false of this channel: a matter of arithmetic, with no confidence attached.

        >>> found = audit_channel([["3/4", "1/4"], ["1/4", "3/4"]])
        >>> found.contradicts(PureDP("1.09")), found.contradicts(PureDP("1.1"))
        (True, False)
        """
        slack = float(self.slack)
        if isinstance(guarantee, ZCDP) and guarantee.delta == 0:
            return self.rho > float_up(guarantee.rho) * (1 + 1e-9) + 2 * slack
        if isinstance(guarantee, ZCDP):
            stated = (guarantee.to_approx(min(guarantee.delta + more, Fraction(1, 2))) for more in FAILURES)
            return any(self.contradicts(each) for each in stated)
        if isinstance(guarantee, PureDP):
            return self.epsilon > float(guarantee.epsilon) + 2 * slack + 1e-15
        return self.delta_at(guarantee.epsilon) > float(guarantee.delta) * (1 + 1e-12) + 2 * slack

    def _both_ways(self) -> Iterable[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
        for i, j in self.pairs:
            yield self.rows[i], self.rows[j]
            yield self.rows[j], self.rows[i]

    @staticmethod
    def _hockey_stick(here: tuple[Fraction, ...], there: tuple[Fraction, ...], factor: mpmath.mpf) -> mpmath.mpf:
        total = mpmath.mpf(0)
        for p, q in zip(here, there, strict=True):
            excess = _mpf(p) - factor * _mpf(q)
            if excess > 0:
                total += excess
        return total

    def __repr__(self) -> str:
        return f"ChannelAudit(ε = {self.epsilon:.6g}, {len(self.rows)} inputs, {len(self.rows[0])} outputs)"


def audit_channel(matrix: Sequence[Sequence[Exact]], *, pairs: Sequence[tuple[int, int]] | None = None) -> ChannelAudit:
    """The exact privacy of a finite channel: `matrix[i][j]` is the probability of output j at input i.

    Each two inputs are neighbours unless `pairs` says which are (local privacy: any value may be another). Entries are exact
    rationals, or floats, which are then taken to be right to 12 digits.

    >>> audit_channel([["1/2", "1/2"], ["1/4", "3/4"]])
    ChannelAudit(ε = 0.693147, 2 inputs, 2 outputs)
    """
    rows = tuple(tuple(exact_nonnegative(entry, "entry") for entry in row) for row in matrix)
    if len(rows) < 2 or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise InvalidParameter(
            "The channel is invalid",
            why="it needs two or more rows of one length",
            instead='audit_channel([["3/4", "1/4"], ["1/4", "3/4"]])',
        )
    for place, row in enumerate(rows):
        if abs(sum(row, Fraction(-1))) > _SUM_SLACK:
            raise InvalidParameter(
                f"Row {place} of the channel is invalid",
                why="its probabilities do not sum to 1",
                instead="rows are inputs, columns outputs: transpose the matrix if they are the other way round",
            )
    inexact = any(isinstance(entry, float | np.floating) for row in matrix for entry in row)
    every = [(i, j) for i in range(len(rows)) for j in range(i + 1, len(rows))]
    chosen = tuple((int(i), int(j)) for i, j in (every if pairs is None else pairs))
    if not chosen or any(not (0 <= i < len(rows) and 0 <= j < len(rows)) for i, j in chosen):
        raise InvalidParameter("pairs= is invalid", why="each pair names two rows of the channel", instead="pairs=[(0, 1)]")
    return ChannelAudit(rows=rows, pairs=chosen, slack=_FLOAT_SLACK if inexact else Fraction(0))


def _mpf(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator
