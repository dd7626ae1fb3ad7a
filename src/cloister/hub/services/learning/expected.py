"""What is to be expected of a method, before anything is spent: it is trained on made-up rows (`made_up.py`). The page draws a
curve over ε; a model's card says what is lost at its own ε against the same method without noise.

It stands on public facts alone: the declarations, the declared size, the method. Where the declared size is larger than what is
trained on here, ε is made larger in the same proportion, since the noise of a sum over n rows counts as 1/(ε·n) of it. That is a
rule of thumb, and the picture says so. Where a person may have m rows, ε is made m times smaller: the noise hides all of them.
What it can't say is how good a model the real rows allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.policy.methods import offered
from cloister.hub.services.learning.cache import cached, shape_of
from cloister.hub.services.learning.made_up import made_up
from cloister.hub.services.learning.order import Order, model_of
from cloister.hub.web.languages import N_
from cloister.hub.web.pictures import INK, MAIN, SOFT, svg_of
from cloister.noise import Random
from cloister.privacy import ZCDP, Guarantee
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.learn.assessment.curve import Curve
    from cloister.learn.frame.base import PrivateModel
    from cloister.learn.frame.encoding import Encoder

__all__ = ["EPSILONS", "LOST", "Expected", "expected", "lost", "picture"]

EPSILONS = (Fraction(1, 10), Fraction(3, 10), Fraction(1), Fraction(3), Fraction(10))
_ROWS, _UNSAID, _RUNS = 2000, 1000, 3
_LARGEST = Fraction(1000)
_SEED = 20_260_103
_DELTA = "1e-6"
_PART, _PART_LOST = "expected curves", "expected losses"
_BEGIN, _RUNS_LOST = "expected loss against no privacy: ", 5
LOST = {
    "accuracy": N_("expected loss against no privacy: accuracy on made-up rows (mean and range of 5 runs)"),
    "r2": N_("expected loss against no privacy: R² on made-up rows (mean and range of 5 runs)"),
    "captured": N_("expected loss against no privacy: explained variance on made-up rows (mean and range of 5 runs)"),
}
"""What the line of a card is called, as it shows it, by what is measured."""


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


def expected(hub: Hub, order: Order, table: PrivateTable, cost: Guarantee) -> Expected | None:
    """The curve of an order; None for a method whose result nothing measures. It is worked out once in a process."""
    model, encoder = _declared(order, table)
    if not _measured(model):
        return None
    pure, delta = _promise(order, cost)
    model.delta = None if pure else delta
    key = repr(shape_of(order, model, encoder, table))
    found = cached(hub, _PART, key, lambda: _worked_out(model, encoder, table))
    return replace(found, at=float(_epsilon(cost)))


def lost(hub: Hub, order: Order, table: PrivateTable, cost: Guarantee) -> dict[str, str] | None:
    """The line of a card on what privacy costs, by what follows "expected loss against no privacy: "; None where nothing measures
    the result, or where the method can't learn from such rows. It is worked out once in a process.

    The measure without noise less the measure under this promise, on made-up rows: public facts alone, as the curve.
    """
    try:
        model, encoder = _declared(order, table)
        if not _measured(model):
            return None
        pure, delta = _promise(order, cost)
        model.delta, at = None if pure else delta, _epsilon(cost)
        key = repr((*shape_of(order, model, encoder, table), at))
        return cached(hub, _PART_LOST, key, lambda: _lost(model, encoder, table, at))
    except (CloisterError, TypeError, ValueError, ArithmeticError, LookupError):
        return None


def picture(told: Expected, words: dict[str, str]) -> str:
    """The curve as SVG, in the reader's words."""
    import altair as alt

    rows = [
        {"epsilon": each.epsilon, "mean": each.mean, "low": each.mean - each.spread, "high": each.mean + each.spread}
        for each in told.points
    ]
    x = alt.X("epsilon:Q", scale=alt.Scale(type="log"), title=words["epsilon"])
    y = alt.Y("mean:Q", scale=alt.Scale(zero=False), title=words["measure"])
    base = alt.Chart(alt.Data(values=rows)).properties(width=480, height=230)
    layers = [
        base.mark_rule(strokeWidth=1.5, color=SOFT).encode(x=x, y=alt.Y("low:Q", title=words["measure"]), y2="high:Q"),
        base.mark_line(point=alt.OverlayMarkDef(color=MAIN), color=MAIN).encode(x=x, y=y),
    ]
    ends = max(each.epsilon for each in told.points)
    for value, label in ((told.plain, words["plain"]), (told.guess, words["guess"])):
        line = alt.Data(values=[{"mean": value, "epsilon": ends, "label": label}])
        layers.append(alt.Chart(line).mark_rule(strokeDash=[6, 4], color=SOFT).encode(y=y))
        text = alt.Chart(line).mark_text(align="right", baseline="bottom", dy=-4, color=SOFT)
        layers.append(text.encode(x=x, y=y, text="label:N"))
    if told.at is not None and told.points[0].epsilon <= told.at <= ends:
        chosen = alt.Data(values=[{"epsilon": told.at}])
        layers.append(alt.Chart(chosen).mark_rule(color=INK).encode(x=x))
    return svg_of(alt.layer(*layers))


