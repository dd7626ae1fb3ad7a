"""Gradient boosting on noisy histograms: one feature after the other, round after round.

First, in each bin of each column, how many people of each class are there (of a number: sums that tell how many, and their
mean). From these noisy counts bins that are too thin are merged with their neighbours, and naive Bayes, shrunk, makes the first
scores. Then rounds: a column's leaves are told the noisy sum of the gradients of the people in them, and its scores move by a
Newton step with the largest curvature there is; then the next column. No split is chosen by looking at gradients. Where few of
many columns can be afforded, those that tell most of the classes are chosen before all that, for a fifth of the budget. What is
learnt is one curve for each column, and their sum: a model that can be read.

Guarantee, of both models: the ε (with δ, where one is given; the ρ under ZCDP), for neighbours that differ by one person (one
more or less). Bounds, classes, groups and bins are declared. Proof:

- The number of people, if no public `size` is given: it moves by 1.
- Whether features whose names are alike up to an underscore are one category, if that is not declared (`one_category`): of each
  of the G candidates, how many people have more than one of its features. A person is in each count at most once, so they move by
  G in the sum of sizes and of squares.
- Which columns tell most of the classes (of two or more, where there is no δ and half of the columns would be left out): each
  score is how many people are of the commonest class of their bin, which one person more raises by 0 or 1; see `telling`.
- Counts: a person is in one bin of each of the K columns, and counts `unit` there in all, split over classes by numbers that are
  not negative: so the sums move by K·unit in the sum of sizes, and by at most K·unit² in the sum of squares.
- A column of a round: a person is in one leaf. Their gradient follows from the person's own row and from what was released
  before, and `boosting_losses.py` bounds and proves its l1 and l2².

Everything that is noised is a whole number, and `Share.add` makes the noise: discrete Laplace without a δ, rounded Gaussian with
one. Shares sum to the whole; how large the later ones are was decided by what was released before (`Allowance` says why that is
sound). Leaves, steps and scores are post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from cloister.learn.ensembles.boosting_losses import Floats, Integers, Logistic, Loss, Softmax, Squared
from cloister.learn.ensembles.histograms import Columns, merged, sums
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Box, Rows
from cloister.learn.frame.groups import alike_in_name, apart, grouped, told_by_names
from cloister.learn.frame.parameters import SIZE, Limit, Limits
from cloister.noise import Allowance, PermuteAndFlip, Random, Share, default_random
from cloister.privacy import Exact, exact_positive

_OF_SIZE, _OF_NAMES = Fraction(1, 20), Fraction(1, 20)


@dataclass(kw_only=True, eq=False, repr=False)
class _Boosting(PrivateModel):
    """What both share: counts, leaves, rounds."""

    limits: ClassVar[Limits] = {
        "rounds": Limit(least=0, most=1000, whole=True, none=True, instead=2),
        "bins": Limit(least=2, most=1024, whole=True, none=True, instead=4),
        "max_features": Limit(least=1, most=10**6, whole=True, none=True, instead=3),
        "size": SIZE,
    }
    rounds: int | None = None
    bins: int | None = None
    max_features: int | None = None
    groups: Any = None
    size: Exact | None = None

    def _loss(self, y: Any) -> Loss:
        raise NotImplementedError

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        random = self.random or (default_random() if allowance is not None else Random.deterministic(0))
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        loss, people, groups = self._loss(rows.y), None, self.groups
        maybe = alike_in_name(names, rows.box) if groups is None else []
        if maybe:
            people = self._people(rows, allowance, random)
            groups = [*told_by_names(names, rows.box), *one_category(maybe, rows, people, allowance, random)]
        members = grouped(rows.X.shape[1], groups, names, rows.box)
        order = random.permutation(len(members)).tolist()
        plan = plan_of(
            columns=len(members),
            people=self._people(rows, allowance, random) if people is None else people,
            allowance=allowance,
            max_features=self.max_features,
            bins=self.bins,
            rounds=self.rounds,
            a_round=loss.a_round,
            a_column=loss.a_column,
        )
        if (
            2 * plan.columns <= len(order)
            and isinstance(loss, Logistic)
            and (allowance is None or allowance.currency != "mu_squared")
        ):
            share = None if allowance is None else allowance.share("columns that tell most", allowance.left * _OF_CHOICE)
            looked = Columns(box=rows.box, members=members, bins=_LOOKED)
            order = telling(looked, looked.places(rows.X), loss, order, plan.columns, share, random)
        drawn = tuple(members[at] for at in sorted(order[: plan.columns]))
        columns = Columns(box=rows.box, members=drawn, bins=plan.bins)
        places = columns.places(rows.X)
        left = Fraction(1) if allowance is None else allowance.left
        share = None if allowance is None else allowance.share("counts by column", left * plan.counts)
        leaves, base = counted(columns, places, loss, share, random)
        course = Course.begun(places, leaves, base, loss)
        for number in range(plan.rounds):
            portion = left * (1 - plan.counts) / plan.rounds
            share = None if allowance is None else allowance.share(f"gradients, round {number + 1}", portion)
            course.round(share, random)
        self.low_, self.high_, self.columns_, self.bins_ = rows.box.low, rows.box.high, columns.members, plan.bins
        self.base_, self.value_ = course.base / 2.0**loss.bits, course.values(columns.width)

    def _people(self, rows: Rows, allowance: Allowance | None, random: Random) -> float:
        """How many rows, about: the public hint, or a noisy count."""
        if self.size is not None:
            return float(exact_positive(self.size, "size"))
        if allowance is None:
            return float(len(rows.X))
        share = allowance.share("number of rows", _OF_SIZE)
        return float(share.add(np.array([len(rows.X)]), l1=1, l2_squared=1, random=random)[0])

    def _scores(self, X: Any) -> Floats:
        asked = self._asked(X)
        columns = Columns(box=Box(low=self.low_, high=self.high_), members=self.columns_, bins=self.bins_)
        found = np.repeat(self.base_[None, :], len(asked), axis=0)
        for places, value in zip(columns.places(asked), self.value_, strict=True):
            found += value[places]
        return found


@dataclass(kw_only=True, eq=False, repr=False)
class GradientBoostingClassifier(ClassifierMixin, _Boosting):  # type: ignore[misc]
    """Classes, by a sum of curves: log-odds of two classes, or softmax over several.

    `rounds` over all columns, `bins` of equal width for each feature and `max_features` columns: by themselves as many as the
    budget and the number of rows carry. Where that is at most half of the columns, and no δ is given, a fifth of the budget
    chooses those that tell most of the classes; else they are drawn without looking. `size`, a public hint of how many rows there
    are, saves a twentieth of the budget, which is else paid for counting them. With few rows no round is made, and all is spent
    on counts.
    `groups`: the 0-or-1 features that one category was written as, so that it costs as much as one feature: lists of their
    places, or the names of categories (`["sex"]` for a frame's columns `sex_F` and `sex_M`). Columns that are called `sex=F` and
    `sex=M`, and a table's categories, are grouped by themselves; of columns between 0 and 1 that are called `sex_F` and `sex_M` a
    twentieth of the budget asks whether hardly anybody has two of them, where there are people enough to see it; else they stay
    apart (`groups=[]`: nothing is grouped, and nothing is asked). The guarantee and its proof stand at the top of this module.

    References: Friedman (2001), Greedy function approximation: a gradient boosting machine. Nori, Caruana, Bu, Shen & Kulkarni
    (2021), Accuracy, interpretability, and differential privacy via explainable boosting. Maddock, Cormode, Wang, Maple & Jha
    (2022), Federated boosted decision trees with differential privacy.

    >>> X, y = [[0.1, 5.0], [0.5, 5.0], [0.9, 5.0]] * 300, [1, 0, 1] * 300
    >>> model = GradientBoostingClassifier(epsilon=1, bounds=([0, 0], [1, 10])).fit(X, y)
    >>> model.predict([[0.1, 1.0], [0.5, 1.0], [0.9, 1.0]]).tolist()
    [1, 0, 1]
    """

    _stored: ClassVar[str] = "GradientBoostingClassifier"
    learned_names: ClassVar[tuple[str, ...]] = ("classes_", "low_", "high_", "columns_", "bins_", "base_", "value_")

    classes: Any = None

    def _loss(self, y: Any) -> Loss:
        classes = len(self.classes_)
        return Logistic(y=y) if classes == 2 else Softmax(y=y, classes=classes)

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second class; with several classes a score for each."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Floats:
        """How likely each class is, in the order of `classes_`."""
        scores = self._scores(X)
        if scores.shape[1] == 1:
            scores = np.concatenate([-scores / 2, scores / 2], axis=1)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Any:
        """The most likely class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]


