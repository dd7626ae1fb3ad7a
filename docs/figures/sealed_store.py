"""What published attacks recover of generated hospital columns, by what a field was declared for."""

from __future__ import annotations

import altair as alt

from cloister.noise import Random as Chance
from cloister.vault import Equal, Random, Range, leakage

COLOURS = ["#b9b3a6", "#c9714f"]
PATIENTS = 400


def chart() -> alt.Chart:
    """Bars of the best attack, beside those of guessing."""
    drawn = Chance.deterministic(7)
    diagnoses = [f"d{int(each).bit_length():02}" for each in drawn.below(1 << 12, PATIENTS)]
    ages = [int(20 + each) for each in drawn.below(70, PATIENTS)]
    rows = []
    for column, values, field, declared in (
        ("diagnosis", diagnoses, Random(), "read back"),
        ("diagnosis", diagnoses, Equal(), "found by equality"),
        ("age", ages, Random(), "read back"),
        ("age", ages, Range(0, 120), "found by ranges"),
    ):
        found = leakage(values, field)
        for what, share in (("guessed without looking", found.guess), ("best attack", found.worst)):
            rows.append({"field": f"{column}, {declared}", "what": what, "share": share})
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(height=12)
        .encode(
            x=alt.X("share:Q", title="share of cells", axis=alt.Axis(format="%")),
            y=alt.Y("field:N", title=None, sort=None),
            yOffset=alt.YOffset("what:N", sort=None),
            color=alt.Color(
                "what:N",
                title=None,
                scale=alt.Scale(domain=["guessed without looking", "best attack"], range=COLOURS),
                legend=alt.Legend(orient="bottom"),
            ),
        )
        .properties(width=420, height=180)
    )
