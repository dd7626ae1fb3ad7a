"""t by what counts as near: three classes of three salaries each, under each ground of the distance."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize import Hierarchy, TCloseness
from cloister.anonymize.classes import Classes
from cloister.anonymize.encoded import encode
from cloister.anonymize.frames import read_frame

PAY = [3, 4, 5, 6, 8, 11, 7, 9, 10]
NAMES = ["3, 4, 5", "6, 8, 11", "7, 9, 10"]


def chart() -> alt.Chart:
    """A group of bars for each class."""
    table = encode(read_frame({"pay": PAY}), ["pay"])
    classes = Classes.of(np.repeat([0, 1, 2], 3), 3, sensitive=table.columns)
    bands = Hierarchy.of({pay: ["low" if pay < 6 else "middle" if pay < 9 else "high", "*"] for pay in PAY})
    models = {
        "equal: any two are apart": TCloseness(1, distance="equal"),
        "ordered: by steps": TCloseness(1, distance="ordered"),
        "hierarchical: low, middle, high": TCloseness(1, hierarchy=bands),
    }
    rows = [
        {"class": name, "ground": ground, "t": float(t)}
        for ground, model in models.items()
        for name, t in zip(NAMES, model.distances(classes, "pay"), strict=True)
    ]
    return (
        alt.Chart(alt.Data(values=rows), title="salaries from 3 to 11, three in a class")
        .mark_bar()
        .encode(
            y=alt.Y("class:N", title=None, sort=NAMES),
            yOffset=alt.YOffset("ground:N", sort=list(models)),
            x=alt.X("t:Q", scale=alt.Scale(domain=[0, 0.7])),
            color=alt.Color(
                "ground:N",
                title=None,
                sort=list(models),
                scale=alt.Scale(domain=list(models), range=["#8a9aa8", "#3f6c8f", "#c9714f"]),
                legend=alt.Legend(labelLimit=260),
            ),
        )
        .properties(width=320, height=190)
    )
