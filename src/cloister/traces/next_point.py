"""A journey from the phone, point after point: each next point is drawn around the last *released* one.

Points are seen in polar coordinates around the last released point: how far the true next point lies, and in which direction.
Both are reported with noise, and the reports say where the next released point is. No report depends on a grid of the data's
own: the grid lies around what was released. Every `every` points an *anchor* is a noisy place of its own (`PlanarLaplace`), so
that what is released cannot drift away from the journey.

*Exponential* (McSherry & Talwar 2007). The circle of radius `reach` is cut into `rings` of the same width and into `headings`.
A cell of ring i is chosen with probability proportional to (2i + 1)·exp(−λ(α|i − i*|/(rings − 1) + β|j − j*|/(headings/2))),
where (i*, j*) is the cell of the true next point. The whole number 2i + 1 is the area of a cell of ring i in areas of the
innermost: the Jacobian r·dr·dθ, without which released points crowd around the last one whatever ε is. *Piecewise*: the
distance by `local.OptimalPiecewise`, the direction by `local.CircularPiecewise`.

Guarantee of one next point: ε-local privacy, whatever two true points. `share` of ε is for the distance and the rest for the
direction. Proof, exponential. The law is a product, since the exponent is a sum and the area depends on the ring alone. The
ring has the weight w(i)·exp(−ε_r·|i − i*|/2(rings − 1)) with ε_r = 2λα: for another i* each weight moves by a factor of
e^(ε_r/2) at most, and so does their sum, the *normaliser*, which differs from ring to ring; together ε_r. The direction has the
weight exp(−ε_h·|j − j*|/(headings/2)) with ε_h = λβ, on a circle: its normaliser is the same for every j*, so the probability
moves by e^(ε_h) at most. ε = ε_r + ε_h. In which cell a true point is follows from floats, and a point beyond `reach` belongs
to the outermost ring: a function of the true point and of released ones, before a private choice. Utilities are whole numbers
of rings and of headings, and `noise.Exponential` draws their law exactly. Proof, piecewise: `Window`, twice, and ε_r + ε_h. ∎

Guarantee of a journey of T points with a anchors: `guarantee(T)`. Theorem: adaptive basic composition. Proof: what is released
before a point fixes the grid of that point, and given it, the point costs ε (an anchor: its rate a metre and what its lattice
adds). For two journeys of T points that are never more than d metres apart, the logarithm of the ratio is a(ε_a·d + extra) + (T
− a)ε at most. `.within(diameter)` of a declared region makes an ε of that. It is the journey of one phone, in the local model:
nobody else is trusted, and it is added to nothing else. The number of points and their times are not hidden. ∎
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, check_one_of
from cloister.local import CircularPiecewise, OptimalPiecewise
from cloister.noise import Exponential, Random, default_random
from cloister.noise._checks import whole
from cloister.privacy.rational import Exact, exact_positive
from cloister.traces.filtering import FilterAttack, expected_walks, filter_attack, strides
from cloister.traces.planar import GeoIndistinguishability, PlanarLaplace, Points, checked_points

Floats = npt.NDArray[np.float64]
_MOST_RINGS, _MOST_HEADINGS, _MOST_POINTS = 64, 360, 10_000
_HEADINGS = 16
"""True directions within a cell over which an error is a mean."""
_LEAST = 1e-100
"""Of a probability that floats take for 0, in what a smoother sees."""


class NextPoint:
    """Journeys released point by point, in the local model. See above for the law, the guarantee and its proof.

    `epsilon` is for each next point, `reach` how far a person comes from one point to the next at most, in metres: the greatest
    speed times the time between points, declared. `anchor` is the noise of every `every`-th point, the first among them. With
    `every=1` each point is an anchor: planar noise drawn again at each point, which a smoother takes off again.

    Error: `step_error(distance)` of one draw; of a journey, as the owner sees it, `ReleasedJourney.attack`.

    >>> mechanism = NextPoint(4, reach=100, anchor=PlanarLaplace("0.02"), every=20)
    >>> walk = np.cumsum(np.random.default_rng(1).normal(0, 10, (60, 2)), axis=0)
    >>> released = mechanism.release(walk, random=Random.deterministic(1))
    >>> released.points.shape, int(released.anchors.sum()), released.guarantee.extra > 57 * 4
    ((60, 2), 3, True)
    """

    def __init__(
        self,
        epsilon: Exact,
        *,
        reach: Exact,
        anchor: PlanarLaplace,
        every: int = 20,
        law: Literal["exponential", "piecewise"] = "exponential",
        rings: int = 16,
        headings: int = 32,
        share: Exact = "0.5",
    ) -> None:
        self.epsilon, self.reach = exact_positive(epsilon, "epsilon"), exact_positive(reach, "reach")
        if not Fraction(1, 1000) <= self.reach <= 10**9:
            raise InvalidParameter("reach is invalid", why="it is from a millimetre to 10⁹ metres", instead="reach=100")
        self.every, self.share = whole(every, "every", least=1), exact_positive(share, "share")
        self.rings, self.headings = whole(rings, "rings", least=4), whole(headings, "headings", least=4)
        if not isinstance(anchor, PlanarLaplace):
            raise InvalidParameter(
                f"anchor={anchor!r} is invalid", why="it is the noise of a place", instead='anchor=PlanarLaplace("0.02")'
            )
        if self.rings > _MOST_RINGS or self.headings > _MOST_HEADINGS or self.headings % 2:
            raise InvalidParameter(
                f"rings={rings}, headings={headings} is invalid",
                why=f"there are up to {_MOST_RINGS} rings, and an even number of headings up to {_MOST_HEADINGS}",
                instead="rings=16, headings=32",
            )
        if self.share >= 1:
            raise InvalidParameter(
                f"share={share} is invalid", why="distance and direction need a part of ε each", instead='share="0.5"'
            )
        check_one_of(law, "law", ("exponential", "piecewise"), why="it names no law", instead='law="exponential" or "piecewise"')
        self.law, self.anchor = law, anchor
        kind: type[_Rings | _Windows] = _Rings if law == "exponential" else _Windows
        self._polar = kind(self.epsilon, self.share, float(self.reach), self.rings, self.headings)
        """Draws for a true distance and direction, and the probability of each of the finitely many outcomes."""

    def anchors(self, points: int) -> npt.NDArray[np.bool_]:
        """Which of so many points are anchors."""
        return np.asarray(np.arange(whole(points, "points", least=0)) % self.every == 0)

    @property
    def scale(self) -> float:
        """About how far released points lie from the truth, in metres: an anchor's error, and how far the points after it
        stray.
        """
        return math.hypot(self.anchor.mean_error, float(self.reach) * math.sqrt(min(self.every - 1, 36)) / 2)

    def guarantee(self, points: int) -> GeoIndistinguishability:
        """What a journey of so many points costs its person. `.within(diameter)` is an ε.

        >>> NextPoint(1, reach=50, anchor=PlanarLaplace("0.01", step=1), every=10).guarantee(20)
        GeoIndistinguishability(epsilon='0.02', extra='18.0282844')
        """
        anchors = int(self.anchors(points).sum())
        return self.anchor.guarantee * anchors + GeoIndistinguishability(0, extra=self.epsilon * (points - anchors))

    def step_error(self, distance: float = 0.0) -> float:
        """The mean distance of a released next point from the true one, where that lies `distance` from the last released, in any
        direction.

        >>> mechanism = NextPoint(4, reach=100, anchor=PlanarLaplace("0.02"))
        >>> round(mechanism.step_error(50)), round(NextPoint(40, reach=100, anchor=PlanarLaplace("0.02")).step_error(50))
        (60, 14)
        """
        if not 0 <= distance <= float(self.reach):
            raise InvalidParameter(
                "distance is invalid", why="it lies between 0 and the reach, in metres", instead=f"distance={self.reach / 2}"
            )
        polar = self._polar
        near = polar.distance_law(np.array([distance]))[0]
        x, y = (np.outer(polar.distances, wave(polar.directions)) for wave in (np.cos, np.sin))
        errors = []
        for heading in (
            (np.arange(_HEADINGS) + 0.5) * 2 * np.pi / _HEADINGS / len(polar.directions)
        ):  # of one cell: the others are alike
            turned = polar.heading_law(np.array([heading]))[0]
            away = np.hypot(x - distance * math.cos(heading), y - distance * math.sin(heading))
            errors.append(near @ away @ turned)
        return float(np.mean(errors))

    def release(self, points: Any, *, random: Random | None = None) -> ReleasedJourney:
        """A released point for each point of one journey, in the order of time, in metres. A true point further from the last
        released one than `reach` counts as one at that distance, in its direction: what is released goes after it.
        """
        truth, source = checked_points(points), default_random() if random is None else random
        if len(truth) > _MOST_POINTS:
            raise InvalidParameter(
                "The journey is invalid", why=f"it has more than {_MOST_POINTS:,} points", instead="a journey a day"
            )
        anchors = self.anchors(len(truth))
        released = np.empty_like(truth)
        released[anchors] = self.anchor.release(truth[anchors], random=source) if len(truth) else truth
        for at in np.flatnonzero(~anchors).tolist():
            east, north = truth[at] - released[at - 1]
            (away,), (heading,) = self._polar.draw(math.hypot(east, north), math.atan2(north, east), 1, source)
            released[at] = released[at - 1] + away * np.array([math.cos(heading), math.sin(heading)])
        return ReleasedJourney(released, anchors, self, source.marked, truth, released)

    def log_likelihood(self, released: Points, at: int, places: Points) -> Floats:
        """For each place: the logarithm of the probability of released point number `at` were that place the truth, given what
        was released before it; to a constant. What an attacker knows who knows the mechanism.
        """
        if at % self.every == 0:
            return np.asarray(-float(self.anchor.epsilon) * np.hypot(*(places - released[at]).T))
        east, north = (places - released[at - 1]).T
        polar, (x, y) = self._polar, released[at] - released[at - 1]
        ring = int(np.abs(polar.distances - math.hypot(x, y)).argmin())
        turn = int(np.cos(polar.directions - math.atan2(y, x)).argmax())
        near = polar.distance_law(np.hypot(east, north))[:, ring]
        turned = polar.heading_law(np.arctan2(north, east))[:, turn]
        return np.asarray(np.log(np.maximum(near, _LEAST)) + np.log(np.maximum(turned, _LEAST)))

    def __repr__(self) -> str:
        return (
            f"NextPoint({self.law}, ε = {self.epsilon} a point within {self.reach} m, every {self.every} points an anchor of "
            f"{self.anchor.guarantee})"
        )


@dataclass(frozen=True, eq=False)
class ReleasedJourney:
    """What `NextPoint.release` gives, on the phone. What is sent is `points`; the object itself knows the true journey, for
    `attack`, and refuses to be pickled.

    >>> mechanism = NextPoint(8, reach=100, anchor=PlanarLaplace("0.02"), every=5)
    >>> walk = np.cumsum(np.random.default_rng(1).normal(0, 20, (200, 2)), axis=0)
    >>> print(mechanism.release(walk, random=Random.deterministic(1)))
    200 points, 40 of them anchors: ε = 0.8 a metre and 1281.131376
      for its owner alone, from the true journey:
      70 m, 28 m after the smoother that knows the law, at 14 m a step: 0.40 of it is left
      MARKED: the noise came from a test's generator and protects nobody
    """

    points: Points
    anchors: npt.NDArray[np.bool_]
    mechanism: NextPoint
    marked: bool
    """True where a test's generator made the noise."""
    truth: Points
    raw: Points
    """As it was drawn: `points`, until they are smoothed."""

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """What this journey cost."""
        return self.mechanism.guarantee(len(self.points))

    def smoothed(self) -> ReleasedJourney:
        """What the smoother that knows the law makes of the released points: post-processing, at no cost, of the whole journey
        at once. It sees the released points alone; each length of steps that it tries counts as much as it makes them probable.
        Sent in their place, there is little left for others to take off.
        """
        if not len(self.raw):
            return self
        walks, evidence = zip(*expected_walks(self.raw, self.mechanism, strides(self.mechanism)), strict=True)
        return replace(self, points=np.average(walks, axis=0, weights=np.exp(np.array(evidence) - max(evidence))))

    @cached_property
    def attack(self) -> FilterAttack:
        """Every filter on the points, and that which knows the mechanism on what it drew, against the truth. Exact: for the owner
        alone.
        """
        found = filter_attack(self.truth, self.raw, law=self.mechanism)
        if self.points is self.raw:
            return found
        knowing = {name: error for name, error in found.after.items() if "knows the law" in name}
        again = filter_attack(self.truth, self.points)
        return FilterAttack(again.before, {**again.after, **knowing})

    def __str__(self) -> str:
        marked = "\n  MARKED: the noise came from a test's generator and protects nobody" if self.marked else ""
        attack = f"\n  for its owner alone, from the true journey:\n  {self.attack}" if len(self.points) else ""
        return f"{len(self.points)} points, {int(self.anchors.sum())} of them anchors: {self.guarantee}{attack}{marked}"

    def __repr__(self) -> str:
        return f"ReleasedJourney({len(self.points)} points by {self.mechanism!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise InvalidParameter(
            "A released journey was not pickled", why="the object knows the true journey", instead="released.points"
        )


