"""k-means by a table's own engine: each round is one question at the door, and no row comes into memory.

A round asks for the number of rows and the sums of the features by nearest centre. The centres are released, so which one is
nearest is a computed column of linear forms (kmeans_cells.py), which DuckDB, PostgreSQL and Spark work out row by row. The sums
are of distances from a released mean, drawn into a box around it: that box is what the noise is made for. What is made of a
round's counts and sums is shared with the rows' way (lloyd.py), and so is the plan (kmeans_plan.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.clustering.centre_margins import Centres
from cloister.learn.clustering.kmeans_cells import Sight, moved_columns, moved_ranges, nearest_cell, present_columns
from cloister.learn.clustering.kmeans_plan import GROWTH, plan_of
from cloister.learn.clustering.lloyd import Cells, cells_of, drawn_in
from cloister.learn.clustering.starts import REACH, spread_starts, weighted_centres
from cloister.learn.decomposition.covariance_tables import moments_of, question_of
from cloister.learn.frame.budget_account import BudgetAccount
from cloister.learn.frame.encoding import Encoder
from cloister.learn.linear_models.regression_tables import centred_columns
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP
from cloister.session.questions.question import Count, Covariance, Question, Sum
from cloister.session.releases.formulas import Linear
from cloister.session.releases.uncertainty import variance
from cloister.tables import Extended, PrivateTable
from cloister.tables.expression.scalars import Const

Floats = npt.NDArray[np.float64]

MOST_TERMS = 3000
"""Products in the linear forms of a round: more would take an engine longer to read than to work out."""
_MOST_OF_CELLS = 1000
"""Products of a first round that looks at several cells a centre: there are fewer cells where that would be more."""
_PLACE = Fraction(1, 10)
_SURE = 2.5
"""A variance is sure to be less than what was released and so many of its 95 % margins: some five deviations."""
_NARROW = 2.0
"""Sums count a row as no farther from the mean than so many deviations of a feature, or more (`Plan.reach`)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Clusters:
    """What the rounds found: centres of all features, noisy sizes, what is known of both, and how it was done."""

    centres: Floats
    sizes: Floats
    known: Centres | None
    rounds: int
    dimension: int


