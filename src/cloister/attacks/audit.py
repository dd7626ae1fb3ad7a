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
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.attacks.binomial import lower_bound, upper_bound
from cloister.attacks.events import best_event, score_of
from cloister.attacks.features import features_of
from cloister.attacks.result import AuditResult, check_target
from cloister.attacks.runs import Array, outputs, runner_of
from cloister.errors import InvalidParameter
from cloister.privacy.guarantee import Guarantee
from cloister.privacy.rational import Exact, exact_probability, text_of

if TYPE_CHECKING:
    from cloister.noise import Random

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
            f"confidence={text_of(sure)} is invalid",
            why="a confidence is at least one half",
            instead='confidence="0.999999999"',
        )
    target_delta, target_epsilon = check_target(delta, epsilon, against)
    source = default_random() if random is None else random
    run = runner_of(mechanism)
    error = (1 - sure) / 2
    log_error = -math.log(error)

    quarter = runs // 4
    labels: dict[int, str] = {}
    learn = outputs(run, left, quarter, source, labels), outputs(run, right, quarter, source, labels)
    _same_shape(*learn)
    choose = outputs(run, left, quarter, source, labels), outputs(run, right, quarter, source, labels)
    score = score_of(delta=target_delta, epsilon=target_epsilon)
    found = [best_event(each, learn, choose, score=score, log_error=log_error) for each in features_of(*learn, features, labels)]
    event = max(found, key=lambda each: each.score)
    del learn, choose

    measured = runs - 2 * quarter
    worlds = (left, right) if event.likelier == "left" else (right, left)
    hits = [sum(event.count(outputs(run, world, n, source, labels)) for n in _batches(measured)) for world in worlds]
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


def _batches(n: int) -> list[int]:
    return [min(_BATCH, n - start) for start in range(0, n, _BATCH)]


def _same_shape(left: Array, right: Array) -> None:
    if left.shape != right.shape:
        raise InvalidParameter(
            "Rows of different lengths are invalid",
            why="the shape of an output must not depend on the data; where it does, that alone tells the worlds apart",
            instead="pad the rows, or return tuples, which are compared whole",
        )
