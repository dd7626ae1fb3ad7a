"""Membership inference: was this row among those that a model was trained on?

Two attacks of somebody who has the model, the row with its target, and rows like those that it was trained on:

- *by the loss* (Yeom, Giacomelli, Fredrikson & Jha, CSF 2018): a row that the model is sure of was probably in. One threshold for
  all rows, so it sees overfitting in the mean, and nearly nothing where few false alarms are allowed;
- *by the likelihood ratio* (LiRA; Carlini, Chien, Nasr, Song, Terzis & Tramèr, IEEE S&P 2022): train shadow models on random
  halves of the rows; for each row fit one normal law to the confidence of those that had it and one to those that had not; the
  score is the ratio of the two densities at the target model's own confidence. *Online* uses both laws; *offline* only that of
  the shadows that had not the row, as an attacker must who meets the row after the shadows were trained, and its score is how far
  above that law the confidence lies.

An average over rows hides what happens to the few who stand out, so success is told as the share of members found at a share of
false alarms of 1 in 1000.

**What a guarantee says.** Under (ε, δ) no attack finds more than e^ε·(false alarms) + δ of the members (Wasserman & Zhou 2010;
Kairouz, Oh & Viswanath 2015): `MembershipResult.most_under`. An attack that finds less proves nothing; one that finds more, on a
fixed row, refutes the guarantee (that is what `audit_model` is for). Of what is true of a member it speaks less: there ε counts
twice (`AttributeInference.most_under`).
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.confidences import Confidence, Fit, Floats, confidence_of, rows_and_target
from cloister.attacks.scores import MembershipResult
from cloister.errors import InvalidParameter, check_one_of
from cloister.noise import Random
from cloister.noise._checks import whole

Attack: TypeAlias = Literal["online", "offline", "loss"]
_ATTACKS = {"online": "likelihood ratio (LiRA, online)", "offline": "likelihood ratio (LiRA, offline)", "loss": "loss threshold"}
_OWN_SPREAD_FROM = 32
"""With fewer shadows on a side the spread of one row is guessed too badly, and all rows share one (Carlini et al., VI-B)."""
_LEAST_SPREAD = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class Shadows:
    """What many models say of the same rows, each trained on a random half of them.

    Every row is in half of the models (Carlini et al.), so one set of models serves to attack each of them by all others.

    >>> said = np.arange(40.0).reshape(8, 5)
    >>> shadows = Shadows(confidences=said, member=np.indices(said.shape).sum(axis=0) % 2 == 0)
    >>> shadows.attacked(2, "loss").models
    2
    """

    confidences: Floats
    """A row for each model, a column for each row of the data."""
    member: NDArray[np.bool_]
    """Whether the model had the row."""

    def attacked(self, targets: int, attack: Attack = "online") -> MembershipResult:
        """The first `targets` models attacked, each with all others as shadows."""
        _check_attack(attack)
        if not 1 <= targets <= len(self.member) - 4:
            raise InvalidParameter(
                f"targets={targets!r} is invalid",
                why=f"of {len(self.member)} models at least one is attacked, and 4 or more are left as shadows",
                instead="targets=1",
            )
        scores = np.stack([self._scores(target, attack) for target in range(targets)])
        member = self.member[:targets]
        return MembershipResult(attack=_ATTACKS[attack], members=scores[member], others=scores[~member], models=targets)

    def _scores(self, target: int, attack: Attack) -> Floats:
        said = self.confidences[target]
        if attack == "loss":
            return np.asarray(said)
        shadows = np.arange(len(self.member)) != target
        member = self.member[shadows]
        without = _law(self.confidences[shadows], ~member)
        if attack == "offline":
            return np.asarray((said - without[0]) / without[1])
        return _log_density(said, *_law(self.confidences[shadows], member)) - _log_density(said, *without)


def membership(
    fit: Fit,
    X: Any,
    y: Any,
    *,
    attack: Attack = "online",
    shadows: int = 64,
    targets: int = 8,
    confidence: Confidence = confidence_of,
    random: Random | None = None,
) -> MembershipResult:
    """How well an attacker tells members of the training set from others.

    Parameters
    ----------
    fit
        `(X, y) -> model`: trains one model on some rows. A private one draws noise of its own in each call.
    X, y
        Rows, of which each model gets a random half.
    attack
        "online" or "offline" (likelihood ratio), or "loss" (one threshold for all rows).
    shadows, targets
        How many models the attacker trains (fewer than 32 serve badly), and how many are attacked.
    confidence
        What is looked at; see `cloister.attacks.confidences`.

    Examples
    --------
    A model that remembers its rows by heart is laid bare; one that learns one number of all is not:

    >>> class Memory:
    ...     classes_ = np.array([0, 1])
    ...     def __init__(self, X, y): self.known = {float(x[0]): label for x, label in zip(X, y)}
    ...     def predict_proba(self, X):
    ...         found = np.array([self.known.get(float(x[0]), 0.5) for x in X])
    ...         return np.stack([1 - found, found], axis=1)
    >>> from cloister.noise import Random
    >>> X, y = np.arange(200.0)[:, None], np.arange(200) % 2
    >>> found = membership(Memory, X, y, shadows=16, targets=2, random=Random.deterministic(1))
    >>> found.auc, found.true_positives("0.001").rate
    (1.0, 1.0)
    """
    _check_attack(attack)
    whole(targets, "targets", least=1)
    whole(shadows, "shadows", least=4)
    trained = train_shadows(fit, X, y, models=shadows + targets, confidence=confidence, random=random)
    return trained.attacked(targets, attack)


def train_shadows(
    fit: Fit, X: Any, y: Any, *, models: int, confidence: Confidence = confidence_of, random: Random | None = None
) -> Shadows:
    """Train models on random halves of the rows, each row in half of them (of an odd number: in the smaller half).

    >>> class Mean:
    ...     def __init__(self, X, y): self.mean = float(np.mean(y))
    ...     def predict(self, X): return np.full(len(X), self.mean)
    >>> from cloister.noise import Random
    >>> shadows = train_shadows(Mean, np.zeros((10, 1)), np.arange(10.0), models=6, random=Random.deterministic(1))
    >>> shadows.confidences.shape, set(shadows.member.sum(axis=0).tolist())
    ((6, 10), {3})
    """
    from cloister.noise import default_random

    if not callable(fit):
        instead = "lambda X, y: GaussianNB(epsilon=1).fit(X, y)"
        raise InvalidParameter("fit is invalid", why="it is not a function that trains a model on rows", instead=instead)
    rows, target = rows_and_target(X, y, least=4)
    if isinstance(models, bool) or not isinstance(models, int) or models < 5:
        raise InvalidParameter(f"{models!r} models are invalid", why="one is attacked and 4 are shadows", instead="shadows=64")
    source = default_random() if random is None else random
    member = _halves(models, len(rows), source)
    said = np.empty((models, len(rows)))
    for number, had in enumerate(member):
        model = fit(rows[had], None if target is None else target[had])
        said[number] = np.asarray(confidence(model, rows, target), dtype=np.float64)
    return Shadows(confidences=said, member=member)


def _halves(models: int, rows: int, random: Random) -> NDArray[np.bool_]:
    """For each row a random half of the models that have it, the halves of different rows independent."""
    ranks = np.argsort(random.words(models * rows).reshape(models, rows), axis=0)
    return np.asarray(ranks < models // 2)


def _law(said: Floats, chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Mean and spread of each row's confidence over the chosen models."""
    number = np.maximum(chosen.sum(axis=0), 1)
    mean = np.where(chosen, said, 0.0).sum(axis=0) / number
    square = np.where(chosen, np.square(said - mean), 0.0).sum(axis=0) / number
    if number.min() < _OWN_SPREAD_FROM:
        square = np.full_like(square, square.mean())
    return mean, np.sqrt(square + _LEAST_SPREAD**2)


def _log_density(value: Floats, mean: Floats, spread: Floats) -> Floats:
    return np.asarray(-0.5 * np.square((value - mean) / spread) - np.log(spread))


def _check_attack(attack: str) -> None:
    check_one_of(attack, "attack", tuple(_ATTACKS), why=f"known are {', '.join(map(repr, _ATTACKS))}", instead='attack="online"')
