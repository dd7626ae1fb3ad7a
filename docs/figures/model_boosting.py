"""The curve of one feature, as boosting learns it at three budgets, against what was put into the rows."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.learn import GradientBoostingClassifier
from cloister.noise import Random
from scripts.curves import COLOURS, INK

ROWS, BINS = 20_000, 32
EPSILONS = ("0.1", "1", "10")


def chart() -> alt.LayerChart:
    """Log-odds by age: a hill, with a cliff at 65."""
    random = Random.deterministic(4)
    ages, chances = (random.below(10**6, ROWS) / 10**6 for _ in range(2))
    ages = 17 + 73 * ages
    y = (chances < 1 / (1 + np.exp(-_truth(ages)))).astype(int)
    at = 17 + 73 * (np.arange(BINS) + 0.5) / BINS
    rows = []
    for epsilon in EPSILONS:
        model = GradientBoostingClassifier(
            epsilon=epsilon, bounds=(17, 90), bins=BINS, rounds=2, size=ROWS, random=Random.deterministic(5)
        ).fit(ages[:, None], y)
        scores = model.decision_function(at[:, None])
        rows += [
            {"age": age, "score": score, "name": f"ε = {epsilon}"}
            for age, score in zip(at.tolist(), scores.tolist(), strict=True)
        ]
    names = [f"ε = {epsilon}" for epsilon in EPSILONS]
    colour = alt.Color(
        "name:N", title=None, scale=alt.Scale(domain=names, range=list(COLOURS[:3])), legend=alt.Legend(orient="top")
    )
    x = alt.X("age:Q", title="age", scale=alt.Scale(domain=[17, 90]))
    y_axis = alt.Y("score:Q", title="log-odds")
    learnt = alt.Chart(alt.Data(values=rows)).mark_line(interpolate="step", strokeWidth=2).encode(x=x, y=y_axis, color=colour)
    fine = np.linspace(17, 90, 300)
    truth = [{"age": age, "score": score} for age, score in zip(fine.tolist(), _truth(fine).tolist(), strict=True)]
    put = alt.Chart(alt.Data(values=truth)).mark_line(color=INK, strokeDash=[4, 3]).encode(x=x, y=y_axis)
    return alt.layer(learnt, put).properties(width=440, height=250)


def _truth(ages: np.ndarray) -> np.ndarray:
    return np.where(ages < 65, 1.5 - ((ages - 48) / 16) ** 2, -2.0)
