"""δ-presence: of those on the public list who look alike, how many are in the table?"""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize import DeltaPresence
from cloister.anonymize.classes import Classes
from cloister.anonymize.models.presence import members
from scripts.class_map import MET, NOT_MET, class_map

LIST, INSIDE = [18, 12, 6, 15, 10, 9], [5, 4, 6, 4, 3, 2]
KINDS = {"in the table": "#c9714f", "only on the list": "#cdd6de"}


def chart() -> alt.LayerChart:
    """Seventy people of a list in six classes; at most half of a class may be in the table."""
    research = [place < inside for people, inside in zip(LIST, INSIDE, strict=True) for place in range(people)]
    classes = Classes.of(np.repeat(np.arange(6), LIST), 6, research=np.array(research))
    shares = members(classes) / classes.sizes
    met = DeltaPresence(0, "0.5").satisfied(classes, None)
    held = [
        ["in the table"] * inside + ["only on the list"] * (people - inside) for people, inside in zip(LIST, INSIDE, strict=True)
    ]
    return class_map(
        [f"presence {share:.0%}" for share in shares],
        [MET if fine else NOT_MET for fine in met],
        held=held,
        kinds=KINDS,
        title="whoever is in the red class is known to be in the table",
    )
