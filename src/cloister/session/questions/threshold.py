"""Undeclared keys: which of them may be shown.

A key that occurs in one person's rows alone would name that person. So every key's units are counted with noise, and only keys
whose noisy count reaches a threshold are shown (Korolova, Kenthapadi, Mishra & Ntoulas 2009; for many keys a person the
τ-thresholding of Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson 2020, whose τ is for Laplace noise and sets each
key's chance to 1 − (1 − δ)^(1/k); ours is for any noise and by the union bound, a little higher).

Claim. Let one unit have rows under at most k keys and let Z be the noise of the count of units. With the least τ for which k ·
P(1 + Z ≥ τ) ≤ δ, the list of shown keys costs δ beside the cost of the counts: (ε, δ) where counts are ε-DP, (ε, δ₁ + δ) where
they are (ε, δ₁)-DP, δ-approximate ρ where they are ρ-zCDP.

Proof. Neighbours D and D′ = D + one unit. On keys that both have, keeping a key is post-processing of its noisy count. A key that
only D′ has belongs to that unit alone, so its count is 1; there are j ≤ k such keys, with noise of their own. Let N be that none
of them is shown, and p = 1 − P(N) ≤ k · P(1 + Z ≥ τ) ≤ δ (union bound). Given N, D′ releases what its counts of the common keys
make, a law Q; and P(N) does not depend on these. D releases the same of its own counts, a law P, so P and Q are as close as the
counts' guarantee says. Write D(S), D′(S) for the probabilities of a set S of releases.

- From D′ to D: D′(S) ≤ P(N)·Q(S) + p ≤ Q(S) + p ≤ e^ε·D(S) + δ₁ + δ.
- From D to D′, where the factor P(N) = 1 − p has to be paid: D′(S) ≥ (1 − p)·Q(S), so with y = e^ε·Q(S) both D(S) ≤ min(1, y +
  δ₁) and e^ε·D′(S) ≥ (1 − p)·y. The difference D(S) − e^ε·D′(S) is at most min(1, y + δ₁) − (1 − p)·y, which is
  largest at y = 1 − δ₁ and there δ₁ + p·(1 − δ₁) ≤ δ₁ + δ. For Laplace noise not even that is needed: the common keys spend
  (k − j)ε/k at most, and the unspent jε/k of the keys that are not shown pays the factor, (1 − P(1 + Z ≥ τ))^(−j) ≤ e^(jε/k), as
  soon as P(1 + Z ≥ τ) ≤ 1 − e^(−ε/k); in that direction nothing is left for δ.
- Rényi: given N, D′ releases Q, and P(N) ≥ 1 − δ; all Rényi divergences between P and Q, both ways, are bounded by the counts'
  ρα. That is Definition 8.1 of Bun & Steinke (2016), with N as D′'s event and all outcomes as D's. ∎

Gaussian noise has no unspent ε that would pay the factor for certain, which is why the second point is argued with δ. Converted
to (ε, δ), both terms are there: δ₁ for the tail of the counts' loss, δ for the keys (`epsilon_of_zcdp` of an approximate ρ).
"""

from dataclasses import dataclass
from fractions import Fraction

from cloister.errors import InvalidParameter
from cloister.privacy import float_down
from cloister.session.releases.uncertainty import Planned

_LEAST = 1e-290


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Keys are shown when their noisy count of units reaches `least`."""

    least: int
    delta: Fraction

    def sentence(self) -> str:
        """The one fixed sentence that a release with undeclared keys carries."""
        return f"groups whose noisy number of persons is below {self.least:,} are not shown"


def threshold_for(noise: Planned, max_keys: int, delta: Fraction) -> Threshold:
    """The least threshold that costs no more than δ.

    >>> from cloister.noise import DiscreteLaplace
    >>> threshold_for(DiscreteLaplace(scale=1), 1, Fraction(1, 10**6)).least
    15
    """
    allowed = float_down(2 * delta / max_keys)
    if allowed < _LEAST:
        raise InvalidParameter(
            f"A share of δ = {float(delta):.3g} is invalid",
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
