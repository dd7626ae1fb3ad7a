"""Top coding and rounding as a picture: a column of pays before and after."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize.perturbing import Rounding, TopBottomCoding


def chart() -> alt.Chart:
    """Three rows of marks: as it was, cut off at 5,000, rounded to 500."""
    pays = np.round(np.random.default_rng(5).lognormal(7.9, 0.45, 90)).astype(int).tolist()
    cut = TopBottomCoding(column="pay", top=5000).apply({"pay": pays}, shuffle=False).frame["pay"]
    coarse = Rounding(columns="pay", base=500).apply({"pay": cut}, shuffle=False)["pay"]
    names = ["original", "top at 5,000", "and rounded to 500"]
    rows = [{"pay": pay, "table": name} for name, column in zip(names, (pays, cut, coarse), strict=True) for pay in column]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_tick(thickness=1.6, size=34, opacity=0.55)
        .encode(
            x=alt.X("pay:Q", title="pay a month"),
            y=alt.Y("table:N", title=None, sort=names),
            color=alt.Color("table:N", legend=None, scale=alt.Scale(domain=names, range=["#8a7f70", "#c9714f", "#3f6c8f"])),
        )
        .properties(width=460, height=150)
    )
