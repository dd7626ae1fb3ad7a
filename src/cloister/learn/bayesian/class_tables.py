"""Class counts, sums and sums of squares from the engine of a table: no row comes into memory.

A number is measured as its quadratic block (`cloister.session.planning.moments`), which has the count, the sum and the sum of
squares for the price of one count; a category as counts by class and value. All share one spend, in one charge; a person is in
one class, so the classes compose in parallel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.learn.bayesian.moments import ClassMoments, Floats
from cloister.learn.frame.encoding import Encoder
from cloister.noise.allowance import Allowance
from cloister.session import Count, Measurer, Question, Release, Spending, Statistic, Variance
from cloister.session.planning.moments import Moments, lowered
from cloister.session.releases.uncertainty import variance
from cloister.tables import Category, Domain
from cloister.tables.relations.day_numbers import days_as_numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassCounts:
    """Counts of the values of one categorical feature (a column a value) in each class (a row), and the variance of each."""

    counts: Floats
    variance: float
    missing: Floats | None = None
    """How many of each class have no value, where it may be missing."""

    def sizes(self) -> tuple[Floats, float]:
        """How many rows each class has, and the variance of that."""
        width = self.counts.shape[1] + (self.missing is not None)
        return self.counts.sum(axis=1) + (0.0 if self.missing is None else self.missing), self.variance * width


@dataclass(frozen=True, kw_only=True, eq=False)
class TableMoments:
    """What the engine summed: of the numbers, in their order, and of the categories, in theirs."""

    numbers: ClassMoments
    categories: tuple[ClassCounts, ...]
    allowance: Allowance


def allowance_for(release: Release, parts: Mapping[str, Fraction]) -> Allowance:
    """What was promised for all readings of the release, those that were bought before included, and how it was shared."""
    promised = release.spent_by[release.provenance.population]
    allowance = Allowance(promised, marked=release.marked)
    whole = sum(parts.values(), Fraction(0))
    for name, part in parts.items():
        allowance.share(name, part / whole)
    return allowance


def from_table(
    session: Measurer, table: str, encoder: Encoder, target: str, classes: Sequence[Any], spend: Spending, purpose: str
) -> TableMoments:
    """Measure all that is needed, by class."""
    numbers = [(name, domain) for name, domain in encoder.columns if not isinstance(domain, Category)]
    listed = [(name, domain) for name, domain in encoder.columns if isinstance(domain, Category)]
    source, numbers = days_as_numbers(table, session.declared(table), numbers)
    questions = []
    if numbers:
        statistics: tuple[Statistic, ...] = (Count(), *(Variance(column=name) for name, _ in numbers))
        questions.append(Question(table=source, by=(target,), statistics=statistics))
    questions += [Question(table=table, by=(target, name), statistics=(Count(),)) for name, _ in listed]
    releases = session.measure_all(questions, spend, purpose=purpose)
    parts: dict[str, Fraction] = {}
    if numbers:
        parts["class counts, sums and sums of squares"] = Fraction(len(numbers))
    parts |= {f"counts of {name}": Fraction(1) for name, _ in listed}
    categories = tuple(
        _counts(release, target, classes, name, domain)
        for release, (name, domain) in zip(releases[len(releases) - len(listed) :], listed, strict=True)
    )
    found = _moments(releases[0], target, classes, numbers) if numbers else of_counts(categories, len(classes))
    return TableMoments(numbers=found, categories=categories, allowance=allowance_for(releases[0], parts))


def of_counts(counts: Sequence[ClassCounts], classes: int) -> ClassMoments:
    """How many rows each class has, from the counts of categories alone: the mean over the features."""
    nothing = np.zeros((classes, 0))
    return ClassMoments(
        sizes=np.mean([each.sizes()[0] for each in counts], axis=0),
        counts=nothing,
        sums=nothing,
        squares=nothing,
        size_variance=float(sum(each.sizes()[1] for each in counts)) / len(counts) ** 2,
        size_step=1.0,
    )


def _moments(release: Release, target: str, classes: Sequence[Any], numbers: Sequence[tuple[str, Domain]]) -> ClassMoments:
    """Σc and Σc² from the parts of the quadratic blocks B₀ = Σ(1−p)², B₁ = Σ2p(1−p), B₂ = Σp²: c = 2p − 1, so Σc = B₂ − B₀ and
    Σc² = B₀ + B₂ − B₁, and the number of values is B₀ + B₁ + B₂. With noise of variance V in each part these have variances 2V,
    3V, 3V. All columns count the rows of a class, with less noise in their mean; one that lacks values counts those it has. One
    that is not declared nullable lacks some, too, where more are missing than three deviations of the noise.
    """
    places = _places(release, target, classes)
    counts, sums, squares, sizes = [], [], [], []
    parts, own, steps, lacks = [], [], [], []
    for name, domain in numbers:
        block = Moments(sides=(lowered(2, domain.low_code, domain.high_code, name),))
        below, mixed, above = (release.readings[block.raw((i,))] for i in range(3))
        width = block.width
        steps.append(1 / width)
        parts.append(max(variance(below.terms), variance(mixed.terms), variance(above.terms)) / width**2)
        b0, b1, b2 = (reading.values.astype(np.float64)[places] / width for reading in (below, mixed, above))
        counts.append(b0 + b1 + b2)
        varied = domain.high_code > domain.low_code
        sums.append((b2 - b0) * varied)
        squares.append((b0 + b2 - b1) * varied)
        nulls = release.readings[f"nulls:{name}"]
        missing, noise = nulls.values.astype(np.float64)[places], variance(nulls.terms)
        lacks.append(domain.nullable or bool((missing > 3 * noise**0.5).any()))
        sizes.append(counts[-1] + missing * lacks[-1])
        own.append(3 * parts[-1] + noise * lacks[-1])
    part = np.array(parts)  # a step of noise is more of a narrow block than of a wide one
    size, size_variance = np.mean(sizes, axis=0), float(sum(own)) / len(own) ** 2
    return ClassMoments(
        sizes=size,
        counts=np.where(lacks, np.stack(counts, axis=1), size[:, None]),
        sums=np.stack(sums, axis=1),
        squares=np.stack(squares, axis=1),
        size_variance=size_variance,
        count_variance=np.where(lacks, 3 * part, size_variance),
        sum_variance=2 * part,
        square_variance=3 * part,
        covariance=np.where(lacks, part, part / len(numbers)),
        size_step=1.0,
        step=np.array(steps),
    )


def _counts(release: Release, target: str, classes: Sequence[Any], name: str, domain: Domain) -> ClassCounts:
    values = list(domain.values())
    keys = list(zip(release.groups[target].values.tolist(), release.groups[name].values.tolist(), strict=True))
    where = {key: place for place, key in enumerate(keys)}
    reading = next(iter(release.readings.values()))
    noisy = reading.values.astype(np.float64)
    counts = np.array([[noisy[where[label, value]] for value in values] for label in classes])
    missing = np.array([noisy[where[label, None]] for label in classes]) if domain.nullable else None
    return ClassCounts(counts=counts, variance=variance(reading.terms), missing=missing)


def _places(release: Release, target: str, classes: Sequence[Any]) -> npt.NDArray[np.int64]:
    """The row of each class in a release: the rows without a class are no class."""
    where = {value: place for place, value in enumerate(release.groups[target].values.tolist())}
    return np.array([where[label] for label in classes], dtype=np.int64)
