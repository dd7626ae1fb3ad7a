"""Linear projections z = (x − μ)Wᵀ that are eigenproblems of scatters: components, discriminants, and compressive privacy.

All solve N w = λ D w for the largest λ (S̄, S_W and S_B as in scatter.py; U is the label of use, P the one of the secret):

    PCA    S̄              against  I                    what varies most
    LDA    S_B^U           against  S_W + ρI              what separates the classes of use (Fisher)
    DCA    S_B^U + ρ′I     against  S̄ + ρI                the same, and an order of what is left beyond classes − 1 directions
    RUCA   S_B^U + ρ′I     against  S̄ + ρI + ρ_p S_B^P    and away from what separates the secret
    MDR    S_B^U + ρ′I     against  S_B^P + ρI            use against secret alone
    DUCA   α S_B^U − β S_B^P   against  I                 a difference in place of a quotient

None is differentially private when it is fitted to rows: use `Scatter.measure` for directions that are, and `trade_off` for what
attackers make of rows that were projected. After S. Y. Kung, "Compressive privacy", IEEE Signal Processing Magazine 34(1), 2017
(DCA, MDR), and T. Chanyaswad, J. M. Chang and S. Y. Kung, "A compressive multi-kernel method for privacy-preserving machine
learning", IJCNN 2017 (RUCA).
"""

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cloister.compress.drawing import normal, random_of
from cloister.compress.scatter import Floats, Scatter, positive, rows_of
from cloister.errors import InvalidParameter

_RHO, _RHO_PRIME = 0.02, 0.1
"""ρ is a fiftieth of the largest eigenvalue of S_W, and ρ′ a tenth of ρ, where they are not given."""

_NOTHING = 256 * float(np.finfo(np.float64).eps)
"""Columns on one scale vary together by no more than this: as much as rounding leaves of equal ones."""

_Problem: TypeAlias = tuple[Floats, Floats, float, float]
"""N and D within the basis, and what stands on their diagonals beyond it."""


class NoSecret(UserWarning):
    """A projection that looks away from a secret was fitted without one, as pipelines do, which know one label."""


