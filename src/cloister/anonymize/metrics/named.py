"""Metrics by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.metrics.base import Counted, LatticeMetric, Metric, dot, rows_of
from cloister.anonymize.metrics.information import Ambiguity, Divergence, Entropy
from cloister.anonymize.metrics.shares import CertaintyPenalty, Loss, Precision
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Recoded
from cloister.errors import InvalidParameter


@dataclass(frozen=True)
class Discernibility(Metric):
    """How many rows each row looks like: Σ|E|² over classes, and each suppressed row looks like all (Bayardo and Agrawal 2005).

    >>> print(Discernibility.name, Discernibility.monotone)
    discernibility True
    """

    name: ClassVar[str] = "discernibility"
    monotone: ClassVar[bool] = True
    words: ClassVar[str] = "how many rows each row looks like, summed"

    def score(self, problem: Problem, recoded: Recoded) -> float:
        """Σ|E|² + suppressed · rows."""
        rows, _ = rows_of(recoded)
        sizes = recoded.classes.sizes.astype(np.float64)
        return dot(sizes, sizes) + recoded.suppressed_rows * rows

    def on_lattice(self, problem: Problem) -> LatticeMetric:
        """From sizes."""
        return _Squares(problem)


class _Squares(LatticeMetric):
    by_classes: ClassVar[bool] = True

    def __init__(self, problem: Problem) -> None:
        self._rows = float(problem.table.total)

    def floor(self, node: Counted) -> float:
        """Σ|E|² of all classes: joining classes adds to it, and suppressing one costs |E|·n, no less than |E|²."""
        return node.squares

    def most_lost(self, best: float) -> float:
        """Each suppressed row costs n, and each other row at least 1."""
        return (best - self._rows) / (self._rows - 1.0) if self._rows > 1.0 else np.inf

    def score(self, node: Counted, kept: npt.NDArray[np.bool_]) -> float:
        """Σ|E|² + suppressed · rows."""
        sizes = node.sizes[kept].astype(np.float64)
        return dot(sizes, sizes) + (self._rows - float(sizes.sum())) * self._rows


@dataclass(frozen=True)
class AverageClassSize(Metric):
    """Rows for each class, over the k that was asked: n / (classes · k); 1 is the least that k-anonymity costs
    (LeFevre, DeWitt and Ramakrishnan 2006). Without k-anonymity among the models k is 1.

    >>> AverageClassSize().name
    'average class size'
    """

    name: ClassVar[str] = "average class size"
    monotone: ClassVar[bool] = True
    words: ClassVar[str] = "rows for each class, over k"

    def score(self, problem: Problem, recoded: Recoded) -> float:
        """n / (classes · k); n where no class is left."""
        rows, _ = rows_of(recoded)
        return _average(rows, recoded.classes.count, _k_of(problem))

    def on_lattice(self, problem: Problem) -> LatticeMetric:
        """From how many classes there are."""
        return _Count(problem)


class _Count(LatticeMetric):
    by_classes: ClassVar[bool] = True

    def __init__(self, problem: Problem) -> None:
        self._rows, self._k = float(problem.table.total), _k_of(problem)

    def floor(self, node: Counted) -> float:
        """All classes of a node: above it there are no more, and suppressing makes them fewer."""
        return _average(self._rows, len(node.sizes), self._k)

    def score(self, node: Counted, kept: npt.NDArray[np.bool_]) -> float:
        """From the classes that are kept."""
        return _average(self._rows, int(np.count_nonzero(kept)), self._k)


def _average(rows: float, classes: int, k: int) -> float:
    return rows / (max(classes, 1) * k)


def _k_of(problem: Problem) -> int:
    asked = [getattr(model, "k", 1) for model in problem.models]
    return max([1, *(k for k in asked if isinstance(k, int))])


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Loss(),
        Discernibility(),
        Entropy(),
        AverageClassSize(),
        CertaintyPenalty(),
        Precision(),
        Ambiguity(),
        Divergence(),
    )
}
"""Every metric by its name."""

_SHORT = {
    "ncp": "certainty penalty",
    "dm": "discernibility",
    "kl": "divergence",
    "height": "precision",
    "aecs": "average class size",
}


def metric_of(asked: str | Metric) -> Metric:
    """A metric by its name; a metric is handed back as it is.

    >>> metric_of("loss")
    Loss()
    >>> metric_of("NCP").name, metric_of("average_class_size").name
    ('certainty penalty', 'average class size')
    """
    if isinstance(asked, Metric):
        return asked
    name = str(asked).strip().lower().replace("_", " ").replace("-", " ")
    found = METRICS.get(_SHORT.get(name, name))
    if found is None:
        raise InvalidParameter(
            f"metric={asked!r} is invalid", why="it is not one of " + ", ".join(map(repr, METRICS)), instead='metric="loss"'
        )
    return found
