"""`cloister demo --terminal`: a first private answer on sample data without a hub, and a prompt for more."""

from __future__ import annotations

import json

import click

from cloister.errors import CloisterError
from cloister.privacy import PureDP
from cloister.query import Session
from cloister.samples import tables

FIRST = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM census GROUP BY sex"
SPEND = "0.1"

_WELCOME = """cloister: share what the data says, not the data.

Sample tables, made by a generator: nobody's rows.
  census    one row a person: age, sex, race, education, marital_status, work_class, hours, income, pay
  visits    a hospital's visits, several a patient, of which at most 5 count: age, sex, smoker, ward, admitted, stay, cost
  patients  one row a patient of that hospital: sex, born, town; joined by visits.patient = patients.patient
  wards     public: ward, building, beds
  towns     public: town, inhabitants, university
The persons of the census have a privacy budget of ε = 1, and so have the patients.
"""
_PROMPT = "Ask in SQL (an empty line or Ctrl-D ends); each answer spends ε = 0.1 of its table's budget."


def run_demo(*, interactive: bool, as_json: bool) -> None:
    """The first answer; then, on a terminal, whatever is asked."""
    with Session(tables(), budget=PureDP(1), who="demo") as session:
        answer = session.sql(FIRST, spend=SPEND, purpose="first look")
        if as_json:
            click.echo(
                json.dumps(
                    {"sql": FIRST, "columns": answer.to_pydict(), "cost": str(answer.cost), "remaining": str(session.remaining)}
                )
            )
            return
        click.echo(_WELCOME)
        click.echo(f"{FIRST}\n\n{answer!r}\n")
        click.echo(f"left of the budget: {session.remaining_by['census']}\n")
        if interactive:
            _ask(session)


def _ask(session: Session) -> None:
    click.echo(_PROMPT)
    while True:
        try:
            sql = input("cloister> ").strip()
        except (EOFError, KeyboardInterrupt):
            click.echo()
            return
        if not sql:
            return
        try:
            click.echo(f"\n{session.sql(sql, spend=SPEND)!r}\n")
        except CloisterError as refusal:
            click.echo(f"{type(refusal).__name__}: {refusal}\n")
