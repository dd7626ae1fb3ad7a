"""Two pictures: Laplace against Gaussian noise for k answers, and the error of a sum against its clipping bound."""

from __future__ import annotations

import math
from statistics import NormalDist

import altair as alt

from cloister.noise import DiscreteGaussian, DiscreteLaplace

NOISES = {"Laplace, ε = 1": "#c9714f", "Gaussian, ε = 1, δ = 10⁻⁶": "#3f6c8f"}
PARTS = {"cut off": "#8a9a5b", "noise": "#3f6c8f", "both together": "#2d2823"}
INCOMES = [round(30_000 * math.exp(0.7 * NormalDist().inv_cdf((place + 0.5) / 2_000))) for place in range(2_000)]
EPSILON = 0.1


def chart() -> alt.HConcatChart:
    """Side by side, each with its own legend."""
    return alt.hconcat(many(), clipped(), spacing=40).resolve_scale(color="independent")


def many() -> alt.Chart:
    """Standard deviation of one of k answers in which one person can be k times."""
    points = [
        {"answers": answers, "error": error, "noise": name}
        for answers in sorted({round(10 ** (place / 8)) for place in range(25)})
        for name, error in zip(NOISES, errors(answers), strict=True)
    ]
    return lines(points, "answers", "error", "noise", NOISES).properties(width=280, height=240, title="One of k answers")


def clipped() -> alt.Chart:
    """Root mean square error of the sum of 2,000 incomes, and its two parts."""
    points = []
    for bound in range(30_000, 640_001, 5_000):
        cut = sum(max(income - bound, 0) for income in INCOMES)
        noise = math.sqrt(2) * bound / EPSILON
        points += [
            {"bound": bound, "error": part, "part": name}
            for name, part in zip(PARTS, (cut, noise, math.hypot(cut, noise)), strict=True)
            if part > 0
        ]
    return lines(points, "bound", "error", "part", PARTS).properties(
        width=280, height=240, title="The sum of incomes at ε = 0.1, clipped"
    )


def lines(points: list[dict[str, object]], x: str, y: str, kind: str, colours: dict[str, str]) -> alt.Chart:
    """Lines on logarithmic axes."""
    names = list(colours)
    low = 100_000 if x == "bound" else 1
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=alt.X(f"{x}:Q", title="k" if x == "answers" else "clipping bound", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y(f"{y}:Q", title="error", scale=alt.Scale(type="log", domainMin=low), axis=alt.Axis(format="~s")),
            color=alt.Color(
                f"{kind}:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=list(colours.values())),
                legend=alt.Legend(orient="top", labelLimit=220),
            ),
        )
    )


def errors(answers: int) -> tuple[float, float]:
    """Laplace, Gaussian."""
    laplace = DiscreteLaplace.for_epsilon(1, sensitivity=answers)
    gaussian = DiscreteGaussian.for_approx(1, "1e-6", sensitivity_squared=answers)
    return math.sqrt(laplace.variance), math.sqrt(gaussian.variance)
