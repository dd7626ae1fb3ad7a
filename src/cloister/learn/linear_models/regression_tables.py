"""Linear regression from the engine of a table: sums of computed columns, so that no row comes into memory.

Each feature and the target are measured from the middle of their bounds. What is asked is the number of rows, the sum of each,
the sum of each product of two, and for squares the sum less half of the largest square: then a person moves each by as little
as can be. All share one spend, in one charge.

Where rows are masked cells, the same sums of numbers that are never missing come from the blocks that variances and covariances
are made of (`cloister.session.planning.moments`): for each feature its square, for each two columns their product. Guarantee:
that of the question. The number of rows and the sum of the target are taken from the blocks of features with the target, the sum
of a feature from its square's. In the middle of the bounds these are contrasts of a block's parts that
have no noise in common, nor with the products, as the margins need: of a square's parts with equal noise the sum (-1/2, 0, 1/2)
and the square (1/4, -1/4, 1/4) are orthogonal, and of a product's four parts the number of rows, both sums and the product are.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from cloister.learn.bayesian.bayes import kept_share
from cloister.learn.bayesian.class_tables import allowance_for
from cloister.learn.decomposition.products import Products
from cloister.learn.frame.encoding import Encoder
from cloister.learn.linear_models.least_squares import solved
from cloister.learn.linear_models.line_margins import Cut, Evidence
from cloister.learn.linear_models.regression_rows import FittedLine, Frame, alpha_of, steady_size
from cloister.noise.allowance import Allowance
from cloister.session import Count, Covariance, Measurer, Question, Release, Spending, Sum, Variance
from cloister.session.planning.moments import Moments
from cloister.session.releases.formulas import Linear
from cloister.session.releases.moment_formulas import Moment
from cloister.session.releases.uncertainty import variance
from cloister.tables import (
    Base,
    Boolean,
    Category,
    Column,
    Compare,
    Date,
    Domain,
    Extended,
    Filtered,
    Literal,
    PrivateTable,
    Relation,
)
from cloister.tables.expression.expressions import none_missing
from cloister.tables.expression.scalars import Case, Const, Multiply, Ref, Round, Scalar, Subtract
from cloister.tables.relations.day_numbers import day_number, free_name

Floats = npt.NDArray[np.float64]
_MOST_STEPS = 10**9
"""From the middle to a bound: a product of two such numbers has fewer than 2^62 steps. What rounding moves is less than a
thousand-millionth of what a person may count."""
_SURE = 5.0
_UNEVEN = (
    "Some rows lack a value of a column that is not declared nullable, and masked cells can't leave them out: the line is another"
    " one than that of complete rows. Instead: a batch that was sealed without such rows"
)


class Sums:
    """The released sums by name, in the units of the frame, with the variances of their noise."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.formulas = {formula.name: formula for formula in release.formulas}

    def value(self, name: str, unit: float = 1.0) -> float:
        """The one number."""
        return float(self.release[name][0]) / unit

    def variance(self, name: str, unit: float = 1.0) -> float:
        """Of the noise in it."""
        formula = self.formulas[name]
        assert isinstance(formula, Linear)
        return variance(formula.terms(self.release.readings)) / unit**2


def centred_columns(
    table: str, declaration: PrivateTable, encoder: Encoder, extra: Sequence[str], *, intercept: bool, known: Sequence[str] = ()
) -> tuple[Relation, list[str]]:
    """The rows in which nothing is missing (of `known` neither), with a column for each feature of the encoder and each other,
    less the middle of its bounds; and the names of those columns. One of very many steps is rounded to a power of ten, by what is
    declared of it alone, so that products of two can be counted in whole steps."""
    columns = [*encoder.columns, *((name, declaration.column(name)) for name in extra)]
    where = none_missing([*(name for name, _ in columns), *known])
    relation = Filtered(source=Base(name=table, table=declaration), where=where)
    scalars: list[tuple[str, Scalar]] = []
    for name, domain in columns:
        for scalar, low, high in _numbers(name, domain):
            middle = (low + high) / 2 if intercept else Fraction(0)
            moved: Scalar = Subtract(scalar, Const(middle)) if middle else scalar
            farthest = max(abs(high - middle), abs(low - middle))
            if farthest > _MOST_STEPS * (domain.step or 1):
                moved = Round(moved, next(digits for digits in range(30, -30, -1) if farthest * 10**digits <= _MOST_STEPS))
            scalars.append((free_name(f"part {len(scalars)}", declaration), moved))
    return Extended(source=relation, scalars=tuple(scalars)), [name for name, _ in scalars]


