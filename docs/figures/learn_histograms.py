"""COVID symptoms three ways: one answer a person, seven with Laplace noise, seven with Gaussian noise."""

from __future__ import annotations

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random
from cloister.session import Persons, Question

SYMPTOMS = ["fever", "cough", "fatigue", "headache", "loss of smell", "sore throat", "short breath"]
TICKS = [
    (person, symptom)
    for person in range(2_000)
    for place, symptom in enumerate(SYMPTOMS)
    if (person * 7919) % 97 < 80 - 11 * place
]
EPSILON = "0.2"
WAYS: dict[str, tuple[int, cl.PureDP | cl.ZCDP, str]] = {
    "one answer, Laplace": (1, cl.PureDP(EPSILON), "#3f6c8f"),
    "seven answers, Laplace": (7, cl.PureDP(EPSILON), "#c9714f"),
    "seven answers, Gaussian": (7, cl.PureDP(EPSILON).to_zcdp(), "#8a9a5b"),
}


def chart() -> alt.LayerChart:
    """The truth as a bar, each way as a point with its 95 % margin."""
    question = Question(table="ticks", by=("symptom",), statistics=(Persons(),))
    points = []
    for seed, (name, (answers, budget, _)) in enumerate(WAYS.items()):
        with cl.Session({"ticks": table(answers)}, budget=budget, random=Random.deterministic(seed)) as session:
            release = session.measure(question, spend=budget)
        for symptom, count, margin in zip(SYMPTOMS, release["persons"], release.margin()["persons"], strict=True):
            points.append(
                {"symptom": symptom, "way": name, "count": int(count), "low": int(count - margin), "high": int(count + margin)}
            )
    truth = [{"symptom": symptom, "true": sum(found == symptom for _, found in TICKS)} for symptom in SYMPTOMS]
    names = list(WAYS)
    colour = alt.Color(
        "way:N", title=None, scale=alt.Scale(domain=names, range=[colour for *_, colour in WAYS.values()]), sort=names
    )
    x = alt.X("symptom:N", sort=SYMPTOMS, title=None, axis=alt.Axis(labelAngle=-25))
    bars = (
        alt.Chart(alt.Data(values=truth))
        .mark_bar(color="#eadfca")
        .encode(x=x, y=alt.Y("true:Q", title="patients (bar: the truth)"))
    )
    place = alt.XOffset("way:N", sort=names)
    base = alt.Chart(alt.Data(values=points)).encode(x=x, xOffset=place, color=colour)
    errors = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q")
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(y="count:Q")
    return alt.layer(bars, errors, dots).properties(width=520, height=260, title=f"ε = {EPSILON}; Gaussian: ρ = ε²/2")


def table(answers: int) -> cl.PrivateTable:
    """The ticks, of which so many of one person may count: the first ones, so that the picture is the same each time."""
    seen = np.zeros(2_000, dtype=int)
    kept = []
    for person, symptom in sorted(TICKS, key=lambda tick: (tick[0], (tick[0] * 31 + SYMPTOMS.index(tick[1]) * 17) % 7)):
        seen[person] += 1
        if seen[person] <= answers:
            kept.append((person, symptom))
    rows = {"person": [person for person, _ in kept], "symptom": [symptom for _, symptom in kept]}
    return cl.PrivateTable(rows, columns={"symptom": cl.Category(SYMPTOMS)}, unit="person", max_rows=answers)
