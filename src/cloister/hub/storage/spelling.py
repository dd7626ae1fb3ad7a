"""How values are written where a file comes from: decimal commas, thousands marks, days, missing values, lines that end early.

The sender says it for the whole file, in one place, when it is sent; nothing is guessed from the rows. Then each field is read
by itself and written as programs write it. So a line still affects nothing but itself (`tables/sourcing/lines.py`): what becomes
of it is a function of its own bytes, the header, and what was said.

A field that is not a whole number, day or missing value by what was said stays as it is. 31/03/26 does: its century is not said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from cloister.hub.storage.foreign import Reading
from cloister.hub.storage.foreign_reader import names_of
from cloister.tables.engines.guard import tried
from cloister.tables.sourcing.lines import LONGEST_LINE, delimiter_of, fields_of, unquoted

NUMBERS = ("", "comma", "point")
DATES = ("", "dmy", "mdy", "ymd")
_MOST_MISSING = 50
_BLANKS = " \u00a0\u2009\u202f'\u2019"
_COMMA = re.compile(rf"([+-]?)([0-9]{{1,3}}(?:[.{_BLANKS}][0-9]{{3}})+|[0-9]+)(?:,([0-9]+))?")
_POINT = re.compile(rf"([+-]?)([0-9]{{1,3}}(?:[,{_BLANKS}][0-9]{{3}})+|[0-9]+)(?:\.([0-9]+))?")
_BETWEEN = r"\s?[./年月-]\s?"
_LATER = r"日?((?:[ T][0-9]{1,2}:[0-9]{2}[^,;|\t\"]*)?)"
_DAY_FIRST = re.compile(rf"([0-9]{{1,2}}){_BETWEEN}([0-9]{{1,2}}){_BETWEEN}([0-9]{{4}}){_LATER}")
_YEAR_FIRST = re.compile(rf"([0-9]{{4}}){_BETWEEN}([0-9]{{1,2}}){_BETWEEN}([0-9]{{1,2}}){_LATER}")


def missing_in(text: str) -> tuple[str, ...]:
    """What stands for a missing value, as somebody lists it.

    >>> missing_in("NA, -99; n/a")
    ('NA', '-99', 'n/a')
    """
    return tuple(dict.fromkeys(each.strip()[:100] for each in re.split("[,;\n]", text) if each.strip()))[:_MOST_MISSING]


class Rewriter:
    """Takes a CSV file in UTF-8 in pieces of any length, and gives it as programs write it.

    >>> german = Rewriter(Reading(numbers="comma", dates="dmy", missing=("k.A.",)))
    >>> (german.feed(b"pay;born;sex\\n1.234,5;31.3.1984;F\\n") + german.feed(b"k.A.;1984;M") + german.finish()).decode()
    'pay;born;sex\\n1234.5;1984-03-31;F\\n;1984;M'
    """

    def __init__(self, how: Reading) -> None:
        self._how = how
        self._open = bytearray()
        self._head: list[str] = []
        self._delimiter, self._width = "", 0
        self._field = reader_of(how)
        self.silent = not (how.numbers or how.dates or how.missing or how.short or how.lines > 1)

    def feed(self, chunk: bytes) -> bytes:
        """The next piece."""
        if self.silent:
            return chunk
        self._open += chunk
        end = self._open.rfind(b"\n")
        if end < 0:
            return self._cut()
        whole, self._open = bytes(self._open[: end + 1]), self._open[end + 1 :]
        return b"".join(map(self._line, whole.splitlines(keepends=True))) if b"\r" not in whole else self._lines(whole)

    def finish(self) -> bytes:
        """Nothing comes any more."""
        rest, self._open = bytes(self._open), bytearray()
        return self._line(rest) if rest else b""

    def _lines(self, whole: bytes) -> bytes:
        return b"".join(self._line(line + b"\n") for line in whole.split(b"\n")[:-1])

    def _cut(self) -> bytes:
        """A line that is too long stays as it is: whoever reads it refuses it."""
        if len(self._open) <= LONGEST_LINE:
            return b""
        rest, self._open = bytes(self._open), bytearray()
        return rest

    def _line(self, line: bytes) -> bytes:
        text = tried(line.decode, UnicodeDecodeError)
        if text is None:
            return line
        body = text.rstrip("\r\n")
        if not self._width:
            return self._names(body, text[len(body) :])
        fields = fields_of(body, self._delimiter) if body else None
        if fields is None:
            return line
        read = [self._field(each) for each in fields]
        if self._how.short:
            read += [""] * (self._width - len(read))
            while len(read) > self._width and not read[-1]:
                read.pop()
        return (self._delimiter.join(read) + text[len(body) :]).encode()

    def _names(self, body: str, end: str) -> bytes:
        """The line of names; of two, one is made."""
        self._head.append(body)
        if len(self._head) < self._how.lines:
            return b""
        self._delimiter = delimiter_of(max(self._head, key=len))
        found = [fields_of(each, self._delimiter) or [] for each in self._head]
        names = found[0]
        if len(found) > 1:
            joined = names_of([[unquoted(each) for each in line] for line in found])
            names = [_quoted(name or f"column_{place}", self._delimiter) for place, name in enumerate(joined, 1)]
        self._width = len(names) or 1
        return ((self._delimiter.join(names) if len(found) > 1 else body) + end).encode()


def reader_of(how: Reading) -> Callable[[str], str]:
    """What becomes of one field, as it stands in the file.

    >>> read = reader_of(Reading(numbers="point", dates="mdy", missing=("NA", "-99")))
    >>> [read(each) for each in ('"1,234.5"', "12", "-99", "3/31/2026", "2/30/2026", '"3/31/2026 9:30, b"')]
    ['1234.5', '12', '', '2026-03-31', '2/30/2026', '"3/31/2026 9:30, b"']
    """
    missing = frozenset(how.missing)
    number = {"comma": _COMMA, "point": _POINT}.get(how.numbers)
    day = {"dmy": _DAY_FIRST, "mdy": _DAY_FIRST, "ymd": _YEAR_FIRST}.get(how.dates)
    places = [how.dates.index(part) + 1 for part in "ymd"] if day is not None else []

    def read(field: str) -> str:
        value = unquoted(field).strip()
        if value in missing:
            return ""
        if number is not None and (found := number.fullmatch(value)):
            whole = re.sub("[^0-9]", "", found[2])
            return f"{found[1]}{whole}" + (f".{found[3]}" if found[3] else "")
        if day is not None and (found := day.fullmatch(value)):
            year, month, of_month = (int(found[place]) for place in places)
            read_as = tried(lambda: date(year, month, of_month).isoformat(), ValueError)
            return field if read_as is None else f"{read_as}{found[4]}"
        return field

    return read


def _quoted(name: str, delimiter: str) -> str:
    return '"' + name.replace('"', '""') + '"' if delimiter in name or name.startswith('"') else name