def product_sums(relation: Relation, names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> tuple[Relation, list[Sum]]:
    """The relation with the products of these columns, and their sums: of squares less half of the largest."""
    products: list[tuple[str, Scalar]] = []
    for one, other in pairs:
        product: Scalar = Multiply(Ref(names[one]), Ref(names[other]))
        if one == other:
            product = Subtract(product, Const(square_middle(relation.columns[names[one]])))
        products.append((f"{names[one]} × {names[other]}", product))
    extended = Extended(source=relation, scalars=tuple(products))
    return extended, [Sum(column=name, name=name) for name, _ in products]


def square_middle(domain: Domain) -> Fraction:
    """Half of the largest square that a column may hold."""
    ends = (domain.origin + code * domain.step for code in (domain.low_code, domain.high_code))
    return Fraction(max(end * end for end in ends)) / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """What was released of the columns, features first and the target last, in the units of the frame, with the variances of the
    noise."""

    rows: float
    rows_variance: float
    sums: Floats
    sums_variance: Floats
    products: Floats
    """Of each pair of `pairs_of`."""
    products_variance: Floats
    halves: Floats
    """Of each feature, what each row's square is less by."""
    uneven: float = 0.0
    """How many rows some of these numbers lack."""


def pairs_of(features: int) -> list[tuple[int, int]]:
    """The squares of the features, their products, and those with the target, which comes last.

    >>> pairs_of(2)
    [(0, 0), (1, 1), (0, 1), (0, 2), (1, 2)]
    """
    d = features
    return [(i, i) for i in range(d)] + list(combinations(range(d), 2)) + [(i, d) for i in range(d)]


def line_of_table(
    session: Measurer,
    table: str,
    encoder: Encoder,
    target: str,
    spend: Spending,
    frame: Frame,
    *,
    intercept: bool,
    alpha: float,
    purpose: str,
) -> tuple[FittedLine, Allowance]:
    """The line, and what was spent."""
    declaration = session.tables[table]
    assert isinstance(declaration, PrivateTable)
    domains = [domain for _, domain in encoder.columns] + [declaration.column(target)]
    never_missing = all(each.kind in ("integer", "real") and not each.nullable for each in domains)
    measure = by_moments if never_missing and not declaration.abilities.relations else by_columns
    measured, allowance = measure(session, table, encoder, target, spend, frame, intercept=intercept, purpose=purpose)
    return _line(measured, frame, intercept=intercept, alpha=alpha), allowance


def by_columns(
    session: Measurer, table: str, encoder: Encoder, target: str, spend: Spending, frame: Frame, *, intercept: bool, purpose: str
) -> tuple[Measured, Allowance]:
    """Sums of computed columns."""
    declaration = session.tables[table]
    assert isinstance(declaration, PrivateTable)
    relation, names = centred_columns(table, declaration, encoder, [target], intercept=intercept)
    d = len(names) - 1
    pairs = pairs_of(d)
    extended, products = product_sums(relation, names, pairs)
    plain = [Sum(column=name, name=name) for name in names] if intercept else []
    count = Question(table=relation, statistics=(Count(),))
    sums = Question(table=extended, statistics=(*plain, *products))
    counted, summed = session.measure_all([count, sums], spend, purpose=purpose)
    allowance = allowance_for(
        summed, {"number of rows": Fraction(1), "sums": Fraction(max(len(plain), 1)), "sums of products": Fraction(len(products))}
    )
    scale, found = np.append(frame.scale, frame.target_scale), Sums(summed)
    units = [float(scale[one] * scale[other]) for one, other in pairs]
    named = [(each.name, unit) for each, unit in zip(products, units, strict=True)]
    moved = [(each.column, float(unit)) for each, unit in zip(plain, scale, strict=True)] if intercept else []
    measured = Measured(
        rows=Sums(counted).value("count"),
        rows_variance=Sums(counted).variance("count"),
        sums=np.array([found.value(*each) for each in moved]),
        sums_variance=np.array([found.variance(*each) for each in moved]),
        products=np.array([found.value(*each) for each in named]),
        products_variance=np.array([found.variance(*each) for each in named]),
        halves=np.array([float(square_middle(relation.columns[names[one]])) / units[one] for one in range(d)]),
    )
    return measured, allowance


def by_moments(
    session: Measurer, table: str, encoder: Encoder, target: str, spend: Spending, frame: Frame, *, intercept: bool, purpose: str
) -> tuple[Measured, Allowance]:
    """The same from the blocks of variances and covariances of declared columns. A row that lacks a value counts in the sums of
    the other columns: that is told where blocks have other numbers of rows than by noise, and margins are of it."""
    names = [*(name for name, _ in encoder.columns), target]
    pairs = pairs_of(len(names) - 1)
    asked: list[Variance | Covariance] = [
        Variance(column=names[one], name=names[one])
        if one == other
        else Covariance(x=names[one], y=names[other], name=f"{names[one]} × {names[other]}")
        for one, other in pairs
    ]
    release = session.measure(Question(table=table, statistics=tuple(asked)), spend, purpose=purpose)
    allowance = allowance_for(release, {"sums of products": Fraction(1)})
    formulas = {formula.name: formula for formula in release.formulas}
    origin, scale = np.append(frame.origin, frame.target_origin), np.append(frame.scale, frame.target_scale)
    rows, sums = list[tuple[float, float]](), [list[tuple[float, float]]() for _ in names]
    products = []
    for (one, other), each in zip(pairs, asked, strict=True):
        formula = formulas[each.name]
        assert isinstance(formula, Moment)
        block = _Block(formula.moments, release)
        # each column of the frame is a + b·p, for the place p of a value between its bounds
        ends = zip((one, other), formula.lows, formula.widths, strict=False)
        lines = [((low - origin[place]) / scale[place], width / scale[place]) for place, low, width in ends]
        rows.append(block.sum({(0,) * len(lines): 1.0}))
        if one == other:
            [(a, b)] = lines
            products.append(block.sum({(0,): a * a, (1,): 2 * a * b, (2,): b * b}))
            sums[one].append(block.sum({(0,): a, (1,): b}))
            continue
        (a, b), (c, e) = lines
        products.append(block.sum({(0, 0): a * c, (1, 0): b * c, (0, 1): a * e, (1, 1): b * e}))
        if other == len(names) - 1:
            sums[other].append(block.sum({(0, 0): c, (0, 1): e}))
    size, size_variance = _mean(rows[1 - len(names) :])
    counts, noises = np.array(rows).T
    uneven = float((counts.max() - counts).sum()) if np.ptp(counts) > 0.5 + _SURE * math.sqrt(2 * noises.max()) else 0.0
    if uneven:
        warnings.warn(_UNEVEN, UserWarning, stacklevel=6)
    moved = np.array([_mean(each) for each in sums]) if intercept else np.zeros((0, 2))
    found = np.array(products)
    measured = Measured(
        rows=size,
        rows_variance=size_variance,
        sums=moved[:, 0],
        sums_variance=moved[:, 1],
        products=found[:, 0],
        products_variance=found[:, 1],
        halves=np.zeros(len(names) - 1),
        uneven=uneven,
    )
    return measured, allowance


@dataclass(frozen=True, eq=False)
class _Block:
    """A block of a release that has no groups."""

    moments: Moments
    release: Release

    def sum(self, polynomial: Mapping[tuple[int, ...], float]) -> tuple[float, float]:
        """A polynomial of the places, summed over all rows, and the variance of its noise."""
        readings = self.release.readings
        values = self.moments.values(readings)
        weights = self.moments.weights({power: np.array([factor]) for power, factor in polynomial.items()})
        value = sum(factor * float(values[power][0]) for power, factor in polynomial.items())
        return value, sum(float(weight[0]) ** 2 * variance(readings[name].terms) for name, weight in weights.items())


def _mean(several: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Of numbers with noises of their own, with the variance of its noise."""
    values, variances = np.array(several).T
    return float(values.mean()), float(variances.sum()) / len(several) ** 2


def _line(measured: Measured, frame: Frame, *, intercept: bool, alpha: float) -> FittedLine:
    """The line that follows from what was measured."""
    rows, rows_variance, halves = measured.rows, measured.rows_variance, measured.halves
    d = len(halves)
    size = steady_size(rows, rows_variance)
    matrix, with_target = np.zeros((d, d)), np.zeros(d)
    diagonal, off, target_variance = [0.0], [0.0], [0.0]
    for (one, other), value, noise in zip(pairs_of(d), measured.products, measured.products_variance, strict=True):
        if other == d:
            with_target[one] = value
            target_variance.append(float(noise))
            continue
        matrix[one, other] = matrix[other, one] = value + (size * halves[one] if one == other else 0.0)
        (diagonal if one == other else off).append(float(noise))
    means, height = np.zeros(d), 0.0
    height_noise = 0.0
    whole, beside, plain_variance = matrix - np.diag((size - rows) * halves), with_target, 0.0
    if intercept:
        moved, noises = measured.sums, measured.sums_variance
        kept = kept_share(np.array([float((moved[:d] ** 2).sum())]), np.array([float(noises[:d].sum())]))
        means, height = np.clip(moved[:d] / size * kept, -1.0, 1.0), float(np.clip(moved[d] / size, -1.0, 1.0))
        matrix = matrix - size * np.outer(means, means)
        with_target = with_target - size * means * height
        height_noise = float(np.sqrt(noises[d])) / size
        whole = np.block([[np.array([[rows]]), moved[None, :d]], [moved[:d, None], whole]])
        beside, plain_variance = np.concatenate([moved[d:], beside]), float(noises.max())
    line = solved(
        Products(matrix=matrix, diagonal=max(diagonal), off=max(off)),
        with_target,
        max(target_variance),
        most=size * d,
        alpha=alpha_of(alpha, frame),
    )
    shared = rows_variance * (1 + float((halves**2).sum()))  # the noise of the rows is on the whole diagonal
    evidence = Evidence(
        matrix=whole,
        with_target=beside,
        entry=max(max(diagonal) / 2, max(off), plain_variance) + rows_variance * max(1.0, float(halves.max())) ** 2 / 2,
        whole=d * max(diagonal) + d * (d - 1) * max(off) + 2 * d * plain_variance + shared,
        target=max(*target_variance, plain_variance),
        constant=intercept,
        cut=Cut.lacking(measured.uneven, len(whole)) if measured.uneven else None,
    )
    return frame.line(line.weights, line.noise, height - float(line.weights @ means), height_noise, evidence)


def _numbers(name: str, domain: Domain) -> list[tuple[Scalar, Fraction, Fraction]]:
    """The numbers that a column becomes (as in `Encoder`), with their bounds."""
    zero, one = Const(0), Const(1)
    if isinstance(domain, Category):
        return [
            (Case(((Compare("=", Column(name), Literal(value)), one),), zero), Fraction(0), Fraction(1))
            for value in domain.values()
        ]
    if isinstance(domain, Boolean):
        return [(Case(((Compare("=", Column(name), Literal(True)), one),), zero), Fraction(0), Fraction(1))]
    if isinstance(domain, Date):
        return [(day_number(name), Fraction(domain.low_code), Fraction(domain.high_code))]
    assert domain.step is not None
    low, high = (Fraction(domain.origin + code * domain.step) for code in (domain.low_code, domain.high_code))
    return [(Ref(name), low, high)]
