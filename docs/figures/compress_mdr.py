"""Use against secret alone: the direction in which the secret does not vary between its classes."""

from __future__ import annotations

import altair as alt

from cloister.compress import MDR
from scripts.projected import plane


def chart() -> alt.HConcatChart:
    """Rows of two columns, the direction, and what is left of them."""
    return plane(MDR(1))
