"""The words of pictures that the library draws, in the reader's language: axes, titles, the plan. What the data or the person who
asked has named is no such word, and stays, whatever it is called."""

from __future__ import annotations

import html
import re
from functools import cache
from typing import TYPE_CHECKING

from cloister.hub.web.languages import N_, language_of
from cloister.hub.web.retelling import Shapes
from cloister.printable import escape

if TYPE_CHECKING:
    from cloister.hub.web.languages import Language

_CHART = (
    N_("all rows"),
    N_("{cost}; error bars at {share}"),
    N_("{cost}; error bars at {share}; the first {shown} of {measured} statistics"),
    N_("{cost}; no group is left to show"),
)
_PLAN = (
    N_("rows"),
    N_("measured, exactly"),
    N_("noise"),
    N_("answer, at 95 %"),
    N_("Plan: {cost} of {population}"),
    N_("cost: {cost} of {population}; nothing was spent and no row was read"),
    N_("each row is one person"),
    N_("at most {most} of one {unit}"),
    N_("one unit: L1 ≤ {most}, L2² ≤ {squared}"),
    N_("one, all rows"),
)
_TEXT = re.compile(r"(<(text|title)\b[^>]*>)([^<]+)(</\2>)")


def retold(svg: str, language: Language, *, plan: bool = False) -> str:
    """A picture with the library's own words in a language.

    >>> picture = "<svg><text>all rows</text><text>ε = 1; error bars at 95%</text><text>rows</text></svg>"
    >>> retold(picture, language_of("en")) == picture
    True
    >>> retold(picture, language_of("zh_CN"))
    '<svg><text>所有行</text><text>ε = 1；误差线置信度 95%</text><text>rows</text></svg>'
    """
    told = _told(language.code, plan=plan)
    if told is None:
        return svg
    shapes, words = told

    def again(found: re.Match[str]) -> str:
        text = html.unescape(found[3]).strip()
        said = words.get(text) or shapes.told(text)
        return f"{found[1]}{escape(said, quote=False)}{found[4]}" if said else found[0]

    return _TEXT.sub(again, svg)


@cache
def _told(code: str, *, plan: bool) -> tuple[Shapes, dict[str, str]] | None:
    language = language_of(code)
    words = {text: language.gettext(text) for text in (_PLAN if plan else _CHART)} if language.messages else {}
    return (Shapes(words), words) if words else None
