"""How good a model is, on rows that were held out: measured under the charge that trained it, kept with it, drawn on its page.

Each row falls by a coin of its own into the part that trains or into the part that judges, so both cost what one costs
(`learn/assessment/judged_tables.py`). A model of classes is judged by tenths of its own certainty, from which its accuracy
follows; one that says a class and no probability, by accuracy alone; one of numbers, by R².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cloister.hub.web.pictures import MAIN, SOFT, svg_of

if TYPE_CHECKING:
    from cloister.learn.assessment.scores import Score
    from cloister.learn.frame.base import PrivateModel
    from cloister.session import Measurer


def judged(model: PrivateModel, session: Measurer, table: str, *, test: str, **how: Any) -> tuple[PrivateModel, Score]:
    """A fitted copy of the model, and its score."""
    from cloister.learn import fit_and_score_table

    measure = "reliability" if model.target_kind == "class" and hasattr(model, "predict_proba") else None
    return fit_and_score_table(session, model, table, test=test, measure=measure, **how)  # type: ignore[arg-type]


def as_kept(score: Score, part: str) -> dict[str, Any]:
    """A score as it is kept with a model: small, and JSON. Of tenths, those that have more rows than noise."""
    from cloister.learn.assessment.scores import Reliability

    if not isinstance(score, Reliability):
        return {"measure": score.name, "part": part, "value": _finite(score.value), "margin": _finite(score.margin()), "bins": []}
    wide = 0.0 if score.noise is None else score.noise.margin(0.95, terms=2)
    bins = [
        {"low": place / 10, "rows": each.part + each.rest, "value": each.value, "margin": _finite(each.margin())}
        for place, each in enumerate(score.bins)
        if each.part + each.rest > wide
    ]
    found = score.accuracy
    return {"measure": "accuracy", "part": part, "value": found.value, "margin": _finite(found.margin()), "bins": bins}


def picture(told: Mapping[str, Any], _: Callable[[str], str]) -> str:
    """How often the model is right where it is how sure, as SVG in the reader's words."""
    import altair as alt

    rows = [
        {
            "sure": each["low"] + 0.05,
            "right": each["value"],
            "low": max(each["value"] - (each["margin"] or 1), 0.0),
            "high": min(each["value"] + (each["margin"] or 1), 1.0),
        }
        for each in told["bins"]
    ]
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("sure:Q", scale=scale, title=_("probability that the model states"), axis=alt.Axis(format="%"))
    y = alt.Y("right:Q", scale=scale, title=_("predictions that are right"), axis=alt.Axis(format="%"))
    base = alt.Chart(alt.Data(values=rows)).properties(width=300, height=260)
    ideal = alt.Chart(alt.Data(values=[{"sure": 0, "right": 0}, {"sure": 1, "right": 1}]))
    return svg_of(
        alt.layer(
            ideal.mark_line(color=SOFT, strokeDash=[6, 4]).encode(x=x, y=y),
            base.mark_rule(color=SOFT, strokeWidth=1.5).encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q"),
            base.mark_line(color=MAIN, point=alt.OverlayMarkDef(color=MAIN)).encode(x=x, y=y),
        )
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
