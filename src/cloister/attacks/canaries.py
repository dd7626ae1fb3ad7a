"""Canary audits of estimators: lower bounds on ε from many fits with and without one row that strains the guarantee.

The two worlds are a few rows, and the same rows with one *canary* more: a row where the model is most sensitive, such as a corner
of the declared box with the rare class (Jagielski, Ullman & Oprea, *Auditing differentially private machine learning: how private
is private SGD?*, NeurIPS 2020; Nasr, Hayes, Steinke, Balle, Tramèr, Jagielski, Carlini & Terzis, USENIX Security 2023). The model
is trained a few hundred or thousand times in each world; of each fit all learned numbers are looked at, and what it says of the
canary; the rest is `cloister.attacks.audit`, with its proof. Few rows make the canary weigh most, and the fits quick.

With r fits in each world, half of which measure, an event that never happens in one world shows ε of about ln(r/2) − 3 at
the confidence 1 − 10⁻⁹: 3.2 for 1,000 fits. So claims are audited at ε = 1 or less, where a factor of three shows from a
thousand fits on, and a factor of two from some 4,000.

>>> random_rows = np.array([[0.2], [0.4]]), np.array([0, 1])
>>> class Means:
...     "A noisy sum, with the noise for one in which nobody counts for more than 1."
...     def __init__(self, random): self.random = random
...     def fit(self, X, y):
...         from cloister.noise import DiscreteLaplace
...         self.mean_ = (X.sum() * 1024 + DiscreteLaplace(scale=1024).sample(1, random=self.random)[0]) / 1024
...         return self
>>> from cloister.noise import Random
>>> from cloister.privacy import PureDP
>>> worlds = {"rows": random_rows, "runs": 800, "claims": PureDP(1), "random": Random.deterministic(1)}
>>> audit_model(Means, canary=([1.0], 1), **worlds).broken, audit_model(Means, canary=([40.0], 1), **worlds).broken
(False, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.audit import audit
from cloister.attacks.confidences import Floats
from cloister.attacks.result import AuditResult
from cloister.errors import InvalidParameter, numbers_alone
from cloister.noise import Random
from cloister.privacy import Exact, Guarantee

Rows: TypeAlias = tuple[Any, Any]
"""X, and y or None."""
_MOST = 256
_PILOT = 100
_RIDGE = 0.1
_FAR = 1e6
_SAYS = ("predict_proba", "decision_function", "transform", "predict")


@dataclass(frozen=True, kw_only=True)
class CanaryAudit:
    """What was found of an estimator, and what it claims.

    >>> from fractions import Fraction
    >>> found = AuditResult(event="the mean is 1 or more", likelier="left", likely=0.5, unlikely=0.1, target_delta=Fraction(0),
    ...                     target_epsilon=None, confidence=Fraction(999, 1000), runs=1000)
    >>> from cloister.privacy import PureDP
    >>> audited = CanaryAudit(found=found, claims=PureDP(1), model="Means")
    >>> audited.broken, round(audited.epsilon, 2), audited.as_card()["claimed"]
    (True, 1.61, 'ε = 1')
    """

    found: AuditResult
    claims: Guarantee
    model: str

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted, with the confidence of what was found."""
        return self.found.contradicts(self.claims)

    @property
    def epsilon(self) -> float:
        """The lower bound on ε, at the δ that is claimed."""
        return self.found.epsilon_at(self.claims.delta)

    def as_card(self) -> dict[str, Any]:
        """For a model card: plain texts and numbers."""
        return {
            "model": self.model,
            "claimed": str(self.claims),
            "found_epsilon": round(self.epsilon, 4),
            "at_delta": str(self.claims.delta),
            "confidence": str(self.found.confidence),
            "fits_in_each_world": self.found.runs,
            "event": self.found.event,
            "refuted": self.broken,
        }


def audit_model(
    make: Callable[[Random], Any],
    *,
    rows: Rows,
    canary: tuple[Any, Any],
    instead_of: tuple[Any, Any] | None = None,
    runs: int = 2_000,
    claims: Guarantee | None = None,
    numbers: Callable[[Any], Any] | None = None,
    confidence: Exact = "0.999999999",
    random: Random | None = None,
) -> CanaryAudit:
    """Train a model many times with and without a canary, and bound its ε from below.

    Parameters
    ----------
    make
        `random -> estimator`, not yet fitted, that draws its noise from that source.
    rows, canary
        (X, y) without the canary (None for y where there is no target), and the canary's own (x, y).
    instead_of
        Left out, the neighbour has one row more. Where the promise is about a person who changes: the (x, y) that takes the
        canary's place in the other world.
    runs
        Fits in each world: 400 or more.
    claims
        What is promised; left out, the `guarantee_` of the first model that is fitted.
    numbers
        `model -> numbers`, always as many; left out: what it learned, and what it says of the canary.
    confidence
        The probability with which the bound holds, whatever the model: 1 − this is the chance of a false alarm.

    The docstring of this module has an example.
    """
    from cloister.noise import default_random

    source = default_random() if random is None else random
    without, with_canary = _worlds(rows, canary, instead_of)
    first = make(source).fit(*with_canary)
    promised = getattr(first, "guarantee_", None) if claims is None else claims
    if promised is None:
        raise InvalidParameter(
            f"The {type(first).__name__} is invalid",
            why="it promises nothing, so nothing can be refuted",
            instead="claims=PureDP(1)",
        )
    look = numbers or _view(first, np.asarray(canary[0], dtype=np.float64)[None, :])

    def fits(world: Rows, n: int, random: Random) -> Floats:
        return np.stack([np.asarray(look(make(random).fit(*world)), dtype=np.float64).ravel() for _ in range(n)])

    pilot = fits(without, _PILOT, source), fits(with_canary, _PILOT, source)
    found = audit(
        fits,
        without,
        with_canary,
        runs=runs,
        against=promised,
        confidence=confidence,
        features={"the linear discriminant": _discriminant(*pilot)},
        random=source,
    )
    return CanaryAudit(found=found, claims=promised, model=type(first).__name__)


