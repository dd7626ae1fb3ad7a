"""Variances and covariances of a table's columns by its own engine: one question at the door, and no row in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.session.questions.question import Count, Covariance, Mean, Question, Variance
from cloister.tables import Relation

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class TableMoments:
    """Released: the number of rows, their mean, and their covariances (indefinite, where noise is large)."""

    size: float
    mean: Floats
    covariance: Floats
    widest: float
    """The widest 95 % margin of a covariance."""


def question_of(table: str | Relation, columns: Sequence[str]) -> Question:
    """The count, the means, the variances and the covariances of the columns: what their noise is, the door works out.

    >>> len(question_of("people", ["age", "hours"]).statistics)
    6
    """
    return Question(
        table=table,
        statistics=(
            Count(name="n"),
            *(Mean(column=name, name=f"m{place}") for place, name in enumerate(columns)),
            *(Variance(column=name, name=_name(place, place)) for place, name in enumerate(columns)),
            *(
                Covariance(x=one, y=other, name=_name(place, place + 1 + after))
                for place, one in enumerate(columns)
                for after, other in enumerate(columns[place + 1 :])
            ),
        ),
    )


def moments_of(answer: Mapping[str, Sequence[Any]], margins: Mapping[str, Sequence[Any]], features: int) -> TableMoments:
    """What was released, as arrays; what has no value (too few rows) is 0."""
    covariance, widest = np.zeros((features, features)), 0.0
    for one in range(features):
        for other in range(one, features):
            covariance[one, other] = covariance[other, one] = _number(answer[_name(one, other)])
            widest = max(widest, float(margins[_name(one, other)][0]))
    mean = np.array([_number(answer[f"m{place}"]) for place in range(features)])
    return TableMoments(size=max(_number(answer["n"]), 1.0), mean=mean, covariance=covariance, widest=widest)


def _name(one: int, other: int) -> str:
    return f"c{one}_{other}"


def _number(cell: Sequence[Any]) -> float:
    value = cell[0]
    return float(value) if value is not None and np.isfinite(value) else 0.0