class Projection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What all projections do. Learned: `components_` (rows of length 1), `mean_`, `eigenvalues_`, `promise_`."""

    needs_utility: ClassVar[bool] = False
    needs_private: ClassVar[bool] = False
    orders_all: ClassVar[bool] = False
    """Whether directions beyond those of the classes of use are ordered without ρ′."""
    n_components: int | None

    def fit(self, X: npt.ArrayLike, y: Any = None, private: Any = None, *, utility: Any = None) -> Self:
        """Learn directions from rows, their labels of use (`utility`, or `y` as scikit-learn calls it) and of the secret."""
        rows = rows_of(self, X, ensure_min_samples=2)
        scatter = Scatter.of_rows(rows, *self._labels(len(rows), y if utility is None else utility, private))
        if self.needs_private and private is None:
            scatter = replace(scatter, private=np.zeros_like(scatter.total))
            text = f"{type(self).__name__}: no secret was named, so none is hidden. Instead: fit(X, utility, private)"
            warnings.warn(text, NoSecret, stacklevel=2)
        return self.fit_scatter(scatter)

    def fit_scatter(self, scatter: Scatter) -> Self:
        """Learn directions from scatters: from noisy ones at no further cost."""
        for name, wanted in (("utility", self.needs_utility), ("private", self.needs_private)):
            if wanted and getattr(scatter, name) is None:
                raise InvalidParameter(
                    "The scatter is invalid", why=f"it has none by the label of {name}", instead=f'Scatter.measure(…, {name}="…")'
                )
        self.n_features_in_ = scatter.width
        self.mean_ = scatter.mean
        self.promise_ = (
            "not differentially private" if scatter.cost is None else f"directions: {scatter.cost}; projected rows: none"
        )
        problem = self._problem(scatter)
        self._solve(problem, self._count(scatter, problem[2]), scatter)
        return self

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The rows' coordinates."""
        check_is_fitted(self)
        rows = rows_of(self, X, reset=False)
        return np.asarray((rows - self.mean_) @ self.components_.T)

    def inverse_transform(self, Z: npt.ArrayLike) -> Floats:
        """The rows nearest the mean that have these coordinates: μ + z(WWᵀ)⁻¹W. An attacker who learns does better."""
        check_is_fitted(self)
        coordinates = np.asarray(Z, dtype=np.float64)
        if coordinates.ndim != 2 or coordinates.shape[1] != len(self.components_):
            raise InvalidParameter(
                "Z is invalid", why=f"it needs {len(self.components_)} columns", instead="inverse_transform(transform(X))"
            )
        return np.asarray(self.mean_ + coordinates @ np.linalg.pinv(self.components_).T)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _labels(self, count: int, utility: Any, private: Any) -> tuple[Any, Any]:
        found: list[Any] = []
        if utility is None and self.needs_utility:
            raise InvalidParameter(
                "utility= is invalid",
                why=f"{type(self).__name__} requires y to be passed, but the target y is None",
                instead="fit(X, utility)",
            )
        for name, labels, wanted in (("utility", utility, self.needs_utility), ("private", private, self.needs_private)):
            found.append(None if labels is None or not wanted else _classes(name, labels, count))
        return found[0], found[1]

    def _count(self, scatter: Scatter, rest: float) -> int:
        """How many directions there will be; `rest` orders those beyond the directions of the classes."""
        signal = scatter.classes - 1 if self.needs_utility else scatter.width
        asked = min(signal, scatter.width) if self.n_components is None else self.n_components
        if isinstance(asked, bool) or not isinstance(asked, int | np.integer) or not 1 <= asked <= scatter.width:
            raise InvalidParameter(
                f"n_components={asked!r} is invalid",
                why=f"it is a whole number from 1 to the {scatter.width} columns",
                instead="n_components=1",
            )
        if self.needs_utility and asked > signal and rest == 0 and not self.orders_all:
            raise InvalidParameter(
                f"n_components={asked} is invalid",
                why=f"{scatter.classes} classes have {signal} directions between them, and nothing orders the others",
                instead=f"n_components={signal}, or DCA with another rho_prime than 0",
            )
        return int(asked)

    def _problem(self, scatter: Scatter) -> _Problem:
        raise NotImplementedError

    def _solve(self, problem: _Problem, count: int, scatter: Scatter) -> None:
        from scipy.linalg import eigh

        above, below, up, down = problem
        identity = np.eye(len(above))
        below = below + down * identity
        if _singular(below) or (down == 0 and scatter.basis is not None):  # fewer rows than columns
            raise InvalidParameter(
                "The scatter is invalid",
                why="it is singular: some direction does not vary at all",
                instead=f"{type(self).__name__}(rho=1)",
            )
        values, vectors = eigh(above + up * identity, below) if len(above) else (np.zeros(0), np.zeros((0, 0)))
        directions = vectors.T if scatter.basis is None else vectors.T @ scatter.basis
        if scatter.basis is not None:  # directions in which no row differs from another
            level = up / down if down else 0.0
            beyond = min(scatter.width - len(values), count - int((values >= level).sum()))
            if beyond > 0:
                values = np.concatenate([values, np.full(beyond, level)])
                directions = np.vstack([directions, _complement(scatter.basis, beyond)])
        order = np.argsort(-values, kind="stable")[:count]
        found = directions[order]
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        signs = np.sign(found[np.arange(count), np.abs(found).argmax(axis=1)])
        self.components_ = found * signs[:, None]
        self.eigenvalues_ = values[order]


