"""Every method of hiding on the same made-up baskets: failure, lost and ghost rules, dissimilarity."""

from __future__ import annotations

import altair as alt

from cloister.mining import compare
from cloister.mining.examples import shop


def chart() -> alt.HConcatChart:
    """Two rules hidden."""
    return compare(shop(), ["tea -> milk", "butter -> bread"], min_support="0.1", min_confidence="0.5").chart()
