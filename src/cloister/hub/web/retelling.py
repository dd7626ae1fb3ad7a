"""Texts whose values were put in before anybody knew the reader's language: known again by their shape, and told in it.

An error says "it is longer than 200 characters"; the catalogue holds "it is longer than {most} characters". Where a text has no
translation of its own, it is matched against the texts with places. What stood in a place is taken over as it is, a number or a
name; in a place that `WORDS` lists stood words of the hub, and those are told too, as is all that looks like talk. Where a part
would stay English, all of it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["WORDS", "Shapes"]

WORDS = frozenset({"action", "first", "last", "title", "titles", "what", "whom", "why"})
"""Places that hold words of the hub."""

_PLACE = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[A-Za-z]{2,}")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_TALK = re.compile(r"\b[A-Za-z][a-z]+ [a-z]{2,}")
_NAME = re.compile(r"\w+(?:[.:_/-]\w+)+")
"""What is no word of English: `question.ask`, `delta-floor`."""
_RULED, _NO_RULE = " (rule {rule})", re.compile(r"\s?[(（][^()（）]*\{rule\}[)）]$")
"""A page shows the rule of a refusal below it, and so takes it out of the reason."""
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class _Shape:
    pattern: re.Pattern[str]
    places: tuple[str, ...]
    said: str
    weight: int


class Shapes:
    """The texts with places of one catalogue.

    >>> shapes = Shapes({"data owner": "[owner]", "for the role {titles}": "<{titles}>", "{n} are kept": "<{n}>"})
    >>> shapes.told("for the role data owner"), shapes.told("12 are kept"), shapes.told("the rows of others are kept")
    ('<[owner]>', '<12>', '')
    """

    def __init__(self, messages: Mapping[str, str | tuple[str, ...]]) -> None:
        self._messages = messages
        told = {text: said for text, said in messages.items() if isinstance(said, str) and said and _PLACE.search(text)}
        told |= {text.removesuffix(_RULED): _NO_RULE.sub("", said) for text, said in told.items() if text.endswith(_RULED)}
        found = [_shape(text, said) for text, said in told.items()]
        self._shapes = sorted((each for each in found if each is not None), key=lambda each: -each.weight)

    def told(self, text: str, depth: int = 0) -> str:
        """The text in the catalogue's language; nothing where no shape fits it."""
        if depth > _DEEPEST or len(text) > 2000:
            return ""
        for shape in self._shapes:
            match = shape.pattern.fullmatch(text)
            values = self._values(shape, match, depth) if match else None
            if values is not None:
                return _filled(shape.said, values)
        return ""

    def _values(self, shape: _Shape, match: re.Match[str], depth: int) -> dict[str, str] | None:
        values = {}
        for place in shape.places:
            value = match[place]
            if place.rstrip("0123456789") in WORDS or _TALK.search(_QUOTED.sub("", value)):
                value = self._word(value, depth) or (value if _NAME.fullmatch(value) else "")
                if not value:
                    return None
            values[place] = value
        return values

    def _word(self, text: str, depth: int) -> str:
        for known in (text, text[:1].lower() + text[1:]):
            said = self._messages.get(known)
            if isinstance(said, str) and said:
                return said
        return self.told(text, depth + 1)


def _filled(said: str, values: Mapping[str, str]) -> str:
    """Each place once: what a value holds is no place."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), said)


def _shape(text: str, said: str) -> _Shape | None:
    """What a text with places looks like; nothing where too few of its words are fixed to know it by."""
    places = tuple(dict.fromkeys(_PLACE.findall(text)))
    fixed = _PLACE.split(text)[::2]
    weight = len(_WORD.findall(" ".join(fixed)))
    if weight < 2 and not any(place in WORDS for place in places):
        return None
    pattern, seen = "", set()
    for part, place in zip(fixed, [*_PLACE.findall(text), ""], strict=True):
        pattern += re.escape(part)
        if place:
            pattern += f"(?P={place})" if place in seen else f"(?P<{place}>.+?)"
            seen.add(place)
    return _Shape(re.compile(pattern, re.DOTALL), places, said, weight)
