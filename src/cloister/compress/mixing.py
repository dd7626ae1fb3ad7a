"""Random directions, which keep distances; multiplied noise, which keeps moments; and coordinates that are told in levels.

The first two look like hiding, and hide little. A linear map with a public or guessed matrix is undone by the attackers of
`trade_off`; with a secret one, by whoever knows as many rows as it has dimensions, or by independent components (Liu, Giannella
and Kargupta, PKDD 2006).
"""

import math
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cloister.compress.drawing import normal, random_of
from cloister.compress.projections import PCA, Projection
from cloister.compress.scatter import Floats, Scatter, rows_of
from cloister.errors import InvalidParameter
from cloister.noise import Random

_ROUNDS = 30


class RandomProjection(Projection):
    """Directions that look at no row: Gaussian, sparse signs (Achlioptas), or signed and sampled Hadamard rows.

    Scaled so that lengths are kept on average. `distortion(n)` says within which share all distances between n rows stay with
    probability 99 % (Johnson and Lindenstrauss, by the tail of χ² as Dasgupta and Gupta have it, and by Achlioptas for signs; for
    "hadamard" a rule of thumb).

    >>> model = RandomProjection(64, random_state=1).fit(np.zeros((2, 1024)))
    >>> model.components_.shape, round(model.distortion(10), 2)
    ((64, 1024), 0.95)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kind: Literal["gaussian", "sparse", "hadamard"] = "gaussian",
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kind = kind
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: Any = None, private: Any = None, *, utility: Any = None) -> Self:
        """Look at the number of columns, and at nothing else."""
        width = rows_of(self, X).shape[1]
        random = random_of(self.random_state)
        count = self._count(Scatter(mean=np.zeros(width), total=np.zeros((0, 0))), 1.0)
        self.mean_, self.promise_ = np.zeros(width), "not differentially private"
        if self.kind == "gaussian":
            self.components_ = normal(count * width, random).reshape(count, width) / math.sqrt(count)
        elif self.kind == "sparse":
            drawn = random.below(6, count * width).reshape(count, width).astype(np.int64)
            self.components_ = (np.equal(drawn, 0) * 1.0 - np.equal(drawn, 1)) * math.sqrt(3 / count)
        elif self.kind == "hadamard":
            self.components_ = _hadamard(count, width, random)
        else:
            raise InvalidParameter(
                f"kind={self.kind!r} is invalid", why="known are gaussian, sparse, hadamard", instead='kind="gaussian"'
            )
        return self

    def distortion(self, n: int) -> float:
        """By which share at most the squared distances of n rows change, all together, with probability 99 %; from 1 on
        near ones may meet, and the Gaussian law bounds the others, too."""
        pairs, count, low, high = max(n * (n - 1) / 2, 1.0), len(self.components_), 0.0, 100.0
        for _ in range(60):
            middle = (low + high) / 2
            lost = middle - math.log1p(middle) if self.kind == "gaussian" or middle >= 1 else middle**2 / 2 - middle**3 / 3
            low, high = (middle, high) if 2 * pairs * math.exp(-count / 2 * lost) > 0.01 else (low, middle)
        return high


class MultiplicativeNoise(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Each value times a factor e^(s·g − s²/2), g normal: unbiased, and as far off in share for small values as for large ones.

    `moments(Z)` gives the means and variances of the columns back from the noised ones: E x = E z, E x² = E z²·e^(−s²). Zeros
    stay zeros, signs stay, and so does the order of magnitude: an attacker who knows one value to 10 % knows who it is.

    >>> X = np.full((20_000, 1), 3.0)
    >>> noise = MultiplicativeNoise(0.5, random_state=1).fit(X)
    >>> mean, variance = noise.moments(noise.transform(X))
    >>> mean.round(1).tolist(), variance.round(0).tolist()
    ([3.0], [0.0])
    """

    def __init__(self, scale: float = 0.5, *, random_state: int | None = None) -> None:
        self.scale = scale
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def fit(self, X: npt.ArrayLike, y: Any = None, private: Any = None, *, utility: Any = None) -> Self:
        """Look at the number of columns, and at nothing else."""
        rows_of(self, X)
        if isinstance(self.scale, bool) or not 0 < float(self.scale) <= 5:
            raise InvalidParameter(f"scale={self.scale!r} is invalid", why="it is a number up to 5", instead="scale=0.5")
        self.promise_ = "not differentially private"
        return self

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The rows with their noise: drawn again each time, or by `random_state` the same factors, which two tables show."""
        check_is_fitted(self)
        rows = rows_of(self, X, reset=False)
        drawn = normal(rows.size, random_of(self.random_state)).reshape(rows.shape)
        return np.asarray(rows * np.exp(self.scale * drawn - self.scale**2 / 2))

    def moments(self, Z: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Means and variances of the columns before the noise."""
        noised = np.asarray(Z, dtype=np.float64)
        mean = noised.mean(axis=0)
        return mean, np.maximum((noised**2).mean(axis=0) * math.exp(-(self.scale**2)) - mean**2, 0.0)


