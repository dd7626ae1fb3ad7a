"""What a classifier that is trained on drawn rows says of others: a Gaussian for each class, beside pairs of columns in bins."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC

import cloister as cl
from cloister.learn import Curve
from cloister.noise import Random
from cloister.session import Door
from scripts.curves import drawn, measured

EPSILONS = ("0.05", "0.1", "0.2", "0.4", "1", "3")
BOUNDS = ((0, 40), (0, 50), (0, 250), (0, 3000), (0, 0.25), (0, 0.5), (0, 0.5), (0, 0.25))
"""Of the first eight means that the data set has of each tumour, as who plans the measurement would know them."""
NAMES = [f"x{place}" for place in range(len(BOUNDS))]
COLUMNS: dict[str, Any] = {
    **{name: cl.Real(low, high, step=str((high - low) / 1000)) for name, (low, high) in zip(NAMES, BOUNDS, strict=True)},
    "benign": cl.Category([0, 1]),
}
TRAINED = 400


def chart(*, runs: int = 4) -> alt.LayerChart:
    """400 tumours of the data set that scikit-learn ships; the other 169 judge. The dotted line is the more frequent class."""
    data = load_breast_cancer()
    order = np.random.default_rng(1).permutation(len(data.target))
    real, target = data.data[order][:, : len(NAMES)], data.target[order]
    unit = np.array([high - low for low, high in BOUNDS], dtype=float)
    held = {**dict(zip(NAMES, real[:TRAINED].T, strict=True)), "benign": target[:TRAINED]}

    def right(rows: Any) -> float:
        benign = np.asarray(rows["benign"], dtype=int)
        if len(set(benign.tolist())) < 2:
            return float((target[TRAINED:] == benign[:1]).mean())
        learner = SVC().fit(np.column_stack([rows[name] for name in NAMES]).astype(float) / unit, benign)
        return float(learner.score(real[TRAINED:] / unit, target[TRAINED:]))

    def curve(name: str, fit: Any) -> Curve:
        def run(epsilon: str | None, random: Random) -> float:
            table = cl.PrivateTable(held, COLUMNS, population="tumours", row_is_person=True)
            with Door({"tumours": table}, budget=cl.PureDP(epsilon or 1), random=random) as door:
                model = fit(door, epsilon)
            return right(model.sample(TRAINED, random=random))

        return measured(name, "accuracy", EPSILONS, run, runs=runs, plain=False)

    bins = [cl.Binned(name, np.linspace(low, high, 5).tolist()) for name, (low, high) in zip(NAMES, BOUNDS, strict=True)]
    curves = {
        "a Gaussian for each class": curve(
            "gaussians", lambda door, epsilon: cl.synth.fit_gaussians(door, "tumours", spend=epsilon, by=["benign"])
        ),
        "pairs of columns, in four bins each": curve(
            "pairs", lambda door, epsilon: cl.synth.fit(door, "tumours", spend=epsilon, method="pairs", columns=["benign", *bins])
        ),
    }
    guess = float(max(target[TRAINED:].mean(), 1 - target[TRAINED:].mean()))
    return drawn(curves, y="accuracy on real rows", guess=("the more frequent class", guess))
