"""How many safe questions are answered, and that every unsafe one is refused: a suite of our own over what peers document.

The questions are written after the grammar that each peer documents: SmartNoise SQL (its grammar file), ZetaSQL's private
aggregates, Qrlew's rewriting rules, Tumult's builders and PipelineDP's operations as the SQL that they stand for, and what
analysts write beside them (shares, ranks, comparisons of groups); a dialect other than our own stands in brackets. A safe
question is one that can be answered from aggregates
over people under a declared contribution; an unsafe one shows rows, names persons, or reaches for what is not a table. `--list`
prints the refusals.
"""

from __future__ import annotations

import sys
from pathlib import Path

from _report import report

import cloister as cl
from cloister.noise import Random

LEAST = 0.95
QUESTIONS = Path(__file__).parent / "_coverage_questions.sql"


def suites() -> dict[str, list[str]]:
    """The questions by the peer whose grammar they follow; the last are the unsafe ones."""
    found: dict[str, list[str]] = {}
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        if line.startswith("-- "):
            found[line[3:]] = []
        else:
            found[next(reversed(found))].append(line)
    return found


def tables() -> dict[str, cl.PrivateTable | cl.PublicTable]:
    """A shop: its staff, its clients with their orders, and the regions, which are public."""
    regions = ["north", "east", "south", "west"]
    staff = {
        "age": [20 + place % 50 for place in range(200)],
        "sex": ["F" if place % 3 else "M" for place in range(200)],
        "region": [regions[place % 4] for place in range(200)],
        "income": [place * 7 % 90 for place in range(200)],
    }
    orders = {
        "client": [place % 60 for place in range(180)],
        "item": ["tea" if place % 2 else "milk" for place in range(180)],
        "price": [place * 11 % 100 for place in range(180)],
        "day": [f"2026-{1 + place % 6:02}-{1 + place % 28:02}" for place in range(180)],
    }
    clients = {
        "client": list(range(60)),
        "kind": ["a" if place % 2 else "b" for place in range(60)],
        "sex": ["F" if place % 3 else "M" for place in range(60)],
        "age": [20 + place % 50 for place in range(60)],
    }
    region = cl.Category(regions)
    of_clients = {"unit": "client", "population": "clients"}
    return {
        "staff": cl.PrivateTable(
            staff, {"age": cl.Integer(18, 90), "sex": cl.Category(["F", "M"]), "region": region, "income": cl.Integer(0, 100)}
        ),
        "orders": cl.PrivateTable(
            orders,
            {"item": cl.Category(["tea", "milk"]), "price": cl.Integer(0, 100), "day": cl.Date("2026-01-01", "2026-06-30")},
            max_rows=3,
            **of_clients,
        ),
        "clients": cl.PrivateTable(
            clients,
            {"kind": cl.Category(["a", "b"]), "sex": cl.Category(["F", "M"]), "age": cl.Integer(18, 90)},
            max_rows=1,
            **of_clients,
        ),
        "regions": cl.PublicTable(
            {"region": regions, "name": [each.title() for each in regions], "inhabitants": [900, 1200, 3000, 500]}
        ),
    }


def main() -> None:
    """Ask all of them; the answers are checked against DuckDB's elsewhere (`tests/query`)."""
    asked = suites()
    unsafe = asked.pop("unsafe")
    answered, refused, safe = 0, list[str](), sum(map(len, asked.values()))
    with cl.Session(tables(), budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        for peer, questions in asked.items():
            before = answered
            for sql in questions:
                dialect = "bigquery" if peer == "ZetaSQL" else None
                if sql.startswith("["):
                    dialect, _, sql = sql[1:].partition("] ")
                try:
                    session.sql(sql, spend=100, dialect=dialect)
                    answered += 1
                except cl.CloisterError as refusal:
                    refused.append(f"{sql}\n    {refusal}")
            print(f"{peer}: {answered - before} of {len(questions)} answered")
        let_through = [sql for sql in unsafe if _answered(session, sql)]
    if "--list" in sys.argv:
        print("\n".join(refused))
    detail = f"{answered} of {safe} safe questions answered, {safe - answered} refused"
    report("safe questions answered", answered / safe, LEAST, detail)
    detail = f"{len(unsafe) - len(let_through)} of {len(unsafe)} unsafe questions refused; answered: {let_through or 'none'}"
    report("unsafe questions answered", float(len(let_through)), 0, detail, most=True)


def _answered(session: cl.Session, sql: str) -> bool:
    try:
        session.sql(sql, spend=100)
    except cl.CloisterError:
        return False
    return True


if __name__ == "__main__":
    main()
