"""How many people a model needs when nobody tells anything: test accuracy of naive Bayes against their number, for three ε."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.local.learning import LocalNaiveBayes
from cloister.noise import Random

COLOURS = {"0.5": "#c9714f", "1": "#8a9a5b", "4": "#3f6c8f"}
SIZES = [300, 1_000, 3_000, 10_000, 30_000, 100_000]
FEATURES, RUNS = 8, 12


def chart() -> alt.LayerChart:
    """A line for each ε, and the best that these features allow."""
    random = Random.deterministic(1)
    test_rows, test_classes = people(20_000, random)
    points, ceiling = [], 0.0
    for epsilon in COLOURS:
        model = LocalNaiveBayes([range(3)] * FEATURES, range(2), epsilon)
        for size in SIZES:
            found = []
            for _ in range(RUNS):
                fitted = model.fit(model.aggregate(model.randomize(*people(size, random), random=random)))
                found.append(np.mean(fitted.scores(test_rows).argmax(axis=1) == test_classes))
            ceiling = max(ceiling, *found)
            points.append({"n": size, "accuracy": float(np.mean(found)), "epsilon": f"ε = {epsilon}"})
    names = [f"ε = {epsilon}" for epsilon in COLOURS]
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, point=True)
        .encode(
            x=alt.X("n:Q", title="people", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=SIZES)),
            y=alt.Y("accuracy:Q", title="accuracy on others", scale=alt.Scale(domain=[0.5, 1])),
            color=alt.Color("epsilon:N", title=None, scale=alt.Scale(domain=names, range=list(COLOURS.values())), sort=names),
        )
    )
    best = alt.Chart(alt.Data(values=[{"best": float(ceiling)}])).mark_rule(strokeDash=[4, 4], color="#2d2823")
    return alt.layer(lines, best.encode(y="best:Q")).properties(width=440, height=240)


def people(n: int, random: Random) -> tuple[np.ndarray, np.ndarray]:
    """Two classes; each of eight features with three values says a little of them."""
    classes = random.below(2, n)
    lots = random.below(10, n * FEATURES).reshape(n, FEATURES)
    return np.where(lots < 5, 2 * classes[:, None], lots % 3), classes
