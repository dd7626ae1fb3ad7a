"""How exact a survey is: the margin of a share against the number of respondents, for levels and kinds of question."""

from __future__ import annotations

import altair as alt

from cloister.local.survey import Choice, Several, Survey, YesNo

COLOURS = ["#3f6c8f", "#c9714f", "#7a8f5a"]
NAMES = {"yes-no": "yes or no", "choice": "one of 20", "several": "at most 2 of 6"}
PEOPLE = [100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000]


def chart() -> alt.Chart:
    """One line for each kind of question and level."""
    survey = Survey(
        "figure",
        "A figure",
        [
            YesNo("yes-no", "Yes or no?"),
            Choice("choice", "Which?", [f"option {place}" for place in range(20)]),
            Several("several", "Which ones?", list("abcdef"), most=2),
        ],
        levels={"careful, ε = ½": "0.5", "open, ε = 2": 2},
        cap=6,
    )
    points = [
        {"people": n, "margin": 100 * each.rare, "question": NAMES[each.question], "level": each.level}
        for n in PEOPLE
        for each in survey.expected(n)
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.2, clip=True)
        .encode(
            x=alt.X("people:Q", scale=alt.Scale(type="log"), title="respondents", axis=alt.Axis(format="~s")),
            y=alt.Y("margin:Q", scale=alt.Scale(type="log", domain=[0.2, 100]), title="± points of a rare answer's share (95 %)"),
            color=alt.Color("question:N", title="question", sort=list(NAMES.values()), scale=alt.Scale(range=COLOURS)),
            strokeDash=alt.StrokeDash("level:N", title="level", sort=["open, ε = 2", "careful, ε = ½"]),
        )
        .properties(width=440, height=280)
    )