@dataclass(kw_only=True, eq=False, repr=False)
class GradientBoostingRegressor(RegressorMixin, _Boosting):  # type: ignore[misc]
    """A number between declared bounds, by a sum of curves, with the squared loss; far from the curve its gradient is clipped.

    `bounds_y`: the lowest and the highest value of the target. `clip`: the largest gradient, in parts of half the width of
    `bounds_y`; smaller ones need less noise, and move slower. Columns are drawn without looking. The rest as in
    `GradientBoostingClassifier`. The guarantee and its proof stand at the top of this module.

    >>> X, y = [[0.1], [0.5], [0.9]] * 300, [10.0, 50.0, 20.0] * 300
    >>> model = GradientBoostingRegressor(epsilon=1, bounds=(0, 1), bounds_y=(0, 100)).fit(X, y)
    >>> model.predict([[0.5]])[0] > model.predict([[0.9]])[0]
    np.True_
    """

    _stored: ClassVar[str] = "GradientBoostingRegressor"
    learned_names: ClassVar[tuple[str, ...]] = ("bounds_y_", "low_", "high_", "columns_", "bins_", "base_", "value_")
    limits: ClassVar[Limits] = {**_Boosting.limits, "clip": Limit(above=True, exact=True, instead=0.5)}
    target_kind: ClassVar[str] = "number"

    bounds_y: Any = None
    clip: float = 0.5

    def _loss(self, y: Any) -> Loss:
        clip = exact_positive(self.clip, "clip")
        low, high = self.bounds_y_
        middle, half = low / 2 + high / 2, (high / 2 - low / 2) or 1.0
        whole = np.rint(np.clip((y - middle) / half, -1.0, 1.0) * Squared.one).astype(np.int64)
        return Squared(y=whole, clip=min(max(int(clip * Squared.one), 1), 2 * Squared.one))

    def predict(self, X: Any) -> Floats:
        """The number of each row, within `bounds_y`."""
        part = (np.clip(self._scores(X)[:, 0], -1.0, 1.0) + 1) / 2
        low, high = self.bounds_y_
        return np.asarray((1 - part) * low + part * high)


