"""Whose face it is, by projected pixels: Yale and Olivetti at 32 × 32, the published setting, and what ρ′ changes.

The setting: ρ = 10, ρ′ = −0.05, pixels from 0 to 255, nine tenths of each person's pictures to learn from, a support vector
machine chosen by a grid of three folds. Printed elsewhere, on pictures of 64 × 64 and one split: PCA .588, .824, .941, .941 and
DCA .882, .941, .941, .941 at 5, 14, 50 and 160 dimensions; there the error of pictures is between rows and other rows
(docs/learn/compressive-privacy.md), so here it is that of a ridge regression that has seen the other pictures.

Faces come from the folder that CLOISTER_DATA names; without it there is nothing to measure.
"""

from __future__ import annotations

import csv
import gzip
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _report import report
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.svm import SVC

from cloister.compress import DCA, PCA

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "images"
RUNS = 2 if QUICK else 10
DIMENSIONS, PUBLISHED = (5, 14, 50, 160), {"PCA": (0.588, 0.824, 0.941, 0.941), "DCA": (0.882, 0.941, 0.941, 0.941)}
RIDGES = (-0.05, -0.01, -0.001, 0.0, 0.001, 0.01, 0.05)
GRID = [
    {"kernel": ["linear"], "C": [0.1, 10.0, 1000.0]},
    {"kernel": ["rbf"], "C": [1000.0], "gamma": [1e-3, 1e-2, 1e-1]},
]


def faces(name: str) -> tuple[Any, Any]:
    """Pixels from 0 to 255, and whose picture it is."""
    path = DATA / {"Yale": "yale_32x32.csv", "Olivetti": "olivetti_faces_64x64.csv.gz"}[name]
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        lines = csv.reader(file)
        next(lines)
        table = np.array(list(lines), dtype=np.float64)
    if name == "Yale":
        return table[:, 1:], table[:, 0].astype(int)
    return table[:, 2:].reshape(-1, 32, 2, 32, 2).mean(axis=(2, 4)).reshape(len(table), -1), table[:, 0].astype(int)


def judged(made: Any, X: Any, who: Any) -> tuple[float, float]:
    """Accuracy, and how far a ridge regression's pictures are off; means over the runs."""
    found = []
    for known, others in StratifiedShuffleSplit(RUNS, test_size=0.1 if len(set(who)) < 20 else 0.2, random_state=0).split(X, who):
        made.fit(X[known], who[known])
        z, seen = made.transform(X[known]), made.transform(X[others])
        z, seen = z / z.std(), seen / z.std()  # one scale for all: how long a direction is says how much it counts
        model = GridSearchCV(SVC(max_iter=100_000), GRID, cv=StratifiedKFold(3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            right = float((model.fit(z, who[known]).predict(seen) == who[others]).mean())
        guess = Ridge(alpha=0.1).fit(z, X[known]).predict(seen)
        found.append((right, float(np.linalg.norm(guess - X[others], axis=1).mean())))
    right, far = np.mean(found, axis=0)
    return float(right), float(far)


def main() -> None:
    """Measure, print for people, print for programs."""
    if not DATA.exists():
        print("no faces: set CLOISTER_DATA to the folder that holds images")
        return
    for name in ("Yale", "Olivetti"):
        X, who = faces(name)
        rights = {}
        for method, made in (("PCA", PCA()), ("DCA", DCA(rho=10, rho_prime=-0.05))):
            told = [judged(made.set_params(n_components=count), X, who) for count in DIMENSIONS]
            rights[method] = [right for right, _ in told]
            print(
                f"  {name}, {method}: " + "; ".join(f"{n}: {r:.3f}, {f:,.0f}" for n, (r, f) in zip(DIMENSIONS, told, strict=True))
            )
        said = "; ".join(
            f"{method} {', '.join(f'{each:.3f}' for each in rights[method])}"
            + (f" (printed {', '.join(f'{each:.3f}' for each in PUBLISHED[method])})" if name == "Yale" else "")
            for method in rights
        )
        gained = rights["DCA"][1] - rights["PCA"][1]
        detail = f"at {', '.join(map(str, DIMENSIONS))} dimensions, {RUNS} splits: {said}"
        report(f"{name} faces named at 14 dimensions, DCA over PCA", ratio=gained, limit=-0.02, detail=detail)
        swept = {ridge: judged(DCA(160 if ridge else len(set(who)) - 1, rho=10, rho_prime=ridge), X, who) for ridge in RIDGES}
        spread = max(right for right, _ in swept.values()) - min(right for right, _ in swept.values())
        detail = "ρ′, accuracy, error of a ridge regression (0: as many as classes less one): " + "; ".join(
            f"{a:g} {r:.3f} {f:,.0f}" for a, (r, f) in swept.items()
        )
        report(f"{name} faces at 160 dimensions, accuracy that ρ′ changes", ratio=spread, limit=0.3, detail=detail, most=True)


if __name__ == "__main__":
    main()
