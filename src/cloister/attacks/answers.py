"""What somebody learns who may only ask: a template that an authentication compares with, and the parameters of a model.

**Templates.** A phone keeps the mean of its owner's touches, a door the features of a face, and compares. *By distances*: the
differences of squared distances from d + 1 points are linear in the template, so d + 1 scores solve for it (trilateration, as on
maps; Adler, *Images can be regenerated from quantized biometric match score data*, CCECE 2004, climbs by such scores). *By yes
and no*: what is accepted is a ball around the template; the two ends of the chord along each axis, found by halving from one
accepted sample, have their middle at the template's coordinate: 2·d·bits questions. Rounding scores only slows it down; a limit
of tries, or answers that are charged, end it.

**Parameters.** The log-odds that a logistic model says of d + 1 points are linear equations of its d + 1 weights (Tramèr, Zhang,
Juels, Reiter & Ristenpart, *Stealing machine learning models via prediction APIs*, USENIX Security 2016). And who has weights and
rows has the regularisation that was chosen: at the minimum the gradient of the losses is −2λw, so λ is their least-squares ratio
(Wang & Gong, *Stealing hyperparameters in machine learning*, IEEE S&P 2018). A guarantee doesn't stop either: it makes what is
stolen harmless for the people in the rows, and noise in the weights blurs λ.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Floats: TypeAlias = npt.NDArray[np.float64]


def template_by_distances(distance: Callable[[Floats], float], features: int, *, reach: float = 1.0) -> Floats:
    """The template, from the distances of `features` + 1 points: the corner at 0, and one step of `reach` along each axis.

    |p + r·e|² − |p|² seen from t differ by r² − 2·r·t.

    >>> hidden = np.array([0.3, -0.8, 0.5])
    >>> template_by_distances(lambda point: float(np.linalg.norm(point - hidden)), 3).round(6).tolist()
    [0.3, -0.8, 0.5]
    """
    if features < 1 or not reach > 0:
        raise InvalidParameter(f"features={features!r} is invalid", why="it must be at least 1", instead="features=8")
    origin = distance(np.zeros(features)) ** 2
    steps = np.array([distance(reach * axis) ** 2 for axis in np.eye(features)])
    return np.asarray((origin - steps + reach**2) / (2 * reach))


def template_by_answers(accepts: Callable[[Floats], bool], inside: Floats, *, reach: float = 2.0, bits: int = 12) -> Floats:
    """The template, from yes and no alone, and one sample that is accepted: the middle of each chord through it.

    `reach` is how far from the sample a no is sure.

    >>> hidden = np.array([0.3, -0.8, 0.5])
    >>> opens = lambda point: bool(np.linalg.norm(point - hidden) < 0.5)
    >>> template_by_answers(opens, np.array([0.5, -0.7, 0.3])).round(2).tolist()
    [0.3, -0.8, 0.5]
    """
    inside = np.asarray(inside, dtype=np.float64)
    if not accepts(inside):
        raise InvalidParameter("inside= is invalid", why="the sample is not accepted", instead="a sample that is")
    found = inside.copy()
    for place, axis in enumerate(np.eye(len(inside))):
        ends = []
        for side in (-1.0, 1.0):
            near, far = 0.0, reach
            for _ in range(bits):
                middle = (near + far) / 2
                near, far = (middle, far) if accepts(inside + side * middle * axis) else (near, middle)
            ends.append(side * (near + far) / 2)
        found[place] += sum(ends) / 2
    return found


def linear_parameters(likely: Callable[[Floats], Sequence[float]], features: int) -> tuple[Floats, float]:
    """Weights and intercept of a logistic model, from what it says of `features` + 1 points: the probability of the second class.

    >>> says = lambda rows: 1 / (1 + np.exp(-(rows @ np.array([2.0, -1.0]) + 0.5)))
    >>> weights, intercept = linear_parameters(says, 2)
    >>> weights.round(6).tolist(), round(intercept, 6)
    ([2.0, -1.0], 0.5)
    """
    asked = np.vstack([np.zeros(features), np.eye(features)])
    said = np.clip(np.asarray(likely(asked), dtype=np.float64), 1e-12, 1 - 1e-12)
    odds = np.log(said / (1 - said))
    return odds[1:] - odds[0], float(odds[0])


def regularisation(weights: Floats, loss_gradient: Floats) -> float:
    """λ of a minimum of Σ losses + λ·|w|², by least squares: the gradient of the losses at w is −2λ·w.

    >>> regularisation(np.array([1.0, -2.0]), np.array([-6.0, 12.0]))
    3.0
    """
    w, gradient = np.asarray(weights, dtype=np.float64).ravel(), np.asarray(loss_gradient, dtype=np.float64).ravel()
    if w.shape != gradient.shape or not w.any():
        why = "they are all 0, or not as many as the gradient"
        raise InvalidParameter("weights= is invalid", why=why, instead="regularisation(weights, gradient)")
    return float(-(w @ gradient) / (2 * (w @ w)))
