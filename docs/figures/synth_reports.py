"""What a classifier learns from rows that were drawn from local reports, by the number of people."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
from sklearn.linear_model import LogisticRegression

import cloister as cl
from cloister.local import Marginals
from cloister.noise import Random

PEOPLE = (1_000, 3_000, 10_000, 30_000, 100_000)
DOMAINS: dict[str, Any] = {"ill": [False, True], "age": range(8), "smokes": [False, True], "weight": range(6)}
KINDS = ["ε = 3", "ε = 1", "their own answers", "the more frequent class"]


def respondents(count: int, random: np.random.Generator) -> dict[str, Any]:
    """Older people, smokers and heavy people are ill more often."""
    age, smokes, weight = random.integers(0, 8, count), random.random(count) < 0.3, random.integers(0, 6, count)
    ill = random.random(count) < 1 / (1 + np.exp(6 - 0.8 * age - 1.5 * smokes - 0.4 * weight))
    return {"ill": ill, "age": age, "smokes": smokes, "weight": weight}


def accuracy(taught: Any, judged: dict[str, Any]) -> float:
    """Of a logistic regression for the illness."""
    names = list(DOMAINS)[1:]
    one, other = (np.column_stack([np.asarray(rows[name], dtype=float) for name in names]) for rows in (taught, judged))
    truth, told = np.asarray(judged["ill"], dtype=bool), np.asarray(taught["ill"], dtype=bool)
    if len(set(told.tolist())) < 2:
        return float((truth == told[0]).mean())
    return float((LogisticRegression().fit(one, told).predict(other) == truth).mean())


def chart(*, runs: int = 5) -> alt.Chart:
    """Means of some runs."""
    random, points = np.random.default_rng(1), list[dict[str, Any]]()
    judged = respondents(20_000, random)
    often = max(float(judged["ill"].mean()), 1 - float(judged["ill"].mean()))
    for number in PEOPLE:
        held = respondents(number, random)
        found = {KINDS[2]: accuracy(held, judged), KINDS[3]: often}
        for kind, epsilon in zip(KINDS, (3, 1), strict=False):
            protocol = Marginals(DOMAINS, epsilon=epsilon)
            scores = []
            for seed in range(runs):
                reports = protocol.randomize(held, random=Random.deterministic(seed))
                model = cl.synth.fit_reports(protocol, reports)
                scores.append(accuracy(model.sample(min(number, 20_000), random=Random.deterministic(seed)), judged))
            found[kind] = float(np.mean(scores))
        points += [{"people": number, "accuracy": value, "kind": kind} for kind, value in found.items()]
    colours = ["#3f6c8f", "#c9714f", "#4f8a5b", "#8a8a8a"]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(size=2.5, point=True)
        .encode(
            x=alt.X("people:Q", title="people who sent one report", scale=alt.Scale(type="log")),
            y=alt.Y("accuracy:Q", title="accuracy on other people", scale=alt.Scale(zero=False)),
            color=alt.Color("kind:N", title=None, sort=KINDS, scale=alt.Scale(domain=KINDS, range=colours)),
        )
        .properties(width=420, height=240)
    )
