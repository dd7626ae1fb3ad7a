"""Sample and aggregate: a guest runs on disjoint blocks of people; of what it says of them the mean or a quantile leaves, with
noise (Nissim, Raskhodnikova & Smith 2007; GUPT: Mohan, Thakurta, Shi, Song & Culler 2012).

Guarantee: that of the charge, whatever the code does. Neighbours: one person with all of their rows. Theorem: with B blocks,
each person falls into one of them by a draw of their own, which depends on nobody else; couple the draws of two neighbouring
tables, and B − 1 blocks hold the same rows. What a block says depends on its rows alone: they come in an order that is made
of themselves, the interpreter is new, its fuel is counted in instructions, it has no clock, no chance and no files, and a
failure is one value like another. (A block whose process is killed at the end of its step failed, too, by its own rows and by
how busy the machine is. A native guest has a clock, and chance of its own: its runs begin on a grid of time that no run can
move, each a new process with a new file system. That two runs share no cache of a processor can't be had: so it is
for admitted code.) So of the B vectors of whole numbers from 0 to S one is another, and their sum moves by at most S in each
of d places: Δ₁ = dS, Δ₂² = dS². The noise of `Allowance` is added to the sum. For the quantile a/b the utilities of all
levels move by at most b, and each of the d choices is permute-and-flip with its part of the spend.

**How many blocks gave no value** leaves too: for them the middle stands, S/2 in every place. Beside a mean it is free. Let a
block add (c, 0) to the sum with c in [0, S]^d if it gave a value, and (S/2, …, S/2, w) if it gave none. Two values differ as
above; a value and a failure by dS/2 + w at most, and by dS²/4 + w² of squares: so for w ≤ dS/2, or w² ≤ 3dS²/4, Δ₁ = dS and
Δ₂² = dS² are those of the whole vector of d + 1 numbers, whose noise is one release. Beside quantiles the count (Δ = 1) has an
eighth of the spend, and sequential composition adds the two. What is told about it is within 0 and B: post-processing.

Nothing that a guest returns raises an error out here. When the answer comes is no part of the theorem: it follows from the number
of blocks and their seconds (`sandbox/grid.py`), and on a machine too slow for that it comes after twice as long.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, check_whole
from cloister.guests.outputs import Vector
from cloister.guests.sandbox.grid import slot_of
from cloister.guests.sandbox.opening import PLAIN, Needs
from cloister.guests.sandbox.wasm import Opened, Ran
from cloister.noise import DiscreteLaplace, PermuteAndFlip, Random
from cloister.noise.allowance import Allowance, Currency, Share
from cloister.printable import margin_text
from cloister.privacy import ApproxDP, Guarantee
from cloister.session.execution.rehearsal import ASSUMED_ROWS
from cloister.tables import Domain, PrivateTable

Statistic: TypeAlias = str
"""`"mean"`, `"median"`, or a quantile by its per cent: `"q90"`."""
_QUANTILE = re.compile(r"q([1-9][0-9]?)")
_FEWEST, _MOST = 5, 10_000
_ROOM = 4096
"""For what a native guest returns, beside 64 bytes a number."""
_LEVELS = 1024
"""Of a quantile: how many candidates there are."""
_MOST_MADE_UP = 200_000
"""Rows of all blocks of a rehearsal."""
_FOR_COUNT = Fraction(1, 8)
"""Of the spend of quantiles: for how many blocks gave no value."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """How many blocks gave no value, with noise and its margin (95 %).

    >>> print(Failed(count=48.2, margin=6, blocks=50))
    about 48 ± 6 of 50 blocks gave no value: the range's middle stood in for them
    """

    count: float
    margin: float
    blocks: int

    def __str__(self) -> str:
        about = f"about {self.count:z.0f} ± {margin_text(self.margin)} of {self.blocks} blocks gave no value"
        return f"{about}: the range's middle stood in for them"


@dataclass(frozen=True, kw_only=True)
class NearRows:
    """A guest near rows: what both ways know of it."""

    by_unit: ClassVar[bool] = True

    code: str
    entry: str
    digest: str
    inputs: tuple[str, ...]
    output: Vector
    seconds: float
    memory: int
    opened: Opened | None = field(default=None, compare=False, repr=False)
    """A sandbox of its own (`open`), where it was opened before the charge."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return self.inputs


