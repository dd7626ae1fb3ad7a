"""Those who know the method and some projected rows with labels, and try to read a secret, a person or a whole row off another.

Each is a scikit-learn model that is trained on projected rows and judged on others. The best of them counts, chosen on the rows
that it is judged on: that favours the attacker.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.compress.scatter import Floats

Labels = npt.NDArray[Any]

_AXES = 60


def classifiers(classes: int, seed: int) -> Mapping[str, Callable[[], Any]]:
    """Who reads a label, beside the honest reader: each class counts alike to them, as it does where they are judged."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    alike = np.full(classes, 1 / classes)
    return {
        "nearest neighbour": lambda: KNeighborsClassifier(1),
        "linear": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=alike),
        "naive Bayes": lambda: GaussianNB(priors=alike),
        "network": lambda: MLPClassifier(hidden_layer_sizes=(64,), solver="lbfgs", alpha=0.01, max_iter=200, random_state=seed),
    }


def rebuilders(seed: int) -> Mapping[str, Callable[[], Any]]:
    """Who rebuilds rows."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.neural_network import MLPRegressor

    return {
        "ridge": lambda: Ridge(alpha=1.0),
        "kernel ridge": lambda: KernelRidge(alpha=0.1, kernel="rbf"),
        "network": lambda: MLPRegressor(hidden_layer_sizes=(64,), solver="lbfgs", alpha=1.0, max_iter=200, random_state=seed),
    }


def labels_read(known: Floats, labels: Labels, seen: Floats, truth: Labels, seed: int) -> dict[str, float]:
    """How often each attacker reads the label, on average over the classes. The honest reader is one of them."""
    found = {"kernel": use_kept(known, labels, seen, truth)}
    for name, made in classifiers(len(np.unique(labels)), seed).items():
        found[name] = _balanced(made(), known, labels, seen, truth)
    return found


def use_kept(known: Floats, labels: Labels, seen: Floats, truth: Labels) -> float:
    """What an honest reader gets out: a support vector machine chosen by cross-validation on the rows that it learns from."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    folds = min(3, int(np.unique(labels, return_counts=True)[1].min()))
    model: Any = SVC(class_weight="balanced")
    if folds >= 2:
        grid = {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.1, 0.01]}
        model = GridSearchCV(model, grid, cv=StratifiedKFold(folds), scoring="balanced_accuracy")
    return _balanced(model, known, labels, seen, truth)


def linked(known: Floats, people: Labels, seen: Floats, truth: Labels) -> dict[str, float]:
    """How often one of two projected rows of a person that nobody has seen before is found by the other, at rank 1.

    The gallery holds the first row of each person; "nearest neighbour" compares coordinates as they are, "learnt distance" on the
    scale of how rows of one person differ, as known people show it.
    """
    _, first = np.unique(truth, return_index=True)
    rest = np.setdiff1d(np.arange(len(truth)), first)
    if not len(rest):
        return {}
    _, places = np.unique(people, return_inverse=True)
    centres = np.stack([known[places == place].mean(axis=0) for place in range(places.max() + 1)])
    within = np.cov((known - centres[places]).T).reshape(known.shape[1], -1)
    within += np.eye(len(within)) * max(np.trace(within) / len(within), 1e-12) * 0.01
    root = np.linalg.inv(np.linalg.cholesky(within)).T
    found = {}
    for name, rows in (("nearest neighbour", seen), ("learnt distance", seen @ root)):
        apart = ((rows[rest, None, :] - rows[None, first, :]) ** 2).sum(axis=2)
        found[name] = float((truth[first][apart.argmin(axis=1)] == truth[rest]).mean())
    return found


def rows_rebuilt(
    known: Floats, rows: Floats, seen: Floats, seed: int, inverse: Callable[[Floats], Floats] | None = None
) -> dict[str, Floats]:
    """What each attacker takes the rows to be; the projection's own inverse is one of the guesses."""
    found = {} if inverse is None else {"inverse": inverse(seen)}
    mean = rows.mean(axis=0)
    known, seen = scaled(known, seen)
    _, sizes, axes = np.linalg.svd(rows - mean, full_matrices=False)
    axes = axes[sizes > 1e-9 * sizes.max(initial=0.0)]
    for name, made in rebuilders(seed).items():
        along = axes[:_AXES] if name == "network" else axes  # which has no use for more
        guess = _quietly(made(), known, (rows - mean) @ along.T, seen)
        found[name] = mean + (guess.reshape(len(seen), -1) @ along if len(along) else np.zeros((len(seen), len(mean))))
    return found


def explained(guess: Floats, truth: Floats) -> Floats:
    """Of each column the share of its variance that a guess has right; 0 where the mean would be no worse, or nothing varies."""
    spread = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    lost = ((guess - truth) ** 2).sum(axis=0) / np.where(spread > 0, spread, 1)
    return np.where(spread > 0, np.clip(1 - lost, 0, 1), 0.0)


def distance(one: Floats, other: Floats) -> float:
    """The mean length of the differences of rows."""
    return float(np.linalg.norm(one - other, axis=1).mean())


def scaled(known: Floats, seen: Floats) -> tuple[Floats, Floats]:
    """Coordinates on one scale, without those that are the same for all known rows: nothing is learned of them."""
    spread = known.std(axis=0)
    kept = spread > 1e-9 * spread.max(initial=0.0)
    if not kept.any():
        return np.zeros((len(known), 1)), np.zeros((len(seen), 1))
    mean, spread = known[:, kept].mean(axis=0), spread[kept]
    return (known[:, kept] - mean) / spread, (seen[:, kept] - mean) / spread


def _balanced(model: Any, known: Floats, labels: Labels, seen: Floats, truth: Labels) -> float:
    known, seen = scaled(known, seen)
    guess = _quietly(model, known, labels, seen)
    return float(np.mean([(guess[truth == each] == each).mean() for each in np.unique(truth)]))


def _quietly(model: Any, known: Floats, wanted: Any, seen: Floats) -> Any:
    """What the attacker says. One who did not converge is judged as it is."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(known, wanted).predict(seen)
