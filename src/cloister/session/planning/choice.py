"""Laplace or Gaussian noise: what a spend buys for the blocks of a plan, chosen before any row is read.

Under `PureDP` the noise is Laplace, under `ZCDP` Gaussian. Under `ApproxDP(ε, δ)` either keeps the promise: Laplace noise for
ε, which needs no δ, or Gaussian noise for ρ, the largest for which ρ-zCDP implies (ε, δ) (`privacy/conversion.py`: Canonne,
Kamath & Steinke 2020, Corollary 13; ρ adds up over the blocks, so the conversion is made once, for all of them together). The
one with the smaller total variance is taken, each block counted in units of the widths of its raws:

    Laplace    Σ 2·l1²/εᵢ²      with εᵢ ∝ l1^(2/3)
    Gaussian   Σ l2²/(2ρᵢ)      with ρᵢ ∝ l2

One number is sharper with Laplace noise; where a unit moves many (counts over k groups have l1 = k and l2 = √k) Gaussian
noise wins. Where the analyst fixes what part of the spend each block takes, its variance counts by the square of that part: the
noise of what takes little matters little. What is charged is (ε, δ) in either case. With undeclared keys a threshold needs a δ
too: then half of the δ is the threshold's and half the noise's. The guarantees of the two halves add, by sequential composition.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from cloister.privacy import zcdp_within
from cloister.session.planning.blocks import Block
from cloister.session.questions.spend import Measure, Spend, shares
from cloister.session.releases.uncertainty import Planned

_LEAST_DELTA = Fraction(1, 10**60)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Each block's part of the first parameter (ρ where `gaussian`), and the δ that the noise takes."""

    gaussian: bool
    amounts: tuple[Fraction, ...]
    noise_delta: Fraction
    key_delta: Fraction

    def noises(self, block: Block, amount: Fraction) -> tuple[Planned, ...]:
        """The noise of each raw of a block."""
        return block.gaussian(amount) if self.gaussian else block.laplace(amount)


def choice_of(spend: Spend, blocks: Sequence[Block], *, open_keys: bool, weights: Sequence[Fraction] | None = None) -> Choice:
    """The noise for blocks that share one spend; `open_keys`: some of them need a δ for a threshold; `weights`: what part of the
    spend each block takes, where that is fixed in advance.

    >>> from cloister.session.planning.blocks import units_block
    >>> one, many = [units_block(1)], [units_block(400)]
    >>> spend = Spend("approx", Fraction(1), Fraction(1, 10**6))
    >>> choice_of(spend, one, open_keys=False).gaussian, choice_of(spend, many, open_keys=False).gaussian
    (False, True)
    """
    if spend.measure != "approx":
        gaussian = spend.measure == "zcdp"
        amounts = _split(spend.amount, blocks, spend.measure, weights)
        return Choice(gaussian=gaussian, amounts=amounts, noise_delta=Fraction(0), key_delta=spend.delta)
    laplace = _split(spend.amount, blocks, "approx", weights)
    plain = Choice(gaussian=False, amounts=laplace, noise_delta=Fraction(0), key_delta=spend.delta)
    delta = spend.delta / 2 if open_keys else spend.delta
    if delta < _LEAST_DELTA or (len(blocks) == 1 and blocks[0].l1 ** 2 == blocks[0].l2_squared):
        return plain  # where L1 and L2 agree, one number is always sharper with Laplace noise at such a δ
    rho = _worth(spend.amount, delta)
    if rho <= 0:
        return plain
    gaussian_amounts = _split(rho, blocks, "zcdp", weights)
    counts = [weight**2 for weight in weights or [Fraction(1)] * len(blocks)]
    parts = list(zip(counts, blocks, laplace, gaussian_amounts, strict=True))
    of_laplace = sum(count * 2 * block.split_l1**2 / amount**2 for count, block, amount, _ in parts)
    of_gaussian = sum(count * block.split_l2_squared / (2 * amount) for count, block, _, amount in parts)
    if of_gaussian >= of_laplace:
        return plain
    return Choice(gaussian=True, amounts=gaussian_amounts, noise_delta=delta, key_delta=spend.delta - delta)


def _split(
    amount: Fraction, blocks: Sequence[Block], measure: Measure, weights: Sequence[Fraction] | None
) -> tuple[Fraction, ...]:
    if weights is not None:
        return tuple(amount * weight for weight in weights)
    norms = [block.split_l2_squared**0.5 if measure == "zcdp" else block.split_l1 for block in blocks]
    return tuple(amount * share for share in shares(norms, measure))


@lru_cache(maxsize=1024)
def _worth(epsilon: Fraction, delta: Fraction) -> Fraction:
    return zcdp_within(epsilon=epsilon, delta=delta).rho
