"""What private principal components capture, and what F1 makes of it: scikit-learn's digits at ten owners, six components."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.svm import SVC

from cloister.noise import Random
from cloister.privacy import ApproxDP, zcdp_within
from cloister.together import DistributedPCA
from cloister.together.noisy_moments import MomentNoise, NoisyMoments, moments_of

EPSILONS = (Fraction(1, 10), Fraction(3, 10), Fraction(1), Fraction(3), Fraction(10), Fraction(30))
OWNERS, COMPONENTS, RUNS = 10, 6, 3
DELTA = Fraction(1, 10**9)
COLOURS = {"private": "#3f6c8f", "random directions": "#c9714f", "no noise": "#8a9a5b"}


def chart() -> alt.HConcatChart:
    """Left: the share of the best components' variance. Right: weighted F1 on rows that were kept back."""
    X, y = load_digits(return_X_y=True)
    rows, low, high = X[:1200], np.zeros(64), np.full(64, 16.0)
    radius = float(np.sqrt(64)) * 8
    steps, points = moments_of(rows, low, high, radius), []
    exact = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:COMPONENTS]

    def point(who: str, epsilon: Any, components: Any) -> None:
        best = float(np.var(rows @ exact.T, axis=0).sum())
        model = SVC().fit(rows @ components.T, y[:1200])
        points.append(
            {
                "who": who,
                "epsilon": float(epsilon),
                "captured": float(np.var(rows @ components.T, axis=0).sum()) / best,
                "F1": float(f1_score(y[1200:], model.predict(X[1200:] @ components.T), average="weighted")),
            }
        )

    for run in range(RUNS):
        random = Random.deterministic(run)
        guess = np.linalg.qr(np.random.default_rng(run).normal(size=(64, COMPONENTS)))[0].T
        for epsilon in EPSILONS:
            noise = MomentNoise(features=64, rho=zcdp_within(epsilon=epsilon, delta=DELTA).rho, honest=OWNERS - 1)
            noisy = steps + sum(noise.sample(random) for _ in range(OWNERS))
            how: dict[str, Any] = {"low": low, "high": high, "radius": radius, "owners": OWNERS}
            moments = NoisyMoments.of_steps(noisy, noise, guarantee=ApproxDP(epsilon, DELTA), **how)
            point("private", epsilon, DistributedPCA(COMPONENTS).fit_moments(moments).components_)
            point("random directions", epsilon, guess)
    for epsilon in EPSILONS:
        point("no noise", epsilon, exact)
    panels = (("captured", "share of the variance captured"), ("F1", "weighted F1 of a classifier"))
    return alt.hconcat(*(panel(points, field, title) for field, title in panels)).resolve_scale(color="shared")


def panel(points: list[dict[str, Any]], field: str, title: str) -> alt.Chart:
    """One measure by ε, the mean of the runs."""
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X("epsilon:Q", title="ε", scale=alt.Scale(type="log")),
            y=alt.Y(f"mean({field}):Q", title=title, scale=alt.Scale(domain=[0, 1])),
            color=alt.Color(
                "who:N",
                title=None,
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="bottom"),
            ),
        )
        .properties(width=300, height=200)
    )
