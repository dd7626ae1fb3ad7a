"""Linear regression from perturbed products, logistic regression from perturbed gradients."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.local.frequency.domain import domain_of
from cloister.local.frequency.oracle import Reports, Sketch
from cloister.local.learning.moments import Bounds, Floats, LocalMoments, by_row, intervals_of, scaled, unscaled
from cloister.local.numbers.hybrid import Hybrid
from cloister.local.numbers.interval import Interval
from cloister.noise import Random
from cloister.noise._checks import whole
from cloister.noise.mechanism import source
from cloister.privacy import Exact, PureDP, exact_positive


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """A slope for each number, brought to [−1, 1] between its bounds, and an intercept."""

    intervals: tuple[Interval, ...]
    slopes: Floats
    intercept: float
    target: Interval

    def scores(self, rows: Any) -> Floats:
        """The straight line, in units of the target on [−1, 1]; what lies outside of the bounds is clipped."""
        return np.asarray(scaled(rows, self.intervals, clip=True) @ self.slopes + self.intercept, dtype=np.float64)

    def predict(self, rows: Any) -> Floats:
        """The target, in its own units and within its bounds."""
        return unscaled(np.clip(self.scores(rows), -1, 1), self.target)


class LocalLinearRegression:
    """Linear regression, when no respondent tells a number.

    Guarantee: ε-local privacy for the whole record, by `LocalMoments`: one report holds a few of the products of the record's
    numbers, drawn by lot.

    The slopes are S⁻¹c of the estimated covariances, with the eigenvalues of S raised to the noise of its entries where they
    are below it: a ridge that public facts choose.

    >>> model = LocalLinearRegression([(0, 1)], (0, 10), epsilon=4)
    >>> x = np.linspace(0, 1, 40000)[:, None]
    >>> fitted = model.fit(model.aggregate(model.randomize(x, 2 + 6 * x[:, 0], random=Random.deterministic(1))))
    >>> bool(abs(fitted.predict([[0.5]])[0] - 5) < 0.5)
    True
    """

    def __init__(self, bounds: Bounds, target: tuple[Exact, Exact], epsilon: Exact = 1) -> None:
        self.moments = LocalMoments([*((each.low, each.high) for each in intervals_of(bounds)), target], epsilon)

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent.

        >>> str(LocalLinearRegression([(0, 1)], (0, 1), epsilon=2).guarantee)
        'ε = 2'
        """
        return self.moments.guarantee

    def randomize(self, rows: Any, targets: Any, *, clip: bool = False, random: Random | None = None) -> Reports:
        """One report for each row and its target."""
        try:
            joined = [[*row, target] for row, target in zip(by_row(rows), targets, strict=True)]
        except (TypeError, ValueError):
            raise InvalidParameter(
                "Rows and targets are invalid", why="they differ in number", instead="one target a row"
            ) from None
        return self.moments.randomize(joined, clip=clip, random=random)

    def aggregate(self, reports: Reports) -> Sketch:
        """The reports' sketch; sketches add up."""
        return self.moments.aggregate(reports)

    def fit(self, sketch: Sketch) -> LinearModel:
        """The model of which the reports speak."""
        found = self.moments.fit(sketch)
        slopes = found.discriminant()[:, 0]
        *intervals, target = self.moments.intervals
        intercept = float(found.mean[-1] - slopes @ found.mean[:-1])
        return LinearModel(intervals=tuple(intervals), slopes=slopes, intercept=intercept, target=target)


