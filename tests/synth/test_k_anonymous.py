"""Rows that leave by the marked door: classes of at least k, and a ledger that says so before a row is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.errors import AccessDenied, InvalidParameter
from cloister.noise import Random
from cloister.synth import KAnonymousModel
from cloister.synth.k_anonymous import MARK, classes_of, fit_k_anonymous

random = np.random.default_rng(4)
AGES = random.integers(20, 90, 500)
ROWS = {"age": AGES, "pay": np.clip(AGES * 10 + random.integers(0, 90, 500), 0, 999), "town": random.choice(["a", "b", "c"], 500)}
COLUMNS = {"age": cl.Integer(0, 99), "pay": cl.Integer(0, 999), "town": cl.Category(["a", "b", "c"])}


def people(rows: Any = None, **how: Any) -> cl.PrivateTable:
    return cl.PrivateTable(ROWS if rows is None else rows, COLUMNS, population="town", row_is_person=True, **how)


@pytest.mark.parametrize("k", [2, 5, 50, 500])
def test_each_class_has_at_least_k_rows_and_each_row_is_in_one(k: int) -> None:
    placed = np.column_stack([ROWS["age"], ROWS["pay"] // 10])
    classes = classes_of(placed, k)
    assert min(len(each) for each in classes) >= k
    assert sorted(np.concatenate(classes).tolist()) == list(range(500))
    assert k == 500 or max(len(each) for each in classes) < 20 * k  # nobody is left uncut who could be


def test_rows_that_are_all_alike_are_one_class() -> None:
    assert len(classes_of(np.zeros((100, 3), dtype=np.int64), 5)) == 1


def test_drawn_rows_keep_how_columns_go_together_and_their_types() -> None:
    with cl.Session({"people": people()}, budget=cl.PureDP(1)) as session:
        model = cl.synth.fit(session, "people", spend=0, method="k_anonymous")
        rows = model.sample(2_000, random=Random.deterministic(1)).to_pandas()
        assert len(model.sample()) == 500
        assert "NOT PRIVATE" in repr(model)
    assert model.smallest >= 5
    assert np.corrcoef(rows["age"], rows["pay"])[0, 1] > 0.95
    assert set(rows["town"]) == {"a", "b", "c"}


def test_the_ledger_says_so_and_nothing_is_charged() -> None:
    with cl.Session({"people": people()}, budget=cl.PureDP(1)) as session:
        fit_k_anonymous(session, "people", k=10)
        assert session.unbounded == ("town",)
        assert session.spent == cl.PureDP(0)
        [line] = session.ledger.charges("town")
        assert line.state == "not private"
        assert "k = 10" in line.what


def test_a_refusal_that_saw_rows_is_written_down_first() -> None:
    few = {name: column[:3] for name, column in ROWS.items()}
    with cl.Session({"people": people(few)}, budget=cl.PureDP(1)) as session:
        with pytest.raises(InvalidParameter, match="fewer rows"):
            fit_k_anonymous(session, "people", k=5)
        assert session.unbounded == ("town",)


@pytest.mark.parametrize("k", [0, 1, True, 2.5, "5"])
def test_a_k_that_is_none_is_refused_before_anything_is_written(k: Any) -> None:
    with cl.Session({"people": people()}, budget=cl.PureDP(1)) as session:
        with pytest.raises(InvalidParameter):
            fit_k_anonymous(session, "people", k=k)
        assert session.unbounded == ()


def test_who_does_not_hold_the_table_gets_none() -> None:
    with cl.Session({"people": people()}, budget=cl.PureDP(1)) as session, pytest.raises(AccessDenied):
        fit_k_anonymous(session.on_behalf("analyst"), "people")


def test_a_table_of_several_rows_a_person_is_refused() -> None:
    columns = {"who": cl.Integer(0, 9), "age": COLUMNS["age"]}
    table = cl.PrivateTable({"who": [1, 1, 2, 2], "age": [30] * 4}, columns, unit="who", max_rows=2)
    with cl.Session({"visits": table}, budget=cl.PureDP(1)) as session:
        with pytest.raises(InvalidParameter, match="several rows"):
            fit_k_anonymous(session, "visits", k=2)
        assert session.unbounded == ()


def test_neither_rules_nor_a_workload_are_taken() -> None:
    with cl.Session({"people": people()}, budget=cl.PureDP(1)) as session:
        for how in ({"rules": ["age > 3"]}, {"about": ["age"]}):
            with pytest.raises(InvalidParameter, match="makes no marginals"):
                cl.synth.fit(session, "people", spend=1, method="k_anonymous", **how)  # type: ignore[call-overload]
        assert session.unbounded == ()


def test_it_promises_no_epsilon_and_an_audit_shows_why() -> None:
    """A value that one person alone has is drawn now and then, and never without that person."""
    others = [(20,)] * 4

    def way(data: Any, n: int, random: Random) -> Any:
        rows = np.array(data)
        own = classes_of(rows, 3)[0]
        return rows[own[random.below(len(own), n)]].astype(float)

    found = audit(
        way, [*others, (90,)], others, runs=4_000, features={"the old": lambda told: -told[:, 0]}, random=Random.deterministic(5)
    )
    assert found.contradicts(cl.PureDP(2)), found


def test_a_file_and_a_report_say_that_they_are_not_private(tmp_path: Path) -> None:
    with cl.Session({"people": people()}, budget=cl.PureDP(1)) as session:
        with pytest.raises(cl.InvalidParameter, match="negative"):
            cl.synth.fit(session, "people", spend=-5, method="k_anonymous")
        assert session.unbounded == ()
        model = cl.synth.fit(session, "people", spend=0, method="k_anonymous")
    model.save(tmp_path / "model.json")
    written = json.loads((tmp_path / "model.json").read_text())
    assert (written["private"], written["warning"]) == (False, MARK)
    back = cl.synth.load(tmp_path / "model.json")
    assert isinstance(back, KAnonymousModel)
    assert (str(back), back.smallest, back.cost) == (str(model), model.smallest, f"unbounded ({MARK})")
    report = back.report()
    assert all(MARK in text for text in (str(report), report.to_html()))
    assert (report.to_dict()["private"], report.to_dict()["cost"]) == (False, None)
    with pytest.raises(cl.UnsupportedQuery, match="no margin"):
        back.answer("SELECT COUNT(*) AS n FROM people")
    (tmp_path / "model.json").write_text(json.dumps(written | {"weights": [2.0]}))
    with pytest.raises(cl.InvalidParameter, match="no file that save"):
        cl.synth.load(tmp_path / "model.json")
