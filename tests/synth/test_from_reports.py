"""Local reports in, rows out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.errors import InvalidParameter
from cloister.local import Marginals, SeveralAttributes
from cloister.noise import Random
from cloister.synth.from_reports import fit_reports

DOMAINS: dict[str, Any] = {"smokes": ["yes", "no"], "age": range(18, 30), "sex": ["f", "m"]}
NUMBER = 60_000


def respondents() -> dict[str, Any]:
    random = np.random.default_rng(2)
    smokes = random.random(NUMBER) < 0.3
    men = random.random(NUMBER) < np.where(smokes, 0.8, 0.4)
    age = np.clip(18 + random.poisson(4 + 2 * smokes), 18, 29)
    return {"smokes": np.where(smokes, "yes", "no").tolist(), "age": age.tolist(), "sex": np.where(men, "m", "f").tolist()}


def of(protocol: Any) -> Any:
    return fit_reports(protocol, protocol.randomize(respondents(), random=Random.deterministic(3)))


def test_rows_of_marginals_keep_how_columns_go_together(tmp_path: Any) -> None:
    model = of(Marginals(DOMAINS, epsilon=3))
    assert model.cost == cl.PureDP(3)
    model.save(tmp_path / "model.json")
    rows = cl.synth.load(tmp_path / "model.json").sample(random=Random.deterministic(4)).to_pandas()
    assert len(rows) == NUMBER
    men = rows.groupby("smokes")["sex"].apply(lambda each: (each == "m").mean())
    assert abs(men["yes"] - 0.8) < 0.06
    assert abs(men["no"] - 0.4) < 0.03
    means = rows.groupby("smokes")["age"].mean()
    assert means["yes"] > means["no"] + 1


def test_a_learner_of_the_rows_serves_the_people_who_sent_none_of_theirs() -> None:
    from sklearn.linear_model import LogisticRegression

    model = of(Marginals(DOMAINS, epsilon=3))
    made, real = model.sample(5_000, random=Random.deterministic(5)).to_pandas(), respondents()
    fitted = LogisticRegression().fit(np.column_stack([made["age"], made["sex"] == "m"]), made["smokes"] == "yes")
    truth = np.array(real["smokes"]) == "yes"
    right = fitted.predict(np.column_stack([real["age"], np.array(real["sex"]) == "m"])) == truth
    assert right.mean() > 0.7  # everybody's guess of "no" is right for .70


def test_single_attributes_are_independent_columns() -> None:
    model = of(SeveralAttributes(DOMAINS, epsilon=3))
    rows = model.sample(random=Random.deterministic(4)).to_pandas()
    assert abs((rows["smokes"] == "yes").mean() - 0.3) < 0.02
    assert abs(((rows["smokes"] == "yes") & (rows["sex"] == "m")).mean() - 0.3 * 0.52) < 0.02


def test_tables_may_be_any_sets_and_in_any_order() -> None:
    protocol = Marginals(DOMAINS, epsilon=5, sets=[("sex", "smokes"), ("age",)])
    rows = of(protocol).sample(random=Random.deterministic(4)).to_pandas()
    assert abs(((rows["smokes"] == "yes") & (rows["sex"] == "m")).mean() - 0.24) < 0.02


def test_answers_have_values_without_margins() -> None:
    answer = of(Marginals(DOMAINS, epsilon=3)).answer("SELECT smokes, COUNT(*) AS n FROM reports GROUP BY smokes")
    assert answer.kind()["n"].tolist() == ["not known", "not known"]
    assert abs(answer["n"][0] - 18_000) < 1_500


def test_nobody_is_nobody() -> None:
    protocol = Marginals({"a": ["x", "y"], "b": ["u", "v"]}, epsilon=1)
    model = fit_reports(protocol, protocol.randomize({"a": [], "b": []}))
    assert len(model.sample(3)) == 3


@pytest.mark.parametrize(
    ("protocol", "why"),
    [
        ("reports", "neither"),
        (Marginals({"a": ["x", 1], "b": ["u", "v"]}, epsilon=1), "each column one kind"),
        (Marginals({"a": ["x", "y"], "b": ["u", "v"]}, epsilon=1, sets=[("a",)]), "has it"),
    ],
)
def test_what_makes_no_rows_is_refused(protocol: Any, why: str) -> None:
    reports = {} if protocol == "reports" else protocol.randomize({"a": ["x"] * 10, "b": ["u"] * 10})
    with pytest.raises(InvalidParameter, match=why):
        fit_reports(protocol, reports)
