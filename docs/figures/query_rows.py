"""What privacy costs in time, by the number of rows: our answer beside the same SQL in plain DuckDB."""

from __future__ import annotations

import altair as alt

MEASURED = {100_000: (6.3, 1.2), 1_000_000: (10.3, 3.5), 10_000_000: (30.0, 22.6), 100_000_000: (229.9, 206.2)}
"""Rows → milliseconds (ours, plain DuckDB), as `benchmarks/query_rows.py` printed them."""
COLOURS = {"a private answer, durably charged": "#3f6c8f", "plain DuckDB": "#c9a24f"}


def chart() -> alt.HConcatChart:
    """Times on the left, their ratio on the right."""
    rows = [
        {"rows": size, "ms": time, "who": who}
        for size, times in MEASURED.items()
        for who, time in zip(COLOURS, times, strict=True)
    ]
    across = alt.X("rows:Q", title="rows", scale=alt.Scale(type="log"), axis=alt.Axis(format="~e", values=list(MEASURED)))
    colours = alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    times = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2.5, point=True)
        .encode(
            x=across,
            y=alt.Y("ms:Q", title="milliseconds a question", scale=alt.Scale(type="log")),
            color=alt.Color("who:N", scale=colours, legend=alt.Legend(title=None, orient="top", labelLimit=300)),
        )
        .properties(width=300, height=260)
    )
    ratios = [{"rows": size, "ratio": ours / plain} for size, (ours, plain) in MEASURED.items()]
    ratio = (
        alt.Chart(alt.Data(values=ratios))
        .mark_line(strokeWidth=2.5, point={"color": "#2d2823"}, color="#2d2823")
        .encode(x=across, y=alt.Y("ratio:Q", title="times plain DuckDB", scale=alt.Scale(domainMin=0)))
        .properties(width=220, height=260)
    )
    limit = alt.Chart(alt.Data(values=[{"limit": 1.5}])).mark_rule(strokeDash=[4, 3], color="#c9714f").encode(y="limit:Q")
    return alt.hconcat(times, alt.layer(ratio, limit))
