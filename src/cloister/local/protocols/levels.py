"""People who choose their own ε: a group for each level, and the groups' own estimates added."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.local.frequency.estimates import Estimate, add_estimates, beyond, half_width
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.protocols.coins import check_epsilon
from cloister.noise import Random
from cloister.privacy import Exact, PureDP, exact_positive, text_of

Floats = npt.NDArray[np.float64]

OUTSIDE = 1e-15
"""The probability of leaving out the share that all groups have, where a p-value is the largest of those of some shares."""
_SHARES = 33
_LEAST = 1e-15
"""Of the variance of a share: with a very large ε, coins have none that a float could show."""


@dataclass(frozen=True, kw_only=True)
class Homogeneity:
    """Do the groups answer alike? For each value, the shares of each two groups are compared; those that differ most stand for
    all, and their p-value is multiplied by the number of comparisons (Bonferroni), so it holds however they depend.

    A difference is judged by the intervals of few reports (`half_width`), not by the normal law; and by the largest variance that
    a common share may give it, of all shares that the groups together do not rule out (Berger & Boos 1994, who add the
    probability, here 10⁻¹⁵, of ruling out the true one).

    A small `p_value` says that the choice of a level goes with the answer. A large one proves nothing: noise hides much.
    """

    statistic: float
    """The square of the largest difference, in variances."""
    degrees: int
    p_value: float
    value: Any
    """The value that differs most between groups."""


@dataclass(frozen=True, kw_only=True)
class LevelEstimate:
    """Everybody's counts, and each group's own.

    >>> from cloister.local import DirectEncoding, Levels
    >>> levels = Levels(lambda epsilon: DirectEncoding(["a", "b"], epsilon), [1, 2])
    >>> found = levels.estimate(levels.aggregate(levels.randomize(["a", "b", "a"], [1, 2, 2])))
    >>> isinstance(found, LevelEstimate), found.total.n, [group.n for group in found.groups.values()]
    (True, 3, [1, 2])
    """

    total: Estimate
    groups: Mapping[Fraction, Estimate]
    homogeneity: Homogeneity | None
    """None where fewer than two groups answered."""


class Levels:
    """One question, offered at several ε; each respondent picks one of them.

    Guarantee: each report is ε-locally private for the ε that its sender chose. The level itself is sent in clear. If people
    choose it before they see the question, it can't depend on the answer, and tells nothing of it. If they choose it
    afterwards, it may tell a lot, and no ε bounds that: where those who say yes choose the strict level four times as often
    as others, seeing the level is worth ln 4 on top.

    Estimates: the groups' own counts are added. That is right whoever chooses which level. Weighting groups by inverse
    variance treats each as a sample of all, which is wrong where the choice goes with the answer; `inverse_variance`
    does it only when told that levels were assigned at random.

    >>> from cloister.local import RandomizedResponse
    >>> levels = Levels(lambda epsilon: RandomizedResponse(epsilon=epsilon), ["0.5", 2])
    >>> reports = levels.randomize([True, False, True, True], ["0.5", 2, 2, 2])
    >>> {float(level): len(each) for level, each in reports.items()}
    {0.5: 1, 2.0: 3}
    >>> levels.estimate(levels.aggregate(reports)).total.n
    4
    """

    def __init__(self, make: Callable[[Fraction], FrequencyOracle], levels: Iterable[Exact]) -> None:
        chosen = sorted(check_epsilon(level, "level") for level in levels)
        if not chosen or len(set(chosen)) != len(chosen):
            raise InvalidParameter("The levels are invalid", why="none, or some twice", instead='levels=["0.5", 1, 2]')
        self.oracles = {level: make(level) for level in chosen}
        if any(oracle.epsilon != level for level, oracle in self.oracles.items()):
            raise InvalidParameter(
                "make= is invalid", why="its oracles have another ε", instead="lambda epsilon: DirectEncoding(domain, epsilon)"
            )
        if len({tuple(oracle.domain.values) for oracle in self.oracles.values()}) != 1:
            raise InvalidParameter("make= is invalid", why="its oracles have different domains", instead="one domain for all")

    def randomize(
        self, values: Iterable[Any], levels: Iterable[Exact], *, random: Random | None = None
    ) -> dict[Fraction, Reports]:
        """Reports by level. One person's machine calls the oracle of the level; this is for many people at once."""
        listed, asked = list(values), [self._level(level) for level in levels]
        if len(listed) != len(asked):
            raise InvalidParameter("The values are invalid", why="each needs one level", instead="as many levels as values")
        return {
            level: oracle.randomize([value for value, own in zip(listed, asked, strict=True) if own == level], random=random)
            for level, oracle in self.oracles.items()
        }

    def aggregate(self, reports: Mapping[Any, Any]) -> dict[Fraction, Sketch]:
        """A sketch for each level: what is sent under a level is counted with it."""
        given = {self._level(level): each for level, each in reports.items()}
        return {level: oracle.aggregate(given.get(level, [])) for level, oracle in self.oracles.items()}

    def estimate(self, sketches: Mapping[Any, Sketch]) -> LevelEstimate:
        """The sum of the groups' estimates, the groups, and whether they seem to answer alike."""
        groups = self._groups(sketches)
        return LevelEstimate(total=add_estimates(*groups.values()), groups=groups, homogeneity=homogeneity(groups))

    def inverse_variance(self, sketches: Mapping[Any, Sketch], *, assigned_at_random: bool = False) -> Estimate:
        """Everybody's counts, if each group is a random sample of all: shares are averaged, with weights that are the inverse
        variances of a share that nobody adds to, which are public.

        Assumption: levels were assigned at random, not chosen. Otherwise the result is biased without bound: with a truth of
        0.300 the sum found 0.302 in one trial, inverse variance 0.099. Variances include which people fell into which group.

        >>> from cloister.local import RandomizedResponse
        >>> levels = Levels(lambda epsilon: RandomizedResponse(epsilon=epsilon), ["0.5", 2])
        >>> sketches = levels.aggregate(levels.randomize([True, False] * 50, ["0.5", "0.5", 2, 2] * 25))
        >>> levels.inverse_variance(sketches, assigned_at_random=True).n
        100
        """
        if assigned_at_random is not True:
            raise InvalidParameter(
                "Weighting by inverse variance is invalid",
                why="it is biased where people chose their level, since the choice may go with the answer",
                instead="estimate(sketches).total; or assigned_at_random=True, if a lot decided who had which level",
            )
        groups = {level: group for level, group in self._groups(sketches).items() if group.n}
        n = sum(group.n for group in groups.values())
        if not groups:
            return add_estimates(*self._groups(sketches).values())
        sizes = np.array([group.n for group in groups.values()], dtype=np.float64)
        public = np.array([self.oracles[level].variance(1) for level in groups])
        weights = (sizes / public) / (sizes / public).sum()
        frequencies = weights @ np.stack([group.frequencies for group in groups.values()])
        coins = (weights / sizes) ** 2 @ np.stack([group.variances for group in groups.values()])
        shares = np.clip(frequencies, 0.0, 1.0)
        falling = shares * (1 - shares) * max(0.0, float((weights**2 / sizes).sum()) - 1 / n)
        values = next(iter(groups.values())).values
        reach = n * weights / sizes  # of one report, by the group that it is in; and how the group's own variance may change
        return Estimate(
            counts=n * frequencies,
            n=n,
            variances=n**2 * (coins + falling),
            values=values,
            part=max(float(each) * max(group.part, 1.0) for each, group in zip(reach, groups.values(), strict=True)),
            slope=max(float(each) * (group.slope + 1) for each, group in zip(reach, groups.values(), strict=True)),
        )

    def _groups(self, sketches: Mapping[Any, Sketch]) -> dict[Fraction, Estimate]:
        given = {self._level(level): sketch for level, sketch in sketches.items()}
        if set(given) != set(self.oracles):
            raise InvalidParameter("The sketches are invalid", why="each level has one", instead="levels.aggregate(reports)")
        return {level: oracle.estimate(given[level]) for level, oracle in self.oracles.items()}

    def _level(self, level: Exact) -> Fraction:
        number = check_epsilon(level, "level")
        if number not in self.oracles:
            offered = ", ".join(text_of(each) for each in self.oracles)
            raise InvalidParameter("A level is invalid", why=f"those offered are {offered}", instead="one of these")
        return number


