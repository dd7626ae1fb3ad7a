"""Scatters of rows that several owners have: the same as of all rows in one table, for one charge at each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister import Category, PrivateTable, PureDP, Real, Session
from cloister.compress import DCA, PCA, Scatter
from cloister.compress.drawing import normal
from cloister.errors import CloisterError
from cloister.noise import Random
from cloister.together import JointTable, PooledTable, Site
from cloister.together.following import followed

NAMES = ("north", "south", "west")
COLUMNS = {"age": Real(-1, 1, step="0.001"), "pay": Real(-1, 1, step="0.001"), "ill": Category([0, 1])}


def rows_of(turn: int) -> dict[str, Any]:
    drawn = normal(400, Random.deterministic(turn)).reshape(200, 2) * [0.2, 0.1]
    ill = (np.arange(200) + turn) % 2
    values = np.clip(np.round(drawn + np.outer(ill - 0.5, [0.2, 0.6]), 3), -1, 1)
    return {"age": values[:, 0], "pay": values[:, 1], "ill": ill}


def tables(kind: str, budget: int = 10**6) -> tuple[dict[str, Any], list[Site]]:
    own = {name: PrivateTable(rows_of(turn), columns=COLUMNS) for turn, name in enumerate(NAMES)}
    if kind == "pooled":
        return {**own, "all": PooledTable(own)}, []
    sites = [Site(name, table, budget=PureDP(budget)) for name, table in own.items()]
    return {"all": JointTable(sites, COLUMNS, overlap="none")}, sites


@pytest.mark.parametrize("kind", ["pooled", "joint"])
def test_they_are_those_of_all_rows_and_every_owner_is_charged(kind: str) -> None:
    known, sites = tables(kind)
    heard = list[str]()
    with Session(known, budget=PureDP(10**6)) as session, followed(heard.append):
        found = Scatter.measure(session, "all", spend=10**5, columns=["age", "pay"], utility="ill")
        spent = [session.spent_by[name] for name in NAMES] if kind == "pooled" else [site.spent for site in sites]
    assert set(heard) == set(NAMES)
    assert [str(each) for each in spent] == ["ε = 100000"] * 3
    assert str(found.cost) == "ε = 100000"
    rows = [rows_of(turn) for turn in range(3)]
    X = np.column_stack([np.concatenate([each[name] for each in rows]) for name in ("age", "pay")])
    exact = Scatter.of_rows(X, np.concatenate([each["ill"] for each in rows]))
    for name in ("mean", "total", "utility"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=0.01, atol=0.1)
    for made in (PCA(1), DCA(1)):
        noisy, plain = (type(made)(1).fit_scatter(each) for each in (found, exact))
        assert abs(noisy.components_[0] @ plain.components_[0]) > 0.9999
        assert noisy.promise_ == "directions: ε = 100000; projected rows: none"


def test_a_site_that_says_no_is_not_charged() -> None:
    known, sites = tables("joint", budget=1)
    with Session(known, budget=PureDP(10**6)) as session, pytest.raises(CloisterError):
        Scatter.measure(session, "all", spend=2, columns=["age", "pay"])
    assert [str(site.spent) for site in sites] == ["ε = 0"] * 3
