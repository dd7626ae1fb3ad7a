"""Risk against loss: every allowed node of a lattice, and those of which none other is better in both."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize import Anonymizer, Hierarchy, KAnonymity
from cloister.anonymize.searches.border import border
from cloister.anonymize.searches.frontier import frontier
from cloister.anonymize.searches.judging import recode


def people() -> dict[str, list[object]]:
    """2,000 people of four quasi-identifiers."""
    draw = np.random.default_rng(8)
    return {
        "age": (18 + draw.gamma(2.2, 11.0, 2000)).astype(int).tolist(),
        "zip": [f"8{draw.integers(0, 3)}{draw.choice([1, 5, 6, 9])}{draw.integers(0, 6)}" for _ in range(2000)],
        "sex": draw.choice(["F", "M"], 2000).tolist(),
        "children": np.minimum(draw.poisson(1.2, 2000), 6).tolist(),
    }


def chart() -> alt.LayerChart:
    """Allowed nodes in grey, the frontier as a line."""
    anonymizer = Anonymizer(
        quasi=["age", "zip", "sex", "children"],
        models=[KAnonymity(3)],
        hierarchies={
            "age": Hierarchy.intervals(5, 10, 20),
            "zip": Hierarchy.masking(3, 2, 1),
            "sex": Hierarchy.flat(),
            "children": Hierarchy.intervals(2),
        },
        suppression="0.05",
    )
    problem = anonymizer.problem(people())
    found = border(problem)
    cloud = []
    for levels in np.argwhere(found.allowed):
        recoded = recode(problem, tuple(int(level) for level in levels))
        kept = problem.table.rows - recoded.suppressed_rows
        cloud.append({"risk": recoded.classes.count / kept, "loss": problem.metric.score(problem, recoded)})
    best = [{"risk": choice.risk, "loss": choice.loss} for choice in frontier(problem)]
    x = alt.X("loss:Q", title="loss")
    y = alt.Y("risk:Q", title="mean risk of being found", scale=alt.Scale(type="log"))
    dots = alt.Chart(alt.Data(values=cloud)).mark_point(filled=True, size=30, color="#c9c2b6", opacity=0.9).encode(x=x, y=y)
    line = (
        alt.Chart(alt.Data(values=best))
        .mark_line(color="#c9714f", strokeWidth=2.5, point={"filled": True, "size": 55, "color": "#c9714f"})
        .encode(x=x, y=y)
    )
    return alt.layer(dots, line).properties(width=480, height=300)
