"""Intervals cover what they claim on tables that were made to break them: by kind and by how many rows a cell has.

One cell of each kind and size is looked at in each draw of the noise, so the trials are independent. Refused is what would be
found less than once in a million runs if the claim held (a binomial tail, shared among all that is looked at). A twin whose
intervals have half the width is caught on each table.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import cloister as cl
from cloister.noise import DiscreteLaplace, Random
from cloister.session import Count, Question
from cloister.session.releases.uncertainty import Term
from cloister.synth import SyntheticModel
from cloister.synth.answer import Statistic
from cloister.synth.choosing import choose
from cloister.synth.measuring import measure, of_terms
from cloister.synth.mixture import independent
from cloister.synth.model import COMPLETE, INCOMPLETE
from cloister.synth.states import states_of
from tests.tiers import by_day_and_night

CLAIM, FALSE_ALARM = 0.95, 1e-6
CLASSES = ((0, 1), (1, 10), (10, 100), (100, np.inf))
Table = tuple[dict[str, list[Any]], dict[str, Any]]
BIT, FIVE = cl.Integer(0, 1), cl.Integer(0, 4)


def _drawn(n: int, seed: int) -> np.ndarray:
    return Random.deterministic(seed).words(4 * n).reshape(4, n) * 2.0**-64


def exclusive(n: int = 800) -> Table:
    """Two fair coins, and whether they differ: independent in pairs, not in threes."""
    a, b = (_drawn(n, 1)[:2] < 0.5).astype(int)
    return {"a": a.tolist(), "b": b.tolist(), "c": (a ^ b).tolist()}, {"a": BIT, "b": BIT, "c": BIT}


def empty(n: int = 400) -> Table:
    """One column without any value, declared so, and one of which one declared value alone occurs."""
    a = (5 * _drawn(n, 2)[0] ** 3).astype(int).tolist()
    return {"a": a, "b": [None] * n, "c": [1] * n}, {"a": FIVE, "b": cl.Integer(0, 2, nullable=True), "c": BIT}


def dominant(n: int = 1000) -> Table:
    """One value has nearly all rows; the others, a few each, go together."""
    place = np.arange(n) % 200
    a = np.where(place < 4, place + 1, 0)
    return {"a": a.tolist(), "b": (a > 1).astype(int).tolist(), "c": (a % 2).tolist()}, {"a": FIVE, "b": BIT, "c": BIT}


def lacking(n: int = 1000) -> Table:
    """Values are missing in two columns that don't say so, in other rows each, and in one that does."""
    a, b, c = ((size * each).astype(int).tolist() for size, each in zip((5, 2, 2), _drawn(n, 3), strict=False))
    a[: n // 14], b[-n // 14 :] = [None] * (n // 14), [None] * len(b[-n // 14 :])
    c[::9] = [None] * len(c[::9])
    return {"a": a, "b": b, "c": c}, {"a": FIVE, "b": BIT, "c": cl.Integer(0, 1, nullable=True)}


TABLES: dict[str, Callable[[], Table]] = {each.__name__: each for each in (exclusive, empty, dominant, lacking)}


def model_of(table: Table, method: Any = "pairs") -> SyntheticModel:
    """What the door counts, with hardly any noise. The mixture is of single columns: no interval may rest on how well it fits."""
    rows, declared = table
    states = tuple(states_of(declared, None, table="t"))
    with cl.Session({"t": cl.PrivateTable(rows, declared)}, budget=cl.PureDP(10**7), random=Random.deterministic(1)) as session:
        act: Any = choose if method == "mst" else measure
        found, origin = act(session, "t", states, method, 10**6, purpose="")
    return SyntheticModel(
        table="t", method=method, why="", columns=states, mixture=independent(found), rows=found.rows()[0],
        rows_error=1.0, measured=found, **origin,
    )  # fmt: skip


def redrawn(model: SyntheticModel, random: Random) -> SyntheticModel:
    """The same with the noise of ε = 1 in each of six tables."""
    assert model.measured is not None
    law = DiscreteLaplace(scale=6)
    tables = {
        kept: of_terms(each.counts + law.sample(each.counts.size, random=random).reshape(each.counts.shape), (Term(1.0, law),))
        for kept, each in model.measured.tables.items()
    }
    found = replace(model, measured=replace(model.measured, tables=tables))
    found.__dict__["declaration"] = model.declaration  # what the columns are is worked out once
    return found


def counts_of(table: Table) -> dict[tuple[str, ...], np.ndarray]:
    """For each set of columns the exact counts, in the order of an answer: of rows with every value that is declared to be."""
    rows, declared = table
    held = [name for name, each in declared.items() if not each.nullable]
    whole = [row for row in (dict(zip(rows, each, strict=True)) for each in zip(*rows.values(), strict=True))
             if all(row[name] is not None for name in held)]  # fmt: skip
    found = {}
    for by in (tuple(rows)[:order] for order in range(len(rows) + 1)):
        every = product(*([*each.values(), *([None] if each.nullable else [])] for each in (declared[name] for name in by)))
        found[by] = np.array([sum(all(row[name] == value for name, value in zip(by, cell, strict=True)) for row in whole)
                              for cell in every])  # fmt: skip
    return found


def halved(one: Statistic) -> Statistic:
    """The broken twin."""
    middle, reach = (one.low + one.high) / 2, (one.high - one.low) / 4
    return replace(one, low=middle - reach, high=middle + reach)


def missed(table: Table, runs: int) -> list[dict[Any, tuple[int, int]]]:
    """What was covered too seldom to be chance, by kind and class of size: how often of how often. And the same of the twin."""
    truth, random = counts_of(table), Random.deterministic(99)
    without, found = model_of(table), [dict[Any, list[bool]](), dict[Any, list[bool]]()]
    for _ in range(runs):
        model, cells = redrawn(without, random), dict[Any, list[tuple[bool, bool]]]()
        for by, exact in truth.items():
            one = model.answer(Question(table="t", by=by, statistics=(Count(),))).statistics["count"]
            twin, known = halved(one), one.kind != "not known"
            assert np.isnan([one.low[~known], one.high[~known]]).all()
            for row in np.flatnonzero(known):
                [size] = (each for each in CLASSES if each[0] <= exact[row] < each[1])
                inside = [each.low[row] - 1e-6 <= exact[row] <= each.high[row] + 1e-6 for each in (one, twin)]
                cells.setdefault((one.kind[row], size), []).append((bool(inside[0]), bool(inside[1])))
        for key, each in cells.items():
            for told, inside in zip(found, each[int(random.below(len(each), 1)[0])], strict=True):
                told.setdefault(key, []).append(inside)
    assert {kind for kind, _ in found[0]} == {"measured", "sure"}
    level = FALSE_ALARM / (len(TABLES) * 2 * len(CLASSES))
    return [
        {key: (sum(each), len(each)) for key, each in told.items() if binom.cdf(sum(each), len(each), CLAIM) < level}
        for told in found
    ]


@by_day_and_night("runs", 160, 2000)
@pytest.mark.parametrize("name", TABLES)
def test_intervals_cover_what_they_claim_and_those_of_half_the_width_are_caught(name: str, runs: int) -> None:
    real, twin = missed(TABLES[name](), runs)
    assert real == {}
    assert "measured" in {kind for kind, _ in twin}


@pytest.mark.parametrize("method", ["independent", "pairs", "histogram", "mst"])
def test_every_table_counts_the_rows_that_have_all_declared_values(method: Any) -> None:
    """Whatever is asked is of these rows, and the answer says so: now, and from the file."""
    rows, declared = table = lacking()
    model = model_of(table, method)
    assert model.measured is not None
    whole = sum(a is not None and b is not None for a, b in zip(rows["a"], rows["b"], strict=True))
    assert 0 < whole < len(rows["a"]) - 100
    assert {round(each.counts.sum()) for each in model.measured.tables.values()} == {whole}
    for told in (model, SyntheticModel.from_json(model.to_json())):
        answer = told.answer("SELECT COUNT(*) AS n FROM t")
        assert answer["n"][0] == pytest.approx(whole, abs=1e-3)
        assert COMPLETE in answer.notes
    assert list(declared) == [each.name for each in model.columns]


def test_what_may_count_other_rows_says_so() -> None:
    """A file of before; and answers of earlier, which count all rows with a value in their own columns."""
    rows, declared = lacking()
    document = json.loads(model_of((rows, declared)).to_json())
    del document["complete"]
    old = SyntheticModel.from_json(json.dumps(document))
    assert INCOMPLETE in old.answer("SELECT COUNT(*) AS n FROM t").notes
    with cl.Session({"t": cl.PrivateTable(rows, declared)}, budget=cl.PureDP(9), random=Random.deterministic(1)) as session:
        text = "SELECT a, COUNT(*) AS n FROM t GROUP BY a"
        session.sql(text, spend=1)
        model = cl.synth.fit(session, "t", spend=1, method="independent", earlier=[text])
        fresh = cl.synth.fit(session, "t", spend=1, method="independent", columns=["c"])
    assert INCOMPLETE in model.answer("SELECT COUNT(*) AS n FROM t").notes
    assert fresh.answer("SELECT COUNT(*) AS n FROM t").notes == (), "what is declared to be missing is counted"


def test_nothing_is_claimed_of_what_three_columns_do_together_where_pairs_were_measured() -> None:
    """The model takes the coins for independent; what is told is what pairs bound, and the report expects no error of triples."""
    rows, declared = exclusive()
    model = cl.synth.fit_frame(rows, declared, epsilon=100, method="pairs", random=Random.deterministic(1))
    one = model.answer("SELECT a, b, c, COUNT(*) AS n FROM frame GROUP BY a, b, c").statistics["n"]
    exact = counts_of((rows, declared))["a", "b", "c"]
    assert set(one.kind) <= {"sure", "not known"}
    assert ((one.low <= exact) & (exact <= one.high))[one.kind == "sure"].all()
    assert [each.value is None for each in model.report().expected] == [False, False, True]
