"""What is printable text, and what a name may be: one definition, checked wherever a text comes in and kept wherever one leaves.

*In:* a name or a text that is not printable is refused where it is declared, typed or sent (`is_text`), before anything is
charged for it. *Out:* what is not printable all the same (a value that the rows hold, a name that an older version took) is shown
by its number, `⟨U+202E⟩`, so that no chart, page or file breaks on it and no reader is misled (`shown`, `escape`, `json_of`).

Printable are letters, marks, digits, punctuation, symbols and blanks, what Unicode may yet assign to them, and the two joiners
(U+200C and U+200D), without which Persian words and many emoji cannot be written. Not printable are control characters, line and
paragraph separators, the other format characters (which turn a line round or hide what stands in it), surrogates, private
characters and noncharacters. The list is written out, so that it is the same in every version of Python; the browser's twin has
the same (`local/browser/cloister-survey.js`).
"""

import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = [
    "LONGEST_NAME",
    "LONGEST_VALUE",
    "SPLIT",
    "UNPRINTABLE",
    "escape",
    "is_kept",
    "is_printable",
    "is_text",
    "json_of",
    "kept",
    "shown",
]

LONGEST_NAME = 200
"""Of a column, a table or a title, in characters."""
LONGEST_VALUE = 10_000
"""Of a category, in characters."""

_ABOVE = (
    r"\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\uf8ff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    + "".join(rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(1, 14))
    + r"\U000e0000-\U000e00ff\U000e01f0-\U0010ffff"
)
SPLIT = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two halves that JSON joins to one character: a text with them comes back as another."""
UNPRINTABLE = re.compile(rf"[\x00-\x1f{_ABOVE}]")
"""One character that is not printable."""
_ON_LINES = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f{_ABOVE}]")
"""The same of a text of several lines, which may hold tabs and line ends."""
_BLANK = re.compile(r"[\s\u034f\u115f\u1160\u17b4\u17b5\u200c\u200d\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]*")
"""Printable, and nothing to see."""


_KEPT: ContextVar[bool] = ContextVar("reading what is kept", default=False)


@contextmanager
def kept() -> Iterator[None]:
    """Meanwhile every text is taken as it stands: what is read was let in before, perhaps by a version that knew other rules (a
    survey that was opened, the policy of a release), and must be read to be shown.

    >>> with kept():
    ...     is_text("a\\u202eb")
    True
    """
    before = _KEPT.set(True)
    try:
        yield
    finally:
        _KEPT.reset(before)


def is_kept() -> bool:
    """Whether what is read now is kept already.

    >>> is_kept()
    False
    """
    return _KEPT.get()


def is_printable(text: str, *, lines: bool = False) -> bool:
    """Whether every character is printable; with `lines`, tabs and line ends may stand between them.

    >>> is_printable("Größe, 年龄 👩‍🔬"), is_printable("a\\tb"), is_printable("a\\u202eb"), is_printable("a\\nb", lines=True)
    (True, False, False, True)
    """
    return _KEPT.get() or (_ON_LINES if lines else UNPRINTABLE).search(text) is None


def is_text(given: object, most: int = LONGEST_NAME, *, lines: bool = False) -> bool:
    """Whether this may be a name or a text: printable, of 1 to `most` characters, with something to see in it.

    >>> is_text("cat"), is_text(" "), is_text("half a letter: \\ud800"), is_text("x" * 201), is_text(3)
    (True, False, False, False, False)
    """
    if not isinstance(given, str):
        return False
    strange = _ON_LINES if lines else UNPRINTABLE
    return _KEPT.get() or (len(given) <= most and not _BLANK.fullmatch(given) and strange.search(given) is None)


def shown(text: str, *, lines: bool = False) -> str:
    """The text as it may leave: what is not printable, by its number.

    >>> shown("a\\u202eb\\n"), shown("a\\u2028b\\n", lines=True)
    ('a⟨U+202E⟩b⟨U+000A⟩', 'a⟨U+2028⟩b\\n')
    """
    return (_ON_LINES if lines else UNPRINTABLE).sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def escape(text: object, quote: bool = True) -> str:
    """The same in a page or a picture: `html.escape` of what is shown.

    >>> escape("<b>\\u200f")
    '&lt;b&gt;⟨U+200F⟩'
    """
    return html.escape(shown(str(text), lines=True), quote)


def finite(value: Any) -> Any:
    """The same with None for each number that is none or has no end: JSON has neither NaN nor Infinity.

    >>> finite({"margin": [2.5, float("inf")], "rest": (float("nan"), "a")})
    {'margin': [2.5, None], 'rest': [None, 'a']}
    """
    if isinstance(value, Mapping):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_of(value: Any, **how: Any) -> str:
    """The same as JSON, which says every text exactly: what is not printable, by the escape that JSON has for it.

    >>> json_of({"é": "a\\u2028b"})
    '{"é": "a\\\\u2028b"}'
    """
    written = json.dumps(value, ensure_ascii=False, **how)
    return _ON_LINES.sub(lambda found: json.dumps(found[0])[1:-1], written)


def places_of(value: float, digits: int) -> int:
    """How many digits behind the point tell so many of a number; below 0 those before it.

    >>> places_of(0.0123, 2), places_of(1234, 2)
    (3, -2)
    """
    return digits - 1 - math.floor(math.log10(value)) if 0 < value < math.inf else 0


_MOST_PLACES = 300
"""More digits behind the point no double has but where it loses its own."""


def rounded_up(value: float, places: int) -> float:
    """A margin with so many digits behind the point: no interval is told narrower than it is, but for what floats lose.

    >>> rounded_up(11.39, 0), rounded_up(0.1 + 0.2, 1), rounded_up(961, -1)
    (12.0, 0.3, 970.0)
    """
    steps = value * 10.0**places if places <= _MOST_PLACES else math.inf
    return math.ceil(steps * (1 - 1e-12)) / 10.0**places if math.isfinite(steps) else value


def margin_text(margin: float) -> str:
    """A margin as a reader sees it: two digits, or all before the point, and never less than it is.

    >>> margin_text(11.39), margin_text(1234.5), margin_text(0.0123), margin_text(0.0)
    ('12', '1,235', '0.013', '0')
    """
    return f"{rounded_up(margin, 0):,.0f}" if 10 <= margin < 1e15 else f"{rounded_up(margin, places_of(margin, 2)):.2g}"
