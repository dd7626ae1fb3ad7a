"""What the pictures of privacy models share: thirty patients in six classes, as dots in rectangles of age and postcode.

A picture of `docs/figures` says what it wants written in each rectangle, and which rectangles are in the way; the numbers come
from the models themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from cloister.anonymize.classes import Classes
from cloister.anonymize.encoded import encode
from cloister.anonymize.frames import read_frame
from cloister.noise import Random

BOXES = [(20, 40, 0, 20), (40, 60, 0, 20), (60, 80, 0, 20), (20, 40, 20, 40), (40, 60, 20, 40), (60, 80, 20, 40)]
"""Ages from and to, the last two digits of postcodes from and to."""
ILL = [
    ["flu"] * 5,
    ["flu", "flu", "asthma", "asthma", "asthma"],
    ["flu", "flu", "asthma", "HIV", "HIV"],
    ["flu"] + ["asthma"] * 4,
    ["flu", "flu", "flu", "asthma", "HIV"],
    ["flu", "flu", "asthma", "asthma", "asthma"],
]
"""What the five people of each class have: flu 15 in all, asthma 12, HIV 3."""
COLOURS = {"flu": "#8a9aa8", "asthma": "#3f6c8f", "HIV": "#c9714f"}
MET, NOT_MET, HIDDEN = "#6b8e4e", "#c9714f", "#bbbbbb"


def patients() -> Classes:
    """The thirty as the models see them."""
    table = encode(read_frame({"ill": [ill for held in ILL for ill in held]}), ["ill"])
    return Classes.of(np.repeat(np.arange(len(ILL)), [len(held) for held in ILL]), len(ILL), sensitive=table.columns)


def class_map(
    said: Sequence[str],
    colours: Sequence[str],
    *,
    held: Sequence[Sequence[str]] = ILL,
    kinds: Mapping[str, str] | None = None,
    boxes: Sequence[tuple[float, float, float, float]] = BOXES,
    title: str = "",
    legend: str | None = None,
    width: int = 440,
    height: int = 250,
) -> alt.LayerChart:
    """Rectangles with what is said of each, in their colours; in each as many dots as it holds people."""
    kinds = kinds or COLOURS
    rectangles = [
        {
            "left": a,
            "right": b,
            "low": c,
            "high": d,
            "said": text,
            "colour": colour,
            "middle": (a + b) / 2,
            "top": d - (d - c) / 9,
        }
        for (a, b, c, d), text, colour in zip(boxes, said, colours, strict=True)
    ]
    dots = [dot for box, people in zip(boxes, held, strict=True) for dot in _dots(box, people)]
    x = alt.X("left:Q", title="age", scale=alt.Scale(domain=[boxes[0][0], boxes[-1][1]], nice=False))
    y = alt.Y(
        "low:Q", title="postcode, last digits", scale=alt.Scale(domain=[boxes[0][2], boxes[-1][3]]), axis=alt.Axis(tickCount=4)
    )
    base = alt.Chart(alt.Data(values=rectangles))
    fill = alt.Color("colour:N", scale=None)
    layers = [
        base.mark_rect(opacity=0.2, stroke="white", strokeWidth=3).encode(x=x, x2="right:Q", y=y, y2="high:Q", color=fill),
        base.mark_text(fontWeight="bold", color="#2d2823").encode(x="middle:Q", y="top:Q", text="said:N"),
    ]
    if dots:
        points = alt.Chart(alt.Data(values=dots)).mark_point(filled=True, size=70, opacity=1)
        colour = alt.Color("kind:N", title=legend, scale=alt.Scale(domain=list(kinds), range=list(kinds.values())))
        layers.insert(1, points.encode(x="x:Q", y="y:Q", color=colour))
    return alt.layer(*layers).properties(width=width, height=height, title=title).resolve_scale(color="independent")


def _dots(box: tuple[float, float, float, float], people: Sequence[str]) -> list[dict[str, Any]]:
    """In rows of six under the words, shifted a little so that they look like people and not like a grid."""
    left, right, low, high = box
    random = Random.deterministic(int(left + low) + len(people))
    aside = (random.below(101, 2 * len(people)).reshape(2, -1) - 50) / 400
    across, down = min(6, len(people)), -(-len(people) // 6)
    return [
        {
            "x": left + (right - left) * (place % 6 + 0.5 + aside[0, place]) / across,
            "y": low + (high - low) * 0.72 * (1 - (place // 6 + 0.5 + aside[1, place]) / down),
            "kind": kind,
        }
        for place, kind in enumerate(people)
    ]
