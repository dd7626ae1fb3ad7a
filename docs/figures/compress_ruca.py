"""A discriminant that looks away from the secret."""

from __future__ import annotations

import altair as alt

from cloister.compress import RUCA
from scripts.projected import plane


def chart() -> alt.HConcatChart:
    """Rows of two columns, the direction, and what is left of them."""
    return plane(RUCA(1, rho_p=10))
