"""Undeclared keys: which of them may be shown.

A key that occurs in one person's rows alone would name that person. So every key's units are counted with noise, and only keys
whose noisy count reaches a threshold are shown (Korolova, Kenthapadi, Mishra & Ntoulas 2009; Wilson et al. 2020, Theorem 3.1
for many keys a person).

Claim. Let one unit have rows under at most k keys and let Z be the noise of the count of units. With the least τ for which k ·
P(1 + Z ≥ τ) ≤ δ, the list of shown keys costs δ beside the cost of the counts themselves. Proof. Neighbours D and D′ = D + one
unit. On keys that both have, keeping a key is post-processing of its noisy count. A key that only D′ has belongs to that unit
alone, so its count is 1; there are at most k such keys, and the chance that any of them is shown is at most k · P(1 + Z ≥ τ) ≤
δ by the union bound. Outside that event D and D′ show the same keys with the densities that the counts' guarantee bounds. ∎
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cloister.errors import InvalidParameter
from cloister.privacy import float_down
from cloister.session.uncertainty import Noise

_LEAST = 1e-290


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Keys are shown when their noisy count of units reaches `least`."""

    least: int
    delta: Fraction

    def sentence(self) -> str:
        """The one fixed sentence that a release with undeclared keys carries."""
        return f"groups whose noisy number of persons is below {self.least:,} are not shown"


def threshold_for(noise: Noise, max_keys: int, delta: Fraction) -> Threshold:
    """The least threshold that costs no more than δ.

    >>> from cloister.noise import DiscreteLaplace
    >>> threshold_for(DiscreteLaplace(scale=1), 1, Fraction(1, 10**6)).least
    15
    """
    allowed = float_down(2 * delta / max_keys)
    if allowed < _LEAST:
        raise InvalidParameter(
            f"A share of δ = {float(delta):.3g} was refused",
            why="no tail of a noise can be told from zero so far out",
            instead='delta="1e-9"',
        )
    low, high = 0, 1
    while noise.tail(high) > allowed:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if noise.tail(middle) <= allowed else (middle, high)
    # P(Z > high) = tail(high)/2 by symmetry, and 1 + Z ≥ least means Z > least − 2
    least = (high if noise.tail(low) > allowed else low) + 2
    return Threshold(least=least, delta=delta)
