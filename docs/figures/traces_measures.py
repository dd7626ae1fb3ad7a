"""Six errors of synthetic journeys, against ε, for a made-up town."""

from __future__ import annotations

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random
from cloister.traces import fit_journeys, journey_measures

PEOPLE = 2_000
SIDE = 8
EPSILONS = (0.1, 0.3, 1, 3, 10)
ERRORS = ["density", "trips", "diameter", "length", "query", "support"]


def chart() -> alt.Chart:
    """From one of five homes to one of three works, in twelve steps, with a detour at random."""
    random = np.random.default_rng(1)
    homes, works = random.uniform(5, 95, (5, 2)), random.uniform(20, 80, (3, 2))
    ends = homes[random.integers(0, 5, PEOPLE)], works[random.integers(0, 3, PEOPLE)]
    share = np.linspace(0, 1, 12)[None, :, None]
    bend = random.normal(0, 12, (PEOPLE, 1, 2)) * np.sin(np.pi * share)
    places = ends[0][:, None] * (1 - share) + ends[1][:, None] * share + bend
    x, y = np.clip(places, 0, 100).reshape(-1, 2).T
    real = (np.repeat(np.arange(PEOPLE), 12).astype(str).tolist(), list(range(12)) * PEOPLE, x, y)
    columns = {"who": cl.Text(), "moment": cl.Integer(0, 11), **{name: cl.Real(0, 100, step="0.1") for name in ("x", "y")}}
    people = cl.PrivateTable(dict(zip(columns, real, strict=True)), columns, unit="who", max_rows=12)
    points = []
    for epsilon in EPSILONS:
        with cl.Session({"town": people}, budget=cl.PureDP(100), random=Random.deterministic(1)) as session:
            model = fit_journeys(session, "town", spend=epsilon, cells=SIDE, zones=4)
        frame = model.sample(PEOPLE, random=Random.deterministic(1))
        drawn = [frame[name] for name in ("journey", "step", "x", "y")]
        found = journey_measures(real, drawn, box=((0, 0), (100, 100)), cells=SIDE).to_dict()
        points += [{"epsilon": epsilon, "error": found[name], "measure": name} for name in ERRORS]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4, point=True)
        .encode(
            x=alt.X("epsilon:Q", title="ε of a journey", scale=alt.Scale(type="log")),
            y=alt.Y("error:Q", title="error", scale=alt.Scale(domainMin=0)),
            color=alt.Color("measure:N", title=None, sort=ERRORS),
        )
        .properties(width=420, height=260)
    )
