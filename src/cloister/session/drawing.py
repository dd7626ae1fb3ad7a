"""Pictures without a browser: a chart as SVG. Characters that no picture can hold are left out first.

The library that draws ends the whole process at a character that XML forbids, and a key of an answer may hold any.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["clean", "svg"]

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def clean(part: Any) -> Any:
    """The same specification without characters that XML forbids, in names and in values.

    >>> clean({"values": [{"key": "a\\x01b", "n": 1}]})
    {'values': [{'key': 'ab', 'n': 1}]}
    """
    if isinstance(part, str):
        return _FORBIDDEN.sub("", part)
    if isinstance(part, dict):
        return {clean(name): clean(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [clean(value) for value in part]
    return part


def svg(specification: dict[str, Any]) -> str:
    """A Vega-Lite specification as SVG (needs vl-convert)."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(clean(specification)))
