"""What each metric thinks best: the levels of its optimum, on one table."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize import Anonymizer, Hierarchy, KAnonymity
from cloister.anonymize.metrics import METRICS


def people() -> dict[str, list[object]]:
    """3,000 people of five quasi-identifiers."""
    draw = np.random.default_rng(4)
    trade = draw.choice(12, 3000, p=np.arange(12, 0, -1) / 78)
    return {
        "age": (18 + draw.gamma(2.2, 11.0, 3000)).astype(int).tolist(),
        "zip": [f"8{draw.integers(0, 3)}{draw.choice([1, 5, 6, 9])}{draw.integers(0, 6)}" for _ in range(3000)],
        "sex": draw.choice(["F", "M"], 3000).tolist(),
        "children": np.minimum(draw.poisson(1.2, 3000), 6).tolist(),
        "trade": [f"T{place:02}" for place in trade],
    }


def chart() -> alt.LayerChart:
    """A cell for each metric and column: the level, as a share of the column's highest."""
    table = people()
    cells = []
    for metric in METRICS:
        anonymizer = Anonymizer(
            quasi=list(table),
            models=[KAnonymity(5)],
            hierarchies={
                "age": Hierarchy.intervals(5, 10, 20, 40),
                "zip": Hierarchy.masking(3, 2, 1),
                "sex": Hierarchy.flat(),
                "children": Hierarchy.intervals(2, 4),
                "trade": Hierarchy.masking(2),
            },
            metric=metric,
        )
        problem = anonymizer.problem(table)
        anonymizer.fit_transform(table)
        for name, level in (anonymizer.report_.levels or {}).items():
            highest = problem.ladders[name].height - 1
            cells.append({"metric": metric, "column": name, "level": f"{level} of {highest}", "share": level / highest})
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=alt.X("column:N", title=None, sort=list(table), axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("metric:N", title=None, sort=list(METRICS)),
    )
    colour = alt.Color("share:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=["#f3efe7", "#3f6c8f"]))
    boxes = base.mark_rect(stroke="white", strokeWidth=2).encode(color=colour)
    names = base.mark_text(fontSize=11).encode(
        text="level:N", color=alt.condition("datum.share > 0.6", alt.value("white"), alt.value("#4a443b"))
    )
    return alt.layer(boxes, names).properties(width=440, height=260)
