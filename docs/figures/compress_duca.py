"""Use less secret: a difference of two scatters."""

from __future__ import annotations

import altair as alt

from cloister.compress import DUCA
from scripts.projected import plane


def chart() -> alt.HConcatChart:
    """Rows of two columns, the direction, and what is left of them."""
    return plane(DUCA(1))
