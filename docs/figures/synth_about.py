"""How far triples of columns of synthetic rows lie from those of the table: by method, and with `about=` what counts."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

import cloister as cl
from cloister.learn import Curve
from cloister.noise import Random
from scripts.curves import drawn, measured

EPSILONS = ("0.1", "0.5", "2", "8")
COLUMNS = {
    "treatment": cl.Integer(0, 3),
    "severity": cl.Integer(0, 7),
    "ward": cl.Integer(0, 5),
    "age": cl.Integer(0, 11),
    "recovered": cl.Boolean(),
}
TRIPLES = [(0, 1, 4), (0, 2, 4), (0, 3, 4), (1, 2, 4), (1, 3, 4), (2, 3, 4)]


def patients(count: int = 10_000) -> np.ndarray:
    """A treatment that helps where the illness is severe and harms where it is not: no pair of columns shows that."""
    random = np.random.default_rng(1)
    severity, treatment = random.integers(0, 8, count), random.integers(0, 4, count)
    age = np.clip(random.normal(5 + severity / 4, 2.5, count), 0, 11).astype(int)
    ward = np.clip(severity * 0.6 + random.normal(0, 1, count), 0, 5).astype(int)
    helped = 0.5 + 0.12 * (treatment - 1.5) * np.where(severity > 3, 1, -1) - 0.02 * (age - 5)
    return np.column_stack([treatment, severity, ward, age, random.random(count) < helped])


def apart(made: np.ndarray, real: np.ndarray) -> float:
    """The mean total variation over the triples with the outcome."""
    found = []
    for kept in TRIPLES:
        shares = [
            np.bincount(np.ravel_multi_index(rows[:, kept].T, [12] * 3), minlength=12**3) / len(rows) for rows in (made, real)
        ]
        found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(found))


def chart(*, runs: int = 2) -> alt.LayerChart:
    """10,000 made-up patients of five columns; the dotted line is the table itself drawn again with replacement."""
    real = patients()
    frame = dict(zip(COLUMNS, real.T, strict=True)) | {"recovered": real[:, 4].astype(bool)}

    def curve(name: str, method: Any, about: Any = None) -> Curve:
        def run(epsilon: str | None, random: Random) -> float:
            assert epsilon is not None
            model = cl.synth.fit_frame(frame, COLUMNS, epsilon=epsilon, delta="1e-6", method=method, about=about, random=random)
            rows = model.sample(len(real), random=random)
            return apart(np.column_stack([rows[name] for name in COLUMNS]).astype(int), real)

        return measured(name, "total variation", EPSILONS, run, runs=runs, plain=False)

    again = apart(real[np.random.default_rng(2).integers(0, len(real), len(real))], real)
    curves = {
        "pairs": curve("pairs", "pairs"),
        "triples": curve("triples", "triples"),
        "pairs, about= the outcome": curve("pairs about", "pairs", ["recovered"]),
        "independent columns": curve("independent", "independent"),
    }
    return drawn(curves, y="mean total variation of triples", guess=("the table drawn again", again), log=True)
