"""What a table is still good for: how well a classifier predicts a column from the quasi-identifiers, before and after."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Recoded
from cloister.errors import InvalidParameter
from cloister.lazily import needing
from cloister.noise import Random

_MOST_ROWS = 20_000
"""Larger tables are measured on a random part of this size: the margin is then half a per cent."""
_MOST_LABELS = 400
"""Labels of a column that get an indicator of their own, the most frequent first."""


@dataclass(frozen=True, kw_only=True)
class TaskAccuracy:
    """Shares of rows whose `target` was predicted rightly, each row by a classifier that had not seen it.

    >>> found = TaskAccuracy(target="ill", before=0.8, after=0.75, baseline=0.6, rows=1000, difference_error=0.01)
    >>> round(found.margin(0.95), 3)
    0.02
    """

    target: str
    before: float
    after: float
    baseline: float
    """Of always saying the most frequent value."""
    rows: int
    difference_error: float
    """The standard error of `before` − `after`, from rows that one of the two got right and the other wrong: half a row more of
    each, and two more in all (Agresti & Min 2005), since few rows may show none of them."""

    def margin(self, confidence: float = 0.95) -> float:
        """The half-width of the interval of `before` − `after`."""
        from scipy.stats import norm

        return float(norm.ppf((1 + confidence) / 2)) * self.difference_error

    @property
    def kept(self) -> float:
        """How much of what the original table gave over the baseline is left: 1 all, 0 nothing; NaN where it gave nothing."""
        return (self.after - self.baseline) / (self.before - self.baseline) if self.before > self.baseline else math.nan

    def __str__(self) -> str:
        return (
            f"{self.target!r} is predicted rightly for {self.after:.1%} of the rows; before it was {self.before:.1%}, and the "
            f"most frequent value alone gives {self.baseline:.1%} (the difference is certain to ±{self.margin():.1%})"
        )


def task_accuracy(
    problem: Problem, recoded: Recoded, target: str, *, folds: int = 5, random: Random | None = None
) -> TaskAccuracy:
    """Predict a column from the quasi-identifiers, as they were and as they are published: logistic regression, cross-validated.

    The classifier learns from published rows alone. Suppressed rows are predicted as well: they show nothing, so the most
    frequent value is the answer. Both tables have the same folds, so that the difference is measured row by row.
    """
    column = problem.table.columns.get(target)
    if column is None or target in problem.quasi:
        raise InvalidParameter(
            f"target={target!r} is invalid",
            why="it is a quasi-identifier" if column is not None else "the problem has no such column",
            instead=f"one of {list(problem.sensitive)}" if problem.sensitive else 'a column in sensitive=["…"]',
        )
    if problem.table.weights is not None:
        raise InvalidParameter(
            "The task is invalid", why="the table is held as counts of rows", instead="a part of the rows, as a table of its own"
        )
    if not 2 <= folds <= 50:
        raise InvalidParameter(f"folds={folds!r} is invalid", why="it is not from 2 to 50", instead="folds=5")
    chance = random if random is not None else problem.random if problem.random is not None else Random()
    order = chance.permutation(problem.table.rows)[:_MOST_ROWS] if problem.table.rows else np.zeros(0, dtype=np.int64)
    truth = column.codes[order]
    if len(order) < folds:
        raise InvalidParameter("The task is invalid", why=f"the table has fewer rows than {folds} folds", instead="folds=2")
    original = {name: problem.table.columns[name] for name in problem.quasi}
    gone = recoded.suppressed[order]
    right_before = _right(_columns(original, order), truth, np.zeros(len(order), dtype=bool), folds)
    right_after = _right(_columns(recoded.columns, order), truth, gone, folds)
    won, lost = (0.5 + float((one & ~other).sum()) for one, other in ((right_before, right_after), (right_after, right_before)))
    counted = len(order) + 2
    return TaskAccuracy(
        target=target,
        before=float(right_before.mean()),
        after=float(right_after.mean()),
        baseline=float(np.bincount(truth).max() / len(truth)),
        rows=len(order),
        difference_error=math.sqrt(won + lost - (won - lost) ** 2 / counted) / counted,
    )


def _columns(columns: Mapping[str, Any], order: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Codes of each column; numbers as they are and in eighths of the rows, so that they do not work like a list of names."""
    found = []
    for column in columns.values():
        codes = column.codes[order].astype(np.int64)
        found.append(codes)
        if isinstance(column, EncodedColumn) and column.is_number and len(column) > 8:
            ranks = np.cumsum(column.counts) - column.counts / 2
            found.append((ranks / max(float(column.counts.sum()), 1.0) * 8).astype(np.int64)[codes])
    return found


def _right(
    columns: list[npt.NDArray[np.int64]], truth: npt.NDArray[np.int32], gone: npt.NDArray[np.bool_], folds: int
) -> npt.NDArray[np.bool_]:
    """Which rows are predicted rightly when their fold is left out of learning."""
    with needing("The task is not available", "scikit-learn is not installed", "learn"):
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import OneHotEncoder
    fold = np.arange(len(truth)) % folds
    table = np.column_stack(columns)
    found = np.zeros(len(truth), dtype=bool)
    for number in range(folds):
        tested = fold == number
        learning = ~tested & ~gone
        shown = tested & ~gone
        usual = int(np.bincount(truth[learning] if learning.any() else truth[~tested]).argmax())
        guess = np.full(len(truth), usual)
        if len(np.unique(truth[learning])) > 1 and shown.any():
            encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_MOST_LABELS, dtype=np.float32)
            model = LogisticRegression(max_iter=300)
            model.fit(encoder.fit_transform(table[learning]), truth[learning])
            guess[shown] = model.predict(encoder.transform(table[shown]))
        found[tested] = guess[tested] == truth[tested]
    return found
