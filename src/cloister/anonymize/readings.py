"""What a reader of the written file sees: values that look alike, or that the file writes alike, are one value.

A class with "gout" and "go<ZERO WIDTH SPACE>ut", with an empty text beside a missing one, or with 0.3 beside 0.1 + 0.2 has two
values for a program and one for whoever reads the table: ℓ = 2 in memory is ℓ = 1 on paper. So there is one reading, and two uses
of it. What is counted is the reading; and what is published is written in one way, so that no reader, a program neither, tells
two apart that were counted as one.

Characters without a glyph are none; blanks are one blank, and none at the ends; letters in other forms (NFKC) and letters of
other alphabets that look the same are the same letter; numbers are the same up to 15 digits. An empty text and the words that
readers of CSV take for a missing value ("NA", "null", "NaN") are one value where they stand beside one another or beside a
missing one; texts that are numbers throughout ("1", "1.0") are these numbers, unless one begins with a zero (postcodes). What can
be *seen* to differ, capitals above all, stays apart, and `risks.words` warns of it.

A sensitive column is read besides as the readiest of readers would (`told`): "01" and "1", "inf" and "Infinity", "TRUE" and
"true", a day and its midnight are one value wherever they stand, since what else is in the column may be suppressed, and then
pandas, polars or DuckDB take all of it for numbers, Booleans or days.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

_ABSENT = frozenset(
    ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL")
) | {"NaN", "None", "n/a", "nan", "null"}
"""What pandas, the commonest reader of CSV, takes for a missing value unless it is told otherwise."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_ANY_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf(inity)?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
_BOOLEAN = ("true", "false")
_DAY = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})([ T]00:00(:00(\.0+)?)?)?")
_LONGEST_WHOLE, _EXACT = 1 << 63, 1 << 53
"""Whole numbers of 64 bits; and those that are exact where readers take them for floats."""
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
_LONGEST_NUMBER = 40
_DIGITS, _SINGLE_DIGITS = 15, 7
"""So many digits of a float, and of one of 32 bits, are what was meant; beyond them stands what arithmetic left."""

_LATIN = {
    # Cyrillic, Greek and others: the letters that common fonts draw as a Latin one (after Unicode's table of confusables, UTS 39)
    "A": "АΑᎪ", "B": "ВΒᏴ", "C": "СϹᏟⲤ", "D": "Ꭰ", "E": "ЕΕᎬ", "F": "Ϝ", "G": "ԌᏀ", "H": "НΗᎻ", "I": "ІΙӀ",
    "J": "ЈᎫͿ", "K": "КΚᏦK", "L": "Ꮮ", "M": "МΜᎷϺ", "N": "ΝⲚ", "O": "ОΟՕⲞ", "P": "РΡᏢ", "Q": "Ԛ", "R": "Ꭱ",
    "S": "ЅᏚՏ", "T": "ТΤᎢ", "U": "Ս", "V": "Ꮩ", "W": "ԜᎳ", "X": "ХΧ", "Y": "ҮΥ", "Z": "ΖᏃ", "a": "аɑα", "b": "Ь",
    "c": "сϲⲥ", "d": "ԁ", "e": "еҽ", "g": "ɡց", "h": "һհ", "i": "іıɩι", "j": "јϳ", "k": "κ", "l": "ӏǀ", "n": "ո",
    "o": "оοօⲟ", "p": "рρ", "q": "ԛզ", "s": "ѕ", "u": "սυʋ", "v": "νѵᴠ", "w": "ԝ", "x": "хχ", "y": "уүγ", "z": "ᴢ",
    "-": "‐‑‒–—―−⁃➖", "'": "‘’‚‛ʹʻʼʽˈ′´", '"': "“”„‟″", "/": "⁄∕", ":": "∶ː", ".": "․", ",": "‚", "*": "∗⁎٭",
    "~": "∼˜", "|": "∣ǀ",
}  # fmt: skip
_LOOK_ALIKE = {ord(other): latin for latin, others in _LATIN.items() for other in others}
_GLYPHLESS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
_BLANK = str.maketrans({"\u2800": " "})


def seen(text: str) -> str:
    """A text as it looks.

    >>> seen("\u200bgo\u00adut\u00a0 b "), seen("g\u043eut") == "gout", seen("cafe\u0301") == seen("caf\u00e9"), seen("Gout")
    ('gout b', True, True, 'Gout')
    """
    if text.isascii():
        if text.isprintable():
            return " ".join(text.split()) if "  " in text or text[:1] == " " or text[-1:] == " " else text
        return " ".join("".join(each for each in text if each.isspace() or each.isprintable()).split())
    forms = unicodedata.normalize("NFKC", text).translate(_BLANK)
    drawn = "".join(each for each in forms if each.isspace() or not _is_glyphless(each))
    return unicodedata.normalize("NFC", " ".join(drawn.translate(_LOOK_ALIKE).split()))


