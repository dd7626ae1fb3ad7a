"""Principal components: the variance that k components capture, as a part of the most that k can, for each way and for theirs.

Features are scaled to [0, 1] by declared bounds. Both sides are given the bounds (0, 1), and the peer the norm that follows from
them (half of the diagonal); neither knows the mean. A fit of the peer whose sampler does not end within `PATIENCE` seconds is
stopped and left out, which is to the peer's favour; after `STOPS` of them a line has no more.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from _diffprivlib import RELEASE, Fits, _server, available, fits
from _learn_problems import adult, adult_is_here, cancer, digits
from _report import report

from cloister.errors import InvalidParameter
from cloister.learn import PCA

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 5 if QUICK else 50
PATIENCE, STOPS = 30, 3
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
    parameters = {"n_components": count, "epsilon": float(epsilon), "bounds": (0, 1), "data_norm": X.shape[1] ** 0.5 / 2}
    peers, stopped = [], 0
    for run in range(RUNS):
        if stopped == STOPS:
            break
        peer = within_patience(parameters, X, run)
        stopped += peer is None
        peers += [] if peer is None else [peer]
    many = f"{len(peers)} fits, {stopped} stopped after {PATIENCE} s"
    if not peers:
        print(f"  {RELEASE}: {many}", flush=True)
        return
    theirs = float(np.mean([captured(X, peer.arrays["components_"][0]) for peer in peers]))
    their_second = float(np.median([peer.second for peer in peers]))
    what = f"{name}, {count} components, ε = {epsilon}"
    detail = f"{mine:.3f} against {theirs:.3f} of {RELEASE}, {many}"
    report(f"{what}: captured variance less theirs", mine - theirs, -0.005, detail)
    report(f"{what}: time against theirs", second / their_second, 1, f"{second:.3f} s against {their_second:.3f} s", most=True)


def within_patience(parameters: dict[str, Any], X: Floats, run: int) -> Fits | None:
    """One fit of theirs; None where it was stopped, with its interpreter, which the next fit starts again."""
    stop = threading.Timer(PATIENCE, _server()[0].kill)
    stop.start()
    try:
        return fits("PCA", parameters, X, runs=1, first=run, keep=["components_"])
    except RuntimeError:
        stop.join(0.5)
        if stop.is_alive():  # it was not the clock: what the peer refused is to be seen
            raise
        _server.cache_clear()
        return None
    finally:
        stop.cancel()


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
