"""Principal components of rows that several owners keep, through a proxy who adds what nobody but the user can read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.crypto import AgreementKey, SigningKey
from cloister.crypto.paillier import Paillier
from cloister.errors import InvalidParameter, MissingBound
from cloister.noise import Random
from cloister.privacy import ApproxDP, exact_positive
from cloister.together.noisy_moments import Floats, NoisyMoments
from cloister.together.proxy import Proxy, ProxyOwner, ProxyPlan, read_total


class DistributedPCA:
    """Principal components of several owners' rows: each sends once, encrypted, with its share of the noise.

    Guarantee: (ε, δ) for one row more or less of any owner (of a person with rows at k owners, k²ρ), by ρ-zCDP, towards the
    user who gets the components, even with `colluders` of the owners. The proxy, alone or with owners, sees ciphertexts. The user
    *with* the proxy has `opened_guarantee_`, which is weaker. `cloister.together.proxy` has the proof and what it takes for
    granted (parties follow the protocol); `noisy_moments` the sensitivities and the noise. Everything beyond the noisy sums is
    post-processing.

    Parameters: `bounds`, a pair of lowest and highest values, one for all columns or one each: declared, never looked up;
    `radius` (no row is farther from the middle of the bounds; None: the corner); `keys` (the user's; None: fresh ones of 2,048
    bits).

    Learned: `components_`, `explained_variance_` (noisy; the greatest are too great by what the noise adds),
    `explained_variance_ratio_`, `total_variance_`, `mean_`, `size_`, `moments_`, `guarantee_`, `opened_guarantee_`.

    `fit` plays all parties in one process, by the bytes that they send. Real ones are `ProxyOwner`, `Proxy` and `read_total` of
    `cloister.together.proxy`, and the user fits what it reads by `fit_moments`.

    >>> line = np.linspace(-1, 1, 500)
    >>> owners = [np.column_stack([line, line]), np.column_stack([line / 2, line / 2])]
    >>> model = DistributedPCA(1, epsilon=1, bounds=(-1, 1), random=Random.deterministic(1)).fit(owners)
    >>> model.components_.round(1).tolist(), str(model.guarantee_)
    ([[0.7, 0.7]], 'ε = 1, δ = 1e-09')
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Any = 1,
        delta: Any = "1e-9",
        bounds: Any = None,
        radius: float | None = None,
        colluders: int = 1,
        keys: Paillier | None = None,
        random: Random | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.radius = radius
        self.colluders = colluders
        self.keys = keys
        self.random = random

    def fit(
        self, owners: Sequence[npt.ArrayLike], y: object = None, *, charge: Callable[[ApproxDP], object] | None = None
    ) -> DistributedPCA:
        """Learn from a list of arrays, one an owner. `charge` is called once an owner, before its rows are read."""
        try:
            arrays = [np.asanyarray(each) for each in owners]  # a masked array keeps its mask
        except (TypeError, ValueError):
            arrays = []
        named = {tuple(each.columns) for each in owners if hasattr(each, "columns")} if arrays else ()
        if not arrays or any(each.ndim != 2 or each.shape[1] != arrays[0].shape[1] for each in arrays) or len(named) > 1:
            raise InvalidParameter(
                "The owners are invalid",
                why="each is an array of rows, of as many columns, in frames under the same names in the same order",
                instead="fit([rows_of_one, rows_of_another])",
            )
        keys = self.keys or Paillier.generate(random=self.random)
        signing = {f"owner {place}": SigningKey.generate(self.random) for place in range(1, len(arrays) + 1)}
        own, seal = SigningKey.generate(self.random), AgreementKey.generate(self.random)
        low, high, radius = self._declared(arrays[0].shape[1])
        plan = ProxyPlan(
            owners={name: key.public for name, key in signing.items()},
            proxy=own.public,
            seal=seal.public,
            key=keys.public,
            proof=keys.prove(),
            low=low,
            high=high,
            radius=radius,
            epsilon=exact_positive(self.epsilon, "epsilon"),
            delta=exact_positive(self.delta, "delta"),
            colluders=self.colluders,
        )
        self._count(len(low))  # before anything is charged
        proxy = Proxy(plan, own, seal, random=self.random)
        for (name, key), rows in zip(signing.items(), arrays, strict=True):
            proxy.take(ProxyOwner(plan, name, key, charge=charge, random=self.random).message(rows))
        self.opened_guarantee_ = plan.opened_guarantee
        return self.fit_moments(read_total(plan, keys, proxy.total()))

    def fit_moments(self, moments: NoisyMoments) -> DistributedPCA:
        """Learn from what the user read, at no further cost."""
        count, rest = self._count(len(moments.sums)), max(moments.count - 1, 1.0)
        values, vectors = np.linalg.eigh(moments.scatter)
        components = vectors.T[::-1][:count]
        largest = components[np.arange(count), np.abs(components).argmax(axis=1)]
        self.components_: Floats = components * np.where(largest < 0, -1.0, 1.0)[:, None]
        most = moments.radius**2 * moments.count / rest  # of rows in a ball, whatever the noise says
        self.explained_variance_: Floats = np.clip(values[::-1][:count] / rest, 0.0, most)
        self.total_variance_ = min(max(float(np.trace(moments.scatter)) / rest, 0.0), most)
        self.explained_variance_ratio_: Floats = np.clip(self.explained_variance_ / (self.total_variance_ or 1.0), 0.0, 1.0)
        self.mean_: Floats = moments.middle + np.clip(moments.sums / moments.count, -moments.radius, moments.radius)
        self.size_, self.moments_, self.guarantee_ = moments.count, moments, moments.guarantee
        self.n_features_in_ = len(self.mean_)
        return self

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The coordinates of rows along the components."""
        self._fitted()
        return np.asarray((self._rows(X, self.n_features_in_) - self.mean_) @ self.components_.T)

    def inverse_transform(self, Z: npt.ArrayLike) -> Floats:
        """The rows with these coordinates that are nearest the mean."""
        self._fitted()
        return np.asarray(self._rows(Z, len(self.components_)) @ self.components_ + self.mean_)

    def margin(self, confidence: float = 0.95) -> float:
        """How far an explained variance is from that of the rows drawn into bounds and radius, for all at once (`NoisyMoments`).

        By Davis and Kahan, divided by the gap between the last variance that is kept and the first that isn't, it bounds the sine
        of the angle between the subspaces.
        """
        self._fitted()
        spread = np.abs(np.linalg.eigvalsh(self.moments_.scatter)).max(initial=0.0)
        by_count = self.moments_.deviations[0] * np.sqrt(2 * np.log(6 / (1 - confidence))) if 0 < confidence < 1 else 0.0
        error, least = self.moments_.margin(confidence), self.size_ - 1 - by_count
        most = 2 * self.moments_.radius**2  # neither what is shown nor a variance of two rows or more in the ball is above that
        return min(float((error + spread * by_count / max(self.size_ - 1, 1.0)) / least), most) if least > 0 else most

    def _count(self, features: int) -> int:
        asked = features if self.n_components is None else self.n_components
        if isinstance(asked, bool) or not isinstance(asked, int | np.integer) or not 1 <= asked <= features:
            raise InvalidParameter(
                f"n_components={asked!r} is invalid",
                why=f"it is a whole number from 1 to the {features} columns",
                instead="n_components=1",
            )
        return int(asked)

    def _declared(self, features: int) -> tuple[tuple[float, ...], tuple[float, ...], float]:
        if self.bounds is None:
            raise MissingBound(
                "bounds= is missing",
                why="what a column may hold is declared, never looked up in the rows",
                instead="bounds=([0, 0], [1, 1])",
            )
        try:
            low, high = (np.broadcast_to(np.asarray(each, dtype=np.float64), (features,)) for each in self.bounds)
        except (TypeError, ValueError):
            raise InvalidParameter(
                "bounds= is invalid", why=f"it is a pair, each one number or {features}", instead="bounds=(0, 1)"
            ) from None
        if self.radius is not None and (isinstance(self.radius, bool) or not isinstance(self.radius, int | float)):
            raise InvalidParameter(f"radius={self.radius!r} is invalid", why="it is a length above 0", instead="radius=1")
        corner = float(np.sqrt((((high - low) / 2) ** 2).sum()))
        return tuple(low.tolist()), tuple(high.tolist()), corner if self.radius is None else min(self.radius, corner)

    def _fitted(self) -> None:
        if not hasattr(self, "components_"):
            raise InvalidParameter("The model is not fitted", why="it has no components yet", instead="model.fit(owners)")

    def _rows(self, given: npt.ArrayLike, columns: int) -> Floats:
        try:
            rows = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            rows = np.empty(0)
        if rows.ndim != 2 or rows.shape[1] != columns:
            raise InvalidParameter("The rows are invalid", why=f"they need {columns} columns", instead="an array of rows")
        return rows