def _promise(order: Order, cost: Guarantee) -> tuple[bool, str]:
    """Whether the promise is pure, and its δ. A ρ is drawn over the ε that it promises with δ = 10⁻⁶."""
    from cloister.privacy import text_of

    if isinstance(cost, ZCDP):
        return not offered()[order.method].approximate, _DELTA
    if cost.delta == 0 and not offered()[order.method].pure:
        raise InvalidParameter(
            "The model is invalid", why="this method draws Gaussian noise, which is never pure: it needs a δ", instead="δ = 1e-6"
        )
    return cost.delta == 0, text_of(cost.delta)


def _epsilon(cost: Guarantee) -> Fraction:
    return (cost.to_approx(_DELTA) if isinstance(cost, ZCDP) else cost).epsilon


def _declared(order: Order, table: PrivateTable) -> tuple[PrivateModel, Encoder]:
    from cloister.learn.frame.encoding import Encoder
    from cloister.learn.frame.from_tables import declare

    model, encoder = model_of(order), Encoder.of(table.columns, list(order.features))
    declare(model, encoder, table, order.target or None)
    return model, encoder


def _measured(model: PrivateModel) -> bool:
    from cloister.learn.decomposition.captured import captures

    return model._target != "none" or captures(model)


def _curve(
    model: PrivateModel, encoder: Encoder, table: PrivateTable, epsilons: Sequence[Fraction], runs: int
) -> tuple[Curve, dict[Fraction, Fraction], int, int]:
    """On made-up rows; which ε each of its own stands for; for how many rows it is meant, and how many it was trained on."""
    from cloister.learn.assessment.curve import price_of_privacy

    meant = table.size or _UNSAID
    trained = max(min(meant, _ROWS), 50)
    X, y = made_up(model, encoder, trained)
    scale = max(Fraction(meant, trained), Fraction(1)) / (table.max_rows or 1)
    asked = {min(each * scale, _LARGEST): each for each in reversed(epsilons)}
    curve = price_of_privacy(
        model, X, y, epsilons=list(asked), runs=runs, rows="made-up rows", random=Random.deterministic(_SEED)
    )
    return curve, asked, meant, trained


def _lost(model: PrivateModel, encoder: Encoder, table: PrivateTable, at: Fraction) -> dict[str, str]:
    curve, _, meant, _ = _curve(model, encoder, table, [at], _RUNS_LOST)
    assert curve.plain is not None
    each = [plain - noisy for plain, noisy in zip(curve.plain.values, curve.points[0].values, strict=True)]
    mean, low, high = (f"{round(value, 3) + 0.0:.4g}" for value in (sum(each) / len(each), min(each), max(each)))
    return {LOST[curve.measure].removeprefix(_BEGIN): f"{mean} ({low} … {high}), ε = {float(at):.3g}, n = {meant}"}


def _worked_out(model: Any, encoder: Encoder, table: PrivateTable) -> Expected:
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
