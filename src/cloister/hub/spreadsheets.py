"""Texts in files that a spreadsheet opens: what it would take for a formula stays a text."""

from __future__ import annotations

__all__ = ["is_formula", "safe"]

_FIRST = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would compute it. At the beginning of a file it does not see a mark of byte order.

    >>> is_formula("=1+1"), is_formula("\uff1d1+1"), is_formula("\ufeff=1+1"), is_formula("a=1")
    (True, True, True, False)
    """
    return text.lstrip("\ufeff").startswith(_FIRST)


def safe(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would compute it.

    >>> safe("@SUM(A1)"), safe("plain")
    ("'@SUM(A1)", 'plain')
    """
    return f"'{text}" if is_formula(text) else text
