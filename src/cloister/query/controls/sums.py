"""An exact audit of answered sums: which questions would, together, give away one person's value.

Each answered sum is an equation about the records' values, with coefficient 1 for the records of its set. A question is refused
when with it the equations would fix the value of one record (for a person with several records: any combination of that person's
values alone). That is a question of linear algebra over the rationals, decided exactly.

**Simulatable** (Kenthapadi, Mishra & Nissim 2005). The decision reads the sets of this and of the answered questions, and no
value of the column. Anyone who knows the sets can take it themselves, so a refusal tells them nothing. Two rules keep it so: a
missing value counts as 0, so a set does not depend on which values are missing; and a column whose sums are audited may not be
read by conditions, since its values would then make the sets (policy.py).

**What it does not promise.** Values are taken to be any real numbers. Bounds that are known tell more: a total of 10 salaries
that equals 10 times the lowest gives all of them away, and two that are nearly isolated may still be known within a krone. It
is not differential privacy.

How it is decided
-----------------
Keep answered sets that are linearly independent (rows of A), a pivot record for each, and the inverse modulo a prime p of
B = A restricted to the pivots. R = B⁻¹A is the reduced form; a row combination v = yA has v_P = y on the pivots, so a vector
supported on one person's records U is a combination of those rows of R whose pivots lie in U that vanishes outside U. For one
record a person: record j is known if and only if j is a pivot and its row of R is zero elsewhere.

*To detect* this without R: take z random on the other records and z_P = −R z on the pivots, a random solution of Az = 0 mod p.
What is known of U is known of every solution, so the records of U span less than |U| dimensions in such z's: for one record,
z_j = 0. With s = Az⁰ for a fixed random z⁰, z_P = z⁰_P − B⁻¹s, so a question costs O(r² + n) for r independent answers and n
records. Only units with a pivot need a look.

*No case is missed.* B is invertible modulo p, so p does not divide det B, and every rational solution has denominators that
divide it: what holds over the rationals holds modulo p. *No case is made-up:* what is detected is proved over the rationals
(witness.py) before anything is refused; so is that an answer follows from earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.query.controls.masks import Mask
from cloister.query.controls.witness import combination, isolating

Integers = npt.NDArray[np.int64]

PRIMES = (2147483647, 2147483629, 2147483587, 2147483579, 2147483563, 2147483549)
"""The largest below 2³¹: sums of a million products of one of their residues with 0 or 1 fit 64 bits."""

_CHUNK = 256


@dataclass(frozen=True, kw_only=True)
class Witness:
    """For the owner: answered questions whose combination is a combination of one person's values alone.

    `answers` gives each question's number (the newest last, which was refused) and its coefficient; `records` the person's
    records and their coefficients in the result.

    >>> print(Witness(answers=((0, Fraction(1)), (1, Fraction(-1))), records=((7, Fraction(1)),)))
    1 × answer 0 − 1 × answer 1 = 1 × record 7
    """

    answers: tuple[tuple[int, Fraction], ...]
    records: tuple[tuple[int, Fraction], ...]

    def __str__(self) -> str:
        return f"{_combined(self.answers, 'answer')} = {_combined(self.records, 'record')}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a question may be answered. `witness` is there when not; `follows` when it adds nothing to what was answered."""

    witness: Witness | None
    follows: bool = False

    def __bool__(self) -> bool:
        return self.witness is None


