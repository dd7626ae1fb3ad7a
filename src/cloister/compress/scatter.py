"""Scatter: how rows lie about their mean, and how the means of classes do.

S̄ = Σ(x − μ)(x − μ)ᵀ is the scatter of all rows, S_B = Σ N_l (μ_l − μ)(μ_l − μ)ᵀ the one between the classes of a label, and
S_W = S̄ − S_B what is left within them. Every linear projection here is an eigenproblem of these three. Fewer rows than columns
(faces have thousands of pixels) lie in a space of few dimensions: then the matrices are kept in an orthonormal basis of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, numbers_alone
from cloister.privacy import Guarantee

if TYPE_CHECKING:
    from cloister.session import Measurer, Question, Release
    from cloister.session.questions.question import Statistic
    from cloister.session.questions.spend import Spending
    from cloister.tables import PrivateTable, PublicTable

Floats = npt.NDArray[np.float64]

_CLASSES = Fraction(1, 3)
MOST_COLUMNS = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Scatter:
    """The mean and the scatters of rows; `utility` and `private` are those between the classes of use and of the secret.

    >>> scatter = Scatter.of_rows(np.array([[0.0, 0], [0, 2], [4, 0], [4, 2]]), utility=["a", "a", "b", "b"])
    >>> scatter.total.tolist(), scatter.utility.tolist(), scatter.classes
    ([[16.0, 0.0], [0.0, 4.0]], [[16.0, 0.0], [0.0, 0.0]], 2)
    """

    mean: Floats
    total: Floats
    utility: Floats | None = None
    private: Floats | None = None
    classes: int = 0
    """How many classes of use there are."""
    basis: Floats | None = None
    """Orthonormal rows in whose coordinates the matrices are; None: those of the columns themselves."""
    cost: Guarantee | None = None
    """What the scatters cost at the door; None: they are those of the rows, and promise nothing."""

    @classmethod
    def of_rows(cls, X: npt.ArrayLike, utility: Any = None, private: Any = None) -> Scatter:
        """The exact scatters of rows."""
        with numbers_alone("X"):
            rows = np.asarray(X, dtype=np.float64)
        mean = rows.mean(axis=0)
        away = rows - mean
        basis = None
        if len(rows) <= rows.shape[1]:
            _, sizes, axes = np.linalg.svd(away, full_matrices=False)
            basis = axes[sizes > sizes.max(initial=0.0) * max(rows.shape) * np.finfo(float).eps]
            away = away @ basis.T
        between = [None if labels is None else _between(away, labels) for labels in (utility, private)]
        return cls(
            mean=mean,
            total=away.T @ away,
            utility=between[0],
            private=between[1],
            classes=0 if utility is None else len(np.unique(np.asarray(utility))),
            basis=basis,
        )

    @classmethod
    def measure(
        cls,
        session: Measurer,
        table: str,
        *,
        spend: Spending,
        columns: Sequence[str],
        utility: str | None = None,
        private: str | None = None,
        purpose: str = "scatter",
    ) -> Scatter:
        """The scatters of a private table with noise, for one charge; every projection that is fitted to them is post-processing.

        Guarantee: that of the charge. Measured are the covariances of the columns, and their means by each label, a part of the
        spend each (`session.measure_all`, which names neighbours, sensitivities and noise); columns and classes are declared.

        Columns are scaled to [−1, 1] by their declared bounds: fit a projection by `fit_scatter`, and scale rows by the bounds
        before they are transformed.

        >>> from cloister.privacy import PureDP
        >>> from cloister.session import Door
        >>> from cloister.tables import Category, Integer, PrivateTable
        >>> rows = {"ill": [0, 1] * 500, "weight": [60, 80] * 500, "height": [160, 170, 180, 190] * 250}
        >>> domains = {"ill": Category([0, 1]), "weight": Integer(40, 120), "height": Integer(140, 210)}
        >>> with Door({"people": PrivateTable(rows, domains)}, budget=PureDP(9)) as door:
        ...     scatter = Scatter.measure(door, "people", columns=["weight", "height"], utility="ill", spend=9)
        >>> scatter.utility.shape, scatter.classes, str(scatter.cost)
        ((2, 2), 2, 'ε = 9')
        """
        columns = list(columns)
        questions, shares = scatter_questions(session.declared(table), table, columns, utility, private)
        labels = [each for each in (utility, private) if each is not None]
        low, high = bounds_of(session.declared(table), columns)
        whole, *by = session.measure_all(questions, spend, purpose=purpose, shares=shares)
        read = [_classes(release, low, high, keys=1 if labels else 0) for release in by]
        counts = [np.maximum(found[0], 0.0) for found in read]
        number = max(float(np.mean([found.sum() for found in counts])), 1.0)
        mean = np.mean([size @ means / max(size.sum(), 1.0) for size, (_, means) in zip(counts, read, strict=True)], axis=0)
        between = [((means - mean) * size[:, None]).T @ (means - mean) for size, (_, means) in zip(counts, read, strict=True)]
        told = whole.provenance
        return cls(
            mean=mean,
            total=positive((number - 1) * _covariances(whole, len(columns), high - low)),
            utility=between[0] if utility is not None else None,
            private=between[-1] if private is not None else None,
            classes=len(counts[0]) if utility is not None else 0,
            cost=whole.spent_by[told.population],
        )

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.mean)


def rows_of(estimator: Any, X: npt.ArrayLike, **how: Any) -> Floats:
    """The rows that an estimator was given, as scikit-learn checks them."""
    from sklearn.utils.validation import validate_data

    with numbers_alone("X"):
        return np.asarray(validate_data(estimator, X, dtype=np.float64, **how))


def scatter_questions(
    declared: PrivateTable | PublicTable, table: str, columns: Sequence[str], utility: str | None, private: str | None
) -> tuple[list[Question], list[Fraction]]:
    """What the door is asked for scatters, of rows in which nothing is missing, and the share of the spend of each: two thirds
    for the covariances."""
    from cloister.session import Count, Covariance, Mean, Question, Variance
    from cloister.tables.expression.expressions import none_missing
    from cloister.tables.relations.day_numbers import days_as_numbers

    if not 1 <= len(columns) <= MOST_COLUMNS:
        raise InvalidParameter(
            "columns= is invalid", why=f"from 1 to {MOST_COLUMNS} columns are measured", instead='columns=["age", "pay"]'
        )
    labels, domains = [each for each in (utility, private) if each is not None], declared.columns or {}
    bounds_of(declared, columns, labels)
    source, numbers = days_as_numbers(table, declared, [(name, domains[name]) for name in columns])
    columns = [name for name, _ in numbers]
    first: tuple[Statistic, ...] = (Count(), *(Mean(column=name) for name in columns))
    second: tuple[Statistic, ...] = (
        *(Variance(column=name) for name in columns),
        *(Covariance(x=x, y=y) for x, y in combinations(columns, 2)),
    )
    known = [*labels, *columns]
    if not declared.abilities.relations:  # masked cells by all columns would be too many
        known = [each for each in labels if each in domains and domains[each].nullable]
    where = none_missing(known) if known else None
    questions = [Question(table=source, statistics=second, where=where)]
    questions += [Question(table=source, by=(label,), statistics=first, where=where) for label in labels]
    questions += [] if labels else [Question(table=source, statistics=first, where=where)]
    parts = max(len(labels), 1)
    return questions, [1 - _CLASSES, *[_CLASSES / parts] * parts]


def _between(away: Floats, labels: Any) -> Floats:
    """Of centred rows."""
    _, places = np.unique(np.asarray(labels), return_inverse=True)
    sizes = np.bincount(places).astype(np.float64)
    sums = np.zeros((len(sizes), away.shape[1]))
    np.add.at(sums, places, away)
    return np.asarray(sums.T @ (sums / sizes[:, None]))


def bounds_of(declared: Any, columns: Sequence[str], labels: Sequence[str] = ()) -> tuple[Floats, Floats]:
    """The declared ends of columns of numbers, by which they are scaled to [−1, 1]: a day is a number of days since 1970, a truth
    value 0 or 1. Labels that no rows divide are refused."""
    from cloister.tables import Boolean, Date, Integer, Real, Text
    from cloister.tables.engines import row_sums

    known = declared.columns or {}
    domains = [known.get(name) for name in columns]
    for name, domain in zip(columns, domains, strict=True):
        if not isinstance(domain, Integer | Real | Date | Boolean):
            raise InvalidParameter(
                f"The column {name!r} is invalid",
                why="a projected column is a number or a day with declared bounds, or a truth value",
                instead=f'"{name}": cl.Real(0, 100)' if isinstance(domain, Text) else "another column",
            )
    for name in labels:
        if getattr(known.get(name), "size", None) == 1:
            why = "a label has two values or more"
            raise InvalidParameter(f"The column {name!r} is invalid", why=why, instead="another label")
    low, high = np.array([row_sums.bounds_of(each)[0] for each in domains if each is not None]).T
    return low, np.where(high > low, high, low + 1)


def _classes(release: Release, low: Floats, high: Floats, *, keys: int) -> tuple[Floats, Floats]:
    """The noisy number of rows of each class, and its means on the scale of [−1, 1]: the middle where the noise hides them."""
    counts, *means = [
        np.array([np.nan if each is None else float(each) for each in column]) for column in _values(release)[keys:]
    ]
    scaled = (np.column_stack(means) - low) / (high - low) * 2 - 1
    return np.nan_to_num(counts), np.clip(np.nan_to_num(scaled), -1, 1)


def _covariances(release: Release, width: int, spread: Floats) -> Floats:
    values = [float(column[0] or 0.0) for column in _values(release)]
    found = np.diag(np.nan_to_num(np.array(values[:width])))
    for (one, other), value in zip(combinations(range(width), 2), values[width:], strict=True):
        found[one, other] = found[other, one] = np.nan_to_num(value)
    return np.asarray(found * 4 / np.outer(spread, spread))


def _values(release: Release) -> list[list[Any]]:
    return list(release.to_pydict().values())


def positive(matrix: Floats) -> Floats:
    """The nearest one without negative variance, which noise may leave."""
    roots, axes = np.linalg.eigh(matrix)
    return np.asarray((axes * np.maximum(roots, 0.0)) @ axes.T)
