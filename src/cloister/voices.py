"""What an error says, in the words of the person who reads it.

Errors are written in Python, and so are the pieces of their lines: `spend="0.1"`, `cl.Integer(0, 120)`, `a smaller spend=`.
Such a piece says what it is about, a parameter and a value, and each audience has its own words for that: a field on a page, an
option on the command line, a setting in SQL. A `Voice` finds the pieces in a text and puts the words of its audience there.
Prose, SQL and what stands in quotes stay as they are, and in Python nothing changes. Of what to write instead, an alternative
that an audience has no words for is dropped: no line is better than one that cannot be written where it is read.

>>> class Options(Voice):
...     def given(self, name, value):
...         return f"--{name} {plain(value)}"
...
>>> Options().said('spend="0.1"'), Options().said("SELECT COUNT(*) AS n FROM staff WHERE x = 1")
('--spend 0.1', 'SELECT COUNT(*) AS n FROM staff WHERE x = 1')
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["OPEN", "Unspeakable", "Voice", "pieces_of", "plain"]

_PIECE = re.compile(
    r"""(?<![A-Za-z0-9_\\])(?:"(?P<column>[^"\n]*)": (?=cl\.[A-Z])|(?P<quoted>'[^'\n]*'(?!\w)|"[^"\n]*"))"""
    r"|(?<![A-Za-z0-9_.'\"])(?P<call>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)(?=\()"
    r"|(?<![A-Za-z0-9_.'\"/?&-])(?P<name>[A-Za-z_][A-Za-z0-9_]*|\*\*)=(?![=~>])"
    r"|(?<![A-Za-z0-9_.'\"/@-])(?P<member>(?:cl|session|cloister\.[a-z]+)\.[A-Za-z_]\w*(?>(?:\.\w+)*))(?!\()"
)
_ATOM = re.compile(r"[A-Za-z0-9_…+*-]+(?:[.@:/][A-Za-z0-9_…+*-]+)*")
_PYTHONIC = re.compile(
    r"(?=\w*[a-z])[A-Z]\w*[A-Z]\w*|ZCDP|[A-Z][A-Za-z]+\.[a-z_]+|(?:cl|cloister|session|ledger|datetime|numpy|survey|tally)\..+"
)
_FUNCTION = re.compile(r"[a-z]+(?:_[a-z]+)+")
_STATISTICS = {"Count": "COUNT", "Sum": "SUM", "Mean": "AVG", "Variance": "VARIANCE", "Mode": "MODE"}
"""What everybody asks for in SQL who does not ask in Python."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CHOICES = re.compile(r"((?:[,;] |[，；、])?(?:\bor |或者? ?)|; |；)")
_REFUSED = re.compile(r" (?:is|was) |[^A-Za-z0-9,;，；。]?(?:无效|不受支持|不支持)")
_LONGEST = 4000
_FARTHEST, _DEEPEST = 1000, 30


class Unspeakable(Exception):
    """An audience has no words for a piece."""


def plain(value: str) -> str:
    """A value of Python as people write it.

    >>> plain('"0.1"'), plain('["age", "sex"]'), plain("(0, 1)"), plain('{"age": 2}'), plain("True")
    ('0.1', 'age, sex', '0, 1', 'age: 2', 'yes')
    """
    value = value.strip()
    if value[:1] in "'\"" and value[-1:] == value[:1] and len(value) > 1:
        return value[1:-1]
    if value[:1] in _CLOSING and value[-1:] == _CLOSING[value[:1]]:
        return ", ".join(": ".join(map(plain, _split(each, ":"))) for each in _split(value[1:-1], ",") if each)
    return {"True": "yes", "False": "no", "None": "none"}.get(value, value)


