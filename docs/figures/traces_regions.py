"""A heat map: trips of a made town by cells of 1 km, as they are and as they are released at ε = 0.1 a person."""

from __future__ import annotations

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random

BOX = (4.28, 51.97, 4.42, 52.05)
PEOPLE, TRIPS = 1500, 4
SQL = "SELECT grid(place, 1000) AS cell, COUNT(*) AS n FROM trips WHERE hour(at) BETWEEN 7 AND 9 GROUP BY cell"


def trips() -> cl.PrivateTable:
    """Homes around two centres, works around one: each person starts there in the morning or comes back at night."""
    drawn = np.random.default_rng(12)
    east = drawn.random(PEOPLE) < 0.35
    home_x = np.where(east, 4.385, 4.335) + drawn.normal(0, 0.009, PEOPLE)
    home_y = np.where(east, 51.995, 52.015) + drawn.normal(0, 0.006, PEOPLE)
    rows = {"who": [], "lon": [], "lat": [], "at": []}
    for trip in range(TRIPS):
        morning = trip % 2 == 0
        x, y = (home_x, home_y) if morning else (4.36 + drawn.normal(0, 0.004, PEOPLE), 52.003 + drawn.normal(0, 0.003, PEOPLE))
        hours = drawn.integers(7, 10, PEOPLE) if morning else drawn.integers(16, 20, PEOPLE)
        rows["who"] += list(range(PEOPLE))
        rows["lon"] += x.tolist()
        rows["lat"] += y.tolist()
        rows["at"] += [f"2026-03-{2 + trip // 2:02d}T{hour:02d}:30" for hour in hours]
    columns = {"place": cl.Place(BOX, longitude="lon", latitude="lat"), "at": cl.Moment("2026-03-02", "2026-03-03")}
    return cl.PrivateTable(rows, columns=columns, unit="who", max_rows=TRIPS, version="1")


def chart() -> alt.Chart:
    """Two maps beside each other, with one scale of colours; each by a session of its own, which has no answer to give again."""
    points = []
    for name, spend in (("as it is", cl.PureDP(10**9)), ("released, ε = 0.1 a person", cl.PureDP("0.1"))):
        with cl.Session({"trips": trips()}, budget=spend, random=Random.deterministic(5)) as session:
            for cell, n in session.sql(SQL, spend=spend):
                if cell not in (None, "outside"):
                    x, y = cell.split()
                    points.append({"x": f"{float(x):.3f}", "y": f"{float(y):.3f}", "trips": max(int(n), 0), "of": name})
    return (
        alt.Chart(alt.Data(values=points))
        .mark_rect()
        .encode(
            x=alt.X("x:O", title="longitude", axis=alt.Axis(labelAngle=-90)),
            y=alt.Y("y:O", title="latitude", sort="descending"),
            color=alt.Color("trips:Q", title="trips from 7 to 10", scale=alt.Scale(range=["#f4f1ea", "#a63f24"])),
            column=alt.Column("of:N", title=None),
        )
        .properties(width=200, height=190)
    )
