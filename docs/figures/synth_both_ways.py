"""One data set asked both ways: question by question until the budget is spent, and from one synthetic table of that cost."""

from __future__ import annotations

from itertools import combinations

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import DiscreteLaplace, Random

COLUMNS = {name: cl.Integer(0, 3) for name in ("age", "town", "plan", "use", "pay", "stay")}
ROWS = 10_000
ASKED, MADE = "asked one by one, ε = 1 shared", "from one synthetic table, ε = 1"
COLOURS = {ASKED: "#c9714f", MADE: "#3f6c8f"}


def people() -> dict[str, np.ndarray]:
    """10,000 made-up people, whose columns lean on a common cause."""
    random = np.random.default_rng(7)
    cause = random.normal(size=ROWS)
    return {name: np.clip(np.round(1.5 + 0.6 * cause + random.normal(size=ROWS)), 0, 3).astype(int) for name in COLUMNS}


def errors() -> tuple[float, float]:
    """Of counts of three columns, each with one value: the root of the mean squared error of drawn rows, over 200 of them;
    and the deviation of one question's noise at ε = 1."""
    table = people()
    model = cl.synth.fit_frame(table, COLUMNS, epsilon=1, delta=0, method="pairs", random=Random.deterministic(1))
    rows = model.sample(ROWS, random=Random.deterministic(2))
    random, squares = np.random.default_rng(11), []
    every = list(combinations(COLUMNS, 3))
    for _ in range(200):
        names, values = every[random.integers(len(every))], random.integers(0, 4, 3)
        true, drawn = (
            int(np.logical_and.reduce([np.asarray(each[name]) == value for name, value in zip(names, values, strict=True)]).sum())
            for each in (table, {name: rows[name] for name in names})
        )
        squares.append((true - drawn) ** 2)
    return float(np.sqrt(np.mean(squares))), float(np.sqrt(float(DiscreteLaplace(scale=1, sensitivity=1).variance)))


def crossing(flat: float, one: float) -> int:
    """From how many questions on the synthetic table errs less: those asked share the budget alike."""
    return int(np.ceil(flat / one))


def chart() -> alt.LayerChart:
    """The error of a count, by how many questions are asked."""
    flat, one = errors()
    numbers = [round(each) for each in np.logspace(0, 3, 31)]
    points = [{"questions": each, "error": one * each, "way": ASKED} for each in numbers]
    points += [{"questions": each, "error": flat, "way": MADE} for each in (1, 1000)]
    x = alt.X(
        "questions:Q",
        scale=alt.Scale(type="log", nice=False),
        title="questions, counts of three columns",
        axis=alt.Axis(values=[1, 10, 100, 1000]),
    )
    y = alt.Y("error:Q", scale=alt.Scale(type="log"), title="error of each, in rows", axis=alt.Axis(values=[1, 10, 100, 1000]))
    colour = alt.Color(
        "way:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="top", labelLimit=300),
    )
    lines = alt.Chart(alt.Data(values=points)).mark_line().encode(x=x, y=y, color=colour)
    at = crossing(flat, one)
    cross = alt.Chart(alt.Data(values=[{"questions": at, "error": flat, "words": f"from {at} questions on"}]))
    dot = cross.mark_point(filled=True, size=70, color="#2d2823", opacity=1).encode(x=x, y=y)
    words = cross.mark_text(align="left", dx=8, dy=14, color="#2d2823").encode(x=x, y=y, text="words:N")
    return alt.layer(lines, dot, words).properties(width=520, height=260, title="10,000 people, ε = 1 either way")
