"""Stay points: where somebody remained within a distance for a time. They tell home, work, and who is with whom.

A sweep from an anchor: from the first point i, the last point j such that all points up to it lie within `distance` of i;
where t_j − t_i is at least `duration`, the points i … j are a stay, its place is their mean, and the sweep goes on after j;
else it goes on with i + 1 (Li, Zheng, Xie, Chen, Liu & Ma 2008). There is no limit to the gaps between points. Distances and
means of latitudes and longitudes are those of points in space, so the date line and the poles are places like any other.

Few points can begin a stay: the first point that is at least `duration` later must lie within `distance`, and so must every
point between. Both ends of that and three places between are looked at for all points at once; the sweep itself visits what
is left.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.traces.moments import moments_of

EARTH = 6_371_000.0
"""The mean radius of the earth in metres."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StayPoints:
    """The stays of one person in the order of time: first and last point of each (inclusive), its mean place, when it began
    and ended in seconds.

    >>> found = stay_points([0, 900, 1800], [[40.0, 7.0]] * 3)
    >>> len(found), found.points, found.first.tolist(), found.last.tolist()
    (1, 3, [0], [2])
    """

    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    place: Floats
    begin: Floats
    end: Floats

    def __len__(self) -> int:
        return len(self.first)

    @property
    def points(self) -> int:
        """How many points lie in stays."""
        return int((self.last - self.first + 1).sum())


def stay_points(
    times: Any, places: Any, *, distance: float = 200.0, duration: float = 1200.0, degrees: bool = True
) -> StayPoints:
    """The stays of one person, exactly: nothing protects them, so they stay with the owner or inside `session.run`.

    `times` are seconds, ISO texts, or numpy's datetime64 or timedelta64, in order (a leap second is the last of its minute),
    `places` rows of latitude and longitude, or of metres with `degrees=False`. `distance` is in metres, `duration` in seconds.

    >>> times = range(0, 3600, 60)
    >>> places = [[0.0, 0.0]] * 30 + [[500.0 * step, 0.0] for step in range(1, 31)]
    >>> found = stay_points(times, places, distance=100, duration=1200, degrees=False)
    >>> len(found), found.points, found.place.tolist()
    (1, 30, [[0.0, 0.0]])
    """
    clock, where = _checked(times, places, distance, duration, degrees)
    space = in_space(where) if degrees else where
    limit = 2 * EARTH * float(np.sin(min(distance / (2 * EARTH), np.pi / 2))) if degrees else distance
    limit = limit**2
    later = np.searchsorted(clock, clock + duration)
    anchors = np.flatnonzero(later < len(clock))
    for quarters in (4, 2, 3, 1):
        between = anchors + (later[anchors] - anchors) * quarters // 4
        anchors = anchors[_squares(space[anchors], space[between]) <= limit]
    first: list[int] = []
    last: list[int] = []
    reached = 0
    for anchor in anchors.tolist():
        if anchor < reached:
            continue
        end = _leaves(space, anchor, limit)
        if end > later[anchor]:
            first.append(anchor)
            last.append(end - 1)
            reached = end
    begins, ends = np.array(first, dtype=np.int64), np.array(last, dtype=np.int64)
    means = np.array([space[a : b + 1].mean(axis=0) for a, b in zip(first, last, strict=True)]).reshape(-1, space.shape[1])
    return StayPoints(begins, ends, _on_earth(means) if degrees else means, clock[begins], clock[ends])


def _leaves(space: Floats, anchor: int, limit: float) -> int:
    """The first point after the anchor that is further away; the number of points, where there is none."""
    start, size = anchor + 1, 64
    while start < len(space):
        outside = _squares(space[anchor], space[start : start + size]) > limit
        found = int(outside.argmax())
        if outside[found]:
            return start + found
        start, size = start + size, size * 4
    return len(space)


def _squares(one: Floats, other: Floats) -> Floats:
    """Squared distances along a straight line."""
    apart = one - other
    return np.asarray(np.einsum("...i,...i->...", apart, apart))


def in_space(degrees: Floats) -> Floats:
    """Points on the earth as points in space, in metres: so each needs its sines and cosines once. Those that lie a distance d
    apart along the ground are 2R·sin(d/2R) apart along a straight line.

    >>> in_space(np.array([[0.0, 0.0], [90.0, 0.0]])).round().tolist()
    [[6371000.0, 0.0, 0.0], [0.0, 0.0, 6371000.0]]
    """
    latitude, longitude = np.radians(degrees).T
    level = np.cos(latitude)
    return EARTH * np.stack([level * np.cos(longitude), level * np.sin(longitude), np.sin(latitude)], axis=1)


def _on_earth(space: Floats) -> Floats:
    """Latitude and longitude of the points of the ground that lie above points in space."""
    x, y, z = space.T
    return np.asarray(np.degrees(np.stack([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)], axis=1)))


def _checked(times: Any, places: Any, distance: float, duration: float, degrees: bool) -> tuple[Floats, Floats]:
    """Seconds and places as arrays. Messages name what is wrong, never where."""
    clock = np.asarray(times)
    if clock.dtype.kind in "mM":
        missing = np.isnat(clock)
        clock = np.where(missing, np.nan, clock.astype(f"{clock.dtype.kind}8[us]").astype(np.int64) / 1e6)
    if clock.dtype.kind in "OU":
        clock = moments_of(clock.ravel().tolist()) if clock.ndim == 1 else np.empty(0)
    try:
        seconds, where = clock.astype(np.float64), np.ma.filled(np.asanyarray(places, dtype=np.float64), np.nan)
    except (TypeError, ValueError, OverflowError):
        seconds, where = np.empty(0), np.empty(0)
    if where.ndim != 2 or where.shape[1:] != (2,) or seconds.shape != where.shape[:1]:
        raise InvalidParameter(
            "places is invalid",
            why="it must hold two numbers for each time",
            instead="stay_points([0, 5], [[40, 116], [40, 116]])",
        )
    if not np.isfinite(seconds).all() or not np.isfinite(where).all():
        raise InvalidParameter(
            "The points are invalid", why="a time or a place is missing or infinite", instead="the points that have both"
        )
    if degrees and (np.abs(where) > (90, 360)).any():
        raise InvalidParameter(
            "places is invalid",
            why="a latitude lies within 90 degrees of 0 and a longitude within 360; it comes second",
            instead="[[latitude, longitude]], or degrees=False for metres",
        )
    if (np.diff(seconds) < 0).any():
        raise InvalidParameter("times is invalid", why="it must not go backwards", instead="points in the order of time")
    check_reach(distance, duration)
    return seconds, where


def check_reach(distance: Any, duration: Any, most: float = np.inf) -> None:
    """Refuses a distance or a duration that is not a number above 0, or is above the most."""
    both = (distance, duration)
    if not (all(isinstance(each, Real) for each in both) and all(0 < each <= most for each in both)):
        why = "both must be above 0" + (", and 10¹² at most" if most < np.inf else "")
        raise InvalidParameter("distance or duration is invalid", why=why, instead="distance=200, duration=1200")
