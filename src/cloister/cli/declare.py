"""`cloister declare`: a declarations file from the names of columns, codebooks, and what is said on the line."""

import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import click

from cloister.cli.opened import names_in
from cloister.cli.written import FILE, WRITTEN
from cloister.errors import CloisterError, InvalidParameter
from cloister.tables.declaring.codebooks import categories, kind_of, read_codebook
from cloister.tables.declaring.draft import BOUNDED, Codebook, ColumnDraft, declaration_text
from cloister.tables.declaring.labels import READERS, read_labels
from cloister.tables.declaring.plain import domain_of
from cloister.tables.declaring.vocabulary import suggest
from cloister.tables.engines.guard import tried
from cloister.tables.sourcing.source_factory import recognise

_MOST_ROWS = 10
"""Of one person, where nobody says how many count: a table with a unit does not open without a number."""
_LINE = '--set "age=integer 0..120"'
_PLACE = re.compile(r"place\s+(\S.*?)\s+of\s+(\S.*)")
_BOUNDS = re.compile(r"(\S+?)\s*\.\.+\s*(\S+?)(?:\s*/\s*(\S+))?")


@click.command()
@click.argument("data")
@click.option("--name", help="The table's name in queries (default: that of the file).")
@click.option(
    "--codebook",
    "codebooks",
    multiple=True,
    type=FILE,
    help="CSV, Table Schema (JSON), DDI (XML), CREATE TABLE (SQL), SPSS, Stata, SAS, or a declaration; the last one wins.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="COLUMNS=KIND …", help=f"{_LINE}; q* names several columns; may be repeated."
)
@click.option("--because", default="", help="The public reason of what --set says.")
@click.option("--unit", default="", help="The column that says whose row a row is.")
@click.option("--max-rows", type=click.IntRange(1), help="How many rows of one person count.")
@click.option("--no-suggestions", is_flag=True, help="Suggest nothing by the names of columns.")
@click.option("-o", "--output", type=WRITTEN, help="Write to this new file.")
def declare(
    data: str,
    name: str | None,
    codebooks: tuple[Path, ...],
    settings: tuple[str, ...],
    because: str,
    unit: str,
    max_rows: int | None,
    no_suggestions: bool,
    output: Path | None,
) -> None:
    """Write a declarations file for DATA (CSV, Parquet, or a database's table), for `cloister query --tables`.

    The names of the columns are read, and no row: kinds and bounds come from codebooks, from what is said on the line, and where
    neither speaks from what columns of such names usually hold. Read each line before you use the file.

    \b
    cloister declare people.csv -o people.toml
    cloister declare people.csv --codebook people.schema.json --set "q*=integer 1..5" --because "the questionnaire" -o people.toml
    cloister declare visits.csv --unit patient_id --max-rows 10
    cloister declare trips.csv --set "start=place 4.2,51.9,4.5,52.1 of lon,lat" --set "at=moment 2026-01-01..2026-03-31"
    cloister declare trips.csv --set "start=place districts.geojson of lon,lat"
    """
    kinds = recognise(data).schema
    table = name or re.sub(r"\W", "_", Path(data.rpartition("::")[2]).stem.partition(".")[0]) or "rows"
    found = {} if no_suggestions else suggest(kinds)
    book = Codebook()
    for path in codebooks:
        book = _codebook(path, table)
        for note in book.notes:
            click.echo(f"{path.name}: {note}", err=True)
        taken = book.of(kinds)
        for column, draft in taken.items():
            asked = draft.kind in (*BOUNDED, "category") and not draft.reason
            given = replace(draft, reason=f"the codebook {path.name}") if asked else draft
            found[column] = given.over(found.get(column, ColumnDraft()))
        if not taken:
            click.echo(f"{path.name}: it describes none of the columns", err=True)
    places: dict[str, dict[str, object]] = {name: dict(place) for name, place in book.places.items()}
    dropped = set[str]()
    for line in settings:
        said = _place(line, kinds)
        if said is not None:
            places |= said
            continue
        for column, draft in _set(line, because, kinds).items():
            found[column] = draft.over(found.get(column, ColumnDraft())) if draft.kind else draft
            dropped |= set() if draft.kind else {column}
    if unit and unit not in kinds:
        raise InvalidParameter(
            f"--unit {unit!r} is invalid", why="there is no such column", instead=f"--unit {next(iter(kinds))}"
        )
    unit = unit or (book.unit if book.unit in kinds else "")
    named = [column for column, draft in found.items() if draft.kind == "identifier" and column in kinds]
    if not unit and named:  # the safest that opens: of an event's name each row is one, as it would be without
        unit = named[0]
        click.echo(f'unit = "{unit}": people are protected if it names them; otherwise --unit and the column that does', err=True)
    most = max_rows or book.max_rows or (_MOST_ROWS if unit else None)
    for place in places.values():
        if isinstance(place.get("regions"), str):
            place["regions"] = _beside(str(place["regions"]), output)
    whole = Codebook(
        columns=found,
        unit=unit,
        max_rows=most,
        size=book.size,
        places=places,
        reasons={**dict.fromkeys(places, because), **book.reasons},
    )
    text = declaration_text(table, _beside(data, output), kinds, whole)
    if output is None:
        click.echo(text, nl=False)
        return
    if tried(lambda: output.open("x", encoding="utf-8").write(text), FileExistsError) is None:
        raise InvalidParameter(f"-o {output} is invalid", why="there is such a file", instead="another name")
    used = {place[part] for place in places.values() for part in ("longitude", "latitude") if part in place}
    left = [
        column
        for column, kind in kinds.items()
        if column not in used and not _is_whole(found.get(column, ColumnDraft()), column, kind)
    ]
    declared, left = len(kinds) - len(left), [column for column in left if column not in dropped]
    named_left = f"; left to you: {', '.join(left)}" if left else ""
    click.echo(f"{output}: {declared} of {len(kinds)} columns are declared{named_left}")


