"""What k answers cost together: the sum, the advanced theorem, the optimal one, and the popular form that is wrong."""

from __future__ import annotations

import math

import altair as alt

from cloister.privacy import PureDP, advanced, optimal

DELTA = "1e-5"
COLOURS = {"sum": "#2d2823", "advanced theorem": "#3f6c8f", "optimal theorem": "#8a9a5b", "popular form (wrong)": "#c9714f"}
PANELS = {"0.1": 10_000, "1": 1_000}


def chart() -> alt.HConcatChart:
    """A panel for each ε; both axes logarithmic."""
    return alt.hconcat(*(panel(epsilon, most) for epsilon, most in PANELS.items()), spacing=30)


def panel(epsilon: str, most: int) -> alt.Chart:
    """The four lines for answers at one ε."""
    steps = round(16 * math.log10(most))
    counts = sorted({round(10 ** (place / 16)) for place in range(steps + 1)})
    points = [
        {"count": count, "epsilon": total, "line": name}
        for count in counts
        for name, total in zip(COLOURS, totals(epsilon, count), strict=True)
    ]
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=alt.X("count:Q", title="answers", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("epsilon:Q", title="ε of all together", scale=alt.Scale(type="log", nice=False)),
            color=alt.Color(
                "line:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=list(COLOURS.values())),
                legend=alt.Legend(orient="top", labelLimit=220),
            ),
            strokeDash=alt.condition("datum.line == 'popular form (wrong)'", alt.value([5, 3]), alt.value([1, 0])),
        )
        .properties(width=300, height=240, title=f"answers at ε = {epsilon} each, δ = 10⁻⁵")
    )


def totals(epsilon: str, count: int) -> tuple[float, float, float, float]:
    """In the order of the legend."""
    each = PureDP(epsilon)
    popular = 2 * float(each.epsilon) * math.sqrt(2 * count * math.log(1e5))
    return (
        float(each.epsilon * count),
        float(advanced(each, count, DELTA).epsilon),
        float(optimal(each, count, DELTA).epsilon),
        popular,
    )
