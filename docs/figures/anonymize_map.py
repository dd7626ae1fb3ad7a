"""k-map: somebody may stand alone in the table and be hidden by people who are not in it."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize import KAnonymity, KMap
from cloister.anonymize.classes import Classes
from cloister.anonymize.models.presence import members
from scripts.class_map import MET, NOT_MET, class_map

LIST, INSIDE = [14, 9, 3, 11, 12, 8], [2, 1, 1, 3, 5, 1]
KINDS = {"in the table": "#c9714f", "only on the list": "#cdd6de"}


def chart() -> alt.LayerChart:
    """People of a list in six classes; k = 5."""
    research = [place < inside for people, inside in zip(LIST, INSIDE, strict=True) for place in range(people)]
    classes = Classes.of(np.repeat(np.arange(6), LIST), 6, research=np.array(research))
    table = Classes.of(np.repeat(np.arange(6), INSIDE), 6)
    met = KMap(5).satisfied(classes, None)
    alone = int(KAnonymity(5).satisfied(table, None).sum())
    held = [
        ["in the table"] * inside + ["only on the list"] * (people - inside) for people, inside in zip(LIST, INSIDE, strict=True)
    ]
    return class_map(
        [f"{inside} of {size}" for inside, size in zip(members(classes), classes.sizes, strict=True)],
        [MET if fine else NOT_MET for fine in met],
        held=held,
        kinds=KINDS,
        title=f"5-map in {int(met.sum())} of six classes; 5-anonymous in {alone}",
    )
