"""How sure a model is of what is known to be true: the one number that the attacks on models look at.

For a classifier it is ln p(y | x) − ln Σ p(other classes | x): the logit of its confidence in the true class, which over many
models looks like a normal law where the confidence itself does not (Carlini, Chien, Nasr, Song, Terzis & Tramèr, *Membership
inference attacks from first principles*, IEEE S&P 2022, section IV-C). A model that only decides gives margins, or whether
it is right; one that predicts a number gives minus its squared error; one without a target gives its own score of the row.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.errors import InvalidParameter

Floats: TypeAlias = NDArray[np.float64]
Fit: TypeAlias = Callable[[Any, Any], Any]
"""`(X, y) -> model`: trains a model, of any kind, on some rows."""
Confidence: TypeAlias = Callable[[Any, Any, Any], Any]
"""`(model, X, y) -> one number a row`: larger where the model fits the row better."""

_LEAST = -27.0
"""About ln 10⁻¹²: below it a probability, which may be an exact 0 (of a tree's leaf, say), tells nothing more."""


def confidence_of(model: Any, X: Any, y: Any) -> Floats:
    """One number a row: how sure the model is of the row's own target.

    >>> class Coin:
    ...     classes_ = np.array(["no", "yes"])
    ...     def predict_proba(self, X):
    ...         return np.array([[0.25, 0.75]] * len(X))
    >>> confidence_of(Coin(), np.zeros((2, 1)), ["yes", "no"]).round(3).tolist()
    [1.099, -1.099]
    """
    rows = np.asarray(X)
    if y is None:
        if not hasattr(model, "score"):
            raise _refused("it has no score of a row, and there is no target")
        return np.array([float(model.score(row[None, :])) for row in rows])
    target = np.asarray(y)
    if hasattr(model, "predict_proba"):
        return class_logits(model, rows)[np.arange(len(rows)), _places(model, target)]
    if not hasattr(model, "predict"):
        raise _refused("it has neither predict_proba nor predict")
    if not hasattr(model, "classes_"):
        return np.asarray(-np.square(np.asarray(model.predict(rows), dtype=np.float64).reshape(target.shape) - target))
    if hasattr(model, "decision_function"):
        return _margins(np.asarray(model.decision_function(rows), dtype=np.float64), _places(model, target))
    return np.where(np.asarray(model.predict(rows)) == target, 1.0, -1.0)


def rows_and_target(X: Any, y: Any, *, kind: Any = None, least: int = 1) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """A matrix of at least so many rows, and its target where there is one."""
    try:
        rows, target = np.array(X, dtype=kind), None if y is None else np.asarray(y)
    except (TypeError, ValueError):
        rows = target = np.empty(0)
    if rows.ndim != 2 or (target is not None and target.shape[:1] != rows.shape[:1]) or len(rows) < least:
        why = f"X is a matrix{' of numbers' if kind else ''} of {least} rows or more, and y has one value for each row"
        raise InvalidParameter("The rows are invalid", why=why)
    return rows, target


def class_logits(model: Any, X: Any, *, least: float = _LEAST) -> Floats:
    """For each row and class: ln p(class) − ln p(any other class), between `least` and −`least`."""
    if hasattr(model, "predict_log_proba"):
        with np.errstate(divide="ignore"):
            logs = np.asarray(model.predict_log_proba(X), dtype=np.float64)
    else:
        with np.errstate(divide="ignore"):
            logs = np.log(np.asarray(model.predict_proba(X), dtype=np.float64))
    logs = np.maximum(np.nan_to_num(logs, nan=2 * least, neginf=2 * least), 2 * least)
    others = np.empty_like(logs)
    for place in range(logs.shape[1]):
        others[:, place] = np.logaddexp.reduce(np.delete(logs, place, axis=1), axis=1)
    return np.clip(logs - others, least, -least)


def _places(model: Any, target: NDArray[Any]) -> NDArray[np.intp]:
    """The number of each row's class among the model's classes; a class that it never saw is the one that it believes least."""
    classes = np.asarray(model.classes_)
    order = np.argsort(classes)
    found = order[np.minimum(np.searchsorted(classes[order], target), len(order) - 1)]
    if not (classes[found] == target).all():
        raise _refused("it does not know each class of the target; train it on rows of every class, or declare its classes")
    return np.asarray(found, dtype=np.intp)


def _margins(decided: Floats, places: NDArray[np.intp]) -> Floats:
    if decided.ndim == 1:
        return np.where(places == 1, decided, -decided)
    own = decided[np.arange(len(decided)), places]
    others = decided.copy()
    others[np.arange(len(decided)), places] = -np.inf
    return np.asarray(own - others.max(axis=1))


def _refused(why: str) -> InvalidParameter:
    return InvalidParameter("The model is invalid", why=why, instead="confidence=lambda model, X, y: …")