class Audit:
    """The answered sums of one column. Not differential privacy.

    >>> audit = Audit(np.arange(4))
    >>> audit.answer(np.array([True, True, True, False]))
    True
    >>> verdict = audit.examine(np.array([True, True, False, False]))
    >>> bool(verdict), str(verdict.witness)
    (False, '1 × answer 0 − 1 × answer 1 = 1 × record 2')
    """

    def __init__(self, units: Integers) -> None:
        """`units` says whose each record is: numbers from 0."""
        self._units = units
        self._size = len(units)
        counts = np.bincount(units) if self._size else np.zeros(1, dtype=np.int64)
        self._spread = max(int(counts.max()), 1)  # the most records of one person: so many random solutions are needed
        self._alone = self._spread == 1
        self._asked: list[Mask] = []
        self._start(PRIMES[0])

    @property
    def answered(self) -> int:
        """How many sums were answered."""
        return len(self._asked)

    @property
    def rank(self) -> int:
        """How many of them do not follow from the others."""
        return len(self._pivots)

    def examine(self, mask: Mask) -> Verdict:
        """Whether the sum over these records may be answered after all the others. Changes nothing."""
        found = self._reduced(mask)
        if found is None:
            return Verdict(witness=None, follows=True)
        suspects = self._suspects(found)
        for unit in suspects:
            matrix = np.concatenate([self._matrix(), mask[None, :].astype(np.int64)])
            pivots = np.append(self._pivots, found.pivot)
            isolated = isolating(matrix, pivots, found.inverse(self._inverse, self._prime), self._prime, self._units == unit)
            if isolated is not None:
                numbers = [*self._numbers, self.answered]
                answers = tuple((number, value) for number, value in zip(numbers, isolated[0], strict=True) if value)
                return Verdict(witness=Witness(answers=answers, records=isolated[1]))
        return Verdict(witness=None)

    def answer(self, mask: Mask) -> bool:
        """`examine`, and take note of the set where it may be answered."""
        allowed = bool(self.examine(mask))
        if allowed:
            self.add(mask)
        return allowed

    def add(self, mask: Mask) -> None:
        """Take note of an answered set, without asking whether it should have been answered."""
        found = self._reduced(mask)
        if found is not None:
            self._rows[self.rank] = mask
            self._take(found)
            self._numbers.append(self.answered)
        self._asked.append(mask)

    def copy(self) -> Audit:
        """One to try several questions on."""
        twin = Audit(self._units)
        for mask in self._asked:
            twin.add(mask)
        return twin

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    def _start(self, prime: int) -> None:
        self._prime = prime
        self._rows = np.zeros((16, self._size), dtype=np.uint8)
        self._inverse = np.zeros((0, 0), dtype=np.int64)
        self._pivots = np.zeros(0, dtype=np.int64)
        self._numbers: list[int] = []
        self._free = _mixed(self._spread, self._size, prime)
        self._sums = np.zeros((0, self._spread), dtype=np.int64)
        self._solved = np.zeros((0, self._spread), dtype=np.int64)

    def _matrix(self) -> Integers:
        return self._rows[: self.rank].astype(np.int64)

    def _reduced(self, mask: Mask) -> _Step | None:
        """What adding a set would change; None where its sum follows from the answered ones, over the rationals."""
        prime, rank = self._prime, self.rank
        total = self._free[:, mask].sum(axis=1) % prime
        on_pivots = mask[self._pivots].astype(np.int64)
        weights = on_pivots @ self._inverse % prime
        rest = (total - _times(weights, self._sums, prime)) % prime
        pivot, value = self._new_pivot(mask, weights)
        if pivot < 0:
            assert not rest.any()
            if combination(self._rows[:rank], self._pivots, self._inverse, prime, mask.astype(np.int64)) is not None:
                return None
            self._another_prime()  # independent over the rationals and not modulo p: p divides a minor
            return self._reduced(mask)
        column = self._rows[:rank, pivot].astype(np.int64)
        shift = self._inverse @ column % prime
        unit = pow(value, -1, prime)
        newest = (total - on_pivots @ self._solved) % prime * unit % prime
        return _Step(pivot=pivot, weights=weights, shift=shift, unit=unit, total=total, newest=newest)

    def _new_pivot(self, mask: Mask, weights: Integers) -> tuple[int, int]:
        """A record at which the set differs from its combination of earlier sets, and by how much; (-1, 0) for none."""
        used = np.flatnonzero(weights)  # of structured questions a few
        weights = weights[used]
        inside = np.flatnonzero(mask)
        for candidates in (inside, np.flatnonzero(~mask)):
            for start in range(0, len(candidates), _CHUNK):
                some = candidates[start : start + _CHUNK]
                values = (mask[some].astype(np.int64) - weights @ self._rows[np.ix_(used, some)].astype(np.int64)) % self._prime
                hits = np.flatnonzero(values)
                if len(hits):
                    return int(some[hits[0]]), int(values[hits[0]])
        return -1, 0

    def _suspects(self, step: _Step) -> list[int]:
        """Persons of whom something would be known modulo p."""
        prime = self._prime
        solved = np.concatenate([(self._solved - step.shift[:, None] * step.newest) % prime, step.newest[None, :]])
        pivots = np.append(self._pivots, step.pivot)
        solution = (self._free[:, pivots].T - solved) % prime
        if self._alone:
            return [int(self._units[pivot]) for pivot in pivots[solution[:, 0] == 0]]
        full = self._free.copy()
        full[:, pivots] = solution.T
        owners = np.unique(self._units[pivots])
        order = np.argsort(self._units, kind="stable")
        starts = np.searchsorted(self._units[order], [owners, owners + 1])
        return [
            int(owner)
            for owner, low, high in zip(owners, *starts, strict=True)
            if _rank(full[:, order[low:high]], prime) < high - low
        ]

    def _take(self, step: _Step) -> None:
        prime = self._prime
        solved = (self._solved - step.shift[:, None] * step.newest) % prime
        self._solved = np.concatenate([solved, step.newest[None, :]])
        self._inverse = step.inverse(self._inverse, prime)
        self._pivots = np.append(self._pivots, step.pivot)
        self._sums = np.concatenate([self._sums, step.total[None, :]])
        if self.rank == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])

    def _another_prime(self) -> None:
        asked = self._asked
        place = PRIMES.index(self._prime) + 1
        self._asked = []
        self._start(PRIMES[place])
        for mask in asked:
            self.add(mask)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Step:
    """A new row of A: its pivot, y = q_P B⁻¹, u = B⁻¹ b for the pivot's column b, 1/(q_pivot − y b), and its share of s and z."""

    pivot: int
    weights: Integers
    shift: Integers
    unit: int
    total: Integers
    newest: Integers

    def inverse(self, old: Integers, prime: int) -> Integers:
        """B⁻¹ with the new row and column (bordering)."""
        rank = len(old)
        new = np.empty((rank + 1, rank + 1), dtype=np.int64)
        scaled = self.shift * self.unit % prime
        new[:rank, :rank] = (old + np.multiply.outer(scaled, self.weights) % prime) % prime
        new[:rank, rank] = -scaled % prime
        new[rank, :rank] = -self.weights * self.unit % prime
        new[rank, rank] = self.unit
        return new


