"""Two safe tables about the same twelve people: what both of them say of each cell of the grid of sex and town."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import altair as alt

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "learn_sanitising.py"
TOWNS = ["Delft", "Gouda", "Leiden"]


def cells() -> list[dict[str, Any]]:
    """Each cell: who is in it, and the reasons that stand in both of its classes; the margins are what one table says."""
    staff = runpy.run_path(str(EXAMPLE))["STAFF"]
    people = list(zip(staff["name"], staff["sex"], staff["town"], staff["absent"], strict=True))
    by_sex = {sex: sorted({ill for _, own, _, ill in people if own == sex}) for sex in "FM"}
    by_town = {town: sorted({ill for _, _, own, ill in people if own == town}) for town in TOWNS}
    rows = [
        {"sex": sex, "town": "spring: by sex", "said": " or ".join(by_sex[sex]), "who": "", "kind": "one table"} for sex in "FM"
    ]
    rows += [
        {"sex": "autumn: by town", "town": town, "said": " or ".join(by_town[town]), "who": "", "kind": "one table"}
        for town in TOWNS
    ]
    for sex in "FM":
        for town in TOWNS:
            both = [ill for ill in by_sex[sex] if ill in by_town[town]]
            who = [name for name, own, place, _ in people if (own, place) == (sex, town)]
            kind = "nobody there" if not who else "told" if len(both) == 1 else "both tables"
            rows.append({"sex": sex, "town": town, "said": " or ".join(both), "who": ", ".join(who), "kind": kind})
    return rows


def chart() -> alt.LayerChart:
    """The grid, cells that tell in red."""
    base = alt.Chart(alt.Data(values=cells())).encode(
        x=alt.X("town:N", title=None, sort=["spring: by sex", *TOWNS], axis=alt.Axis(orient="top", labelAngle=0)),
        y=alt.Y("sex:N", title=None, sort=["autumn: by town", "F", "M"]),
    )
    boxes = base.mark_rect(stroke="white", strokeWidth=3, opacity=0.45).encode(
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(
                domain=["one table", "both tables", "told", "nobody there"], range=["#3f6c8f", "#cdd6de", "#c9714f", "#efefef"]
            ),
        )
    )
    said = base.mark_text(dy=-8, fontWeight="bold").encode(text="said:N")
    return (boxes + said + base.mark_text(dy=10).encode(text="who:N")).properties(width=520, height=210)
