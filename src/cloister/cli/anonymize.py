"""`cloister anonymize`: a table that may be published, from a file, with a report of what that means."""

from __future__ import annotations

import json
import re
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli import spreadsheets
from cloister.cli.bounds import columns_of
from cloister.cli.opened import COMMAS, names_in, progress_bar, table_of
from cloister.cli.written import PAGE, Written, check_apart, write_page
from cloister.errors import InvalidParameter
from cloister.printable import finite

if TYPE_CHECKING:
    from cloister.anonymize import Certificate, Hierarchy
    from cloister.anonymize.models.base import PrivacyModel

_LARGE = {".csv": 256 * 2**20, ".parquet": 64 * 2**20}
"""Bytes from which on a file is not read into memory."""


@click.command()
@click.argument("data", type=click.Path(path_type=Path), required=False)
@click.option("--quasi", help=f"Columns that others may know about a person (quasi-identifiers), {COMMAS}.")
@click.option("--sensitive", default="", help="Columns that others must not learn.")
@click.option("--identifying", default="", help="Columns that name a person: they are dropped.")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="k=5, l=3, l=3:entropy, l=3:recursive:2, t=0.2, t=0.2:equal, beta=1, beta=1:enhanced, delta=2, alpha=0.5:5 (α and k); "
    "may be repeated; k=5 when left out.",
)
@click.option(
    "--hierarchy", "hierarchies", multiple=True, metavar="COLUMN=FILE", help="A hierarchy as ARX writes it; may be repeated."
)
@click.option(
    "--search", default="optimal", show_default=True, help="optimal, mondrian, local, topdown, greedy, microaggregation."
)
@click.option(
    "--metric", default="loss", show_default=True, help="The information loss to minimise: loss, discernibility, entropy, …"
)
@click.option("--suppression", default="0.02", show_default=True, help="The largest share of the rows that may be suppressed.")
@click.option(
    "--suppressed",
    type=click.Choice(["drop", "star"]),
    default="drop",
    show_default=True,
    help="Whether suppressed rows are dropped or starred.",
)
@click.option("--missing", type=click.Choice(["value", "suppress", "refuse"]), default="value", show_default=True)
@click.option("--missing-value", "missing_values", multiple=True, help="A text that stands for a missing value; may be repeated.")
@click.option("--seconds", type=click.FloatRange(min=0.01), default=60.0, show_default=True, help="A time budget for the search.")
@click.option("-o", "--out", type=Written(".csv", ".parquet"), help="Write the table: .csv or .parquet (default: print CSV).")
@click.option(
    "--larger-than-memory/--in-memory",
    "larger",
    default=None,
    help="Let DuckDB read and write the table, without loading it into memory (default: by its size).",
)
@click.option("--memory-limit", metavar="SIZE", help="The most memory that DuckDB may use, for example 2GiB.")
@spreadsheets.OPTION
@click.option("--report", type=PAGE, help="Write the report: .html, .json or .txt.")
@click.option("--certificate", type=PAGE, help="Simulate attacks and write the certificate: .html, .json or .txt.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON instead of words.")
def anonymize(**given: Any) -> None:
    """Anonymise a table by k-anonymity and other models; DATA is a CSV or Parquet file, or `census`, a sample.

    NOT differential privacy: the report states the remaining risk.

    \b
    cloister anonymize census --quasi age,sex,race --sensitive income --model k=5 --model l=2 --out released.csv
    cloister anonymize census --quasi age,sex --search mondrian --out out.csv --report report.html
    cloister anonymize census --quasi age,sex --sensitive income --out released.csv --certificate certificate.html

    Rows are written in random order (large tables: sorted by the published values), so that their order links them to no other
    file. The output file appears only when complete; after an interruption the old file is intact.

    CSV holds every value as it is, for programs. A spreadsheet computes texts that begin with =, +, - or @: --for-spreadsheets
    writes an apostrophe before them, and numbers as they are. Without it, columns with such texts are named.
    """
    from cloister.anonymize import Anonymizer, HiddenRows, Hierarchy
    from cloister.anonymize.queries import under_another_name

    if given["data"] is None or not given["quasi"]:
        raise InvalidParameter(
            "Nothing was anonymised",
            why="the file is missing" if given["data"] is None else "--quasi is missing",
            instead="cloister anonymize people.csv --quasi age,sex --sensitive disease --out released.csv",
        )
    _check_spreadsheets(given)
    check_apart(given["data"], given["out"], given["report"], given["certificate"])
    larger = _is_larger(given)
    hierarchies: dict[str, Hierarchy] = {}
    known = columns_of(given["data"])
    for text in given["hierarchies"]:
        column, between, path = text.partition("=")
        if not between:
            raise InvalidParameter(f"--hierarchy {text} is invalid", why="it has no =", instead="--hierarchy age=age.csv")
        hierarchies[column] = Hierarchy.read_csv(path)
    released: Any = None
    shown = progress_bar("anonymising", "Text", "Bar", "TimeElapsed", total=1.0)
    with _ended_by_a_signal(), warnings.catch_warnings(), shown as update:
        warnings.simplefilter("ignore", HiddenRows)  # the report says the same
        anonymizer = Anonymizer(
            quasi=names_in(given["quasi"], known),
            sensitive=names_in(given["sensitive"], known),
            models=[model_of(text) for text in given["models"]] or [model_of("k=5")],
            hierarchies=hierarchies,
            search=given["search"],
            metric=given["metric"],
            suppression=given["suppression"],
            suppressed=given["suppressed"],
            identifying=names_in(given["identifying"], known),
            missing=given["missing"],
            missing_values=given["missing_values"],
            seconds=given["seconds"],
            shuffle=True,
            progress=lambda stage, done: update(description=stage, completed=done),
        )
        if larger:
            anonymizer.transform_file(given["data"], given["out"], memory_limit=given["memory_limit"])
        else:
            released = anonymizer.fit_transform(table_of(given["data"]))
        certificate = anonymizer.certificate(released) if given["certificate"] else None
        computed: list[str] = []
        if not larger and (given["out"] is None or given["out"].suffix == ".csv"):
            from polars import selectors

            moments = selectors.datetime(time_zone=None)  # as DuckDB writes them, and no digit more than they have
            released = released.with_columns(moments.dt.to_string("%F %T%.f"))
            told, computed = spreadsheets.guarded(released)
            if given["for_spreadsheets"]:
                released, certificate = told, _of_what_is_written(certificate, told, computed)
        if given["out"] is not None and not larger:
            with under_another_name(given["out"]) as path:
                released.write_parquet(path) if path.suffix == ".parquet" else released.write_csv(path)
    if not given["for_spreadsheets"]:
        spreadsheets.warn(map(repr, computed))
    if given["report"] is not None:
        write_page(anonymizer.report_, given["report"])
    if certificate is not None:
        write_page(certificate, given["certificate"])
    if given["as_json"]:
        click.echo(json.dumps(finite(anonymizer.report_.to_dict()), indent=2))
    elif given["out"] is None:
        click.echo(released.write_csv(), nl=False)
        click.echo(str(anonymizer.report_), err=True)
    else:
        click.echo(str(anonymizer.report_))
        click.echo(f"\nthe table is saved as {given['out']}")


