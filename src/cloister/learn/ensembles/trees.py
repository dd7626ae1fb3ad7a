"""A decision tree and a forest whose splits and leaves are private.

Splits are chosen among public thresholds by permute-and-flip, level by level (`splits.py`), or drawn without looking at anybody
(`method="random"`, an extremely random forest: the whole budget goes to the leaves). Leaves hold noisy class counts. Trees are
complete, and their depth follows from public facts and a noisy count of rows, so nothing else of their shape depends on rows.

Guarantee, of both models: the ε that was given, for neighbours that differ by one person (one more or less); under ZCDP the ρ
that was given. Bounds and classes are declared. Proof: the number of rows, where it is counted, moves by 1, and pays a share of
its own; how the rest is divided follows from what was released (`Allowance` says why that is sound). The levels and the leaves
are drawn one after the other, and their shares add up (Dwork & Roth 2014, Theorem 3.16); a level costs its share by `splits.py`;
a person is in one leaf of a tree and counts there in one class, so the counts move by 1 in all, and the discrete Laplace noise of
their share has the scale 1/ε (Ghosh, Roughgarden & Sundararajan 2009). The trees of a forest:

- people="apart": each person is sent to one tree, by a coin that nobody's data had a say in. Given the coins, neighbours differ
  in one tree's rows by one person: every tree may spend the whole (parallel composition, McSherry 2009, Theorem 4; a mixture over
  coins of ε-close laws is ε-close).
- people="all": each person is in all trees; each tree's levels get an equal part of the share, and the leaf counts of all trees
  together move by as much as there are trees.

What happens to the counts afterwards (shrinking towards the node above, by public weights) is post-processing.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin

from cloister.learn.ensembles.splits import Criterion, Floats, Tree, descend, grow, random_tree
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Rows
from cloister.learn.frame.parameters import SIZE, Limit, Limits
from cloister.noise import Random, default_random
from cloister.noise.allowance import Allowance, Currency
from cloister.privacy import Exact, exact_positive

_LEAF_SHARE = Fraction(3, 10)
_ENOUGH = 100  # people a leaf at ε = 1: with fewer, the noise of deeper splits costs more than they bring (measured)
_DEEPEST = 12
_USUALLY_DEEPEST, _USUAL_TREES = 7, 3
_OF_SIZE = Fraction(1, 20)
_PLENTY = 8000  # people times ε from which "gini" tells more than "max" (benchmarks/learn_defaults.py)


@dataclass(kw_only=True, eq=False, repr=False)
class _Trees(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """What a tree and a forest share: a forest of one is a tree."""

    learned_names: ClassVar[tuple[str, ...]] = ("classes_", "low_", "high_", "depth_", "feature_", "threshold_", "value_")
    limits: ClassVar[Limits] = {
        "method": Limit(known=("greedy", "random"), instead="greedy"),
        "criterion": Limit(known=("max", "gini"), none=True, instead=None),
        "max_depth": Limit(least=1, most=_DEEPEST, whole=True, none=True, instead=5),
        "bins": Limit(least=2, most=4096, whole=True, instead=32),
        "size": SIZE,
    }
    _currency: ClassVar[Currency | None] = "epsilon"

    method: Literal["greedy", "random"] = "greedy"
    criterion: Criterion | None = None
    max_depth: int | None = None
    bins: int = 32
    size: Exact | None = None
    classes: Any = None

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        random = self._source(allowance)
        weight = self._weight(rows, allowance, random)
        trees, apart, features = self._plan(rows.X.shape[1], weight)
        depth = self._depth(trees, weight)
        criterion: Criterion = self.criterion or ("gini" if weight >= _PLENTY else "max")
        X, y, k = rows.X, np.asarray(rows.y, dtype=np.int64), len(self.classes_)
        owner = random.below(trees, len(y)) if apart and trees > 1 else None
        epsilon = self._epsilon_of_a_level(allowance, depth, 1 if apart else trees)
        planted: list[Tree] = []
        counts = np.empty((trees, 2**depth, k), dtype=np.int64)
        for number in range(trees):
            X_here, y_here = (X, y) if owner is None else (X[owner == number], y[owner == number])
            if self.method == "random":
                tree = random_tree(low=rows.box.low, high=rows.box.high, depth=depth, random=random)
            else:
                tree = grow(
                    X_here,
                    y_here,
                    low=rows.box.low,
                    high=rows.box.high,
                    classes=k,
                    depth=depth,
                    bins=self.bins,
                    criterion=criterion,
                    features=features,
                    epsilon=epsilon,
                    random=random,
                )
            planted.append(tree)
            counts[number] = np.bincount(descend(X_here, tree, depth) * k + y_here, minlength=2**depth * k).reshape(-1, k)
        noisy, variance = counts.astype(np.float64), 0.0
        if allowance is not None:
            share, moved = allowance.rest("leaf counts"), 1 if apart else trees
            noisy = share.add(counts, l1=moved, l2_squared=moved, random=random)
            variance = share.variance(l1=moved, l2_squared=moved)
        self.low_, self.high_, self.depth_ = rows.box.low, rows.box.high, depth
        self.feature_ = np.stack([tree.feature for tree in planted])
        self.threshold_ = np.stack([tree.threshold for tree in planted])
        self.value_ = np.stack([_shrunk(one, variance) for one in noisy])

    def predict_proba(self, X: Any) -> Floats:
        """How likely each class is, in the order of `classes_`: the mean of the trees."""
        asked = self._asked(X)
        asked = np.clip(asked, self.low_, self.high_)
        found = np.zeros((len(asked), len(self.classes_)))
        for feature, threshold, value in zip(self.feature_, self.threshold_, self.value_, strict=True):
            found += value[descend(asked, Tree(feature=feature, threshold=threshold), int(self.depth_))]
        return np.asarray(found / len(self.value_))

    def predict(self, X: Any) -> Any:
        """The most likely class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]

    def _plan(self, features: int, weight: float) -> tuple[int, bool, int]:
        """How many trees, whether people are apart, how many features are candidates of a split."""
        return 1, True, features

    def _depth(self, trees: int, weight: float) -> int:
        """The depth that was asked for, else what so many people can carry under this ε."""
        if self.max_depth is not None:
            return int(self.max_depth)
        return min(max(int(math.log2(max(weight / trees / _ENOUGH, 1.0))), 1), _USUALLY_DEEPEST)

    def _weight(self, rows: Rows, allowance: Allowance | None, random: Random) -> float:
        """Persons times ε up to 8: by the public size, else by a noisy count, where anything follows from it."""
        if allowance is None:
            return 8.0 * (len(rows.X) if self.size is None else float(exact_positive(self.size, "size")))
        epsilon = float(allowance.size) if allowance.currency == "epsilon" else math.sqrt(2 * float(allowance.size))
        if self.size is not None:
            persons = float(exact_positive(self.size, "size"))
        elif self._settled_by_arguments():
            return 0.0
        else:
            share = allowance.share("number of rows", _OF_SIZE)
            persons = float(share.add(np.array([len(rows.X)]), l1=1, l2_squared=1, random=random)[0])
        return max(persons, 0.0) * min(epsilon, 8.0)

    def _settled_by_arguments(self) -> bool:
        """Whether nothing is left that follows from the number of rows."""
        return self.max_depth is not None and (self.criterion is not None or self.method == "random")

    def _epsilon_of_a_level(self, allowance: Allowance | None, depth: int, trees: int) -> Fraction | None:
        """What one tree may spend at a level: the level's share, in equal parts for trees that share people."""
        if allowance is None or self.method == "random":
            return None
        portion = allowance.left * (1 - _LEAF_SHARE) / depth
        drawn = [allowance.share(f"splits, level {level + 1}", portion) for level in range(depth)]
        return replace(drawn[0], amount=drawn[0].amount / trees).epsilon

    def _source(self, allowance: Allowance | None) -> Random:
        """Without privacy the same rows give the same model, as scikit-learn wants it."""
        if self.random is not None:
            return self.random
        return default_random() if allowance is not None else Random.deterministic(0)


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionTreeClassifier(_Trees):
    """A decision tree.

    `max_depth` and `criterion` ("max" is the better with few rows or a small ε, "gini" with many): as asked, else by ε and the
    number of rows: a public `size=`, or a noisy count for a twentieth of the budget. `bins`: thresholds are multiples of a node's
    width over this. `method`: "greedy" or "random". The guarantee and its proof stand at the top of this module.

    References: Friedman & Schuster (2010), Data mining with differential privacy. Fletcher & Islam (2019), Decision tree
    classification with differential privacy: a survey. McKenna & Sheldon (2020), Permute-and-flip.

    >>> X, y = [[0.1, 5.0], [0.9, 5.0]] * 300, [0, 1] * 300
    >>> tree = DecisionTreeClassifier(epsilon=1, bounds=([0, 0], [1, 10]), max_depth=2).fit(X, y)
    >>> tree.predict(X[:2]).tolist()
    [0, 1]
    """

    _stored: ClassVar[str] = "DecisionTreeClassifier"


