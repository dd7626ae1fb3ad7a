"""How the nodes of a private tree are split: public candidates, exact scores, one private choice a node.

A tree grows level by level. Each node owns a box, which follows from the splits above it and so is released already. Candidates
are thresholds evenly spaced in that box, `bins` − 1 for each feature: public. Their scores are counted exactly, and one candidate
is chosen by permute-and-flip.

Guarantee. One level of one tree is ε-private for neighbours that differ by one person, when each of its nodes is given ε: a
person is in one node of the level, so the others' choices have the same law with and without that person (parallel composition,
McSherry 2009, Theorem 4), given all splits above. Levels compose one after the other. A node's choice is ε-private by
`cloister.noise.PermuteAndFlip`, with these sensitivities of the scores:

- "max", Σ over sides of the largest count (how many the majority gets right): one person more raises one side's largest count by
  0 or 1. Sensitivity 1, monotone (Friedman & Schuster 2010, Section 3.2).
- "gini", Σ over sides of f(c) = Σⱼcⱼ²/n, n = Σⱼcⱼ (that is n less the Gini impurities): one person more of class i changes one
  side's f by (n(2cᵢ + 1) − Σⱼcⱼ²)/(n(n + 1)), which is at most (n(2n + 1) − n²)/(n(n + 1)) = 1, since n(2c + 1) − c² grows with
  c <= n, and at least (n − n²)/(n(n + 1)) > −1, since Σⱼcⱼ² <= n². Sensitivity 1, not monotone. f is counted in whole steps of
  2⁻²⁰, rounded down; a number that moves by at most a whole number of steps moves by at most as many after that.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.noise import PermuteAndFlip, Random

Criterion: TypeAlias = Literal["max", "gini"]
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_BITS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    """The splits of a complete binary tree, level after level: node i's children are 2i + 1 and 2i + 2.

    A row goes right where its feature is at least the threshold.
    """

    feature: Integers
    threshold: Floats


def grow(
    X: Floats,
    y: Integers,
    *,
    low: Floats,
    high: Floats,
    classes: int,
    depth: int,
    bins: int,
    criterion: Criterion,
    features: int,
    epsilon: Fraction | None,
    random: Random,
) -> Tree:
    """A tree whose every split is the best of public candidates, nearly; `epsilon` is what one level may cost, None for no noise.

    In each node `features` of them are candidates, drawn without looking.
    """
    node = np.zeros(len(X), dtype=np.int64)
    lows, highs = low[None, :], high[None, :]
    chosen: list[Tree] = []
    mechanism = _mechanism(criterion, epsilon)
    for level in range(depth):
        nodes = 2**level
        every = _scores_of_level(X, y, node, lows, highs, classes=classes, bins=bins, criterion=criterion)
        here, open_to = np.arange(nodes), np.broadcast_to(np.arange(X.shape[1]), (nodes, X.shape[1]))
        if features < X.shape[1]:
            open_to = np.stack([np.sort(random.permutation(X.shape[1])[:features]) for _ in range(nodes)])
        utilities = every[here[:, None], open_to].reshape(nodes, -1)
        place = utilities.argmax(axis=1) if mechanism is None else mechanism.release_each(utilities, random=random)
        feature = open_to[here, place // (bins - 1)]
        share = (place % (bins - 1) + 1) / bins
        threshold = lows[here, feature] + share * (highs[here, feature] - lows[here, feature])
        chosen.append(Tree(feature=feature, threshold=threshold))
        node = _step(X, node, feature, threshold)
        lows, highs = _boxes(lows, highs, feature, threshold)
    return _joined(chosen)


def random_tree(*, low: Floats, high: Floats, depth: int, random: Random) -> Tree:
    """A tree that nobody's data had a say in: features and thresholds are drawn evenly from the box of their node.

    >>> tree = random_tree(low=np.zeros(2), high=np.ones(2), depth=2, random=Random.deterministic(1))
    >>> tree.feature.shape, bool(((tree.threshold > 0) & (tree.threshold < 1)).all())
    ((3,), True)
    """
    lows, highs = low[None, :], high[None, :]
    chosen: list[Tree] = []
    for level in range(depth):
        places = np.arange(2**level)
        feature = random.below(len(low), 2**level)
        share = (random.below(2**52, 2**level) + 0.5) / 2.0**52
        threshold = lows[places, feature] + share * (highs[places, feature] - lows[places, feature])
        chosen.append(Tree(feature=feature, threshold=threshold))
        lows, highs = _boxes(lows, highs, feature, threshold)
    return _joined(chosen)


def descend(X: Floats, tree: Tree, depth: int) -> Integers:
    """The leaf of each row, 0 … 2^depth − 1.

    >>> descend(np.array([[0.2], [0.7]]), Tree(feature=np.array([0]), threshold=np.array([0.5])), 1).tolist()
    [0, 1]
    """
    node = np.zeros(len(X), dtype=np.int64)
    for level in range(depth):
        here = slice(2**level - 1, 2 ** (level + 1) - 1)
        node = _step(X, node, tree.feature[here], tree.threshold[here])
    return node


def scores(left: Integers, right: Integers, criterion: Criterion) -> Integers:
    """The score of a split, from the class counts of its sides (the last axis): whole people, or steps of 2⁻²⁰ of one.

    >>> scores(np.array([3, 1]), np.array([0, 2]), "max").tolist()
    5
    >>> scores(np.array([3, 1]), np.array([0, 2]), "gini").tolist() / 2**20
    4.5
    """
    if criterion == "max":
        return np.asarray(left.max(axis=-1) + right.max(axis=-1))
    return _pure(left) + _pure(right)


def _pure(counts: Integers) -> Integers:
    """⌊2²⁰·Σcⱼ²/n⌋, exactly for n < 2³¹; 0 where nobody is."""
    n = np.maximum(counts.sum(axis=-1), 1)
    whole, rest = np.divmod((counts * counts).sum(axis=-1), n)
    return np.asarray((whole << _BITS) + (rest << _BITS) // n, dtype=np.int64)


def _scores_of_level(
    X: Floats, y: Integers, node: Integers, lows: Floats, highs: Floats, *, classes: int, bins: int, criterion: Criterion
) -> Integers:
    """Scores by node, feature and threshold; a person counts in one bin of each feature of one node."""
    nodes, features = lows.shape
    found = np.empty((nodes, features, bins - 1), dtype=np.int64)
    beside = node * (bins * classes) + y
    for feature in range(features):
        low, wide = lows[:, feature], highs[:, feature] - lows[:, feature]
        wide = np.where(wide > 0, wide, 1.0)
        share = (X[:, feature] - low.take(node)) / wide.take(node) * bins
        place = np.minimum(np.maximum(share, 0), bins - 1).astype(np.int64)
        counts = np.bincount(place * classes + beside, minlength=nodes * bins * classes)
        left = counts.reshape(nodes, bins, classes).cumsum(axis=1)
        found[:, feature] = scores(left[:, :-1], left[:, -1:] - left[:, :-1], criterion)
    return found


def _mechanism(criterion: Criterion, epsilon: Fraction | None) -> PermuteAndFlip | None:
    if epsilon is None:
        return None
    return PermuteAndFlip(epsilon=epsilon, sensitivity=1 if criterion == "max" else 2**_BITS, monotone=criterion == "max")


def _step(X: Floats, node: Integers, feature: Integers, threshold: Floats) -> Integers:
    asked = X.ravel().take(np.arange(0, X.size, X.shape[1]) + feature.take(node)) if X.size else np.empty(0)
    return 2 * node + (asked >= threshold.take(node))


def _boxes(lows: Floats, highs: Floats, feature: Integers, threshold: Floats) -> tuple[Floats, Floats]:
    """The boxes of the children."""
    lows, highs = np.repeat(lows, 2, axis=0), np.repeat(highs, 2, axis=0)
    places = np.arange(len(feature))
    highs[2 * places, feature] = threshold
    lows[2 * places + 1, feature] = threshold
    return lows, highs


def _joined(levels: list[Tree]) -> Tree:
    none = [Tree(feature=np.empty(0, dtype=np.int64), threshold=np.empty(0))]
    return Tree(
        feature=np.concatenate([level.feature for level in levels or none]),
        threshold=np.concatenate([level.threshold for level in levels or none]),
    )
