"""Discriminant components: the direction of use, against all that varies."""

from __future__ import annotations

import altair as alt

from cloister.compress import DCA
from scripts.projected import plane


def chart() -> alt.HConcatChart:
    """Rows of two columns, the direction, and what is left of them."""
    return plane(DCA(1))
