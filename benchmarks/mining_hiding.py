"""Rule hiding on Groceries and chess: every method's failure and side effects, and what is proved of the exact one.

Two limits: no method that takes entries out may fail to hide, and the exact method may lose no more rules than the best
heuristic. Its gap is told where time ended before a proof.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

from _report import report

from cloister.mining import METHODS, Comparison, compare

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SECONDS = 5 if QUICK else 60
ON_GROCERIES = [
    "yogurt, curd -> whole milk",
    "root vegetables, citrus fruit -> other vegetables",
    "butter -> whole milk",
    "beef -> root vegetables",
    "domestic eggs -> whole milk",
]
ON_CHESS = ["hdchk=f, skach=f -> reskd=f"]


def main() -> None:
    """Both tables, where they are."""
    if not (DATA / "baskets" / "groceries.csv").exists():
        print("the shared data are not here: nothing was measured")
        return
    compared("groceries", groceries(), ON_GROCERIES, "0.01", "0.3")
    for support in ("0.96",) if QUICK else ("0.96", "0.95", "0.93"):
        compared(f"chess at {support}", chess(), ON_CHESS, support, "0.95")


def compared(name: str, baskets: list[list[str]], rules: list[str], support: str, confidence: str) -> None:
    """First without entries made up, then with 1.a beside it."""
    for methods in ([each for each in METHODS if each != "1.a"], list(METHODS)):
        found = compare(baskets, rules, min_support=support, min_confidence=confidence, methods=methods, time_limit=SECONDS)
        print(f"{name}, {len(rules)} to hide\n{found}", flush=True)
        told(f"{name}{', entries made up allowed' if '1.a' in methods else ''}", found)


def told(name: str, found: Comparison) -> None:
    """Against the limits."""
    failed = max(each.effects.hiding_failure for each in found if each.method != "1.a")
    report(f"{name}: hiding failure", failed, 0, "the largest of all methods that take entries out", most=True)
    heuristics = [each for each in found if each.method != "exact" and not each.effects.failed]
    best, exact = min(heuristics, key=lambda each: each.effects.lost), found["exact"]
    ratio = exact.effects.lost / best.effects.lost if best.effects.lost else float(exact.effects.lost > 0)
    detail = f"{exact.effects.lost} against {best.effects.lost} of {best.method}; {exact.proof}"
    report(f"{name}: lost rules of the exact method over the best heuristic's", ratio, 1, detail, most=True)


def groceries() -> list[list[str]]:
    """Baskets of a shop."""
    found: dict[str, list[str]] = {}
    with (DATA / "baskets" / "groceries.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["basket"], []).append(row["item"])
    return list(found.values())


def chess() -> list[list[str]]:
    """End games of chess: a value of an attribute is an item."""
    with (DATA / "uci" / "kr_vs_kp.csv").open(encoding="utf-8", newline="") as file:
        return [[f"{name}={value}" for name, value in row.items()] for row in csv.DictReader(file)]


if __name__ == "__main__":
    main()
