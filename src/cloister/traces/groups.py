"""Where people stay, counted so that nobody's company gives them away: groups of people who move together are protected as one.

Two people who are always together leave the same traces. A release that hides one of them still shows the other, and so both.
What is protected here is therefore the whole *group*: people who are connected by ties, directly or through others. Ties are
private, so they are declared by their owner as public, or bounded: nobody moves with more than so many others. They are never
looked up.

*Measured*: in which cell of a grid over the declared bounds people stayed (`stay_points`), of each person the first `stays` of
them.

Guarantee: the spend, for one group of at most g people added or removed, where g is the largest connected group of the declared
ties, or the declared bound; for one person it is g times better under ε, g² times under ρ, and is charged as the group's.
Theorem: discrete Laplace or discrete Gaussian noise for the joint contribution of the group. Proof: bounds, grid, distance and
duration are declared. No two people share a text, and a person's stays are a function of their own rows. Each person adds 1 to
at most m = `stays` cells, counted with repetition, so the vector moves by at most g·m in L1, and in L2 by no more. ∎ Nothing is
assumed of how people in a group are correlated; people of different groups are taken to move independently of one another, or
to be no one's company.

Correlated sensitivity (Zhu, Xiong, Li & Zhou 2015) puts Σ_j |δ_ij|·m in place of g·m, with the strengths δ ≤ 1 of the ties of a
person. It proves nothing against somebody who knows better: two people who are always together, declared with δ = 0.3, are told
apart by 2/1.3 times ε. That is a broken twin in the tests. With all δ = 1 within groups it is the above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.noise._checks import whole
from cloister.printable import margin_text
from cloister.privacy import Exact, Guarantee
from cloister.session import Measurer, Spending
from cloister.tables import Date, Moment, PrivateTable
from cloister.traces.journeys import FARTHEST, JourneyMethod, check_floats, declared_journeys
from cloister.traces.stays import check_reach, stay_points

Integers = npt.NDArray[np.int64]
_MOST_CELLS, _MOST_VALUES = 256, 2**50


class Groups:
    """Who may move together: declared ties between people, which are public, or a bound on the size of a group.

    >>> Groups([("ada", "bob"), ("bob", "cyd"), ("dan", "eve")]).largest, Groups(most=4).largest, Groups().largest
    (3, 4, 1)
    """

    def __init__(self, ties: Iterable[tuple[Any, Any]] = (), *, most: int | None = None) -> None:
        """`ties` are pairs of names; `most` bounds a group where ties are not declared. With both, no group of the ties may be
        larger than the bound, which then holds for all.
        """
        head: dict[Any, Any] = {}

        def found(name: Any) -> Any:
            while head.setdefault(name, name) != name:
                head[name] = name = head[head[name]]
            return name

        try:
            for tie in ties:
                one, other = (tie,) if isinstance(tie, str) else tie  # whose letters are not names
                head[found(_name(one))] = found(_name(other))
        except (TypeError, ValueError):
            raise InvalidParameter("ties is invalid", why="it must be pairs of names", instead='[("ada", "bob")]') from None
        members: dict[Any, list[Any]] = {}
        for name in head:
            members.setdefault(found(name), []).append(name)
        self.groups = tuple(tuple(names) for names in members.values() if len(names) > 1)
        """The connected groups of the ties."""
        declared = max(map(len, self.groups), default=1)
        self.largest = declared if most is None else whole(most, "most", least=1)
        """How many people may move together."""
        if declared > self.largest:
            raise InvalidParameter(
                f"most={most} is invalid", why=f"{declared} people are connected by the declared ties", instead=f"most={declared}"
            )

    def __repr__(self) -> str:
        return f"groups of up to {self.largest} {'people' if self.largest > 1 else 'person'}"


def _name(name: Any) -> str:
    """A name as a column of texts holds it: 4, 4.0 and "4" are one person."""
    if isinstance(name, bool) or not isinstance(name, str | int | float | np.integer | np.floating) or name != name:
        raise TypeError
    return str(int(name)) if not isinstance(name, str) and float(name).is_integer() else str(name)


@dataclass(frozen=True, kw_only=True)
class StayCounts(JourneyMethod):
    """What is measured of stays, as a method that needs rows. See above for its proof."""

    stored: ClassVar[tuple[str, str]] = ("cloister.traces.groups", "StayCounts")
    shares: ClassVar[Mapping[str, Fraction]] = {"stays": Fraction(1)}

    cells: int
    distance: float
    duration: float
    stays: int
    together: int

    @property
    def reach(self) -> Mapping[str, int]:
        """The joint contribution of a group."""
        return {"stays": self.together * self.stays}

    def describe(self) -> dict[str, Any]:
        """For the plan's digest."""
        parameters = [self.cells, self.distance, self.duration, self.stays, self.together]
        return {"columns": list(self.columns), "parameters": parameters, "format": 1}

    def counted(self, rows: Mapping[str, Any], declaration: PrivateTable) -> dict[str, Integers]:
        """The exact numbers, before noise: private."""
        owner, moments, *codes = self.ordered(rows, declaration)
        x, y = (self.numbers(name, found, declaration) for name, found in zip((self.x, self.y), codes, strict=True))
        seconds = isinstance(declaration.column(self.moment), Moment)
        times = moments.astype(np.float64) if seconds else self.numbers(self.moment, moments, declaration)
        counts = np.zeros(self.cells**2, dtype=np.int64)
        edges = np.flatnonzero(np.diff(owner)) + 1
        for mine in np.split(np.arange(len(owner)), edges) if len(owner) else []:
            places = np.stack([x[mine], y[mine]], axis=1)
            found = stay_points(times[mine], places, distance=self.distance, duration=self.duration, degrees=False)
            cells = [self._cell(declaration, name, found.place[: self.stays, axis]) for axis, name in enumerate((self.x, self.y))]
            np.add.at(counts, cells[0] + self.cells * cells[1], 1)
        return {"stays": counts}

    def _cell(self, declaration: PrivateTable, name: str, numbers: npt.NDArray[np.float64]) -> Integers:
        domain: Any = declaration.column(name)
        low, high = (float(domain.decode(code)) for code in (domain.low_code, domain.high_code))
        return np.clip((numbers - low) / (high - low) * self.cells, 0, self.cells - 1).astype(np.int64)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Stays:
    """What `fit_stays` gives: noisy counts of stays, a row for each row of cells from the lower edge on."""

    method: StayCounts
    counts: Integers
    cost: Guarantee
    marked: bool = False

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """The law of the noise of each count."""
        return self.method.laws(self.cost)["stays"]

    def margin(self, confidence: Exact = "0.95") -> float:
        """The half-width of the interval of one count."""
        return float(self.noise.margin(confidence))

    def __repr__(self) -> str:
        return (
            f"stays in {self.method.cells} × {self.method.cells} cells, each ± {margin_text(self.margin())}\n"
            f"  cost: {self.cost}, for a group of up to {self.method.together} people who move together"
            + ("\n  MARKED: the noise came from a test's generator and protects nobody" if self.marked else "")
        )


