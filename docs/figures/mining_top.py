"""How far off noisy itemsets are, by ε: known before a row is read."""

from __future__ import annotations

import altair as alt

from cloister.mining import TopItemsets

EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "5", "10")


def chart() -> alt.LayerChart:
    """Ten sets of up to two of 169 items, ten items of a basket."""
    rows = []
    for epsilon in EPSILONS:
        mechanism = TopItemsets(items=range(169), k=10, epsilon=epsilon, max_items=10)
        choice, noise = mechanism.picker.parts
        margins = {"a count": noise.margin("0.95"), "a choice": choice.margin("0.995", candidates=14_365)}
        rows += [{"ε": float(epsilon), "what": what, "margin": float(margin)} for what, margin in margins.items()]
    base = alt.Chart(alt.Data(values=rows)).properties(width=420, height=240)
    encoded = base.encode(
        x=alt.X("ε:Q", scale=alt.Scale(type="log"), title="ε"),
        y=alt.Y("margin:Q", scale=alt.Scale(type="log"), title="margin at 95 %, in baskets"),
        color=alt.Color("what:N", title=None, scale=alt.Scale(range=["#1f6f5c", "#c7793b"])),
    )
    return alt.layer(encoded.mark_line(), encoded.mark_point(filled=True))
