"""Local recoding: true labels of the hierarchies, the models met, and never worse than where it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.anonymize import Anonymizer, Hierarchy, KAnonymity, LDiversity, TCloseness
from cloister.anonymize.hierarchies.ladder import STAR
from cloister.anonymize.models.base import PrivacyModel, attained_by
from cloister.anonymize.searches.local import LocalRecoding
from cloister.anonymize.searches.mondrian import Mondrian
from cloister.errors import InvalidParameter
from cloister.noise import Random

Table = dict[str, list[Any]]

TOWNS = {"Ulm": ["South", "*"], "Rom": ["South", "*"], "Kiel": ["North", "*"], "Oslo": ["North", "*"], "🏰": ["none", "*"]}
HIERARCHIES = {"age": Hierarchy.intervals(2, 4, 8, 16), "town": Hierarchy.of(TOWNS)}
METRICS = ["loss", "discernibility", "entropy"]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rows = draw(st.integers(6, 50))
    ages = st.one_of(st.none(), st.integers(0, 31))
    return {
        "age": draw(st.lists(ages, min_size=rows, max_size=rows)),
        "town": draw(st.lists(st.sampled_from(list(TOWNS)), min_size=rows, max_size=rows)),
        "ill": draw(st.lists(st.sampled_from("xyz"), min_size=rows, max_size=rows)),
    }


def anonymizer(search: Any, metric: str, models: Sequence[Any], suppression: str = "0.3") -> Anonymizer:
    """One for those tables."""
    return Anonymizer(
        quasi=["age", "town"],
        sensitive=["ill"],
        models=models,
        hierarchies=HIERARCHIES,
        search=search,
        metric=metric,
        suppression=suppression,
    )


@settings(max_examples=40, deadline=None)
@given(tables(), st.sampled_from(METRICS), st.booleans(), st.sampled_from(range(3)))
def test_never_worse_than_the_optimum_that_it_starts_from(table: Table, metric: str, relaxed: bool, which: int) -> None:
    choices: list[list[PrivacyModel]] = [[KAnonymity(2)], [KAnonymity(2), LDiversity(2)], [TCloseness("0.4")]]
    models = choices[which]
    if which == 1 and len(set(table["ill"])) < 2:
        return
    start = anonymizer("optimal", metric, models)
    start.fit_transform(table)
    local = anonymizer(LocalRecoding(relaxed=relaxed), metric, models)
    local.fit_transform(table)
    assert local.report_.score <= start.report_.score + 1e-9
    assert local.report_.suppressed <= start.report_.suppressed
    assert all(each.holds for each in attained_by(models, local.recoded_.classes))


@settings(max_examples=40, deadline=None)
@given(tables(), st.booleans())
def test_labels_are_those_of_the_hierarchy(table: Table, relaxed: bool) -> None:
    local = anonymizer(LocalRecoding(relaxed=relaxed), "loss", [KAnonymity(3)], suppression="0")
    released = local.fit_transform(table)
    ladders = local.problem_.ladders
    for name in ("age", "town"):
        values = local.problem_.table.columns[name].values
        came = [table[name][row] for row in local.rows_.tolist()]
        for value, label in zip(came, released[name], strict=True):
            place, ladder = values.index(value), ladders[name]
            above = [names[codes[place]] for names, codes in zip(ladder.labels, ladder.codes, strict=True)]
            assert label in {STAR, *(str(each) if each is not None else "(missing)" for each in above), value}


def test_suppressed_rows_are_tried_again() -> None:
    random = Random.deterministic(5)
    table: Table = {
        "age": [int(each) for each in random.below(8, 300)] + [30, 31, 28],
        "town": ["Ulm"] * 300 + ["Oslo"] * 3,
        "ill": ["x"] * 303,
    }
    start = anonymizer("optimal", "loss", [KAnonymity(3)], suppression="0.02")
    local = anonymizer("local", "loss", [KAnonymity(3)], suppression="0.02")
    start.fit_transform(table)
    released = local.fit_transform(table)
    assert start.report_.suppressed == 3
    assert local.report_.suppressed == 0
    assert len(released["age"]) == 303
    assert local.report_.score < start.report_.score


def test_t_closeness_is_measured_against_the_whole_table() -> None:
    random = Random.deterministic(2)
    table: Table = {
        "age": [int(each) for each in random.below(32, 400)],
        "town": [list(TOWNS)[int(each)] for each in random.below(5, 400)],
        "ill": ["xyz"[int(each)] for each in random.below(3, 400)],
    }
    models = [KAnonymity(4), TCloseness("0.2")]
    local = anonymizer("local", "loss", models, suppression="0.2")
    local.fit_transform(table)
    assert all(each.holds for each in local.report_.models)
    whole = np.bincount([("xyz").index(each) for each in table["ill"]]) / 400
    classes = local.recoded_.classes
    spread = classes.spread("ill").dense()
    assert (0.5 * np.abs(spread - whole).sum(axis=1)).max() <= 0.2 + 1e-12


def test_stopped_it_is_still_valid() -> None:
    random = Random.deterministic(2)
    table: Table = {
        "age": [int(each) for each in random.below(32, 200)],
        "town": [list(TOWNS)[int(each)] for each in random.below(5, 200)],
        "ill": ["x"] * 200,
    }
    problem = anonymizer("local", "loss", [KAnonymity(4)], suppression="0.1").problem(table)
    done: list[str] = []
    stopped = replace(problem, progress=lambda stage, share: done.append(stage), stop=lambda: "refining classes" in done)
    recoded = LocalRecoding().find(stopped)
    assert recoded.classes.sizes.min() >= 4


def test_a_start_that_recodes_no_whole_column_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="does not recode whole columns"):
        anonymizer(LocalRecoding(start=Mondrian()), "loss", [KAnonymity(2)]).fit_transform(
            {"age": [1, 2], "town": ["Ulm", "Ulm"], "ill": ["x", "y"]}
        )
