"""Private components by rows an owner: through the proxy, along a chain of owners who noise alone, and random directions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np
from sklearn.metrics import f1_score
from sklearn.svm import SVC

from cloister.compress.drawing import normal
from cloister.noise import Random
from cloister.privacy import ApproxDP, zcdp_within
from cloister.together import DistributedPCA
from cloister.together.noisy_moments import MomentNoise, NoisyMoments, moments_of

SIZES = (50, 200, 1000, 5000)
OWNERS, COMPONENTS, COLUMNS, RUNS = 10, 5, 29, 3
EPSILON, DELTA = Fraction(1, 2), Fraction(1, 10**9)
COLOURS = {"through the proxy": "#3f6c8f", "along a chain": "#8a9a5b", "random directions": "#c9714f"}
END = np.ones(COLUMNS)


def chart() -> alt.HConcatChart:
    """Left: the share of the variance that the best five directions have. Right: weighted F1 on rows that were kept back."""
    points: list[dict[str, Any]] = []
    for size in SIZES:
        rows, labels = drawn(OWNERS * size + 1500)
        own, rest, kept = rows[1500:], rows[:1500], labels[:1500]
        best = float(np.linalg.eigvalsh(np.cov(own.T))[-COMPONENTS:].sum())
        for run in range(RUNS):
            random = Random.deterministic(run)
            ways = {"through the proxy": together, "along a chain": chained, "random directions": at_random}
            for who, way in ways.items():
                found = way(own, random)
                model = SVC(C=10).fit(rest[:1000] @ found.T, kept[:1000])
                captured = float(np.var(own @ found.T, axis=0, ddof=1).sum()) / best
                score = float(f1_score(kept[1000:], model.predict(rest[1000:] @ found.T), average="weighted"))
                points.append({"who": who, "rows": size, "captured": captured, "F1": score})
    panels = (("captured", "share of the variance captured"), ("F1", "weighted F1 of a classifier"))
    return alt.hconcat(*(panel(points, field, title) for field, title in panels)).resolve_scale(color="shared")


def drawn(count: int) -> tuple[Any, Any]:
    """Ten classes in 29 columns whose variances fall off, in the shape of a published data set."""
    random = Random.deterministic(9)
    centres = normal(10 * COLUMNS, random).reshape(10, COLUMNS) * np.arange(1, COLUMNS + 1) ** -0.7
    labels = random.below(10, count)
    noise = normal(count * COLUMNS, random).reshape(count, COLUMNS) * 0.7 * np.arange(1, COLUMNS + 1) ** -0.5
    return (centres[labels] + noise) / 6, labels


def together(own: Any, random: Random) -> Any:
    """Shares of noise that are one noise in the sum."""
    noise = MomentNoise(features=COLUMNS, rho=zcdp_within(epsilon=EPSILON, delta=DELTA).rho, honest=OWNERS - 1)
    steps = moments_of(own, -END, END, 1.0) + sum(noise.sample(random) for _ in range(OWNERS))
    return DistributedPCA(COMPONENTS).fit_moments(moments(steps, noise, OWNERS)).components_


def chained(own: Any, random: Random) -> Any:
    """Each owner noises alone, adds what it was handed, and hands on the leading directions."""
    noise = MomentNoise(features=COLUMNS, rho=zcdp_within(epsilon=EPSILON, delta=DELTA).rho, honest=1)
    factor = np.zeros((2 * COMPONENTS, COLUMNS))
    for part in np.split(own, OWNERS):
        scatter = moments(moments_of(part, -END, END, 1.0) + noise.sample(random), noise, 1).scatter
        values, vectors = np.linalg.eigh(scatter + factor.T @ factor)
        factor = (vectors[:, -2 * COMPONENTS :] * np.sqrt(np.clip(values[-2 * COMPONENTS :], 0, None))).T
    return np.linalg.svd(factor, full_matrices=False)[2][:COMPONENTS]


def at_random(_: Any, random: Random) -> Any:
    """Directions that know nothing of the rows."""
    return np.linalg.qr(normal(COLUMNS * COMPONENTS, random).reshape(COLUMNS, COMPONENTS))[0].T


def moments(steps: Any, noise: MomentNoise, owners: int) -> NoisyMoments:
    """What is read of noisy sums."""
    how: dict[str, Any] = {"low": -END, "high": END, "radius": 1.0, "owners": owners}
    return NoisyMoments.of_steps(steps, noise, guarantee=ApproxDP(EPSILON, DELTA), **how)


def panel(points: list[dict[str, Any]], field: str, title: str) -> alt.Chart:
    """One measure by the number of rows, the mean of the runs."""
    colour = alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X("rows:Q", title="rows an owner", scale=alt.Scale(type="log")),
            y=alt.Y(f"mean({field}):Q", title=title, scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("who:N", title=None, scale=colour, legend=alt.Legend(orient="bottom")),
        )
        .properties(width=300, height=200)
    )
