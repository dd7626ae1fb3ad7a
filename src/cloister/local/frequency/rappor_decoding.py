"""From RAPPOR's counts of bits to counts of candidates, by regression on their Bloom bits. All of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.lazily import needing
from cloister.local.frequency.estimates import SURE, Estimate

if TYPE_CHECKING:
    from cloister.local.frequency.rappor import RAPPOR
    from cloister.local.protocols.protocol import Sketch

Floats = npt.NDArray[np.float64]

_METHODS = ("unbiased", "nonnegative", "lasso")
_WIDE = 4.0
_ALIKE = 1e-9
_LARGEST = 1 << 27


def decode(rappor: RAPPOR, sketch: Sketch, candidates: Iterable[str], *, method: str = "unbiased") -> Estimate:
    """How many people hold each candidate, by weighted least squares.

    - "unbiased": ordinary least squares: unbiased where nobody holds a text that is not listed (others' bits fall on all
      candidates, and lift them a little).
    - "nonnegative": none below 0 (needs scipy): less error where most candidates are rare, biased upwards for those.
    - "lasso": candidates that stand out are chosen by the lasso (needs scikit-learn), and estimated by least squares alone; the
      others are 0. For lists longer than there are bits. Erlingsson, Pihur & Korolova (2014) decode so.

    Variances are of least squares, for one report a person: of the coins, and of how a candidate's people fell into cohorts.

    Margins of the lasso don't take its choice for granted. A candidate that was not chosen may have as many people as its own
    bits alone speak for: whoever holds something else can only add to these. One that was chosen may have those taken off who
    hold candidates that were not, as far as these share its bits and as many as there can be. (Of texts that are not listed
    nothing is known: margins of all methods suppose that few hold them.)

    >>> from cloister.local.frequency.rappor import RAPPOR
    >>> from cloister.noise import Random
    >>> rappor = RAPPOR.for_epsilon(4, 8, bits=32, cohorts=8)
    >>> reports = rappor.randomize(["a.org"] * 6000 + ["b.org"] * 4000, random=Random.deterministic(1))
    >>> estimate = decode(rappor, rappor.aggregate(reports), ["a.org", "b.org", "c.org"])
    >>> bool((abs(estimate.counts - [6000, 4000, 0]) < estimate.margin(0.9999)).all())
    True
    """
    if method not in _METHODS:
        raise InvalidParameter("method is invalid", why=f"it is one of {', '.join(_METHODS)}", instead='method="unbiased"')
    listed = tuple(listed_texts(candidates))
    if not listed or len(set(listed)) != len(listed):
        raise InvalidParameter("The candidates are invalid", why="none, or some twice", instead="each candidate once")
    if rappor.cohorts * rappor.bits * len(listed) > _LARGEST:
        raise InvalidParameter(
            "The candidates were not decoded",
            why="their Bloom bits would not fit in memory",
            instead=f"at most {_LARGEST // (rappor.cohorts * rappor.bits)} candidates at once",
        )
    problem = _problem(rappor, sketch, listed)
    if problem is None:  # no report yet
        return Estimate(counts=np.zeros(len(listed)), n=0, variances=np.zeros(len(listed)), values=listed)
    if method == "lasso":
        return replace(_chosen(problem, sketch.n), values=listed)
    counts, variances, part = _least_squares(problem)
    if method == "nonnegative":
        counts = _nonnegative(problem)
    return Estimate(counts=counts, n=sketch.n, variances=variances, values=listed, part=part)


def listed_texts(given: Any) -> list[str]:
    """The texts of a list: of one text in its place, each letter would be one."""
    listed: list[Any] = [None] if isinstance(given, str | bytes) or not isinstance(given, Iterable) else list(given)
    if not all(isinstance(each, str) for each in listed):
        raise InvalidParameter("The values are invalid", why="RAPPOR is for texts, in a list", instead='["example.org"]')
    return listed


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """Rows are the bits of all cohorts that have reports; they are scaled to about the same variance."""

    design: Floats
    """cohorts × bits × candidates: the share of a candidate's people who set the bit, divided by the row's scale."""
    seen: Floats
    """cohorts × bits: people who seem to set the bit, divided by the row's scale."""
    scales: Floats
    """For each cohort, the root of its number of reports."""
    probabilities: tuple[float, float]

    def only(self, chosen: npt.NDArray[np.int64]) -> _Problem:
        return replace(self, design=self.design[:, :, chosen])

    @property
    def flat(self) -> tuple[Floats, Floats]:
        return self.design.reshape(-1, self.design.shape[2]), self.seen.ravel()


def _problem(rappor: RAPPOR, sketch: Sketch, candidates: tuple[str, ...]) -> _Problem | None:
    sizes = sketch.counts[:, 0].astype(np.float64)
    present = np.flatnonzero(sizes)
    blooms = {cohort: [rappor.bloom(text, cohort) for text in candidates] for cohort in present.tolist()}
    if not present.size:
        return None
    design = np.zeros((present.size, rappor.bits, len(candidates)))
    for row, cohort in enumerate(present.tolist()):
        for column, places in enumerate(blooms[cohort]):
            design[row, places, column] = sizes[cohort] / sketch.n
    high, low = rappor.probabilities
    sizes = sizes[present]
    seen = (sketch.counts[present, 1:] - low * sizes[:, None]) / (high - low)
    scales = np.sqrt(sizes)
    return _Problem(design=design / scales[:, None, None], seen=seen / scales[:, None], scales=scales, probabilities=(high, low))


