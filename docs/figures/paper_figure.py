"""The figure of the tutorial's paper: high incomes by education, with intervals that hold at once."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import altair as alt

import cloister as cl

PAGE = Path(__file__).resolve().parents[1] / "tutorials" / "paper-table.md"


def chart() -> alt.LayerChart:
    """Points with their joint margins; where nothing is known, a line and no point."""
    shares = asked()
    margins = shares.margin(joint=True)["high"]
    rows = [
        {
            "education": level,
            "high": min(max(value, 0.0), 100.0),
            "low": max(0.0, value - margin),
            "up": min(100.0, value + margin),
        }
        for level, value, margin in zip(shares["education"], map(float, shares["high"]), map(float, margins), strict=True)
    ]
    for row in rows:
        row["known"] = row["up"] - row["low"] < 100
    base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("education:N", sort=[row["education"] for row in rows], title=None))
    across = alt.Scale(domain=[0, 100])
    rules = base.mark_rule(strokeWidth=2, color="#3f6c8f").encode(
        x=alt.X("low:Q", title="per cent with more than 50,000 a year (intervals hold at once, 95 %)", scale=across), x2="up:Q"
    )
    points = (
        base.transform_filter("datum.known")
        .mark_point(filled=True, size=55, color="#c9714f", opacity=1)
        .encode(x=alt.X("high:Q", scale=across))
    )
    return alt.layer(rules, points).properties(width=460, height=300)


def asked() -> cl.Release:
    """The answer that the page prints: its own code up to there, so that the figure shows the same numbers."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    for block in blocks:
        if "pandas" in block or "both" in block:
            continue
        shown = [line[4:] for line in block.splitlines() if line.startswith((">>>", "..."))]
        with contextlib.redirect_stdout(io.StringIO()):
            exec("\n".join(shown) if shown else block, names)  # noqa: S102  (our own page)
        if "shares" in names:
            break
    found = names["shares"]
    assert isinstance(found, cl.Release)
    return found
