"""`cloister stream`: a question over readings that come in, answered at every step of the clock, a line of JSON a step."""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import click

from cloister.cli.bounds import BOUNDS, arguments_of
from cloister.cli.opened import open_ledger
from cloister.errors import CloisterError, InvalidParameter
from cloister.parsers import delimiter_of
from cloister.printable import finite
from cloister.tables import PrivateTable
from cloister.tables.declaring.during import DATED
from cloister.tables.declaring.places import sources_of
from cloister.tables.declaring.table import kinds_under
from cloister.tables.sourcing.reading import spelt

if TYPE_CHECKING:
    from cloister.privacy import Guarantee
    from cloister.traces.watch import Watch

_CHUNK = 500
_TABLE = "readings"
_GRACE = 1.0
_Row: TypeAlias = dict[str, Any]


@click.command()
@click.argument("sql")
@click.argument("source", type=click.File("r", encoding="utf-8-sig", errors="replace"), default="-")
@click.option("--bounds", required=True, help=BOUNDS)
@click.option("--at", default="at", show_default=True, help="The column that says when: ISO texts, or seconds since 1970.")
@click.option("--every", required=True, help='The length of a step, such as "15 minutes".')
@click.option("--since", required=True, help="The moment at which the first step begins.")
@click.option("--until", required=True, help="The moment at which the last step ends.")
@click.option("--unit", help="The column that says whose reading it is; without one, each reading protects itself alone.")
@click.option("--max-rows", type=int, help="With --unit: how many readings of one person count, in all steps together.")
@click.option("--epsilon", help="What all steps cost together, as ε.")
@click.option("--rho", help="The same as ρ; less noise for the same promise where there are many steps.")
@click.option("--key", help="A column by which a reading that comes twice is known.")
@click.option("--name", default="", help="A name of the watch in the ledger (default: it follows from all that is declared).")
@click.option("--ledger", help="Charge a ledger (a file or a postgresql:// address), which also goes on after an interruption.")
@click.option("--live", is_flag=True, help="Release a step as soon as it is over on this machine's clock, while readings come.")
@click.option("--forecast", is_flag=True, help="Say the cost and the margins, and read nothing.")
def stream(
    sql: str,
    source: TextIO,
    bounds: str,
    at: str,
    unit: str | None,
    max_rows: int | None,
    epsilon: str | None,
    rho: str | None,
    ledger: str | None,
    live: bool,
    forecast: bool,
    **how: Any,
) -> None:
    """Answer SQL about `readings` at every step, from SOURCE: CSV with a header, or a JSON object a line.

    \b
    cloister stream "SELECT room, COUNT(*) AS n FROM readings GROUP BY room" visits.csv --bounds "room=hall|attic" \\
        --every "1 hour" --since 2026-01-01 --until 2026-01-02 --rho 0.5 --ledger budget.db

    All steps are charged once, before the first reading is counted. A header that lacks a declared column is refused before
    that; with --live, where it comes within a second. Run again with the same ledger, it prints the last step that was released
    once more, which may not have arrived, and goes on after it: what belongs to a step that left is not counted again.
    """
    from cloister.privacy import ZCDP, PureDP
    from cloister.query import Session

    if (epsilon is None) == (rho is None):
        raise InvalidParameter("The stream is invalid", why="it needs either --epsilon or --rho", instead="--rho 0.5")
    spend: Guarantee = ZCDP(rho) if rho is not None else PureDP(epsilon or "")
    table = _declared(bounds, unit, max_rows)
    with Session({_TABLE: table}, budget=spend) as session:  # what is refused leaves nothing in the ledger
        watch = session.watch(sql, at=at, spend=spend, fed=True, **how)
        if forecast:
            click.echo(f"{watch}\n95 % margins at the last step: {json.dumps(finite(watch.margin().to_pydict()))}")  # type: ignore[union-attr]
            return
    kinds = {at: DATED, **kinds_under(table.columns, table.unit, None)}
    named = {name: kinds.get(name, ()) for name in [at, *filter(None, [table.unit, how["key"]]), *sources_of(table.columns)]}
    rows = queued(lambda: _rows(_reopened(source), named)) if live else _rows(source, named)
    with open_ledger(ledger) as book:
        budget = None if (table.population or _TABLE) in book.populations() else spend
        with Session({_TABLE: table}, budget=budget, ledger=book, who="command line") as session:
            watch = session.watch(sql, at=at, spend=spend, fed=True, **how).open()
            _print(filter(None, [watch.last]))  # type: ignore[union-attr]
            if isinstance(rows, Queue):
                by_the_clock(watch, rows)  # type: ignore[arg-type]
                return
            while batch := list(islice(rows, _CHUNK)):
                watch.feed(batch)  # type: ignore[union-attr]
            _print(watch.until(how["until"]))


