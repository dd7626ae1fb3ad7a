"""β-likeness: by how much a value gains in each class, in parts of its share of the table."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize import BetaLikeness
from cloister.anonymize.models.likeness import gains
from scripts.class_map import MET, NOT_MET, class_map, patients


def chart() -> alt.LayerChart:
    """Six classes of five, β = 1."""
    classes = patients()
    spread = classes.spread("ill")
    most = np.maximum.reduceat(gains(spread).floats, spread.first[:-1])
    met = BetaLikeness(1).satisfied(classes, "ill")
    return class_map(
        [f"β = {gain:.2g}" for gain in most],
        [MET if fine else NOT_MET for fine in met],
        title="two of five have HIV, and three of thirty in all: four times as likely",
    )
