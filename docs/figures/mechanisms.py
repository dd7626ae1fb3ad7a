"""What ε buys: the expected error of one count under each additive mechanism, against ε."""

from __future__ import annotations

import math

import altair as alt

from cloister.noise import DiscreteGaussian, Staircase

DELTA = "1e-6"
COLOURS = {"Laplace": "#c9714f", "geometric": "#8a9a5b", "staircase": "#2d2823", "discrete Gaussian, δ = 10⁻⁶": "#3f6c8f"}
DASHES = [[1, 0], [6, 3], [2, 2], [1, 0]]
EPSILONS = [round(10 ** (place / 12), 4) for place in range(-15, 11)]


def chart() -> alt.Chart:
    """Expected |error| for sensitivity 1; both axes logarithmic."""
    rows = [
        {"epsilon": epsilon, "error": error, "mechanism": name}
        for epsilon in EPSILONS
        for name, error in zip(COLOURS, mean_errors(epsilon), strict=True)
    ]
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=alt.X("epsilon:Q", title="ε", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("error:Q", title="expected |error| of a count", scale=alt.Scale(type="log", domain=[0.01, 100])),
            color=alt.Color("mechanism:N", title=None, scale=alt.Scale(domain=names, range=list(COLOURS.values()))),
            strokeDash=alt.StrokeDash("mechanism:N", title=None, scale=alt.Scale(domain=names, range=DASHES)),
        )
        .properties(width=460, height=300)
    )


def mean_errors(epsilon: float) -> list[float]:
    """In the order of the colours: on real numbers, integers, real numbers, integers."""
    gaussian = DiscreteGaussian.for_approx(epsilon, DELTA)
    return [
        1 / epsilon,
        Staircase(epsilon=epsilon).mean_error,  # on integers, with sensitivity 1, the staircase is the geometric mechanism
        Staircase(epsilon=epsilon, step="1/1024").mean_error,
        _mean_of_gaussian(float(gaussian.scale)),
    ]


def _mean_of_gaussian(scale: float) -> float:
    """E|K| of the discrete Gaussian law."""
    weights = [math.exp(-((k / scale) ** 2) / 2) for k in range(int(12 * scale) + 3)]
    return 2 * sum(k * weight for k, weight in enumerate(weights)) / (2 * sum(weights) - 1)
