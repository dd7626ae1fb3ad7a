"""How many of 64 secret bits 128 noisy sums give away: with noise of a fixed scale, and with noise paid for from one budget."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from cloister.attacks.reconstruction import reconstruct, subsets_of
from cloister.noise import DiscreteLaplace, Random

PERSONS, SUMS, WORLDS = 64, 128, 8
SCALES = [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256]
MARKED = {1: "naive: 1 for each answer", 16: "ours, ε = 8 for all", 128: "ours, ε = 1 for all"}
LINE, NAIVE, OURS, INK = "#8b8378", "#c9714f", "#3f6c8f", "#2d2823"


def chart() -> alt.LayerChart:
    """The share of bits that the attack gets right, against the scale of the noise in each sum."""
    points = [{"scale": scale, "share": share(scale), "words": MARKED.get(int(scale), "")} for scale in SCALES]
    across = alt.X("scale:Q", title="scale of the noise in each sum", scale=alt.Scale(type="log", domain=[0.4, 999], nice=False))
    up = alt.Y("share:Q", title="bits recovered", scale=alt.Scale(domain=[0.4, 1.0]), axis=alt.Axis(format=".0%"))
    curve = alt.Chart(alt.Data(values=points)).mark_line(color=LINE, size=2).encode(x=across, y=up)
    marked = [{**point, "whose": "naive" if point["scale"] == 1 else "ours"} for point in points if point["words"]]
    base = alt.Chart(alt.Data(values=marked)).encode(x=across, y=up)
    dots = base.mark_point(size=110, filled=True, opacity=1).encode(
        color=alt.Color("whose:N", scale=alt.Scale(domain=["naive", "ours"], range=[NAIVE, OURS]), legend=None),
        shape=alt.Shape("whose:N", scale=alt.Scale(domain=["naive", "ours"], range=["circle", "diamond"]), legend=None),
    )
    words = base.mark_text(align="left", dx=11, dy=-9, fontSize=12, color=INK).encode(text="words:N")
    guess = alt.Chart(alt.Data(values=[{"y": 0.5, "words": "guessing"}]))
    rule = guess.mark_rule(color=INK, strokeDash=[4, 4]).encode(y="y:Q")
    label = guess.mark_text(align="left", dy=12, fontSize=12, color=INK).encode(x=alt.datum(0.5), y="y:Q", text="words:N")
    return alt.layer(curve, rule, label, dots, words).properties(width=480, height=240)


def share(scale: float) -> float:
    """The share of bits that are right, over several worlds of random bits and random sums."""
    right: list[Any] = []
    for seed in range(WORLDS):
        random = Random.deterministic(seed)
        secret = random.below(2, PERSONS).astype(np.int64)
        subsets = subsets_of(PERSONS, SUMS, random=random)
        answers = DiscreteLaplace(scale=str(scale)).release(subsets @ secret, random=random)
        right.append(float((reconstruct(subsets, answers) == secret).mean()))
    return float(np.mean(right))
