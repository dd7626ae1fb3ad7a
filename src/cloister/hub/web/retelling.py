"""Texts whose values were put in before anybody knew the reader's language: known again by their shape, and told in it.

An error says "it is longer than 200 characters"; the catalogue holds "it is longer than {most} characters". Where a text has no
translation of its own, it is matched against the texts with places. What stood in a place is taken over as it is, a number or a
name; in a place that `WORDS` lists stood words of the hub, and those are told too, as is all that looks like talk. Where a part
would stay English, all of it does. In a place of `TERMS` stands one of a few words of the library's ("quarter", "settled"), or
what somebody wrote; the catalogue has these words under a context, since one word may mean two things ("is settled", "was not
settled").
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

WORDS = frozenset({"action", "first", "last", "title", "titles", "what", "whom", "why"})
"""Places that hold words of the hub."""
TERMS = {
    **{place: place for place in ("along", "bound", "every", "kind", "part", "party", "shape", "state", "told")},
    **{place: place for place in ("unit", "wanted", "what")},
    **dict.fromkeys(("kinds", "left", "right"), "kinds"),
    "purpose": "kind",
}
"""Places that may hold a term of the library's, and the context under which the catalogue has it (`render.py`)."""

_PLACE = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[A-Za-z]{2,}")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_TALK = re.compile(r"\b[A-Za-z][a-z]+ [a-z]{2,}")
_NAME = re.compile(r"\w+(?:[.:_/-]\w+)+")
"""What is no word of English: `question.ask`, `delta-floor`."""
_RULED, _NO_RULE = " (rule {rule})", re.compile(r"\s?[(（][^()（）]*\{rule\}[)）]$")
"""A page shows the rule of a refusal below it, and so takes it out of the reason."""
_FILLED = re.compile(r"( ?)\{(\w+)\}( ?)")
_WIDE, _NARROW = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[A-Za-z0-9]")
_DEEPEST = 4
CONTEXT = "\x04"
"""What gettext puts between a context and its text."""
_PART = "part of another text"
"""Under what shapes with one fixed word are kept: they are known only inside another text, around code ("This LIMIT")."""
_CODE = re.compile(r"[A-Z0-9_ ]+|'[^']*'")


@dataclass(frozen=True)
class _Shape:
    expression: str
    places: tuple[str, ...]
    said: str
    weight: int
    word: str
    """One that stands in each text of this shape; "" where none is sure to."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when a text may be of this shape: of two thousand, a page asks for a few."""
        return re.compile(self.expression, re.DOTALL)


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
        found: dict[str, list[_Shape]] = {"": []}
        for whole, said in told.items():
            context, _, text = whole.rpartition(CONTEXT)
            shape = _shape(text, said)
            if shape is not None:
                short = shape.weight < 2 and not any(place in WORDS for place in shape.places)
                found.setdefault(context or (_PART if short else ""), []).append(shape)
        self._shapes: dict[str, dict[str, list[tuple[int, _Shape]]]] = {}
        for context, shapes in found.items():
            by_word = self._shapes.setdefault(context, {})
            for place, shape in enumerate(sorted(shapes, key=_rank)):
                by_word.setdefault(shape.word, []).append((place, shape))

    def told(self, text: str, depth: int = 0, context: str = "") -> str:
        """The text in the catalogue's language; nothing where no shape fits it."""
        if depth > _DEEPEST or len(text) > 2000:
            return ""
        by_word = self._shapes.get(context, {})  # there are two thousand: those are tried of which it has a word
        likely = [each for word in {"", *_WORD.findall(text)} for each in by_word.get(word, ())]
        for _, shape in sorted(likely, key=itemgetter(0)):
            match = shape.pattern.fullmatch(text)
            values = self._values(shape, match, depth) if match else None
            if values is not None and (context != _PART or all(map(_CODE.fullmatch, values.values()))):
                return _filled(shape.said, values)
        parts = [self._word(each, depth) for each in text.split("; ")] if "; " in text else [""]
        return "；".join(parts) if all(parts) else ""

    def _values(self, shape: _Shape, match: re.Match[str], depth: int) -> dict[str, str] | None:
        values = {}
        for place in shape.places:
            value, named = match[place], place.rstrip("0123456789")
            term = self._term(TERMS[named], value, depth) if named in TERMS else ""
            if not term and (named in WORDS or _TALK.search(_QUOTED.sub("", value))):
                term = self._word(value, depth) or (value if _NAME.fullmatch(value) or _QUOTED.fullmatch(value) else "")
                if not term:
                    return None
            values[place] = term or value
        return values

    def _term(self, context: str, value: str, depth: int) -> str:
        """A term of the library's, or several between commas; nothing where one of them is none."""
        said = [
            self._messages.get(f"{context}{CONTEXT}{each}") or self.told(each, depth + 1, context) for each in value.split(", ")
        ]
        whole = self._messages.get(f"{context}{CONTEXT}{value}") or self.told(value, depth + 1, context)
        return str(whole) or ("、".join(map(str, said)) if len(said) > 1 and all(said) else "")

    def _word(self, text: str, depth: int) -> str:
        for known in (text, text[:1].lower() + text[1:]):
            said = self._messages.get(known)
            if isinstance(said, str) and said:
                return said
        return self.told(text, depth + 1) or self.told(text, depth + 1, _PART)


