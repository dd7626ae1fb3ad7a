"""How values are written where a file comes from: decimal commas, thousands marks, days, missing values, lines that end early.

The sender says it for the whole file, in one place, when it is sent; nothing is guessed from the rows. Then each field is read
by itself and written as programs write it. So a line still affects nothing but itself (`tables/sourcing/lines.py`): what becomes
of it is a function of its own bytes, the header, and what was said.

A field that is not a whole number, day or missing value by what was said stays as it is. 31/03/26 does, unless the last year of
two digits of this century was said.

A month may be written by its name, in full or short, in the languages of `_LANGUAGES`; which of the others is the day is then
clear, and 31 March 2026 and March 31, 2026 are read under either order.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache

from cloister.hub.storage.foreign import Reading
from cloister.hub.storage.foreign_reader import names_of
from cloister.parsers import UNSAID, delimiter_of
from cloister.tables.engines.guard import tried
from cloister.tables.expression.names import quotation
from cloister.tables.sourcing.lines import LONGEST_LINE, fields_of, unquoted
from cloister.tables.sourcing.reading import LONGEST_NUMBER, read_number

NUMBERS = ("", "comma", "point")
DATES = ("", "dmy", "mdy", "ymd")
_MOST_MISSING = 50
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")
_BLANKS = " \u00a0\u2009\u202f'\u2019"
_SIGN, _POWER = "([+−-]?)", "([eE][+-]?[0-9]+)?"
_COMMA, _POINT = (
    re.compile(rf"{_SIGN}(?=[{by}]?[0-9])([1-9][0-9]{{0,2}}(?:[{other}{_BLANKS}][0-9]{{3}})+|[0-9]*)(?:[{by}]([0-9]+))?{_POWER}")
    for by, other in (",.", ".,")
)
_BETWEEN = r"\s?[./年月-]\s?"
_LATER = r"日?((?:[ T][0-9]{1,2}:[0-9]{2}[^,;|\t\"]*)?)"
_TWELVE = re.compile(r"([ T])([0-9]{1,2})(:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)\s?([ap])m", re.IGNORECASE)
_ONE_DIGIT = re.compile(r"^([ T])([0-9]:)")
_YEAR = r"([0-9]{4}|[0-9]{2})"
_DAY_FIRST = re.compile(rf"([0-9]{{1,2}}){_BETWEEN}([0-9]{{1,2}}){_BETWEEN}{_YEAR}{_LATER}")
_YEAR_FIRST = re.compile(rf"{_YEAR}{_BETWEEN}([0-9]{{1,2}}){_BETWEEN}([0-9]{{1,2}}){_LATER}")
_LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pt", "pl", "sv", "da")
_NAME, _OF, _APART = r"([^\W\d_]{3,12})\.?", r"(?:(?:de|of|del) )?", r"[ ./,-]{1,2}"
_TH = r"(?:st|nd|rd|th|er|[.ºª])?"
_DAY_NAME_YEAR = re.compile(rf"([0-9]{{1,2}}){_TH}{_APART}{_OF}{_NAME}{_APART}{_OF}{_YEAR}{_LATER}")
_NAME_DAY_YEAR = re.compile(rf"{_NAME}{_APART}([0-9]{{1,2}}){_TH}{_APART}{_YEAR}{_LATER}")
_YEAR_NAME_DAY = re.compile(rf"{_YEAR}{_APART}{_NAME}{_APART}([0-9]{{1,2}}){_LATER}")


def missing_in(text: str) -> tuple[str, ...]:
    """What stands for a missing value, as somebody lists it.

    >>> missing_in("NA, -99; n/a、无")
    ('NA', '-99', 'n/a', '无')
    """
    return tuple(dict.fromkeys(each.strip()[:100] for each in re.split("[,;，；、\n]", text) if each.strip()))[:_MOST_MISSING]


class Rewriter:
    """Takes a CSV file in UTF-8 in pieces of any length, and gives it as programs write it.

    >>> german = Rewriter(Reading(numbers="comma", dates="dmy", missing=("k.A.",)))
    >>> (german.feed(b"pay;born;sex\\n1.234,5;31.3.1984;F\\n") + german.feed(b"k.A.;1984;M") + german.finish()).decode()
    'pay\\tborn\\tsex\\n1234.5\\t1984-03-31\\tF\\n\\t1984\\tM'
    """

    def __init__(self, how: Reading) -> None:
        self._how = how
        self._open = bytearray()
        self._head: list[str] = []
        self._delimiter, self._width = "", 0
        self._field = reader_of(how)
        self._filled = 0
        self.silent = not (how.numbers or how.dates or how.missing or how.short or how.lines > 1)

    def feed(self, chunk: bytes, filled: int = 0) -> bytes:
        """The next piece; of a file at the end of whose first line names were filled in, lines may lack that many fields."""
        self._filled = filled or self._filled
        if self.silent and not self._filled:
            return chunk
        self._open += chunk
        end = self._open.rfind(b"\n")
        if end < 0:
            return self._cut()
        whole, self._open = bytes(self._open[: end + 1]), self._open[end + 1 :]
        return b"".join(self._line(line + b"\n") for line in whole.split(b"\n")[:-1])

    def finish(self) -> bytes:
        """Nothing comes any more."""
        rest, self._open = bytes(self._open), bytearray()
        return self._line(rest) if rest else b""

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
        if self._how.short or 0 < self._width - len(read) <= self._filled:
            read += [""] * (self._width - len(read))
            while len(read) > self._width and not read[-1]:
                read.pop()
        return self._joined(read, text[len(body) :])

    def _names(self, body: str, end: str) -> bytes:
        """The line of names; of two, one is made."""
        self._head.append(body)
        if len(self._head) < self._how.lines:
            return b""
        self._delimiter = delimiter_of(max(self._head, key=len))
        found = [fields_of(each, self._delimiter) or [] for each in self._head]
        names = found[0] or [body]
        if len(found) > 1:
            joined = names_of([[unquoted(each) for each in line] for line in found])
            self._filled = next((place for place, name in enumerate(reversed(joined)) if name), 0)
            named = [name or f"column_{place}" for place, name in enumerate(joined, 1)]
            names = [quotation(name) if name[0] == '"' else name for name in named]
        self._width = len(names)
        return self._joined(names, end)

    def _joined(self, fields: list[str], end: str) -> bytes:
        by = divided_by(self._how, self._delimiter)
        return (by.join(quotation(each) if by in each and each[0] != '"' else each for each in fields) + end).encode()


def divided_by(how: Reading, delimiter: str) -> str:
    """What stands between the fields of a line: where it was said how numbers or days are written, nothing that says it again."""
    return UNSAID if how.dates in DATES[2:] else "\t" if how.numbers and delimiter == ";" else delimiter


def reader_of(how: Reading) -> Callable[[str], str]:
    """What becomes of one field, as the file has it.

    >>> read = reader_of(Reading(numbers="point", dates="mdy", missing=("NA", "-99")))
    >>> [read(each) for each in ('"1,234.5"', "12", "-99", "-99.0", "3/31/2026", "2/30/2026", '"3/31/2026 9:30, b"')]
    ['1234.5', '12', '', '', '2026-03-31', '2/30/2026', '"3/31/2026 9:30, b"']
    >>> read = reader_of(Reading(dates="dmy", pivot=30))
    >>> [read(each) for each in ("31-Mar-2026", "31 mars 2026", "31. März 26", "31/3/84", '"March 31, 2026"')]
    ['2026-03-31', '2026-03-31', '2026-03-31', '1984-03-31', '2026-03-31']
    >>> [reader_of(Reading(dates="mdy"))(each) for each in ("3/31/2026 9:30 PM", "3/31/2026 12:05:01 am", "3/31/2026 13:00")]
    ['2026-03-31 21:30', '2026-03-31 00:05:01', '2026-03-31 13:00']
    >>> read = reader_of(Reading(numbers="comma", units=("kg", "€"), missing=('""',), spellings={"f": "Female"}))
    >>> [read(each) for each in ("72,5 kg", "€ 1.200", "3 g", " ", "f ", "F")]
    ['72.5', '1200', '3 g', '', 'Female', 'F']
    """
    missing, spellings = frozenset(map(unquoted, how.missing)), how.spellings
    units = "|".join(map(re.escape, how.units))
    bare = re.compile(rf"(?:{units})?\s*([+−-]?[0-9.,{_BLANKS}]*[0-9])\s*(?:{units})?", re.IGNORECASE) if units else None
    number = {"comma": _COMMA, "point": _POINT}.get(how.numbers)
    day = _day_reader(how) if how.dates in DATES[1:] else None

    def is_missing(value: str) -> bool:
        """-99.0 is -99: a column of whole numbers that has gaps is often written so."""
        return value in missing or bool(missing and (found := _WHOLE.fullmatch(value)) and found[1] in missing)

    def read(field: str) -> str:
        value = unquoted(field).strip()
        if is_missing(value):
            return ""
        if value in spellings:
            return spellings[value]
        if bare is not None and (found := bare.fullmatch(value)):
            value = found[1]
            if number is None:
                return value if read_number(value) is not None else field
        if number is not None and (found := number.fullmatch(value)):
            whole = re.sub("[^0-9]", "", found[2])
            sign, part = found[1].replace("−", "-"), f".{found[3]}" if found[3] else ""
            written = f"{sign}{whole or 0}{part}{found[4] or ''}"
            return "" if is_missing(written) else written
        if day is not None and value[-1:].isalnum() and (read_as := day(value)):
            return read_as
        return field

    return read


def cell_reader(how: Reading) -> Callable[[str | None], str | None]:
    """The same of a cell of a stored table: a missing value is None, and a text that is too long for a number stays as it is."""
    read = reader_of(how)
    return lambda cell: cell if cell is None or len(cell) > LONGEST_NUMBER else read(cell) or None


def _day_reader(how: Reading) -> Callable[[str], str]:
    """What a day is as programs write it, with what stands behind it; nothing where a text is no day by what was said."""
    forms: list[tuple[re.Pattern[str], str]] = [(_YEAR_FIRST if how.dates == "ymd" else _DAY_FIRST, how.dates)]
    named = [(_YEAR_NAME_DAY, "ymd")] if how.dates == "ymd" else [(_DAY_NAME_YEAR, "dmy"), (_NAME_DAY_YEAR, "mdy")]
    months: Mapping[str, int] = {}

    def number(text: str) -> int:
        return int(text) if text.isdecimal() else months.get(_folded(text), 0)

    def year_of(text: str) -> int:
        if len(text) == 4:
            return int(text)
        return 0 if how.pivot is None else int(text) + (2000 if int(text) <= how.pivot else 1900)

    def read(value: str) -> str:
        nonlocal months
        with_name = any(each.isalpha() for each in value)
        if with_name:
            months = months or month_names()
        for form, order in [*forms, *named] if with_name else forms:
            if found := form.fullmatch(value):
                year, month, of_month = (found[order.index(part) + 1] for part in "ymd")
                read_as = tried(lambda: date(year_of(year), number(month), int(of_month)).isoformat(), ValueError)  # noqa: B023
                if read_as is not None:
                    return read_as + _ONE_DIGIT.sub(r"\g<1>0\2", _TWELVE.sub(_of_24_hours, found[4]))
        return ""

    return read


def _of_24_hours(found: re.Match[str]) -> str:
    """9:30 PM as 21:30; 12:15 AM is 00:15."""
    hour = int(found[2]) % 12 + (12 if found[4] in "pP" else 0)
    return f"{found[1]}{hour:02}{found[3]}"


@lru_cache(maxsize=1)
def month_names() -> dict[str, int]:
    """The months by their names, in full and short, without accents; a name that is two months somewhere is none.

    >>> names = month_names()
    >>> [names[each] for each in ("march", "mar", "marz", "mars", "marzo", "maart", "sept", "dez")]
    [3, 3, 3, 3, 3, 3, 9, 12]
    """
    from babel.dates import get_month_names

    found: dict[str, set[int]] = {"sept": {9}, "mrz": {3}}
    for language in _LANGUAGES:
        for width in ("wide", "abbreviated"):
            for context in ("format", "stand-alone"):
                for month, name in get_month_names(width, context, language).items():
                    found.setdefault(_folded(name), set()).add(month)
    return {name: next(iter(months)) for name, months in found.items() if len(months) == 1}


def _folded(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(sign for sign in plain if sign.isalpha())
