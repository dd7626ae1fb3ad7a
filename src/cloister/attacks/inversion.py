"""Model inversion: from a model back to what its rows hold.

- *Attribute inference* (Fredrikson, Lantz, Jha, Lin, Page & Ristenpart, USENIX Security 2014; Yeom, Giacomelli, Fredrikson & Jha,
  CSF 2018): the attacker knows a person's target and all features but one, and how common each value of that one is; the guess is
  the value with the largest marginal × p(target | features with that value).
- *Reconstruction of a class* (Fredrikson, Jha & Ristenpart, CCS 2015): the input that the model believes in most, found by asking
  it; where a class is one person, that is a portrait.

**What a guarantee says, and what it doesn't.** What holds of a population is learnt by a private model too, and may be guessed of
anybody, in the training set or not: that is what the model is for. What privacy forbids is to guess *better because somebody was
in*. So an attribute attack is told by its advantage: right guesses of members less right guesses of others. A member in another's
place, or with another value, is a row less and a row more: two steps between neighbours. So in expectation members are guessed
right at most e^{2ε}·(rate of the others) + (1 + e^ε)·δ of the time (`AttributeInference.most_under`); only against a model of the
rows without them is it e^ε and δ. A portrait is that of a class that one row makes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.confidences import Confidence, Floats, class_logits, confidence_of, rows_and_target
from cloister.attacks.scores import MembershipResult, Rate, rate_of
from cloister.errors import InvalidParameter
from cloister.privacy import Exact, Guarantee, Inference

_LEAST = -1000.0
_LEAST_GAIN = 1e-9


@dataclass(frozen=True, kw_only=True)
class AttributeInference:
    """How often a hidden attribute was guessed.

    >>> found = AttributeInference(members=rate_of(90, 100), others=rate_of(60, 100), guessing=0.5)
    >>> round(found.advantage, 3), found.as_card()["guessing_without_the_model"]
    (0.3, 0.5)
    """

    members: Rate
    """Of the rows that the model was trained on."""
    others: Rate
    """Of rows of the same population that it never saw."""
    guessing: float
    """How often the commonest value is right, with no model at all."""

    @property
    def advantage(self) -> float:
        """What the model reveals about its own rows, beyond what it reveals about everybody."""
        return self.members.rate - self.others.rate

    @staticmethod
    def most_under(guarantee: Guarantee, others: Exact) -> float:
        """The largest share of members that any attack can guess right, where it guesses this share of others right.

        Guarantee: for one person more or less, used twice (`cloister.privacy.Inference`, "value").

        >>> from cloister.privacy import PureDP
        >>> [round(AttributeInference.most_under(PureDP(epsilon), "0.5"), 3) for epsilon in (1, "0.1")]
        [0.932, 0.591]
        """
        promise = Inference.of(guarantee, about="value").promise
        return 1.0 if promise is None else MembershipResult.most_under(promise, others)

    def as_card(self) -> dict[str, Any]:
        """For a model card: plain texts and numbers."""
        sides = {"members": self.members, "others": self.others}
        return {
            "attack": "attribute inference",
            **{f"right_of_{name}": each.rate for name, each in sides.items()},
            **{f"right_of_{name}_interval": [each.low, each.high] for name, each in sides.items()},
            "advantage": self.advantage,
            "guessing_without_the_model": self.guessing,
        }

    def __repr__(self) -> str:
        return (
            f"AttributeInference(guessed of members {self.members}, of others {self.others}; "
            f"advantage {100 * self.advantage:.3g} %; with no model {100 * self.guessing:.3g} %)"
        )


def infer_attribute(
    model: Any,
    *,
    members: tuple[Any, Any],
    others: tuple[Any, Any],
    hidden: int,
    marginal: Mapping[float, float],
    confidence: Confidence = confidence_of,
) -> AttributeInference:
    """Guess one feature of members and of others, and count.

    Parameters
    ----------
    model
        What the attacker may ask.
    members, others
        (X, y) that the model was trained on, and (X, y) from the same population that it was not.
    hidden
        The number of the feature that is guessed; the attack doesn't read it.
    marginal
        Public: how common each value of it is.

    Examples
    --------
    A model that has its rows by heart believes only in the true one:

    >>> class Memory:
    ...     classes_ = np.array([0, 1])
    ...     def __init__(self, X): self.known = {tuple(x) for x in X.tolist()}
    ...     def predict_proba(self, X):
    ...         sure = np.array([0.9 if tuple(x) in self.known else 0.5 for x in X.tolist()])
    ...         return np.stack([1 - sure, sure], axis=1)
    >>> X = np.column_stack([np.arange(100.0), np.arange(100) // 7 % 2])
    >>> y = np.ones(50, dtype=int)
    >>> found = infer_attribute(Memory(X[:50]), members=(X[:50], y), others=(X[50:], y), hidden=1, marginal={0: 0.5, 1: 0.5})
    >>> found.members.rate, found.others.rate < 0.7
    (1.0, True)
    """
    try:
        both = [rows_and_target(X, y, kind=np.float64) for X, y in (members, others)]
    except (TypeError, ValueError):
        why = "each is a pair of the rows and their target"
        raise InvalidParameter("members= or others= is invalid", why=why, instead="members=(X, y)") from None
    if both[0][0].shape[1] != both[1][0].shape[1]:
        raise InvalidParameter("The rows are invalid", why="members and others have the same features", instead="others=(X, y)")
    rates = []
    for rows, y in both:
        guessed = guess_attribute(model, rows, y, hidden=hidden, marginal=marginal, confidence=confidence)
        rates.append(rate_of(int((guessed == rows[:, hidden]).sum()), len(rows)))
    everybody = np.concatenate([rows[:, hidden] for rows, _ in both])
    commonest = max(marginal, key=lambda value: marginal[value])
    return AttributeInference(members=rates[0], others=rates[1], guessing=float((everybody == commonest).mean()))


def guess_attribute(
    model: Any, X: Any, y: Any, *, hidden: int, marginal: Mapping[float, float], confidence: Confidence = confidence_of
) -> Floats:
    """For each row the most likely value of the hidden feature: marginal × p(y | row with that value). That column isn't read.

    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0, 1.0], [1.0, 1.0]] * 50), np.array([0, 1] * 50)  # the first feature decides
    >>> guess_attribute(LogisticRegression().fit(X, y), X[:2], y[:2], hidden=0, marginal={0: 0.5, 1: 0.5}).tolist()
    [0.0, 1.0]
    """
    rows, y = rows_and_target(X, y, kind=np.float64)
    if isinstance(hidden, bool) or hidden not in range(rows.shape[1]):
        raise InvalidParameter(f"hidden={hidden!r} is invalid", why="it is the number of one of the features", instead="hidden=0")
    try:
        values, shares = (np.array(list(each), dtype=np.float64) for each in (marginal, marginal.values()))
    except (AttributeError, TypeError, ValueError):
        values = shares = np.empty(0)
    if len(shares) < 2 or not (shares > 0).all():
        raise InvalidParameter(
            "marginal= is invalid", why="it gives two values or more, each with its share", instead="marginal={0: 0.7, 1: 0.3}"
        )
    belief = np.empty((len(rows), len(values)))
    for place, (value, share) in enumerate(zip(values, shares, strict=True)):
        rows[:, hidden] = value
        said = np.asarray(confidence(model, rows, y), dtype=np.float64)
        # What is said is a logit: ln p = −ln(1 + e^−logit).
        belief[:, place] = np.log(share) - np.logaddexp(0.0, -said)
    return np.asarray(values[belief.argmax(axis=1)])


def reconstruct_class(
    model: Any, label: Any, *, low: Any, high: Any, steps: Sequence[float] = (0.5, 0.25, 0.125), rounds: int = 200
) -> Floats:
    """The input within declared bounds that the model believes in most to be of a class, found by asking the model alone.

    Starts in the middle of the box and moves the one feature, up or down by a step (a share of its width), that gains most, until
    nothing gains or `rounds` are over; then with the next smaller step. No gradient is needed, so it works on every classifier;
    of equal gains the first feature's is taken.

    >>> class Hill:
    ...     classes_ = np.array([0, 1])
    ...     def predict_proba(self, X):
    ...         near = np.exp(-np.square(np.asarray(X) - [0.75, 0.25]).sum(axis=1))
    ...         return np.stack([1 - near, near], axis=1)
    >>> reconstruct_class(Hill(), 1, low=[0, 0], high=[1, 1]).tolist()
    [0.75, 0.25]
    """
    classes = list(np.asarray(getattr(model, "classes_", ())))
    try:
        bottom, top = np.broadcast_arrays(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
        shares = np.asarray(steps, dtype=np.float64).ravel().tolist()
        known = label in classes and getattr(model, "n_features_in_", bottom.size) == bottom.size
    except (TypeError, ValueError):
        known = False
    if not known or bottom.ndim != 1 or not (np.isfinite(top - bottom) & (bottom <= top)).all():
        raise InvalidParameter(
            "The class is invalid",
            why="the model knows the class, low and high give bounds of each feature, and steps are numbers",
            instead="reconstruct_class(model, model.classes_[0], low=[0, 0], high=[1, 1])",
        )
    place, width = classes.index(label), top - bottom
    best = (bottom + top) / 2
    height = _belief(model, best[None, :], place)[0]
    for step in shares:
        moves = np.concatenate([np.diag(width * step), np.diag(-width * step)])
        for _ in range(max(1, rounds)):
            tried = np.clip(best + moves, bottom, top)
            heights = _belief(model, tried, place)
            chosen = int(heights.argmax())
            if heights[chosen] <= height + _LEAST_GAIN:
                break
            best, height = tried[chosen], heights[chosen]
    return np.asarray(best)


def likeness(found: Any, truth: Any, *, base: Any) -> float:
    """How much a reconstruction looks like what it is of: the correlation of both, each taken from what everybody looks like.

    1 is the same picture, 0 nothing in common, also where one of the two is the base itself.

    >>> round(likeness([3.0, 1.0, 2.0], [2.0, 0.0, 1.0], base=[1.0, 1.0, 1.0]), 6)
    1.0
    >>> likeness([1.0, 1.0], [2.0, 0.0], base=[1.0, 1.0])
    0.0
    """
    pair: list[NDArray[np.float64]] = []
    for picture in (found, truth):
        apart = np.asarray(picture, dtype=np.float64) - np.asarray(base, dtype=np.float64)
        pair.append(apart - apart.mean())
    size = float(np.linalg.norm(pair[0]) * np.linalg.norm(pair[1]))
    return float(pair[0] @ pair[1]) / size if size > 0 else 0.0


def _belief(model: Any, X: Floats, place: int) -> Floats:
    """Of the class at this place; not cut off where a model is very sure, so that it can be made surer still."""
    return np.asarray(class_logits(model, X, least=_LEAST)[:, place])