class LocalLogisticRegression:
    """Logistic regression of two classes by gradients, when no respondent tells a number or a class.

    Guarantee: ε-local privacy for the whole record. Each person is asked once: the weights so far come, and the gradient of the
    person's own loss goes back, each of its entries clipped to [−1, 1], through `Hybrid` for vectors at ε (Wang et al. 2019,
    for stochastic gradient descent). The weights that come are made of other people's reports alone.

    `rounds` groups of people are asked in turn; the model is the mean of the weights of the later half of the rounds. So few
    steps from 0 do not reach the minimum: slopes come out too small, by a fifth where a feature fills its bounds and by many
    times where it hardly varies within them. They order people and tell classes apart, and are not effects. Narrow bounds, and
    more `rounds` where there are many people, come nearer.

    >>> model = LocalLogisticRegression([(0, 1)], ["no", "yes"], epsilon=4, rounds=20)
    >>> x = np.linspace(0, 1, 40000)[:, None]
    >>> fitted = model.train(x, np.where(x[:, 0] > 0.5, "yes", "no"), random=Random.deterministic(1))
    >>> bool(fitted.scores([[0.1]])[0] < 0 < fitted.scores([[0.9]])[0])
    True
    """

    def __init__(self, bounds: Bounds, classes: Any, epsilon: Exact = 1, *, rounds: int = 20, rate: Exact = 2) -> None:
        self.intervals = intervals_of(bounds)
        self.classes = domain_of(classes)
        if len(self.classes) != 2:
            raise InvalidParameter("classes= is invalid", why="there must be two", instead='classes=["no", "yes"]')
        self.rounds, self.rate = whole(rounds, "rounds", least=1), float(exact_positive(rate, "rate"))
        self.mechanism = Hybrid(-1, 1, epsilon, grid=64, dimensions=len(self.intervals) + 1)

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent, who is asked once.

        >>> str(LocalLogisticRegression([(0, 1)], range(2), epsilon=2).guarantee)
        'ε = 2'
        """
        return self.mechanism.guarantee

    def respond(self, weights: Floats, rows: Any, classes: Any, *, random: Random | None = None) -> Reports:
        """The reports of people whom these weights reached: to run where the person is."""
        units = scaled(rows, self.intervals, clip=True)
        features = np.concatenate([units, np.ones((len(units), 1))], axis=1)
        signs = 2.0 * self.classes.places(classes) - 1
        if len(units) != len(signs):
            raise InvalidParameter("Rows and classes are invalid", why="they differ in number", instead="one class a row")
        weights = Interval(low=-np.inf, high=np.inf).checked(weights)[:, 0]
        if len(weights) != features.shape[1]:
            why = f"they are {features.shape[1]} numbers, one a bound and the intercept"
            raise InvalidParameter("The weights are invalid", why=why, instead="those of the last step(…)")
        margins = np.clip(signs * (features @ weights), -50, 50)
        gradients = -(signs / (1 + np.exp(margins)))[:, None] * features
        return self.mechanism.randomize(np.clip(gradients, -1, 1), random=random)

    def step(self, weights: Floats, sketch: Sketch, turn: int) -> Floats:
        """The weights after the reports of one round: the rate falls with the square root of the round."""
        gradient = np.nan_to_num(self.mechanism.mean(sketch).value)
        return np.asarray(weights - self.rate * 2 / np.sqrt(turn + 1) * gradient, dtype=np.float64)

    def train(self, rows: Any, classes: Any, *, random: Random | None = None) -> LinearModel:
        """All rounds, with both sides played here: each person is in one group."""
        try:
            chance, rows, said = source(random), np.array(rows, dtype=np.float64, ndmin=1), np.array(classes, ndmin=1)
        except (TypeError, ValueError):
            raise InvalidParameter("The rows are invalid", why="they are not numbers", instead="one number a bound") from None
        if len(rows) != len(said) or len(rows) < self.rounds:
            raise InvalidParameter("Rows and classes are invalid", why="each round needs a person", instead="rounds=1")
        order = chance.permutation(len(rows))
        weights, kept = np.zeros(len(self.intervals) + 1), []
        for turn, group in enumerate(np.array_split(order, self.rounds)):
            reports = self.respond(weights, rows[group], said[group], random=chance)
            weights = self.step(weights, self.mechanism.aggregate(reports), turn)
            kept.append(weights)
        mean = np.mean(kept[self.rounds // 2 :], axis=0)
        return LinearModel(
            intervals=self.intervals, slopes=mean[:-1], intercept=float(mean[-1]), target=Interval(low=0.0, high=1.0)
        )