class PCA(Projection):
    """Principal components, exact: `cloister.learn.PCA` has the ones with a guarantee.

    >>> model = PCA(1).fit([[0, 0], [1, 1], [2, 2]])
    >>> model.components_.round(3).tolist(), model.promise_
    ([[0.707, 0.707]], 'not differentially private')
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _problem(self, scatter: Scatter) -> _Problem:
        return scatter.total, np.zeros_like(scatter.total), 0.0, 1.0


class LDA(Projection):
    """Fisher's discriminants: S_B against S_W + ρI, at most as many as classes less one.

    >>> X = [[0, 0], [0, 1], [5, 0], [5, 1]]
    >>> LDA().fit(X, utility=["a", "a", "b", "b"]).components_.round(3).tolist()
    [[1.0, 0.0]]
    """

    needs_utility: ClassVar[bool] = True

    def __init__(self, n_components: int | None = None, *, rho: float | None = None) -> None:
        self.n_components = n_components
        self.rho = rho

    def _problem(self, scatter: Scatter) -> _Problem:
        assert scatter.utility is not None
        return scatter.utility, _within(scatter), 0.0, _rho(self.rho, scatter)


class DCA(Projection):
    """Discriminant components: S_B + ρ′I against S̄ + ρI. with ρ′ > 0 next comes what varies least, with ρ′ < 0 what
    varies most.

    The published code divides by S_W + ρI: the same directions as with ρ + ρ′ in place of ρ here, and at ρ = ρ′ = 0 those of LDA,
    λ_LDA = λ/(1 − λ).

    >>> X = [[0, 0, 3], [0, 1, -3], [5, 0, -3], [5, 1, 3]]
    >>> DCA(2, rho=0.1).fit(X, utility=["a", "a", "b", "b"]).components_.round(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """

    needs_utility: ClassVar[bool] = True

    def __init__(self, n_components: int | None = None, *, rho: float | None = None, rho_prime: float | None = None) -> None:
        self.n_components = n_components
        self.rho = rho
        self.rho_prime = rho_prime

    def _problem(self, scatter: Scatter) -> _Problem:
        assert scatter.utility is not None
        return scatter.utility, scatter.total, *_ridges(self.rho_prime, self.rho, scatter)


class RUCA(Projection):
    """Use against secret, by a quotient: S_B^U + ρ′I against S̄ + ρI + ρ_p S_B^P. DCA at ρ_p = 0, towards MDR as it grows.

    >>> X = [[0, 0, 3], [5, 1, 3], [0, 1, -3], [5, 0, -3]]
    >>> model = RUCA(1, rho_p=10).fit(X, utility=["a", "b", "a", "b"], private=[1, 1, 2, 2])
    >>> model.components_.round(3).tolist()
    [[1.0, 0.0, 0.0]]
    """

    needs_utility: ClassVar[bool] = True
    needs_private: ClassVar[bool] = True

    def __init__(
        self, n_components: int | None = None, *, rho: float | None = None, rho_prime: float | None = None, rho_p: float = 1.0
    ) -> None:
        self.n_components = n_components
        self.rho = rho
        self.rho_prime = rho_prime
        self.rho_p = rho_p

    def _problem(self, scatter: Scatter) -> _Problem:
        assert scatter.utility is not None
        assert scatter.private is not None
        below = scatter.total + _number("rho_p", self.rho_p, least=0.0) * scatter.private
        return scatter.utility, below, *_ridges(self.rho_prime, self.rho, scatter)


class MDR(Projection):
    """The multiclass discriminant ratio: S_B^U + ρ′I against S_B^P + ρI.

    >>> X = [[0, 0], [5, 1], [0, 3], [5, 4]]
    >>> MDR(rho=0.1).fit(X, utility=["a", "b", "a", "b"], private=[1, 1, 2, 2]).components_.round(2).tolist()
    [[1.0, 0.0]]
    """

    needs_utility: ClassVar[bool] = True
    needs_private: ClassVar[bool] = True

    def __init__(self, n_components: int | None = None, *, rho: float | None = None, rho_prime: float = 0.0) -> None:
        self.n_components = n_components
        self.rho = rho
        self.rho_prime = rho_prime

    def _problem(self, scatter: Scatter) -> _Problem:
        assert scatter.utility is not None
        assert scatter.private is not None
        return scatter.utility, scatter.private, *_ridges(self.rho_prime, self.rho, scatter)


class DUCA(Projection):
    """Use against secret, by a difference: the largest eigenvalues of α S_B^U − β S_B^P.

    >>> X = [[0, 0], [5, 0], [0, 3], [5, 3]]
    >>> DUCA(1).fit(X, utility=["a", "b", "a", "b"], private=[1, 1, 2, 2]).components_.round(3).tolist()
    [[1.0, 0.0]]
    """

    needs_utility: ClassVar[bool] = True
    needs_private: ClassVar[bool] = True
    orders_all: ClassVar[bool] = True

    def __init__(self, n_components: int | None = None, *, alpha: float = 1.0, beta: float = 1.0) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.beta = beta

    def _problem(self, scatter: Scatter) -> _Problem:
        assert scatter.utility is not None
        assert scatter.private is not None
        alpha, beta = _number("alpha", self.alpha, least=0.0), _number("beta", self.beta, least=0.0)
        return alpha * scatter.utility - beta * scatter.private, np.zeros_like(scatter.total), 0.0, 1.0


def _singular(matrix: Floats) -> bool:
    """Whether some direction does not vary, whatever the scales of the columns."""
    spread = np.diag(matrix)
    if not len(spread) or spread.min() <= 0:
        return bool(len(spread))
    return bool(np.linalg.eigvalsh(matrix / np.sqrt(np.outer(spread, spread)))[0] <= _NOTHING)


def _rho(given: float | None, scatter: Scatter) -> float:
    if given is not None:
        return _number("rho", given, least=0.0)
    spread, total = (float(np.linalg.eigvalsh(each)[-1]) if len(each) else 1.0 for each in (_within(scatter), scatter.total))
    return _RHO * (spread if scatter.cost is None else max(spread, 1e-3 * max(total, 1.0)))  # which noise may leave nothing of


def _within(scatter: Scatter) -> Floats:
    """S_W. Noise may leave more between the classes than in all: along that direction none is left within."""
    within = scatter.total - (0.0 if scatter.utility is None else scatter.utility)
    return within if scatter.cost is None else positive(within)


def _ridges(rho_prime: float | None, rho: float | None, scatter: Scatter) -> tuple[float, float]:
    """ρ′ and ρ."""
    below = _rho(rho, scatter)
    return _RHO_PRIME * below if rho_prime is None else _number("rho_prime", rho_prime), below


def _number(name: str, value: Any, *, least: float = -np.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not least <= float(value) < np.inf:
        why = "it is a number" + (" of 0 or more" if least == 0 else "")
        raise InvalidParameter(f"{name}={value!r} is invalid", why=why, instead=f"{name}=1")
    return float(value)


def _classes(name: str, labels: Any, count: int) -> npt.NDArray[Any]:
    """Labels of so many rows, two classes or more."""
    found = np.asarray(labels)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found.ravel()
    if found.ndim != 1 or len(found) != count:
        raise InvalidParameter(f"{name}= is invalid", why=f"it has one label for each of {count} rows", instead=f"fit(X, {name})")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise InvalidParameter(f"{name}= is invalid", why="it has NaN or inf among its labels", instead="labels without gaps")
    if len(np.unique(found)) < 2:
        raise InvalidParameter(f"{name}= is invalid", why="all rows are of one class", instead="two classes or more")
    return found


def _complement(basis: Floats, count: int) -> Floats:
    """So many orthonormal directions beyond those of a basis: any, and the same each time."""
    drawn = normal(count * basis.shape[1], random_of(0)).reshape(count, -1)
    drawn -= drawn @ basis.T @ basis
    found = np.linalg.qr((drawn - drawn @ basis.T @ basis).T)[0].T
    return np.asarray(found)
