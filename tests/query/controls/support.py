"""A company's staff, and short ways to write conditions."""

from __future__ import annotations

from typing import Any

import cloister as cl
from cloister.query.controls import ControlledSession, Controls
from cloister.tables import Column, Compare, Literal

DEPARTMENTS = ["sales", "legal", "works"]


def staff(size: int = 60, *, version: str = "1", pay: list[int] | None = None, **more: Any) -> cl.PrivateTable:
    """Persons 0, 1, …: person i earns 20,000 + 1,000 i (or as said), in departments by turns; every second is a woman."""
    return cl.PrivateTable(
        {
            "person": list(range(size)),
            "pay": pay or [20_000 + 1_000 * i for i in range(size)],
            "sex": ["F" if i % 2 == 0 else "M" for i in range(size)],
            "department": [DEPARTMENTS[i % 3] for i in range(size)],
        },
        columns={
            "person": cl.Integer(0, 99_999),
            "pay": cl.Integer(0, 500_000),
            "sex": cl.Category(["F", "M"]),
            "department": cl.Category(DEPARTMENTS),
        },
        version=version,
        **more,
    )


def session(controls: Controls, table: cl.PrivateTable | None = None, **more: Any) -> ControlledSession:
    """Behind the second door, in memory unless a ledger is given."""
    return ControlledSession.of(table or staff(), controls, name="staff", **more)


def where(column: str, value: object, op: str = "=") -> Compare:
    return Compare(op, Column(column), Literal(value))
