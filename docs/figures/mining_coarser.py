"""Membership inference against a forest that learnt by heart, before its output was made coarser and after."""

from __future__ import annotations

import altair as alt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from cloister.mining import attack_before_and_after


def chart() -> alt.LayerChart:
    """Half of the digits are members."""
    X, y = load_digits(return_X_y=True)
    model = RandomForestClassifier(60, random_state=0).fit(X[::2], y[::2])
    return attack_before_and_after(model, (X[::2], y[::2]), (X[1::2], y[1::2])).chart()
