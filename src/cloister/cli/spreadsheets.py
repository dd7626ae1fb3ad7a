"""CSV that a command writes: for programs as it is; for spreadsheets, on demand, with no text that one would compute.

The hub's downloads are always of the second kind: people open them. A file that a program reads must hold the values themselves,
so a command changes none unless asked to, and says which columns a spreadsheet would take for formulas.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import click

from cloister.hub.spreadsheets import holds_formula, safe

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
"""With a sign before it a number is a number, in a spreadsheet too."""

OPTION = click.option(
    "--for-spreadsheets",
    is_flag=True,
    help="In CSV, put an apostrophe before texts that a spreadsheet would compute (=, +, -, @, tab); numbers stay as they are. "
    "Left out, every value is written as it is, for programs.",
)


def computed(value: Any) -> bool:
    """Whether a spreadsheet would take a cell for a formula.

    >>> computed("=1+1"), computed("-5"), computed("-5e3"), computed("-A1"), computed(-5)
    (True, False, False, True, False)
    """
    return isinstance(value, str) and holds_formula(value) and not _NUMBER.fullmatch(value)


def guarded_cell(value: Any) -> Any:
    """A cell that a spreadsheet does not compute.

    >>> guarded_cell("@SUM(A1)"), guarded_cell("-5"), guarded_cell(-5)
    ("'@SUM(A1)", '-5', -5)
    """
    return safe(value) if computed(value) else value


def guarded(frame: Any) -> tuple[Any, list[str]]:
    """A polars frame whose texts and names no spreadsheet computes, and the columns in which that changed something.

    >>> import polars as pl
    >>> frame, changed = guarded(pl.DataFrame({"a": ["=1", "b"], "c": ["-5", "+6"], "-d": [1, 2]}))
    >>> frame.rows(), frame.columns, changed
    ([("'=1", '-5', 1), ('b', '+6', 2)], ['a', 'c', "'-d"], ['a', '-d'])
    """
    import polars as pl

    changed: dict[str, None] = {}
    for name in frame.columns:
        if frame[name].dtype not in (pl.String, pl.Categorical, pl.Enum):
            continue
        texts = frame[name].cast(pl.String)
        wrong = [each for each in texts.unique().to_list() if computed(each)]
        if wrong:
            frame = frame.with_columns(texts.replace({each: safe(each) for each in wrong}).alias(name))
            changed[name] = None
    names = {name: guarded_cell(name) for name in frame.columns}
    for name, new in names.items():
        while names[name] != name and new in frame.columns:  # two names would be one
            new = names[name] = f"'{new}"
    changed |= dict.fromkeys(name for name, new in names.items() if name != new)
    return frame.rename(names), list(changed)


def as_written(head: Sequence[str], rows: Iterable[Sequence[Any]], *, for_spreadsheets: bool) -> list[list[Any]]:
    """The lines of a file: guarded where that was asked for; else as they are, and the columns that a spreadsheet would compute
    are named.

    >>> as_written(["town", "-n"], [["=1+1", -5]], for_spreadsheets=True)
    [['town', "'-n"], ["'=1+1", -5]]
    >>> as_written(["town"], [["Ulm"]], for_spreadsheets=False)
    [['town'], ['Ulm']]
    """
    lines = [list(head), *map(list, rows)]
    if for_spreadsheets:
        return [[guarded_cell(cell) for cell in line] for line in lines]
    warn(repr(name) for name, column in zip(head, zip(*lines, strict=True), strict=True) if any(map(computed, column)))
    return lines


def warn(places: Iterable[str]) -> None:
    """Say where texts stand that a spreadsheet would compute; nothing where there are none."""
    named = ", ".join(places)
    if named:
        click.echo(
            f"a spreadsheet would compute texts in {named}: they are written as they are, for programs. "
            "Instead: --for-spreadsheets",
            err=True,
        )
