"""`cloister query` and `cloister explain`: a question in SQL, its options, and how its answer is printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cloister.cli import spreadsheets
from cloister.cli.opened import session_over, waiting
from cloister.cli.written import CHART, FILE
from cloister.errors import InvalidParameter
from cloister.printable import finite

if TYPE_CHECKING:
    from cloister.client import RemoteSession
    from cloister.query import Session
    from cloister.session import Release

_Command = TypeVar("_Command", bound=Callable[..., Any])

_TABLES_HELP = (
    "A TOML file that declares tables and budgets; without it, the sample tables: census, visits, patients, wards, towns."
)
_LEDGER_HELP = "The ledger: a file, or a postgresql:// address. Without it, one in memory that ends with the command."
_API_HELP = "With --hub: an API token; better in the variable CLOISTER_TOKEN, since other users see what commands are given."
_AUTHORITY_HELP = "With --hub: the authority (PEM) that signed its certificate, where the system doesn't know it."
_DIALECT = click.option("--dialect", help="The SQL dialect of the query, for example postgres, bigquery or tsql.")


def _question_options(command: _Command) -> _Command:
    for option in (
        click.option("--project", help="With --hub: the project to run the query in, by its name or its id."),
        click.option("--purpose", default="", help="The purpose of the query; the ledger keeps it."),
        click.option("--authority", type=click.Path(exists=True, dir_okay=False), help=_AUTHORITY_HELP),
        click.option("--token", envvar="CLOISTER_TOKEN", help=_API_HELP),
        click.option("--hub", help="Query a hub, such as https://hub.example.org, instead of tables on this machine."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--who", help="The name that the ledger records with the charge (default: command line)."),
        click.option("--budget", help="ε of the budget if neither the ledger nor the file has one, for example 1."),
        click.option("--ledger", "ledger", help=_LEDGER_HELP),
        click.option("--tables", "tables", type=FILE, help=_TABLES_HELP),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("sql")
@click.option("--spend", help="The spend of the answer: ε, or ρ under a zCDP budget.")
@click.option("--within", type=float, help="Instead of --spend: the widest 95 % margin wanted.")
@click.option("--pilot", help="With --within, for means and quantiles: the spend of a first noisy answer.")
@_DIALECT
@click.option("--rehearse", is_flag=True, help="Answer from made-up rows: nothing private is read, nothing is spent.")
@click.option("--fresh", is_flag=True, help="Run the query again even if it follows from a finer answer that was charged before.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with a column of margins after each statistic.")
@spreadsheets.OPTION
@click.option("--chart", type=CHART, help="Write a chart with error bars: .html or .json (or .svg, .png with the extra [hub]).")
@_question_options
def query(
    sql: str,
    spend: str | None,
    within: float | None,
    pilot: str | None,
    dialect: str | None,
    rehearse: bool,
    fresh: bool,
    as_csv: bool,
    for_spreadsheets: bool,
    chart: Path | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Answer an SQL query privately: from tables on this machine, or from a hub.

    \b
    cloister query "SELECT sex, COUNT(*) AS n FROM census GROUP BY sex" --spend 0.1
    cloister query "SELECT COUNT(*) FROM people" --within 50 --tables tables.toml --ledger budget.db
    cloister query "SELECT education, MEDIAN(age) FROM census GROUP BY education" --spend 1 --rehearse
    cloister query "SELECT COUNT(*) AS n FROM census" --spend 0.1 --hub https://hub.example.org
    """
    if for_spreadsheets and (as_json or not as_csv):
        raise InvalidParameter("--for-spreadsheets is invalid", why="it changes CSV alone", instead="--csv --for-spreadsheets")
    if as_json and as_csv:
        raise InvalidParameter("--json and --csv together are invalid", why="an answer is printed in one form", instead="--csv")
    with waiting("reading the question") as progress, _session(progress, **where) as session:
        answer = session.sql(
            sql, spend, within=within, pilot=pilot, purpose=where["purpose"], dialect=dialect, rehearse=rehearse, fresh=fresh
        )
    if as_json:
        click.echo(json.dumps(finite(_as_json(answer)), default=str))
    elif as_csv:
        _print_csv(answer, for_spreadsheets=for_spreadsheets)
    else:
        click.echo(repr(answer))
    if chart is not None:
        answer.plot().save(str(chart))


@click.command()
@click.argument("sql")
@click.option("--spend", help="The spend of the answer (ε, or ρ under zCDP); otherwise the margins for a range of spends.")
@_DIALECT
@_question_options
def explain(sql: str, spend: str | None, dialect: str | None, as_json: bool, **where: Any) -> None:
    """Explain a query: its statistics, cost and margins of error. Spends nothing, reads no row.

    \b
    cloister explain "SELECT sex, AVG(age) AS age FROM census GROUP BY sex" --spend 0.1
    cloister explain "SELECT COUNT(*) FROM census"
    cloister explain "SELECT COUNT(*) FROM census" --spend 0.1 --hub https://hub.example.org
    """
    with _session(None, **where) as session:
        if spend is None:
            affordable = session.afford(sql, dialect=dialect)
            click.echo(json.dumps(finite(affordable.to_pydict())) if as_json else str(affordable))
            return
        plan = session.explain(sql, spend, dialect=dialect)
        if as_json:
            document = {
                "digest": plan.digest,
                "cost": {population: str(cost) for population, cost in plan.costs.items()},
                "margin": {name: series.values[0] for name, series in plan.margin().columns.items()},
            }
            click.echo(json.dumps(finite(document)))
        else:
            click.echo(str(plan))


def _session(
    progress: Callable[[str], None] | None,
    *,
    hub: str | None,
    token: str | None,
    authority: str | None,
    project: str | None,
    purpose: str,
    tables: Path | None,
    ledger: str | None,
    budget: str | None,
    who: str | None,
) -> AbstractContextManager[Session | RemoteSession]:
    """A session with a hub where one is named, or else over tables on this machine."""
    if hub is None:
        if project is not None or authority is not None:
            raise InvalidParameter("The query is invalid", why="that is for a hub, and none is named", instead="--hub https://…")
        return session_over(tables, ledger, budget, who or "command line", progress)
    here = {"--tables": tables, "--ledger": ledger, "--budget": budget, "--who": who}
    given = next((name for name, value in here.items() if value is not None), None)
    if given is not None:
        raise InvalidParameter(
            f"{given} is invalid", why="tables, budgets and names are the hub's own", instead=f"--hub {hub} without it"
        )
    from cloister.client import connect

    return connect(hub, token=token, verify=authority or True, project=project or "", purpose=purpose)


def _as_json(answer: Release) -> dict[str, Any]:
    return {
        "columns": answer.to_pydict(),
        "margin95": {name: answer.margin().columns[name].tolist() for name in answer.statistics()},
        "cost": {population: str(cost) for population, cost in answer.spent_by.items()},
        "digest": answer.provenance.digest,
        "notes": list(answer.notes),
        "repeated": answer.provenance.repeated,
    }


def _print_csv(answer: Release, *, for_spreadsheets: bool) -> None:
    import csv

    measured, margins = answer.statistics(), answer.margin()
    head = [part for name in answer.column_names for part in ([name, f"{name}_margin95"] if name in measured else [name])]
    rows = [
        [
            part
            for name, value, margin in zip(answer.column_names, row, wide, strict=True)
            for part in ([value, margin] if name in measured else [value])
        ]
        for row, wide in zip(answer.table, margins, strict=True)
    ]
    csv.writer(sys.stdout).writerows(spreadsheets.as_written(head, rows, for_spreadsheets=for_spreadsheets))
