"""A learner: the published table is read as training data, and the sensitive value of each person predicted from what is known.

Part of what it predicts is what any table about such people teaches (that smoking goes with lung disease is no breach of
anybody's privacy); so it is measured against a learner that has never seen the target's row.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.attackers.target import Attack, Target
from cloister.anonymize.classes import Classes
from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.risks.words import per_cent
from cloister.lazily import needing
from cloister.noise import Random, default_random

_MOST_ROWS = 20_000
_FOLDS = 3
_TREES = 25
_MANY_NUMBERS = 20
"""A number with more values than that is predicted as one of ten groups of equal size."""


def learner(target: Target, column: str, *, random: Random | None = None) -> Attack:
    """The share of people whose sensitive value is predicted right from the published table that has their row in it.

    The prediction is the commoner one of two guesses, whichever is right more often: the commonest value of the target's class,
    and a random forest over the published labels. The baseline is the better one of the commonest value of the whole table, and
    a forest over the published rows of *others*, in three folds. Needs scikit-learn.

    >>> from cloister.anonymize.attackers import example
    >>> from cloister.noise import Random
    >>> learner(example(times=20), "disease", random=Random.deterministic(1)).name
    'learner'
    """
    _need_sklearn()
    random = random or default_random()
    chosen = _some(target, random)
    wanted = _classes_of(target.sensitive[column])[chosen]
    labels = np.stack([target.recoded.columns[name].codes for name in target.quasi], axis=1)[chosen]
    values = np.stack([target.raw.columns[name].codes for name in target.quasi], axis=1)[chosen]
    weights = target.weights[chosen].astype(np.float64)
    published = ~target.recoded.suppressed[chosen]
    folds = random.permutation(len(chosen)) % _FOLDS

    majority = float(np.bincount(wanted, weights=weights).max() / weights.sum()) if len(wanted) else 0.0
    crossed = ((published & (folds != fold), folds == fold) for fold in range(_FOLDS))
    every = np.ones(len(chosen), dtype=bool)
    others = max(majority, _right(labels, wanted, weights, crossed, random))
    fitted = _right(labels, wanted, weights, [(published, every)], random)
    with_row = max(_by_class(target.after, chosen, wanted, weights), fitted, others)
    raw = max(_by_class(target.before, chosen, wanted, weights), _right(values, wanted, weights, [(every, every)], random))
    effective = float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 1.0
    margin = 1.96 * math.sqrt(max(with_row * (1 - with_row), 0.25 / max(effective, 1)) / max(effective, 1))
    return Attack(
        name="learner",
        column=column,
        sentence=f"A learner trained on the published table predicts {column!r} right for {per_cent(with_row)} of the people "
        f"whose rows it saw; of others, whose rows it did not see, for {per_cent(others)} (the commonest value alone: "
        f"{per_cent(majority)}). Trained on the raw table, for {per_cent(raw)}.",
        success=with_row,
        before=raw,
        baseline=others,
        margin=min(margin, 1.0),
    )


def _some(target: Target, random: Random) -> npt.NDArray[np.int64]:
    if target.raw.rows <= _MOST_ROWS:
        return np.arange(target.raw.rows)
    return np.sort(random.permutation(target.raw.rows)[:_MOST_ROWS])


def _classes_of(column: EncodedColumn) -> npt.NDArray[np.int64]:
    """What is predicted: the value; of a number with many values, the tenth in which it lies."""
    if not column.is_number or len(column) <= _MANY_NUMBERS:
        return column.codes.astype(np.int64)
    before = np.cumsum(column.counts) - column.counts
    tenths = np.minimum(before * 10 // max(int(column.counts.sum()), 1), 9)
    return np.asarray(tenths[column.codes], dtype=np.int64)


def _by_class(
    classes: Classes, chosen: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]
) -> float:
    """The commonest value of each person's class; of the suppressed, that of everybody."""
    if not len(chosen):
        return 0.0
    groups = classes.of_row[chosen] + 1
    key, place = np.unique(groups * (int(wanted.max()) + 1) + wanted, return_inverse=True)
    tally = np.bincount(place, weights=weights)
    owner = key // (int(wanted.max()) + 1)
    order = np.lexsort((tally, owner))
    last = np.flatnonzero(np.append(np.diff(owner[order]) > 0, True))
    return float(tally[order][last].sum() / weights.sum())


def _right(
    labels: npt.NDArray[np.int32],
    wanted: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    parts: Iterable[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]],
    random: Random,
) -> float:
    """The share that is predicted right where of each part some rows are learnt from, and others predicted."""
    right = 0.0
    for train, test in parts:
        if len(np.unique(wanted[train])) < 2:
            return 0.0
        model = _model(random).fit(labels[train], wanted[train], sample_weight=weights[train])
        right += float(weights[test][model.predict(labels[test]) == wanted[test]].sum()) if test.any() else 0.0
    return right / float(weights.sum())


def _model(random: Random) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    # one thread: a report that is made beside other work must not fight it for the cores
    return RandomForestClassifier(n_estimators=_TREES, min_samples_leaf=3, random_state=random.below_one(2**31), n_jobs=1)


def _need_sklearn() -> None:
    with needing("The learner was not run", "scikit-learn is not installed", "learn"):
        import sklearn.ensemble  # noqa: F401
