"""Vectors of whole numbers with noise for what one person changes: a bounded length, in one column or spread over several; and
how fine their steps may be.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.noise import Random, VectorMechanism
from cloister.noise.allowance import FLOAT_DELTA, Share

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FINEST = 2**18
"""Steps in a scale of the noise: finer ones would show only low-order bits."""
_COARSE = 2**8
"""Steps in a scale that are enough, where rounding to them costs at most a part in `_PRICE` of the sensitivity."""
_PRICE = 64
_MOST_BITS, _FEWEST_BITS = 12, 5
_LONGEST_SCALE = 2**19
"""Steps in a scale of the noise that `VectorMechanism` takes, and a margin."""


def noisy_vector(values: Integers, share: Share, random: Random | None, *, length: Fraction) -> Floats:
    """Whole numbers, with noise for neighbours that differ by a vector at most `length` long.

    Guarantee: under ε the vector mechanism (`cloister.noise.VectorMechanism`) on all the numbers; under μ² and ρ Gaussian noise
    of L2 sensitivity `length` (`Share.add`).

    >>> share = Share(what="sums", currency="epsilon", amount=Fraction(1), portion=Fraction(1))
    >>> noisy_vector(np.array([[100, 200]]), share, Random.deterministic(1), length=Fraction(1)).shape
    (1, 2)
    """
    if share.currency != "epsilon":
        return share.add(values, l1=length, l2_squared=length**2, random=random)
    return noisy_columns(values.reshape(-1, 1), share, random, length=length).reshape(values.shape)


def noisy_columns(values: Integers, share: Share, random: Random | None, *, length: Fraction) -> Floats:
    """Whole numbers, with noise for neighbours that differ in one column, by a vector at most `length` long.

    Guarantee: under ε the K-norm mechanism (Hardt & Talwar 2010) of the norm Σ‖v_c‖₂ over the columns, the gauge of what one
    person can change: noise of density ∝ exp(−ε Σ‖v_c‖₂/Δ), which is one draw of the vector mechanism for each column,
    because a density that is a product is independent. Proof: by the triangle inequality in every column the exponents of
    neighbours differ by at most ε. The noise of a column is about dΔ/ε long; the vector mechanism on all k columns at once
    would make it √k times that. Under μ² and ρ Gaussian noise of L2 sensitivity Δ.

    The released numbers are whole multiples of a public step, which is coarse (2⁸ in a scale of the noise) where rounding to
    it is cheap, and never finer than 2¹⁸. The values are rounded to it before the noise is added, which moves a column of d
    numbers by at most √d/2 steps in each of two worlds: that is added to Δ, mostly a 64th of it. The other columns are the
    same in both, and so are they when rounded. The noise is computed in sixty digits: what that may add to δ = 0 is the vector
    mechanism's `float_delta` a column, some 10⁻²⁰.

    >>> share = Share(what="sums", currency="epsilon", amount=Fraction(1), portion=Fraction(1))
    >>> noisy_columns(np.zeros((3, 2), dtype=np.int64), share, Random.deterministic(1), length=Fraction(1)).shape
    (3, 2)
    """
    if share.currency != "epsilon":
        return share.add(values, l1=length, l2_squared=length**2, random=random)
    rows = len(values)
    scale = length / share.epsilon
    step = max(1, math.floor(max(scale / _FINEST, min(scale / _COARSE, length / _PRICE / as_fraction(math.sqrt(rows))))))
    sensitivity = length / step
    if step > 1:
        sensitivity += as_fraction(math.sqrt(rows))
    mechanism = VectorMechanism(epsilon=share.epsilon, sensitivity=sensitivity, dimension=rows)
    counted = np.rint(values / step).astype(np.int64) if step > 1 else values
    released = [np.asarray(mechanism.release(column, random=random), dtype=np.float64) for column in counted.T]
    return np.stack(released, axis=1) * step


def finest_steps(
    share: Share, dimension: int, reach: Callable[[int], Fraction], *, float_delta: float = float(FLOAT_DELTA)
) -> tuple[int, VectorMechanism] | None:
    """The most bits of a step at which vector noise is pure but for `float_delta`, and that noise; `reach` says how far one
    person moves the vector at so many bits. None where there is none, and where other noise is exact. From public facts alone.

    >>> share = Share(what="sums", currency="epsilon", amount=Fraction(1), portion=Fraction(1))
    >>> bits, noise = finest_steps(share, 3, lambda bits: Fraction(2**bits + 1))
    >>> bits, noise.sensitivity
    (12, Fraction(4097, 1))
    """
    if share.currency != "epsilon" or dimension == 1:
        return None
    for bits in range(_MOST_BITS, _FEWEST_BITS - 1, -1):
        if reach(bits) / share.epsilon > _LONGEST_SCALE:
            continue
        mechanism = VectorMechanism(epsilon=share.epsilon, sensitivity=reach(bits), dimension=dimension)
        if mechanism.float_delta <= float_delta:
            return bits, mechanism
    return None


def as_fraction(value: float, *, bits: int = 40) -> Fraction:
    """A float as a fraction, rounded up at 2⁻ᵇ.

    >>> as_fraction(0.1, bits=4)
    Fraction(1, 8)
    """
    return Fraction(math.ceil(Fraction(value) * 2**bits), 2**bits)
