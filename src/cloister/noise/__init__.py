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

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.noise.allowance import Allowance as Allowance
    from cloister.noise.allowance import Share as Share
    from cloister.noise.exponential import DiscreteExponential as DiscreteExponential
    from cloister.noise.gaussian import DiscreteGaussian as DiscreteGaussian
    from cloister.noise.gaussian import Gaussian as Gaussian
    from cloister.noise.geometric import Geometric as Geometric
    from cloister.noise.laplace import DiscreteLaplace as DiscreteLaplace
    from cloister.noise.laplace import Laplace as Laplace
    from cloister.noise.matrices import SymmetricGaussian as SymmetricGaussian
    from cloister.noise.matrices import WishartMechanism as WishartMechanism
    from cloister.noise.matrix import MatrixMechanism as MatrixMechanism
    from cloister.noise.mechanism import AdditiveNoise as AdditiveNoise
    from cloister.noise.mechanism import Mechanism as Mechanism
    from cloister.noise.multiplicative_weights import MultiplicativeWeights as MultiplicativeWeights
    from cloister.noise.propose import ProposeTestRelease as ProposeTestRelease
    from cloister.noise.random import Random as Random
    from cloister.noise.random import default_random as default_random
    from cloister.noise.randomized_response import BinaryResponse as BinaryResponse
    from cloister.noise.randomized_response import KaryResponse as KaryResponse
    from cloister.noise.selection import Exponential as Exponential
    from cloister.noise.selection import PermuteAndFlip as PermuteAndFlip
    from cloister.noise.selection import ReportNoisyMax as ReportNoisyMax
    from cloister.noise.shares import SummedNoise as SummedNoise
    from cloister.noise.smooth import SmoothMedian as SmoothMedian
    from cloister.noise.sparse_vector import AboveThreshold as AboveThreshold
    from cloister.noise.sparse_vector import SparseVector as SparseVector
    from cloister.noise.staircase import Staircase as Staircase
    from cloister.noise.vector import VectorMechanism as VectorMechanism

__all__, __getattr__, __dir__ = Lazily(__name__).public
