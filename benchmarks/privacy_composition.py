"""A thousand different Laplace and Gaussian releases, composed to (ε, δ): how fast, and how close to dp-accounting.

Both sides start from events and end at ε for δ = 10⁻⁶, in the same run. Each round takes other releases, so nothing is kept from
the one before. Ours adds every rounding error to its answer; how it compares with closed forms is for the tests.
"""

from __future__ import annotations

import os
import time
from fractions import Fraction
from importlib.metadata import version

from _report import report
from dp_accounting.pld import PLDAccountant

from cloister.privacy import Event, GaussianRelease, LaplaceRelease, LossAccountant, to_dp_accounting

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RELEASES = 200 if QUICK else 1000
ROUNDS = 5
DELTA = "1e-6"
LOW, HIGH = 0.02, 0.5


def main() -> None:
    """Measure, print for people, print for programs."""
    LossAccountant.of(releases(20, 99)).to_approx(DELTA)  # loads what is loaded once
    mine, ours = [], []
    for attempt in range(ROUNDS):
        events = releases(RELEASES, attempt)
        start = time.perf_counter()
        ours.append(float(LossAccountant.of(events).to_approx(DELTA).epsilon))
        mine.append(time.perf_counter() - start)
    events = releases(RELEASES, 0)
    start = time.perf_counter()
    accountant = PLDAccountant()
    for event in events:
        accountant.compose(to_dp_accounting(event))
    their_epsilon = accountant.get_epsilon(float(DELTA))
    theirs = time.perf_counter() - start
    best = min(mine)
    peer = f"dp-accounting {version('dp-accounting')}"
    batch = f"{RELEASES} different Laplace and Gaussian releases of ε or μ from {LOW} to {HIGH}"
    report("composing a batch, seconds", best, 1, f"{batch}; {peer}: {theirs:.1f} s", most=True)
    report("composing a batch, times faster", theirs / best, 15 if not QUICK else 2, f"{batch}; against {peer}")
    gap = abs(ours[0] / their_epsilon - 1)
    found = f"ε = {ours[0]:.4f} at δ = {DELTA}, {peer}: {their_epsilon:.4f}"
    report("composing a batch, difference of ε", gap, 0.01, found, most=True)
    mine_delta = float(LossAccountant.of(events).delta(Fraction(round(their_epsilon * 10**6), 10**6)))
    report(
        "composing a batch, difference of δ",
        abs(mine_delta / float(DELTA) - 1),
        0.01,
        f"δ = {mine_delta:.4g} at {peer}'s ε",
        most=True,
    )


def releases(count: int, attempt: int) -> list[Event]:
    """Sizes spread evenly on a logarithmic scale, by the golden ratio; every attempt has others."""
    sizes = []
    for i in range(count):
        size = LOW * (HIGH / LOW) ** ((i * 0.6180339887) % 1) * (1 + attempt / 1000)
        sizes.append(Fraction(round(10**6 * size), 10**6))
    return [LaplaceRelease(scale=1 / size) if i % 2 else GaussianRelease(scale=1 / size) for i, size in enumerate(sizes)]


if __name__ == "__main__":
    main()
