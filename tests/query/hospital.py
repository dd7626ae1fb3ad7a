"""A small hospital whose rows lie within their declarations, and the same rows in plain DuckDB: answers without noise agree.

Patients have visits and visits have drugs; people are one row a person; towns are public.
"""

from __future__ import annotations

import datetime
import random
from typing import Any

import duckdb

import cloister as cl
from cloister.tables import Identifier

PATIENTS, PEOPLE = 60, 80
TOWNS = ["Delft", "Gouda", "Leiden"]
_TYPES = {"VARCHAR": ("sex", "town", "ward", "drug", "province"), "DOUBLE": ("pay", "fee"), "DATE": ("day", "born")}
_TYPES |= {"BOOLEAN": ("smoker",)}


def rows(seed: int = 3) -> dict[str, dict[str, list[Any]]]:
    """The columns of each table."""
    draw = random.Random(seed)
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=each) for each in range(365)]
    patients: dict[str, list[Any]] = {
        "patient": list(range(PATIENTS)),
        "sex": [draw.choice("FM") for _ in range(PATIENTS)],
        "age": [draw.randint(17, 90) for _ in range(PATIENTS)],
        "town": [draw.choice(TOWNS) for _ in range(PATIENTS)],
    }
    visits: dict[str, list[Any]] = {name: [] for name in ("patient", "visit", "ward", "cost", "day", "fee")}
    drugs: dict[str, list[Any]] = {name: [] for name in ("visit", "dose", "drug")}
    for patient in range(PATIENTS):
        for _ in range(draw.randint(0, 4)):
            visit = len(visits["visit"])
            cost = draw.choice([None, *range(101)])
            values = (patient, visit, draw.choice("ABC"), cost, draw.choice(days), draw.randint(0, 200) / 4)
            for name, value in zip(visits, values, strict=True):
                visits[name].append(value)
            for _ in range(draw.randint(0, 2)):
                for name, value in zip(drugs, (visit, draw.randint(0, 9), draw.choice("pq")), strict=True):
                    drugs[name].append(value)
    people: dict[str, list[Any]] = {
        "age": [draw.randint(17, 90) for _ in range(PEOPLE)],
        "sex": [draw.choice("FM") for _ in range(PEOPLE)],
        "pay": [draw.randint(0, 200) / 2 for _ in range(PEOPLE)],
        "smoker": [draw.choice([True, False, None]) for _ in range(PEOPLE)],
        "born": [draw.choice(days) for _ in range(PEOPLE)],
        "town": [draw.choice(TOWNS) for _ in range(PEOPLE)],
    }
    towns: dict[str, list[Any]] = {
        "town": [*TOWNS, "Utrecht"],
        "province": ["ZH", "ZH", "ZH", "UT"],
        "inhabitants": [100, 70, 120, 350],
    }
    return {"patients": patients, "visits": visits, "drugs": drugs, "people": people, "towns": towns}


def tables(data: dict[str, dict[str, list[Any]]]) -> dict[str, cl.PrivateTable | cl.PublicTable]:
    """What their owners declare of them."""
    sex, town, age = cl.Category(["F", "M"]), cl.Category(TOWNS), cl.Integer(17, 90)
    year = cl.Date("2026-01-01", "2026-12-31")
    visits = {"visit": Identifier(), "ward": cl.Category(["A", "B", "C"]), "cost": cl.Integer(0, 100), "day": year}
    visits["fee"] = cl.Real(0, 50, step="0.25")
    people = {"age": age, "sex": sex, "pay": cl.Real(0, 100, step="0.5"), "smoker": cl.Boolean(nullable=True)}
    hospital: dict[str, Any] = {"population": "patients"}
    return {
        "people": cl.PrivateTable(data["people"], columns={**people, "born": year, "town": town}),
        "patients": cl.PrivateTable(
            data["patients"], columns={"sex": sex, "age": age, "town": town}, unit="patient", max_rows=1, **hospital
        ),
        "visits": cl.PrivateTable(data["visits"], columns=visits, unit="patient", max_rows=4, **hospital),
        "drugs": cl.PrivateTable(
            data["drugs"],
            columns={"dose": cl.Integer(0, 9), "drug": cl.Category(["p", "q"])},
            unit="visit",
            max_rows=2,
            through="visits.visit",
            **hospital,
        ),
        "towns": cl.PublicTable(data["towns"]),
    }


def plain(data: dict[str, dict[str, list[Any]]]) -> duckdb.DuckDBPyConnection:
    """The same rows, unprotected."""
    types = {name: kind for kind, names in _TYPES.items() for name in names}
    connection = duckdb.connect(":memory:")
    for name, columns in data.items():
        fields = ", ".join(f"{column} {types.get(column, 'BIGINT')}" for column in columns)
        connection.execute(f"CREATE TABLE {name} ({fields})")
        values = list(zip(*columns.values(), strict=True))
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", values)
    return connection