def pieces_of(text: str) -> list[str]:
    """The pieces of Python in a text.

    >>> pieces_of("a smaller spend=, or cl.Integer(0, 120); not COUNT(*)")
    ['spend=', 'cl.Integer(0, 120)']
    """
    found: list[str] = []

    class Heard(Voice):
        def _piece(self, text: str, match: re.Match[str]) -> tuple[str, int]:
            said, end = super()._piece(text, match)
            if said is not _SAME:
                found.append(text[match.start() : end])
            return "", end

        def given(self, name: str, value: str) -> str:
            return ""

        def bare(self, name: str) -> str:
            return ""

        def call(self, name: str, positional: Sequence[str], keywords: Sequence[tuple[str, str]]) -> str:
            return ""

        def member(self, name: str) -> str:
            return ""

        def declared(self, column: str, domain: str) -> str:
            return ""

    Heard()._spoken(text[:_LONGEST])
    return found


_SAME = "\0"
OPEN = ("…", "{…}", "[…]", '"…"', "'…'")
"""Values that a line leaves to its reader."""


class Voice:
    """Words for the pieces; each audience overrides what it says otherwise. `Unspeakable` where it has none."""

    def given(self, name: str, value: str) -> str:
        """A parameter with a value; `value` is written in Python."""
        return f"{name}={value}"

    def bare(self, name: str) -> str:
        """A parameter, whatever its value: `a smaller spend=`."""
        return f"{name}="

    def wrong(self, name: str, value: str) -> str:
        """A parameter with a value that was found wrong: the subject of a sentence."""
        return self.given(name, value)

    def call(self, name: str, positional: Sequence[str], keywords: Sequence[tuple[str, str]]) -> str:
        """A call: of its keywords, those that are said."""
        return self.joined([self.given(each, value) for each, value in keywords if value not in OPEN])

    def member(self, name: str) -> str:
        """A name with dots that is not called."""
        raise Unspeakable(name)

    def other(self, name: str) -> str:
        """What this audience has no words for, where it can't be dropped: its name as words.

        >>> Voice().other("session.lowest_of"), Voice().other("OutputPerturbation")
        ('lowest of', 'output perturbation')
        """
        last = name.rpartition(".")[2].replace("_", " ").strip()
        return (
            re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", last).lower()
            if last[1:] != last[1:].lower() and last != last.upper()
            else last
        )

    def declared(self, column: str, domain: str) -> str:
        """A line of a table's columns: `domain` is in this voice already."""
        return f"{column}: {domain}"

    def value(self, text: str) -> str:
        """A value of Python as people write it, with what is called in it in this voice.

        >>> Voice().value("{'age': 2, 'sex': [1, 2]}")
        'age: 2, sex: 1, 2'
        """
        text = text.strip()
        if text[:1] in _CLOSING and text[-1:] == _CLOSING[text[:1]]:
            return ", ".join(": ".join(map(self.value, _split(each, ":"))) for each in _split(text[1:-1], ",") if each.strip())
        return plain(self._spoken(text))

    def joined(self, parts: Sequence[str]) -> str:
        """Several pieces one after the other."""
        if not parts:
            raise Unspeakable
        return ", ".join(parts)

    def told(self, text: str) -> str:
        """What happened, or why, in this voice: nothing of it is dropped."""
        return text if len(text) > _LONGEST else self._spoken(text, whole=True)

    def said(self, text: str) -> str:
        """What to write instead, in this voice: of the alternatives, those that can be said."""
        if len(text) > _LONGEST:
            return text
        try:
            return self._spoken(text)
        except Unspeakable:
            pass
        parts = self._alternatives(text)
        told: list[tuple[str, str]] = []
        for between, part in parts:
            try:
                told.append((between, self._spoken(part)))
            except Unspeakable:
                continue
        return "".join(f"{between if at else ''}{part}" for at, (between, part) in enumerate(told))

    def _alternatives(self, text: str) -> list[tuple[str, str]]:
        pieces = _CHOICES.split(text)
        merged: list[tuple[str, str]] = [("", pieces[0])]
        for between, part in zip(pieces[1::2], pieces[2::2], strict=True):
            whole = merged[-1][1]
            if any(whole.count(opening) > whole.count(closing) for opening, closing in _CLOSING.items()):
                merged[-1] = (merged[-1][0], whole + between + part)
            else:
                merged.append((between, part))
        return merged

    def _spoken(self, text: str, *, whole: bool = False) -> str:
        told, at = [], 0
        while (match := _PIECE.search(text, at)) is not None:
            try:
                said, end = self._piece(text, match)
            except Unspeakable:
                if not whole:
                    raise
                if match["call"] and "." not in match["call"]:  # it may be a function of the analyst's own SQL
                    told.append(text[at : match.end()])
                    at = match.end()
                    continue
                said, end = self.other(match["call"] or match["member"] or match["name"]), _end_of(text, match)
                if match["name"] and (value := text[match.end() : end]):
                    said = f"{said} {value}"
            told.append(text[at : match.start()])
            told.append(text[match.start() : end] if said is _SAME else said)
            at = end
        return "".join(told) + text[at:]

    def _piece(self, text: str, match: re.Match[str]) -> tuple[str, int]:
        if match["quoted"] is not None:
            return _SAME, match.end()
        if match["column"] is not None:
            called = _PIECE.match(text, match.end())
            if called is None or called["call"] is None:
                return _SAME, match.end()
            said, end = self._called(text, called)
            return (_SAME, end) if said is _SAME else (self.declared(match["column"], said), end)
        if match["member"] is not None:
            return self.member(match["member"]), match.end()
        if match["call"] is not None:
            return self._called(text, match)
        name, end = match["name"], _value_end(text, match.end())
        if end == match.end():
            return self.bare(name), end
        value = text[match.end() : end]
        return (self.wrong if _REFUSED.match(text, end) else self.given)(name, value), end

    def _called(self, text: str, match: re.Match[str]) -> tuple[str, int]:
        name, end = match["call"], _closed(text, match.end())
        if end is None:
            return _SAME, match.end()
        inside = [each.strip() for each in _split(text[match.end() + 1 : end - 1], ",") if each.strip()]
        split = [re.fullmatch(r"([A-Za-z_]\w*)=(?!=)(.*)", each, re.DOTALL) for each in inside]
        keywords = [(each[1], each[2]) for each in split if each is not None]
        ours = _PYTHONIC.fullmatch(name) or (_FUNCTION.fullmatch(name) and match.start() == 0)
        if not keywords and (name.upper() == name or not ours):
            return _SAME, match.end()  # a function of SQL, or of mathematics
        if name in _STATISTICS and [each for each, _ in keywords] == ["column"]:
            return f"{_STATISTICS[name]}({self.value(keywords[0][1])})", end
        return self.call(name, [each for each, named in zip(inside, split, strict=True) if named is None], keywords), end


