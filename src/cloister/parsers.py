"""Texts that somebody else wrote, read within bounds of size, depth, time and memory: a ValueError, or what they say.

Each is refused for what its parser can't bear, before it parses: `tests/security/test_parsers.py` has the table of all parsers of
the library and the hub, and tries each with the same hostile texts within 64 MiB.
"""

import gzip
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

MOST_TOML = 2**18
MOST_WHOLE = 2**53
"""What a number in an address or a header may be: JSON, databases and browsers hold it."""
QUOTED = '"(?:[^"]|"")*"'
"""A field of CSV in quotes."""
_MOST_PARTS = 16
_DOTTED = re.compile(
    rf"""(?<![\w\-"'])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}""",
)
"""A name of more parts than any table has: the parser keeps every beginning of it, so memory grows with the square."""

_LONG = re.compile(r"""(?<![\w"'])0[xob][0-9A-Fa-f_]{101}""")
"""Digits that Python turns into a number of any size: it could not even be written in a message."""

T = TypeVar("T")


def toml_of(text: str) -> dict[str, Any]:
    """TOML of at most 256 KiB, with no name of more than 16 parts and no number of more than 100 digits.

    >>> toml_of("a.b = 1")
    {'a': {'b': 1}}
    >>> toml_of("a." * 40_000 + "b = 1")
    Traceback (most recent call last):
    ValueError: a name has more than 16 parts
    >>> toml_of("a = 0x" + "f" * 5000)
    Traceback (most recent call last):
    ValueError: a number has more than 100 digits
    """
    if len(text) > MOST_TOML:
        raise ValueError(f"it is longer than {MOST_TOML} characters")
    if _DOTTED.search(text):
        raise ValueError(f"a name has more than {_MOST_PARTS} parts")
    if _LONG.search(text):
        raise ValueError("a number has more than 100 digits")
    return _within_depth(lambda: tomllib.loads(text))


def toml_in(path: Path) -> dict[str, Any]:
    """The TOML of a file on this machine, however long, with or without the mark that editors put before it (BOM)."""
    return _within_depth(lambda: tomllib.loads(path.read_text(encoding="utf-8-sig")))


def json_from(text: str | bytes, *, most: int) -> Any:
    """JSON of at most so many characters.

    >>> json_from("[1]", most=10)
    [1]
    >>> json_from("[" * 100_000, most=100_000)
    Traceback (most recent call last):
    ValueError: it is too deep
    """
    if len(text) > most:
        raise ValueError(f"it is longer than {most} characters")
    return _within_depth(lambda: json.loads(text))


def whole_of(text: str, most: int = MOST_WHOLE) -> int:
    """A whole number from 0 to `most`, in digits.

    >>> whole_of("17")
    17
    >>> whole_of("9" * 5000)
    Traceback (most recent call last):
    ValueError: it is no whole number up to 9007199254740992
    """
    if text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most:
        return int(text)
    raise ValueError(f"it is no whole number up to {most}")


def _within_depth(read: Callable[[], T]) -> T:
    try:
        return read()
    except RecursionError:
        raise ValueError("it is too deep") from None


UNSAID = "\x1f"
"""What divides fields of which nothing else says how they are written: ASCII has it for that."""


def delimiter_of(line: str, marks: str = f",;\t|{UNSAID}") -> str:
    """Of a comma, a semicolon, a tab and a bar, or other marks, what the first line of a file holds most often outside quotes.

    >>> delimiter_of('"a,b";c')
    ';'
    """
    return max(marks, key=re.sub(QUOTED, "", line).count)


def is_parquet(path: str | Path) -> bool:
    """Whether the name of a file says that it is Parquet, in capitals or not: the same at every door.

    >>> is_parquet("u.PARQUET"), is_parquet("u.pq"), is_parquet("u.csv")
    (True, True, False)
    """
    return str(path).lower().endswith((".parquet", ".pq"))


def separator_of(path: Path) -> str:
    """What divides the fields of a CSV file, by its first line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "people.csv").write_text("age;sex", encoding="utf-8")
    ...     separator_of(Path(folder) / "people.csv")
    ';'
    """
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace") as file:
        return delimiter_of(file.readline(2**16))