def corner(low: Any, high: Any, *, signs: Any = 1) -> Floats:
    """A corner of a box: where a sign is positive the highest value of the feature, else the lowest.

    >>> corner([0, 10], [1, 30], signs=[1, -1]).tolist()
    [1.0, 10.0]
    """
    ends = np.broadcast_arrays(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64), np.asarray(signs))
    return np.where(ends[2] > 0, ends[1], ends[0])


def learned_numbers(model: Any) -> Floats:
    """What a fitted model holds as numbers, in the order of the names: the attributes that it declares, or that end in "_".

    >>> class Model:
    ...     def __init__(self): self.b_, self.a_, self.names_ = 3, np.array([[1, 2]]), ("x",)
    >>> learned_numbers(Model()).tolist()
    [1.0, 2.0, 3.0]
    """
    names = getattr(model, "learned_names", None)
    if names is None:
        held = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    else:
        held = {name: getattr(model, name) for name in names}
    found = [number for name in sorted(held) for number in _numbers(held[name])]
    return np.concatenate([np.asarray(each, dtype=np.float64).ravel() for each in found]) if found else np.empty(0)


def _numbers(value: Any) -> Iterator[NDArray[Any]]:
    if isinstance(value, Mapping):
        for key in value:
            yield from _numbers(value[key])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _numbers(each)
    elif getattr(value, "learned_names", None) is not None:
        yield learned_numbers(value)
    elif isinstance(value, bool | int | float | np.number | np.ndarray):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            yield array


def _said(model: Any, probe: Any) -> list[Floats]:
    """The first of what a model says that it can say of any row."""
    for name in _SAYS:
        if hasattr(model, name):
            said = np.asarray(getattr(model, name)(probe))
            return [said.astype(np.float64).ravel()] if said.dtype.kind in "biuf" else []
    return []


def _view(first: Any, probe: Floats) -> Callable[[Any], Floats]:
    """The numbers of a model, always as many: what it says of the canary, what it learned, and how much that was.

    A model that learns more numbers than the first one did is cut, one that learns fewer is filled up with 0.
    """
    width = min(len(learned_numbers(first)), _MOST)

    def look(model: Any) -> Floats:
        learned = learned_numbers(model)
        kept = np.zeros(width)
        kept[: len(learned)] = learned[:width]
        numbers = np.concatenate([*_said(model, probe), kept, [len(learned)]])
        return np.asarray(np.nan_to_num(numbers, nan=-_FAR, posinf=_FAR, neginf=-_FAR))

    return look


def _discriminant(left: Floats, right: Floats) -> Callable[[Floats], Floats]:
    """The direction that tells two samples apart best if both were normal (Fisher 1936), learned before the audit begins."""
    spread = np.sqrt((left.var(axis=0) + right.var(axis=0)) / 2)
    varies = spread > 0
    scale = np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0)
    inner = [(side - side.mean(axis=0)) * scale for side in (left, right)]
    covariance = sum(side.T @ side for side in inner) / (len(left) + len(right))
    apart = (right.mean(axis=0) - left.mean(axis=0)) * scale
    direction = scale * np.linalg.solve(covariance + _RIDGE * np.eye(len(apart)), apart)
    return lambda rows: np.asarray(np.asarray(rows, dtype=np.float64) @ direction)


def _worlds(rows: Rows, canary: tuple[Any, Any], instead_of: tuple[Any, Any] | None) -> tuple[Rows, Rows]:
    with numbers_alone("rows"):
        X, y = np.asarray(rows[0], dtype=np.float64), None if rows[1] is None else np.asarray(rows[1])
    without = (X, y) if instead_of is None else _joined(X, y, instead_of)
    return without, _joined(X, y, canary)


def _joined(X: Floats, y: NDArray[Any] | None, more: tuple[Any, Any]) -> Rows:
    row = np.asarray(more[0], dtype=np.float64)
    if X.ndim != 2 or row.shape != X.shape[1:]:
        raise InvalidParameter("The canary is invalid", why="it is not a row like the others", instead="canary=([1.0, 0.0], 1)")
    target = None if y is None else np.concatenate([y, np.asarray([more[1]], dtype=y.dtype)])
    return np.concatenate([X, row[None, :]]), target
