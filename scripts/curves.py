"""What the pictures of the models share: curves over ε with bars of one standard deviation, and the lines to compare them with.

A picture of `docs/figures` hands over one `Curve` for each colour. The dashed line is the same model without privacy, the dotted
one what a guess of the larger class would reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import altair as alt

from cloister.learn import Curve
from cloister.learn.assessment.curve import Point
from cloister.noise import Random

COLOURS = ("#3f6c8f", "#c9714f", "#6b8e4e", "#8a5a83", "#b8923a")
INK = "#2d2823"


def measured(
    name: str,
    measure: str,
    epsilons: Sequence[str],
    run: Callable[[str | None, Random], float],
    *,
    runs: int = 10,
    seed: int = 1,
    plain: bool = True,
) -> Curve:
    """The curve of whatever `run` gives for an ε (None: without privacy) and a generator."""
    random = Random.deterministic(seed)
    points = tuple(
        Point(epsilon=Fraction(epsilon), values=tuple(run(epsilon, random) for _ in range(runs))) for epsilon in epsilons
    )
    without = Point(epsilon=None, values=(run(None, random),)) if plain else None
    return Curve(model=name, measure=measure, rows="public rows", delta=None, plain=without, points=points)


def drawn(
    curves: Mapping[str, Curve],
    *,
    y: str,
    guess: tuple[str, float] | None = None,
    domain: tuple[float, float] | None = None,
    log: bool = False,
) -> alt.LayerChart:
    """All of them in one picture: a colour each, and rules without privacy and for the guess."""
    names = list(curves)
    rows = [
        {**row, "low": row["mean"] - row["spread"], "high": row["mean"] + row["spread"], "name": name}
        for name, curve in curves.items()
        for row in curve.data()
        if row["epsilon"] is not None
    ]
    if domain is not None:
        for row in rows:
            row |= {key: min(max(row[key], domain[0]), domain[1]) for key in ("low", "high", "mean")}
    scale = alt.Scale(type="log") if log else alt.Scale(zero=False)
    up = alt.Scale(type=scale.type, zero=False, domain=list(domain)) if domain is not None else scale
    colour = alt.Color(
        "name:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])),
        legend=alt.Legend(orient="top", labelLimit=320, columns=2) if len(names) > 1 else None,
    )
    x = alt.X("epsilon:Q", title="ε (less is more private)", scale=alt.Scale(type="log", nice=False, padding=12))
    base = alt.Chart(alt.Data(values=rows))
    layers = [
        base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(x=x, y=alt.Y("low:Q", title=y, scale=up), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2.5, point=True).encode(x=x, y=alt.Y("mean:Q", title=y, scale=up), color=colour),
    ]
    plain = next((curve.plain for curve in curves.values() if curve.plain is not None), None)
    left = min(row["epsilon"] for row in rows)
    if plain is not None:
        layers += _rule(plain.mean, "without privacy", [6, 4], left, y, up)
    if guess is not None:
        layers += _rule(guess[1], guess[0], [2, 3], left, y, up)
    return alt.layer(*layers).properties(width=440, height=250)


def _rule(value: float, words: str, dashes: list[int], left: float, title: str, scale: Any) -> list[alt.Chart]:
    here = alt.Chart(alt.Data(values=[{"value": value, "at": left, "words": words}]))
    y = alt.Y("value:Q", title=title, scale=scale)
    return [
        here.mark_rule(color=INK, strokeDash=dashes).encode(y=y),
        here.mark_text(align="left", baseline="bottom", dy=-3, color=INK).encode(x="at:Q", y=y, text="words:N"),
    ]
