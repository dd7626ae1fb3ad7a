"""How fast exact noise is drawn: a million draws, and one, against OpenDP in the same run.

Both add noise to a vector of 64-bit integers in one call, from secure randomness, by an exact discrete law of the same
scale: ours by `DiscreteLaplace(…).release(array)`, theirs by `make_laplace` / `make_gaussian` over a vector domain. The two
take turns, and the medians of their rounds are compared. At one draw, both release one Python integer with a mechanism that
was made before; then once more with a mechanism that is made for it, at a scale that neither has seen.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import opendp.prelude as dp
from _report import report

from cloister.noise import DiscreteGaussian, DiscreteLaplace

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
DRAWS = 100_000 if QUICK else 1_000_000
ROUNDS = 1 if QUICK else 3
SINGLES = 200 if QUICK else 2_000
SCALES = [0.1, 10.0, 1e9] if QUICK else [0.1, 1.0, 10.0, 1e3, 1e6, 1e9]
PEER = f"OpenDP {version('opendp')}"

FRESH = itertools.count(1)

Release = Callable[[Any], Any]


def main() -> None:
    """Measure, print for people, print for programs."""
    dp.enable_features("contrib")
    for scale in SCALES:
        for law, ours, vector, single in laws(scale):
            many = compare(ours, vector, np.zeros(DRAWS, dtype=np.int64))
            rate(f"{law}, {DRAWS:,} draws, scale {scale:g}", many, 50)
            one = compare(partial(repeat, ours), partial(repeat, single), SINGLES)
            rate(f"{law}, one draw, scale {scale:g}", one, 1)
    for law, ours, theirs in makers():
        fresh = compare(partial(remake, ours), partial(remake, theirs), SINGLES // 20)
        rate(f"{law}, one draw at a new scale", fresh, 1)


def laws(scale: float) -> list[tuple[str, Release, Release, Release]]:
    """(name, ours, theirs on vectors, theirs on one integer)."""
    number, vector = dp.atom_domain(T="i64"), dp.vector_domain(dp.atom_domain(T="i64"))
    laplace, gaussian = DiscreteLaplace(scale=scale), DiscreteGaussian(scale=scale)
    return [
        (
            "discrete Laplace",
            laplace.release,
            dp.m.make_laplace(vector, dp.l1_distance(T="i64"), scale=scale),
            dp.m.make_laplace(number, dp.absolute_distance(T="i64"), scale=scale),
        ),
        (
            "discrete Gaussian",
            gaussian.release,
            dp.m.make_gaussian(vector, dp.l2_distance(T="f64"), scale=scale),
            dp.m.make_gaussian(number, dp.absolute_distance(T="f64"), scale=scale),
        ),
    ]


def makers() -> list[tuple[str, Callable[[float], Release], Callable[[float], Release]]]:
    """(name, ours for a scale, theirs for a scale), on one integer."""
    number = dp.atom_domain(T="i64")
    return [
        (
            "discrete Laplace",
            lambda scale: DiscreteLaplace(scale=scale).release,
            lambda scale: dp.m.make_laplace(number, dp.absolute_distance(T="i64"), scale=scale),
        ),
        (
            "discrete Gaussian",
            lambda scale: DiscreteGaussian(scale=scale).release,
            lambda scale: dp.m.make_gaussian(number, dp.absolute_distance(T="f64"), scale=scale),
        ),
    ]


def remake(make: Callable[[float], Release], count: int) -> None:
    """`count` releases of one integer, each by a mechanism of its own, at scales around 1000 that never come again."""
    for _ in range(count):
        make(1000 + next(FRESH) / 1000)(0)


def repeat(release: Release, count: int) -> None:
    """`count` releases of one integer."""
    for _ in range(count):
        release(0)


def compare(ours: Release, theirs: Release, argument: Any) -> tuple[float, float]:
    """Seconds a draw for each: medians of alternating rounds. Of a vector, theirs takes one part in each round."""
    vector = isinstance(argument, np.ndarray)
    part = argument[: argument.size // ROUNDS] if vector else argument
    ours(argument)
    theirs(argument[:1000] if vector else argument)
    mine, other = [], []
    for _ in range(ROUNDS):
        mine += [seconds(ours, argument) for _ in range(3)]
        other.append(seconds(theirs, part))
    return statistics.median(mine), statistics.median(other)


def seconds(release: Release, argument: Any) -> float:
    """How long one draw takes, within one call for all of them."""
    start = time.perf_counter()
    release(argument)
    return (time.perf_counter() - start) / (argument.size if isinstance(argument, np.ndarray) else argument)


def rate(name: str, times: tuple[float, float], limit: float) -> None:
    """How many times the peer's rate ours is."""
    ours, theirs = (1e9 * draw for draw in times)
    report(name, theirs / ours, limit, f"{ours:,.1f} ns a draw, {theirs:,.0f} ns by {PEER}")


if __name__ == "__main__":
    main()
