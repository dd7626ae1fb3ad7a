"""How a promise is kept: secure bits, exact samplers, and the mechanisms that are made of them.

- `Random`: the one source of random bits.
- Noise for integers: `DiscreteLaplace`, `DiscreteGaussian`, `Geometric`, `Staircase`. For real numbers on a declared grid:
  `Laplace`, `Gaussian`, and `Staircase` with a step. `inversion` draws them fast and exactly; its proof is inversion.proof.md.
- Choices: `Exponential`, `PermuteAndFlip`, `ReportNoisyMax`, randomised response.
- `Allowance`: one release split into portions, and what each may pay for.
- One noise made by several parties, and the law of what they made: `shares`. The laws by name: `laws`.
- Vectors and matrices, matrix mechanism, sparse vector, smooth sensitivity, propose-test-release.

Each mechanism is a small frozen object: `guarantee` is what it promises, `release` the only thing it does to a private value.

>>> from cloister.noise import DiscreteLaplace
>>> DiscreteLaplace(scale="10", sensitivity=1).guarantee
PureDP(epsilon='0.1')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloister.noise.allowance import Allowance, Share
    from cloister.noise.exponential import DiscreteExponential
    from cloister.noise.gaussian import DiscreteGaussian, Gaussian
    from cloister.noise.geometric import Geometric
    from cloister.noise.laplace import DiscreteLaplace, Laplace
    from cloister.noise.matrices import SymmetricGaussian, WishartMechanism
    from cloister.noise.matrix import MatrixMechanism
    from cloister.noise.mechanism import AdditiveNoise, Mechanism
    from cloister.noise.multiplicative_weights import MultiplicativeWeights
    from cloister.noise.propose import ProposeTestRelease
    from cloister.noise.random import Random, default_random
    from cloister.noise.randomized_response import BinaryResponse, KaryResponse
    from cloister.noise.selection import Exponential, PermuteAndFlip, ReportNoisyMax
    from cloister.noise.shares import SummedNoise
    from cloister.noise.smooth import SmoothMedian
    from cloister.noise.sparse_vector import AboveThreshold, SparseVector
    from cloister.noise.staircase import Staircase
    from cloister.noise.vector import VectorMechanism

_HOME = {
    "AboveThreshold": "sparse_vector",
    "AdditiveNoise": "mechanism",
    "Allowance": "allowance",
    "BinaryResponse": "randomized_response",
    "DiscreteExponential": "exponential",
    "DiscreteGaussian": "gaussian",
    "DiscreteLaplace": "laplace",
    "Exponential": "selection",
    "Gaussian": "gaussian",
    "Geometric": "geometric",
    "KaryResponse": "randomized_response",
    "Laplace": "laplace",
    "MatrixMechanism": "matrix",
    "Mechanism": "mechanism",
    "MultiplicativeWeights": "multiplicative_weights",
    "PermuteAndFlip": "selection",
    "ProposeTestRelease": "propose",
    "Random": "random",
    "ReportNoisyMax": "selection",
    "Share": "allowance",
    "SmoothMedian": "smooth",
    "SparseVector": "sparse_vector",
    "Staircase": "staircase",
    "SummedNoise": "shares",
    "SymmetricGaussian": "matrices",
    "VectorMechanism": "vector",
    "WishartMechanism": "matrices",
    "default_random": "random",
}

__all__ = [
    "AboveThreshold",
    "AdditiveNoise",
    "Allowance",
    "BinaryResponse",
    "DiscreteExponential",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "Geometric",
    "KaryResponse",
    "Laplace",
    "MatrixMechanism",
    "Mechanism",
    "MultiplicativeWeights",
    "PermuteAndFlip",
    "ProposeTestRelease",
    "Random",
    "ReportNoisyMax",
    "Share",
    "SmoothMedian",
    "SparseVector",
    "Staircase",
    "SummedNoise",
    "SymmetricGaussian",
    "VectorMechanism",
    "WishartMechanism",
    "default_random",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
