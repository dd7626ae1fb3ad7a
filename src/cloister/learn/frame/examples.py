"""The smallest model there is, for examples in docstrings and for tests of what is said of models."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Rows
from cloister.noise.allowance import Allowance
from cloister.privacy import Exact, exact


@dataclass(kw_only=True, eq=False, repr=False)
class Threshold(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """The commoner class on either side of a declared place of the first feature.

    Guarantee: ε, or (ε, δ). A row is in one cell of a table of counts, sides by classes, so one person moves it by 1.

    >>> model = Threshold(bounds=(0, 1), at="0.5", epsilon=10).fit([[0.2], [0.8]] * 100, [0, 1] * 100)
    >>> model.predict([[0.1], [0.9]]).tolist()
    [0, 1]
    """

    learned_names = ("classes_", "table_", "low_", "high_")

    classes: Any = None
    at: Exact = "0.5"

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        self.low_, self.high_ = rows.box.low, rows.box.high
        size = len(self.classes_)
        assert rows.y is not None
        table = np.bincount(self._sides(rows.X) * size + rows.y, minlength=2 * size).reshape(2, size)
        share = None if allowance is None else allowance.rest("counts")
        self.table_ = table.astype(float) if share is None else share.add(table, l1=1, l2_squared=1, random=self.random)

    def _sides(self, X: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """0 below that share of the first feature's interval, else 1."""
        edge = self.low_[0] + float(exact(self.at, "at")) * (self.high_[0] - self.low_[0])
        return np.asarray(X[:, 0] >= edge).astype(np.int64)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The commoner class of the side."""
        return np.asarray(self.classes_[self.table_.argmax(axis=1)[self._sides(self._asked(X))]])
