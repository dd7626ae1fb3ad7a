"""Principal components: the variance that k components capture, as a part of the most that k can, for each way and for theirs.

Features are scaled to [0, 1] by declared bounds. Both sides are given the bounds (0, 1), and the peer the norm that follows from
them (half of the diagonal); neither knows the mean. A peer's sampler that does not end within `PATIENCE` seconds is stopped.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from _diffprivlib import RELEASE, _server, available, fits
from _learn_problems import adult, adult_is_here, cancer, digits
from _report import report

from cloister.errors import InvalidParameter
from cloister.learn import PCA

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 5 if QUICK else 50
PATIENCE = 30 if QUICK else 120
EPSILONS = ("0.3", "1")
DELTA = "1e-5"
WAYS = (
    ("auto", None),
    ("exponential", None),
    ("laplace", None),
    ("auto", DELTA),
    ("gaussian", DELTA),
    ("power", DELTA),
    ("exponential", DELTA),
    ("wishart", DELTA),
)
Floats = npt.NDArray[np.float64]


def main() -> None:
    """A table, and a promise for each line of it."""
    for name, X in problems():
        for count in (1, 2):
            for epsilon in EPSILONS:
                line: dict[str, float] = {}
                for method, delta in WAYS:
                    title = f"{method}{' δ' if delta else ''}"
                    try:
                        fitted = [ours(X, count, epsilon, delta, method) for _ in range(RUNS)]
                        line[title] = float(np.mean([score for score, _ in fitted]))
                        if title == "auto":
                            second = float(np.median([taken for _, taken in fitted]))
                    except InvalidParameter:
                        line[title] = float("nan")  # refused: floating point could cost more than δ
                words = "  ".join(f"{title} {value:.3f}" for title, value in line.items())
                print(f"{name}, {count} of {X.shape[1]}, ε = {epsilon}: {words}; {second:.3f} s", flush=True)
                compared(name, X, count, epsilon, line["auto"], second)


def compared(name: str, X: Floats, count: int, epsilon: str, mine: float, second: float) -> None:
    """Against theirs."""
    if not available():
        return
    stop = threading.Timer(PATIENCE, _server()[0].kill)
    stop.start()
    parameters = {"n_components": count, "epsilon": float(epsilon), "bounds": (0, 1), "data_norm": X.shape[1] ** 0.5 / 2}
    try:
        peer = fits("PCA", parameters, X, runs=RUNS if X.shape[1] < 20 else 5, keep=["components_"])
    except RuntimeError:
        _server.cache_clear()
        print(f"  {RELEASE}: no answer within {PATIENCE} s", flush=True)
        return
    finally:
        stop.cancel()
    theirs = float(np.mean([captured(X, components) for components in peer.arrays["components_"]]))
    what = f"{name}, {count} components, ε = {epsilon}"
    report(f"{what}: captured variance less theirs", mine - theirs, -0.005, f"{mine:.3f} against {theirs:.3f} of {RELEASE}")
    report(f"{what}: time against theirs", second / peer.second, 1, f"{second:.3f} s against {peer.second:.3f} s", most=True)


def problems() -> Iterator[tuple[str, Floats]]:
    """Rows scaled by their declared bounds."""
    given = [("breast cancer", cancer(0)), ("digits", digits(0))]
    for name, problem in ([("Adult", adult())] if adult_is_here() else []) + given:
        low, high = (np.array(side, dtype=np.float64) for side in problem.bounds)
        rows = np.concatenate([problem.X, problem.X_test]) if name != "Adult" else problem.X
        yield name, (np.clip(rows, low, high) - low) / (high - low)


def ours(X: Floats, count: int, epsilon: str, delta: str | None, method: Any) -> tuple[float, float]:
    """One fit: what it captures, and its seconds."""
    begun = time.perf_counter()
    model = PCA(count, epsilon=epsilon, delta=delta, bounds=(0, 1), method=method).fit(X)
    taken = time.perf_counter() - begun
    return captured(X, model.components_), taken


def captured(X: Floats, components: Floats) -> float:
    """The variance within the span of the components, as a part of the most that as many can have."""
    spread, basis = np.cov(X.T), np.linalg.qr(components.T)[0]
    return float(np.trace(basis.T @ spread @ basis) / np.linalg.eigvalsh(spread)[::-1][: len(components)].sum())


if __name__ == "__main__":
    main()