def _of_what_is_written(certificate: Certificate | None, written: Any, changed: Sequence[str]) -> Certificate | None:
    """The certificate with the digest of the file in which texts have an apostrophe."""
    if certificate is None or not changed:
        return certificate
    from cloister.anonymize.frames import read_frame
    from cloister.anonymize.risks import digest_of

    made = {**certificate.made, "an apostrophe before texts that a spreadsheet would compute": ", ".join(changed)}
    return replace(certificate, digest=digest_of(read_frame(written)), made=made)


def model_of(text: str) -> PrivacyModel:
    """A model as it is written on the command line.

    >>> model_of("l=3:entropy").name
    'entropy 3-diversity'
    """
    from cloister.anonymize import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness
    from cloister.privacy.rational import plain_number

    name, _, rest = text.partition("=")
    value, *more = rest.split(":")
    try:
        match (name.strip().lower(), *more):
            case ["k"]:
                return KAnonymity(int(value))
            case ["l"]:
                return LDiversity(int(value))
            case ["l", "entropy"]:
                return LDiversity(float(value), kind="entropy")
            case ["l", "recursive", c]:
                return LDiversity(int(value), kind="recursive", c=plain_number(c))
            case ["l", kind]:
                return LDiversity(int(value), kind=kind)
            case ["t"]:
                return TCloseness(plain_number(value))
            case ["t", distance]:
                return TCloseness(plain_number(value), distance=distance)
            case ["beta"]:
                return BetaLikeness(plain_number(value))
            case ["beta", "enhanced"]:
                return BetaLikeness(plain_number(value), enhanced=True)
            case ["delta"]:
                return DeltaDisclosure(plain_number(value))
            case ["alpha", k]:
                return AlphaKAnonymity(plain_number(value), int(k))
    except ValueError as error:
        if isinstance(error, InvalidParameter) and not error.what.startswith("value"):  # a model's own words
            raise
        told = text if name.strip().lower() in ("k", "l") else re.sub(r"(?<=\d)[,，](?=\d)", ".", text)
        instead = f"--model {told if told != text else 'k=5'}"
        raise InvalidParameter(f"--model {text} is invalid", why=f"{rest!r} has no such number", instead=instead) from error
    raise InvalidParameter(
        f"--model {text} is invalid",
        why="it is none of k=, l=, l=…:entropy, l=…:recursive:c, t=, t=…:distance, beta=, beta=…:enhanced, delta=, alpha=…:k",
        instead="--model k=5 --model l=3",
    )


def _check_spreadsheets(given: dict[str, Any]) -> None:
    if given["for_spreadsheets"] and given["out"] is not None and given["out"].suffix == ".parquet":
        raise InvalidParameter(
            "--for-spreadsheets is invalid", why="it changes CSV alone", instead=f"--out {given['out'].stem}.csv"
        )


def _is_larger(given: dict[str, Any]) -> bool:
    """Whether the table should stay out of memory: as asked, or by the size of its file."""
    larger, data = given["larger"], given["data"]
    in_the_way = {
        "--certificate": given["certificate"],
        "--search microaggregation": given["search"] == "microaggregation",
        "--for-spreadsheets": given["for_spreadsheets"],
    }
    wanted = next((name for name, there in in_the_way.items() if there), None)
    if larger is None:
        large = data.is_file() and data.stat().st_size >= _LARGE.get(data.suffix, _LARGE[".csv"])
        return large and given["out"] is not None and wanted is None
    if larger and (given["out"] is None or wanted is not None):
        raise InvalidParameter(
            "--larger-than-memory is invalid",
            why=f"{wanted} wants the table in memory" if wanted else "--out is missing",
            instead="--in-memory" if wanted else "--larger-than-memory --out released.parquet",
        )
    return bool(larger)


@contextmanager
def _ended_by_a_signal() -> Iterator[None]:
    """Who ends the command politely (SIGTERM) finds nothing half written, either."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
