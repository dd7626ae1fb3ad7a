"""A count over three sites, audited as a whole on worst-case neighbours, a run a group.

Every group of the two worlds is one run: the same rows at two sites, and one row more or less at the third, through session,
sites, noise in shares, masks and ledgers. The audit's confidence is 1 − 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.noise import Random
from cloister.noise.shares import NoiseShares
from cloister.together import JointTable, Site, site
from tests.tiers import by_day_and_night

pytestmark = pytest.mark.statistical

DAY, NIGHT = 20_000, 200_000
ONE_MORE, AS_MANY = (2, 1, 1), (1, 1, 1)


def counts(budget: Any, spend: Any) -> Callable[[tuple[int, ...], int, Random], Any]:
    """A mechanism for the auditor: the noisy count of each group over sites with so many rows of it."""

    def mechanism(held: tuple[int, ...], n: int, random: Random) -> Any:
        columns = {"g": cl.Integer(0, n - 1)}
        sites = []
        for place, rows in enumerate(held):
            table = cl.PrivateTable({"g": np.repeat(np.arange(n), rows)}, columns=columns)
            drawn = Random.deterministic(random.word() >> 1)
            sites.append(Site(f"site {place}", table, budget=cl.ZCDP(100), random=drawn))
        joint = JointTable(sites, columns, overlap="none", missing=0)
        with cl.Session({"t": joint}, budget=budget, random=random) as session:
            return np.array(session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", spend=spend).to_pydict()["n"])

    return mechanism


@by_day_and_night("runs", DAY, NIGHT)
def test_a_joint_count_keeps_its_epsilon(runs: int) -> None:
    result = audit(counts(cl.PureDP(1), 1), ONE_MORE, AS_MANY, runs=runs, random=Random.deterministic(61))
    assert not result.contradicts(cl.PureDP(1)), result
    assert result.epsilon > 0.7, result


@by_day_and_night("runs", DAY, NIGHT)
def test_a_joint_count_keeps_its_rho(runs: int) -> None:
    promise = cl.ZCDP("0.04")
    result = audit(counts(promise, "0.04"), ONE_MORE, AS_MANY, runs=runs, against=promise, random=Random.deterministic(62))
    assert not result.contradicts(promise), result


@by_day_and_night("runs", DAY, NIGHT)
def test_shares_for_more_sites_than_there_are_are_caught(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """BROKEN ON PURPOSE: three sites add a sixth of the noise each."""

    def too_small(round_: Any, request: Any) -> Iterator[tuple[Any, NoiseShares]]:
        for each in request.integers:
            yield each, NoiseShares(law=each.law, parties=6, honest=6)

    monkeypatch.setattr(site, "shares_of", too_small)
    result = audit(counts(cl.PureDP(1), 1), ONE_MORE, AS_MANY, runs=runs, random=Random.deterministic(63))
    assert result.contradicts(cl.PureDP(1)), result
