"""Principal components: the direction in which rows vary most, whatever it tells."""

from __future__ import annotations

import altair as alt

from cloister.compress import PCA
from scripts.projected import plane


def chart() -> alt.HConcatChart:
    """Rows of two columns, the direction, and what is left of them."""
    return plane(PCA(1))