def one_category(
    maybe: list[tuple[int, ...]], rows: Rows, people: float, allowance: Allowance | None, random: Random
) -> list[list[int]]:
    """Of features that may be one category by their names those that are: at most a sixth of all people have two of them, by
    noisy counts. Where the deviation of these would be above a twelfth of the people nothing is bought, and each stays alone.

    Guarantee: what the share says; see the top of this module. Which groups there are is post-processing.
    """
    width = len(maybe)
    if allowance is not None:
        part = Share(what="", currency=allowance.currency, amount=allowance.size * _OF_NAMES, portion=_OF_NAMES)
        if math.sqrt(part.variance(l1=width, l2_squared=width)) > max(people, 1.0) / 12:
            return []
    have = rows.box.middle <= rows.X
    counts = np.array([int((have[:, each].sum(axis=1) > 1).sum()) for each in maybe])
    if allowance is not None:
        share = allowance.share("features that are one category", _OF_NAMES)
        counts = share.add(counts, l1=width, l2_squared=width, random=random)
    kept = [each for each, count in zip(maybe, counts.tolist(), strict=True) if count <= max(people, 1.0) / 6]
    return apart(sorted(kept, key=len, reverse=True))


def telling(
    columns: Columns, places: Integers, loss: Loss, order: list[int], count: int, share: Share | None, random: Random
) -> list[int]:
    """So many of the columns, those whose bins tell most of the classes: how many people are of the commonest class of their bin.

    Guarantee: what the share says. One person more raises one bin's largest count by 0 or 1: each score has sensitivity 1, and
    all move the same way. Each column is one choice among those that are left, by `PermuteAndFlip`, and the choices' parts sum to
    the share. Where there is none, they are the best; of equals the first in `order`, which is drawn without data.
    """
    shares = loss.shares()
    scores = [int(sums(place, shares, columns.bins_of(at)).max(axis=1).sum()) for at, place in enumerate(places)]
    left, found = list(order), list[int]()
    mechanism = None if share is None else PermuteAndFlip(epsilon=share.part(Fraction(1, count)).epsilon, monotone=True)
    while len(found) < count:
        told = np.array([[scores[at] for at in left]], dtype=np.int64)
        best = told.argmax(axis=1) if mechanism is None else mechanism.release_each(told, random=random)
        found.append(left.pop(int(best[0])))
    return found


