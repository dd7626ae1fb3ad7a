"""Pairs of neighbouring worlds: five private tables of one population, with and without one person, as odd as can be."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import cloister as cl
from cloister.tables import Identifier

TOWNS = ["Delft", "Gouda", "Leiden", "Rijswijk"]
WARDS = ["heart", "bones", "eyes"]
ODD_NUMBERS = [
    10**30,
    -(10**30),
    float("nan"),
    float("inf"),
    -float("inf"),
    1e308,
    -0.0,
    0.1,
    "x",
    "",
    "1e400",
    None,
    True,
    2**63,
]
ODD_TEXTS = ["'; DROP TABLE people; --", "🤷", "", "%", "_", "\\", "a" * 3000, "\x00", "NULL", None, 'x"y', "Delft ", "delft"]
ODD_DATES = ["0000-99-99", "9999-12-31", "0001-01-01", "infinity", "", None, "1990-02-30", "2000-02-29", "1969-12-31"]

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class World:
    """The rows of each table; `ghost` is the person who may be left out."""

    rows: dict[str, Rows]
    ghost: Any

    def without(self) -> World:
        """The same world without the ghost: its rows, and of the prescriptions those of visits that nobody else has.

        In the table of flat rows each row is a person, so there the ghost is one row.
        """
        kept = {name: [row for row in rows if row.get("person") != self.ghost] for name, rows in self.rows.items()}
        of_others = {str(row["visit"]) for row in kept["visits"] if row["visit"] is not None}
        its_own = {str(row["visit"]) for row in self.rows["visits"] if row["person"] == self.ghost} - of_others
        kept["drugs"] = [row for row in kept["drugs"] if str(row["visit"]) not in its_own]
        return World(rows=kept, ghost=None)

    def tables(self) -> dict[str, cl.PrivateTable | cl.PublicTable]:
        """Fresh declarations over these rows."""
        made: dict[str, cl.PrivateTable | cl.PublicTable] = {
            name: cl.PrivateTable(_columns(rows, KEYS[name] + list(COLUMNS[name])), columns=COLUMNS[name], **DECLARED[name])
            for name, rows in self.rows.items()
        }
        provinces = ["ZH", "ZH", "ZH", "NH"]
        made["towns"] = cl.PublicTable({"name": TOWNS, "province": provinces, "people": [106, 76, None, 55]})
        made["doctors"] = cl.PublicTable(
            {
                "ward": ["heart", "heart", "eyes", "bones", "bones", None],
                "doctor": ["A", "B", "A", "C", "C", "B"],
                "fee": [1, 5, 2, 0, 9, 4],
            }
        )
        return made


COLUMNS: dict[str, dict[str, Any]] = {
    "flat": {
        "age": cl.Integer(17, 90),
        "sex": cl.Category(["F", "M"]),
        "town": cl.Category(TOWNS, nullable=True),
        "pay": cl.Real(-5, 100, step="0.25"),
        "smoker": cl.Boolean(),
        "born": cl.Date("1950-01-01", "2000-12-31"),
        "street": cl.Text(),
    },
    "persons": {
        "age": cl.Integer(17, 90),
        "sex": cl.Category(["F", "M"]),
        "town": cl.Category(TOWNS),
        "born": cl.Date("1950-01-01", "2000-12-31"),
    },
    "visits": {
        "visit": Identifier(),
        "ward": cl.Category(WARDS, nullable=True),
        "cost": cl.Integer(-3, 20),
        "day": cl.Date("2024-01-01", "2024-03-31"),
        "note": cl.Text(),
    },
    "tests": {
        "ref": Identifier(),
        "ward": cl.Category(WARDS),
        "score": cl.Real(0, 5, step="0.1"),
        "day": cl.Date("2024-01-01", "2024-03-31"),
    },
    "drugs": {"drug": cl.Category(["x", "y", "z"]), "dose": cl.Integer(0, 8)},
}
KEYS: dict[str, list[str]] = {
    "flat": ["person"],
    "persons": ["person"],
    "visits": ["person"],
    "tests": ["person"],
    "drugs": ["visit"],
}
DECLARED: dict[str, dict[str, Any]] = {
    "flat": {"population": "all", "version": "1"},
    "persons": {"unit": "person", "max_rows": 1, "population": "all", "version": "1"},
    "visits": {"unit": "person", "max_rows": 3, "population": "all", "version": "1"},
    "tests": {"unit": "person", "max_rows": 2, "population": "all", "version": "1"},
    "drugs": {"unit": "visit", "max_rows": 2, "through": "visits.visit", "population": "all", "version": "1"},
}


def world(seed: int) -> World:
    """A few persons and a ghost, drawn at random: duplicates, missing and impossible values, keys that are shared."""
    draw = random.Random(seed)
    text_names = draw.random() < 0.5
    names: list[Any] = [f"p{n}" if text_names else n for n in range(6)]
    ghost: Any = draw.choice(["ghost", "4.0", 10**19, 77] if text_names else [77, 78, 10**17])
    rows: dict[str, Rows] = {name: [] for name in COLUMNS}
    for name in names:
        rows["flat"].append(_flat(draw, name, odd=0.05))
        _add(rows, draw, name, most=4, odd=0.05)
    rows["flat"].append(_flat(draw, ghost, odd=draw.choice([0.0, 0.3, 0.8])))
    _add(rows, draw, ghost, most=draw.choice([1, 3, 8, 30]), odd=draw.choice([0.0, 0.3, 0.8]), extreme=True)
    for rest in rows.values():
        draw.shuffle(rest)
    return World(rows=rows, ghost=ghost)


def _flat(draw: random.Random, name: Any, *, odd: float) -> dict[str, Any]:
    return {
        "person": name,
        "age": _or(draw, odd, ODD_NUMBERS, draw.choice([17, 20, 35, 64, 90, 200])),
        "sex": _or(draw, odd, ODD_TEXTS, draw.choice(["F", "M"])),
        "town": _or(draw, odd, ODD_TEXTS, draw.choice(TOWNS)),
        "pay": _or(draw, odd, ODD_NUMBERS, draw.choice([-5, 0.25, 33.3, 100, 1e6])),
        "smoker": _or(draw, odd, [None, "maybe", 7], draw.choice([True, False])),
        "born": _or(draw, odd, ODD_DATES, draw.choice(["1950-01-01", "1980-02-29", "2000-12-31"])),
        "street": _or(draw, odd, ODD_TEXTS, draw.choice(["A", "B", "C"])),
    }


def _add(rows: dict[str, Rows], draw: random.Random, name: Any, *, most: int, odd: float, extreme: bool = False) -> None:
    """The rows of one person in the tables that have a unit. An extreme one repeats one row at the ends of the bounds."""
    for _ in range(draw.choice([1, 1, 0, 3] if extreme else [1, 1, 0])):
        flat = _flat(draw, name, odd=odd)
        rows["persons"].append({part: flat[part] for part in ("person", "age", "sex", "town", "born")})
    same = draw.random() < 0.5 and extreme
    kept: dict[str, Any] = {}
    for number in range(draw.randint(0, most) if not extreme else most):
        visit = {
            "person": name,
            "visit": draw.choice([draw.randint(0, 5), number + 1000 * len(rows["visits"]), None if odd > 0.2 else 3]),
            "ward": _or(draw, odd, ODD_TEXTS, draw.choice([*WARDS, None])),
            "cost": _or(draw, odd, ODD_NUMBERS, draw.choice([-3, 0, 7, 20, 500])),
            "day": _or(draw, odd, ODD_DATES, draw.choice(["2024-01-01", "2024-01-15", "2024-02-29", "2024-03-31"])),
            "note": _or(draw, odd, ODD_TEXTS, draw.choice(["ok", "ill"])),
        }
        kept = kept or visit
        visit = {**kept, "visit": visit["visit"]} if same else visit
        rows["visits"].append(visit)
        for _ in range(draw.choice([0, 1, 2, 5] if extreme else [0, 1, 2])):
            rows["drugs"].append(
                {
                    "visit": visit["visit"],
                    "drug": draw.choice(["x", "y", "z", None]),
                    "dose": _or(draw, odd, ODD_NUMBERS, draw.choice([0, 3, 8])),
                }
            )
        if draw.random() < 0.6:
            score = _or(draw, odd, ODD_NUMBERS, draw.choice([0, 2.5, 5, 9]))
            rows["tests"].append(
                {"person": name, "ref": draw.randint(0, 5), "ward": draw.choice(WARDS), "score": score, "day": visit["day"]}
            )


def _or(draw: random.Random, odd: float, strange: list[Any], usual: Any) -> Any:
    return draw.choice(strange) if draw.random() < odd else usual


def _columns(rows: Rows, names: list[str]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in names}
