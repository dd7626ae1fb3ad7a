"""How far a private quantile is from the exact one, beside OpenDP's exponential mechanism, at equal ε, unit and candidates.

Ours reads every quantile off one noisy hierarchy, which tells its margin; OpenDP draws each quantile with its own part of ε, and
tells none (`docs/decisions/0011-quantiles-from-a-noisy-hierarchy.md`). The error is the 95 % quantile of |noisy − exact| in the
share of rows that lie between, over runs with fresh noise, the worst of the quantiles that are asked together. What is promised
is that share; beside it stands that of OpenDP, which for one quantile of many values is smaller.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import opendp.prelude as dp
from _report import report

import cloister as cl
from cloister.noise import Random

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS, PEER_RUNS = (15, 50) if QUICK else (100, 200)
ROWS, EPSILON = 10_000, 1
COLUMNS = {"ages of a hundred values": (100, 1), "incomes up to 500,000 in hundreds": (500_000, 100)}
ASKED = {"one median": (0.5,), "five quantiles together": (0.1, 0.25, 0.5, 0.75, 0.9)}
LIMIT = 0.01


def main() -> None:
    """Two columns, each with one quantile and with five."""
    draw = np.random.default_rng(11)
    drawn = (draw.normal(38, 18, ROWS), draw.lognormal(10, 1, ROWS))
    for (column, (top, step)), reals in zip(COLUMNS.items(), drawn, strict=True):
        values = np.clip(np.round(reals / step) * step, 0, top).astype(np.int64)
        for asked, shares in ASKED.items():
            ours = missed(values, shares, [ours_once(values, top, step, shares, seed) for seed in range(RUNS)])
            peer = missed(values, shares, theirs(values.tolist(), top, step, shares))
            detail = f"{ROWS:,} rows, ε = {EPSILON}; OpenDP 0.16, which tells no margin: {peer:.2g}"
            report(f"{asked} of {column}, share of the rows that it misses", ours, LIMIT, detail, most=True)


def ours_once(values: np.ndarray[Any, Any], top: int, step: int, shares: Sequence[float], seed: int) -> list[float]:
    """All quantiles in one question."""
    table = cl.PrivateTable({"x": values}, columns={"x": cl.Real(0, top, step=step)})
    asked = ", ".join(f"QUANTILE(x, {share}) AS q{place}" for place, share in enumerate(shares))
    with cl.Session({"t": table}, budget=cl.PureDP(EPSILON), random=Random.deterministic(seed + 1)) as session:
        return [float(value) for value in next(iter(session.sql(f"SELECT {asked} FROM t", spend=EPSILON)))]


def theirs(values: list[int], top: int, step: int, shares: Sequence[float]) -> list[list[float]]:
    """Each quantile with its part of ε, in every run."""
    dp.enable_features("contrib")
    candidates = list(range(0, top + 1, step))
    space = (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
    columns = []
    for share in shares:
        scores: Any = space >> dp.t.then_quantile_score_candidates(candidates, alpha=share)
        chosen = partial(dp.m.then_noisy_max, dp.max_divergence(), negate=True)
        chain = partial(lambda scale, scores, chosen: scores >> chosen(scale), scores=scores, chosen=chosen)
        mechanism = dp.binary_search_chain(chain, d_in=1, d_out=EPSILON / len(shares), T=float)
        columns.append([float(candidates[mechanism(values)]) for _ in range(PEER_RUNS)])
    return [list(row) for row in zip(*columns, strict=True)]


def missed(values: np.ndarray[Any, Any], shares: Sequence[float], answers: list[list[float]]) -> float:
    """How far an answer's own share of the rows is from the share that was asked; no error where equal values cover both."""
    ordered = np.sort(values)
    given = np.array(answers)
    low = np.searchsorted(ordered, given, side="left") / ordered.size
    high = np.searchsorted(ordered, given, side="right") / ordered.size
    wanted = np.array(shares)
    off = np.maximum(np.maximum(low - wanted, wanted - high), 0)
    return float(np.max(np.quantile(off, 0.95, axis=0)))


if __name__ == "__main__":
    main()
