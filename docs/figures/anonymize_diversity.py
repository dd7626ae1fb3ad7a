"""Three classes of four people each: what a class tells of the disease, by how many values stand in it."""

from __future__ import annotations

import altair as alt

CLASSES = {
    "one value: l = 1": ["cancer"] * 4,
    "two values: l = 2": ["cancer", "cancer", "cancer", "flu"],
    "three values: l = 3": ["cancer", "flu", "heart", "cancer"],
}


def chart() -> alt.Chart:
    """Shares of each value in each class."""
    rows = [
        {"class": name, "disease": disease, "share": values.count(disease) / len(values)}
        for name, values in CLASSES.items()
        for disease in sorted(set(values))
    ]
    return (
        alt.Chart(alt.Data(values=rows), title="all three are 4-anonymous")
        .mark_bar()
        .encode(
            y=alt.Y("class:N", title=None, sort=list(CLASSES)),
            x=alt.X("share:Q", title="share of the class", axis=alt.Axis(format="%")),
            color=alt.Color(
                "disease:N", scale=alt.Scale(domain=["cancer", "flu", "heart"], range=["#c9714f", "#3f6c8f", "#8a9aa8"])
            ),
        )
        .properties(width=380, height=130)
    )
