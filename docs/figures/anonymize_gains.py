"""How much likelier a value gets in a class: t-closeness sees the area, β-likeness the factor."""

from __future__ import annotations

import altair as alt

SHARES = [("HIV", 0.01, 0.08), ("cancer", 0.09, 0.12), ("flu", 0.4, 0.35), ("cold", 0.5, 0.45)]


def chart() -> alt.HConcatChart:
    """Left the shares, right the gains (q − p)/p."""
    rows = [
        {"disease": name, "where": where, "share": share}
        for name, p, q in SHARES
        for where, share in (("table", p), ("class", q))
    ]
    gains = [{"disease": name, "gain": (q - p) / p} for name, p, q in SHARES]
    order = [name for name, _, _ in SHARES]
    left = (
        alt.Chart(alt.Data(values=rows), title="t = 0.1")
        .mark_bar()
        .encode(
            y=alt.Y("disease:N", sort=order, title=None),
            yOffset="where:N",
            x=alt.X("share:Q", axis=alt.Axis(format="%")),
            color=alt.Color("where:N", title=None, scale=alt.Scale(domain=["table", "class"], range=["#3f6c8f", "#c9714f"])),
        )
        .properties(width=240, height=170)
    )
    right = (
        alt.Chart(alt.Data(values=gains), title="β = 7")
        .mark_bar(color="#c9714f")
        .encode(y=alt.Y("disease:N", sort=order, title=None), x=alt.X("gain:Q", title="(q − p) / p"))
        .properties(width=200, height=170)
    )
    return alt.hconcat(left, right)
