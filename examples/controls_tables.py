"""A frequency table under inference controls: suppressed with complements, and rounded so that it still adds up.

Not differential privacy. The owner also sees what each suppressed cell may be, for who sees the rest.

python examples/controls_tables.py
"""

from __future__ import annotations

import cloister as cl
from cloister.query.controls import ControlledSession, Controls, Rounding, Suppression

COUNTS = {
    ("sales", "low"): 20,
    ("sales", "high"): 1,
    ("legal", "low"): 9,
    ("legal", "high"): 14,
    ("works", "low"): 30,
    ("works", "high"): 6,
}


def main() -> None:
    """The same table twice."""
    with ControlledSession.of(patients(), Controls(set_size=None, suppress=Suppression(threshold=3))) as session:
        print(session.table(("department", "risk")))
        for question, cells in session.owner_report().open_cells.items():
            print(f"for the owner: {question}: {cells}")
    with ControlledSession.of(patients(), Controls(set_size=None, rounding=Rounding(base=5, kind="controlled"))) as session:
        print()
        print(session.table(("department", "risk")))


def patients() -> cl.PrivateTable:
    """One row a person."""
    rows = [cell for cell, count in COUNTS.items() for _ in range(count)]
    return cl.PrivateTable(
        {"department": [department for department, _ in rows], "risk": [risk for _, risk in rows]},
        columns={"department": cl.Category(["sales", "legal", "works"]), "risk": cl.Category(["low", "high"])},
        version="2026",
    )


if __name__ == "__main__":
    main()
