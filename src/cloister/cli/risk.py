"""`cloister risk`: is this table anonymous?"""

import json
import sys
from pathlib import Path
from typing import Any

import click

from cloister.cli.bounds import columns_of
from cloister.cli.opened import COMMAS, names_in, table_of
from cloister.cli.written import PAGE, write_page
from cloister.errors import InvalidParameter
from cloister.printable import finite


@click.command()
@click.argument("data", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--quasi", help=f"Columns that others may know about a person (quasi-identifiers), {COMMAS}.")
@click.option("--sensitive", default="", help="Columns that others must not learn.")
@click.option("--population", metavar="FILE|NUMBER", help="A table of the population in the same words, or its size.")
@click.option(
    "--threshold", type=click.FloatRange(0, 1), help="Exit with code 1 if a row is more likely than this to be re-identified."
)
@click.option("--report", type=PAGE, help="Write a page to read and sign: .html, .json or .txt.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def risk(
    data: Path | None,
    quasi: str | None,
    sensitive: str,
    population: str | None,
    threshold: float | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Is this table anonymous? DATA is a CSV or Parquet file; `census`, where there is no such file, a sample table.
    Reports k, l, t and the risks of re-identification; changes nothing.

    \b
    cloister risk census --quasi age,sex,race --sensitive income
    cloister risk census --quasi age,sex,race --sensitive income --report risk.html
    cloister risk census --quasi age,sex,race --population 83000000 --json
    cloister anonymize census --quasi age,sex --model k=5 --out released.csv
    cloister risk released.csv --quasi age,sex --threshold 0.2
    """
    from cloister.anonymize import risk as risk_of_table

    if data is None or not quasi:
        raise InvalidParameter(
            "Nothing was looked at",
            why="the file is missing" if data is None else "--quasi is missing",
            instead="cloister risk people.csv --quasi age,sex --sensitive disease",
        )
    known = columns_of(data)
    found = risk_of_table(table_of(data), names_in(quasi, known), names_in(sensitive, known), population=_population(population))
    if report is not None:
        write_page(found, report, of=data.name)
    if as_json:
        click.echo(json.dumps(finite(found.to_dict())))
    else:
        click.echo(str(found))
        if report is not None:
            click.echo(f"\nthe page is saved as {report}")
    if threshold is not None:
        over = found.records_at_risk(threshold)
        if over:
            rows = f"{over:,} rows have" if over > 1 else "1 row has"
            click.echo(f"{rows} a chance of more than {threshold:g} to be found", err=True)
            sys.exit(1)


def _population(text: str | None) -> Any:
    """The size of the population, or the path of its table."""
    if text is None:
        return None
    plain = text.replace("_", "").replace(",", "")
    return int(plain) if plain.isdecimal() else Path(text)
