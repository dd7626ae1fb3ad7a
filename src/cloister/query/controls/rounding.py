"""Rounding answers to multiples of a base: to the nearest, at random, or a whole table at once so that it still adds up.

Not differential privacy. What it stops: telling a count of 1 from a count of 3, and a single difference of two counts. What it
does not: a person who lies on the edge between two multiples moves the answer; and many answers about overlapping sets narrow
each count down.

Controlled rounding (Cox 1987): every cell and every total goes to one of the two multiples next to it, multiples stay where
they are, and rows and columns still add up. The table is a network (network.py). The edges that are no multiple yet always
contain a cycle, since at a node where all flows but one are multiples, that one is too. Pushing the same amount round a cycle
keeps every sum; it is pushed one way or the other, with the odds that leave each expectation where it was, until an edge of the
cycle is a multiple. Each push settles an edge, so there are no more pushes than cells, and the result is unbiased.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from cloister.crypto import PseudoRandomFunction
from cloister.errors import InvalidParameter
from cloister.privacy.rational import Exact, exact_positive, text_of
from cloister.query.controls.network import Circulation, circulation_of

Counts = npt.NDArray[np.int64]
Kind = Literal["deterministic", "random", "controlled"]


@dataclass(frozen=True, init=False)
class Rounding:
    """Counts to multiples of `base`, sums of the columns named to multiples of theirs. Not differential privacy.

    "deterministic": the nearest multiple, ties up. "random": up or down with the odds that keep the expectation, drawn from the
    records concerned. "controlled": as random, and the cells and totals of a table still add up; a single number is rounded as
    in "random".

    >>> Rounding(base=5).rounded(Fraction(13), Fraction(5), PseudoRandomFunction(b"secret"), "set 1")
    Fraction(15, 1)
    >>> print(Rounding(base=5, kind="controlled", sums={"salary": 1000}))
    controlled rounding: counts to multiples of 5, sums of salary to multiples of 1000
    """

    base: int
    kind: Kind
    sums: tuple[tuple[str, Fraction], ...]

    def __init__(self, *, base: int = 5, kind: Kind = "deterministic", sums: Mapping[str, Exact] | None = None) -> None:
        if isinstance(base, bool) or not isinstance(base, int) or base < 2:
            raise InvalidParameter(f"base={base!r} is invalid", why="it must be a whole number, at least 2", instead="base=5")
        if kind not in ("deterministic", "random", "controlled"):
            raise InvalidParameter(f"kind={kind!r} is invalid", why="it is not known", instead='kind="random"')
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "kind", kind)
        bases = tuple((name, exact_positive(each, f"sums[{name!r}]")) for name, each in sorted((sums or {}).items()))
        object.__setattr__(self, "sums", bases)

    def rounded(self, value: Fraction, base: Fraction, keyed: PseudoRandomFunction, *parts: str) -> Fraction:
        """One number; `parts` name the records and the statistic, and fix a random choice."""
        below = value // base * base
        rest = (value - below) / base
        if self.kind == "deterministic":
            return below + (base if 2 * rest >= 1 else 0)
        up = keyed.below(rest.denominator, "rounding", *parts) < rest.numerator
        return below + (base if up else 0)

    def of_sum(self, column: str, value: Fraction, keyed: PseudoRandomFunction, *parts: str) -> Fraction:
        """A sum, where the column has a base."""
        base = dict(self.sums).get(column)
        return value if base is None else self.rounded(value, base, keyed, "sum", column, *parts)

    def __str__(self) -> str:
        sums = "".join(f", sums of {name} to multiples of {text_of(base)}" for name, base in self.sums)
        return f"{self.kind} rounding: counts to multiples of {self.base}{sums}"


def controlled_rounding(counts: Counts, base: int, keyed: PseudoRandomFunction, *parts: str) -> Counts:
    """A one-way or two-way table, rounded with its totals: the rounded cells, whose sums are the rounded totals.

    >>> table = np.array([[1, 2, 7], [3, 3, 4]])
    >>> rounded = controlled_rounding(table, 5, PseudoRandomFunction(b"secret"), "table 1")
    >>> bool((abs(rounded - table) < 5).all()), bool((abs(rounded.sum(axis=0) - table.sum(axis=0)) < 5).all())
    (True, True)
    """
    network = circulation_of(counts)
    rests = [edge.value % base for edge in network.edges]
    open_edges = {number for number, rest in enumerate(rests) if rest}
    step = 0
    while open_edges:
        cycle = _cycle(network, open_edges)
        forwards = min(base - rests[number] if sign > 0 else rests[number] for number, sign in cycle)
        backwards = min(rests[number] if sign > 0 else base - rests[number] for number, sign in cycle)
        ahead = keyed.below(forwards + backwards, "controlled rounding", str(step), *parts) < backwards
        amount = forwards if ahead else -backwards
        for number, sign in cycle:
            rests[number] += sign * amount
            if rests[number] in (0, base):
                open_edges.discard(number)
        step += 1
    rounded = np.zeros_like(counts)
    for edge, rest in zip(network.edges, rests, strict=True):
        if not edge.total:
            rounded[edge.place] = edge.value - edge.value % base + rest
    return rounded


def _cycle(network: Circulation, open_edges: set[int]) -> list[tuple[int, int]]:
    """A cycle of edges that are no multiples, each with the direction in which it is gone through."""
    around: dict[int, list[int]] = {}
    for number in sorted(open_edges):
        around.setdefault(network.edges[number].tail, []).append(number)
        around.setdefault(network.edges[number].head, []).append(number)
    node, came = next(iter(around)), -1
    path: list[tuple[int, int]] = []
    seen = {node: 0}
    while True:
        number = next(each for each in around[node] if each != came)
        edge = network.edges[number]
        sign = 1 if edge.tail == node else -1
        node, came = (edge.head if sign > 0 else edge.tail), number
        path.append((number, sign))
        if node in seen:
            return path[seen[node] :]
        seen[node] = len(path)
