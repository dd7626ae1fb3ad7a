"""Texts in files that a spreadsheet opens: every character can be seen, and what it would take for a formula stays a text."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cloister.printable import shown

_AT_ONCE = 5_000
_FIRST = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_INSIDE = re.compile(r"([;\t\r\n])(?=[\"\s]*[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Where a spreadsheet that takes another sign than the comma between cells would begin a cell with a formula."""


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would compute it. At the beginning of a file it does not see a mark of byte order.

    >>> is_formula("=1+1"), is_formula("\uff1d1+1"), is_formula("\ufeff=1+1"), is_formula("a=1")
    (True, True, True, False)
    """
    return text.lstrip("\ufeff").startswith(_FIRST)


def holds_formula(text: str) -> bool:
    """Whether a spreadsheet would compute it or a part of it, whatever sign stands between cells there.

    >>> holds_formula("=1+1"), holds_formula("a;=1"), holds_formula("a; b")
    (True, True, False)
    """
    return is_formula(text) or _INSIDE.search(text) is not None


def safe(text: str) -> str:
    """The text as it may be shown, with an apostrophe where a spreadsheet would compute it: before it, or after a semicolon.

    >>> safe("@SUM(A1)"), safe("plain; text"), safe("a;=B1"), safe("a\\u202eb")
    ("'@SUM(A1)", 'plain; text', "a;'=B1", 'a⟨U+202E⟩b')
    """
    told = _INSIDE.sub(r"\1'", shown(text, lines=True))
    return f"'{told}" if is_formula(text) else told


def cell(value: Any) -> Any:
    """A value as a file of CSV has it.

    >>> cell("=1+1"), cell(True), cell(None), cell(1.5)
    ("'=1+1", 'true', '', 1.5)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else safe(value) if isinstance(value, str) else value


def csv_pieces(names: Iterable[str], rows: Iterable[Sequence[Any]], end: str = "\n") -> Iterator[bytes]:
    """Rows as CSV under their names, in pieces.

    >>> b"".join(csv_pieces(["a", "b"], [(1, None), ("@x", True)]))
    b"a,b\\n1,\\n'@x,true\\n"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end)
    writer.writerow(map(safe, names))
    for number, row in enumerate(rows):
        writer.writerow(map(cell, row))
        if number % _AT_ONCE == _AT_ONCE - 1:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()
