"""Groups whose sensitive values all differ: Xiao & Tao's algorithm, on codes."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import Random

Integers = npt.NDArray[np.int64]


def check_eligible(counts: npt.ArrayLike, ell: int, values: Sequence[Any]) -> None:
    """Refuse where one value has more than 1/l of the records: then no grouping hides it (Xiao & Tao 2006, "eligibility").

    >>> check_eligible([50, 30, 20], 2, ["flu", "cough", "cold"])
    >>> check_eligible([50, 30, 20], 3, ["flu", "cough", "cold"])
    Traceback (most recent call last):
        ...
    cloister.errors.InvalidParameter: l=3 is invalid: the value 'flu' has 50 of 100 records, and one value may have at most 33.
      Instead: l=2, or 'flu' told apart into finer values, or fewer records of it
    """
    if isinstance(ell, bool) or not isinstance(ell, int | np.integer) or ell < 2:
        raise InvalidParameter(f"l={ell!r} is invalid", why="groups hold a whole number of values, at least 2", instead="l=3")
    numbers = np.asarray(counts, dtype=np.int64)
    total = int(numbers.sum())
    if not total or numbers.max() * ell <= total:
        return
    worst, most = values[int(numbers.argmax())], int(numbers.max())
    largest = total // most
    smaller = f"l={largest}, or " if largest >= 2 else ""
    raise InvalidParameter(
        f"l={ell} is invalid",
        why=f"the value {worst!r} has {most} of {total} records, and one value may have at most {total // ell}",
        instead=f"{smaller}{worst!r} told apart into finer values, or fewer records of it",
    )


def diverse_groups(codes: npt.NDArray[np.integer], ell: int, random: Random) -> Integers:
    """The group of each record: groups of at least l, in none of which a code stands twice. Who shares a group with whom is
    chance, and so are the groups' numbers.

    Each group takes one record of each of the l codes that have the most records left. Where every code has at most n/l
    records, at most one record of a code is left in the end, and some group lacks its code (Xiao & Tao 2006, properties 1–2).

    >>> groups = diverse_groups(np.array([0, 0, 1, 1, 2]), 2, Random.deterministic(1))
    >>> np.bincount(groups).tolist() in ([2, 3], [3, 2])
    True
    """
    groups = np.full(len(codes), -1, dtype=np.int64)
    if not len(codes):
        return groups
    shuffled = random.permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    counts = np.bincount(codes)
    ends = np.cumsum(counts)
    heap = [(-int(count), code) for code, count in enumerate(counts.tolist()) if count]
    heapq.heapify(heap)
    taken: list[int] = []
    number = 0
    while len(heap) >= ell:
        largest = [heapq.heappop(heap) for _ in range(ell)]
        for left, code in largest:
            taken.append(int(ends[code]) + left)
            if left < -1:
                heapq.heappush(heap, (left + 1, code))
        number += 1
    groups[order[taken]] = np.repeat(np.arange(number), ell)
    held = [codes[order[taken[first : first + ell]]].tolist() for first in range(0, len(taken), ell)] if heap else []
    for left, code in heap:
        if left != -1 or not number:
            raise InvalidParameter("l is invalid", why="one value has too many of the records", instead="a smaller l")
        lacking = np.array([group for group in range(number) if code not in held[group]], dtype=np.int64)
        chosen = int(lacking[random.below_one(len(lacking))])
        held[chosen].append(code)
        groups[order[int(ends[code]) - 1]] = chosen
    return np.asarray(random.permutation(number)[groups])