def _least_squares(problem: _Problem) -> tuple[Floats, Floats, float]:
    """By the normal equations: columns are nearly orthogonal, or else candidates can't be told apart. The counts, variances,
    and by how much one of the draws that they are sums of moves a count at the most: a bit of a report, or a person's cohort."""
    design, seen = problem.flat
    squares = design.T @ design
    if not _told_apart(squares):
        raise InvalidParameter(
            "The candidates were not decoded",
            why="there are more of them than the bits of all cohorts can tell apart",
            instead='method="lasso", fewer candidates, or a RAPPOR of more cohorts',
        )
    inverse: Floats = np.asarray(np.linalg.solve(squares, design.T), dtype=np.float64)
    counts = inverse @ seen
    return counts, *_variances(problem, inverse, counts)


def _told_apart(squares: Floats) -> bool:
    spectrum = np.linalg.eigvalsh(squares)
    return bool(spectrum[0] > _ALIKE * spectrum[-1])


def _apart(design: Floats, order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of candidates in this order those that the bits tell from the ones before: with few cohorts the lasso may choose others."""
    if not len(order) or _told_apart(design[:, order].T @ design[:, order]):
        return np.sort(order)
    kept: list[int] = []
    for place in order.tolist():
        some = design[:, [*kept, place]]
        if _told_apart(some.T @ some):
            kept.append(place)
    return np.sort(np.array(kept, dtype=np.int64))


def _variances(problem: _Problem, inverse: Floats, counts: Floats) -> tuple[Floats, float]:
    """Of least squares. A bit of N reports, of whom B set it, has variance (B·q*(1 − q*) + (N − B)·p*(1 − p*))/(q* − p*)²; and of
    a candidate's people a share of about 1/cohorts falls into each cohort, which moves its bits there together."""
    high, low = problem.probabilities
    sizes = problem.scales**2
    holders = np.maximum(counts, 0.0)
    fitted = np.clip((problem.design @ holders) * problem.scales[:, None], 0.0, sizes[:, None])
    coins = (fitted * high * (1 - high) + (sizes[:, None] - fitted) * low * (1 - low)) / (high - low) ** 2
    total = inverse**2 @ (coins / sizes[:, None]).ravel()
    parts = inverse.reshape(inverse.shape[0], *problem.seen.shape)
    moved = float(np.abs(parts / problem.scales[:, None]).max()) / (high - low)
    share = sizes / sizes.sum()
    mean = np.eye(len(counts))  # Σ shares·reaches is `inverse` times the design: 1
    for cohort, part in enumerate(share):
        reach = parts[:, cohort, :] @ problem.design[cohort] / part
        total += part * ((reach - mean) ** 2 @ holders)
        moved = max(moved, float(np.abs(reach - mean).max()))
    return np.asarray(total, dtype=np.float64), moved


def _nonnegative(problem: _Problem) -> Floats:
    with needing('method="nonnegative" was not run', "scipy is not installed", "learn"):
        from scipy.optimize import nnls
    design, seen = problem.flat
    return np.asarray(nnls(design, seen)[0], dtype=np.float64)


def _chosen(problem: _Problem, n: int) -> Estimate:
    """The lasso's penalty is where noise alone would seldom let a candidate in: several deviations of a column's noise."""
    with needing('method="lasso" was not run', "scikit-learn is not installed", "learn"):
        from sklearn.linear_model import Lasso
    design, seen = problem.flat
    lengths = np.sqrt((design**2).sum(axis=0))
    high, low = problem.probabilities
    noise = np.sqrt(low * (1 - low)) / (high - low)
    model = Lasso(alpha=_WIDE * noise / len(seen), positive=True, fit_intercept=False, max_iter=10_000)
    model.fit(design / lengths, seen)
    order = np.argsort(-model.coef_, kind="stable")
    chosen = _apart(design, order[: min(int((model.coef_ > 0).sum()), design.shape[0])])
    counts, (variances, bias, part) = np.zeros(design.shape[1]), _alone(problem, n)
    if chosen.size:
        some = problem.only(chosen)
        counts[chosen], variances[chosen], moved = _least_squares(some)
        part = max(part, moved)
        bias[chosen] = _of_others(problem, chosen, n - float(counts[chosen].sum()), float(variances[chosen].sum()), n)
    return Estimate(counts=counts, n=n, variances=variances, values=(), part=part, bias=bias, raw=counts)


def _alone(problem: _Problem, n: int) -> tuple[Floats, Floats, float]:
    """What the bits of each candidate say by themselves: the variance of its count, the count, and by how much one report moves
    it. Variances are the largest that coins may have, and that of people who fall into cohorts by chance: n/4 at most."""
    design, seen = problem.flat
    inverse = design / np.maximum((design**2).sum(axis=0), 1e-300)
    high, low = problem.probabilities
    coins = max(high * (1 - high), low * (1 - low)) / (high - low) ** 2
    by_cohort = inverse.reshape(*problem.design.shape).sum(axis=1) / problem.scales[:, None] / (high - low)
    return (inverse**2).sum(axis=0) * coins + n / 4, np.maximum(inverse.T @ seen, 0.0), float(by_cohort.max())


def _of_others(problem: _Problem, chosen: npt.NDArray[np.int64], left: float, variance: float, n: int) -> Floats:
    """By how much people of candidates that were not chosen may have moved the counts of those that were. They are as many as are
    left by these counts, and by what they added to these themselves; n at most."""
    design, _ = problem.flat
    some, others = design[:, chosen], np.delete(design, chosen, axis=1)
    if not others.shape[1]:
        return np.zeros(len(chosen))
    moved = np.linalg.solve(some.T @ some, some.T @ others)
    added = float(np.clip(moved.sum(axis=0), 0.0, None).max())
    sure = max(left, 0.0) + SURE * math.sqrt(variance * len(chosen))
    rest = min(float(n), sure / (1 - added)) if added < 1 else float(n)
    return np.asarray(np.abs(moved).max(axis=1) * rest, dtype=np.float64)
