"""Frequent itemsets: our bit sets against efficient-apriori, in turns, on Groceries, chess, and a million made-up baskets."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from _clock import alternating
from _report import report
from mining_hiding import DATA, chess, groceries

from cloister.mining import Baskets, frequent_itemsets
from cloister.mining.examples import shop

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROUNDS = 1 if QUICK else 3


def main() -> None:
    """Lists are read by both; what is timed is from lists to sets."""
    problems: list[tuple[str, list[list[str]], str]] = []
    if (DATA / "baskets" / "groceries.csv").exists():
        problems += [("groceries", groceries(), "0.01"), ("groceries", groceries(), "0.002")]
        problems += [("chess", chess(), "0.9"), ("chess", chess(), "0.85" if QUICK else "0.8")]
    problems.append(("made-up baskets", shop(20_000 if QUICK else 1_000_000), "0.01"))
    for name, lists, support in problems:
        mine, theirs = by("bits", lists, support), by("efficient-apriori", lists, support)
        seconds = alternating(mine, theirs, rounds=1 if len(lists) > 10**5 else ROUNDS, uncounted=0 if len(lists) > 10**5 else 1)
        sets = len(frequent_itemsets(lists, min_support=support))
        detail = (
            f"{len(lists):,} baskets, {sets:,} sets, {seconds[0]:.2f} s against {seconds[1]:.2f} s of efficient-apriori 2.0.6"
        )
        report(f"itemsets of {name} at {support}: times faster", seconds[1] / seconds[0], 2, detail)


def by(engine: Any, lists: list[list[str]], support: str) -> Callable[[int], object]:
    """One run."""
    return lambda place: frequent_itemsets(Baskets.of(lists), min_support=support, engine=engine)


if __name__ == "__main__":
    main()
