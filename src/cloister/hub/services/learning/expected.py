"""What a page and a card say of a method before anything is spent: a curve over ε, and what is lost at the model's own ε, both on
made-up rows (`cloister.learn.assessment.expected`); worked out once in a process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.cache import cached
from cloister.hub.decisions.policy.methods import offered
from cloister.hub.hub import Hub
from cloister.hub.services.learning.order import Training, declared, shape_of
from cloister.hub.web.languages import N_
from cloister.hub.web.pictures import INK, MAIN, SOFT, svg_of
from cloister.privacy import ZCDP, Guarantee, text_of
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from cloister.hub.work.one_table import ReadyTable
    from cloister.learn.assessment.expected import Expected

_DELTA = "1e-6"
_PART, _PART_LOST = "expected curves", "expected losses"
_BEGIN = "expected loss against no privacy: "
LOST = {
    "accuracy": N_("expected loss against no privacy: accuracy on made-up rows (mean and range of 5 runs)"),
    "r2": N_("expected loss against no privacy: R² on made-up rows (mean and range of 5 runs)"),
    "captured": N_("expected loss against no privacy: explained variance on made-up rows (mean and range of 5 runs)"),
}
"""What the line of a card is called, as it shows it, by what is measured."""


def expected(hub: Hub, found: ReadyTable[Training]) -> Expected | None:
    """The curve of an order; None for a method whose result nothing measures."""
    from cloister.learn.assessment.expected import expected_curve, measured

    model, encoder = declared(found.order, found.table)
    if not measured(model):
        return None
    pure, delta = _promise(found.order, found.cost)
    model.delta = None if pure else delta
    key = repr(shape_of(found.order, model, encoder, found.table))
    curve = cached(hub, _PART, key, lambda: expected_curve(model, encoder, found.table))
    return replace(curve, at=float(min(_epsilon(found.cost), Fraction(10**9))))  # beyond every curve, and a float


def lost(hub: Hub, order: Training, table: PrivateTable, cost: Guarantee) -> dict[str, str] | None:
    """The line of a card on what privacy costs, by what follows "expected loss against no privacy: "; None where nothing measures
    the result, or where the method can't learn from such rows. It is worked out once in a process.

    The measure without noise less the measure under this promise, on made-up rows: public facts alone, as the curve.
    """
    from cloister.learn.assessment.expected import expected_loss, measured

    try:
        model, encoder = declared(order, table)
        if not measured(model):
            return None
        pure, delta = _promise(order, cost)
        model.delta, at = None if pure else delta, _epsilon(cost)
        key = repr((*shape_of(order, model, encoder, table), at))
        measure, told = cached(hub, _PART_LOST, key, lambda: expected_loss(model, encoder, table, at))
        return {LOST[measure].removeprefix(_BEGIN): told}
    except (CloisterError, TypeError, ValueError, ArithmeticError, LookupError):
        return None


def picture(told: Expected, _: Callable[[str], str]) -> str:
    """The curve as SVG, in the reader's words."""
    import altair as alt

    measure = {"accuracy": _("accuracy"), "r2": _("R²"), "captured": _("explained variance")}.get(told.measure, told.measure)
    rows = [
        {"epsilon": each.epsilon, "mean": each.mean, "low": each.mean - each.spread, "high": each.mean + each.spread}
        for each in told.points
    ]
    x = alt.X("epsilon:Q", scale=alt.Scale(type="log"), title=_("ε (less is more private)"))
    y = alt.Y("mean:Q", scale=alt.Scale(zero=False), title=measure)
    base = alt.Chart(alt.Data(values=rows)).properties(width=480, height=230)
    layers = [
        base.mark_rule(strokeWidth=1.5, color=SOFT).encode(x=x, y=alt.Y("low:Q", title=measure), y2="high:Q"),
        base.mark_line(point=alt.OverlayMarkDef(color=MAIN), color=MAIN).encode(x=x, y=y),
    ]
    ends = max(each.epsilon for each in told.points)
    for value, label in ((told.plain, _("without noise")), (told.guess, _("blind guess"))):
        line = alt.Data(values=[{"mean": value, "epsilon": ends, "label": label}])
        layers.append(alt.Chart(line).mark_rule(strokeDash=[6, 4], color=SOFT).encode(y=y))
        text = alt.Chart(line).mark_text(align="right", baseline="bottom", dy=-4, color=SOFT)
        layers.append(text.encode(x=x, y=y, text="label:N"))
    if told.at is not None and told.points[0].epsilon <= told.at <= ends:
        chosen = alt.Data(values=[{"epsilon": told.at}])
        layers.append(alt.Chart(chosen).mark_rule(color=INK).encode(x=x))
    return svg_of(alt.layer(*layers))


def _promise(order: Training, cost: Guarantee) -> tuple[bool, str]:
    """Whether the promise is pure, and its δ. A ρ is drawn over the ε that it promises with δ = 10⁻⁶."""
    if isinstance(cost, ZCDP):
        return not offered()[order.method].approximate, _DELTA
    if cost.delta == 0 and not offered()[order.method].pure:
        raise InvalidParameter(
            "The model is invalid", why="this method draws Gaussian noise, which is never pure: it needs a δ", instead="δ = 1e-6"
        )
    return cost.delta == 0, text_of(cost.delta)


def _epsilon(cost: Guarantee) -> Fraction:
    return (cost.to_approx(_DELTA) if isinstance(cost, ZCDP) else cost).epsilon
