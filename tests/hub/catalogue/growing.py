"""A table that grows, for the tests of windows: visits of some patients, with days at every edge."""

from __future__ import annotations

from typing import Any

from tests.hub.catalogue.world import Sender

COLUMNS: dict[str, Any] = {"day": {"kind": "date"}, "cost": {"kind": "integer", "low": 0, "high": 90, "reason": "the price list"}}
FIRST, MANY = "2026-Q1", 400
EDGES = ["2026-01-01", "2026-03-31"]
"""The first and the last day of the first window."""


def rows(*days: str, each: int = MANY) -> bytes:
    """A file with so many rows of each day; somebody has the same number of rows on each."""
    return ("who,day,cost\n" + "".join(f"p{n % 100},{day},{n % 90}\n" for day in days for n in range(each))).encode()


def body(upload: str, **more: Any) -> dict[str, Any]:
    """What is sent to register the first window."""
    given: dict[str, Any] = {
        "upload": upload,
        "name": "visits",
        "title": "Visits",
        "columns": COLUMNS,
        "unit": "who",
        "max_rows": 50,
    }
    given |= {"population": "patients", "budget": {"epsilon": "50"}, "every": "quarter", "window": FIRST, "date_column": "day"}
    return given | more


def opened(ada: Sender, content: bytes, **more: Any) -> dict[str, Any]:
    """The first window, open."""
    answer = ada.api("POST", "/datasets", json=body(ada.upload(content).json()["id"], **more))
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def window(ada: Sender, of: str = "visits_2026_q1", **said: Any) -> Any:
    """Open another."""
    return ada.api("POST", f"/datasets/{of}/windows", json=said)


def count(sender: Sender, sql: str, spend: str = "2") -> int:
    """The answer's one number; a grid of 2/50 for a count of rows, whose noise has a scale of 25 with 50 rows a person."""
    answer = sender.api("POST", "/questions", json={"sql": sql, "spend": spend})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["columns"]["n"][0])


def read(ada: Sender, name: str) -> tuple[int, int, int, int]:
    """What the owner is told: rows of the window, of earlier and of later days, and of none."""
    told = ada.api("GET", f"/datasets/{name}/reading").json()
    return told["rows"], told["rows_before"], told["rows_after"], told["rows_undated"]
