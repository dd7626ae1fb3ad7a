"""Sample tables for a first look, made up by a seeded generator: they describe no real person, so nothing in them is secret.

- `census(rows)`: one row a person. Age, sex, race, education, marital status and work class follow, each on its own, the counts
  of the 48,842 rows of the Adult data (Kohavi & Becker 1996, UCI Machine Learning Repository); income above 50,000 follows its
  share by education there.
- `hospital(patients)`: visits to a hospital, several a patient, with ward, length of stay and cost; made-up.
- `registry(patients)`: the same patients, a row each, with year of birth and town. It names the same population, so that the two
  can be joined, and share one budget.
- `wards()` and `towns()`: public tables to join them with.

What may not live here: anything read from a file, and anything that touches a private table of a user.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.noise import Random
from cloister.tables import Boolean, Category, Date, Integer, PrivateTable, PublicTable, Real

SEX = {"Male": 32650, "Female": 16192}
RACE = {"White": 41762, "Black": 4685, "Asian-Pac-Islander": 1519, "Amer-Indian-Eskimo": 470, "Other": 406}
MARITAL = {
    "Married-civ-spouse": 22379,
    "Never-married": 16117,
    "Divorced": 6633,
    "Separated": 1530,
    "Widowed": 1518,
    "Married-spouse-absent": 628,
    "Married-AF-spouse": 37,
}
WORK = {
    "Private": 33906,
    "Self-emp-not-inc": 3862,
    "Local-gov": 3136,
    "State-gov": 1981,
    "Self-emp-inc": 1695,
    "Federal-gov": 1432,
    "Without-pay": 21,
    "Never-worked": 10,
}
EDUCATION = {
    "Preschool": (83, 0.012),
    "1st-4th": (247, 0.032),
    "5th-6th": (509, 0.053),
    "7th-8th": (955, 0.065),
    "9th": (756, 0.054),
    "10th": (1389, 0.063),
    "11th": (1812, 0.051),
    "12th": (657, 0.073),
    "HS-grad": (15784, 0.159),
    "Some-college": (10878, 0.190),
    "Assoc-voc": (2061, 0.253),
    "Assoc-acdm": (1601, 0.258),
    "Bachelors": (8025, 0.413),
    "Masters": (2657, 0.549),
    "Prof-school": (834, 0.740),
    "Doctorate": (594, 0.726),
}
AGES = {
    17: 2510,
    20: 5922,
    25: 6083,
    30: 6494,
    35: 6435,
    40: 5758,
    45: 4966,
    50: 3805,
    55: 2814,
    60: 1968,
    65: 1086,
    70: 556,
    75: 259,
    80: 114,
    85: 72,
}
HOURS = {10: 2591, 20: 3560, 30: 5536, 40: 27474, 50: 5828, 60: 2642, 70: 683, 80: 528}
WARDS = {"emergency": 34, "medicine": 27, "surgery": 16, "cardiology": 11, "maternity": 8, "oncology": 4}
BUILDINGS = {"emergency": "A", "medicine": "A", "surgery": "B", "cardiology": "B", "maternity": "C", "oncology": "C"}
BEDS = {"emergency": 30, "medicine": 96, "surgery": 64, "cardiology": 42, "maternity": 28, "oncology": 24}
TOWNS = {"Delft": 34, "Gouda": 22, "Leiden": 29, "Zoetermeer": 15}
INHABITANTS = {"Delft": 109_000, "Gouda": 76_000, "Leiden": 129_000, "Zoetermeer": 128_000}
UNIVERSITIES = ("Delft", "Leiden")
YEAR = 2025
STAYS = {"emergency": 1.2, "medicine": 5.5, "surgery": 4.0, "cardiology": 4.8, "maternity": 2.6, "oncology": 7.5}

Column = npt.NDArray[Any]


def census(rows: int = 48_842, *, seed: int = 1) -> PrivateTable:
    """A census-like table, one row a person.

    >>> table = census(100)
    >>> table.unit, table.size, sorted(table.columns)[:3]
    (None, 100, ['age', 'education', 'hours'])
    """
    draw = _Draw(rows, seed)
    education = draw.choice({name: count for name, (count, _) in EDUCATION.items()})
    richer = np.array([share for _, share in EDUCATION.values()])[education.codes]
    starts = np.array(list(AGES))
    widths = np.diff(np.append(starts, 91))
    decade = draw.choice(AGES).codes
    hours = np.array(list(HOURS))[draw.choice(HOURS).codes] + (draw.uniform() * 10).astype(np.int64)
    income = draw.uniform() < richer
    pay = np.where(income, 50_000 * (1 - draw.uniform()) ** -0.4, 8_000 + 42_000 * draw.uniform())
    columns = {
        "age": starts[decade] + (draw.uniform() * widths[decade]).astype(np.int64),
        "sex": draw.choice(SEX).values,
        "race": draw.choice(RACE).values,
        "education": education.values,
        "marital_status": draw.choice(MARITAL).values,
        "work_class": draw.choice(WORK).values,
        "hours": np.minimum(hours, 99),
        "income": np.where(income, ">50K", "<=50K").astype(object),
        "pay": np.round(np.minimum(pay, 500_000.0)),
    }
    return PrivateTable(
        columns,
        columns={
            "age": Integer(17, 90),
            "sex": Category(["Female", "Male"]),
            "race": Category(list(RACE)),
            "education": Category(list(EDUCATION)),
            "marital_status": Category(list(MARITAL)),
            "work_class": Category(list(WORK)),
            "hours": Integer(1, 99),
            "income": Category(["<=50K", ">50K"]),
            "pay": Real(0, 500_000, step=1),
        },
        size=rows,
        version=f"sample-{seed}",
    )


def hospital(patients: int = 12_000, *, seed: int = 2) -> PrivateTable:
    """A hospital-like table: up to a dozen visits a patient, of which at most 5 count.

    >>> table = hospital(50)
    >>> table.unit, table.max_rows
    ('patient', 5)
    """
    people = _Patients(patients, seed)
    owner = np.repeat(np.arange(patients), people.visits)
    draw = _Draw(len(owner), seed + 1)
    ward = draw.choice(WARDS)
    typical = np.array(list(STAYS.values()))[ward.codes]
    stay = np.minimum(np.floor(-np.log(1 - draw.uniform()) * typical * (0.7 + people.ages[owner] / 120)).astype(np.int64), 60)
    day = np.datetime64("2025-01-01") + (draw.uniform() * 365).astype(np.int64)
    columns = {
        "patient": people.names[owner],
        "age": people.ages[owner],
        "sex": people.sex[owner],
        "smoker": people.smoker[owner],
        "ward": ward.values,
        "admitted": day.astype(str).astype(object),
        "stay": stay,
        "cost": np.round(350 + 780 * stay + 2_400 * draw.uniform() * (1 + (ward.codes == 2)), 2),
    }
    return PrivateTable(
        columns,
        columns={
            "age": Integer(0, 110),
            "sex": Category(["female", "male"]),
            "smoker": Boolean(),
            "ward": Category(list(WARDS)),
            "admitted": Date("2025-01-01", "2025-12-31"),
            "stay": Integer(0, 60),
            "cost": Real(0, 60_000, step="0.01"),
        },
        unit="patient",
        max_rows=5,
        population="patients",
        size=len(owner),
        version=f"sample-{seed}",
    )


def registry(patients: int = 12_000, *, seed: int = 2) -> PrivateTable:
    """The patients of `hospital` with the same number and seed, one row each.

    >>> table = registry(50)
    >>> table.unit, table.max_rows, table.population == hospital(50).population
    ('patient', 1, True)
    """
    people = _Patients(patients, seed)
    return PrivateTable(
        {"patient": people.names, "sex": people.sex, "born": YEAR - people.ages, "town": people.towns},
        columns={
            "sex": Category(["female", "male"]),
            "born": Integer(YEAR - 110, YEAR),
            "town": Category(list(TOWNS)),
        },
        unit="patient",
        max_rows=1,
        population="patients",
        size=patients,
        version=f"sample-{seed}",
    )


def wards() -> PublicTable:
    """The wards of the hospital: public, so it costs nothing to join them.

    >>> wards().names
    ('ward', 'building', 'beds')
    """
    return PublicTable({"ward": list(WARDS), "building": list(BUILDINGS.values()), "beds": list(BEDS.values())})


def towns() -> PublicTable:
    """Where the patients live.

    >>> towns().names
    ('town', 'inhabitants', 'university')
    """
    return PublicTable(
        {
            "town": list(TOWNS),
            "inhabitants": list(INHABITANTS.values()),
            "university": [town in UNIVERSITIES for town in TOWNS],
        }
    )


def tables() -> dict[str, PrivateTable | PublicTable]:
    """All sample tables under the names that the demo uses.

    >>> sorted(tables())
    ['census', 'patients', 'towns', 'visits', 'wards']
    """
    return {"census": census(), "visits": hospital(), "patients": registry(), "wards": wards(), "towns": towns()}


class _Patients:
    """What the tables of one hospital say of each patient: the same draws, whichever of them is made."""

    def __init__(self, number: int, seed: int) -> None:
        draw = _Draw(number, seed)
        self.visits = 1 + np.minimum(np.floor(-np.log(1 - draw.uniform()) * 1.4).astype(np.int64), 11)
        self.ages = (draw.uniform() ** 0.7 * 95).astype(np.int64)
        self.smoker = draw.uniform() < 0.19
        self.sex: Column = draw.choice({"female": 52, "male": 48}).values
        self.towns: Column = draw.choice(TOWNS).values
        self.names: Column = np.array([f"P{place:05d}" for place in range(number)], dtype=object)


class _Choice:
    def __init__(self, codes: npt.NDArray[np.int64], options: Mapping[Any, int]) -> None:
        self.codes = codes
        self.values: Column = np.array(list(options), dtype=object)[codes]


class _Draw:
    """Columns of a stated length from a generator that repeats itself."""

    def __init__(self, rows: int, seed: int) -> None:
        self.rows = rows
        self.random = Random.deterministic(seed)

    def uniform(self) -> npt.NDArray[np.float64]:
        return self.random.uniform(self.rows)

    def choice(self, weights: Mapping[Any, int]) -> _Choice:
        ends = np.cumsum(list(weights.values())) / sum(weights.values())
        return _Choice(np.minimum(np.searchsorted(ends, self.uniform(), side="right"), len(weights) - 1), weights)
