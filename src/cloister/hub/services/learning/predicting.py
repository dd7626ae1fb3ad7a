"""Rows of one's own in, predictions out: CSV both ways. Nothing private is read: the model is released, the rows are their own.

What a column holds follows from its declaration, as when the model learnt: what lies outside the bounds is moved to the nearest
bound. A row in which a feature is missing, or is no declared category, gets no prediction.
"""

import csv
import io
from collections.abc import Container
from typing import Any

from cloister.errors import InvalidParameter, UnknownColumn
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.learning.order import class_of
from cloister.hub.spreadsheets import cell
from cloister.hub.storage import Reading, divided_by, reader_of
from cloister.parsers import delimiter_of
from cloister.tables import Domain
from cloister.tables.declaring.plain import domain_of
from cloister.tables.declaring.table import kinds_under
from cloister.tables.sourcing.reading import read_number, spelt

MOST_BYTES = 2 * 2**20
_MOST_ROWS = 100_000
_MOST_COLUMNS = 1000


def predictions(row: StoredRelease, text: str, how: Reading) -> str:
    """The rows again, with what the model says of each in a last column (of components: in several)."""
    import cloister.learn

    table, features = row.details["table"], row.details["columns"]["features"]
    domains = {name: domain_of(name, declared, table=table) for name, declared in features}
    header, lines, delimiter = _read(text, domains)
    missing = [name for name in domains if name not in header]
    if missing:
        raise UnknownColumn(
            f"The column {missing[0]!r} is missing", why="the model learnt from it", instead=f"a file with {', '.join(domains)}"
        )
    class_of(row.details["method"])  # refuses where learning is not installed
    model = cloister.learn.load(row.body.decode())
    cells, kinds = dict(zip(header, zip(*lines, strict=True), strict=False)), kinds_under(domains, None, None)
    field, by = reader_of(how), divided_by(how, delimiter)
    read = {name: [spelt(field(each), kinds[name], by) for each in cells.get(name, ())] for name in domains}
    *told, width = _told(model, domains, read)
    names = _names(header, len(width))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([_cell(each) for each in (*header, *names)])
    writer.writerows([*map(_cell, line), *map(_cell, found)] for line, found in zip(lines, told, strict=True))
    return out.getvalue()


def _told(model: Any, domains: dict[str, Domain], columns: dict[str, list[str]]) -> list[list[Any]]:
    """What the model says of each row, and of one of zeros behind them: how many columns that is, though no row is known."""
    import numpy as np

    from cloister.learn.frame.encoding import Encoder

    encoder = Encoder(columns=tuple(domains.items()))
    X = encoder.transform({name: [*cells, ""] for name, cells in columns.items()})  # read as those of rows to learn from are
    X[-1] = 0
    known = ~np.isnan(X).any(axis=1)
    found = np.asarray(model.predict(X[known]) if hasattr(model, "predict") else model.transform(X[known]))
    found = found.reshape(len(found), -1)
    told: list[list[Any]] = [[None] * found.shape[1] for _ in X]
    for place, values in zip(np.flatnonzero(known).tolist(), found.tolist(), strict=True):
        told[place] = values
    return told


def _read(text: str, known: Container[str]) -> tuple[list[str], list[list[str]], str]:
    """Names, lines, and what stands between cells; a name that the model does not know as it is written is read without blanks
    around it."""
    if "\0" in text or len(text.encode()) > MOST_BYTES:
        raise _refused(f"it is larger than {MOST_BYTES // 2**20} MiB, or not text", "fewer rows at a time")
    text = text.removeprefix("\ufeff")
    delimiter = delimiter_of(text.partition("\n")[0])
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        raise _refused("it is not CSV", "a first line with the names of columns, then a line for each row") from None
    rows = [line for line in rows if line]
    names = [name if name in known else name.strip() for line in rows[:1] for name in line]
    if not 0 < len(names) <= _MOST_COLUMNS or len(set(names)) != len(names):
        raise _refused("its first line does not name the columns, each once", "age,sex")
    if len(rows) - 1 > _MOST_ROWS:
        raise _refused(f"it has more than {_MOST_ROWS:,} rows", "fewer rows at a time")
    if any(len(line) != len(rows[0]) for line in rows):
        raise _refused("a line has more or fewer cells than the first", "the same number of cells in each line")
    return names, rows[1:], delimiter


def _names(header: list[str], count: int) -> list[str]:
    names = ["prediction"] if count == 1 else [f"component_{place + 1}" for place in range(count)]
    while set(names) & set(header):
        names = [f"{name}_" for name in names]
    return names


def _cell(value: Any) -> Any:
    """A value as CSV has it; a text that a spreadsheet would compute gets an apostrophe.

    >>> _cell("=1+1"), _cell("-3"), _cell(-3.5), _cell(None), _cell(True)
    ("'=1+1", '-3', -3.5, '', 'true')
    """
    number = isinstance(value, str) and value == value.strip() and read_number(value) is not None
    return value if number else cell(None if value != value else value)


def _refused(why: str, instead: str) -> InvalidParameter:
    return InvalidParameter("The file is invalid", why=why, instead=instead)