def homogeneity(groups: Mapping[Fraction, Estimate]) -> Homogeneity | None:
    """The test of `Homogeneity` on groups' estimates; None where fewer than two have respondents."""
    answered = [group for group in groups.values() if group.n]
    if len(answered) < 2:
        return None
    allowed = _allowed(answered)
    chances, statistics = [], []
    for one, other in combinations(answered, 2):
        apart = np.abs(one.frequencies - other.frequencies)
        each = np.stack([_of_share(group, allowed) for group in (one, other)])
        both = np.maximum(each.sum(axis=0), _LEAST)
        variances = both.max(axis=0)
        parts = np.array([[[max(group.part, 1.0) / group.n]] for group in (one, other)])
        statistics.append(apart**2 / variances)
        # third and fourth cumulants add up: (B₁²σ₁² + B₂²σ₂²)/σ² is a B² for both
        chances.append(beyond(apart, variances, part=np.sqrt(((parts**2 * each).sum(axis=0) / both).max(axis=0))))
    p_values, values = np.min(chances, axis=0), answered[0].values
    worst = int(np.argmin(p_values - 1e-12 * np.max(statistics, axis=0)))
    p_value = min(1.0, len(chances) * len(values) * float(p_values[worst]) + OUTSIDE)
    statistic = float(np.max(statistics, axis=0)[worst])
    return Homogeneity(statistic=statistic, degrees=len(answered) - 1, p_value=p_value, value=values[worst])


