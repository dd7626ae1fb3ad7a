"""Problems that the benchmarks of trees and networks share: rows, bounds that were published with them, splits by seed."""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
_COLUMNS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
# The lowest and the highest value of each feature, from the table in the description that comes with the data.
_CANCER_LOW = """6.981 9.71 43.79 143.5 0.053 0.019 0 0 0.106 0.05 0.112 0.36 0.757 6.802 0.002 0.002 0 0 0.008 0.001
    7.93 12.02 50.41 185.2 0.071 0.027 0 0 0.156 0.055"""
_CANCER_HIGH = """28.11 39.28 188.5 2501 0.163 0.345 0.427 0.201 0.304 0.097 2.873 4.885 21.98 542.2 0.031 0.135 0.396 0.053
    0.079 0.03 36.04 49.54 251.2 4254 0.223 1.058 1.252 0.291 0.664 0.208"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Rows to learn from and rows to be judged on."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    X_test: npt.NDArray[np.float64]
    y_test: npt.NDArray[np.int64]
    bounds: tuple[list[float], list[float]]
    classes: list[int]
    size: int
    """Of the rows to learn from, in round figures: a public hint."""


def adult() -> Problem:
    """Five columns of Adult; does somebody earn more than 50,000?"""
    (X, y), (X_test, y_test) = (_adult(DATA / "adult" / f"adult_{part}.csv.gz") for part in ("train", "test"))
    return Problem(
        X=X,
        y=y,
        X_test=X_test,
        y_test=y_test,
        bounds=([17, 1, 0, 0, 1], [90, 16, 99_999, 4_356, 99]),
        classes=[0, 1],
        size=32_000,
    )


def adult_is_here() -> bool:
    """Whether the files are there."""
    return (DATA / "adult" / "adult_train.csv.gz").exists()


def cancer(seed: int) -> Problem:
    """Breast cancer in Wisconsin: four fifths of the rows to learn from."""
    from sklearn.datasets import load_breast_cancer

    low, high = ([float(value) for value in side.split()] for side in (_CANCER_LOW, _CANCER_HIGH))
    return _split(load_breast_cancer(), 455, seed, (low, high))


def digits(seed: int) -> Problem:
    """Handwritten digits of 8 × 8 pixels: four fifths of the rows to learn from."""
    from sklearn.datasets import load_digits

    return _split(load_digits(), 1437, seed, ([0.0] * 64, [16.0] * 64))


def _split(data: Any, taken: int, seed: int, bounds: tuple[list[float], list[float]]) -> Problem:
    order = np.random.default_rng(seed).permutation(len(data.data))
    train, test = order[:taken], order[taken:]
    return Problem(
        X=data.data[train],
        y=data.target[train],
        X_test=data.data[test],
        y_test=data.target[test],
        bounds=bounds,
        classes=sorted(set(data.target.tolist())),
        size=taken,
    )


def _adult(path: Path) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    X = np.array([[float(row[name]) for name in _COLUMNS] for row in rows])
    return X, np.array([row["income"].strip().startswith(">") for row in rows]).astype(np.int64)