def by_engine(
    account: BudgetAccount, table: str, encoder: Encoder, *, clusters: int, rounds: int | None, random: Random | None
) -> Clusters:
    """The place, the plan that follows from it, then the rounds; the first one looks at several cells a centre where there is
    plenty, and they are grouped for nothing.

    Guarantee: the whole of the account: its parts add up (`BudgetAccount`), and each question is made of what was released
    before.
    """
    varied = sum(high > low for low, high in zip(*encoder.bounds, strict=True))
    sight = place_of_table(account, table, encoder, _PLACE if varied else Fraction(1))
    if not varied:
        centres = np.repeat(sight.mean[None], clusters, axis=0)
        even = np.full(clusters, sight.size / clusters)
        return Clusters(centres=centres, sizes=even, known=None, rounds=0, dimension=0)
    whole = account.whole.whole()
    share = Allowance(whole, currency="rho" if isinstance(whole, ZCDP) else "epsilon").rest("rounds")
    plan = plan_of(share, size=sight.size, clusters=clusters, features=varied, method="auto", rounds=rounds)
    cells = max(1, min(plan.cells, _MOST_OF_CELLS // (clusters * (varied + 1))))
    growth = GROWTH if cells == 1 else Fraction(1)
    weights = [growth**number for number in range(plan.rounds)]
    portions = [account.left * weight / sum(weights) for weight in weights[:-1]] + [Fraction(1)]
    reach = max(_NARROW, plan.reach)
    deviations = np.sqrt(sight.variances[sight.active])
    starts = spread_starts(clusters * cells, varied, random) * REACH * math.sqrt(varied) * deviations
    made = {"rounds": plan.rounds, "dimension": varied}
    groups, sizes = np.arange(clusters), None
    if cells > 1:
        centres, found, own = rounds_of_table(account, sight, starts, portions[:1], reach=reach, first=1)
        starts, groups = weighted_centres(centres, found.counts, clusters)
        if len(portions) == 1:
            sizes = np.bincount(groups, weights=found.counts, minlength=clusters).astype(np.float64)
            centres = starts
        portions = portions[1:]
    if portions:
        number = plan.rounds - len(portions) + 1
        groups = np.arange(clusters)
        centres, found, own = rounds_of_table(account, sight, starts, portions, reach=reach, first=number)
        sizes = found.counts
    assert sizes is not None
    placed = np.repeat(sight.mean[None], clusters, axis=0)
    placed[:, sight.active] += centres
    return Clusters(
        centres=np.clip(placed, sight.low, sight.high),
        sizes=sizes,
        known=_known(sight, found, own, groups, clusters=clusters, reach=reach),
        **made,
    )


def place_of_table(account: BudgetAccount, table: str, encoder: Encoder, portion: Fraction) -> Sight:
    """Number of rows, mean and variances: one question about all features (`cloister.session.planning.moments`).

    Guarantee: that of `Door.measure` for the portion. Rows in which a feature is missing count for nothing.
    """
    declaration = account.session.tables[table]
    assert isinstance(declaration, PrivateTable)
    relation, names = centred_columns(table, declaration, encoder, [], intercept=False)
    relation, names = present_columns(relation, names)
    low, high = (np.array(side, dtype=np.float64) for side in encoder.bounds)
    active = np.array([relation.columns[name].high_code > relation.columns[name].low_code for name in names])
    varied = [name for name, varies in zip(names, active, strict=True) if varies]
    d, middle, half = len(names), (low + high) / 2, (high - low) / 2
    mean, lost, variances = middle.copy(), np.zeros(d), np.zeros(d)
    if not varied:
        release = account.ask(Question(table=relation, statistics=(Count(name="n"),)), portion, "number of rows")
        size = max(float(release["n"][0]), 1.0)
    else:
        full = question_of(table, varied)
        wanted = tuple(each for each in full.statistics if not isinstance(each, Covariance))
        release = account.ask(Question(table=relation, statistics=wanted), portion, "number of rows, means and variances")
        found, margins = release.to_arrow().to_pydict(), release.margin().to_pydict()
        blank = {each.name: [0.0] for each in full.statistics if isinstance(each, Covariance)}
        seen = moments_of({**blank, **found}, {**blank, **margins}, len(varied))
        size = seen.size
        mean[active] = np.clip(seen.mean, low[active], high[active])
        most = ((high - mean) * (mean - low))[active]  # Bhatia & Davis 2000
        floor = 0.01 * half[active] ** 2
        variances[active] = np.clip(np.diag(seen.covariance), floor, np.maximum(most, floor))
        given = np.array([float(margins[f"c{place}_{place}"][0]) for place in range(len(varied))])
        greatest = np.minimum(np.diag(seen.covariance) + _SURE * given, most)
        rows = size + _SURE * float(margins["n"][0])
        lost[active] = np.where(greatest > 2 * variances[active], greatest * rows, 0.0)
    return Sight(
        relation=relation,
        names=tuple(varied),
        active=active,
        size=size,
        mean=mean,
        variances=variances,
        lost=lost,
        low=low,
        high=high,
    )


def round_of_table(
    account: BudgetAccount, sight: Sight, centres: Floats, portion: Fraction, what: str, *, reach: float
) -> tuple[Cells, Floats]:
    """One round: the cells of these centres (about the mean, of the features that vary), and the variance of each coordinate's
    sum. A feature counts as no farther from the mean than `reach` of its deviations.

    Guarantee: that of `Door.measure` for the portion, for one person's rows. A row is in the cell of one centre: it moves one
    count by 1 and one cell's sum of each feature by at most half of the box; the door gives each of these d + 1 columns an equal
    share and noise for all rows that one person may have. Which cell it is follows from the row and from released centres.
    """
    cell, columns = nearest_cell(sight, centres), moved_columns(sight, reach)
    one = ("one of each", Const(1))
    relation = Extended(source=sight.relation, scalars=(("cell", cell), one, *columns))
    names = ["one of each", *(name for name, _ in columns)]
    question = Question(table=relation, by=("cell",), statistics=tuple(Sum(column=name, name=name) for name in names))
    release = account.ask(question, portion, what)
    cells = release.groups["cell"].values.astype(np.int64)
    formulas = {formula.name: formula for formula in release.formulas}
    values, noises = [], []
    for name in names:
        formula = formulas[name]
        assert isinstance(formula, Linear)
        found = np.zeros(len(centres))  # a cell that no row can be in, by the declarations alone, is not in the answer
        found[cells] = formula.series(release.readings).values.astype(np.float64)
        values.append(found)
        noises.append(variance(formula.terms(release.readings)))
    sums, own = np.stack(values[1:], axis=1), np.array(noises[1:])
    return cells_of(values[0], sums, float(own.mean()), size=sight.size, count_noise=noises[0]), own


def rounds_of_table(
    account: BudgetAccount, sight: Sight, centres: Floats, portions: Sequence[Fraction], *, reach: float, first: int
) -> tuple[Floats, Cells, Floats]:
    """As many rounds as there are portions: centres (`drawn_in`), the last round's cells, and its sums' variances.

    Guarantee: all portions together: each round is chosen by the releases of those before it (adaptive composition).
    """
    for number, portion in enumerate(portions, first):
        cells, own = round_of_table(account, sight, centres, portion, f"counts and sums of round {number}", reach=reach)
        centres, _ = drawn_in(cells.means, cells.variance, spread=sight.spread)
    return centres, cells, own


def _known(sight: Sight, cells: Cells, own: Floats, groups: npt.NDArray[np.int64], *, clusters: int, reach: float) -> Centres:
    """What was measured of the cells of each centre, of all features."""
    d = len(sight.mean)
    counts, number = np.zeros(clusters), np.zeros(clusters)
    sums, noise, far = np.zeros((clusters, d)), np.zeros((clusters, d)), np.zeros(d)
    each = np.zeros((len(cells.noisy), d))
    each[:, sight.active] = cells.sums
    np.add.at(counts, groups, cells.noisy)
    np.add.at(sums, groups, each)
    np.add.at(number, groups, 1.0)
    noise[:, sight.active] = number[:, None] * own
    origin = sight.mean.copy()
    origin[sight.active], far[sight.active] = np.array(moved_ranges(sight, reach), dtype=np.float64).T
    return Centres(
        origin=origin,
        counts=counts,
        sums=sums,
        count_noise=number * cells.count_noise,
        sum_noise=noise,
        reach=far,
        lost=sight.lost,
    )
