"""What local recoding wins: how much of its column a cell covers, for the best single levels and after refining, against k."""

from __future__ import annotations

from typing import Any

import altair as alt

from cloister.anonymize import Anonymizer, Hierarchy, KAnonymity
from cloister.noise import Random

COLOURS = {"one level for a column": "#c9714f", "local recoding": "#3f6c8f"}
TOWNS = {f"{region}-{town}": [region, "north" if region < "E" else "south", "*"] for region in "ABCDEFGH" for town in range(1, 6)}


def people(rows: int = 3000) -> dict[str, list[Any]]:
    """Made-up people; more of them in some towns and at some ages than in others."""
    random = Random.deterministic(8)
    towns = list(TOWNS)
    return {
        "age": [int(18 + min(a, b)) for a, b in zip(random.below(70, rows), random.below(70, rows), strict=True)],
        "town": [towns[int(a * b // 40)] for a, b in zip(random.below(40, rows), random.below(40, rows), strict=True)],
        "sex": ["FM"[int(each)] for each in random.below(2, rows)],
    }


def chart() -> alt.LayerChart:
    """Two lines."""
    table = people()
    hierarchies = {"age": Hierarchy.intervals(5, 10, 20, 40), "town": Hierarchy.of(TOWNS)}
    points = []
    for k in (2, 3, 5, 8, 12, 20, 30, 50):
        for name, search in zip(COLOURS, ("optimal", "local"), strict=True):
            asked = Anonymizer(quasi=list(table), models=[KAnonymity(k)], hierarchies=hierarchies, search=search)
            asked.recode(table)
            points.append({"k": k, "loss": 100 * asked.report_.score, "search": name})
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("k:Q", title="k", scale=alt.Scale(type="log", domain=[2, 50])),
        y=alt.Y("loss:Q", title="loss, per cent"),
        color=alt.Color("search:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))),
    )
    return alt.layer(base.mark_line(strokeWidth=2.4), base.mark_circle(size=40, opacity=1)).properties(width=420, height=240)