class _Rings:
    """The exponential mechanism on rings and headings. A ring stands among the candidates 2i + 1 times: once for each area."""

    def __init__(self, epsilon: Fraction, share: Fraction, reach: float, rings: int, headings: int) -> None:
        self.reach, self.rings, self.headings = reach, rings, headings
        self.distances = (np.arange(rings) + 0.5) * reach / rings
        self.directions = (np.arange(headings) + 0.5) * 2 * np.pi / headings
        self.weights = 2 * np.arange(rings) + 1
        self.ring = Exponential(epsilon=share * epsilon, sensitivity=rings - 1)
        # Twice its ε: the general proof pays half of it for a normaliser that differs, and on a circle it does not.
        self.turn = Exponential(epsilon=2 * (1 - share) * epsilon, sensitivity=headings // 2)

    def draw(self, distance: float, heading: float, n: int, random: Random) -> tuple[Floats, Floats]:
        areas = np.repeat(np.arange(self.rings), self.weights)
        rings = areas[self.ring.sample(n, -np.abs(areas - self._ring(np.array([distance]))), random=random)]
        turns = self.turn.sample(n, -self._turns(self._heading(np.array([heading])))[0], random=random)
        return self.distances[rings], self.directions[turns]

    def distance_law(self, distances: Floats) -> Floats:
        rings = np.arange(self.rings)
        law = self.weights * np.exp(-float(self.ring.rate) * np.abs(rings - rings[:, None]))
        return np.asarray((law / law.sum(axis=1, keepdims=True))[self._ring(distances)])

    def heading_law(self, headings: Floats) -> Floats:
        law = np.exp(-float(self.turn.rate) * self._turns(np.arange(self.headings)))
        return np.asarray((law / law.sum(axis=1, keepdims=True))[self._heading(headings)])

    def _ring(self, distances: Floats) -> npt.NDArray[np.int64]:
        return np.minimum(distances / self.reach * self.rings, self.rings - 1).astype(np.int64)

    def _heading(self, headings: Floats) -> npt.NDArray[np.int64]:
        return np.floor(headings / (2 * np.pi) * self.headings).astype(np.int64) % self.headings

    def _turns(self, headings: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """From each of these headings to every heading, the shorter way round."""
        turned = np.abs(np.arange(self.headings) - headings[:, None])
        return np.asarray(np.minimum(turned, self.headings - turned))


class _Windows:
    """The optimal piecewise mechanism for the distance, the circular one for the direction; see `local` for their proofs."""

    def __init__(self, epsilon: Fraction, share: Fraction, reach: float, rings: int, headings: int) -> None:
        self.distance = OptimalPiecewise(0, 1, share * epsilon, grid=rings)
        self.heading = CircularPiecewise(0, 1, (1 - share) * epsilon, grid=headings)
        self.reach, cells = reach, self.distance.window.outputs
        self.distances = (np.arange(cells) + 0.5) * reach / cells
        self.directions = np.arange(headings) * 2 * np.pi / headings

    def draw(self, distance: float, heading: float, n: int, random: Random) -> tuple[Floats, Floats]:
        away = self.distance.randomize([min(distance / self.reach, 1.0)] * n, random=random)
        turned = self.heading.randomize([heading / (2 * np.pi) % 1.0] * n, random=random)
        return self.distances[away.astype(np.int64)], self.directions[turned.astype(np.int64)]

    def distance_law(self, distances: Floats) -> Floats:
        inner = self.distance.interval
        places = np.clip((np.minimum(distances / self.reach, 1.0) - inner.low) / inner.span, 0, 1) * self.distance.grid
        return _between(self.distance.window.forward(np.eye(self.distance.grid + 1)), places)

    def heading_law(self, headings: Floats) -> Floats:
        law = self.heading.window.forward(np.eye(self.heading.grid))
        return _between(np.concatenate([law, law[:1]]), headings / (2 * np.pi) % 1.0 * self.heading.grid)


def _between(law: Floats, places: Floats) -> Floats:
    """The rows at places between two rows: a coin takes a number to one of the two points of the grid next to it."""
    first = np.minimum(places.astype(np.int64), len(law) - 2)
    part = (places - first)[:, None]
    return np.asarray((1 - part) * law[first] + part * law[first + 1])
