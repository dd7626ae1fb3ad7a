"""Texts in files that a spreadsheet opens: every character can be seen, and what it would take for a formula stays a text."""

from __future__ import annotations

from cloister.printable import shown

_FIRST = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would compute it. At the beginning of a file it does not see a mark of byte order.

    >>> is_formula("=1+1"), is_formula("\uff1d1+1"), is_formula("\ufeff=1+1"), is_formula("a=1")
    (True, True, True, False)
    """
    return text.lstrip("\ufeff").startswith(_FIRST)


def safe(text: str) -> str:
    """The text as it may be shown, with an apostrophe before it where a spreadsheet would compute it.

    >>> safe("@SUM(A1)"), safe("plain"), safe("a\\u202eb")
    ("'@SUM(A1)", 'plain', 'a⟨U+202E⟩b')
    """
    return f"'{shown(text, lines=True)}" if is_formula(text) else shown(text, lines=True)