def _mixed(rows: int, columns: int, prime: int) -> Integers:
    """Numbers from 1 to p − 1 without pattern (splitmix64 of their places): they need not be secret, since nothing that is
    decided depends on them."""
    with np.errstate(over="ignore"):
        x = (np.arange(1, rows * columns + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x % np.uint64(prime - 1)).astype(np.int64).reshape(rows, columns) + 1


def _times(row: Integers, matrix: Integers, prime: int) -> Integers:
    """row · matrix modulo p, each product reduced before it is added."""
    return np.asarray((row[:, None] * matrix % prime).sum(axis=0) % prime)


def _rank(matrix: Integers, prime: int) -> int:
    """The rank of a small matrix modulo p."""
    rows = [[int(value) for value in row] for row in matrix % prime]
    rank = 0
    for column in range(len(rows[0])):
        place = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if place is None:
            continue
        rows[rank], rows[place] = rows[place], rows[rank]
        inverse = pow(rows[rank][column], -1, prime)
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] * inverse % prime
            if factor:
                rows[i] = [(x - factor * y) % prime for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def _combined(parts: tuple[tuple[int, Fraction], ...], noun: str) -> str:
    words = [f"{'− ' if value < 0 else '+ '}{abs(value)} × {noun} {number}" for number, value in parts]
    first = words[0][2:] if words[0].startswith("+") else words[0].replace("− ", "−", 1)
    return " ".join([first, *words[1:]])
