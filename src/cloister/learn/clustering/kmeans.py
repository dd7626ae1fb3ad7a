"""k-means: rounds of noisy counts and sums (DPLloyd), or one round on many cells that are then grouped (a coreset).

ball.py has the sums and their noise, noisy_mean.py the mean and the spread that fix the ball, lloyd.py the rounds, starts.py
where they begin; kmeans_tables.py has the rounds of a table's own engine.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from cloister.errors import InvalidParameter
from cloister.learn.clustering.centre_margins import Centres
from cloister.learn.clustering.kmeans_plan import GROWTH, KMeansPlan, plan_of
from cloister.learn.clustering.kmeans_tables import MOST_TERMS, by_engine
from cloister.learn.clustering.lloyd import Cells, drawn_in, measured, nearest, rounds
from cloister.learn.clustering.noisy_mean import NoisyMean, Spread, declared_radius, mean_of, noisy_size, size_variance, spread_of
from cloister.learn.clustering.starts import REACH, frame, spread_starts, weighted_centres
from cloister.learn.frame.ball import in_ball, projected
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Rows
from cloister.learn.frame.budget_account import BudgetAccount
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.margins import wider_quantile
from cloister.learn.frame.parameters import RADIUS, Limit, Limits
from cloister.noise.allowance import Allowance, Share
from cloister.session import Measurer, Spending
from cloister.tables import PrivateTable

Floats = npt.NDArray[np.float64]

_SIZE, _SPREAD, _COUNTS = Fraction(3, 100), Fraction(3, 100), Fraction(5, 100)
_FEW_ROWS = 100_000
"""A table that is declared to be smaller is read: rows in a ball need less noise than an engine's sums in a box."""


