"""What k releases of ε each cost together: the sum, the advanced theorem, the optimal theorem, and Laplace noise itself."""

from __future__ import annotations

from fractions import Fraction

import altair as alt

from cloister.privacy import PrivacyLossDistribution, PureDP, advanced, optimal

DELTA = "1e-6"
COLOURS = {
    "the sum": "#8a9a5b",
    "advanced theorem": "#c9714f",
    "optimal theorem": "#3f6c8f",
    "Laplace noise, exactly": "#2d2823",
}
POINTS = {100: [1, 2, 3, *range(4, 101, 4)], 10_000: [100, *range(400, 10_001, 800), 10_000]}


def chart() -> alt.VConcatChart:
    """Two rows, ε = 0.1 and ε = 1 a release; two columns, k up to 100 and up to 10,000."""
    rows = [alt.hconcat(*(panel(epsilon, most) for most in POINTS)) for epsilon in ("0.1", "1")]
    return alt.vconcat(*rows).resolve_scale(color="shared")


def panel(epsilon: str, most: int) -> alt.Chart:
    """One ε, one reach of k."""
    each = PureDP(epsilon)
    laplace = PrivacyLossDistribution.laplace(epsilon)
    rows = [
        {"k": k, "epsilon": float(value), "by": by}
        for k in POINTS[most]
        for by, value in (
            ("the sum", k * Fraction(epsilon)),
            ("advanced theorem", advanced(each, k, DELTA).epsilon),
            ("optimal theorem", optimal(each, k, DELTA).epsilon),
            ("Laplace noise, exactly", (laplace * k).epsilon(DELTA)),
        )
    ]
    top = 1.25 * most * float(epsilon)
    return (
        alt.Chart(alt.Data(values=[row for row in rows if row["epsilon"] <= top]))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("k:Q", title="releases", scale=alt.Scale(domain=[0, most])),
            y=alt.Y("epsilon:Q", title="ε together", scale=alt.Scale(domain=[0, top]), axis=alt.Axis(tickCount=5)),
            color=alt.Color(
                "by:N",
                title=None,
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="bottom"),
            ),
            strokeDash=alt.StrokeDash("by:N", legend=None, scale=alt.Scale(domain=list(COLOURS), range=[[1, 0]] * 3 + [[5, 4]])),
        )
        .properties(width=300, height=190, title=f"ε = {epsilon} each, δ = 0.000001")
    )
