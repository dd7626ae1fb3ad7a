"""Linear regression from the engine of a table: sums of computed columns, so that no row comes into memory.

Each feature and the target are measured from the middle of their bounds. What is asked is the number of rows, the sum of each,
the sum of each product of two, and for squares the sum less half of the largest square: then a person moves each by as little
as can be. All share one spend, in one charge.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cloister.errors import UnsupportedQuery
from cloister.learn.bayesian.bayes import kept_share
from cloister.learn.bayesian.class_tables import allowance_for
from cloister.learn.decomposition.products import Products
from cloister.learn.frame.encoding import Encoder
from cloister.learn.linear_models.least_squares import solved
from cloister.learn.linear_models.line_margins import Evidence
from cloister.learn.linear_models.regression_rows import FittedLine, Frame, alpha_of, steady_size
from cloister.noise.allowance import Allowance
from cloister.session.questions.question import Count, Question, Sum
from cloister.session.releases.formulas import Linear
from cloister.session.releases.uncertainty import variance
from cloister.tables import (
    And,
    Base,
    Boolean,
    Category,
    Column,
    Compare,
    Domain,
    Expression,
    Extended,
    Filtered,
    IsNull,
    Literal,
    Not,
    PrivateTable,
    Relation,
)
from cloister.tables.expression.scalars import Case, Const, Multiply, Ref, Scalar, Subtract

if TYPE_CHECKING:
    from cloister.session import Measurer
    from cloister.session.questions.spend import Spending
    from cloister.session.releases.release import Release

Floats = npt.NDArray[np.float64]


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
    table: str, declaration: PrivateTable, encoder: Encoder, extra: Sequence[str], *, intercept: bool
) -> tuple[Relation, list[str]]:
    """The rows in which nothing is missing, with a column for each feature of the encoder and each other, less the middle of
    its bounds; and the names of those columns.
    """
    relation: Relation = Base(name=table, table=declaration)
    columns = [*encoder.columns, *((name, declaration.column(name)) for name in extra)]
    present: list[Expression] = [Not(IsNull(Column(name))) for name, domain in columns if domain.nullable]
    if present:
        relation = Filtered(source=relation, where=present[0] if len(present) == 1 else And(*present))
    scalars: list[tuple[str, Scalar]] = []
    for name, domain in columns:
        for scalar, low, high in _numbers(name, domain):
            middle = (low + high) / 2 if intercept else Fraction(0)
            scalars.append((_free(f"part {len(scalars)}", declaration), Subtract(scalar, Const(middle)) if middle else scalar))
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
    relation, names = centred_columns(table, declaration, encoder, [target], intercept=intercept)
    d = len(names) - 1
    pairs = [(i, i) for i in range(d)] + list(combinations(range(d), 2)) + [(i, d) for i in range(d)]
    extended, products = product_sums(relation, names, pairs)
    plain = [Sum(column=name, name=name) for name in names] if intercept else []
    count = Question(table=relation, statistics=(Count(),))
    sums = Question(table=extended, statistics=(*plain, *products))
    counted, summed = session.measure_all([count, sums], spend, purpose=purpose)
    allowance = allowance_for(
        summed, {"number of rows": Fraction(1), "sums": Fraction(max(len(plain), 1)), "sums of products": Fraction(len(products))}
    )
    scale = np.append(frame.scale, frame.target_scale)
    found = Sums(summed)
    rows, rows_variance = Sums(counted).value("count"), Sums(counted).variance("count")
    size = steady_size(rows, rows_variance)
    matrix, with_target = np.zeros((d, d)), np.zeros(d)
    diagonal, off, target_variance, halves = [0.0], [0.0], [0.0], np.zeros(d)
    for (one, other), statistic in zip(pairs, products, strict=True):
        unit = float(scale[one] * scale[other])
        value, noise = found.value(statistic.name, unit), found.variance(statistic.name, unit)
        if other == d:
            with_target[one] = value
            target_variance.append(noise)
            continue
        if one == other:
            halves[one] = float(square_middle(relation.columns[names[one]])) / unit
            value += size * halves[one]
        matrix[one, other] = matrix[other, one] = value
        (diagonal if one == other else off).append(noise)
    means, height = np.zeros(d), 0.0
    height_noise = 0.0
    measured, beside, plain_variance = matrix - np.diag((size - rows) * halves), with_target, 0.0
    if intercept:
        moved = np.array([found.value(name, unit) for name, unit in zip(names, scale, strict=True)])
        noises = np.array([found.variance(name, unit) for name, unit in zip(names, scale, strict=True)])
        kept = kept_share(np.array([float((moved[:d] ** 2).sum())]), np.array([float(noises[:d].sum())]))
        means, height = np.clip(moved[:d] / size * kept, -1.0, 1.0), float(np.clip(moved[d] / size, -1.0, 1.0))
        matrix = matrix - size * np.outer(means, means)
        with_target = with_target - size * means * height
        height_noise = float(np.sqrt(noises[d])) / size
        measured = np.block([[np.array([[rows]]), moved[None, :d]], [moved[:d, None], measured]])
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
        matrix=measured,
        with_target=beside,
        entry=max(max(diagonal) / 2, max(off), plain_variance) + rows_variance * max(1.0, float(halves.max())) ** 2 / 2,
        whole=d * max(diagonal) + d * (d - 1) * max(off) + 2 * d * plain_variance + shared,
        target=max(*target_variance, plain_variance),
        constant=intercept,
    )
    return frame.line(line.weights, line.noise, height - float(line.weights @ means), height_noise, evidence), allowance


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
    if domain.kind == "date" or domain.step is None:
        raise UnsupportedQuery(
            f"The column {name!r} is not supported",
            why="days are not summed",
            instead=f'columns={{"{name}": cl.Integer(1900, 2030)}}',
        )
    low, high = (Fraction(domain.origin + code * domain.step) for code in (domain.low_code, domain.high_code))
    return [(Ref(name), low, high)]


def _free(name: str, declaration: PrivateTable) -> str:
    """A name that no declared column has."""
    while name in declaration.columns:
        name += "'"
    return name