@dataclass(frozen=True, kw_only=True)
class Blocks(NearRows):
    """A guest over so many blocks of people, as a method that needs rows (`cloister.session.RowMethod`)."""

    stored: ClassVar[tuple[str, str]] = ("cloister.guests.blocks", "Blocks")

    blocks: int
    statistic: Statistic = "mean"
    needs: Needs = PLAIN

    def describe(self) -> dict[str, Any]:
        """The code by its digest, and what is declared of it."""
        about: dict[str, Any] = {
            "guest": self.digest,
            "entry": self.entry,
            "output": self.output.describe(),
            "statistic": self.statistic,
        }
        about |= {"blocks": self.blocks, "seconds": self.seconds, "memory": self.memory, "format": 2}
        return about | {"language": self.needs.language, "packages": list(self.needs.packages)} if self.needs.native else about

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """All that was given, in the currency of its noise."""
        check_whole_people(declaration)
        self.allowance(spend)
        return spend

    def allowance(self, spend: Guarantee) -> Allowance:
        """What its noise may spend. Where there is a δ: Gaussian or Laplace noise, whichever moves a mean less, or the larger
        parts for the choices of many quantiles."""
        if not isinstance(spend, ApproxDP) or not spend.delta:
            return Allowance(spend)

        def worse(kind: Currency | None) -> float:
            share = Allowance(spend, currency=kind).rest("")
            return _far(share, *self._reach(), 0.95) if self.statistic == "mean" else -float(self._part(share).epsilon)

        kinds: tuple[Currency, ...] = ("rho", "epsilon")
        return Allowance(spend, currency=min(kinds, key=worse))

    def _part(self, share: Share) -> Share:
        """Of one of the quantiles."""
        return share.part((1 - _FOR_COUNT) / len(self.output))

    def margins(self, spend: Guarantee, confidence: float = 0.95) -> dict[str, float]:
        """How far the noise moves each mean, at most, with so much confidence: known before anything is run. A quantile's noise
        moves ranks: how far that is in values depends on the blocks."""
        if quantile_of(self.statistic) is not None:
            return {}
        far = _far(self.allowance(spend).rest(self.statistic), *self._reach(), confidence)
        share = min(far / (self.blocks * self.output.steps), 1.0)  # what leaves lies within its range, as what it is of does
        return {name: width * share for name, width in self.output.widths().items()}

    def release(
        self, rows: Mapping[str, npt.NDArray[Any]], declaration: PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        """Run every block, and let out noisy numbers alone, when the time of all blocks is over."""
        with self.opened or self.open() as sandbox:
            parts = blocks_of(rows, declaration, self.inputs, self.blocks, random)
            read = [self.output.read(ran.value) if ran.done else None for ran in self.runs(sandbox, parts)]
        codes = np.array([self.output.codes(None) if each is None else each for each in read])
        found, failed = self.noised(codes, sum(each is None for each in read), guarantee, random)
        sandbox.grid.await_end(slot_of(self.blocks, self.seconds))
        return {"values": self.output.values(found), "failed": failed}

    def noised(
        self, codes: npt.NDArray[np.int64], failed: int, guarantee: Guarantee, random: Random
    ) -> tuple[npt.NDArray[np.float64], float]:
        """Of what the blocks said (the middle where they said nothing) and of how many of them said nothing, what leaves."""
        share, quantile = self.allowance(guarantee).rest(self.statistic), quantile_of(self.statistic)
        (l1, l2_squared), weight = self._counting(share)
        if quantile is None:
            total = np.append(codes.sum(axis=0), weight * failed)
            *found, count = share.add(total, l1=l1, l2_squared=l2_squared, random=random)
            noised = np.array(found) / self.blocks
        else:
            [count] = share.part(_FOR_COUNT).add(np.array([failed]), l1=l1, l2_squared=l2_squared, random=random)
            part = self._part(share)
            noised = np.array([_chosen(column, self.output.steps, quantile, part.epsilon, random) for column in codes.T])
        return noised, float(min(max(count / weight, 0), self.blocks))

    def told(self, values: Mapping[str, Any], spend: Guarantee) -> tuple[Mapping[str, float], Failed | None]:
        """Of what `release` gave: the numbers, and how many blocks gave none (which earlier releases do not say)."""
        if not isinstance(values.get("values"), Mapping):
            return values, None
        share = self.allowance(spend).rest(self.statistic)
        reach, weight = self._counting(share)
        far = _far(share if quantile_of(self.statistic) is None else share.part(_FOR_COUNT), *reach, 0.95) / weight
        count = values["failed"]
        return values["values"], Failed(count=count, margin=min(far, max(count, self.blocks - count)), blocks=self.blocks)

    def open(self, *, paced: bool = True) -> Opened:
        """The sandbox of a release: what this machine lacks of it is refused, before anything is charged for. Made-up rows need
        not be paced, and meet the same limits."""
        about: dict[str, Any] = {"seconds": self.seconds, "memory": self.memory, "room": _ROOM + 64 * len(self.output)}
        return self.needs.sandbox(self.code, self.entry, **about, paced=paced)

    def runs(self, sandbox: Opened, blocks: Iterable[Mapping[str, list[Any]]]) -> Iterator[Ran]:
        """One run a block."""
        for block in blocks:
            yield sandbox.run([block])

    def _reach(self) -> tuple[Fraction, Fraction]:
        """Δ₁ and Δ₂² of the sum."""
        steps = Fraction(self.output.steps)
        return len(self.output) * steps, len(self.output) * steps**2

    def _counting(self, share: Share) -> tuple[tuple[Fraction, Fraction], int]:
        """Δ₁ and Δ₂² of what the number of failed blocks is released with, and by how much each moves it: w of the theorem."""
        if quantile_of(self.statistic) is not None:
            return (Fraction(1), Fraction(1)), 1
        l1, l2_squared = self._reach()
        return (l1, l2_squared), int(l1) // 2 if share.currency == "epsilon" else math.isqrt(3 * int(l2_squared) // 4)


def _far(share: Share, l1: Fraction, l2_squared: Fraction, confidence: float) -> float:
    """How far its noise moves a number, at most, with so much confidence."""
    scale = share.scale(l1=l1, l2_squared=l2_squared)
    if share.currency == "epsilon":
        return float(DiscreteLaplace(scale=scale, sensitivity=1).margin(confidence))
    return NormalDist().inv_cdf((1 + confidence) / 2) * float(scale) + 0.5


@dataclass(frozen=True, kw_only=True)
class MadeUp:
    """How many rows the blocks of a rehearsal have, beside those of a run by the public number of rows.

    >>> print(made_up(50, 30_162)), made_up(50, 30_162).total
    at about 604 rows a block, as in a run
    (None, 30162)
    >>> print(made_up(50, None))
    at about 20 rows a block: nobody said how many rows there are, and blocks of a run may be larger
    >>> print(made_up(50, 10**8), made_up(50, 10**6, most=5).runs)
    at about 200000 rows a block, the most that are made up: those of a run have about 2000000 5
    """

    rows: int
    runs: int
    total: int
    real: int | None

    def __str__(self) -> str:
        about = f"at about {self.rows} rows a block"
        if self.real is None:
            return f"{about}: nobody said how many rows there are, and blocks of a run may be larger"
        return (
            f"{about}, as in a run"
            if self.real <= self.rows
            else f"{about}, the most that are made up: those of a run have about {self.real}"
        )


def made_up(blocks: int, rows: int | None, *, most: int = _MOST) -> MadeUp:
    """A rehearsal of a run on so many rows: blocks of the same size, and as many of them as can be made up."""
    wanted = rows or ASSUMED_ROWS
    real = -(-wanted // blocks)
    size = min(real, _MOST_MADE_UP)
    runs = max(min(blocks, most, _MOST_MADE_UP // size), 1)
    total = max(min(wanted * runs // blocks, _MOST_MADE_UP), 1)
    return MadeUp(rows=size, runs=runs, total=total, real=None if rows is None else real)


def check_whole_people(declaration: PrivateTable) -> None:
    """Refuses a table of which a guest could not be given all rows of a person together."""
    if declaration.through is not None:
        raise InvalidParameter(
            "The table is invalid",
            why="its rows belong to people by way of another table, so no block holds all of a person",
            instead="a table whose unit= names people",
        )


def quantile_of(statistic: str) -> Fraction | None:
    """Which quantile of the blocks leaves; None: their mean.

    >>> quantile_of("mean"), quantile_of("median"), quantile_of("q90")
    (None, Fraction(1, 2), Fraction(9, 10))
    """
    named = _QUANTILE.fullmatch(statistic) if isinstance(statistic, str) else None
    if named is None and statistic not in ("mean", "median"):
        raise InvalidParameter(
            f"statistic={statistic!r} is invalid",
            why="of the blocks leaves their mean or a quantile, by its per cent",
            instead='"mean", "median" or "q90"',
        )
    return Fraction(int(named[1]), 100) if named else Fraction(1, 2) if statistic == "median" else None


def _chosen(codes: npt.NDArray[np.int64], steps: int, quantile: Fraction, epsilon: Fraction, random: Random) -> int:
    """A level near a quantile of the blocks, each of which counts as on the nearest level."""
    chooser = PermuteAndFlip(epsilon=epsilon, sensitivity=quantile.denominator)
    size = steps // _LEVELS
    return size * int(chooser.release(utilities_of((codes + size // 2) // size, quantile), random=random))


def utilities_of(levels: npt.NDArray[np.int64], quantile: Fraction) -> npt.NDArray[np.int64]:
    """Of each level as the quantile a/b: how many blocks too many lie below it, or above, b times as a whole number:
    −max(b·below − aB, b·above − (b − a)B, 0). With one block, either number of blocks moves by one, so this by b at most.

    >>> found = utilities_of(np.array([7, 7, 8, 9, 9]), Fraction(1, 2))
    >>> found[6:11].tolist(), int(found.argmax())
    ([-5, -1, 0, -1, -5], 8)
    """
    part, whole = quantile.numerator, quantile.denominator
    candidates, ordered = np.arange(_LEVELS + 1), np.sort(levels)
    below = np.searchsorted(ordered, candidates, side="left")
    above = len(ordered) - np.searchsorted(ordered, candidates, side="right")
    too_many = np.maximum(whole * below - part * len(ordered), whole * above - (whole - part) * len(ordered))
    return -np.maximum(too_many, 0)


def blocks_of(
    rows: Mapping[str, npt.NDArray[Any]], declaration: PrivateTable, inputs: tuple[str, ...], blocks: int, random: Random
) -> Iterator[dict[str, list[Any]]]:
    """The rows of each block as columns of plain values. Each person falls into one block by a draw of their own; the rows of a
    block come in an order that depends on nothing but them. Where a person may have several, a column says whose they are."""
    units = np.asarray(rows["unit"], dtype=np.int64)
    domains = [declaration.column(name) for name in inputs]
    values = [_readable(domain, rows[name]) for name, domain in zip(inputs, domains, strict=True)]
    persons: list[list[tuple[Any, ...]]] = [[] for _ in range(int(units.max(initial=-1)) + 1)]
    for unit, row in zip(units.tolist(), zip(*values, strict=True), strict=True):
        persons[unit].append(row)
    held: list[list[list[tuple[Any, ...]]]] = [[] for _ in range(blocks)]
    for place, person in zip(random.below(blocks, len(persons)).tolist(), persons, strict=True):
        held[place].append(sorted(person, key=_row_key))
    whose = declaration.unit if declaration.unit not in inputs else None
    for block in held:
        block.sort(key=lambda person: [_row_key(row) for row in person])
        found: dict[str, list[Any]] = {
            name: [row[place] for person in block for row in person] for place, name in enumerate(inputs)
        }
        if whose is not None:
            found[whose] = [number for number, person in enumerate(block) for _ in person]
        yield found


def _readable(domain: Domain, codes: npt.NDArray[Any]) -> list[Any]:
    """Values as JSON holds them: dates as texts, None for NULL."""
    if codes.dtype.kind not in "iu":
        return [None if each is None else str(each) for each in codes.tolist()]
    known: dict[int, Any] = {}
    for code in np.unique(codes).tolist():
        value = None if code == domain.null_code else domain.decode(code)
        known[code] = value if value is None or isinstance(value, bool | int | float | str) else str(value)
    return [known[code] for code in codes.tolist()]


def _row_key(row: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value if value is not None else 0) for value in row)


def number_of(blocks: int | None, size: int | None) -> int:
    """How many blocks: as asked, or n^0.4 of the public number of rows, as GUPT has it."""
    if blocks is None and size is None:
        raise InvalidParameter(
            "blocks= is missing",
            why="the table declares no size=, from which their number would follow",
            instead="blocks=100: more blocks, less noise; fewer blocks, more rows in each",
        )
    found = blocks if blocks is not None else min(max(round(float(size or 0) ** 0.4), 20), _MOST)
    check_whole(found, "blocks", _FEWEST, _MOST, why=f"it is a whole number from {_FEWEST} to {_MOST}", instead="blocks=100")
    return found
