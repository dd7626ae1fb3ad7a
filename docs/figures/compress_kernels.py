"""Rings that no line tells apart, and what a kernel makes of them."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.compress import KDCA, KernelPCA
from cloister.compress.drawing import normal
from cloister.noise import Random

NAMES = ["inner ring", "outer ring"]
COLOURS = ["#3f6c8f", "#c9714f"]


def chart() -> alt.HConcatChart:
    """Left: the rows. Then the first coordinate of kernel components, and of kernel discriminants."""
    ring = np.arange(200) % 2
    angle, noise = np.linspace(0, 40, 200), normal(400, Random.deterministic(1)).reshape(200, 2) * 0.15
    rows = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + 1.5 * ring)[:, None] + noise
    left = [{"x": float(x), "y": float(y), "ring": NAMES[each]} for (x, y), each in zip(rows, ring, strict=True)]
    colour = alt.Color("ring:N", title=None, scale=alt.Scale(domain=NAMES, range=COLOURS), legend=alt.Legend(orient="bottom"))
    points = alt.Chart(alt.Data(values=left)).mark_point(filled=True, size=30, opacity=0.7)
    panels: list[alt.Chart] = [points.encode(x="x:Q", y="y:Q", color=colour).properties(width=190, height=190, title="rows")]
    for name, made in (("KernelPCA", KernelPCA(1, gamma=0.5)), ("KDCA", KDCA(1, gamma=0.5))):
        z = made.fit(rows, ring).transform(rows)[:, 0]
        told = [{"z": float(one), "ring": NAMES[each]} for one, each in zip(z, ring, strict=True)]
        bars = alt.Chart(alt.Data(values=told)).mark_bar(opacity=0.6)
        x = alt.X("z:Q", bin=alt.Bin(maxbins=30), title="first coordinate")
        bars = bars.encode(x=x, y=alt.Y("count():Q", stack=None, title="rows"), color=colour)
        panels.append(bars.properties(width=190, height=190, title=name))
    return alt.hconcat(*panels)