def _allowed(groups: list[Estimate]) -> Floats:
    """Shares that all groups may have, a column a value: those that are not `OUTSIDE` what the groups say together."""
    n = sum(group.n for group in groups)
    counts = np.sum([group.counts for group in groups], axis=0)
    shares = np.clip(counts / n, 0.0, 1.0)
    variances = np.sum([group.variances for group in groups], axis=0) + n * shares * (1 - shares)
    slope = max(group.slope for group in groups) + 1.0
    wide = half_width(1 - Fraction(OUTSIDE), variances, part=max(1.0, *(group.part for group in groups)), slope=slope) / n
    return np.linspace(np.clip(counts / n - wide, 0.0, 1.0), np.clip(counts / n + wide, 0.0, 1.0), _SHARES)


def _of_share(group: Estimate, shares: Floats) -> Floats:
    """The variance of a group's estimated share, where these are the shares among all who may be in it: that of the coins, and
    that of who is."""
    held = np.clip(group.frequencies, 0.0, 1.0)
    coins = group.variances + group.slope * group.n * np.abs(shares - held)
    return np.asarray(coins / group.n**2 + shares * (1 - shares) / group.n, dtype=np.float64)


def spending(levels: Mapping[str, Exact], *, cap: Exact | None = None) -> PureDP:
    """What a respondent's levels add up to over all questions: to be shown before anything is sent, and kept under a cap.

    Guarantee: all reports of one respondent together are (Σε)-locally private (sequential composition).

    >>> str(spending({"smoking": "0.5", "income": 2}, cap=3))
    'ε = 2.5'
    """
    total = sum((check_epsilon(level, "level") for level in levels.values()), Fraction(0))
    most = None if cap is None else exact_positive(cap, "cap")
    if most is not None and total > most:
        raise BudgetExceeded(
            f"ε = {text_of(total)} in all was refused",
            why=f"this survey lets nobody give more than ε = {text_of(most)}",
            instead="lower levels, or no answer to some questions",
        )
    return PureDP(total)
