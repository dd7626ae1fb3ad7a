"""What is to be expected of a method before it reads a row: it is trained on made-up rows (`made_up.py`), over a range of ε, and
at one ε against the same method without noise.

It stands on public facts alone: the declarations, the declared size, the method. Where the declared size is another than what
is trained on here, ε is made larger or smaller in the same proportion, since the noise of a sum over n rows counts as 1/(ε·n)
of it. That is a rule of thumb, to be said wherever a curve is shown. Where a person may have m rows, ε is made m times smaller:
the noise hides all of them. What it can't say is how good a model the real rows allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.learn.assessment.curve import Curve, price_of_privacy
from cloister.learn.assessment.made_up import made_up
from cloister.learn.decomposition.captured import captures
from cloister.noise import Random

if TYPE_CHECKING:
    from cloister.learn.frame.base import PrivateModel
    from cloister.learn.frame.encoding import Encoder
    from cloister.tables import PrivateTable

EPSILONS = (Fraction(1, 10), Fraction(3, 10), Fraction(1), Fraction(3), Fraction(10))
_ROWS, _UNSAID = 2000, 1000
_RUNS, _RUNS_OF_LOSS = 3, 5
_LARGEST = Fraction(1000)
_SEED = 20_260_103


@dataclass(frozen=True, kw_only=True)
class Point:
    """How good the method was at one ε, in the mean of some runs, and how far the runs lay apart."""

    epsilon: float
    mean: float
    spread: float


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A method's measure by ε on made-up rows; `plain` is the same method without noise."""

    measure: str
    """accuracy, r2 or captured."""
    rows: int
    """For how many rows it is meant: the declared size."""
    declared: bool
    """Whether a size is declared."""
    trained: int
    """On how many it was made."""
    of_one_person: int
    """How many rows one person may have."""
    runs: int
    delta: str
    plain: float
    guess: float
    """What is right without looking at any feature."""
    points: tuple[Point, ...]
    at: float | None
    """The ε that was chosen."""


def measured(model: PrivateModel) -> bool:
    """Whether anything measures how good its result is."""
    return model.target_kind != "none" or captures(model)


def expected_curve(model: Any, encoder: Encoder, table: PrivateTable) -> Expected:
    """The curve of a model that something measures."""
    curve, asked, meant, trained = _curve(model, encoder, table, EPSILONS, _RUNS)
    assert curve.plain is not None
    points = [
        Point(epsilon=float(asked[each.epsilon]), mean=each.mean, spread=each.spread)
        for each in curve.points
        if each.epsilon is not None
    ]
    guess = 1 / len(model.classes) if curve.measure == "accuracy" else 0.0
    return Expected(
        measure=curve.measure,
        rows=meant,
        declared=table.size is not None,
        trained=trained,
        of_one_person=table.max_rows or 1,
        runs=_RUNS,
        delta="" if model.delta is None else str(model.delta),
        plain=curve.plain.mean,
        guess=guess,
        points=tuple(points),
        at=None,
    )


def expected_loss(model: PrivateModel, encoder: Encoder, table: PrivateTable, at: Fraction) -> tuple[str, str]:
    """By which measure, and what is lost at that ε: the mean of some runs, the least and the most, and for how many rows."""
    curve, _, meant, _ = _curve(model, encoder, table, [at], _RUNS_OF_LOSS)
    assert curve.plain is not None
    each = [plain - noisy for plain, noisy in zip(curve.plain.values, curve.points[0].values, strict=True)]
    mean, low, high = (f"{round(value, 3) + 0.0:.4g}" for value in (sum(each) / len(each), min(each), max(each)))
    return curve.measure, f"{mean} ({low} … {high}), ε = {float(at):.3g}, n = {meant}"


def _curve(
    model: PrivateModel, encoder: Encoder, table: PrivateTable, epsilons: Sequence[Fraction], runs: int
) -> tuple[Curve, dict[Fraction, Fraction], int, int]:
    """On made-up rows; which ε each of its own stands for; for how many rows it is meant, and how many it was trained on."""
    meant = table.size or _UNSAID
    trained = max(min(meant, _ROWS), 50)
    X, y = made_up(model, encoder, trained)
    scale = Fraction(meant, trained) / (table.max_rows or 1)
    asked = {min(each * scale, _LARGEST): each for each in reversed(epsilons)}
    curve = price_of_privacy(
        model, X, y, epsilons=list(asked), runs=runs, rows="made-up rows", random=Random.deterministic(_SEED)
    )
    return curve, asked, meant, trained
