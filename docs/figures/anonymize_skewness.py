"""t-closeness: how far each class is from the whole table; 3-diverse classes may be the farthest."""

from __future__ import annotations

import altair as alt

from cloister.anonymize import TCloseness
from scripts.class_map import MET, NOT_MET, class_map, patients


def chart() -> alt.LayerChart:
    """Six classes of five, t = 0.2."""
    classes = patients()
    model = TCloseness("0.2")
    met = model.satisfied(classes, "ill")
    return class_map(
        [f"t = {t:.2g}" for t in model.distances(classes, "ill")],
        [MET if fine else NOT_MET for fine in met],
        title="in all: flu 50 %, asthma 40 %, HIV 10 %",
    )