def _filled(said: str, values: Mapping[str, str]) -> str:
    """Each place once: what a value holds is no place. Between two Chinese signs stands no blank, and one between a Chinese sign
    and a letter or digit, whichever the value is.

    >>> _filled("按{every}划分，属于 {of}。", {"every": "7 days", "of": "人群"})
    '按 7 days 划分，属于人群。'
    """

    def put(place: re.Match[str]) -> str:
        value = values.get(place[2])
        if value is None:
            return place[0]
        before, after = said[: place.start()][-1:], said[place.end() :][:1]
        return _blank(before, value[:1], place[1]) + value + _blank(value[-1:], after, place[3])

    return _FILLED.sub(put, said)


def _blank(before: str, after: str, given: str) -> str:
    """What stands between two signs: `given`, but where one of them is Chinese."""
    if _WIDE.match(before) and _WIDE.match(after):
        return ""
    mixed = (_WIDE.match(before) and _NARROW.match(after)) or (_NARROW.match(before) and _WIDE.match(after))
    return " " if mixed else given


def _rank(shape: _Shape) -> tuple[int, bool]:
    """The one with more fixed words first; of two alike, that which tells the words in its places."""
    return -shape.weight, not any(place in WORDS for place in shape.places)


def _shape(text: str, said: str) -> _Shape | None:
    """What a text with places looks like; nothing where too few of its words are fixed to know it by."""
    places = tuple(dict.fromkeys(_PLACE.findall(text)))
    fixed = _PLACE.split(text)[::2]
    weight = len(_WORD.findall(" ".join(fixed)))
    if not weight and not any(place in WORDS for place in places):
        return None
    pattern, seen = "", set()
    for part, place in zip(fixed, [*_PLACE.findall(text), ""], strict=True):
        pattern += re.escape(part)
        if place:
            pattern += f"(?P={place})" if place in seen else f"(?P<{place}>.+?)"
            seen.add(place)
    return _Shape(pattern, places, said, weight, _surely(fixed))


def _surely(fixed: list[str]) -> str:
    """The longest word that stands in every text with these fixed parts: one that touches a place may be part of a longer one.

    >>> _surely(["for ", "th of the columns", "s"])
    'for'
    >>> _surely(["", "th"])
    ''
    """
    last = len(fixed) - 1
    whole = [
        found[0]
        for number, part in enumerate(fixed)
        for found in _WORD.finditer(part)
        if (found.start() or not number) and (found.end() < len(part) or number == last)
    ]
    return max(whole, key=len, default="")
