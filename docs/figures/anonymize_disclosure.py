"""δ-disclosure: by which factor a value gets likelier or less likely in each class; a value that is missing is ruled out."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize import DeltaDisclosure
from cloister.anonymize.models.disclosure import log_ratios
from scripts.class_map import ILL, MET, NOT_MET, class_map, patients


def chart() -> alt.LayerChart:
    """Six classes of five, δ = 1."""
    classes = patients()
    spread = classes.spread("ill")
    most = np.maximum.reduceat(log_ratios(spread), spread.first[:-1])
    met = DeltaDisclosure(1).satisfied(classes, "ill")
    said = [
        f"δ = {found:.2g}" if len(set(held)) == 3 else "δ = ∞: no " + " or ".join(sorted({"HIV", "asthma"} - set(held)))
        for found, held in zip(most, ILL, strict=True)
    ]
    return class_map(
        said, [MET if fine else NOT_MET for fine in met], title="a class that lacks a value says who does not have it"
    )