def shown(value: Any) -> str | None:
    """One value as it looks, with no regard to others of its column; None where readers take it for missing.

    >>> shown(0.1 + 0.2), shown(""), shown("NA"), shown("1.0"), shown(3.0)
    ('0.3', None, None, '1', '3')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    text = seen(str(value))
    if text in _ABSENT:
        return None
    return _number(text, _DIGITS) if _is_number(text) else text


def one_reading(
    values: Sequence[Any], *, told: bool = False, missing: bool = False, single: bool = False
) -> list[int | None] | None:
    """For each of different values (texts, or numbers in ascending order) the place of the one that it is written as; None for a
    missing one. Nothing where each is read as itself.

    `told` says that the column is sensitive: whatever some reader takes for one value is one. `missing` says that the column has
    missing values besides. Of several spellings the plainest is written: plain letters before
    others, the shorter one, the first in order. `single` is for floats of 32 bits.

    >>> one_reading(["flu", "gout", "gout ", "g\u043eut"])
    [0, 1, 1, 1]
    >>> one_reading(["", "NA", "flu"]), one_reading(["NA", "flu"]), one_reading([0.3, 0.1 + 0.2, 0.4])
    ([None, None, 2], None, [0, 0, 2])
    >>> one_reading(["01", "1", "TRUE", "true", "x"]), one_reading(["01", "1", "TRUE", "true", "x"], told=True)
    (None, [1, 1, 2, 2, 4])
    """
    if not values:
        return None
    if isinstance(values[0], float):
        return _of_floats(values, _SINGLE_DIGITS if single else _DIGITS)
    if isinstance(values[0], int) and told and missing:
        return _of_whole(values)
    if not isinstance(values[0], str):
        return None
    looks = [seen(text) for text in values]
    absent = [place for place, look in enumerate(looks) if look in _ABSENT]
    keys: list[str | None] = list(looks)
    if missing or len(absent) > 1:
        for place in absent:
            keys[place] = None
    if told:
        keys = _taken(keys, missing or bool(absent))
    else:
        known = [key for key in keys if key is not None and key not in _ABSENT]
        if known and all(map(_is_number, known)) and not any(map(_LEADING_ZERO.match, known)):
            keys = [key if key is None or key in _ABSENT else _number(key, _DIGITS) for key in keys]
    if len(set(keys)) == len(keys) and None not in keys:
        return None
    chosen: dict[str, int] = {}
    for place, key in enumerate(keys):
        if key is not None and (key not in chosen or _plainness(values[place]) < _plainness(values[chosen[key]])):
            chosen[key] = place
    return [None if key is None else chosen[key] for key in keys]


def _taken(looks: Sequence[str | None], missing: bool) -> list[str | None]:
    """Each look as what a reader may take it for: a number, a Boolean, a day."""
    numbers = {look for look in looks if look is not None and _ANY_NUMBER.fullmatch(look)}
    exact = not missing and all(_WHOLE.fullmatch(each) and -_LONGEST_WHOLE <= int(each) < _LONGEST_WHOLE for each in numbers)
    found: list[str | None] = []
    for look in looks:
        if look is None:
            found.append(None)
        elif look in numbers:
            found.append(str(int(look)) if exact else f"{float(look) + 0.0:.{_DIGITS}g}")
        elif look.lower() in _BOOLEAN:
            found.append(look.lower())
        elif day := _DAY.fullmatch(look):
            found.append("{}-{:0>2}-{:0>2}".format(*day.groups()[:3]))
        else:
            found.append(look)
    return found


def _of_whole(values: Sequence[int]) -> list[int | None] | None:
    """Whole numbers beside missing ones, which many readers take for floats."""
    if values[0] >= -_EXACT and values[-1] <= _EXACT:
        return None
    first: dict[float, int] = {}
    found: list[int | None] = [first.setdefault(float(value), place) for place, value in enumerate(values)]
    return found if len(first) < len(values) else None


def _of_floats(values: Sequence[float], digits: int) -> list[int | None] | None:
    numbers = np.asarray(values, dtype=np.float64)
    near = np.flatnonzero(np.diff(numbers) <= np.abs(numbers[1:]) * 10.0 ** (1 - digits))
    first = list(range(len(numbers)))
    for left in near.tolist():  # rounding keeps the order: what is one number stands side by side
        if f"{values[left]:.{digits}g}" == f"{values[left + 1]:.{digits}g}":
            first[left + 1] = first[left]
    if first == list(range(len(numbers))):
        return None
    shortest: dict[int, int] = {}
    for place, group in enumerate(first):
        if group not in shortest or len(repr(values[place])) < len(repr(values[shortest[group]])):
            shortest[group] = place
    return [shortest[group] for group in first]


def _is_glyphless(character: str) -> bool:
    if unicodedata.category(character) in ("Cf", "Cc", "Co", "Cn") or character in _GLYPHLESS:
        return True
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _is_number(text: str) -> bool:
    return len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def _number(text: str, digits: int) -> str:
    """A number's writing, the same for all writings of it: whole ones digit by digit."""
    if text.lstrip("+-").isdigit():
        return str(int(text))
    number = float(text)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number:.{digits}g}"


def _plainness(text: str) -> tuple[bool, int, str]:
    return not text.isascii(), len(text), text
