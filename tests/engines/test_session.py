"""The whole way of a question, from SQL to release, on each engine: the same answers from the same rows."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.noise import Random

from .conftest import Loader

PERSONS = 60
DATA = {
    "who": [f"p{number % PERSONS}" for number in range(300)],
    "age": [None if number % 17 == 0 else 10 + number % 95 for number in range(300)],
    "pay": [float("nan") if number % 13 == 0 else 7.25 * (number % 41) - 20 for number in range(300)],
    "sex": [["F", "M", None, "X"][number % 4] for number in range(300)],
    "town": [["Delft", "Leiden", "'; DROP TABLE people; --"][number % 3] for number in range(300)],
}
KINDS = {"who": "text", "age": "integer", "pay": "float", "sex": "text", "town": "text"}
COLUMNS = {
    "age": cl.Integer(17, 90),
    "pay": cl.Real(0, 200, step="0.25"),
    "sex": cl.Category(["F", "M"], nullable=True),
    "town": cl.Text(),
}


@pytest.fixture
def people(loader: Loader) -> cl.PrivateTable:
    """Sixty persons with five rows each, of which all count, so that no engine has a choice of rows."""
    return cl.PrivateTable(loader.load(DATA, KINDS), columns=COLUMNS, unit="who", max_rows=5, version="1")


def test_questions_have_the_same_answers_on_every_engine(people: cl.PrivateTable) -> None:
    with cl.Session({"people": people}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        answer = session.sql(
            "SELECT sex, COUNT(*) AS n, COUNT(age) AS known, SUM(pay) AS pay, AVG(age) AS age, COUNT(DISTINCT who) AS persons"
            " FROM people WHERE age > 20 OR pay < 50 GROUP BY sex",
            spend=10**9,
        )
    rows = [
        (
            None if sex is None or sex == "X" else sex,
            None if age is None else min(max(age, 17), 90),
            None if pay != pay else min(max(pay, 0.0), 200.0),
            who,
        )
        for who, age, pay, sex in zip(DATA["who"], DATA["age"], DATA["pay"], DATA["sex"], strict=True)
    ]
    kept = [row for row in rows if (row[1] is not None and row[1] > 20) or (row[2] is not None and row[2] < 50)]
    for place, sex in enumerate(["F", "M", None]):
        mine = [row for row in kept if row[0] == sex]
        ages = [row[1] for row in mine if row[1] is not None]
        assert answer["sex"][place] == sex
        assert answer["n"][place] == len(mine)
        assert answer["known"][place] == len(ages)
        assert answer["pay"][place] == pytest.approx(sum(row[2] for row in mine if row[2] is not None))
        assert answer["age"][place] == pytest.approx(sum(ages) / len(ages))
        assert answer["persons"][place] == len({row[3] for row in mine})


def test_undeclared_keys_on_every_engine(people: cl.PrivateTable) -> None:
    with cl.Session({"people": people}, budget=cl.ApproxDP(10**6, "1e-3"), random=Random.deterministic(1)) as session:
        answer = session.sql("SELECT town, COUNT(*) AS n FROM people GROUP BY town", spend=cl.ApproxDP(10**5, "1e-6"))
    assert dict(answer) == {"'; DROP TABLE people; --": 100, "Delft": 100, "Leiden": 100}
    assert answer["town"].tolist() == sorted(answer["town"].tolist())


VISITS = {
    "visit": [f"v{number}" for number in range(240)],
    "patient": [f"p{number % PERSONS}" for number in range(240)],
    "cost": [None if number % 19 == 0 else (number * 7) % 120 for number in range(240)],
    "day": [f"2024-{1 + number % 12:02d}-{1 + number % 28:02d}" for number in range(240)],
}
DRUGS = {
    "visit": [f"v{number % 240}" for number in range(400)],
    "drug": [["a", "b", "c"][number % 3] for number in range(400)],
    "dose": [number % 9 for number in range(400)],
}
PATIENTS = {
    "patient": [f"p{number}" for number in range(PERSONS)],
    "sex": [["F", "M"][number % 2] for number in range(PERSONS)],
    "town": [["Delft", "Gouda", "Leiden"][number % 3] for number in range(PERSONS)],
}
TOWNS = cl.PublicTable({"town": ["Delft", "Gouda", "Nowhere"], "province": ["ZH", "ZH", "?"], "people": [106_000, 76_000, 0]})
QUESTIONS = {
    "SELECT sex, COUNT(*) AS n, SUM(cost) AS cost FROM patients JOIN visits USING (patient) GROUP BY sex": 2,
    "SELECT province, AVG(cost) AS cost FROM patients p JOIN towns t ON p.town = t.town JOIN visits v ON v.patient = p.patient"
    " GROUP BY province": 2,
    "SELECT drug, COUNT(*) AS n, COUNT(DISTINCT patient) AS persons, COUNT(DISTINCT dose) AS doses FROM drugs d"
    " JOIN visits v ON v.visit = d.visit GROUP BY drug": 3,
    "SELECT drug, COUNT(*) AS n, SUM(dose) AS dose FROM drugs GROUP BY drug": 3,
    "SELECT AVG(total) AS mean, MEDIAN(total) AS middle, MAX(k) AS most FROM"
    " (SELECT patient, SUM(cost) AS total, COUNT(*) AS k FROM visits GROUP BY patient) AS x": 1,
    "SELECT DATE_TRUNC('month', day) AS m, EXTRACT(YEAR FROM day) AS y, COUNT(*) AS n FROM visits"
    " WHERE day < DATE '2024-04-01' GROUP BY 1, 2": 3,
    "SELECT sex, FLOOR(cost / 50) * 50 AS bin, COUNT(*) AS n FROM patients JOIN visits USING (patient)"
    " GROUP BY ROLLUP(sex, bin)": 9,
    "SELECT VAR_SAMP(cost) AS v, CORR(cost, dose) AS c, REGR_SLOPE(dose, cost) AS s FROM drugs d"
    " JOIN visits v ON v.visit = d.visit": 1,
    "SELECT CASE WHEN cost >= 60 THEN 'high' ELSE 'low' END AS level, COUNT(*) AS n, 100 * SUM(cost) / COUNT(*) AS share"
    " FROM visits WHERE cost IS NOT NULL GROUP BY 1": 2,
    "SELECT COUNT(*) AS n FROM (SELECT cost FROM visits WHERE cost < 40"
    " UNION ALL SELECT cost FROM visits WHERE cost >= 80) AS u": 1,
}


def tables_of(loader: Loader) -> dict[str, cl.PrivateTable | cl.PublicTable]:
    """Sixty patients with four visits each, and what was prescribed at them."""
    text = {"visit": "text", "patient": "text", "drug": "text", "sex": "text", "town": "text"}
    kinds = {**text, "cost": "integer", "dose": "integer", "day": "text"}
    held = {name: loader.load(data, kinds) for name, data in (("p", PATIENTS), ("v", VISITS), ("d", DRUGS))}
    common: dict[str, str] = {"population": "patients", "version": "1"}
    return {
        "patients": cl.PrivateTable(
            held["p"],
            columns={"sex": cl.Category(["F", "M"]), "town": cl.Category(["Delft", "Gouda", "Leiden"])},
            unit="patient",
            max_rows=1,
            **common,
        ),
        "visits": cl.PrivateTable(
            held["v"],
            columns={
                "visit": cl.Identifier(),
                "cost": cl.Integer(0, 119),
                "day": cl.Date("2024-01-01", "2024-12-31"),
            },
            unit="patient",
            max_rows=4,
            **common,
        ),
        "drugs": cl.PrivateTable(
            held["d"],
            columns={"drug": cl.Category(["a", "b", "c"]), "dose": cl.Integer(0, 8)},
            unit="visit",
            through="visits.visit",
            max_rows=2,
            **common,
        ),
        "towns": TOWNS,
    }


@pytest.fixture
def hospital(loader: Loader) -> dict[str, cl.PrivateTable | cl.PublicTable]:
    """The tables on one engine."""
    return tables_of(loader)


_FOUND: dict[str, dict[str, list[object]]] = {}


def _expected(sql: str) -> dict[str, list[object]]:
    """What DuckDB says of the same rows: the engine that is compared with plain SQL question by question elsewhere."""
    from .conftest import DuckDBLoader

    if sql not in _FOUND:
        with cl.Session(tables_of(DuckDBLoader()), budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
            _FOUND[sql] = session.sql(sql, spend=10**9).to_pydict()
    return _FOUND[sql]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_every_construct_has_the_same_answer_on_every_engine(
    hospital: dict[str, cl.PrivateTable | cl.PublicTable], sql: str
) -> None:
    with cl.Session(hospital, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        answer = session.sql(sql, spend=10**9)
    assert answer.num_rows == QUESTIONS[sql]
    for name, values in _expected(sql).items():
        found = answer.to_pydict()[name]
        if isinstance(values[0], float):
            assert found == pytest.approx(values, rel=1e-6, abs=1e-6), name
        else:
            assert found == values, name


def test_in_bounded_memory_keys_and_rows_come_in_pieces(people: cl.PrivateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows at a time make what all at once make."""
    for module in ("engine", "spark"):
        monkeypatch.setattr(f"cloister.tables.engines.{module}.PIECE", 2)
    spend, found = cl.ApproxDP(20, "1e-6"), []
    for limit in (None, "64MiB"):
        budget, random = cl.ApproxDP(100, "1e-3"), Random.deterministic(3)
        with cl.Session({"people": people}, budget=budget, random=random, memory_limit=limit) as session:
            answer = session.sql("SELECT town, COUNT(*) AS n, SUM(age) AS ages FROM people GROUP BY town", spend=spend)
            none = session.sql("SELECT town, COUNT(*) AS n FROM people WHERE age > 89 AND age < 18 GROUP BY town", spend=spend)
            rows = session.registry.snapshot.prepare("people").rows(["age", "town"], unit=True)
            found.append((answer.to_pydict(), none.num_rows, sorted(zip(*(rows[name].tolist() for name in rows), strict=True))))
    assert found[0] == found[1]
    assert found[0][0]["town"] == sorted({*DATA["town"]})
    assert found[0][1:] == (0, found[1][2])
    assert len(found[0][2]) == 300
