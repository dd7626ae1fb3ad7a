"""Reports, certificates and risk pages in the reader's language: they are kept as they were written, and told when they leave.

Each text of a page is looked for among those that such papers have (`Language.papers`), with the values that were put into it:
those stay as they are. Names of columns, labels and values of rows are none of these texts, and are not touched.
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from html import unescape
from typing import NamedTuple

from cloister.hub.services.anonymizing.words import ATTACKERS, KEYS, NESTED, STEPS
from cloister.hub.web.languages import Language, language_of
from cloister.printable import escape

_PLACE = re.compile(r"\{(\w+)\}")
_PIECES = re.compile(r"(<style>.*?</style>|<[^>]*>)", re.DOTALL)
_DEEPEST = 4
_SHORT = 23
"""Labels of charts that are longer than this are cut there, and end with an ellipsis."""


def page_in(page: str, language: Language) -> str:
    """A page in a language; names and values in it stay.

    >>> page = '<html lang="en"><h2>Signature</h2><td>a column</td></html>'
    >>> page_in(page, language_of("zh_CN"))
    '<html lang="zh-Hans"><h2>签名</h2><td>a column</td></html>'
    """
    if not language.messages:
        return page
    words = words_in(language)
    told = [each if each.startswith("<") else _piece(each, words) for each in _PIECES.split(page)]
    return "".join(told).replace('<html lang="en">', f'<html lang="{language.tag}">', 1)


def words_in(language: Language) -> Callable[[str], str]:
    """What tells a text of such a paper in a language.

    >>> words_in(language_of("zh_CN"))("5-anonymity"), words_in(language_of("en"))("5-anonymity")
    ('5-匿名', '5-anonymity')
    """
    return partial(_told, language.code) if language.messages else str


def _piece(text: str, words: Callable[[str], str]) -> str:
    inner = text.strip()
    if not inner:
        return text
    return text.replace(inner, escape(words(unescape(inner))), 1)


class _Shape(NamedTuple):
    fixed: tuple[str, ...]
    """What stands before the first place, between two, and after the last."""
    places: tuple[str, ...]
    said: str

    def values_in(self, text: str) -> dict[str, str] | None:
        """What fills the places, each as short as may be but the last; None where the text is another. In one pass: a
        regular expression would try all ways to part a text, and names of columns are whatever somebody calls them.

        >>> _shape("{one} of {all} rows", "").values_in("3 of 4 of 5 rows")
        {'one': '3', 'all': '4 of 5'}
        """
        first, *between, last = self.fixed
        end, at = len(text) - len(last), len(first)
        if not (text.startswith(first) and text.endswith(last)):
            return None
        found = {}
        for place, part in zip(self.places, between, strict=False):
            next_ = text.find(part, at + 1, end)
            if next_ < 0:
                return None
            found[place], at = text[at:next_], next_ + len(part)
        return {**found, self.places[-1]: text[at:end]} if at < end else None


def _told(code: str, text: str, depth: int = 0) -> str:
    whole, shapes, nested = _known(code)
    if text in whole:
        return whole[text]
    if depth > _DEEPEST or len(text) > 2000:
        return text
    for shape in (*shapes, *(nested if depth else ())):
        found = shape.values_in(text)
        if found is not None:
            values = {place: _value(code, place, value, depth + 1) for place, value in found.items()}
            return _PLACE.sub(lambda place, values=values: values.get(place[1], place[0]), shape.said)  # type: ignore[misc]
    return text


def _value(code: str, place: str, value: str, depth: int) -> str:
    steps = value.split(", ")
    if place == "steps" and set(steps) <= set(STEPS):
        return "、".join(language_of(code).pgettext(place, step) for step in steps)
    return _told(code, value, depth)


@lru_cache(maxsize=8)
def _known(code: str) -> tuple[dict[str, str], list[_Shape], list[_Shape]]:
    """Texts without places; texts with places, the longest first; those that stand only within others."""
    language = language_of(code)
    whole = {key: language.gettext(text) for key, text in KEYS.items()}
    whole |= {text: said for text, said in language.papers.items() if not _PLACE.search(text)}
    whole |= {f"{text[:_SHORT]}…": said for text, said in list(whole.items()) if len(text) > _SHORT + 1}
    shapes = [
        _shape(text, language.papers[text]) for text in sorted(language.papers, key=len, reverse=True) if _PLACE.search(text)
    ]
    shapes += [_shape(f"{key} ({{column}})", f"{language.gettext(text)} ({{column}})") for key, text in ATTACKERS.items()]
    return whole, shapes, [_shape(text, language.gettext(text)) for text in NESTED]


def _shape(text: str, said: str) -> _Shape:
    return _Shape(tuple(_PLACE.split(text)[::2]), tuple(_PLACE.findall(text)), said)
