"""The sample tables fit together, and stay what they were."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister import samples
from cloister.noise import Random

EXACT = "1000"  # with so large a spend the noise is nothing, and these rows are nobody's


def asked(sql: str) -> dict[str, list[object]]:
    held = {
        "visits": samples.hospital(300),
        "patients": samples.registry(300),
        "wards": samples.wards(),
        "towns": samples.towns(),
    }
    with cl.Session(held, budget=cl.PureDP(EXACT), random=Random.deterministic(1)) as session:
        return session.sql(sql, spend=EXACT).to_pydict()


def test_a_patient_is_the_same_person_in_both_tables() -> None:
    joined = "FROM visits AS v JOIN patients AS p ON p.patient = v.patient"
    every = asked("SELECT COUNT(*) AS n FROM visits")
    assert asked(f"SELECT COUNT(*) AS n {joined}") == every
    assert asked(f"SELECT COUNT(*) AS n {joined} WHERE v.sex = p.sex AND v.age = {samples.YEAR} - p.born") == every


def test_every_patient_is_registered_once() -> None:
    assert asked("SELECT COUNT(*) AS n FROM patients") == {"n": [300]}
    assert asked("SELECT COUNT(DISTINCT patient) AS n FROM visits") == {"n": [300]}


@pytest.mark.parametrize(("table", "key", "column"), [("visits", "ward", "building"), ("patients", "town", "inhabitants")])
def test_the_public_tables_know_every_value(table: str, key: str, column: str) -> None:
    joined = f"SELECT COUNT(*) AS n FROM {table} AS a JOIN {key}s AS b ON a.{key} = b.{key} WHERE NOT b.{column} IS NULL"
    assert asked(joined) == asked(f"SELECT COUNT(*) AS n FROM {table}")


def test_the_samples_are_the_same_each_time() -> None:
    with cl.Session({"census": samples.census(200)}, budget=cl.PureDP(EXACT), random=Random.deterministic(1)) as session:
        found = session.sql("SELECT COUNT(*) AS n, COUNT_IF(sex = 'Female') AS women, SUM(age) AS ages FROM census", spend=EXACT)
    assert found.to_pydict() == {"n": [200], "women": [66], "ages": [7523]}
