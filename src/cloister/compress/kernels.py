"""Projections in a kernel's space, and classical scaling.

A kernel's rows lie in a space of no more dimensions than there are rows: their coordinates there, about the mean, are QΛ^½ of the
centred Gram matrix K̄ = QΛQᵀ. A discriminant in that space is the linear one of these coordinates; written with K̄ it is
(K̄EK̄ + ρ′K̄, K̄² + ρK̄), where E averages within classes. There is no inverse: an attacker learns one.
"""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import pairwise_distances, pairwise_kernels
from sklearn.utils.validation import check_is_fitted

from cloister.compress.projections import DCA, PCA, Projection
from cloister.compress.scatter import Floats, rows_of
from cloister.errors import InvalidParameter, check_one_of

_KERNELS = ("rbf", "linear", "poly", "laplacian", "sigmoid")


class _InKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Coordinates of a kernel's space, and a linear projection of them. Learned: `rows_`, `linear_`, `promise_`."""

    n_components: int | None

    def fit(self, X: npt.ArrayLike, y: Any = None, private: Any = None, *, utility: Any = None) -> Self:
        """Learn directions from rows, their labels of use (`utility`, or `y` as scikit-learn calls it) and of the secret."""
        rows = rows_of(self, X, ensure_min_samples=2)
        gram = self._gram(rows, rows)
        self.rows_, self._means, self._mean = rows, gram.mean(axis=0), float(gram.mean())
        roots, axes = np.linalg.eigh(self._centred(gram))
        kept = roots > max(roots.max(initial=0.0), 1e-300) * len(rows) * np.finfo(float).eps
        self._roots, self._axes = roots[kept][::-1], axes[:, kept][:, ::-1]
        if not len(self._roots):
            raise InvalidParameter("X is invalid", why="all rows are alike to the kernel", instead='kernel="rbf"')
        labels = y if utility is None else utility
        self.linear_ = self._linear().fit(self._axes * np.sqrt(self._roots), labels, private)
        self.promise_ = self.linear_.promise_
        return self

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The rows' coordinates."""
        check_is_fitted(self)
        rows = rows_of(self, X, reset=False)
        found = self._centred(self._gram(rows, self.rows_)) @ (self._axes / np.sqrt(self._roots))
        return self.linear_.transform(found)

    @property
    def _n_features_out(self) -> int:
        return len(self.linear_.components_)

    def _centred(self, gram: Floats) -> Floats:
        return np.asarray(gram - gram.mean(axis=1, keepdims=True) - self._means + self._mean)

    def _gram(self, rows: Floats, others: Floats) -> Floats:
        raise NotImplementedError

    def _linear(self) -> Projection:
        return PCA(self.n_components)


class KernelPCA(_InKernel):
    """Principal components in a kernel's space: "rbf", "linear", "poly", "laplacian" or "sigmoid" of scikit-learn.

    >>> KernelPCA(1, kernel="linear").fit_transform([[0, 0], [1, 1], [2, 2]]).round(3).tolist()
    [[-1.414], [0.0], [1.414]]
    """

    def __init__(
        self, n_components: int | None = None, *, kernel: str = "rbf", gamma: float | None = None, degree: int = 3
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree

    def _gram(self, rows: Floats, others: Floats) -> Floats:
        check_one_of(self.kernel, "kernel", _KERNELS, why=f"known are {', '.join(_KERNELS)}", instead='kernel="rbf"')
        how = {"gamma": self.gamma, "degree": self.degree}
        return np.asarray(pairwise_kernels(rows, others, metric=self.kernel, filter_params=True, **how))


class KDCA(KernelPCA):
    """Discriminant components in a kernel's space: `DCA` of the kernel's coordinates.

    >>> X = [[-2.0], [-1.9], [0.0], [0.1], [2.0], [1.9]]
    >>> z = KDCA(kernel="rbf", gamma=1).fit_transform(X, ["out", "out", "in", "in", "out", "out"])
    >>> (z[2:4] * z[[0, 1, 4, 5]].mean() < 0).all()
    np.True_
    """

    needs_utility: ClassVar[bool] = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: str = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        rho: float | None = None,
        rho_prime: float | None = None,
    ) -> None:
        super().__init__(n_components, kernel=kernel, gamma=gamma, degree=degree)
        self.rho = rho
        self.rho_prime = rho_prime

    def _linear(self) -> Projection:
        return DCA(self.n_components, rho=self.rho, rho_prime=self.rho_prime)


class MDS(_InKernel):
    """Classical scaling: coordinates whose distances are those of the rows, as far as so many dimensions can keep them.

    By eigenvectors of −½HD²H (Torgerson), new rows by Gower's formula. With Euclidean distances they are those of `PCA`. Whoever
    knows a few rows reads the others off their distances: what is kept for use is kept for the attacker.

    >>> z = MDS(2).fit_transform([[0, 0, 7], [3, 0, 7], [0, 4, 7]])
    >>> [round(float(np.linalg.norm(z[i] - z[j])), 3) for i, j in [(0, 1), (0, 2), (1, 2)]]
    [3.0, 4.0, 5.0]
    """

    def __init__(self, n_components: int | None = None, *, metric: str = "euclidean") -> None:
        self.n_components = n_components
        self.metric = metric

    def _gram(self, rows: Floats, others: Floats) -> Floats:
        return np.asarray(pairwise_distances(rows, others, metric=self.metric) ** 2 / -2)
