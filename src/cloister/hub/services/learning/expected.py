"""What is to be expected of a method at each ε, before anything is spent: it is trained on made-up rows (`made_up.py`).

It stands on public facts alone: the declarations, the declared size, the method. Where the declared size is larger than what is
trained on here, ε is made larger in the same proportion, since the noise of a sum over n rows counts as 1/(ε·n) of it. That is a
rule of thumb, and the picture says so. What it can't say is how good a model the real rows allow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter
from cloister.hub.policy.methods import offered
from cloister.hub.services.asking.charts import INK, MAIN, SOFT, svg_of
from cloister.hub.services.learning.made_up import made_up
from cloister.hub.services.learning.order import Order, model_of
from cloister.hub.services.learning.worked_out import shape_of, worked_out
from cloister.noise import Random
from cloister.privacy import ZCDP, Guarantee
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.learn.curve import Curve

__all__ = ["EPSILONS", "Expected", "expected", "picture"]

EPSILONS = (Fraction(1, 10), Fraction(3, 10), Fraction(1), Fraction(3), Fraction(10))
_ROWS, _UNSAID, _RUNS = 2000, 1000, 3
_LARGEST = Fraction(1000)
_SEED = 20_260_103
_DELTA = "1e-6"
_PART = "expected curves"


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
    from cloister.learn.captured import captures
    from cloister.learn.encoding import Encoder
    from cloister.learn.from_tables import declare

    model = model_of(order)
    if model._target == "none" and not captures(model):
        return None
    encoder = Encoder.of(table.columns, list(order.features))
    declare(model, encoder, table, order.target or None)
    pure, delta = _promise(order, cost)
    model.delta = None if pure else delta
    key = repr(shape_of(order, model, encoder, table))
    found = worked_out(hub, _PART, key, lambda: _worked_out(model, encoder, table.size))
    at = float(cost.to_approx(_DELTA).epsilon) if isinstance(cost, ZCDP) else float(cost.epsilon)
    return replace(found, at=at)


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
            "The model was refused", why="this method draws Gaussian noise, which is never pure: it needs a δ", instead="δ = 1e-6"
        )
    return cost.delta == 0, text_of(cost.delta)


def _worked_out(model: Any, encoder: Any, size: int | None) -> Expected:
    from cloister.learn.curve import price_of_privacy

    meant = size or _UNSAID
    trained = max(min(meant, _ROWS), 50)
    X, y = made_up(model, encoder, trained)
    scale = max(Fraction(meant, trained), Fraction(1))
    asked = {min(each * scale, _LARGEST): each for each in reversed(EPSILONS)}
    curve: Curve = price_of_privacy(
        model, X, y, epsilons=list(asked), runs=_RUNS, rows="made-up rows", random=Random.deterministic(_SEED)
    )
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
        declared=size is not None,
        trained=trained,
        runs=_RUNS,
        delta="" if model.delta is None else str(model.delta),
        plain=curve.plain.mean,
        guess=guess,
        points=tuple(points),
        at=None,
    )