_OF_CHOICE, _LOOKED = Fraction(1, 5), 8
"""The part of the budget that the choice of columns takes, and how many bins of each are looked at (chosen on the same data)."""
_MOST_ROUNDS, _MOST_BINS, _FEWEST_BINS = 4, 64, 4
_A_BIN = 8
_PLAIN = 5.0  # without noise, bins are as wide as if counts had this deviation: chance has one of its own


@dataclass(frozen=True, kw_only=True)
class BoostingPlan:
    """What is done. Counts take one part of the budget, each round two."""

    columns: int
    bins: int
    rounds: int

    @property
    def counts(self) -> Fraction:
        """The portion of what is left that counts take.

        >>> BoostingPlan(columns=3, bins=8, rounds=2).counts
        Fraction(1, 5)
        """
        return Fraction(1, 1 + 2 * self.rounds)


def plan_of(
    *,
    columns: int,
    people: float,
    allowance: Allowance | None,
    max_features: int | None = None,
    bins: int | None = None,
    rounds: int | None = None,
    a_round: float = Logistic.a_round,
    a_column: float = Logistic.a_column,
) -> BoostingPlan:
    """What was asked for, and else what so many people can carry under this allowance; `a_round` and `a_column` are the loss's.

    >>> from cloister.privacy import PureDP
    >>> plan_of(columns=14, people=32_000, allowance=Allowance(PureDP(1)))
    BoostingPlan(columns=14, bins=64, rounds=1)
    >>> plan_of(columns=30, people=500, allowance=Allowance(PureDP(1)))
    BoostingPlan(columns=5, bins=8, rounds=0)
    """
    most = max(columns if max_features is None else min(max_features, columns), 1)
    few = most
    if max_features is None and allowance is not None and allowance.currency == "epsilon":
        few = min(max(int(people / a_column / _blur(1, allowance)), 1), most)
    firm = max(people, 1.0) / (_PLAIN if allowance is None else _blur(few, allowance))
    if rounds is None:
        rounds = _MOST_ROUNDS if allowance is None else int(min(math.sqrt(firm / a_round), _MOST_ROUNDS))
    if bins is None:  # counts get a part of the budget, and a bin must stand out of the noise of that
        part = 1.0 if allowance is None else float(BoostingPlan(columns=few, bins=1, rounds=rounds).counts)
        bins = int(min(max(firm * part / _A_BIN, _FEWEST_BINS), _MOST_BINS))
    return BoostingPlan(columns=few, bins=bins, rounds=rounds)


