"""How far each attacker gets: with the raw table, with the published one, and with none."""

from __future__ import annotations

import altair as alt

from cloister.anonymize import Anonymizer, Hierarchy, KAnonymity
from cloister.anonymize.attackers import attack
from cloister.anonymize.frames import read_frame
from cloister.noise import Random


def chart() -> alt.Chart:
    """A table of 600 made-up patients, made 5-anonymous."""
    random = Random.deterministic(4)
    ages, towns = 20 + random.below(60, 600), random.below(8, 600)
    diseases = ["flu", "cold", "gout", "asthma", "ulcer"]
    ill = [
        diseases[min(4, int(age - 20) // 12)] if lot < 6 else diseases[lot % 5]
        for age, lot in zip(ages, random.below(10, 600), strict=True)
    ]
    table = read_frame({"age": ages.tolist(), "town": [f"town {t}" for t in towns], "disease": ill})
    anonymizer = Anonymizer(
        quasi=["age", "town"],
        sensitive=["disease"],
        models=[KAnonymity(5)],
        hierarchies={"age": Hierarchy.intervals(5, 10, 20)},
        search="optimal",
    )
    recoded = anonymizer.recode(table)
    found = attack(anonymizer.problem_.table, recoded, learning=False)
    rows = [
        {"attack": each.name, "with": name, "share": share}
        for each in found
        for name, share in (("raw table", each.before), ("published table", each.success), ("no table", each.baseline))
    ]
    order = ["raw table", "published table", "no table"]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            y=alt.Y("attack:N", title=None, sort=[each.name for each in found]),
            yOffset=alt.YOffset("with:N", sort=order),
            x=alt.X("share:Q", title="share of the people", axis=alt.Axis(format="%")),
            color=alt.Color("with:N", title=None, scale=alt.Scale(domain=order, range=["#cdd6de", "#c9714f", "#3f6c8f"])),
        )
        .properties(width=360, height=220)
    )
