"""The lattice of a small table: each node a level for each column, which are allowed, and the best."""

from __future__ import annotations

import itertools

import altair as alt
import numpy as np

from cloister.anonymize import Anonymizer, Hierarchy, KAnonymity
from cloister.anonymize.searches.border import border

COLOURS = {"the best": "#c9714f", "allowed": "#3f6c8f", "too many rows would be suppressed": "#c9c2b6"}


def people() -> dict[str, list[object]]:
    """150 people with an age, a postcode and a sex."""
    draw = np.random.default_rng(5)
    return {
        "age": (20 + draw.gamma(2.2, 9.0, 150)).astype(int).tolist(),
        "zip": [f"81{draw.choice([5, 6, 9], p=[0.5, 0.3, 0.2])}{draw.integers(0, 4)}" for _ in range(150)],
        "sex": draw.choice(["F", "M"], 150).tolist(),
    }


def chart() -> alt.LayerChart:
    """Nodes by the sum of their levels, with the step from each to those above it."""
    anonymizer = Anonymizer(
        quasi=["age", "zip", "sex"],
        models=[KAnonymity(3)],
        hierarchies={"age": Hierarchy.intervals(10, 40), "zip": Hierarchy.masking(3), "sex": Hierarchy.flat()},
        suppression="0.05",
        metric="loss",
    )
    anonymizer.fit_transform(people())
    best = tuple((anonymizer.report_.levels or {}).values())
    found = border(anonymizer.problem(people()))
    places: dict[tuple[int, ...], tuple[float, int]] = {}
    for height, group in itertools.groupby(sorted(np.ndindex(found.allowed.shape), key=sum), key=sum):
        nodes = sorted(group, reverse=True)
        for place, node in enumerate(nodes):
            places[node] = (place - (len(nodes) - 1) / 2, height)
    dots = [
        {
            "x": x,
            "y": y,
            "levels": " ".join(map(str, node)),
            "what": "the best" if node == best else "allowed" if found.allowed[node] else "too many rows would be suppressed",
        }
        for node, (x, y) in places.items()
    ]
    steps = [
        {"x": places[low][0], "y": places[low][1], "x2": places[high][0], "y2": places[high][1]}
        for low, high in itertools.product(places, repeat=2)
        if sum(high) == sum(low) + 1 and all(one <= other for one, other in zip(low, high, strict=True))
    ]
    x = alt.X("x:Q", axis=None, scale=alt.Scale(padding=25))
    y = alt.Y("y:Q", title="sum of the levels", axis=alt.Axis(tickMinStep=1, grid=False))
    lines = alt.Chart(alt.Data(values=steps)).mark_rule(color="#d9d4ca", strokeWidth=1).encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    base = alt.Chart(alt.Data(values=dots)).encode(x=x, y=y)
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="bottom", labelLimit=0),
    )
    circles = base.mark_point(filled=True, size=900, opacity=1).encode(color=colour)
    names = base.mark_text(fontSize=11, color="white").encode(text="levels:N")
    return alt.layer(lines, circles, names).properties(width=520, height=400)
