"""Anatomy as a picture: who is in a group, and what the group's people have; no line joins a person to a value."""

from __future__ import annotations

import altair as alt

from cloister.anonymize.perturbing import Anatomy
from cloister.noise import Random

TABLE = {
    "age": [23, 27, 35, 59, 61, 65, 65, 70],
    "disease": ["pneumonia", "dyspepsia", "dyspepsia", "pneumonia", "flu", "gastritis", "flu", "bronchitis"],
}


def chart() -> alt.HConcatChart:
    """Left the quasi-identifiers, right the sensitive values, both by group."""
    pieces = Anatomy(quasi="age", sensitive="disease", l=2).apply(TABLE, random=Random.deterministic(3), shuffle=False)
    people = [{"age": age, "group": group + 1} for age, group in zip(pieces.quasi["age"], pieces.quasi["group"], strict=True)]
    held = [
        {"disease": value, "group": group + 1, "count": count}
        for group, value, count in zip(
            pieces.sensitive["group"], pieces.sensitive["disease"], pieces.sensitive["count"], strict=True
        )
    ]
    row = alt.Y("group:O", title="group")
    left = (
        alt.Chart(alt.Data(values=people), title="who: one row a person")
        .mark_point(filled=True, size=110, color="#3f6c8f", opacity=1)
        .encode(x=alt.X("age:Q", title="age", scale=alt.Scale(zero=False)), y=row)
        .properties(width=220, height=190)
    )
    right = (
        alt.Chart(alt.Data(values=held), title="what: one row a value of a group")
        .mark_rect(color="#c9714f", stroke="white")
        .encode(x=alt.X("disease:N", title=None, axis=alt.Axis(labelAngle=-35)), y=alt.Y("group:O", title=None))
        .properties(width=220, height=190)
    )
    return alt.hconcat(left, right)
