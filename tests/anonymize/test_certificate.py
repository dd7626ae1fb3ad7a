"""The certificate: made of the table that leaves, and withheld where that is not the table that was checked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from cloister.anonymize.anonymizer import Anonymizer
from cloister.anonymize.attackers import example
from cloister.anonymize.certificate import NOT_PROMISED, Certificate, certify
from cloister.anonymize.models.closeness import TCloseness
from cloister.anonymize.models.diversity import LDiversity
from cloister.anonymize.models.k import KAnonymity
from cloister.errors import CloisterError, InvalidParameter

RELEASED = {
    "age": ["*"] * 6,
    "town": ["A", "A", "B", "A", "B", "B"],
    "disease": ["flu", "cold", "gout", "gout", "gout", "gout"],
}


def made(**more: object) -> Certificate:
    options: dict[str, object] = {"models": [KAnonymity(3)], "sensitive": ["disease"], "learning": False} | more
    return certify(example(), None, RELEASED, **options)  # type: ignore[arg-type]


def test_it_lists_models_risk_utility_and_attackers() -> None:
    paper = made(utility={"loss": (0.0, 0.5)}, made={"search": "optimal"})
    assert paper.holds
    assert [each.name for each in paper.attacks] == ["linkage", "homogeneity", "background knowledge", "skewness"]
    assert (paper.risk.k, paper.risk_before.k) == (3, 1)
    assert paper.digest == hashlib.sha256(pl.DataFrame(RELEASED).write_csv().encode()).hexdigest()
    for text in (str(paper), paper.to_html()):
        assert "NOT differentially private" in text
        assert paper.digest in text
        assert "homogeneity" in text
    assert all(each in json.loads(paper.to_json())["not_private"] for each in NOT_PROMISED)
    assert json.loads(paper.to_json())["utility"]["loss"] == {"before": 0.0, "after": 0.5}
    assert "<script" not in paper.to_html()


def test_a_model_that_fails_is_said_to_fail() -> None:
    paper = made(models=[KAnonymity(3), LDiversity(2), TCloseness("0.1")])
    assert not paper.holds
    assert [each.holds for each in paper.models] == [True, False, False]
    assert "A model fails" in paper.to_html()


def test_another_table_than_the_one_that_was_checked_is_not_certified() -> None:
    finer = RELEASED | {"age": [31, 31, 36, 45, 45, 48]}
    with pytest.raises(CloisterError, match="other classes"):
        certify(example(), None, finer, models=[KAnonymity(3)], learning=False)
    with pytest.raises(CloisterError, match="no such column"):
        certify(example(), None, {"age": ["*"] * 6}, models=[KAnonymity(3)], learning=False)
    with pytest.raises(InvalidParameter, match="a list is expected"):
        made(models=KAnonymity(3))
    with pytest.raises(InvalidParameter, match="no recoding"):
        certify(example().raw, None, RELEASED, models=[KAnonymity(3)])


@pytest.mark.parametrize(
    "other",
    [
        {"disease": ["flu", "flu", "gout", "cold", "gout", "gout"]},  # as many of each, in other classes
        {"disease": ["flu", "cold", "gout", "gout", "gout", "flu"]},
        {"town": ["B", "B", "A", "B", "A", "A"]},  # the names of the classes exchanged
        {"age": ["**"] * 6},
    ],
)
def test_neither_is_one_with_other_sensitive_values_or_labels(other: dict[str, list[str]]) -> None:
    """Classes of the same sizes are not enough: ℓ and t were counted on what stands in them."""
    with pytest.raises(CloisterError, match="not certified"):
        certify(example(), None, RELEASED | other, models=[LDiversity(1)], sensitive=["disease"], learning=False)


def test_a_column_that_was_put_in_afterwards_is_named() -> None:
    paper = certify(example(), None, RELEASED | {"name": list("abcdef")}, models=[KAnonymity(3)], learning=False)
    assert paper.made["published as they are"] == "disease, name"


@pytest.mark.parametrize("star", [True, False])
def test_suppressed_rows_may_be_left_out_or_starred(star: bool) -> None:
    target = example()
    gone = np.array([False, False, False, True, False, False])
    target = replace(target, recoded=replace(target.recoded, suppressed=gone))
    rows = pl.DataFrame(RELEASED)
    released = (
        rows.with_columns(pl.when(pl.Series(gone)).then(pl.lit("*")).otherwise(pl.col(name)).alias(name) for name in rows.columns)
        if star
        else rows.filter(pl.Series(~gone))
    )
    paper = certify(target, None, released, models=[KAnonymity(2)], sensitive=["disease"], learning=False)
    assert paper.holds
    assert (paper.risk.k, paper.risk.suppressed) == (2, int(star))


def test_rows_in_stars_are_certified_where_a_star_stands_for_a_missing_value() -> None:
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], suppressed="star", missing="suppress", missing_values=["*"])
    released = asked.fit_transform({"age": ["30", "30", "*", None]})
    assert sorted(released["age"]) == ["*", "*", "30", "30"]
    assert asked.certificate(released, learning=False).holds


def test_lengths_of_time_that_leave_as_they_are_are_certified() -> None:
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], suppression=0)
    table = pl.DataFrame({"age": [30, 30], "stay": [3, 4]}).with_columns(pl.duration(days="stay").alias("stay"))
    assert asked.certificate(asked.fit_transform(table), learning=False).holds