class Rounded(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A projection of which each coordinate is told by its level alone (the quantiser of Lloyd and Max).

    A direction that keeps the use has more in it than the use: who somebody is shows in the last digits. Two levels of one
    direction are one bit, whatever an attacker knows.

    >>> from cloister.compress import PCA
    >>> Rounded(PCA(1), levels=2).fit_transform([[0.0], [0.1], [7.0], [9.5]]).round(2).tolist()
    [[-4.1], [-4.1], [4.1], [4.1]]
    """

    def __init__(self, projection: Any = None, *, levels: int = 2, n_components: int | None = None) -> None:
        self.projection = projection
        self.levels = levels
        self.n_components = n_components

    def fit(self, X: npt.ArrayLike, y: Any = None, private: Any = None, *, utility: Any = None) -> Self:
        """Fit the projection (None: `PCA`), and cut its coordinates."""
        if isinstance(self.levels, bool) or not isinstance(self.levels, int | np.integer) or not 2 <= self.levels <= 1000:
            raise InvalidParameter(f"levels={self.levels!r} is invalid", why="it is from 2 to 1,000", instead="levels=2")
        rows = rows_of(self, X, ensure_min_samples=2)
        projection = PCA() if self.projection is None else self.projection
        made = clone(projection) if self.n_components is None else clone(projection).set_params(n_components=self.n_components)
        self.projection_ = made.fit(rows, y if utility is None else utility, private)
        found = self.projection_.transform(rows)
        self.values_ = np.quantile(found, (np.arange(self.levels) + 0.5) / self.levels, axis=0)
        for _ in range(_ROUNDS):
            self.cuts_ = (self.values_[1:] + self.values_[:-1]) / 2
            self.values_ = _means(self._places(found), found, self.values_)
        self.promise_ = self.projection_.promise_
        return self

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The middle of the level that each coordinate is in."""
        check_is_fitted(self)
        rows = rows_of(self, X, reset=False)
        return np.asarray(np.take_along_axis(self.values_, self._places(self.projection_.transform(rows)), axis=0))

    @available_if(lambda self: self.projection is None or hasattr(self.projection, "inverse_transform"))  # type: ignore[untyped-decorator]
    def inverse_transform(self, Z: npt.ArrayLike) -> Floats:
        """As the projection has it."""
        check_is_fitted(self)
        return np.asarray(self.projection_.inverse_transform(Z))

    @property
    def _n_features_out(self) -> int:
        return int(self.cuts_.shape[1])

    def _places(self, found: Floats) -> npt.NDArray[np.int64]:
        return np.asarray((found[:, None, :] > self.cuts_[None]).sum(axis=1), dtype=np.int64)


def _means(places: npt.NDArray[np.int64], values: Floats, before: Floats) -> Floats:
    """The mean of the values in each level; where it is empty, what it was."""
    inside = places[:, None, :] == np.arange(len(before))[None, :, None]
    sizes = inside.sum(axis=0)
    return np.where(sizes > 0, (inside * values[:, None, :]).sum(axis=0) / np.maximum(sizes, 1), before)


def _hadamard(count: int, width: int, random: Random) -> Floats:
    from scipy.linalg import hadamard

    size = 1 << max(width - 1, count - 1, 0).bit_length()
    rows = np.asarray(hadamard(size)[np.sort(random.permutation(size)[:count]), :width], dtype=np.float64)
    signs = random.below(2, width).astype(np.float64) * 2 - 1
    return np.asarray(rows * signs / math.sqrt(count))
