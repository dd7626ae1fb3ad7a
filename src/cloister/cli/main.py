"""`cloister`: the command line."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cloister.errors import CloisterError, InvalidParameter

if TYPE_CHECKING:
    from cloister.ledger import Ledger
    from cloister.privacy import Guarantee
    from cloister.query import Session
    from cloister.session import Release
    from cloister.tables import PrivateTable, PublicTable

_Command = TypeVar("_Command", bound=Callable[..., Any])

_TABLES_HELP = (
    "A TOML file that declares tables and budgets; without it, the sample tables: census, visits, patients, wards, towns."
)
_LEDGER_HELP = "The ledger: a file, or a postgresql:// address. Without it, one in memory that ends with the command."


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def cli() -> None:
    """Share what the data says, not the data.

    \b
    cloister demo
    cloister query "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM census GROUP BY sex" --spend 0.1
    """


def main() -> None:
    """The entry point: a refusal is one message and exit code 1, never a trace.

    A failure of cloister's own is one line and exit code 2. The words of an unforeseen error may hold a row, so they and the
    trace are shown only to who sets CLOISTER_DEBUG=1.

    >>> import sys
    >>> sys.argv = ["cloister", "version"]
    >>> main()  # doctest: +ELLIPSIS
    cloister ...
    """
    try:
        cli(standalone_mode=False)
    except CloisterError as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo(
            "interrupted; what was reserved stays charged, and the same question runs once more under that charge", err=True
        )
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:  # the last resort: whatever it is, no trace and no words of it
        if os.environ.get("CLOISTER_DEBUG") == "1":
            traceback.print_exc()
        click.echo(
            f"InternalError: cloister failed ({type(error).__name__}); please report it."
            " CLOISTER_DEBUG=1 shows the trace, which may hold private data",
            err=True,
        )
        sys.exit(2)


_DIALECT = click.option("--dialect", help="The SQL that the question is written in, for example postgres, bigquery or tsql.")


def _question_options(command: _Command) -> _Command:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option(
            "--who", default="command line", show_default=True, help="The name that the ledger writes beside the charge."
        ),
        click.option("--budget", help="ε of a budget where the ledger has none and the file declares none, for example 1."),
        click.option("--ledger", "ledger", help=_LEDGER_HELP),
        click.option("--tables", "tables", type=click.Path(exists=True, dir_okay=False, path_type=Path), help=_TABLES_HELP),
    ):
        command = option(command)
    return command


@cli.command()
@click.option("--once", is_flag=True, help="End after printing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def demo(once: bool, as_json: bool) -> None:
    """A first private answer, on sample data, with its error and its cost.

    \b
    cloister demo
    cloister demo --once
    """
    from cloister.cli.demo import run_demo

    run_demo(interactive=not once and not as_json and sys.stdin.isatty(), as_json=as_json)


@cli.command()
@click.argument("sql")
@click.option("--spend", help="What the answer may cost: ε, or ρ under a zCDP budget.")
@click.option("--within", type=float, help="Instead of --spend: the widest 95 % margin wanted.")
@click.option("--pilot", help="With --within, for means and quantiles: what a first noisy answer may cost.")
@_DIALECT
@click.option("--rehearse", is_flag=True, help="Answer from made-up rows: nothing private is read, nothing is spent.")
@click.option("--fresh", is_flag=True, help="Buy anew what would follow from a finer answer that was paid for.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with a column of margins beside each statistic.")
@click.option(
    "--chart",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a chart with error bars: .html or .json (or .svg, .png with cloister[hub]).",
)
@click.option("--purpose", default="", help="What the question is for; the ledger keeps it.")
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
    chart: Path | None,
    purpose: str,
    tables: Path | None,
    ledger: str | None,
    budget: str | None,
    who: str,
    as_json: bool,
) -> None:
    """Answer a question in SQL, privately.

    \b
    cloister query "SELECT sex, COUNT(*) AS n FROM census GROUP BY sex" --spend 0.1
    cloister query "SELECT COUNT(*) FROM people" --within 50 --tables tables.toml --ledger budget.db
    cloister query "SELECT education, MEDIAN(age) FROM census GROUP BY education" --spend 1 --rehearse
    """
    with _waiting("reading the question") as progress, _session(tables, ledger, budget, who, progress) as session:
        answer = session.sql(
            sql,
            spend,
            within=within,
            pilot=pilot,
            purpose=purpose,
            dialect=dialect,
            rehearse=rehearse,
            fresh=fresh,
        )
    if chart is not None:
        _write_chart(answer, chart)
    if as_json:
        click.echo(json.dumps(_as_json(answer), default=str))
    elif as_csv:
        _print_csv(answer)
    else:
        click.echo(repr(answer))


@cli.command()
@click.argument("sql")
@click.option("--spend", help="What the answer may cost (ε, or ρ under zCDP); without it, what a range of spends would buy.")
@_DIALECT
@_question_options
def explain(
    sql: str,
    spend: str | None,
    dialect: str | None,
    tables: Path | None,
    ledger: str | None,
    budget: str | None,
    who: str,
    as_json: bool,
) -> None:
    """Say what a question would measure, cost and know: spends nothing, reads no row.

    \b
    cloister explain "SELECT sex, AVG(age) AS age FROM census GROUP BY sex" --spend 0.1
    cloister explain "SELECT COUNT(*) FROM census"
    """
    with _session(tables, ledger, budget, who) as session:
        if spend is None:
            affordable = session.afford(sql, dialect=dialect)
            click.echo(json.dumps(affordable.to_pydict()) if as_json else str(affordable))
            return
        plan = session.explain(sql, spend, dialect=dialect)
        if as_json:
            document = {
                "digest": plan.digest,
                "cost": {population: str(cost) for population, cost in plan.costs.items()},
                "margin": {name: series.values[0] for name, series in plan.margin().columns.items()},
            }
            click.echo(json.dumps(document))
        else:
            click.echo(str(plan))


@cli.group()
def ledger() -> None:
    """Budgets and charges: look at them, verify them, raise them.

    \b
    cloister ledger show budget.db
    cloister ledger verify budget.db
    """


@ledger.command("show")
@click.argument("where")
@click.argument("population", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def ledger_show(where: str, population: str | None, as_json: bool) -> None:
    """Every population with its budget, or the charges of one.

    \b
    cloister ledger show budget.db
    cloister ledger show budget.db people --json
    """
    from cloister.cli.ledgers import show

    with _existing_ledger(where) as book:
        show(book, population, as_json=as_json)


@ledger.command("verify")
@click.argument("where")
def ledger_verify(where: str) -> None:
    """Check every line of the chain; exit code 1 and the first broken line where one was changed, dropped or rolled back.

    \b
    cloister ledger verify budget.db
    """
    with _existing_ledger(where) as book, _waiting("verifying"):
        outcome = book.verify()
        count = book.head[0]
    if outcome:
        click.echo(f"{count:,} lines, none changed, dropped or rolled back")
        return
    click.echo(f"BROKEN: {outcome}", err=True)
    sys.exit(1)


@ledger.command("raise")
@click.argument("where")
@click.argument("population")
@click.option("--epsilon", help="The new ε.")
@click.option("--delta", help="The new δ, of an (ε, δ) or a zCDP budget.")
@click.option("--rho", help="The new ρ.")
@click.option("--who", required=True, help="Who decides.")
@click.option("--why", required=True, help="The reason; the ledger keeps it.")
def ledger_raise(
    where: str, population: str, epsilon: str | None, delta: str | None, rho: str | None, who: str, why: str
) -> None:
    """Raise a budget: an audited act of its owner.

    \b
    cloister ledger raise budget.db people --epsilon 2 --who "data board" --why "second study approved"
    """
    from cloister.cli.ledgers import budget_of

    with _existing_ledger(where) as book:
        book.raise_budget(population, budget_of(epsilon, delta, rho), who=who, why=why)
        click.echo(f"{population}: budget {book.budget(population)}, of which {book.remaining(population)} is left")


@ledger.command("restore")
@click.argument("where")
@click.option(
    "--loss",
    "losses",
    multiple=True,
    metavar="POPULATION=AMOUNT",
    help="What a population has spent in all, for example people=0.7.",
)
@click.option("--who", required=True, help="Who decides.")
@click.option("--why", required=True, help="The reason; the ledger keeps it.")
def ledger_restore(where: str, losses: tuple[str, ...], who: str, why: str) -> None:
    """Thaw a ledger that was put back from a backup: say what each population has spent until now, no less than is known.

    \b
    cloister ledger restore budget.db --loss people=0.7 --who "data board" --why "disk of May"
    """
    from cloister.cli.ledgers import restore

    with _existing_ledger(where) as book:
        restore(book, losses, who=who, why=why)


@ledger.command("export")
@click.argument("where")
@click.argument("population", required=False)
def ledger_export(where: str, population: str | None) -> None:
    """Print the standing charges as dp_accounting events, one a line (needs dp-accounting).

    \b
    cloister ledger export budget.db people
    """
    with _existing_ledger(where) as book:
        for event in book.export(population):
            click.echo(repr(event))


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def version(as_json: bool) -> None:
    """The version of cloister and of what it stands on.

    \b
    cloister version --json
    """
    from importlib.metadata import version as version_of

    found = {package: version_of(package) for package in ("cloister", "duckdb", "ibis-framework", "numpy", "cryptography")}
    click.echo(json.dumps(found) if as_json else "\n".join(f"{package} {number}" for package, number in found.items()))


@contextmanager
def _session(
    tables: Path | None, ledger: str | None, budget: str | None, who: str, progress: Callable[[str], None] | None = None
) -> Iterator[Session]:
    from cloister.cli.declared import load
    from cloister.privacy import PureDP
    from cloister.query import Session
    from cloister.samples import tables as sample_tables

    found: dict[str, PrivateTable | PublicTable] = dict(sample_tables())
    budgets: dict[str, Guarantee] = {}
    if tables is not None:
        found, budgets = load(tables)
    default = PureDP(budget) if budget is not None else PureDP(1) if tables is None else None
    with _open_ledger(ledger) as book:
        names = {getattr(table, "population", None) or name for name, table in found.items()}
        known = book.populations()
        chosen = {name: budgets.get(name, default) for name in names if name not in known}
        given = {name: guarantee for name, guarantee in chosen.items() if guarantee is not None}
        with Session(found, budget=given, ledger=book, who=who, progress=progress) as session:
            yield session


@contextmanager
def _open_ledger(where: str | None) -> Iterator[Ledger]:
    from cloister.ledger import Ledger

    with Ledger(where) as book:
        yield book


@contextmanager
def _existing_ledger(where: str) -> Iterator[Ledger]:
    """A ledger that is there: opening any other name would make a new one."""
    if "://" not in where and not Path(where).is_file():
        raise InvalidParameter(
            f"The ledger {where!r} was refused", why="there is no such file", instead="cloister ledger show budget.db"
        )
    with _open_ledger(where) as book:
        yield book


@contextmanager
def _waiting(what: str) -> Iterator[Callable[[str], None]]:
    """A sign of life on a terminal: the stage and the time, never rows or percent of private work."""
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda stage: progress.update(task, description=stage)


def _as_json(answer: Release) -> dict[str, Any]:
    return {
        "columns": answer.to_pydict(),
        "margin95": {name: answer.margin().columns[name].tolist() for name in answer.statistics()},
        "cost": {population: str(cost) for population, cost in answer.spent_by.items()},
        "digest": answer.provenance.digest,
        "notes": list(answer.notes),
        "repeated": answer.provenance.repeated,
    }


def _print_csv(answer: Release) -> None:
    import csv

    measured, margins = answer.statistics(), answer.margin()
    head = [part for name in answer.column_names for part in ([name, f"{name}_margin95"] if name in measured else [name])]
    writer = csv.writer(sys.stdout)
    writer.writerow(head)
    for row, wide in zip(answer.table, margins, strict=True):
        writer.writerow(
            [
                part
                for name, value, margin in zip(answer.column_names, row, wide, strict=True)
                for part in ([value, margin] if name in measured else [value])
            ]
        )


def _write_chart(answer: Release, path: Path) -> None:
    if path.suffix not in (".html", ".json", ".svg", ".png"):
        raise InvalidParameter(
            f"The chart {path.name!r} was refused", why="its ending says no known form", instead="--chart answer.html"
        )
    answer.plot().save(str(path))