def queued(rows: Callable[[], Iterator[_Row]]) -> Queue[_Row | CloisterError | None]:
    """Readings as they come, then None. A header that is refused within the first second is refused here, before the charge, for
    which every stream waits as long: when the first reading came must not be told by when it is."""
    waiting = Queue[_Row | CloisterError | None](_CHUNK)

    def read() -> None:
        try:
            for row in chain(rows(), [None]):
                waiting.put(row)
        except CloisterError as error:
            waiting.put(error)

    Thread(target=read, daemon=True).start()
    time.sleep(_GRACE)
    if not waiting.empty() and isinstance(waiting.queue[0], CloisterError):
        raise waiting.queue[0]
    return waiting


def _reopened(source: TextIO) -> TextIO:
    """What nobody has read of it yet, by another file: the interpreter can't end while a thread waits in the one of its own."""
    with suppress(OSError):  # one that is no file of the system
        return open(os.dup(source.fileno()), encoding="utf-8-sig", errors="replace")
    return source


def by_the_clock(watch: Watch, waiting: Queue[_Row | CloisterError | None]) -> None:
    """Release each step when it is over, until readings end: whether any comes must not be told by when a line does."""
    while watch.taken < watch.steps.count:
        with suppress(Empty):
            row = waiting.get(timeout=max(watch.steps.edges(watch.taken + 1)[1] - time.time(), 0))
            if row is None:
                break
            if isinstance(row, CloisterError):
                raise row
            watch.feed([row])
        _print(watch.until(time.time()))
    _print(watch.until(time.time()))


def _declared(bounds: str, unit: str | None, max_rows: int | None) -> PrivateTable:
    terms = {"unit": unit, "max_rows": max_rows}
    declared = {**arguments_of(bounds, _TABLE), **{name: value for name, value in terms.items() if value is not None}}
    declared["population"] = declared.get("population") or _TABLE
    names = [*sources_of(declared["columns"]), *([declared["unit"]] if declared.get("unit") else [])]
    return PrivateTable({name: [] for name in names}, **declared)


def _rows(source: TextIO, named: Mapping[str, Collection[str]]) -> Iterator[_Row]:
    """Readings, one at a time; a line that is none is left out, as a row that a table cannot read is. The first line is read at
    once: a header without each of the names, once, is refused. A JSON object may leave out what it does not know."""
    first = next((line for line in source if line.strip()), "")
    lines, by = chain([first], source), delimiter_of(first)
    if not first:
        return iter(())
    if first.lstrip().startswith("{") and first.strip() != "{":
        return _objects(lines, named)
    with suppress(csv.Error):
        table = csv.DictReader(lines, delimiter=by)
        if all((table.fieldnames or []).count(name) == 1 for name in named):  # of two, the last would be read
            return _records(table, named, by)
    if first.lstrip().startswith(("[", "{")):
        why, instead = "JSON has an object in each line", '{"at": "2026-01-01T00:05Z", "room": "hall"}'
    else:  # not what it has: without a header it is a reading
        why, instead = f"its header has not each of the columns {', '.join(named)} once", ",".join(named)
    raise InvalidParameter("The stream is invalid", why=why, instead=f"{instead} in its first line")


def _objects(lines: Iterator[str], named: Collection[str]) -> Iterator[_Row]:
    for line in lines:
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict):
                yield {name: row.get(name) for name in named}


def _records(table: csv.DictReader[str], named: Mapping[str, Collection[str]], by: str) -> Iterator[_Row]:
    while True:
        with suppress(csv.Error):
            try:
                row = next(table)
            except StopIteration:
                return
            yield {name: row[name] and spelt(row[name], kinds, by) for name, kinds in named.items()}


def _print(steps: Iterator[Any]) -> None:
    for step in steps:
        click.echo(json.dumps(step.to_plain(), ensure_ascii=False, default=str))
        sys.stdout.flush()
