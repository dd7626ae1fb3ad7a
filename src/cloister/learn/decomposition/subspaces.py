"""Directions in which rows vary, chosen by the exponential mechanism: one component after another, each by an exact sampler."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.clustering.starts import directions
from cloister.noise import Random, Share, default_random

Floats = npt.NDArray[np.float64]

_BATCH = 64


def epsilon_of_choice(share: Share) -> Fraction:
    """The ε of a choice by the exponential mechanism whose scores only grow with a row: under ρ, √(8ρ), rounded down.

    Its privacy loss lies in an interval of length ε (bounded range), which costs ρ = ε²/8 (Cesar & Rogers 2021, Lemma 3.4), a
    quarter of what pure ε costs.
    """
    return 2 * share.epsilon if share.currency == "rho" else share.epsilon


def chosen_components(moments: Floats, *, reach_squared: float, shares: Sequence[Share], random: Random | None) -> Floats:
    """As many orthonormal directions as shares, one a row: each drawn from the complement of those before it, with density
    ∝ exp(ε·uᵀMu/B²).

    Guarantee: all shares together, for one row z more or less with ‖z‖² ≤ B² = `reach_squared`, M the sum of zzᵀ (whole steps).
    Proof: uᵀMu grows by (uᵀz)² in [0, B²], for every u. So the density's numerator grows by a factor of [1, e^ε], and so does
    the normalising integral; their ratio stays in [e^−ε, e^ε]: no factor 2 is lost (McSherry & Talwar 2007; Chaudhuri, Sarwate &
    Sinha 2013 for components). The loss is in an interval of length ε, see `epsilon_of_choice`. A component acts on what the
    earlier ones, which are released, leave: adaptive composition.

    Against sampling a whole subspace at once from the matrix Bingham law (by Gibbs sampling, which is exact only after infinitely
    many steps, and whose distance from the law then is a δ that nobody can state), one after another splits ε among components
    and gives each an exact sampler. What is lost is that an early component does not look ahead at the later ones.

    Continuous, so what bounds the harm: M is whole; the draws are floating point, and the density at which they are taken is off
    by some 2⁻⁴⁰ of itself; a direction is rounded to 2⁻²⁶ before anything else sees it. How many draws are thrown away depends on
    M, and could be seen by who measures time.
    """
    source = random or default_random()
    features = moments.shape[0]
    basis, found = np.eye(features), np.empty((len(shares), features))
    for place, share in enumerate(shares):
        inner = basis.T @ moments @ basis
        direction = bingham(inner * (float(epsilon_of_choice(share)) / reach_squared), source) if len(inner) > 1 else np.ones(1)
        rounded = np.rint(basis @ direction * 2.0**26)
        found[place] = rounded / np.sqrt((rounded**2).sum())
        whole, _ = np.linalg.qr(np.column_stack([found[: place + 1].T, np.eye(features)]))
        found[place] = whole[:, place] * np.sign(whole[:, place] @ found[place])
        basis = whole[:, place + 1 : features]
    return found


def bingham(matrix: Floats, random: Random) -> Floats:
    """A direction u with density ∝ exp(uᵀAu) on the sphere, by rejection from an angular central Gaussian law: exact.

    Kent, Ganeiban & Mardia (2018): with Λ = λ_max·I − A, Ω = I + 2Λ/b and b the root of Σ 1/(b + 2λᵢ) = 1, exp(−uᵀΛu) is at most
    M·(uᵀΩu)^(−q/2), M = e^(−(q−b)/2)(q/b)^(q/2). A draw from the law ∝ (uᵀΩu)^(−q/2) is Ω^(−1/2)g of length 1 for any g with a
    uniform direction.

    >>> direction = bingham(np.diag([0.0, 0.0, 5000.0]), Random.deterministic(1))
    >>> abs(direction[2]) > 0.99
    np.True_
    """
    values, vectors = np.linalg.eigh(matrix)
    gaps = values[-1] - values
    size = len(gaps)
    low, high = 1.0, float(size)  # the sum is at least 1 at 1, where a gap of 0 alone gives 1, and at most 1 at q
    for _ in range(200):
        b = (low + high) / 2
        low, high = (b, high) if (1 / (b + 2 * gaps)).sum() > 1 else (low, b)
    b = (low + high) / 2
    widths = 1 + 2 * gaps / b
    ceiling = -(size - b) / 2 + size / 2 * np.log(size / b)
    while True:
        drawn = directions(_BATCH, size, random) / np.sqrt(widths)
        drawn /= np.sqrt((drawn**2).sum(axis=1))[:, None]
        squares = drawn**2
        log_ratio = -(squares @ gaps) + size / 2 * np.log(squares @ widths) - ceiling
        uniform = (random.words(_BATCH) + 0.5) * 2.0**-64
        taken = np.flatnonzero(np.log(uniform) < log_ratio)
        if taken.size:
            return np.asarray(vectors @ drawn[taken[0]])
