"""A model that nothing was spent on: the rows of a rehearsal, under rules too, and nothing of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session.execution.rehearsal import rehearsal_tables

COLUMNS = {
    "age": cl.Integer(20, 500),
    "sex": cl.Category(["f", "m"], nullable=True),
    "came": cl.Date("2024-01-01", "2024-03-01"),
    "left": cl.Date("2024-01-01", "2024-03-01"),
}
ROWS = {"age": [33] * 50, "sex": ["f"] * 50, "came": ["2024-02-01"] * 50, "left": ["2024-02-02"] * 50}


def session(**how: Any) -> cl.Session:
    return cl.Session({"people": cl.PrivateTable(ROWS, COLUMNS, **how)}, budget=cl.PureDP(1))


def test_its_rows_are_those_of_a_rehearsal() -> None:
    """One function draws both: from the same choices the same rows."""
    with session(size=700) as one:
        model = cl.synth.fit(one, "people", spend=0)
        rehearsed = rehearsal_tables({"people": one.declared("people")})["people"]
        assert one.spent == cl.PureDP(0)
    drawn = model.sample(random=Random.deterministic(20_260_101))
    with cl.Session({"people": rehearsed}, budget=cl.PureDP(1)) as other:
        rows = other.registry.snapshot.rows_of("people").rows(list(COLUMNS))
    assert len(drawn) == 700
    for name in ("age", "came", "left"):
        assert sorted(drawn[name].tolist()) == sorted(COLUMNS[name].decode(int(code)) for code in rows[name])
    assert drawn["sex"].tolist().count(None) == -(-700 // 12)
    assert str(model.cost) == "ε = 0"
    assert model.charges == ()


def test_it_tells_nothing_of_the_table_and_obeys_rules(tmp_path: Path) -> None:
    with session() as one:
        model = cl.synth.fit(one, "people", spend=0, rules=["came <= left"])
        assert one.spent == cl.PureDP(0)
    rows = model.sample(4_000, random=Random.deterministic(1))
    assert all(came <= left for came, left in zip(rows["came"], rows["left"], strict=True))
    assert 200 < np.mean(rows["age"].tolist()) < 320, "everywhere between 20 and 500, though everybody is 33"
    assert set(model.sample(50, given={"sex": None}, random=Random.deterministic(1))["sex"].tolist()) == {None}
    assert model.answer("SELECT COUNT(*) AS n FROM people").kind()["n"].tolist() == ["not known"]
    assert "nothing was spent" in str(model)
    assert "follow the declarations" in str(model.report())
    model.save(tmp_path / "model.json")
    assert str(cl.synth.load(tmp_path / "model.json")) == str(model)


def test_what_is_not_free_is_refused() -> None:
    how: Any
    with session() as one:
        for how in ({"method": "pairs"}, {"method": "aim"}, {"earlier": ["SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"]}):
            with pytest.raises(cl.CloisterError):
                cl.synth.fit(one, "people", spend=0, **how)
        assert one.spent == cl.PureDP(0)
