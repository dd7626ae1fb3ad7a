"""A lower bound on what a mechanism gives away, with a confidence that is proved: run it in two worlds and tell them apart.

A guarantee says of *every* event how much more likely one world may make it than its neighbour. So one event that breaks the
ratio refutes it, and estimating that event's two probabilities from independent runs needs nothing but coin-tossing statistics.
This is the approach of StatDP (Ding, Wang, Wang, Zhang & Kifer 2018) and DP-Sniffer/DP-Opt (Bichsel, Gehr, Drachsler-Cohen,
Tsankov & Vechev 2018), with many more events compared at once.

**What is claimed.** Let p and q be the true probabilities of the reported event in the two worlds. With probability at least
`confidence` over the runs, p is at least `likely` and q is at most `unlikely`; then every bound of the result holds.

*Proof.* A quarter of the runs of each world teaches the cells, a second quarter chooses one event out of all candidates, and
the other half, independent of both, counts it. Given the choice, the two counts are binomial. Each Clopper–Pearson bound fails
with probability at most (1 − confidence)/2; add the two. ∎

An audit can show a promise to be broken; it can't show that one is kept: it sees only the worlds, events and run lengths that
were tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.binomial import lower_bound, upper_bound
from cloister.attacks.cells import Cells
from cloister.attacks.features import Feature, features_of
from cloister.attacks.result import AuditResult, check_target, rho_of
from cloister.attacks.runs import Array, encoded, raw_outputs, runner_of, scheme_of
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy import Exact, Guarantee, exact_probability, text_of

_FEWEST = 400
_BATCH = 1 << 18
_NONE: Mapping[str, Callable[[Array], Any]] = {}


def audit(
    mechanism: object,
    left: Any,
    right: Any,
    *,
    runs: int = 1_000_000,
    delta: Exact = 0,
    epsilon: Exact | None = None,
    against: Guarantee | None = None,
    confidence: Exact = "0.999999999",
    features: Mapping[str, Callable[[Array], Any]] = _NONE,
    random: Random | None = None,
) -> AuditResult:
    """A lower confidence bound on ε (at a δ), on δ (at an ε), or on what a stated guarantee hides, from `runs` runs in each
    world.

    Parameters
    ----------
    mechanism
        What is audited: a callable `(data, n, random) -> n outputs` of n independent runs, each output a number, a text or a
        row of numbers; or a mechanism of `cloister.noise` that adds noise (`.sample`), or one that is asked a value at a time
        (`.release`).
    left, right
        The two worlds: neighbouring data sets, or the two values that a statistic takes on them.
    runs
        Runs in each world; half of them find an event, the other half measure it.
    delta, epsilon, against
        The question, at most one of them: the bound on ε at this δ (default 0); the bound on δ at this ε; or the event that
        best breaks this guarantee.
    confidence
        The probability with which the result's bounds hold.
    features
        More numbers to look at, by name: functions of the array of outputs.
    random
        The source of randomness; the process-wide secure one when left out.

    Examples
    --------
    Noise of scale 1 on a count that moves by 1 is ε = 1, and no more:

    >>> from cloister.noise import DiscreteLaplace, Random
    >>> from cloister.privacy import PureDP
    >>> found = audit(DiscreteLaplace(scale=1), 100, 101, runs=100_000, random=Random.deterministic(1))
    >>> 0.9 < found.epsilon <= 1, found.contradicts(PureDP(1)), found.contradicts(PureDP("0.5"))
    (True, False, True)
    """
    from cloister.noise import default_random

    if not isinstance(runs, int) or runs < _FEWEST:
        raise InvalidParameter(
            f"runs={runs!r} is invalid", why=f"an audit needs at least {_FEWEST} runs in each world", instead="runs=1_000_000"
        )
    sure = exact_probability(confidence, "confidence")
    if sure < Fraction(1, 2):
        raise InvalidParameter(
            f"confidence={text_of(sure)} is invalid", why="a confidence is at least one half", instead='confidence="0.999999999"'
        )
    target_delta, target_epsilon = check_target(delta, epsilon, against)
    source = default_random() if random is None else random
    run = runner_of(mechanism)
    error = (1 - sure) / 2
    log_error = -math.log(error)

    quarter = runs // 4
    labels: dict[int, str] = {}
    first = [raw_outputs(run, world, quarter, source) for world in (left, right)]
    if isinstance(first[0], np.ndarray) and isinstance(first[1], np.ndarray):
        _same_shape(first[0], first[1])
    scheme = scheme_of(*first)

    def outputs(world: Any, n: int) -> Array:
        return encoded(raw_outputs(run, world, n, source), scheme, labels)

    learn = encoded(first[0], scheme, labels), encoded(first[1], scheme, labels)
    del first
    choose = outputs(left, quarter), outputs(right, quarter)
    score = score_of(delta=target_delta, epsilon=target_epsilon)
    found = [best_event(each, learn, choose, score=score, log_error=log_error) for each in features_of(*learn, features, labels)]
    event = max(found, key=lambda each: each.score)
    del learn, choose

    measured = runs - 2 * quarter
    batches = [min(_BATCH, measured - start) for start in range(0, measured, _BATCH)]
    worlds = (left, right) if event.likelier == "left" else (right, left)
    hits = [sum(event.count(outputs(world, n)) for n in batches) for world in worlds]
    return AuditResult(
        event=event.text,
        likelier=event.likelier,
        likely=lower_bound(hits[0], measured, error=error),
        unlikely=upper_bound(hits[1], measured, error=error),
        confidence=sure,
        runs=runs,
        target_delta=target_delta if against is None or target_delta is not None else Fraction(0),
        target_epsilon=target_epsilon,
    )


def _same_shape(left: Array, right: Array) -> None:
    if left.shape != right.shape:
        raise InvalidParameter(
            "Rows of different lengths are invalid",
            why="the shape of an output must not depend on the data; where it does, that alone tells the worlds apart",
            instead="pad the rows, or return tuples, which are compared whole",
        )


Floats = NDArray[np.float64]
Score = Callable[[Floats, Floats], Floats]
_LEAST = 1e-12
_NAMED = 3
_LONG = 60


@dataclass(frozen=True)
class Event:
    """Some cells of one feature, thought more likely on one side."""

    feature: Feature
    cells: Cells
    members: NDArray[np.bool_]
    likelier: str
    text: str
    score: float

    def count(self, outputs: Array) -> int:
        """How many outputs are in the event."""
        return int(self.members[self.cells.index(self.feature.of(outputs))].sum())


def score_of(*, delta: Fraction | None, epsilon: Fraction | None) -> Score:
    """What is to be made large, as a function of a lower bound p of the one probability and an upper bound q of the other.

    >>> ratio = score_of(delta=Fraction(0), epsilon=None)
    >>> ratio(np.array([0.5]), np.array([0.25])).round(3).tolist()
    [0.693]
    """
    if epsilon is not None:
        with np.errstate(over="ignore"):
            factor = float(np.exp(float(epsilon)))
        return lambda p, q: p - np.minimum(factor, 1e300) * q
    if delta is None:
        return rho_of
    slack = float(delta)
    return lambda p, q: np.log(np.maximum(p - slack, _LEAST) / q)


def best_event(
    feature: Feature, learn: tuple[Array, Array], choose: tuple[Array, Array], *, score: Score, log_error: float
) -> Event:
    """The candidate of one feature whose bound promises most, by the counts of the second part.

    For one feature the candidates are: its single cells; everything below, or from, an edge; and the cells in order of their
    likelihood ratio, cut anywhere (by the Neyman–Pearson lemma the best event is such a set). The cells and their order are
    learned from one part of the runs and the candidates compared on a second part, so that a set which only looked good where
    it was found is not chosen; the bound itself is measured on a third part by `audit`."""
    seen = [feature.of(part) for part in learn]
    cells = Cells.learned(seen[0], seen[1], identity=feature.identity)
    ratio = cells.log_ratios(seen[0], seen[1])
    counts = [cells.counts(feature.of(part)) for part in choose]
    runs = len(choose[0])
    orders = {"single": np.arange(cells.number), "ratio": np.argsort(-ratio, kind="stable")}
    if not feature.identity:
        orders["value"] = np.arange(cells.number)
    best: tuple[float, str, str, str, int] = (-math.inf, "", "", "", 0)
    for kind, order in orders.items():
        left, right = counts[0][order], counts[1][order]
        if kind == "single":
            sets = [("first", left, right)]
        else:
            left, right = left.cumsum(), right.cumsum()
            sets = [("first", left, right), ("last", runs - left, runs - right)]
        for end, here, there in sets:
            for side, likely, unlikely in (("left", here, there), ("right", there, here)):
                promise = score(_lower(likely, runs, log_error), _upper(unlikely, runs, log_error))
                place = int(np.argmax(promise))
                if promise[place] > best[0]:
                    best = (float(promise[place]), kind, end, side, place)
    value, kind, end, side, place = best
    members = np.zeros(cells.number, dtype=bool)
    members[orders[kind][place : place + 1] if kind == "single" else orders[kind][: place + 1]] = True
    if end == "last":
        members = ~members
    if not feature.identity:
        members = _filled(members, counts[0] + counts[1] + cells.counts(seen[0]) + cells.counts(seen[1]) > 0)
    return Event(feature, cells, members, side, _words(feature, cells, members, side), value)


def _filled(members: NDArray[np.bool_], seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Cells where nothing was seen join the event where the nearest cells with outputs, on both sides, are in it."""
    known = np.flatnonzero(seen[:-1])
    if len(known) == 0:
        return members
    place = np.arange(len(members) - 1)
    after = np.searchsorted(known, place)
    upper = known[np.minimum(after, len(known) - 1)]
    lower = known[np.maximum(np.where(known[np.minimum(after, len(known) - 1)] == place, after, after - 1), 0)]
    return np.append(members[lower] & members[upper], members[-1] & seen[-1])