@dataclass(kw_only=True, eq=False, repr=False)
class RandomForestClassifier(_Trees):
    """A forest of decision trees, each on people of its own (`persons="apart"`) or on all of them with a part of ε.

    `n_estimators` trees; by themselves as many as the number of rows times ε has digits, less one, and 3 at most: with few people
    each, trees of their own are mostly noise. In each node `max_features` of the features are candidates, drawn
    without looking; by itself all. The rest as in `DecisionTreeClassifier`. The guarantee and its proof stand at the top of this
    module.

    References: Fletcher & Islam (2017), Differentially private random decision forests using smooth sensitivity (people apart).
    Geurts, Ernst & Wehenkel (2006), Extremely randomized trees.

    >>> X, y = [[0.1, 5.0], [0.9, 5.0]] * 300, [0, 1] * 300
    >>> forest = RandomForestClassifier(epsilon=1, bounds=([0, 0], [1, 10]), max_depth=2).fit(X, y)
    >>> forest.predict(X[:2]).tolist()
    [0, 1]
    """

    _stored: ClassVar[str] = "RandomForestClassifier"

    limits: ClassVar[Limits] = {
        **_Trees.limits,
        "persons": Limit(known=("apart", "all"), instead="apart"),
        "n_estimators": Limit(least=1, most=1000, whole=True, none=True, instead=5),
        "max_features": Limit(least=1, most=10**6, whole=True, none=True, instead=5),
    }

    n_estimators: int | None = None
    persons: Literal["apart", "all"] = "apart"
    max_features: int | None = None

    def _plan(self, features: int, weight: float) -> tuple[int, bool, int]:
        trees = self.n_estimators or min(max(int(math.log10(max(weight, 1.0))), 1), _USUAL_TREES)
        wanted = features if self.max_features is None else self.max_features
        return trees, self.persons == "apart", min(wanted, features)

    def _settled_by_arguments(self) -> bool:
        return super()._settled_by_arguments() and self.n_estimators is not None


def _shrunk(counts: Floats, variance: float) -> Floats:
    """Noisy class counts of the leaves, as probabilities: each node's shares are drawn towards those of the node above.

    A node's count of a class is the sum of its leaves', and so is the variance of its noise. What is drawn weighs as much as the
    noise of a node's total, and one person: a node that is mostly noise says what its parent says. Negative counts are 0.

    >>> _shrunk(np.array([[30.0, 0.0], [-2.0, 1.0]]), 2.0).round(2).tolist()
    [[0.99, 0.01], [0.65, 0.35]]
    """
    levels = [counts]
    while len(levels[-1]) > 1:
        levels.append(levels[-1].reshape(-1, 2, counts.shape[1]).sum(axis=1))
    shares = np.full((1, counts.shape[1]), 1 / counts.shape[1])
    for height, found in reversed(list(enumerate(levels))):
        if len(found) > 1:
            shares = np.repeat(shares, 2, axis=0)
        whole = np.maximum(found, 0.0)
        weight = 1 + math.sqrt(variance * 2**height)
        shares = (whole + weight * shares) / (whole.sum(axis=1, keepdims=True) + weight)
    return np.asarray(shares)
