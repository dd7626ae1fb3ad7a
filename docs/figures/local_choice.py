"""The margins of all protocols for one question: what `choose` compares."""

from __future__ import annotations

import altair as alt

from cloister.local import choose


def chart() -> alt.LayerChart:
    """100 values, 10,000 people, ε = 1."""
    return choose(100, epsilon=1, people=10_000).chart()