def _blur(columns: int, allowance: Allowance) -> float:
    """The deviation of the noise of so many columns' counts, if they took everything."""
    if allowance.currency == "epsilon":
        return math.sqrt(2) * columns / float(allowance.size)
    return math.sqrt(columns / float(allowance.size * (2 if allowance.currency == "rho" else 1)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Leaves:
    """A column's bins, merged, with noisy counts."""

    of_bin: Integers
    size: Floats
    """How many people, at least 1."""
    start: Floats
    """The first scores."""


def counted(
    columns: Columns, places: Integers, loss: Loss, share: Share | None, random: Random
) -> tuple[tuple[Leaves, ...], Floats]:
    """The leaves of each column, and the score that everybody starts with.

    Guarantee: what the share says; the sums move as the top of `boosting.py` proves, by l1 = K·unit and l2² = K·unit².
    """
    shares, count, unit = loss.shares(), len(columns.members), loss.unit
    exact = [sums(places[column], shares, columns.bins_of(column)) for column in range(count)]
    noisy, deviation = np.concatenate(exact).astype(np.float64), 0.0
    if share is not None:
        reach = {"l1": count * unit, "l2_squared": count * unit**2}
        noisy = share.add(np.concatenate(exact), random=random, **reach)
        deviation = share.variance(**reach) ** 0.5 / unit
    pace = min(1.0, loss.eager / count**0.5)
    parts = np.split(noisy / unit, np.cumsum([len(one) for one in exact])[:-1])
    whole = sum(part.sum(axis=0) for part in parts) / count
    found = []
    for column, part in enumerate(parts):
        of_bin = merged(part.sum(axis=1), deviation * part.shape[1] ** 0.5, ordered=columns.ordered(column))
        held = np.zeros((int(of_bin.max()) + 1, part.shape[1]))
        np.add.at(held, of_bin, part)
        blur = deviation * np.sqrt(np.bincount(of_bin))
        start = pace * loss.start(held, whole, blur)
        found.append(Leaves(of_bin=of_bin, size=np.maximum(held.sum(axis=1), 1.0), start=start))
    return tuple(found), loss.base(whole)


@dataclass(kw_only=True, eq=False)
class Course:
    """Scores on their way: of the rows, in whole steps, and of the leaves."""

    leaves: tuple[Leaves, ...]
    leaf: list[Integers]
    """Of each row, a column after the other."""
    loss: Loss
    base: Integers
    scores: Integers
    tables: list[Integers]

    @classmethod
    def begun(cls, places: Integers, leaves: tuple[Leaves, ...], base: Floats, loss: Loss) -> Course:
        """With the first scores."""
        leaf = [one.of_bin[place] for one, place in zip(leaves, places, strict=True)]
        first = np.rint(base * 2.0**loss.bits).astype(np.int64)
        scores = np.repeat(first[None, :], places.shape[1], axis=0)
        course = cls(leaves=leaves, leaf=leaf, loss=loss, base=first, scores=scores, tables=[])
        for column, one in enumerate(leaves):
            course.tables.append(np.zeros(one.start.shape, dtype=np.int64))
            course.move(column, one.start)
        return course

    def round(self, share: Share | None, random: Random) -> None:
        """Each column once.

        Guarantee: what the share says: each of the K columns is paid by a K-th of it, for a gradient of at most `l1` and
        `l2_squared` that is in one leaf.
        """
        loss = self.loss
        each = None if share is None else replace(share, amount=share.amount / len(self.leaves))
        for column, one in enumerate(self.leaves):
            exact = sums(self.leaf[column], loss.gradient(self.scores), len(one.size))
            noisy, deviation = exact.astype(np.float64), 0.0
            if each is not None:
                reach = {"l1": loss.l1, "l2_squared": loss.l2_squared}
                noisy = each.add(exact, random=random, **reach)
                deviation = each.variance(**reach) ** 0.5 / loss.one
            self.move(column, loss.step(noisy / loss.one, one.size, deviation))

    def move(self, column: int, step: Floats) -> None:
        """The leaves of a column, and the rows in them."""
        far = self.loss.farthest
        whole = np.rint(np.clip(step, -far, far) * 2.0**self.loss.bits).astype(np.int64)
        self.tables[column] += whole
        self.scores += whole[self.leaf[column]]

    def values(self, width: int) -> Floats:
        """The score of each bin of each column, with zeros where a column has fewer."""
        found = np.zeros((len(self.leaves), width, len(self.base)))
        for column, (one, table) in enumerate(zip(self.leaves, self.tables, strict=True)):
            found[column, : len(one.of_bin)] = table[one.of_bin]
        return found / 2.0**self.loss.bits
