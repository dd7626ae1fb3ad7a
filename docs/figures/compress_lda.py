"""Fisher's discriminant: the direction in which the classes of use lie apart."""

from __future__ import annotations

import altair as alt

from cloister.compress import LDA
from scripts.projected import plane


def chart() -> alt.HConcatChart:
    """Rows of two columns, the direction, and what is left of them."""
    return plane(LDA(1))
