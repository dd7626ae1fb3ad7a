"""Points that cannot be: told apart by rule before anything is made of a trace, and counted for the owner.

Each rule looks at one person's points alone, so a method that works on whole journeys may apply it inside (`fit_journeys` does):
who has a point left out changes nothing for anybody else.

The first that fits is the reason:

- *missing*: no time, or a place that is no two finite numbers;
- *at another time*: before or after the declared span, as from a clock that is off by years;
- *at 0/0*: what a device sends that does not know where it is (degrees alone);
- *swapped*: outside the box, and inside of it with the two numbers exchanged; without a box, a latitude beyond 90 with which
  they would be degrees again;
- *outside*: outside the box, or of the earth;
- *out of order*: of the fewest points without which times never go backwards, so that one reading from a clock that runs ahead
  goes by itself, and not all that come after it;
- *duplicate*: of the moment of the point before;
- *too fast*: a teleport. Points fall into runs: each joins the longest run from whose last point it can be reached at the
  declared speed, or begins one. The longest run stays, and by the triangle inequality no two points of it are too far apart.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.privacy.rational import Exact, exact_positive
from cloister.traces.moments import Moment, moments_of, seconds
from cloister.traces.stays import EARTH, Floats, in_space

REASONS = ("missing", "at another time", "at 0/0", "swapped", "outside", "out of order", "duplicate", "too fast")
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_RUNS = 16
"""Runs that are followed at once; the shortest gives way."""
_SLACK = 1e-9
"""Of a distance: what rounding may add to it."""


@dataclass(frozen=True, kw_only=True)
class CleanPoints:
    """Which points stay, and how many were left out for which reason. Exact: for the owner alone.

    >>> found = clean_points([0, 60, 120, 180], [[52.0, 4.3], [0, 0], [4.3, 52.0], [52.001, 4.3]], box=(4.2, 51.9, 4.5, 52.1))
    >>> found.kept.tolist(), {reason: count for reason, count in found.dropped.items() if count}
    ([0, 3], {'at 0/0': 1, 'swapped': 1})
    """

    kept: Integers
    """Their places in what was given, in its order."""
    reasons: npt.NDArray[np.str_]
    """Of each point; empty where it stays."""

    @property
    def dropped(self) -> dict[str, int]:
        """How many were left out, by reason."""
        return {reason: int((self.reasons == reason).sum()) for reason in REASONS}

    def __str__(self) -> str:
        told = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items() if count)
        return f"{len(self.kept):,} of {len(self.reasons):,} points stay" + (f"; left out: {told}" if told else "")


def clean_points(
    times: Any,
    places: Any,
    *,
    who: Any = None,
    box: Sequence[float] | None = None,
    span: tuple[Moment, Moment] | None = None,
    fastest: float | None = None,
    degrees: bool = True,
) -> CleanPoints:
    """Leave out the points that cannot be, for one person or, with `who`, for each by itself.

    Parameters
    ----------
    times
        Seconds, ISO texts (a leap second is the last of its minute), or numpy's datetime64 or timedelta64.
    places
        Rows of latitude and longitude, or of metres (x, y) with `degrees=False`.
    box
        What is public of where they are: west, south, east, north.
    span
        What is public of when: the first and the last moment.
    fastest
        Metres a second that nobody exceeds; None: no point is too fast.

    >>> times = ["2026-03-02T08:00", "2026-03-02T08:01", "2026-03-02T08:02", "2026-03-02T08:01:30"]
    >>> found = clean_points(times, [[0, 0], [60, 0], [9e5, 0], [90, 0]], fastest=10, degrees=False)
    >>> print(found)
    3 of 4 points stay; left out: 1 out of order
    >>> print(clean_points(times[:3], [[0, 0], [60, 0], [9e5, 0]], fastest=10, degrees=False))
    2 of 3 points stay; left out: 1 too fast
    """
    clock = moments_of(times if getattr(times, "ndim", 1) == 1 else list(times))
    where, owner = _places(places, len(clock)), _owners(who, len(clock))
    reason = np.zeros(len(clock), dtype=np.int8)

    def leave_out(which: Mask, why: str) -> None:
        reason[which & (reason == 0)] = 1 + REASONS.index(why)

    leave_out(~(np.isfinite(clock) & np.isfinite(where).all(axis=1)), "missing")
    if span is not None:
        first, last = (seconds(end) for end in span)
        if not first <= last:
            raise InvalidParameter(
                "span is invalid", why="it is not a first and a last moment", instead='span=("2026-01-01", "2026-04-01")'
            )
        leave_out(~((clock >= first) & (clock <= last)), "at another time")
    if degrees:
        leave_out((where == 0).all(axis=1), "at 0/0")
    inside, swapped = _inside(where, box, degrees)
    leave_out(~inside & swapped, "swapped")
    leave_out(~inside, "outside")
    by_person = np.argsort(owner, kind="stable")

    def left() -> Integers:
        return np.asarray(by_person[reason[by_person] == 0])

    rest = left()
    leave_out(_marked(rest[~in_order(owner[rest], clock[rest])], len(clock)), "out of order")
    rest = left()
    same = (np.diff(owner[rest], prepend=-1) == 0) & (np.diff(clock[rest], prepend=np.nan) == 0)
    leave_out(_marked(rest[same], len(clock)), "duplicate")
    if fastest is not None:
        pace, rest = float(pace_of(fastest)), left()
        space = in_space(where[rest]) if degrees else where[rest]
        leave_out(_marked(rest[~slow_enough(owner[rest], clock[rest], space, pace, ball=degrees)], len(clock)), "too fast")
    return CleanPoints(kept=np.flatnonzero(reason == 0), reasons=np.array(["", *REASONS])[reason])


def pace_of(fastest: Exact) -> Fraction:
    """The greatest speed that may be.

    >>> pace_of("0.5")
    Fraction(1, 2)
    """
    pace = exact_positive(fastest, "fastest")
    if not Fraction(1, 10**12) <= pace <= 10**12:
        raise InvalidParameter("fastest is invalid", why="it lies between 10⁻¹² and 10¹²", instead="fastest=50")
    return pace


def in_order(owner: Integers, clock: Floats) -> Mask:
    """Which points stay so that the times of nobody go backwards and as few as possible are left out; those of one person stand
    together.

    >>> in_order(np.zeros(5, dtype=np.int64), np.array([1.0, 2.0, 90.0, 3.0, 4.0])).tolist()
    [True, True, False, True, True]
    """
    stays = np.ones(len(clock), dtype=bool)
    for begin, end in _of_people(owner, np.diff(clock, prepend=-np.inf) < 0):
        stays[begin:end] = _longest_rising(clock[begin:end].tolist())
    return stays


def slow_enough(owner: Integers, clock: Floats, space: Floats, fastest: float, *, ball: bool = False) -> Mask:
    """Which points stay so that nobody goes faster; those of one person stand together, in the order of time. With `ball`, places
    are points in space, and ways go along the ground.

    >>> places = np.array([[0.0, 0.0], [900.0, 0.0], [1.0, 0.0]])
    >>> slow_enough(np.zeros(3, dtype=np.int64), np.arange(3.0), places, 1.0).tolist()
    [True, False, True]
    """
    stays = np.ones(len(clock), dtype=bool)
    if len(clock) > 1:
        steps = np.append(0.0, _distances(space[1:], space[:-1], ball))
        for begin, end in _of_people(owner, steps > fastest * (1 + _SLACK) * np.diff(clock, prepend=clock[0])):
            stays[begin:end] = _longest_run(clock[begin:end], space[begin:end], fastest * (1 + _SLACK), ball)
    return stays


def _of_people(owner: Integers, wrong: Mask) -> list[tuple[int, int]]:
    """Where the points of those begin and end who have something wrong between two points of theirs."""
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    person = np.cumsum(np.diff(owner, prepend=-1) != 0) - 1
    wrong = wrong & (np.diff(owner, prepend=-1) == 0)
    ends = np.append(begins[1:], len(owner))
    return [(int(begins[each]), int(ends[each])) for each in np.unique(person[wrong])]


def _longest_rising(values: list[float]) -> Mask:
    """A longest part in which no value is below one before it: by the least last value of each length, with who came before."""
    tails: list[float] = []
    at, before = list[int](), [-1] * len(values)
    for place, value in enumerate(values):
        length = bisect_right(tails, value)
        before[place] = at[length - 1] if length else -1
        tails[length : length + 1], at[length : length + 1] = [value], [place]
    stays = np.zeros(len(values), dtype=bool)
    place = at[-1] if at else -1
    while place >= 0:
        stays[place], place = True, before[place]
    return stays


def _longest_run(clock: Floats, space: Floats, fastest: float, ball: bool) -> Mask:
    runs: list[list[int]] = []
    for place, moment in enumerate(clock.tolist()):
        for run in runs:  # the longest comes first
            last = run[-1]
            if _distances(space[place : place + 1], space[last : last + 1], ball)[0] <= fastest * (moment - clock[last]):
                run.append(place)
                break
        else:
            runs[_RUNS - 1 :] = []
            runs.append([place])
        runs.sort(key=lambda run: -len(run))
    stays = np.zeros(len(clock), dtype=bool)
    stays[runs[0]] = True
    return stays


def _distances(one: Floats, other: Floats, ball: bool) -> Floats:
    straight = np.sqrt(((one - other) ** 2).sum(axis=1))
    return np.asarray(2 * EARTH * np.arcsin(np.minimum(straight / (2 * EARTH), 1.0)) if ball else straight)


def _inside(where: Floats, box: Sequence[float] | None, degrees: bool) -> tuple[Mask, Mask]:
    """Which places may be, and which might if their two numbers were exchanged."""
    across, up = (where[:, 1], where[:, 0]) if degrees else (where[:, 0], where[:, 1])
    if box is None:
        if not degrees:
            return np.ones(len(where), dtype=bool), np.zeros(len(where), dtype=bool)
        west, south, east, north = -360.0, -90.0, 360.0, 90.0
    else:
        west, south, east, north = _box(box, degrees)
    return tuple((x >= west) & (x <= east) & (y >= south) & (y <= north) for x, y in ((across, up), (up, across)))  # type: ignore


def _box(box: Any, degrees: bool) -> tuple[float, float, float, float]:
    try:
        west, south, east, north = (float(end) for end in box)
    except (TypeError, ValueError):
        west = south = east = north = np.nan
    if not (west < east and south < north) or not np.isfinite([west, south, east, north]).all():
        raise InvalidParameter(
            "box is invalid", why="it is not west, south, east and north", instead="box=(4.2, 51.9, 4.5, 52.1)"
        )
    if degrees and max(-south, north) > 90:
        raise InvalidParameter(
            "box is invalid",
            why="a latitude lies within 90 degrees of 0: the longitude comes first",
            instead="box=(west, south, east, north), or degrees=False for metres",
        )
    return west, south, east, north


def _places(places: Any, count: int) -> Floats:
    try:
        where = np.ma.filled(np.asanyarray(places, dtype=np.float64), np.nan)
    except (TypeError, ValueError, OverflowError):
        where = np.empty(0)
    if count == 0 and where.size == 0:
        return np.empty((0, 2))
    if where.shape != (count, 2):
        raise InvalidParameter(
            "places is invalid", why="it must hold two numbers for each time", instead="clean_points([0, 5], [[52, 4], [52, 4]])"
        )
    return where


def _owners(who: Any, count: int) -> Integers:
    if who is None:
        return np.zeros(count, dtype=np.int64)
    names = who.tolist() if isinstance(who, np.ndarray) else list(who)
    if len(names) != count:
        raise InvalidParameter("who is invalid", why="it must name a person for each time", instead='who=["a", "a", "b"]')
    known: dict[Any, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)


def _marked(places: Integers, count: int) -> Mask:
    found = np.zeros(count, dtype=bool)
    found[places] = True
    return found