def _words(feature: Feature, cells: Cells, members: NDArray[np.bool_], side: str) -> str:
    inside = np.flatnonzero(members)
    if feature.identity:
        return f"{feature.name} is {_named(feature, cells, inside, side)}"
    missing = len(members) - 1
    numbers = inside[inside < missing]
    if len(numbers) and numbers[-1] - numbers[0] + 1 == len(numbers):
        text = f"{feature.name} {cells.text(int(numbers[0]), int(numbers[-1]))}"
        return f"{text}, or not a number" if members[missing] else text
    if len(numbers) == 0:
        return f"{feature.name} is not a number"
    return f"{feature.name} lies in those {len(inside)} of {cells.number} cells that are likeliest on the {side}"


def _named(feature: Feature, cells: Cells, inside: NDArray[np.intp], side: str) -> str:
    values = [int(cells.edges[cell - 1]) for cell in inside.tolist() if 0 < cell <= len(cells.edges)]
    known = [feature.labels[value] for value in values if value in feature.labels]
    if 0 < len(known) <= _NAMED:
        return " or ".join(text if len(text) <= _LONG else f"{text[:_LONG]}…" for text in sorted(known))
    return f"one of {len(inside)} that are likelier on the {side}"


def _lower(counts: NDArray[np.int64], runs: int, log_error: float) -> Floats:
    """About the bound that these counts would give. The measurement has twice the runs and gives a closer one; but a choice made
    as if these counts were as good as those would fall for whichever of the many candidates was lucky.
    """
    spread = np.sqrt(2 * counts * (1 - counts / runs) * log_error)
    lower: Floats = np.maximum(counts - spread, _LEAST) / runs
    return lower


def _upper(counts: NDArray[np.int64], runs: int, log_error: float) -> Floats:
    spread = np.sqrt(2 * counts * (1 - counts / runs) * log_error) + log_error
    upper: Floats = np.minimum(counts + spread, runs) / runs
    return upper
