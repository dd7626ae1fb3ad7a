"""k-means by a table's own engine: each round is one question at the door, and no row comes into memory.

A round asks for the number of rows and the sums of the features by nearest centre. The centres are released, so which one is
nearest is a computed column of linear forms, which DuckDB, PostgreSQL and Spark work out row by row. The sums
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

from cloister.errors import UnsupportedQuery
from cloister.learn.clustering.centre_margins import Centres
from cloister.learn.clustering.kmeans_plan import GROWTH, plan_of
from cloister.learn.clustering.lloyd import Cells, cells_of, drawn_in
from cloister.learn.clustering.starts import REACH, spread_starts, weighted_centres
from cloister.learn.decomposition.covariance_tables import moments_of, question_of
from cloister.learn.frame.budget_account import BudgetAccount
from cloister.learn.frame.encoding import Encoder
from cloister.learn.linear_models.regression_tables import centred_columns
from cloister.noise import Allowance, Random
from cloister.privacy import ZCDP
from cloister.session.questions.question import Count, Covariance, Question, Sum
from cloister.session.releases.formulas import Linear
from cloister.session.releases.uncertainty import variance
from cloister.tables import Domain, Extended, PrivateTable, Relation
from cloister.tables.expression.scalars import (
    Add,
    Clamp,
    Coalesce,
    Const,
    Floor,
    GreatestOf,
    Modulo,
    Multiply,
    Ref,
    Scalar,
    Subtract,
)

_SCORE_BITS = 44
_FINE = 12
"""A moved feature has 2^12 steps across its bounds, or its own where these are finer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sight:
    """The rows as the rounds see them: a relation with one number a feature, and what is released about where they lie."""

    relation: Relation
    names: tuple[str, ...]
    """Of the features that can vary."""
    active: npt.NDArray[np.bool_]
    """Which of all features these are."""
    size: float
    mean: Floats
    """Of all features, within their bounds."""
    variances: Floats
    """Of the features, between a hundredth of the greatest possible and that."""
    lost: Floats
    """What the squared distances may add up to of values farther off than `reach` deviations that noise alone made too few."""
    low: Floats
    high: Floats

    @property
    def spread(self) -> float:
        """The mean squared distance from the mean."""
        return float(self.variances[self.active].sum())


def nearest_cell(sight: Sight, centres: Floats) -> Scalar:
    """The number of the nearest centre, as a column that any engine can work out.

    Everything here is made of declarations and of released values; no row is looked at.

    |x − c|² is least where c·x − |c|²/2 is greatest. Each of these linear forms is rounded to whole coefficients of the features'
    steps; then times the number of centres plus the centre's own number, so that the greatest of all says by its remainder which
    one it was, and a tie is one centre's by rule. A row's cell is thus a function of whole numbers: the same on every engine.
    """
    count = len(centres)
    coefficients, constants, grids = _whole_forms(sight, centres)
    forms: list[Scalar] = []
    for place in range(count):
        terms: list[Scalar] = [Const(int(constants[place]) * count + place)]
        for name, coefficient, grid in zip(sight.names, coefficients[place], grids, strict=True):
            if coefficient:
                terms.append(Multiply(Const(Fraction(int(coefficient) * count) / grid), Ref(name)))
        forms.append(_sum(terms))
    return Floor(Modulo(GreatestOf(tuple(forms)), Const(count))) if count > 1 else Const(0)


def _whole_forms(sight: Sight, centres: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[Fraction]]:
    """Whole coefficients and constants of the linear forms over the features' steps, none of them below 0."""
    grids = [_grid(name, sight.relation.columns[name]) for name in sight.names]
    domains = [sight.relation.columns[name] for name in sight.names]
    size = np.array([float(grid) for grid in grids])
    ends = np.array([[float(_value(domain, code)) for code in (domain.low_code, domain.high_code)] for domain in domains])
    mean = sight.mean[sight.active]
    slopes, heights = centres * size, -(centres @ mean) - (centres**2).sum(axis=1) / 2
    steps = np.abs(ends).max(axis=1) / size
    widest = float((np.abs(slopes) @ steps + np.abs(heights)).max())
    unit = max(widest, 1e-300) * 2.0**-_SCORE_BITS
    coefficients = np.rint(slopes / unit).astype(np.int64)
    coefficients -= coefficients.min(axis=0)  # the same is added to all forms, and the products with numbers below 0 are saved
    constants = np.rint(heights / unit).astype(np.int64)
    furthest = np.abs(coefficients).astype(object) @ np.ceil(steps).astype(np.int64).astype(object)
    return coefficients, constants + int((furthest + np.abs(constants).astype(object)).max()), grids


def _grid(name: str, domain: Domain) -> Fraction:
    """The step of which all values of a column are whole multiples."""
    form = Ref(name).form({name: domain})
    found = getattr(form, "grid", None)
    if not isinstance(found, Fraction) or found <= 0:
        raise UnsupportedQuery(
            f"The feature {name!r} is not supported", why="its values are not numbers in steps", instead='method="lloyd"'
        )
    return found


def _value(domain: Domain, code: int) -> Fraction:
    assert domain.step is not None
    return Fraction(domain.origin + code * domain.step)


def moved_columns(sight: Sight, reach: float) -> list[tuple[str, Scalar]]:
    """Each feature from its mean, within `reach` deviations: on steps of its own or, where these are coarse, on finer ones."""
    pairs = zip(sight.names, moved_ranges(sight, reach), strict=True)
    return [(f"moved {name}", Clamp(Subtract(Ref(name), Const(middle)), -wide, wide)) for name, (middle, wide) in pairs]


def moved_ranges(sight: Sight, reach: float) -> list[tuple[Fraction, Fraction]]:
    """Of each feature that varies the middle that it is moved by (the mean, on its steps), and how far it may be from it."""
    found = []
    for name, mean, square in zip(sight.names, sight.mean[sight.active], sight.variances[sight.active], strict=True):
        domain = sight.relation.columns[name]
        grid = _grid(name, domain)
        low, high = _value(domain, domain.low_code), _value(domain, domain.high_code)
        step = grid / 2 ** max(0, _FINE - ((high - low) / grid).__ceil__().bit_length() + 1)
        middle = min(max(round(Fraction(float(mean)) / step) * step, low), high)
        far = max(math.ceil(reach * math.sqrt(square) / float(step)), 1) * step
        found.append((middle, min(far, max(high - middle, middle - low))))
    return found


def present_columns(relation: Relation, names: Sequence[str]) -> tuple[Relation, list[str]]:
    """The same numbers under names of their own, declared as never missing: the rows in which one is were left out."""
    scalars: list[tuple[str, Scalar]] = []
    for name in names:
        domain = relation.columns[name]
        scalar: Scalar = Ref(name)
        scalars.append((f"{name}!", Coalesce((scalar, Const(_value(domain, domain.low_code)))) if domain.nullable else scalar))
    return Extended(source=relation, scalars=tuple(scalars)), [name for name, _ in scalars]


def _sum(terms: Sequence[Scalar]) -> Scalar:
    """As flat a tree as can be: only so many scalars may stand inside one another."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return Add(_sum(terms[:half]), _sum(terms[half:]))


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
        # squared distances from the released mean: what it is off by counts too, and bounds that follow from it hold for it alone
        off = _SURE * np.nan_to_num([float(margins[f"m{place}"][0]) for place in range(len(varied))], nan=np.inf)
        farthest = np.maximum(high - mean, mean - low)[active] ** 2
        greatest = np.minimum(np.diag(seen.covariance) + _SURE * given + off**2, farthest)
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
