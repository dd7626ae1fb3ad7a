"""What is asked of a search: a table, its hierarchies, the models that have to hold, and what counts as good."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes
from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.models.base import PrivacyModel, satisfied_by
from cloister.anonymize.recoding import Recoded
from cloister.noise import Random

if TYPE_CHECKING:
    from cloister.anonymize.metrics.base import Metric


def silent(stage: str, done: float) -> None:
    """No progress is shown."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """A table to be anonymised.

    `limit` is how many rows may be suppressed. `weights` say how much each quasi-identifier counts (1 when left out).
    `progress` is told a stage and how much of it is done, from 0 to 1. `stop` is asked now and then: True ends the search with
    the best that it has found.
    """

    table: Encoded
    quasi: tuple[str, ...]
    ladders: Mapping[str, Ladder]
    models: tuple[PrivacyModel, ...]
    metric: Metric
    limit: int
    sensitive: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    research: npt.NDArray[np.bool_] | None = None
    seconds: float | None = None
    """A time budget for searches that can use one."""
    random: Random | None = None
    progress: Callable[[str, float], None] = silent
    stop: Callable[[], bool] = bool

    @property
    def sensitive_columns(self) -> dict[str, EncodedColumn]:
        """The sensitive columns of the table."""
        return {name: self.table.columns[name] for name in self.sensitive}

    def weight(self, column: str) -> float:
        """How much a quasi-identifier counts."""
        return float(self.weights.get(column, 1.0))

    def satisfied(self, classes: Classes) -> npt.NDArray[np.bool_]:
        """Which classes meet every model."""
        return satisfied_by(self.models, classes)

    @property
    def absorbing(self) -> bool:
        """Whether joining classes never loses a row that was not lost before: what pruning by suppression rests on."""
        return all(model.absorbing for model in self.models)


class Search(ABC):
    """A way of finding a recoding that meets the models. A subclass is a frozen dataclass of its settings."""

    name: ClassVar[str]
    uses_hierarchies: ClassVar[bool] = True

    @abstractmethod
    def find(self, problem: Problem) -> Recoded:
        """The recoding; every class of it meets every model (the caller checks that again, from the labels)."""

    @staticmethod
    def kept(problem: Problem, suppressed: Sequence[bool] | npt.NDArray[np.bool_]) -> int:
        """How many rows are left."""
        weights = problem.table.weights
        lost = np.count_nonzero(suppressed) if weights is None else weights[np.asarray(suppressed)].sum()
        return problem.table.total - int(lost)
