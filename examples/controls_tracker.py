"""The general tracker against inference controls: set size alone gives a salary away, an exact audit of sums does not.

Not differential privacy: what is shown is why exact answers need more than a least size of sets, and still promise little.

python examples/controls_tracker.py
"""

from __future__ import annotations

from typing import Any

import cloister as cl
from cloister.query.controls import ControlledSession, Controls
from cloister.tables import Column, Compare, Expression, Literal, Not, Or

VICTIM = Compare("=", Column("person"), Literal(12))
WOMEN = Compare("=", Column("sex"), Literal("F"))


def main() -> None:
    """Ask directly, then with a tracker; first under set size alone, then under audit or overlap."""
    policies = {
        "set size 10": Controls(set_size=10, audit_sums=False),
        "set size 10, sums audited": Controls(set_size=10),
        "set size 10, overlap 5": Controls(set_size=10, overlap=5, audit_sums=False),
    }
    for name, controls in policies.items():
        print(f"{name}:")
        with ControlledSession.of(staff(), controls, name="staff", who="insider") as session:
            print("  asked directly:  ", attempt(lambda session=session: session.sum("pay", VICTIM).value))
            print("  with a tracker:  ", attempt(lambda session=session: tracked(session)))
            for refusal in session.owner_report().refusals[1:]:
                print("  the owner sees:  ", refusal.witness or refusal.why)


def tracked(session: ControlledSession) -> Any:
    """sum(C) = sum(C or T) + sum(C or not T) − sum(T) − sum(not T): four sets, each large and each leaving many out."""
    asked = [Or(VICTIM, WOMEN), Or(VICTIM, Not(WOMEN)), WOMEN, Not(WOMEN)]
    first, second, women, men = (total(session, condition) for condition in asked)
    return first + second - women - men


def total(session: ControlledSession, condition: Expression) -> Any:
    """A sum of salaries."""
    return session.sum("pay", condition).value


def attempt(question: Any) -> str:
    """The answer, or why there is none."""
    try:
        return f"{question():,}"
    except cl.AccessDenied as refused:
        return f"refused: {refused.why}"


def staff() -> cl.PrivateTable:
    """Sixty persons; number 12 earns 32,000."""
    return cl.PrivateTable(
        {
            "person": list(range(60)),
            "pay": [20_000 + 1_000 * i for i in range(60)],
            "sex": ["F" if i % 2 == 0 else "M" for i in range(60)],
        },
        columns={"person": cl.Integer(0, 999), "pay": cl.Integer(0, 500_000), "sex": cl.Category(["F", "M"])},
        version="2026",
    )


if __name__ == "__main__":
    main()
