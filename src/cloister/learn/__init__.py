"""Models with a guarantee: scikit-learn estimators whose every release is charged.

    base.py         what every model has: checks, an allowance, learned values; bounds.py: declared bounds
    allowance.py    what one fit may spend, and on what it spent it
    encoding.py     from declared columns to features; from_tables.py: learning from a table of a session
    portable.py     models as plain JSON; catalogue.py: which models there are
    moments.py      class counts, sums and products, from arrays or from a table's engine
    naive_bayes.py, linear.py, discriminant.py, pca.py   models that are made of them
    logistic.py, svm.py      objectives, gradients and outputs that are perturbed
    kmeans.py, trees.py      rounds of counts and sums; splits and leaves
    neural.py, accountant.py stochastic gradients, and what they cost
    scaling.py      preparation that does not leak
    evaluation.py, selection.py   accuracy with a margin; choosing a hyper-parameter
    scores.py, judging.py, judged_tables.py, stopping.py   what these are made of
    card.py         the model card; curve.py: the price of privacy

Lives here: whatever learns from rows and promises something. What a model is attacked with lives in `cloister.attacks`; pages and
jobs live in the hub.

>>> from cloister.learn import GaussianNB
>>> model = GaussianNB(epsilon=1, bounds=(0, 1)).fit([[0.1], [0.9]] * 500, [0, 1] * 500)
>>> model.predict([[0.0], [1.0]]).tolist(), str(model.guarantee_)
([0, 1], 'ε = 1')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from cloister.errors import MissingDependency
from cloister.learn.catalogue import METHODS

if TYPE_CHECKING:
    from cloister.learn.naive_bayes import GaussianNB as GaussianNB

_EXTRAS = {"sklearn": "learn", "scipy": "learn", "torch": "torch"}
_SCORES = (
    "accuracy",
    "confusion_matrix",
    "evaluate_table",
    "fit_and_score",
    "fit_and_score_table",
    "mean_squared_error",
    "r2_score",
    "split",
)
_HOME = {name: method.module for name, method in METHODS.items()} | {
    "METHODS": "cloister.learn.catalogue",
    "Allowance": "cloister.learn.allowance",
    "Encoder": "cloister.learn.encoding",
    "load": "cloister.learn.portable",
    "Card": "cloister.learn.card",
    "Curve": "cloister.learn.curve",
    "price_of_privacy": "cloister.learn.curve",
    "PrivateSearch": "cloister.learn.selection",
    "cross_validate": "cloister.learn.selection",
    **dict.fromkeys(_SCORES, "cloister.learn.evaluation"),
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRAS:
            raise
        raise MissingDependency(
            f"{name} was not loaded",
            why=f"the package {missing} is not installed",
            instead=f'pip install "cloister[{_EXTRAS[missing]}]"',
        ) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME)
