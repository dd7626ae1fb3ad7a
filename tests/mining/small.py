"""What the tests of this room share: small random baskets, answers by brute force, and the shared data where it is."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from cloister.mining.baskets import Baskets
from cloister.mining.sensitive import Problem, Sensitive
from cloister.mining.thresholds import Thresholds

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
GROCERIES, CHESS = DATA / "baskets" / "groceries.csv", DATA / "uci" / "kr_vs_kp.csv"


def some(seed: int, *, baskets: int = 30, items: int = 6, density: float = 0.5) -> list[list[str]]:
    draw = np.random.default_rng(seed)
    held = draw.random((baskets, items)) < density * draw.uniform(0.4, 1.6, items)
    return [["abcdefghij"[place] for place in np.flatnonzero(row)] for row in held]


def frequent_by_hand(lists: list[list[str]], least: int) -> dict[frozenset[str], int]:
    items = sorted({item for basket in lists for item in basket})
    held = [set(basket) for basket in lists]
    found = {}
    for size in range(1, len(items) + 1):
        for each in combinations(items, size):
            count = sum(set(each) <= basket for basket in held)
            if count >= least:
                found[frozenset(each)] = count
    return found


def rules_by_hand(lists: list[list[str]], least: int, confidence: tuple[int, int]) -> set[tuple[frozenset[str], frozenset[str]]]:
    found = frequent_by_hand(lists, least)
    p, q = confidence
    return {
        (frozenset(left), whole - frozenset(left))
        for whole, count in found.items()
        for size in range(1, len(whole))
        for left in combinations(sorted(whole), size)
        if count * q >= found[frozenset(left)] * p
    }


def problems(
    seeds: range, *, rules: int = 2, baskets: int = 30, items: int = 6, support: str = "0.2", confidence: str = "0.6"
) -> Iterator[Problem]:
    """Random problems with so many sensitive rules, some of which share items."""
    for seed in seeds:
        read = Baskets.of(some(seed, baskets=baskets, items=items))
        thresholds = Thresholds.of(len(read), min_support=support, min_confidence=confidence)
        every = Problem.of(read, thresholds, ())
        sets, found = every.found.mined.sets, every.found
        if len(found.whole) <= rules:
            continue
        chosen = np.random.default_rng(seed).choice(len(found.whole), rules, replace=False).tolist()
        asked = []
        for each in chosen:
            left, whole = sets[int(found.left[each])], sets[int(found.whole[each])]
            asked.append(Sensitive(antecedent=left, consequent=tuple(item for item in whole if item not in left)))
        yield Problem.of(read, thresholds, asked)


def groceries() -> list[list[str]]:
    found: dict[str, list[str]] = {}
    with GROCERIES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["basket"], []).append(row["item"])
    return list(found.values())


def chess() -> list[list[str]]:
    with CHESS.open(encoding="utf-8", newline="") as file:
        return [[f"{name}={value}" for name, value in row.items()] for row in csv.DictReader(file)]
