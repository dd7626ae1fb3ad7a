"""Glasses read off projected faces, and who it is: on Olivetti faces at 32 × 32, 70 % of the pictures to learn from.

The faces come from the folder that CLOISTER_DATA names (`images/olivetti_faces_64x64.csv.gz`, AT&T Laboratories Cambridge);
without them drawn ones stand in. The best of five attackers counts, chosen on the rows that it is judged on.
"""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np
from _report import report

from cloister.compress import DCA, PCA, RUCA, RandomProjection, Rounded, drawn_faces, trade_off

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "images"
FACES = "olivetti_faces_64x64.csv.gz"
USE, SECRET = 0.95, 0.11
"""Glasses are to be read at least so well, and who it is less well than this."""


def main() -> None:
    """Measure, print for people, print for programs."""
    real = (DATA / FACES).exists()
    faces = olivetti() if real else tuple(drawn_faces(30, 10))
    made = {
        "PCA": PCA(),
        "random": RandomProjection(random_state=1),
        "DCA": DCA(rho=10, rho_prime=-0.001),
        "RUCA": RUCA(rho=10, rho_p=3, rho_prime=-0.001),
        "RUCA, one bit": Rounded(RUCA(rho=10, rho_p=1)),
    }
    splits = 1 if QUICK else 3
    found = trade_off(*faces, made, dimensions=[1, 5], persons=faces[2], splits=splits)
    print("Olivetti faces" if real else "drawn faces: set CLOISTER_DATA to the folder that holds the others")
    print(found.text())
    for point in found.points:
        if point.method == "RUCA, one bit" and point.dimensions == 1:
            linked = f"{point.secret_of_strangers:.3f} of strangers are linked, {found.strangers_guess:.3f} by chance"
            unseen = f"{point.utility_of_strangers:.3f} of people that were not in training"
            report(
                "one bit of RUCA: the use is read", ratio=point.utility, limit=USE, detail=f"{splits} splits; {unseen}; {linked}"
            )
            best = max(found.points, key=lambda each: each.utility_of_strangers or 0)
            name = f"{best.method}, {best.dimensions} dimensions; one bit of RUCA {point.utility_of_strangers:.3f}"
            report("glasses of people that were not in training", ratio=best.utility_of_strangers, limit=USE, detail=name)
            report("one bit of RUCA: who it is", ratio=point.secret, limit=SECRET, detail=f"by {point.secret_by}", most=True)


def olivetti() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pixels of [0, 1], means of four each; whether they wear glasses; who it is."""
    with gzip.open(DATA / FACES, "rt", encoding="utf-8") as file:
        lines = csv.reader(file)
        next(lines)
        table = np.array(list(lines), dtype=np.float64)
    pixels = table[:, 2:].reshape(-1, 32, 2, 32, 2).mean(axis=(2, 4)).reshape(len(table), -1) / 255
    return pixels, table[:, 1].astype(int), table[:, 0].astype(int)


if __name__ == "__main__":
    main()
