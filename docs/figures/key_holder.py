"""What a key holder costs: noise beside other strengths of trust, and bytes a row by the number of groups."""

from __future__ import annotations

import altair as alt

from cloister import Category, Integer
from cloister.together import Marginal, MaskedFormat, Roster

COLOURS = ["#8a9a5b", "#3f6c8f", "#c9714f"]
GROUPS = (2, 5, 10, 20, 50, 100, 200)


def chart() -> alt.HConcatChart:
    """Left: variances of one central noise. Right: bytes a row."""
    return alt.hconcat(noise(), size())


def noise() -> alt.Chart:
    """Of a count, everybody present."""
    roster = Roster(sites={name: name.encode() * 32 for name in "abcde"}, hub=bytes(32), missing=1)
    rows = [
        {"who": "a trusted hub", "variance": 1.0},
        {"who": "five sites, one missing", "variance": len(roster.sites) / roster.honest},
        {"who": "a key holder", "variance": 2.0},
        {"who": "noise at each of five", "variance": 5.0},
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color=COLOURS[1], height=18)
        .encode(x=alt.X("variance:Q", title="variance, in central ones"), y=alt.Y("who:N", title=None, sort=None))
        .properties(width=280, height=200)
    )


def size() -> alt.Chart:
    """Of formats with one marginal."""
    lines = {"counts": {}, "and a sum": {"sums": ["age"]}, "and a square": {"squares": ["age"]}}
    rows = []
    for groups in GROUPS:
        columns = {"group": Category([f"g{place}" for place in range(groups)]), "age": Integer(17, 90)}
        for name, line in lines.items():
            marginal = Marginal(by=("group",), **{part: tuple(names) for part, names in line.items()})
            form = MaskedFormat(columns=columns, marginals=(marginal,), population="patients")
            rows.append({"groups": groups, "line": name, "bytes": form.bytes_a_row})
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X("groups:Q", title="groups", scale=alt.Scale(type="log")),
            y=alt.Y("bytes:Q", title="bytes a row", scale=alt.Scale(type="log")),
            color=alt.Color(
                "line:N",
                title=None,
                scale=alt.Scale(domain=list(lines), range=COLOURS),
                legend=alt.Legend(orient="bottom"),
            ),
        )
        .properties(width=280, height=200)
    )