def _codebook(path: Path, table: str) -> Codebook:
    if path.suffix.lower().removeprefix(".") in READERS:
        return read_labels(path)
    text = tried(lambda: path.read_text(encoding="utf-8-sig"), UnicodeDecodeError)
    if text is None:
        text = path.read_text(encoding="cp1252", errors="replace")
    from cloister.query.words import unheard  # where it is used: a second of imports

    with unheard():
        return read_codebook(text, table=table)


def _place(line: str, kinds: Mapping[str, str]) -> dict[str, dict[str, object]] | None:
    """A place of two columns, within a box or the regions of a file; none where the line says something else.

    >>> _place("home=place 4.2,51.9,4.5,52.1 of lon,lat", {"lon": "text", "lat": "text"})
    {'home': {'kind': 'place', 'box': ['4.2', '51.9', '4.5', '52.1'], 'longitude': 'lon', 'latitude': 'lat'}}
    """
    name, _, said = line.partition("=")
    found = _PLACE.fullmatch(said.strip())
    if found is None:
        return None
    within, axes = found[1], names_in(found[2], kinds)
    unknown = [column for column in axes if column not in kinds]
    if unknown or len(axes) != 2:
        why = f"no column is called {unknown[0]!r}" if unknown else "a place has two columns"
        raise InvalidParameter(f"--set {line!r} is invalid", why=why, instead='--set "home=place 4,51,5,52 of lon,lat"')
    longitude, latitude = axes
    ends = [each.strip() for each in within.split(",")]
    where = {"box": ends} if len(ends) == 4 else {"regions": within}
    declared = {"kind": "place", **where, "longitude": longitude, "latitude": latitude}
    domain_of(name.strip(), declared, table="the table", folder=Path())
    return {name.strip(): declared}


def _set(line: str, because: str, kinds: Mapping[str, str]) -> dict[str, ColumnDraft]:
    """What `--set` says: columns by name or pattern, and a kind with bounds (a step behind /) or categories.

    >>> _set("q*=integer 1..5", "the questionnaire", {"q1": "text", "age": "text"})["q1"].high
    '5'
    >>> _set("sex=category F|M", "", {"sex": "text"})["sex"].values
    ('F', 'M')
    """
    names, equals, said = line.partition("=")
    patterns = names_in(names, kinds)
    columns = [column for column in kinds if any(column == each or fnmatchcase(column, each) for each in patterns)]
    word, _, rest = said.strip().partition(" ")
    kind = "" if word == "drop" else kind_of(word)
    if not equals or not columns or not (kind or word == "drop"):
        why = "no column has such a name" if equals and patterns and not columns else "it is not columns, =, and a kind"
        raise InvalidParameter(f"--set {line!r} is invalid", why=why, instead=_LINE)
    draft = ColumnDraft(kind=kind, reason=because)
    bounds = _BOUNDS.fullmatch(rest.strip())
    if kind == "category":
        draft = replace(draft, values=categories(rest))
    elif bounds is not None:
        draft = replace(draft, low=bounds[1], high=bounds[2], step=bounds[3] or "")
    elif rest.strip():
        raise InvalidParameter(f"--set {line!r} is invalid", why=f"{rest.strip()!r} is not a range", instead=_LINE)
    return dict.fromkeys(columns, draft)


def _beside(data: str, output: Path | None) -> str:
    """The source as a declarations file names it: relative to where the file is."""
    if "://" in data or output is None or Path(data).is_absolute():
        return data
    own = output.resolve().parent
    path = Path(data).resolve()
    return str(path.relative_to(own) if path.is_relative_to(own) else path)


def _is_whole(draft: ColumnDraft, column: str, kind: str) -> bool:
    return bool(draft.kind) and tried(lambda: draft.domain(column, kind), CloisterError) is not None
