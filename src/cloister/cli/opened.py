"""What commands open, and the sign of life that they give while they work: a session over tables, a ledger, a table
(a file of one's own, or a sample), a text, a spinner.

What may not live here: what a command prints.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter, UnknownColumn

if TYPE_CHECKING:
    from cloister.ledger import Ledger
    from cloister.privacy import Guarantee
    from cloister.query import Session
    from cloister.tables import PrivateTable, PublicTable


@contextmanager
def session_over(
    tables: Path | None, ledger: str | None, budget: str | None, who: str, progress: Callable[[str], None] | None = None
) -> Iterator[Session]:
    """A session over declared or sample tables; without a budget anywhere, the sample tables have ε = 1."""
    from cloister.cli.declared import load
    from cloister.privacy import PureDP
    from cloister.query import Session

    found: dict[str, PrivateTable | PublicTable]
    budgets: dict[str, Guarantee] = {}
    if tables is not None:
        found, budgets = load(tables)
    else:
        from cloister.samples import tables as sample_tables

        found = sample_tables()
    default = PureDP(budget) if budget is not None else PureDP(1) if tables is None else None
    with open_ledger(ledger) as book:
        names = {getattr(table, "population", None) or name for name, table in found.items()}
        known = book.populations()
        chosen = {name: budgets.get(name, default) for name in names if name not in known}
        given = {name: guarantee for name, guarantee in chosen.items() if guarantee is not None}
        with Session(found, budget=given, ledger=book, who=who, progress=progress) as session:
            yield session


def open_ledger(where: str | None) -> Ledger:
    """The ledger there, or one in memory."""
    from cloister.ledger import Ledger

    return Ledger(where)


@contextmanager
def existing_ledger(where: str) -> Iterator[Ledger]:
    """A ledger that is there, in a file or the folder of a hub, site or key holder: of any other name a new one would be made."""
    if "://" not in where and any((Path(where) / name).is_file() for name in ("hub.db", "hub.toml")):
        from cloister.cli.hub import of_a_hub, open_hub, settings_of

        with open_hub(of_a_hub(settings_of(Path(where))), services=False) as opened:
            yield opened.ledger
        return
    if (Path(where) / "ledger.db").is_file():
        where = str(Path(where) / "ledger.db")
    if "://" not in where and not Path(where).is_file():
        raise InvalidParameter(
            f"The ledger {where!r} is invalid", why="there is no such file", instead="cloister ledger show budget.db"
        )
    with open_ledger(where) as book:
        yield book


def table_of(data: Path) -> Any:
    """The file, or the sample of people who are made up.

    >>> table_of(Path("people.csv"))
    PosixPath('people.csv')
    """
    if str(data) == "census" and not data.exists():
        from cloister.anonymize.frames import need_polars
        from cloister.samples import census

        source: Any = census().source
        return need_polars().DataFrame(source.table)
    return data


COMMAS = "separated by commas; one that holds a comma in quotes"
"""What help says of names on a line."""


def names_in(text: str, known: Collection[str] = ()) -> list[str]:
    """Names on a line, between commas; in quotes, as in CSV, one that holds a comma. Of a name that is
    `known`, and would be torn, it is said how to write it; blanks around one, which nobody sees in a file, need not be typed.

    >>> names_in('age, "pay, a month",'), names_in("age, sex", ["age", "sex "])
    (['age', 'pay, a month'], ['age', 'sex '])
    """
    cells, alike = csv.reader(text.splitlines(), skipinitialspace=True), {name.strip(): name for name in known}
    names = [name if name in known else alike.get(name.strip(), name.strip()) for line in cells for name in line if name.strip()]
    for name in known:
        if "," in name and name in text and name not in names:
            quoted = name.replace('"', '""')
            raise UnknownColumn(f"The columns {text!r} are invalid", why="a name holds a comma", instead=f"""'"{quoted}",…'""")
    return names


def text_in(path: Path) -> str:
    """The text of a file in UTF-8, with or without the mark that editors put before it (BOM)."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidParameter(
            f"The file {path.name!r} is invalid", why="it is not in UTF-8", instead="the file, saved as UTF-8"
        ) from None


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """A sign of life on a terminal: the stage and the time, never how many rows or how much is done of private work."""
    with progress_bar(what, "Spinner", "Text", "TimeElapsed") as update:
        yield lambda stage: update(description=stage)


@contextmanager
def progress_bar(what: str, *columns: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """How a line on a terminal is told of progress; nothing elsewhere. Columns are rich's, by name; none: as rich has them."""
    if not sys.stderr.isatty():
        yield lambda **_: None
        return
    from rich import progress
    from rich.console import Console

    told = {"Text": ["{task.description}"]}
    made = [getattr(progress, f"{name}Column")(*told.get(name, ())) for name in columns]
    with progress.Progress(*made, console=Console(stderr=True), transient=True) as line:
        task = line.add_task(what, total=total)
        yield lambda **how: line.update(task, **how)
