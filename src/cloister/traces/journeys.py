"""Synthetic journeys: a few noisy counts of how people move on a public grid, and journeys drawn from them.

The rows of a unit of the table, in the order of time, are one journey. On a grid of square cells over the declared bounds it is
a walk: from the cell of one row to that of the next along the straight line, a king's move at a time. *Measured*, with a share of
the spend each:

- *trips*: where journeys begin and end, by blocks of cells (zones): one count a journey; besides, in which cell they begin
  and in which cell they end;
- *moves*: from each cell to each of the eight around it; a journey of L moves counts ⌊W/L⌋ of W for each of them;
- *detours*: how many moves a journey has beyond the fewest between its ends, in public bins: of journeys that end in the cell
  where they began, and of the others.

*Drawn*: the ends of a journey, its detour, and a walk of as many moves as these ask for, by the noisy moves, given that it ends
where it must: the next cell has a probability proportional to that of the move times that of being led to the end from there
(Gursoy, Liu, Truex, Yu & Wei 2018, AdaTrace, choose it in the same way). All of this is post-processing.

Guarantee: the spend, for one unit of the table added or removed. Theorem: discrete Laplace noise on whole numbers (Ghosh,
Roughgarden & Sundararajan 2009) or discrete Gaussian noise (Canonne, Kamath & Steinke 2020), and basic composition. Proof: the
bounds, the grid and the bins are declared. No two units share a text, so a unit's rows are one journey and touch no other: rows
are put in an order that follows from their values, whatever order the engine reads them in, and which of them are left out as
outside or too fast follows from that unit's own. A journey adds 1 to one count of
zones, of beginnings, of ends and of detours each, and to the moves numbers whose sum is at most L·⌊W/L⌋ ≤ W; a journey without a
complete row adds nothing. So the vectors move by at most 1, 1, 1, 1 and W in L1, and in L2 by no more. Each gets its share of ε
(or ρ) for that; shares add up to the spend. ∎
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, MissingBound
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random, default_random
from cloister.printable import margin_text
from cloister.privacy import ZCDP, ApproxDP, Exact, Guarantee, PureDP, text_of, zcdp_within
from cloister.session import Frame, Measurer, Series, Spending
from cloister.tables import Date, Domain, Integer, Moment, Place, PrivateTable, Real, Text
from cloister.tables.declaring.regions import PARTS
from cloister.traces.cleaning import pace_of, slow_enough
from cloister.traces.stays import in_space

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Outside: TypeAlias = Literal["drop", "edge"]

_WHOLE = 4096
"""W: what the moves of one journey count together."""
_SHARES = {
    "zones": Fraction(1, 4),
    "begins": Fraction(1, 8),
    "ends": Fraction(1, 8),
    "moves": Fraction(3, 8),
    "detours": Fraction(1, 8),
}
_DETOURS = np.array([0, 1, 2, 3, 5, 9, 17, 33, 65, 129, 257])
"""Where bins of detours begin; the last is one that no longer detour is drawn than."""
_BINS = len(_DETOURS) - 1
_AROUND = np.array([(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)])
_DIRECTION = np.array([0, 1, 2, 3, -1, 4, 5, 6, 7])
"""Of (dx + 1) + 3·(dy + 1): which of `_AROUND` a move is."""
_ANYWHERE = 0.01
"""The share of moves that go anywhere, so that every end can be reached."""
_MOST_CELLS, _MOST_JOURNEYS, _MOST_VALUES = 32, 500_000, 2**50
FARTHEST = 10.0**12
"""Of places and moments that are worked with as floats."""


@dataclass(frozen=True, kw_only=True)
class JourneyMethod:
    """What methods that count journeys share (`cloister.session.RowMethod`): vectors of whole numbers, each with its share of the
    spend and what one journey adds to it at most, in L1 and so in L2.
    """

    shares: ClassVar[Mapping[str, Fraction]]

    journey: str
    moment: str
    x: str
    y: str

    @property
    def reach(self) -> Mapping[str, int]:
        """How much a journey adds at most; 1 to those that are not named."""
        return {}

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return (self.journey, self.moment, self.x, self.y)

    def counted(self, rows: Mapping[str, Any], declaration: PrivateTable) -> dict[str, Integers]:
        """The exact numbers, before noise: private."""
        raise NotImplementedError

    def laws(self, guarantee: Guarantee) -> dict[str, DiscreteLaplace | DiscreteGaussian]:
        """The noise of each kind of number."""
        if isinstance(guarantee, ApproxDP):
            epsilon, delta = guarantee.epsilon, guarantee.delta
            guarantee = zcdp_within(epsilon=epsilon, delta=delta) if delta else PureDP(epsilon)
        if not isinstance(guarantee, PureDP | ZCDP) or (isinstance(guarantee, ZCDP) and guarantee.delta):
            raise InvalidParameter(
                f"{guarantee!r} is invalid", why="journeys are measured under ε, ρ, or ε with δ", instead="spend=1"
            )
        reach = {name: self.reach.get(name, 1) for name in self.shares}
        if isinstance(guarantee, PureDP):
            return {
                name: DiscreteLaplace.for_epsilon(share * guarantee.epsilon, sensitivity=reach[name])
                for name, share in self.shares.items()
            }
        return {
            name: DiscreteGaussian.for_rho(share * guarantee.rho, sensitivity_squared=reach[name] ** 2)
            for name, share in self.shares.items()
        }

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """All that was given, if it can be shared and its noise is below some 2⁴⁰; but for a δ that would buy nothing."""
        if isinstance(spend, ApproxDP) and spend.delta:
            plain = ApproxDP(spend.epsilon, 0)
            spend = plain if self._noise(plain) <= self._noise(spend) else spend
        if max(law.variance for law in self.laws(spend).values()) > 2.0**80:
            raise InvalidParameter("spend is invalid", why="so little of it leaves nothing but noise", instead="spend=1")
        return spend

    def _noise(self, spend: Guarantee) -> float:
        """The variance of all kinds, each counted in what a journey adds."""
        return sum(law.variance / self.reach.get(name, 1) ** 2 for name, law in self.laws(spend).items())

    def release(
        self, rows: Mapping[str, Any], declaration: PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        """Count within the rows, and let out noisy numbers alone."""
        exact = self.counted(rows, declaration)
        return {name: np.asarray(law.release(exact[name], random=random)) for name, law in self.laws(guarantee).items()}

    def ordered(self, rows: Mapping[str, Any], declaration: PrivateTable) -> tuple[Integers, Integers, Integers, Integers]:
        """Whose each complete row is, and the codes of its moment and its place: journey by journey in the order of time."""
        x, y = (np.asarray(rows[name], dtype=np.int64) for name in (self.x, self.y))
        there = (x != declaration.column(self.x).null_code) & (y != declaration.column(self.y).null_code)
        return self.in_order(rows, declaration, x, y, there)

    def in_order(
        self, rows: Mapping[str, Any], declaration: PrivateTable, x: Integers, y: Integers, there: npt.NDArray[np.bool_]
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """The same of places that were read, where there is one: whatever order the rows were read in."""
        names, moments = np.asarray(rows[self.journey]), np.asarray(rows[self.moment], dtype=np.int64)
        said = there & np.array([each is not None for each in names], dtype=bool)
        said &= moments != declaration.column(self.moment).null_code
        known: dict[str, int] = {}  # not by numpy's texts, of which two that end in different zero bytes are one
        owner = np.array([known.setdefault(each, len(known)) for each in names[said].tolist()], dtype=np.int64)
        order = np.lexsort((y[said], x[said], moments[said], owner))
        return owner[order], moments[said][order], x[said][order], y[said][order]

    @staticmethod
    def numbers(name: str, codes: Integers, declaration: PrivateTable) -> Floats:
        """What the codes of a column stand for."""
        domain = declaration.column(name)
        known, which = np.unique(codes, return_inverse=True)
        return np.array([float(domain.decode(code)) for code in known.tolist()], dtype=np.float64)[which.reshape(-1)]


@dataclass(frozen=True, kw_only=True)
class TripMethod(JourneyMethod):
    """A method that counts in which zones, and in which of some places, journeys begin and end."""

    zones: int
    place: str = ""
    """A column of places; empty where `x` and `y` are columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return (self.journey, self.moment, self.place) if self.place else super().columns

    def sizes(self) -> dict[str, int]:
        """How many numbers are released of each kind; `zones`, `begins` and `ends` are among them."""
        raise NotImplementedError

    @staticmethod
    def ends_of(owner: Integers) -> tuple[Integers, Integers]:
        """The first and the last row of each journey, whose rows stand together."""
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        return first, np.append(first[1:], len(owner)) - 1 if len(first) else first


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ReleasedTrips:
    """What was released of trips, with its noise."""

    method: TripMethod
    released: Mapping[str, Integers]
    """The noisy numbers as they left, by the kinds of `method.sizes()`."""
    cost: Guarantee
    marked: bool = False

    @cached_property
    def noise(self) -> dict[str, DiscreteLaplace | DiscreteGaussian]:
        """The law of the noise of each kind of number."""
        return self.method.laws(self.cost)

    def margin(self, confidence: Exact = "0.95") -> float:
        """The half-width of the interval of one count of trips between two zones, in `trips()`."""
        return float(self.noise["zones"].margin(confidence))

    def trips(self) -> Integers:
        """The noisy number of journeys from each zone (a row) to each, as it left; zones count from the lower left, in rows."""
        zones = self.method.zones**2
        return self.released["zones"].reshape(zones, zones)

    @property
    def journeys(self) -> float:
        """How many there are: the sum of the noisy counts with the least noise in it."""
        sizes = self.method.sizes()
        least = min((name for name in sizes if name != "moves"), key=lambda name: sizes[name] * self.noise[name].variance)
        return max(float(self.released[least].sum()), 0.0)

    def to_json(self) -> str:
        """The model as JSON, which `journeys_from_json` reads: plain numbers and texts, nothing that runs."""
        from cloister.traces.saved_journeys import journeys_to_json

        return journeys_to_json(self)