def fit_stays(
    session: Measurer,
    table: str,
    groups: Groups,
    *,
    spend: Spending,
    moment: str = "moment",
    x: str = "x",
    y: str = "y",
    cells: int = 12,
    distance: float = 200.0,
    duration: float = 1200.0,
    stays: int = 10,
    purpose: str = "stays",
) -> Stays:
    """Noisy counts of where people stay, for one charge, that protect groups of people who move together.

    A unit's rows are one person's; `moment` is a moment or in seconds, `x` and `y` in metres. `stays` is how many of a person
    count at most, the first of them in time. The noise of a count grows with it and with the largest group.

    >>> import cloister as cl
    >>> from cloister.noise import Random
    >>> rows = {"who": [str(n // 3) for n in range(900)], "moment": [0, 700, 1400] * 300, "x": [10] * 900, "y": [90] * 900}
    >>> columns = {"who": cl.Text(), "moment": cl.Integer(0, 9999), "x": cl.Integer(0, 99), "y": cl.Integer(0, 99)}
    >>> people = cl.PrivateTable(rows, columns, unit="who", max_rows=3)
    >>> with cl.Session({"people": people}, budget=cl.PureDP(2), random=Random.deterministic(1)) as session:
    ...     found = fit_stays(session, "people", Groups([("0", "1")]), spend=2, cells=2, stays=1)
    ...     print(session.spent)
    ε = 2
    >>> isinstance(found, Stays), int(abs(found.counts - [[0, 0], [300, 0]]).max()) < 10
    (True, True)
    """
    method = StayCounts(
        **declared_stays(
            session, table, groups, moment=moment, x=x, y=y, cells=cells, distance=distance, duration=duration, stays=stays
        )
    )
    side = method.cells
    outcome = session.run(method, table, spend, purpose=f"{purpose}, {groups!r}")
    counts = np.array(outcome.values["stays"], dtype=np.int64).reshape(side, side)
    return Stays(method=method, counts=counts, cost=outcome.cost, marked=outcome.marked)


def declared_stays(
    session: Measurer,
    table: str,
    groups: Groups,
    *,
    moment: str,
    x: str,
    y: str,
    cells: int,
    distance: float,
    duration: float,
    stays: int,
) -> dict[str, Any]:
    """The checked parameters of a method that counts stays."""
    declared = declared_journeys(session, table, moment=moment, x=x, y=y)
    if not isinstance(groups, Groups):
        raise InvalidParameter(
            "groups is invalid",
            why="who may move together is declared: ties, or a bound",
            instead='Groups([("ada", "bob")]), or Groups(most=4)',
        )
    if isinstance(declared.column(moment), Date):
        raise InvalidParameter(
            f"The column {moment!r} is invalid",
            why="a stay is measured in seconds",
            instead=f'"{moment}": cl.Moment("2026-01-01", "2026-12-31")',
        )
    side, most = whole(cells, "cells", least=1), whole(stays, "stays", least=1)
    if side > _MOST_CELLS or most * groups.largest > _MOST_VALUES:
        raise InvalidParameter(
            f"cells={cells}, stays={stays} is invalid",
            why=f"there are up to {_MOST_CELLS} cells along a side, and groups stay up to 2⁵⁰ times",
            instead="cells=12, stays=10",
        )
    check_reach(distance, duration, FARTHEST)
    check_floats(declared, (x, y) if isinstance(declared.column(moment), Moment) else (moment, x, y))
    return {
        "journey": str(declared.unit),
        "moment": moment,
        "x": x,
        "y": y,
        "cells": side,
        "distance": float(distance),
        "duration": float(duration),
        "stays": most,
        "together": groups.largest,
    }
