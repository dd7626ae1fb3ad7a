"""Methods that choose which tables to measure by looking at the rows, for a part of the spend: MST, AIM, MWEM and PrivBayes.

They run inside of the door as one method that is handed rows (`Door.run`): it is charged for all of the spend first, counts the
exact tables of all candidates once, and lets out what it chose and the noisy tables, nothing else. Between its rounds a mixture
is fitted to what has been measured so far, and that alone.

*MST* (McKenna, Miklau & Sheldon 2021): a third of the spend each on all tables of one column, on the choice of a tree of pairs
(each edge among those that join two parts of it, by how far the exact pair lies from the product of its columns), and on the
pairs of the tree. *AIM* (McKenna, Mullins, Sheldon & Miklau 2022): all tables of one column, then rounds, each of which chooses
the table on which the model is worst by more than fresh noise would be, and measures it; where a round changed the model by less
than its noise, the next ones are bought at four times the ρ, or twice the ε. *MWEM* (Hardt, Ligett & McSherry 2012): as many
rounds as there are columns, half of each for the choice of the table on which the model is worst, half for its counts; the
queries come in families, the cells of a table, and the mixture stands for its multiplicative weights. *PrivBayes* (Zhang,
Cormode, Procopiuc, Srivastava & Xiao 2017): 3/10 of the spend choose a network, column by column: a new one with one or two
parents among those before it, where the model is furthest from their table; the tables share the rest. With two parents, cells
have to hold four times the noise on average. The mutual information that the paper chooses by takes a public number of rows and
neighbours that replace a row; the score below needs neither. Both forgive the model one row a cell, which rounding may make.

Guarantee. Neighbours differ in one person: one row, or up to `max_rows` rows where the table names a unit; m is that number. The
spend is ε or ρ; of (ε, δ) either the ε, or the largest ρ that implies it (Canonne, Kamath & Steinke 2020, corollary 13),
whichever makes less noise by public facts.

*Choices.* A candidate table S with the public weight w_S, a whole number of at most w, has the score

    u_S = w_S · (Σ_cells |N_S − ⌊n̂·P_S⌉| − b_S),

N_S the exact counts, ⌊n̂·P_S⌉ the model's counts rounded to whole numbers, and b_S a whole number that the model is forgiven. The
model, n̂ and b_S are made from earlier releases and public facts alone, so they are the same constants for neighbours. A person
changes N_S by at most m in L1, so u_S by at most Δ = w·m. All u_S are whole numbers. Under ρ the exponential mechanism takes one
at rate ε₀/2Δ: its log-probabilities move within an interval of length ε₀, so it is ε₀²/8-zCDP (Cesar & Rogers 2021), and
ε₀ = √(8ρ₀) rounded down for a part ρ₀. Under ε it is permute-and-flip at that rate, which is ε₀-private (McKenna & Sheldon 2020).

*Tables.* A person changes N_S by at most m in L1 and in L2: discrete Laplace noise of scale m/ε₀, or discrete Gaussian noise of
variance m²/2ρ₀, as in `measuring.py`.

*Composition.* Each act takes its part of the spend before it happens, from a purse that refuses what is no longer there, so the
parts add to at most 1 in every run. Which candidates there are, how many rounds, and their parts follow from sizes, `about=` and
earlier releases: a filter, which is valid for ε (Rogers, Roth, Ullman & Vadhan 2016) and for ρ (Feldman & Zrnic 2021; Whitehouse,
Ramdas, Rogers & Wu 2023) at no further cost. The whole is ε-private, or ρ-zCDP.

All noise and all choices are drawn exactly, by the session's randomness; nothing is added to δ. The fit between rounds uses
floating-point arithmetic, but reads releases only: post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import combinations
from math import isqrt, pi, sqrt
from typing import Any, ClassVar

import numpy as np

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Exponential, PermuteAndFlip, Random
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP, zcdp_within
from cloister.privacy.plain import guarantee_to_plain
from cloister.session import Door, Measurer, Spending
from cloister.session.releases.uncertainty import Term
from cloister.session.workloads.marginals import Marginal, cells
from cloister.synth.measuring import Marginals, Noisy, Origin, combined
from cloister.synth.mixture import Follower, Mixture, independent
from cloister.synth.pieces import Integers
from cloister.synth.states import States, counted
from cloister.synth.workload import MOST_CELLS, About, Adaptive, asked_for, fewest
from cloister.tables import PrivateTable

_CHOICE = Fraction(1, 10)
"""What part of a round of AIM the choice takes."""
_ROUNDS_A_COLUMN = 16
_NETWORK = Fraction(3, 10)
"""What part of the spend the choices of PrivBayes take."""
_USEFUL = 4
"""How many times the noise of a cell its mean count must be in a table with two parents."""
_MOST_COLUMNS = 100
_ASKED = 4
"""How many times the weight of another pair one that is asked for has."""
_STEPS, _RATE = 25, 0.2


@dataclass(frozen=True, kw_only=True)
class Choosing:
    """The mechanism as a method that needs rows (`cloister.session.RowMethod`)."""

    stored: ClassVar[tuple[str, str]] = ("cloister.synth.choosing", "Choosing")

    states: tuple[States, ...]
    method: Adaptive
    about: About = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return tuple(each.name for each in self.states)

    def describe(self) -> dict[str, Any]:
        """For the plan's digest."""
        return {"method": self.method, "states": [each.starts.tolist() for each in self.states], "about": list(self.about)}

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """All that was given; of zCDP with δ the ρ alone."""
        self.purse(spend, declaration)
        return ZCDP(spend.rho) if isinstance(spend, ZCDP) and spend.delta else spend

    def margins(self, spend: Guarantee, declaration: PrivateTable) -> tuple[int, int | None]:
        """Margins of error to expect of a count of one column and of two, at 95 %, of the noise alone: of AIM those of its first
        rounds, since later ones have no more; of two columns none where no pair can be measured."""
        purse, number = self.purse(spend, declaration), len(self.states)
        edges = _edges(tuple(each.number for each in self.states))
        match self.method:
            case "mst":
                third = Fraction(1, 3)
                one, two = (third if edges else Fraction(1)) / number, third / max(edges, 1)
            case "privbayes":
                one = two = (1 - (_NETWORK if edges else Fraction(0))) / (number + edges)
            case _:
                choice, part = _rounds(number, aim=self.method == "aim")
                one = two = (1 - choice) * part
        return purse.noise(one).margin(), purse.noise(two).margin() if edges else None

    def release(
        self, rows: Mapping[str, Any], declaration: PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        """Count, choose, measure; let out what was measured, in its order."""
        placed = np.array([each.placed(np.asarray(rows[each.name])) for each in self.states])
        places = list(placed[:, (placed >= 0).all(axis=0)])  # all tables count the same rows (`measuring.py`)
        sizes = tuple(each.number for each in self.states)
        loop = Loop(sizes, lambda kept: counted(places, sizes, kept), self.purse(guarantee, declaration), random)
        _SCHEDULES[self.method](loop, self.about)
        return {
            "tables": [
                {"columns": kept, "part": str(part), "round": number, "counts": counts.ravel()}
                for kept, part, number, counts in loop.measured
            ],
            "complete": True,
        }

    def purse(self, guarantee: Guarantee, declaration: PrivateTable) -> Purse:
        """What the guarantee is worth."""
        return Purse.of(guarantee, declaration, Fraction(1, 3 * len(self.states)))


@dataclass(kw_only=True)
class Purse:
    """ε or ρ, how many rows of a person count, and what part of the spend is left."""

    pure: bool
    amount: Fraction
    rows: int
    left: Fraction = Fraction(1)

    @classmethod
    def of(cls, guarantee: Guarantee, declaration: PrivateTable, part: Fraction) -> Purse:
        """What a guarantee is worth for a table, where a usual act takes this part of it."""
        pure, amount = _worth(guarantee, part)
        if amount <= 0:
            raise InvalidParameter(f"spend={guarantee} is invalid", why="it is too little to measure anything", instead="spend=1")
        return cls(pure=pure, amount=amount, rows=(declaration.max_rows or 1) * declaration.abilities.parts_of_a_person)

    def take(self, part: Fraction) -> None:
        """Pays, or refuses: whatever a schedule does, no more is spent than there was."""
        if not 0 < part <= self.left:
            raise InvalidParameter(
                f"The part {part} of the spend is not left",
                why=f"{self.left} of it is left",
                instead="a schedule that ends before",
            )
        self.left -= part

    def noise(self, part: Fraction) -> DiscreteLaplace | DiscreteGaussian:
        """Of each cell of a table that is measured for this part."""
        if self.pure:
            return DiscreteLaplace(scale=self.rows / (part * self.amount), sensitivity=self.rows)
        square = Fraction(self.rows) ** 2
        return DiscreteGaussian(scale_squared=square / (2 * part * self.amount), sensitivity_squared=square)

    def choice(self, part: Fraction, weight: int) -> PermuteAndFlip | Exponential:
        """For this part, by scores of at most this weight."""
        if self.pure:
            return PermuteAndFlip(epsilon=part * self.amount, sensitivity=weight * self.rows)
        epsilon = Fraction(isqrt(int(8 * part * self.amount * 2**80)), 2**40)
        return Exponential(epsilon=epsilon, sensitivity=weight * self.rows)

    def typical(self, part: Fraction) -> float:
        """The mean size of the noise of a cell."""
        return float(self.rows / (part * self.amount)) if self.pure else sqrt(self.noise(part).variance * 2 / pi)


class Loop:
    """What is measured so far. Exact counts are held in here, and seen by two acts alone, both of which are paid first."""

    def __init__(self, sizes: tuple[int, ...], exact: Callable[[Marginal], Integers], purse: Purse, random: Random) -> None:
        self.sizes, self.purse = sizes, purse
        self._exact, self._random = lru_cache(maxsize=None)(exact), random
        self.measured: list[tuple[Marginal, Fraction, int, Integers]] = []

    def choose(self, model: Mixture, scores: Mapping[Marginal, tuple[int, int]], part: Fraction) -> Marginal:
        """One of the candidates, each with its weight and what it is forgiven."""
        self.purse.take(part)
        mechanism = self.purse.choice(part, max(weight for weight, _ in scores.values()))
        utilities: list[int] = []
        for kept, (weight, forgiven) in scores.items():
            told = np.rint(self.rows * model.marginal(kept)).astype(np.int64)
            utilities.append(weight * (int(np.abs(self._exact(kept) - told).sum()) - forgiven))
        return list(scores)[mechanism.release(utilities, random=self._random)]

    def measure(self, tables: Sequence[Marginal], part: Fraction) -> None:
        """Each of these for that part."""
        number = self.measured[-1][2] + 1 if self.measured else 0
        for kept in tables:
            self.purse.take(part)
            noisy = np.asarray(self.purse.noise(part).release(self._exact(kept), random=self._random))
            self.measured.append((kept, part, number, noisy))

    def found(self) -> Marginals:
        """The releases so far, as the fit reads them."""
        return read(self.sizes, self.measured, self.purse)

    @cached_property
    def rows(self) -> float:
        """The noisy number of rows, by the first round."""
        return min(max(self.found().rows()[0], 1.0), 2.0**53)


def _tree(loop: Loop, about: About) -> None:
    """MST's schedule."""
    every, third = range(len(loop.sizes)), Fraction(1, 3)
    pairs, edges = _pairs(loop.sizes), _edges(loop.sizes)
    loop.measure([(place,) for place in every], (third if edges else Fraction(1)) / len(every))
    model = independent(loop.found())
    tree: list[Marginal] = []
    for _ in range(edges):
        part_of = _parts(len(every), tree)
        open_: dict[Marginal, tuple[int, int]] = {(one, other): (1, 0) for one, other in pairs if part_of[one] != part_of[other]}
        tree.append(loop.choose(model, open_, third / edges))
    if tree:
        loop.measure(tree, third / edges)


def _network(loop: Loop, about: About) -> None:
    """PrivBayes' schedule."""
    every, purse = range(len(loop.sizes)), loop.purse
    edges = len(every) - len(set(_parts(len(every), _pairs(loop.sizes))))
    part = (1 - (_NETWORK if edges else Fraction(0))) / (len(every) + edges)
    loop.measure([(place,) for place in every], part)
    follower, inside = Follower(), list[int]()
    useful = min(loop.rows / (_USEFUL * purse.typical(part)), MOST_CELLS)
    while len(inside) < len(every):
        outside = [place for place in every if place not in inside]
        one, two = ([tuple(sorted((*some, place))) for place in outside for some in combinations(inside, of)] for of in (1, 2))
        open_ = [kept for kept in one if cells(loop.sizes, kept) <= MOST_CELLS]
        open_ += fewest(loop.sizes, [kept for kept in two if cells(loop.sizes, kept) <= useful])
        if not open_:  # nothing can be joined: another network begins
            inside.append(outside[0])
            continue
        scores = {kept: (1, cells(loop.sizes, kept)) for kept in open_}
        kept = loop.choose(follower.after(loop.found(), _STEPS, _RATE), scores, _NETWORK / edges)
        loop.measure([kept], part)
        inside += [place for place in kept if place in outside]


def _worst_first(loop: Loop, about: About, *, aim: bool = True) -> None:
    """AIM's schedule; or MWEM's, which has fewer rounds, all alike, and no table twice: one that the model can't fit stays the
    worst."""
    every, purse = range(len(loop.sizes)), loop.purse
    choice, part = _rounds(len(every), aim=aim)
    weights: dict[Marginal, int] = {(place,): 1 for place in every}
    weights |= dict.fromkeys(_pairs(loop.sizes), 2)
    weights |= dict.fromkeys(asked_for(loop.sizes, about), 2 * _ASKED)
    loop.measure([(place,) for place in every], (1 - choice) * part)
    follower, left = Follower(), dict(weights)
    model = follower.after(loop.found(), _STEPS, _RATE)
    while purse.left > 0:
        if purse.left < 2 * part:
            part = purse.left
        noise = purse.typical((1 - choice) * part) if aim else 1.0
        scores = {kept: (weight, round(noise * cells(loop.sizes, kept))) for kept, weight in left.items()}
        kept = loop.choose(model, scores, choice * part)
        loop.measure([kept], (1 - choice) * part)
        if not aim:
            del left[kept]
            left = left or dict(weights)
        before, model = model, follower.after(loop.found(), _STEPS, _RATE)
        if aim and np.abs(model.marginal(kept) - before.marginal(kept)).sum() * loop.rows <= scores[kept][1]:
            part *= 2 if purse.pure else 4


def _rounds(columns: int, *, aim: bool) -> tuple[Fraction, Fraction]:
    """What part of a round the choice takes, and what part of the spend a round takes at first."""
    return (_CHOICE, Fraction(1, _ROUNDS_A_COLUMN * columns)) if aim else (Fraction(1, 2), Fraction(2, 3 * columns))


_SCHEDULES: Mapping[Adaptive, Callable[[Loop, About], None]] = {
    "mst": _tree,
    "aim": _worst_first,
    "mwem": partial(_worst_first, aim=False),
    "privbayes": _network,
}


def _pairs(sizes: Sequence[int]) -> list[Marginal]:
    """The pairs of columns whose table is small enough to be measured."""
    return [pair for pair in combinations(range(len(sizes)), 2) if cells(sizes, pair) <= MOST_CELLS]


def _edges(sizes: Sequence[int]) -> int:
    """How many pairs a tree of them has."""
    return len(sizes) - len(set(_parts(len(sizes), _pairs(sizes))))


def _parts(number: int, edges: Sequence[Marginal]) -> list[int]:
    """For each column the least of those that these pairs join it to.

    >>> _parts(4, [(1, 3), (0, 1)])
    [0, 0, 2, 0]
    """
    of = list(range(number))
    for one, other in edges:
        low, high = sorted((of[one], of[other]))
        of = [low if each == high else each for each in of]
    return of


def check_choosing(declaration: PrivateTable, table: str, states: Sequence[States], method: Adaptive) -> None:
    """Refuse, before anything is charged, an engine that counts nothing exactly, and more columns than are looked at."""
    if declaration.abilities.additive_noise_only or not declaration.abilities.rows:
        raise UnsupportedQuery(
            f"The method {method!r} is not supported",
            why=f"it chooses tables by exact counts, and the engine of {table!r} gives sums with noise alone",
            instead='method="pairs"',
        )
    if len(states) > _MOST_COLUMNS:
        raise UnsupportedQuery(
            f"The method {method!r} is not supported for {len(states)} columns",
            why=f"each round looks at all pairs of them, and at most {_MOST_COLUMNS} columns are looked at",
            instead='method="pairs"',
        )


def choose(
    session: Measurer, table: str, states: Sequence[States], method: Adaptive, spend: Spending, *, about: About = (), purpose: str
) -> tuple[Marginals, Origin]:
    """Choose tables and measure them under one charge; what the same person has bought before is given again at no cost."""
    mechanism, declaration = Choosing(states=tuple(states), method=method, about=about), session.declared(table)
    assert isinstance(declaration, PrivateTable)
    check_choosing(declaration, table, states, method)
    if isinstance(session, Door):
        cost = guarantee_to_plain(session.explain_run(mechanism, table, spend).cost)
        outcome = session.run(mechanism, table, spend, purpose=purpose, once=f"synthetic table for {cost}")
    else:
        outcome = session.run(mechanism, table, spend, purpose=purpose)
    sizes = tuple(each.number for each in states)
    told = [
        (tuple(each["columns"]), Fraction(each["part"]), int(each["round"]), np.array(each["counts"]))
        for each in outcome.values["tables"]
    ]
    origin = {"cost": outcome.cost, "charges": (outcome.charge,), "marked": outcome.marked}
    found = read(sizes, told, mechanism.purse(outcome.cost, declaration))
    found = replace(found, complete=bool(outcome.values.get("complete")))  # what was kept of before is not
    return found, {"population": session.population_of(table)[0], **origin}


def read(sizes: tuple[int, ...], told: Sequence[tuple[Marginal, Fraction, int, Integers]], purse: Purse) -> Marginals:
    """Measured tables with their noise."""
    rounds = []
    for kept, part, number, counts in told:
        law = Term(1.0, purse.noise(part))
        table = counts.reshape([sizes[place] for place in kept]).astype(np.float64)
        noisy = Noisy(table, law.variance, purse.pure, fourth=law.fourth, largest=law.largest, round=number)
        rounds.append((kept, noisy))
    return Marginals(sizes=sizes, tables=combined(rounds), rounds=tuple(rounds))


@lru_cache(maxsize=64)
def _worth(guarantee: Guarantee, part: Fraction) -> tuple[bool, Fraction]:
    """Whether it is paid in ε, and how much: else it is paid in ρ. Of (ε, δ) whichever gives the smaller variance."""
    match guarantee:
        case PureDP() | ApproxDP(delta=0):
            return True, guarantee.epsilon
        case ApproxDP():
            rho = zcdp_within(epsilon=guarantee.epsilon, delta=guarantee.delta).rho
            pure = 4 * rho <= guarantee.epsilon**2 * part
            return pure, guarantee.epsilon if pure else rho
        case ZCDP():
            return False, guarantee.rho
    raise InvalidParameter(f"{guarantee!r} is invalid", why="tables are chosen under ε, ρ, or ε with δ", instead="cl.PureDP(1)")
