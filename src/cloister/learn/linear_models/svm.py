"""A linear support vector machine with a guarantee: the hinge loss with its corner rounded."""

from dataclasses import dataclass
from typing import ClassVar

from cloister.learn.frame.parameters import Limit, Limits
from cloister.learn.linear_models.linear_classes import LinearClassifier
from cloister.learn.linear_models.losses import HuberHinge, Loss


@dataclass(kw_only=True, eq=False, repr=False)
class LinearSVC(LinearClassifier):
    """Linear scores with a wide margin; several classes: each against the rest.

    Guarantee: as `cloister.learn.LogisticRegression`, method by method. The hinge has no continuous slope, which the perturbed
    objective needs, so its corner is rounded over ± `width` (Chaudhuri, Monteleoni & Sarwate 2011, section 3.4.2): residuals are
    at most 1 a column, the second derivative at most 1/(2·width).

    No support vector is kept: they would be rows.

    >>> from cloister.noise import Random
    >>> rows, classes = [[0.1], [0.2], [0.8], [0.9]] * 500, [0, 0, 1, 1] * 500
    >>> LinearSVC(epsilon=1, bounds=(0, 1), random=Random.deterministic(1)).fit(rows, classes).predict([[0.0], [1.0]]).tolist()
    [0, 1]
    """

    _stored: ClassVar[str] = "LinearSVC"

    limits: ClassVar[Limits] = {**LinearClassifier.limits, "width": Limit(least=0.1, most=10, instead=0.5)}

    width: float = 0.5

    def _loss(self, classes: int, *, slope: float = 1.0) -> Loss:
        return HuberHinge(classes=classes, width=float(self.width))
