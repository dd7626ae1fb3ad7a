"""A census block by how much is printed, patients by the visits that a card saw, a template and a model by answers."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from cloister.attacks.answers import linear_parameters, template_by_answers
from cloister.attacks.linkage import Scoreboard
from cloister.attacks.published import Block
from scripts.curves import COLOURS

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "learn_famous_attacks.py"
PEOPLE, TRIES = 1000, 40


def chart() -> alt.VConcatChart:
    """Four panels: a census, pharmacies, a template, parameters."""
    example = runpy.run_path(str(EXAMPLE))
    above = alt.hconcat(_census(example), _pharmacies(example), spacing=30)
    below = alt.hconcat(_template(), _parameters(), spacing=30)
    return alt.vconcat(above, below, spacing=25).resolve_scale(color="independent")


def _census(example: dict[str, Any]) -> alt.LayerChart:
    """The rows that are the only ones to explain what is printed, beside the groups whose means were printed."""
    printed = example["printed"](example["ROWS"])
    (rows,) = Block(values=range(116), categories=example["CATEGORIES"]).rebuilt(printed, most=1)
    people = [{"x": age, "y": f"{sex}, {race}, {'married' if married == 'M' else 'single'}"} for age, sex, race, married in rows]
    means = []
    for each in printed:
        who = ", ".join(f"{name} {value}" for name, value in each.where.items())
        means.append({"x": each.mean, "y": f"mean of {each.count}" + (f": {who}" if who else "")})
    names = [each["y"] for each in (*means, *people)]
    for place, each in enumerate(people):  # two may be alike but for their age
        each["y"] = names[len(means) + place] = f"{each['y']} ({place + 1})"
    x, y = alt.X("x:Q", title="age"), alt.Y("y:N", title=None, sort=names)
    told = alt.Chart(alt.Data(values=means)).mark_tick(color=COLOURS[1], thickness=3).encode(x=x, y=y)
    found = alt.Chart(alt.Data(values=people)).mark_point(color=COLOURS[0], filled=True, size=70).encode(x=x, y=y)
    return (told + found).properties(width=250, height=230, title="printed, and the only rows that fit")


def _pharmacies(example: dict[str, Any]) -> alt.Chart:
    """Patients that are found by so many visits."""
    people = list(example["pharmacies"](PEOPLE, 1))
    board, draw = Scoreboard(records=[visits for _, _, visits, _ in people], time_scale=1), np.random.default_rng(1)
    points = []
    for known in (1, 2, 3, 4):
        hits = 0
        for place, (_, _, visits, _) in enumerate(people[:TRIES]):
            chosen = [list(visits)[each] for each in draw.choice(len(visits), min(known, len(visits)), replace=False)]
            found = board.search({each: visits[each] for each in chosen})
            hits += found.named and found.record == place
        points.append({"x": known, "y": hits / min(TRIES, len(people))})
    y = alt.Y("y:Q", title="patients found", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    return _bars(points, alt.X("x:O", title="visits that a card saw", axis=alt.Axis(labelAngle=0)), y, "two harmless files")


def _template() -> alt.Chart:
    """How far off a template is, after so many answers of yes and no: 2·16·bits and one."""
    hidden = np.random.default_rng(1).normal(0, 0.5, 16)
    points = []
    for bits in range(1, 13):
        found = template_by_answers(lambda touch: bool(np.linalg.norm(touch - hidden) < 1), hidden + 0.1, bits=bits)
        points.append({"x": 32 * bits, "y": float(np.abs(found - hidden).max())})
    return _line(points, "answers of yes and no", "largest error", "a template of 16 features")


def _parameters() -> alt.Chart:
    """How far off a model's weights are, by the digits of its probabilities."""
    draw = np.random.default_rng(1)
    weights = draw.normal(0, 1, 30)
    points = []
    for digits in range(1, 9):
        found, _ = linear_parameters(lambda rows, digits=digits: np.round(1 / (1 + np.exp(-(rows @ weights + 0.5))), digits), 30)
        points.append({"x": digits, "y": float(np.abs(found - weights).max())})
    return _line(points, "digits of the probability that is told", "largest error", "31 answers of a model of 30 weights")


def _bars(points: list[dict[str, Any]], x: alt.X, y: alt.Y, title: str) -> alt.Chart:
    base = alt.Chart(alt.Data(values=points), title=title).mark_bar(color=COLOURS[0])
    return base.encode(x=x, y=y).properties(width=250, height=230)


def _line(points: list[dict[str, Any]], x: str, y: str, title: str) -> alt.Chart:
    base = alt.Chart(alt.Data(values=points), title=title).mark_line(color=COLOURS[1], strokeWidth=2.5, point=True)
    scaled = alt.Y("y:Q", title=y, scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e", tickCount=6))
    return base.encode(x=alt.X("x:Q", title=x), y=scaled).properties(width=250, height=230)
