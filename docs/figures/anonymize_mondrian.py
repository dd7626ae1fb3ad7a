"""Classes as rectangles: the same people cut by Mondrian under k alone, with l, and with t."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from cloister.anonymize import Anonymizer, KAnonymity, LDiversity, TCloseness
from cloister.anonymize.searches.axes import axes_of
from cloister.anonymize.searches.mondrian import Mondrian
from cloister.noise import Random

COLOURS = {"up to 50K": "#3f6c8f", "over 50K": "#c9714f"}
MODELS = {
    "k = 3": [KAnonymity(3)],
    "k = 3, l = 2": [KAnonymity(3), LDiversity(2)],
    "k = 3, l = 2, t = 0.2": [KAnonymity(3), LDiversity(2), TCloseness("0.2")],
}


def people() -> dict[str, list[Any]]:
    """Made-up people: age, years of education, and an income that goes with both."""
    random = Random.deterministic(11)
    ages = 18 + (random.below(50, 240) + random.below(25, 240)) % 60
    years = 4 + (random.below(7, 240) + random.below(7, 240))
    rich = random.below(100, 240) < 4 * (years - 6) + (ages - 18) // 3
    return {
        "age": [int(age) for age in ages],
        "education": [int(each) for each in years],
        "income": [list(COLOURS)[int(each)] for each in rich],
    }


def classes() -> list[dict[str, Any]]:
    """Each class, under each list of models, as the rectangle that it covers."""
    table = people()
    found = []
    for name, models in MODELS.items():
        asked = Anonymizer(quasi=["age", "education"], sensitive=["income"], models=models, search="mondrian")
        problem = asked.problem(table)
        of_row, count = Mondrian().classes(problem, axes_of(problem.table, problem.quasi, {}))
        for number in range(count):
            inside = of_row == number
            ages, years = (np.array(table[column])[inside] for column in ("age", "education"))
            found.append(
                {
                    "models": f"{name}: {count} classes",
                    "left": float(ages.min()) - 0.5,
                    "right": float(ages.max()) + 0.5,
                    "bottom": float(years.min()) - 0.5,
                    "top": float(years.max()) + 0.5,
                }
            )
    return found


def chart() -> alt.FacetChart:
    """Rectangles over points, one picture for each list of models."""
    table = people()
    rectangles = classes()
    names = list(dict.fromkeys(each["models"] for each in rectangles))
    random = Random.deterministic(2)
    aside = random.below(60, 480).reshape(2, 240) / 100 - 0.3
    points = [
        {"models": name, "x": age + aside[0][place], "y": years + aside[1][place], "income": income}
        for name in names
        for place, (age, years, income) in enumerate(zip(*table.values(), strict=True))
    ]
    boxes = (
        alt.Chart()
        .mark_rect(fillOpacity=0.1, fill="#7a7f87", stroke="#7a7f87", strokeWidth=1)
        .encode(x=alt.X("left:Q", title="age", scale=alt.Scale(zero=False)), x2="right:Q")
        .encode(y=alt.Y("bottom:Q", title="years of education", scale=alt.Scale(zero=False)), y2="top:Q")
        .transform_filter("isValid(datum.left)")
    )
    dots = (
        alt.Chart()
        .mark_circle(size=14, opacity=0.9)
        .encode(x="x:Q", y="y:Q")
        .encode(color=alt.Color("income:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))))
        .transform_filter("isValid(datum.x)")
    )
    return (
        alt.layer(boxes, dots, data=alt.Data(values=rectangles + points))
        .properties(width=210, height=210)
        .facet(alt.Column("models:N", title=None, sort=names))
    )
