"""(α, k)-anonymity: the share of the commonest illness of each class; where it is more than α, the class tells too much."""

from __future__ import annotations

import altair as alt

from cloister.anonymize import AlphaKAnonymity
from cloister.anonymize.models.alpha import largest_shares
from scripts.class_map import MET, NOT_MET, class_map, patients


def chart() -> alt.LayerChart:
    """Six classes of five, α = 0.6."""
    classes = patients()
    shares = largest_shares(classes.spread("ill")).floats
    met = AlphaKAnonymity("0.6", 5).satisfied(classes, "ill")
    return class_map(
        [f"α = {share:g}" for share in shares],
        [MET if fine else NOT_MET for fine in met],
        title="all six classes are 5-anonymous; two are not (0.6, 5)-anonymous",
    )