@dataclass(eq=False, repr=False)
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, PrivateModel):  # type: ignore[misc]
    """k-means by noisy counts and sums.

    Guarantee: ε, or (ε, δ), or ρ, for one row more or less (the number of rows is private). The measurements are: the number of
    rows (changes by 1), their sum within the declared box or radius (by a vector no longer than that), the sum of squared
    distances from the released mean (by at most its declared greatest value), and in each round the counts and sums of the cells
    (one count by 1, one sum by a vector within a ball of a released radius, to which rows are drawn in). Each has its share of
    the allowance, so that all together promise the whole: adaptive composition, also where a later share's size follows from
    earlier releases (Rogers, Roth, Ullman & Vadhan 2016 for ε; Feldman & Zrnic 2021 and Smith & Thakurta 2022 for ρ and μ²).
    Starts, subspaces, the number of rounds and what becomes of nearly empty cells follow from public facts and released values.
    Under a pure ε, a sum's noise is computed in sixty digits: what that adds to δ = 0 is at most 10⁻¹² for each (ball.py).

    After DPLloyd (Blum, Dwork, McSherry & Nissim 2005; Su, Cao, Li, Bertino & Jin 2016), with four differences that lessen the
    noise: it fits a ball and not a box; the ball is about the rows' mean, and as wide as they lie; where rows are few against ε
    (pure promises), the rounds look at a random subspace; and centres are drawn towards the mean by as much as their noise asks.

    From a table (`fit_table`) no row comes into memory: each round is one question of its engine, whose guarantee is that of
    `Door.measure`, for one person's rows (kmeans_tables.py). Bought are the number of rows, means and variances, then the rounds'
    counts and sums, in a box about the mean in place of the ball; all parts add up to the promise in the measure of the budget.
    Rows are read, and the guarantee above holds (for a person with m rows with a share of 1/m for each), where "lloyd" or
    "coreset" or a radius asks for it, or where the table is declared to have fewer than 100,000 rows.

    Parameters: `n_clusters`; `method` ("lloyd"; "coreset": one round on three cells a centre, whose means and counts are then
    clustered for nothing; "engine": the table's own engine; "auto"); `rounds` (None: by public facts); `radius` (no row is
    farther from the middle of the box; None: the half of its diagonal).

    Learned: `cluster_centers_`, `cluster_sizes_` (noisy), `deviations_` (of the noise of each coordinate of a centre, to first
    order; what the drawing-in and the assignment of rows miss is not in it), `measured_` (what `margin` is made of), `rounds_`,
    `dimension_`, `low_` and `high_`.

    >>> from cloister.noise import Random
    >>> X = np.repeat([[0.1, 0.2], [0.9, 0.8]], 500, axis=0)
    >>> model = KMeans(2, epsilon=1, bounds=(0, 1), random=Random.deterministic(1)).fit(X)
    >>> model.cluster_centers_.shape, len(set(model.predict([[0.0, 0.0], [1.0, 1.0]]).tolist()))
    ((2, 2), 2)
    """

    _stored: ClassVar[str] = "KMeans"
    target_kind: ClassVar[str] = "none"
    limits: ClassVar[Limits] = {
        "n_clusters": Limit(least=1, whole=True, instead=8),
        "method": Limit(known=("auto", "lloyd", "coreset", "engine"), instead="auto"),
        "rounds": Limit(least=1, whole=True, none=True, instead=3),
        "radius": RADIUS,
    }
    learned_names: ClassVar[tuple[str, ...]] = (
        "cluster_centers_",
        "cluster_sizes_",
        "deviations_",
        "measured_",
        "rounds_",
        "dimension_",
        "low_",
        "high_",
    )

    n_clusters: int = 8
    _: KW_ONLY
    method: Literal["auto", "lloyd", "coreset", "engine"] = "auto"
    rounds: int | None = None
    radius: float | None = None

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        if self.method == "engine":
            raise InvalidParameter(
                'method="engine" is invalid', why="it is for fit_table: arrays have no engine", instead='method="auto"'
            )
        self.low_, self.high_ = rows.box.low, rows.box.high
        if allowance is None:
            self._without_noise(rows.X)
            return
        size = noisy_size(len(rows.X), allowance.share("number of rows", _SIZE), self.random)
        active = int((rows.box.high > rows.box.low).sum())
        size_share = allowance.lines[-1]
        plan = plan_of(size_share, size=size, clusters=self.n_clusters, features=active, method=self.method, rounds=self.rounds)
        radius = declared_radius(rows.box, self.radius)
        place = mean_of(rows.X, rows.box, size=size, radius=radius, share=allowance.share("mean", plan.mean), random=self.random)
        self.rounds_, self.dimension_ = plan.rounds, plan.dimension
        if place.most == 0:  # every declared interval is one value
            allowance.rest("nothing: no feature can vary")
            self._keep(np.repeat(place.mean[None], self.n_clusters, axis=0), np.full(self.n_clusters, size / self.n_clusters))
            return
        self._cluster(rows.X - place.mean, place, plan, size, allowance)

    def _cluster(self, centred: Floats, place: NoisyMean, plan: KMeansPlan, size: float, allowance: Allowance) -> None:
        random, clusters, features = self.random, self.n_clusters, centred.shape[1]
        size_noise, share = size_variance(allowance.lines[0]), allowance.share("spread", _SPREAD)
        seen = spread_of(centred, place, size=size, size_noise=size_noise, share=share, random=random)
        spread = seen.value
        axes = frame(plan.dimension, features, random)
        kept = spread * axes.shape[1] / features
        farthest = float((np.maximum(self.high_ - place.mean, place.mean - self.low_) ** 2).sum())
        wide = plan.reach**2
        radius = float(np.sqrt(min(1.2 * kept, place.most) if wide <= 1.2 else min(wide * kept, farthest)))
        if plan.dimension < features:
            centred = projected(centred, axes, reach=float(np.sqrt(farthest)))
        rows = in_ball(centred, radius)
        starts = spread_starts(clusters * plan.cells, axes.shape[1], random) * REACH * np.sqrt(kept)
        pairs = _pairs(allowance, plan.rounds, growth=GROWTH if plan.cells == 1 else Fraction(1))
        if plan.cells > 1:
            (count, total), *pairs = pairs
            cells = measured(rows, starts, size=size, radius=radius, count=count, total=total, random=random)
            shrunk, _ = drawn_in(cells.means, cells.variance, spread=kept)
            starts, groups = weighted_centres(in_ball(shrunk, radius), cells.counts, clusters)
            sizes = np.bincount(groups, weights=cells.counts, minlength=clusters).astype(np.float64)
            centres = starts
        if pairs:
            centres, cells = rounds(rows, starts, size=size, radius=radius, spread=kept, shares=pairs, random=random)
            sizes, groups = cells.counts, np.arange(clusters)
        known = _evidence(
            place, axes, cells, groups, clusters=clusters, radius=radius, longest=float(np.sqrt(farthest)), spread=seen
        )
        self._keep(np.clip(place.mean + in_ball(centres, radius) @ axes.T, self.low_, self.high_), sizes, known)

    def _from_engine(self, declaration: PrivateTable, encoder: Encoder) -> bool:
        """With "engine", and "auto" unless the table is declared small and has rows."""
        fits = self.radius is None and self.n_clusters * (len(encoder.names) + 1) <= MOST_TERMS
        size = declaration.size
        if self.method == "engine" and not fits:
            raise InvalidParameter(
                'method="engine" is invalid',
                why=f"its rounds have at most {MOST_TERMS} products of clusters and features, and no radius",
                instead='method="auto"',
            )
        few = declaration.abilities.rows and size is not None and size < _FEW_ROWS
        return self.method == "engine" or (self.method == "auto" and fits and not few)

    def _learn_table(
        self, session: Measurer, table: str, encoder: Encoder, target: str | None, spend: Spending, purpose: str
    ) -> Allowance:
        """By rounds of the table's own engine."""
        account = BudgetAccount.of(session, table, spend, purpose)
        # a job that may be begun again has choices of its own
        found = by_engine(account, table, encoder, clusters=self.n_clusters, rounds=self.rounds, random=session.choices)
        self.low_, self.high_ = (np.array(side, dtype=np.float64) for side in encoder.bounds)
        self._keep(found.centres, found.sizes, found.known)
        self.rounds_, self.dimension_ = found.rounds, found.dimension
        return account.allowance()

    def _without_noise(self, X: Floats) -> None:
        from sklearn.cluster import KMeans as Plain

        found = Plain(self.n_clusters, n_init=10, random_state=0).fit(X)
        self.labels_ = found.labels_
        self._keep(found.cluster_centers_, np.bincount(found.labels_, minlength=self.n_clusters).astype(np.float64))
        self.rounds_, self.dimension_ = int(found.n_iter_), X.shape[1]

    def _keep(self, centres: Floats, sizes: Floats, known: Centres | None = None) -> None:
        self.cluster_centers_, self.cluster_sizes_ = np.asarray(centres), np.asarray(sizes)
        self.deviations_ = np.zeros_like(self.cluster_centers_) if known is None else known.deviations(self.cluster_sizes_)
        self.measured_ = None if known is None else known.written()

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """The number of the nearest centre of each row, which is clipped to the bounds first."""
        return nearest(np.clip(self._asked(X), self.low_, self.high_), self.cluster_centers_)

    def fit_predict(self, X: Any, y: Any = None, **refused: Any) -> npt.NDArray[np.int64]:
        """Fit, and tell the caller's own rows apart. Labels of rows are no part of the model: they are not kept, nor released."""
        return self.fit(X, y, **refused).predict(X)

    def transform(self, X: Any) -> Floats:
        """The distance of each row from each centre."""
        asked = np.clip(self._asked(X), self.low_, self.high_)
        return np.asarray(np.sqrt(np.array([((asked - centre) ** 2).sum(axis=1) for centre in self.cluster_centers_]).T))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances from the nearest centre (minus the inertia). Of private rows it is private."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    def margin(self, confidence: Any = 0.95) -> Floats:
        """A half-width for each coordinate of each centre, of the noise alone.

        The mean of the rows that were nearest to the centre in the last round lies within, each coordinate by itself with that
        confidence: of the rows as they were summed, drawn into a ball about the released mean. Where noise may have made that
        ball, the margin is everything within the bounds. Where the rounds looked at a subspace, it is the rows' mean within it,
        and beside it that of all rows. `centre_margins.py` says how.
        """
        if self.measured_ is None:  # without noise, or of an older version, which kept no more than this
            return np.asarray(self.deviations_ * wider_quantile(confidence))
        known = Centres.read(self.measured_)
        return known.margin(self.cluster_centers_, confidence, low=self.low_, high=self.high_)