def _end_of(text: str, match: re.Match[str]) -> int:
    """Where a piece ends that was not said."""
    if match["name"]:
        return _value_end(text, match.end())
    return (_closed(text, match.end()) if match["call"] else None) or match.end()


def _value_end(text: str, at: int) -> int:
    """Where the value that begins there ends; there, if none does."""
    first = text[at : at + 1]
    if first and first in "'\"":
        end = text.find(first, at + 1)
        return end + 1 if end > 0 else at
    if first in _CLOSING:
        return _closed(text, at) or at
    atom = _ATOM.match(text, at)
    if atom is None:
        return at
    end = atom.end()
    if atom[0] == "lambda":
        return len(text)
    if text[end : end + 1] in ("(", "["):
        return _closed(text, end) or end
    return end


def _closed(text: str, at: int) -> int | None:
    """Behind the bracket that closes the one which stands there; None where none does soon: a text that people sent may open
    thousands."""
    open_: list[str] = []
    quote = ""
    for place in range(at, min(len(text), at + _FARTHEST)):
        sign = text[place]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _CLOSING:
            if len(open_) == _DEEPEST:
                return None
            open_.append(_CLOSING[sign])
        elif sign in ")]}":
            if not open_ or open_.pop() != sign:
                return None
            if not open_:
                return place + 1
    return None


def _split(text: str, by: str) -> list[str]:
    """Parts of a text between signs that stand in no bracket and in no quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == by and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
