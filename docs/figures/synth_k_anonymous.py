"""Classes of at least k people, and rows drawn from them: what they keep, and whom they show."""

from __future__ import annotations

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random

COLUMNS = {"age": cl.Integer(18, 95), "pay": cl.Integer(0, 99)}
K = 20
PEOPLE, DRAWN = "people", "drawn rows"
COLOURS = {PEOPLE: "#2d2823", DRAWN: "#c9714f"}


def people() -> dict[str, list[int]]:
    """299 people whose pay follows their age, and one who is far from all of them."""
    random = np.random.default_rng(4)
    age = random.integers(20, 70, 299)
    pay = np.clip(10 + 0.8 * (age - 20) + random.normal(0, 8, 299), 0, 99).astype(int)
    return {"age": [*age.tolist(), 93], "pay": [*pay.tolist(), 97]}


def chart() -> alt.LayerChart:
    """The classes as boxes around the values of their rows."""
    held = people()
    table = cl.PrivateTable(held, COLUMNS, population="people", row_is_person=True)
    with cl.Session({"people": table}, budget=cl.PureDP(1)) as session:
        model = cl.synth.fit_k_anonymous(session, "people", k=K)
    rows = model.sample(300, random=Random.deterministic(3))
    points = [{"age": age, "pay": pay, "what": PEOPLE} for age, pay in zip(held["age"], held["pay"], strict=True)]
    points += [{"age": int(age), "pay": int(pay), "what": DRAWN} for age, pay in rows]
    boxes = []
    for ages, pays in zip(*model.mixture.columns, strict=True):
        (left, *_, right), (low, *_, high) = (np.flatnonzero(each).tolist() * 2 for each in (ages, pays))
        boxes.append({"left": 18 + left - 0.5, "right": 18 + right + 0.5, "low": low - 0.5, "high": high + 0.5})
    scale = alt.Scale(domain=[15, 98], nice=False)
    x, y = alt.X("age:Q", scale=scale, title="age"), alt.Y("pay:Q", title="pay")
    colour = alt.Color(
        "what:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), legend=alt.Legend(orient="top")
    )
    frames = alt.Chart(alt.Data(values=boxes)).mark_rect(filled=False, stroke="#3f6c8f", strokeWidth=1.2)
    around = frames.encode(x=alt.X("left:Q", scale=scale, title="age"), x2="right:Q", y=alt.Y("low:Q", title="pay"), y2="high:Q")
    dots = alt.Chart(alt.Data(values=points)).mark_point(filled=True, size=16, opacity=0.7).encode(x=x, y=y, color=colour)
    return alt.layer(around, dots).properties(width=420, height=280, title=f"300 people in classes of at least {K}: not private")
