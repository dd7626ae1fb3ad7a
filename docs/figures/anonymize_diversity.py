"""ℓ-diversity: how many illnesses a class has, by the three ways of counting them."""

from __future__ import annotations

import altair as alt

from cloister.anonymize import LDiversity
from cloister.anonymize.models.diversity import distinct_values, effective_values
from scripts.class_map import MET, NOT_MET, class_map, patients


def chart() -> alt.LayerChart:
    """Six classes of five: ℓ of each, and e to the power of its entropy."""
    classes = patients()
    spread = classes.spread("ill")
    met = LDiversity(2).satisfied(classes, "ill")
    return class_map(
        [
            f"ℓ = {number}, by entropy {even:.1f}"
            for number, even in zip(distinct_values(spread), effective_values(spread), strict=True)
        ],
        [MET if fine else NOT_MET for fine in met],
        title="who finds somebody in the red class needs not know which row is theirs",
    )