def _pairs(allowance: Allowance, wanted: int, *, growth: Fraction) -> Sequence[tuple[Share, Share]]:
    """Shares of counts and sums for each round, of all that is left."""
    weights = [growth**place for place in range(wanted)]
    left = allowance.left
    pairs = []
    for place, weight in enumerate(weights):
        part = left * weight / sum(weights)
        count = allowance.share(f"counts of round {place + 1}", part * _COUNTS)
        pairs.append((count, allowance.share(f"sums of round {place + 1}", part * (1 - _COUNTS))))
    return pairs


def _evidence(
    place: NoisyMean,
    axes: Floats,
    cells: Cells,
    groups: npt.NDArray[np.int64],
    *,
    clusters: int,
    radius: float,
    longest: float,
    spread: Spread,
) -> Centres:
    """What was measured of the cells of each centre, by coordinate, and what stands for coordinates that no round looked at."""
    projection = axes @ axes.T
    own = np.clip(np.diag(projection), 0.0, None)
    counts, sums, number = np.zeros(clusters), np.zeros((clusters, axes.shape[1])), np.zeros(clusters)
    np.add.at(counts, groups, cells.noisy)
    np.add.at(sums, groups, cells.sums)
    np.add.at(number, groups, 1.0)
    left = np.eye(len(own)) - projection
    whole = axes.shape[0] == axes.shape[1]
    rounded = np.abs(axes).sum(axis=1) * cells.step / 2
    if not whole:  # and by `projected`, less than 2^−26 of the longest row for each of its numbers
        rounded = rounded + np.abs(left) @ place.step / 2 + np.sqrt(axes.size) * 2.0**-26 * longest
    return Centres(
        origin=place.mean,
        counts=counts,
        sums=sums @ axes.T,
        count_noise=number * cells.count_noise,
        sum_noise=number[:, None] * cells.sum_noise * own,
        reach=radius * np.sqrt(own),
        rest=None
        if whole
        else (left @ place.sums, (left**2) @ place.sum_noise, left @ place.moved, spread.size, spread.size_noise),
        ball=(radius, *spread),
        rounded=rounded,
    )
