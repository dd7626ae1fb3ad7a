"""Pictures without a browser: a chart as SVG, in which every text is printable and short enough to be drawn.

The library that draws ends the whole process at a character that XML forbids, fails at a line separator, fails where it cuts a
long label in the middle of an emoji, and takes seconds for a text of a thousand letters. A key of an answer may be any of these.
So texts are cut here, and the library is told to cut none.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from cloister.printable import shown

_LABEL, _TITLE = 36, 120
"""The longest texts, in letters; a sign as wide as a Chinese one counts twice."""
_WIDE = "\u1100"
_LABELS = ("values", "sort", "domain")
_NUMBERED = re.compile(r'(id="|url\(#)(gradient_|clip)(\d+)')
_UNCUT: Mapping[str, Mapping[str, int]] = {
    "axis": {"labelLimit": 0, "titleLimit": 0},
    "legend": {"labelLimit": 0, "titleLimit": 0},
    "header": {"labelLimit": 0, "titleLimit": 0},
    "title": {"limit": 0},
}


def clean(part: Any, most: int = _TITLE) -> Any:
    """The same specification with every name and value as it may be shown, none of them longer than a label or a title.

    >>> clean({"values": [{"key": "a\\x01b", "n": 1}], "axis": {"labelLimit": 200}})
    {'values': [{'key': 'a⟨U+0001⟩b', 'n': 1}], 'axis': {'labelLimit': 0}}
    """
    if isinstance(part, str):
        return _cut(part, most)
    if isinstance(part, Mapping):
        return {
            clean(name): 0 if name in ("labelLimit", "titleLimit", "limit") else clean(value, _LABEL if name in _LABELS else most)
            for name, value in part.items()
        }
    if isinstance(part, list | tuple):
        return [clean(value, most) for value in part]
    return part


def svg(specification: dict[str, Any]) -> str:
    """A Vega-Lite specification as SVG (needs vl-convert)."""
    import vl_convert

    return _counted_from_zero(str(vl_convert.vegalite_to_svg(_uncut(specification))))


def png(specification: dict[str, Any], scale: float = 2.0) -> bytes:
    """The same as PNG, so many times as large."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(_uncut(specification), scale=scale))


def svg_png(drawn: str, scale: float = 2.0) -> bytes:
    """An SVG as PNG, so many times as large."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(drawn, scale=scale))


def _counted_from_zero(drawn: str) -> str:
    """The same picture with its gradients and clips numbered from 0: the library counts them through the life of the process."""
    numbers: dict[str, str] = {}

    def renumbered(found: re.Match[str]) -> str:
        before, name, number = found.groups()
        return before + name + numbers.setdefault(name + number, str(len(numbers)))

    return _NUMBERED.sub(renumbered, drawn)


def _uncut(specification: dict[str, Any]) -> dict[str, Any]:
    drawn: dict[str, Any] = clean(specification)
    config = drawn.get("config", {})
    drawn["config"] = config | {name: {**config.get(name, {}), **limits} for name, limits in _UNCUT.items()}
    return drawn


def _cut(text: str, most: int) -> str:
    """A text as a picture has it; of a long one the beginning, with a mark by which no two are taken for one."""
    seen = shown(text[: most + 1])
    width = 0
    for place, sign in enumerate(seen):
        width += 2 if sign >= _WIDE else 1
        if width > most:
            return f"{seen[:place]}… {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:4]}"
    return seen