@dataclass(frozen=True, kw_only=True)
class JourneyCounts(TripMethod):
    """What is measured of journeys on a grid. See above for its proof."""

    stored: ClassVar[tuple[str, str]] = ("cloister.traces.journeys", "JourneyCounts")
    shares: ClassVar[Mapping[str, Fraction]] = _SHARES

    cells: int
    outside: Outside = "drop"
    fastest: Fraction | None = None

    @property
    def reach(self) -> Mapping[str, int]:
        """All moves of a journey count W together."""
        return {"moves": _WHOLE}

    def describe(self) -> dict[str, Any]:
        """For the plan's digest."""
        rules = [self.outside, None if self.fastest is None else text_of(self.fastest)]
        return {"columns": list(self.columns), "cells": self.cells, "zones": self.zones, "rules": rules, "format": 3}

    def sizes(self) -> dict[str, int]:
        """How many numbers are released of each kind."""
        cells = self.cells**2
        return {"zones": self.zones**4, "begins": cells, "ends": cells, "moves": 8 * cells, "detours": 2 * _BINS}

    def counted(self, rows: Mapping[str, Any], declaration: PrivateTable) -> dict[str, Integers]:
        """The exact numbers, before noise: private."""
        owner, moments, across, up = self.in_order(rows, declaration, *self._places(rows, declaration))
        if self.fastest is not None:
            clock = moments.astype(np.float64) * _unit_of(declaration.column(self.moment))
            space, ball = self._in_units(across, up, declaration)
            stays = slow_enough(owner, clock, space, float(self.fastest), ball=ball)
            owner, across, up = owner[stays], across[stays], up[stays]
        (wide, _), (high, _) = self._axes(declaration)
        return self._walks(owner, across * self.cells // wide, up * self.cells // high)

    def _places(self, rows: Mapping[str, Any], declaration: PrivateTable) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
        """How far along each axis, from 0 on, and whether there is a place that counts."""
        if self.place:
            return lattice_of(rows, declaration, self.place)
        found, there = [], np.True_
        for name in (self.x, self.y):
            domain, codes = declaration.column(name), np.asarray(rows[name], dtype=np.int64)
            there = there & (codes != domain.null_code)
            if self.outside == "drop":
                there = there & (codes > domain.low_code) & (codes < domain.high_code)
            found.append(codes - domain.low_code)
        return found[0], found[1], np.asarray(there)

    def _axes(self, declaration: PrivateTable) -> tuple[tuple[int, float], tuple[int, float]]:
        """How many values there are along each axis, and how far apart they lie."""
        if self.place:
            place = declaration.column(self.place)
            assert isinstance(place, Place)
            return (place.columns, 1 / PARTS), (place.rows, 1 / PARTS)
        x, y = (declaration.column(name) for name in (self.x, self.y))
        return (x.high_code - x.low_code + 1, _unit_of(x)), (y.high_code - y.low_code + 1, _unit_of(y))

    def _in_units(self, across: Integers, up: Integers, declaration: PrivateTable) -> tuple[Floats, bool]:
        """Places as distances are measured: metres on the earth, or the plane's own units."""
        if self.place:
            place = declaration.column(self.place)
            assert isinstance(place, Place)
            return in_space(np.stack([place.south + up, place.west + across], axis=1) / PARTS), True
        (_, wide), (_, high) = self._axes(declaration)
        return np.stack([across * wide, up * high], axis=1), False

    def _walks(self, owner: Integers, across: Integers, up: Integers) -> dict[str, Integers]:
        """Counts of walks, whose stops are given in order, those of one journey together."""
        side, sizes = self.cells, self.sizes()
        first, last = self.ends_of(owner)
        begins, ends = (across[stop] + side * up[stop] for stop in (first, last))
        walker, start, move = moves_between(owner, across, up)
        cell = start.T @ np.array([1, side])
        moves = np.bincount(walker, minlength=len(first))
        counted = np.zeros(sizes["moves"], dtype=np.int64)
        np.add.at(counted, cell * 8 + _DIRECTION[(move[0] + 1) + 3 * (move[1] + 1)], _WHOLE // moves[walker])
        detour = moves - np.maximum(np.abs(across[last] - across[first]), np.abs(up[last] - up[first]))
        bins = np.minimum(np.searchsorted(_DETOURS, detour, side="right") - 1, _BINS - 1) + _BINS * (begins != ends)
        trips = zone_of(begins, side, self.zones) * self.zones**2 + zone_of(ends, side, self.zones)
        found = {"zones": trips, "begins": begins, "ends": ends, "detours": bins}
        return {**{name: np.bincount(values, minlength=sizes[name]) for name, values in found.items()}, "moves": counted}


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Journeys(ReleasedTrips):
    """What `fit_journeys` gives: noisy counts, and journeys drawn from them at no cost."""

    method: JourneyCounts
    domains: tuple[Domain, Domain]

    @cached_property
    def detours(self) -> Floats:
        """How many journeys there are in each bin of detours: of those that come back to their first cell, and of the others. One
        row, where an older version measured them together."""
        return above_zero(self.released["detours"], max(self.journeys, 1.0)).reshape(-1, _BINS)

    @cached_property
    def ends(self) -> Floats:
        """The probability of each pair of cells to begin and to end in."""
        side, zones = self.method.cells, self.method.zones
        trips = above_zero(self.trips().ravel(), self.journeys).reshape(zones**2, zones**2)
        zone = zone_of(np.arange(side**2), side, zones)
        within = []
        for name in ("begins", "ends"):
            cells = above_zero(self.released[name], self.journeys)
            inside = np.bincount(zone, cells, zones**2)[zone]
            share = np.bincount(zone, minlength=zones**2)[zone]
            within.append(np.where(inside > 0, cells / np.where(inside > 0, inside, 1), 1 / share))
        found = within[0][:, None] * trips[np.ix_(zone, zone)] * within[1][None, :]
        if len(self.detours) > 1:
            found = self._closed(found, np.sqrt(within[0] * within[1]), trips.diagonal(), zone)
        total = found.sum()
        return np.asarray(found / total if total > 0 else np.full_like(found, 1 / found.size))

    def _closed(self, found: Floats, cells: Floats, stay: Floats, zone: Integers) -> Floats:
        """The same with as many that end where they began as were measured: where nothing else can be all of what begins and ends
        in a zone, and of the others' an equal share; `cells` says in which of its cells these are."""
        same = zone[:, None] == zone
        apart = np.where(same & ~np.eye(len(zone), dtype=bool), found, 0.0)
        left, home = (np.bincount(zone, each, len(stay)) for each in (apart.sum(axis=1), cells))
        forced, free = (float(stay[(home > 0) & which].sum()) for which in (left <= 0, left > 0))
        share = min(max(float(self.detours[0].sum()) - forced, 0.0) / max(free, 1e-300), 1.0)
        share_of = np.where(home > 0, np.where(left > 0, share, 1.0), 0.0)
        again = (stay * share_of / np.where(home > 0, home, 1))[zone] * cells
        rest = (stay * (1 - share_of) / np.where(left > 0, left, 1))[zone][:, None] * apart
        return np.where(same, rest + np.diag(again), found)

    @cached_property
    def moves(self) -> Floats:
        """The probability of each of the eight moves from each cell; 0 where it would leave the grid."""
        side = self.method.cells
        inside = neighbours(side) >= 0
        noisy = self.released["moves"].reshape(side**2, 8) / _WHOLE
        kept = np.zeros_like(noisy)
        kept[inside] = above_zero(noisy[inside], min(max(float(noisy[inside].sum()), 0.0), self.journeys))
        kept += inside * (_ANYWHERE * max(kept.sum(), 1.0) / max(inside.sum(), 1))
        return np.asarray(kept / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300))

    def sample(self, n: int | None = None, *, random: Random | None = None) -> Frame:
        """So many journeys, a row for each cell that they pass: the number of the journey, its step, and a place within the
        cell. None: as many as there are, by the noisy counts. Steps have no time, and places within a cell are uniform.
        """
        random = default_random() if random is None else random
        wanted = journeys_wanted(n, self.journeys)
        pairs = drawn(self.ends.ravel(), wanted, random)
        begins, ends = pairs // self.method.cells**2, pairs % self.method.cells**2
        bins = np.zeros(wanted, dtype=np.int64)
        for row, weights in enumerate(self.detours):
            mine = np.flatnonzero((begins != ends) == bool(row)) if len(self.detours) > 1 else np.arange(wanted)
            bins[mine] = drawn(weights, len(mine), random) if weights.any() else 0
        detours = _DETOURS[bins] + (random.uniform(len(bins)) * (_DETOURS[bins + 1] - _DETOURS[bins])).astype(np.int64)
        walker, step, cell = self._walked(begins, ends, detours, random)
        side, columns = self.method.cells, {}
        for name, domain, place in zip((self.method.x, self.method.y), self.domains, (cell % side, cell // side), strict=True):
            width = domain.high_code - domain.low_code + 1
            low, high = (-(-(place + later) * width // side) for later in (0, 1))
            codes = low + (random.uniform(len(place)) * (high - low)).astype(np.int64)
            known, which = np.unique(codes + domain.low_code, return_inverse=True)
            values = np.array([domain.decode(code) for code in known.tolist()])
            columns[name] = Series("integer" if isinstance(domain, Integer) else "real", values[which] if len(known) else codes)
        return Frame({"journey": Series("integer", walker), "step": Series("integer", step), **columns})

    def _walked(self, begins: Integers, ends: Integers, detours: Integers, random: Random) -> tuple[Integers, Integers, Integers]:
        """Each walk as its cells, in order."""
        side, around = self.method.cells, neighbours(self.method.cells)
        apart = np.maximum(np.abs(begins % side - ends % side), np.abs(begins // side - ends // side))
        left = apart + detours
        left[(left == 1) & (apart == 0)] = 0  # nobody leaves a cell and is back after one move
        left *= side > 1
        walkers, steps, cells = [np.arange(len(begins))], [np.zeros(len(begins), dtype=np.int64)], [begins]
        for end in np.unique(ends[left > 0]).tolist():
            who = np.flatnonzero((ends == end) & (left > 0))
            now, todo = begins[who], left[who]
            led = self._led(end, int(todo.max()))
            for step in range(1, len(led)):
                going = todo >= step
                who, now, todo = who[going], now[going], todo[going]
                chances = self.moves[now] * np.where(around[now] >= 0, led[(todo - step)[:, None], around[now]], 0.0)
                sums = chances.cumsum(axis=1)
                chosen = (sums <= (random.uniform(len(now)) * sums[:, -1])[:, None]).sum(axis=1)
                now = around[now, np.minimum(chosen, 7)]
                walkers.append(who)
                steps.append(np.full(len(who), step))
                cells.append(now)
        walker, step_of, cell = np.concatenate(walkers), np.concatenate(steps), np.concatenate(cells)
        order = np.lexsort((step_of, walker))
        return walker[order], step_of[order], cell[order]

    def _led(self, end: int, most: int) -> Floats:
        """For each number of moves up to `most`, and each cell: how probable it is to be at the end after them; to a factor."""
        around = neighbours(self.method.cells)
        found = np.zeros((most + 1, self.method.cells**2))
        found[0, end] = 1.0
        for moves in range(1, most + 1):
            found[moves] = (self.moves * np.where(around >= 0, found[moves - 1][around], 0.0)).sum(axis=1)
            found[moves] /= found[moves].max()
        return found

    def __repr__(self) -> str:
        return (
            f"journeys on {self.method.cells} × {self.method.cells} cells: about {self.journeys:z,.0f} of them, "
            f"trips between {self.method.zones**2} zones ± {margin_text(self.margin())}\n"
            f"  cost: {self.cost}; journeys drawn from it cost nothing more"
            + ("\n  MARKED: the noise came from a test's generator and protects nobody" if self.marked else "")
        )


def fit_journeys(
    session: Measurer,
    table: str,
    *,
    spend: Spending,
    moment: str = "moment",
    x: str = "x",
    y: str = "y",
    place: str = "",
    cells: int = 12,
    zones: int = 4,
    outside: Outside = "drop",
    fastest: Exact | None = None,
    purpose: str = "synthetic journeys",
) -> Journeys:
    """Noisy counts of the journeys of a table, for one charge, and a model to draw others from.

    A unit's rows are one journey: where people are the units, all that is known of a person is. Rows beyond `max_rows` of a
    unit do not count, nor do rows without a moment or a place, rows outside, or rows that nobody could have come to. How many
    these are is private; the owner counts them with `clean_points`.

    Parameters
    ----------
    moment, x, y
        Columns with declared bounds. `x` and `y` are metres of a plane, or any numbers: cells are squares of their bounds.
    place
        Instead of `x` and `y`, a column of `cl.Place`. 0/0 and what lies outside its box are no places.
    outside
        What becomes of a row whose `x` or `y` lies on a declared bound, which is where all that lies beyond was put: "drop", or
        "edge", which counts it there. Declare bounds a little wider than the area.
    fastest
        The greatest speed, in units of `x` and `y` for one of the moment: of a place metres, of `cl.Moment` a second, of
        `cl.Date` a day. Of each journey the longest run stays that keeps to it (`cleaning.py`).
    cells, zones
        Along a side. `zones` divides `cells`. With few journeys take few: the noise of a count is the same whatever it counts.

    >>> import cloister as cl
    >>> rows = {"who": [str(n // 3) for n in range(900)], "moment": [0, 1, 2] * 300, "x": [10, 50, 90] * 300, "y": [5] * 900}
    >>> columns = {"who": cl.Text(), "moment": cl.Integer(0, 9), "x": cl.Integer(0, 99), "y": cl.Integer(0, 99)}
    >>> people = cl.PrivateTable(rows, columns, unit="who", max_rows=3)
    >>> with cl.Session({"people": people}, budget=cl.PureDP(5), random=Random.deterministic(1)) as session:
    ...     model = fit_journeys(session, "people", spend=5, cells=4, zones=2)
    ...     print(session.spent)
    ε = 5
    >>> model.sample(10).column_names, abs(model.journeys - 300) < 40, isinstance(model, Journeys), model.trips().shape
    (['journey', 'step', 'x', 'y'], True, True, (4, 4))
    """
    method, places = journey_counts(
        session, table, moment=moment, x=x, y=y, place=place, cells=cells, zones=zones, outside=outside, fastest=fastest
    )
    outcome = session.run(method, table, spend, purpose=purpose)
    released = {name: np.array(outcome.values[name], dtype=np.int64) for name in method.sizes()}
    return Journeys(method=method, domains=places, released=released, cost=outcome.cost, marked=outcome.marked)


def journey_counts(
    session: Measurer,
    table: str,
    *,
    moment: str = "moment",
    x: str = "x",
    y: str = "y",
    place: str = "",
    cells: int = 12,
    zones: int = 4,
    outside: Outside = "drop",
    fastest: Exact | None = None,
) -> tuple[JourneyCounts, tuple[Domain, Domain]]:
    """What `fit_journeys` measures, and the columns of places that are drawn: from declarations alone."""
    if outside not in ("drop", "edge"):
        raise InvalidParameter("outside is invalid", why="it is drop or edge", instead='outside="drop"')
    declared = declared_journeys(session, table, moment=moment, x=x, y=y, place=place)
    for name, value, most in (("cells", cells, _MOST_CELLS), ("zones", zones, cells)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most or cells % value:
            raise InvalidParameter(
                f"{name}={value!r} is invalid",
                why=f"there are up to {_MOST_CELLS} cells along a side, and zones divide them",
                instead="cells=12, zones=4",
            )
    pace = None if fastest is None else pace_of(fastest)
    box = box_of(declared, place, cells) if place else None
    for name in (x, y) if box is None else ():
        domain = declared.column(name)
        if not cells <= domain.high_code - domain.low_code + 1 <= _MOST_VALUES:
            raise InvalidParameter(
                f"The column {name!r} is invalid",
                why="it has fewer values than there are cells, or more than 2⁵⁰",
                instead="fewer cells, or a coarser step",
            )
    if box is not None:
        x, y = box.longitude, box.latitude
    drawn = ("journey", "step", x.casefold(), y.casefold())
    for name in (x, y):
        if drawn.count(name.casefold()) > 1:
            raise InvalidParameter(
                f"The column {name!r} is invalid",
                why="drawn journeys have columns called journey and step, and two others with names of their own",
                instead='another name in the table, such as "x"',
            )
    method = JourneyCounts(
        journey=str(declared.unit), moment=moment, x=x, y=y, cells=cells, zones=zones, place=place, outside=outside, fastest=pace
    )
    return method, ((declared.column(x), declared.column(y)) if box is None else _degrees_of(box))


def lattice_of(rows: Mapping[str, Any], declaration: PrivateTable, name: str) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
    """Of a column of places: how many points east and north of its corner each row is, and whether it is within the box."""
    place = declaration.column(name)
    assert isinstance(place, Place)
    codes = np.asarray(rows[name], dtype=np.int64)
    return codes // place.rows, codes % place.rows, (codes != place.null_code) & (codes != place.outside)


def declared_journeys(session: Measurer, table: str, *, moment: str, x: str, y: str, place: str = "") -> PrivateTable:
    """The declaration of a table whose units are journeys: refused where a unit or bounds are missing."""
    declared = session.declared(table)
    if not isinstance(declared, PrivateTable):
        raise InvalidParameter(f"{table!r} is invalid", why="it is a public table: nothing needs hiding", instead="its own rows")
    if declared.unit is None or not isinstance(declared.columns.get(declared.unit), Text):
        raise MissingBound(
            f"Journeys of {table!r} were refused",
            why="a journey is the rows of one unit, and the table declares no unit that is a column of text",
            instead='cl.PrivateTable(…, columns={"who": cl.Text(), …}, unit="who", max_rows=500)',
        )
    for name in (moment,) if place else (moment, x, y):
        domain = declared.column(name)
        if not isinstance(domain, Integer | Real) and not (name == moment and isinstance(domain, Date | Moment)):
            raise MissingBound(
                f"The column {name!r} needs bounds",
                why="places and moments lie in a declared range",
                instead=f'columns={{"{name}": cl.Real(0, 5000)}}',
            )
    if len({declared.unit, moment, x, y}) < 4:
        raise InvalidParameter("The columns are invalid", why="one is named twice", instead='moment="moment", x="x", y="y"')
    return declared


def check_floats(declared: PrivateTable, columns: tuple[str, ...]) -> None:
    """Refuses columns of which floats could not tell the ends apart, or whose squares could overflow: then rows would decide
    whether a method fails, and that it failed is seen."""
    for name in columns:
        domain = declared.column(name)
        low, high = (float(domain.decode(code)) for code in (domain.low_code, domain.high_code))
        if not low < high or max(abs(low), abs(high)) > FARTHEST:
            raise InvalidParameter(
                f"The column {name!r} is invalid",
                why="its bounds are one number, or lie beyond 10¹²",
                instead=f'columns={{"{name}": cl.Real(0, 5000)}}',
            )


def journeys_wanted(n: Any, known: float) -> int:
    """How many journeys to draw: `n`, or as many as are known of.

    >>> journeys_wanted(None, 7.6), journeys_wanted(3, 7.6)
    (8, 3)
    """
    wanted = round(known) if n is None else n
    if isinstance(wanted, bool) or not isinstance(wanted, int | np.integer) or not 0 <= wanted <= _MOST_JOURNEYS:
        raise InvalidParameter(
            f"n={n!r} is invalid", why=f"it is a number of journeys up to {_MOST_JOURNEYS:,}", instead="model.sample(1000)"
        )
    return int(wanted)


def moves_between(owner: Integers, across: Integers, up: Integers) -> tuple[Integers, Integers, Integers]:
    """Every king's move of walks along straight lines from stop to stop, in order: whose it is, from which cell (two rows), and
    by how much it changes either coordinate (two rows). Stops are given in order, those of one journey together.

    >>> owner, start, move = moves_between(np.array([0, 0]), np.array([0, 2]), np.array([0, 1]))
    >>> owner.tolist(), start.tolist(), move.tolist()
    ([0, 0], [[0, 1], [0, 1]], [[1, 1], [1, 0]])
    """
    same = owner[1:] == owner[:-1]
    walker, start = owner[1:][same], np.stack([across[:-1][same], up[:-1][same]])
    way = np.stack([across[1:][same], up[1:][same]]) - start
    length = np.abs(way).max(axis=0, initial=0)
    leg = np.repeat(np.arange(len(length)), length)
    done = np.arange(len(leg)) - np.repeat(np.cumsum(length) - length, length)
    stops = [(2 * way[:, leg] * (done + later) + length[leg]) // np.maximum(2 * length[leg], 1) for later in (0, 1)]
    return walker[leg], start[:, leg] + stops[0], stops[1] - stops[0]


def box_of(declared: PrivateTable, name: str, cells: int = 1) -> Place:
    """The column of places of that name, whose box has at least so many points along a side."""
    found = declared.column(name)
    if not isinstance(found, Place):
        raise MissingBound(
            f"The column {name!r} is not a place",
            why=f"it is declared {found.kind}",
            instead=f'"{name}": cl.Place((4.2, 51.9, 4.5, 52.1))',
        )
    if min(found.columns, found.rows) < cells:
        raise InvalidParameter(f"The column {name!r} is invalid", why="its box is narrower than its cells", instead="fewer cells")
    return found


def _degrees_of(place: Place) -> tuple[Real, Real]:
    """Its longitudes and latitudes, as columns of numbers."""
    west, east, south, north = (Fraction(end, PARTS) for end in (place.west, place.east, place.south, place.north))
    return Real(west, east, step=Fraction(1, PARTS)), Real(south, north, step=Fraction(1, PARTS))


def _unit_of(domain: Domain) -> float:
    """What one code more means."""
    return float(domain.step) if isinstance(domain, Real) else 1.0


def zone_of(cells: Integers, side: int, zones: int) -> Integers:
    """The zone of each cell.

    >>> zone_of(np.arange(16), 4, 2).tolist()
    [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]
    """
    width = side // zones
    return np.asarray(cells % side // width + zones * (cells // side // width))


def neighbours(side: int) -> Integers:
    """The eight cells around each, −1 beyond the edge.

    >>> neighbours(2)[0].tolist()
    [-1, -1, -1, -1, 1, -1, 2, 3]
    """
    place = np.arange(side**2)
    x, y = (axis[:, None] + _AROUND[:, way] for way, axis in enumerate((place % side, place // side)))
    return np.asarray(np.where((x >= 0) & (x < side) & (y >= 0) & (y < side), x + side * y, -1))


def above_zero(noisy: npt.NDArray[Any], total: float) -> Floats:
    """The numbers from 0 on with this sum that are nearest to noisy ones: all are lowered (or raised) by one number, and what is
    below 0 is set to 0.

    >>> above_zero(np.array([5, -3, 2]), 5.0).tolist()
    [4.0, 0.0, 1.0]
    """
    values = np.asarray(noisy, dtype=np.float64)
    if total <= 0:
        return np.zeros_like(values)
    falling = np.sort(values)[::-1]
    lowered = (falling.cumsum() - total) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - lowered[np.flatnonzero(falling > lowered)[-1]], 0.0))


def drawn(weights: Floats, n: int, random: Random) -> Integers:
    """Places that are drawn in proportion to their weights."""
    sums = np.cumsum(weights)
    last = int(np.flatnonzero(weights)[-1])
    return np.asarray(np.minimum(np.searchsorted(sums, random.uniform(n) * sums[-1], side="right"), last))
