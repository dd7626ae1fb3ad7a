"""What a synthetic model answers of one, two, three and four columns, each with its interval, beside the counts of the table."""

from __future__ import annotations

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random

COLUMNS = {
    "plan": cl.Category(["month", "year", "family"]),
    "age": cl.Integer(0, 5),
    "town": cl.Integer(0, 4),
    "active": cl.Boolean(),
}
QUESTIONS = (
    ("plan", "month", {"plan": 0}),
    ("+ age", "three ages", {"plan": 0, "age": (0, 2)}),
    ("+ town", "one town", {"plan": 0, "age": (0, 2), "town": 1}),
    ("+ active", "active", {"plan": 0, "age": (0, 2), "town": 1, "active": 1}),
)
COLOURS = {"measured": "#3f6c8f", "sure": "#c9714f"}


def chart() -> alt.LayerChart:
    """10,000 made-up members; a condition more in each row."""
    random = np.random.default_rng(3)
    age, town = random.integers(0, 6, 10_000), random.integers(0, 5, 10_000)
    plan = np.clip((age + random.integers(-2, 2, 10_000)) // 2, 0, 2)
    active = random.random(10_000) < 0.2 + 0.1 * plan + 0.05 * town
    codes = {"plan": plan, "age": age, "town": town, "active": active.astype(int)}
    frame = {"plan": np.array(["month", "year", "family"], dtype=object)[plan], "age": age, "town": town, "active": active}
    model = cl.synth.fit_frame(frame, COLUMNS, epsilon=1, delta="1e-6", method="pairs", random=Random.deterministic(1))
    texts = {"plan": "plan = 'month'", "age": "age BETWEEN 0 AND 2", "town": "town = 1", "active": "active"}
    points = []
    for label, _, given in QUESTIONS:
        answer = model.answer("SELECT COUNT(*) AS n FROM frame WHERE " + " AND ".join(texts[name] for name in given))  # noqa: S608
        inside = np.ones(len(age), dtype=bool)
        for name, wanted in given.items():
            low, high = wanted if isinstance(wanted, tuple) else (wanted, wanted)
            inside &= (codes[name] >= low) & (codes[name] <= high)
        one = answer.statistics["n"]
        points.append(
            {"question": label, "kind": str(one.kind[0]), "n": float(one.value[0]), "low": float(one.low[0]),
             "high": float(one.high[0]), "true": int(inside.sum())}
        )  # fmt: skip
    base = alt.Chart(alt.Data(values=points)).encode(y=alt.Y("question:N", sort=[label for label, *_ in QUESTIONS], title=None))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())))
    bars = base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", title="members"), x2="high:Q", color=colour)
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x="n:Q", color=colour)
    truth = base.mark_tick(color="#2d2823", thickness=2, size=16).encode(x="true:Q")
    return alt.layer(bars, dots, truth).properties(width=520, height=170, title="ε = 1; a black tick is the table's own count")
