"""k-means of handwritten digits into ten groups: how near the rows are to their centres, how well the groups are the digits.

Pixels are scaled to [0, 1] by their declared bounds, 0 and 16. Both sides are given the bounds (0, 1), all rows, ε = 1; every
score is of all rows, by the released centres. scikit-learn without noise stands beside them.

Then rows that stay in DuckDB: eight groups in eight dimensions, made up there. The inertia is that of 20,000 of them,
from the centres that the table's engine found, over that of scikit-learn without noise on those 20,000.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
from _diffprivlib import RELEASE, available, fits
from _report import report
from sklearn import metrics
from sklearn.cluster import KMeans as Plain
from sklearn.datasets import load_digits

import cloister as cl
from cloister.learn import KMeans

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 5 if QUICK else 50
ROWS = 300_000 if QUICK else 10_000_000
GROUPS = FEATURES = 8
FITS = 1 if QUICK else 3
NAMES = ("inertia", "homogeneity", "completeness", "V", "ARI", "AMI", "silhouette", "seconds")
Floats = npt.NDArray[np.float64]


def main() -> None:
    """A line for each side, and two promises."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    print("  ".join(f"{name:>12}" for name in ("", *NAMES)))
    shown("no noise", [scored(X, y, lambda seed=seed: Plain(10, n_init=1, random_state=seed).fit(X)) for seed in range(RUNS)])
    for delta, method in (
        (None, "auto"),
        (None, "lloyd"),
        (None, "coreset"),
        ("1e-5", "auto"),
        ("1e-5", "lloyd"),
        ("1e-5", "coreset"),
    ):
        kept = [scored(X, y, lambda d=delta, m=method: ours(X, d, m)) for _ in range(RUNS)]
        found = shown(f"{method} {'δ=' + delta if delta else 'pure'}", kept)
        if delta is None and method == "auto":
            mine = found
    if available():
        peer = fits("KMeans", {"n_clusters": 10, "epsilon": 1.0, "bounds": (0, 1)}, X, runs=RUNS, keep=["cluster_centers_"])
        rows = [
            [*scores(X, y, centres), second]
            for centres, second in zip(peer.arrays["cluster_centers_"], peer.seconds, strict=True)
        ]
        theirs = shown("theirs", rows)
        report("digits k-means, inertia against theirs", mine[0] / theirs[0], 0.85, RELEASE, most=True)
        report("digits k-means, ARI above theirs", mine[4] - theirs[4], 0.2, RELEASE)
        report("digits k-means, time against theirs", mine[7] / theirs[7], 1, f"medians of {RUNS} fits", most=True)
    in_duckdb()


def in_duckdb() -> None:
    """Rows in a Parquet file; no row of them comes into Python but the 20,000 that the centres are judged by."""
    middles = np.random.default_rng(1).integers(150, 850, (GROUPS, FEATURES))
    names = [f"x{place}" for place in range(FEATURES)]
    noise = "80 * (random() + random() + random() - 1.5)"
    numbers = [f"list_value({', '.join(map(str, middle))})[place] + {noise}" for middle in middles.T.tolist()]
    columns = ", ".join(f"({number})::INTEGER AS {name}" for number, name in zip(numbers, names, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        made = duckdb.connect()
        rows = f"SELECT 1 + floor(random() * {GROUPS})::INTEGER AS place FROM range({ROWS})"
        made.execute(f"COPY (SELECT {columns} FROM ({rows})) TO '{path}' (FORMAT parquet)")
        some = made.execute(f"SELECT * FROM '{path}' LIMIT 20000").fetchnumpy()
        X = np.column_stack([some[name] for name in names]).astype(np.float64)
        plain = Plain(GROUPS, n_init=10, random_state=0).fit(X)
        table = cl.PrivateTable(str(path), columns={name: cl.Integer(0, 1000) for name in names})
        kept = []
        with cl.Session({"rows": table}, budget=cl.PureDP(100)) as session:
            session.prepared("rows")
            for _ in range(FITS):
                begun = time.perf_counter()
                centres = KMeans(GROUPS, epsilon=1, method="engine").fit_table(session, "rows", features=names).cluster_centers_
                squares = ((X[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1).sum()
                kept.append((float(squares) / plain.inertia_, time.perf_counter() - begun))
    ratio, second = (float(np.median(column)) for column in zip(*kept, strict=True))
    detail = f"ε = 1, {ROWS:,} rows × {FEATURES} features, {GROUPS} groups, median of {FITS} fits of {second:.1f} s"
    report("k-means in DuckDB, inertia over no privacy's", ratio, 1.1, detail, most=True)


def ours(X: Floats, delta: str | None, method: Any) -> KMeans:
    """One fit."""
    return KMeans(10, epsilon=1, delta=delta, bounds=(0, 1), method=method).fit(X)


def scored(X: Floats, y: npt.NDArray[np.int64], fit: Callable[[], Any]) -> list[float]:
    """All scores of one fit, and its seconds."""
    begun = time.perf_counter()
    model = fit()
    taken = time.perf_counter() - begun
    return [*scores(X, y, model.cluster_centers_), taken]


def scores(X: Floats, y: npt.NDArray[np.int64], centres: Floats) -> list[float]:
    """Of rows at their nearest centre."""
    squares = ((X[:, None, :] - centres[None]) ** 2).sum(axis=2)
    labels = squares.argmin(axis=1)
    whole = metrics.homogeneity_completeness_v_measure(y, labels)
    apart = metrics.silhouette_score(X, labels) if len(set(labels.tolist())) > 1 else 0.0
    return [
        float(squares.min(axis=1).sum()),
        *map(float, whole),
        float(metrics.adjusted_rand_score(y, labels)),
        float(metrics.adjusted_mutual_info_score(y, labels)),
        float(apart),
    ]


def shown(name: str, rows: list[list[float]]) -> list[float]:
    """The means of the scores and the median of the seconds, printed."""
    table = np.array(rows)
    line: list[float] = [*table[:, :-1].mean(axis=0).tolist(), float(np.median(table[:, -1]))]
    print("  ".join([f"{name:>12}", f"{line[0]:12.0f}", *(f"{value:12.3f}" for value in line[1:])]), flush=True)
    return line


if __name__ == "__main__":
    main()
