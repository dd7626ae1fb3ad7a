"""SafePub: a grid that was fixed beforehand, and the counts of the sampled people; cells with fewer than k stay empty."""

from __future__ import annotations

import altair as alt
import numpy as np

import cloister as cl
from cloister.anonymize import Hierarchy, SafePub
from cloister.noise import Random
from scripts.class_map import HIDDEN, MET, class_map


def chart() -> alt.LayerChart:
    """Two thousand people, most of them young and in the lower postcodes; ε = 1, δ = 10⁻⁶."""
    random = Random.deterministic(31)
    below = random.below(60, 4000).reshape(2, -1).min(axis=0), random.below(40, 4000).reshape(2, -1).min(axis=0)
    table = {"age": (20 + below[0]).tolist(), "postcode": below[1].tolist()}
    safe = SafePub(
        1,
        "1e-6",
        columns={"age": cl.Integer(20, 79), "postcode": cl.Integer(0, 39)},
        hierarchies={"age": Hierarchy.intervals(10), "postcode": Hierarchy.intervals(10)},
        levels={"age": 1, "postcode": 1},
    )
    safe.fit_transform(table, random=Random.deterministic(32))
    found = safe.released_
    shown = dict(zip(zip(found.labels["age"], found.labels["postcode"], strict=True), found.counts, strict=True))
    cells = [(age, code) for code in range(0, 40, 10) for age in range(20, 80, 10)]
    counts = [int(np.asarray(shown.get((f"{age}–{age + 9}", f"{code}–{code + 9}"), 0))) for age, code in cells]
    return class_map(
        [str(count) if count else f"under {safe.k}" for count in counts],
        [MET if count else HIDDEN for count in counts],
        held=[[] for _ in cells],
        boxes=[(age, age + 10, code, code + 10) for age, code in cells],
        title=f"{sum(counts):,} of 2,000 people: a sample, in cells that nobody chose by looking",
    )
