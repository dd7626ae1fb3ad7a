"""`cloister rows`: how an owner's rows are read by their declarations, as exact numbers and values, for the owner alone."""

import json
from collections.abc import Mapping
from pathlib import Path

import click

from cloister.cli.bounds import BOUNDS, declared_table
from cloister.errors import InvalidParameter
from cloister.printable import shown
from cloister.tables import Offenders, PrivateTable, PublicTable, prepare

_WRITTEN = {"boolean": "yes or no", "date": "2026-12-31", "moment": "2026-12-31T14:05", "integer": "1234", "real": "1234.5"}
"""How a value is written that a declaration reads."""


@click.command()
@click.argument("data")
@click.option("--bounds", help=BOUNDS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a line for each table.")
def rows(data: str, bounds: str | None, as_json: bool) -> None:
    """Show how your rows are read: lines that are left out, values that count as missing or are moved to a bound. No answer says
    so. They are exact numbers and values of your rows, and for you alone. DATA is a CSV or Parquet file, a sample table, or a
    TOML file as of --tables.

    \b
    cloister rows census
    cloister rows people.csv --bounds "age=17:90,sex=F|M"
    cloister rows tables.toml
    """
    from cloister.cli.declared import load

    if not data.endswith(".toml"):
        show_rows(dict([declared_table(data, bounds)]), as_json=as_json)
        return
    if bounds is not None:
        raise InvalidParameter(
            "--bounds is invalid", why=f"{Path(data).name} declares its tables", instead=f"cloister rows {data}"
        )
    show_rows(load(Path(data))[0], as_json=as_json)


def show_rows(tables: Mapping[str, PrivateTable | PublicTable], *, as_json: bool) -> None:
    """Print how each private table is read."""
    for name, table in tables.items():
        if not isinstance(table, PrivateTable):
            continue
        with prepare(table) as prepared:
            report, offenders = prepared.owner_report(), prepared.owner_offenders()
        if as_json:
            found = {each: {"nulled": values.nulled, "clamped": values.clamped} for each, values in offenders.items()}
            doubtful = {column: each.doubtful for column, each in report.columns.items() if each.doubtful}
            told = {"rows": report.rows, "left_out": report.left_out, "misfits": found, "doubtful": doubtful}
            click.echo(json.dumps({"table": name, **told}))
            continue
        click.echo(f"{name}: {report.rows} rows")
        for number, what in (
            (report.rows_malformed, "lines are left out: quotes, fields or UTF-8 are wrong"),
            (report.rows_without_unit, "rows are left out, since they name no person"),
            (report.rows_over_cap, f"rows are left out, over the most that one person may have ({report.units_over_cap} people)"),
            (report.rows_before + report.rows_after + report.rows_undated, "rows are of no day of this table"),
        ):
            if number:
                click.echo(f"  {number} {what}")
        for column, each in report.columns.items():
            misfits = offenders.get(column, Offenders())
            for number, values, what in (
                (each.nulled, misfits.nulled, "count as missing"),
                (each.clamped, misfits.clamped, "are moved to a bound"),
            ):
                if number:
                    examples = ", ".join(f"{shown(value)!r} ({count})" for value, count in values[:5])
                    click.echo(f"  {column}: {number} of {each.given} values {what}, such as {examples}")
            if each.doubtful:
                click.echo(f"  {column}: {each.doubtful} values of the file look like 2.000, read as 2: if not, write 2000")
            if each.nulled and each.nulled == each.given:
                right = _WRITTEN.get(table.columns[column].kind, "what is declared")
                click.echo(f"  {column}: none of its values is read: write {right}, or declare it as the codebook has it")
