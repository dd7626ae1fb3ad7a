"""PostgreSQL's words: where strings, comments and statements end.

The texts that clients send are taken apart here before anything else looks at them, since what ends a statement decides what is
asked. The rules are those of PostgreSQL's own lexer with `standard_conforming_strings`: dollar quotes, E'…' with backslashes,
comments within comments, `$1` for parameters.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cloister.pgwire.failures import Refused

Kind = Literal["word", "quoted", "string", "number", "parameter", "symbol"]

_WORD = re.compile(
    r"""(?P<space>[\s\ufeff]++|--[^\n]*+)
    |(?P<comment>/\*)
    |(?P<escape>[eE]'(?:[^'\\]|''|\\.)*+')
    |(?P<string>(?:[uU]&|[bBxXnN])?'(?:[^']|'')*+')
    |(?P<quoted>(?:[uU]&)?"(?:[^"]|"")*+")
    |(?P<unended>(?:[uU]&|[eEbBxXnN])?['"])
    |(?P<dollar>\$(?:[^\W\d]\w*+)?\$)
    |(?P<parameter>\$\d++)
    |(?P<number>(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?)
    |(?P<word>[^\W\d][\w$]*+)
    |(?P<symbol>::|<=|>=|<>|!=|!~\*|!~|~\*|\|\||.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Word:
    """One word, and its place in the text."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        """As keywords and plain names are compared; a quoted name keeps its case."""
        return unquoted(self.text) if self.kind == "quoted" else self.text.lower()

    def says(self, *names: str) -> bool:
        """Whether it is one of these keywords or signs."""
        return self.kind in ("word", "symbol") and self.text.lower() in names


def words(text: str) -> list[Word]:
    """The words of a text, comments left out.

    >>> [word.text for word in words("SELECT $1::int, 'it''s; ' -- so; it is")]
    ['SELECT', '$1', '::', 'int', ',', "'it''s; '"]
    """
    found: list[Word] = []
    at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        assert match is not None  # the last choice is any sign
        kind, end = str(match.lastgroup), match.end()
        if kind == "comment":
            end = _after_comment(text, end)
        elif kind == "dollar":
            close = text.find(match.group(), end)
            if close < 0:
                raise _unended("a dollar-quoted text")
            found.append(Word("string", text[at : close + len(match.group())], at, close + len(match.group())))
            end = close + len(match.group())
        elif kind != "space":
            if kind == "unended":
                raise _unended("a text or a name in quotes")
            found.append(Word("string" if kind == "escape" else kind, match.group(), at, end))  # type: ignore[arg-type]
        at = end
    return found


def statements(text: str) -> list[tuple[str, list[Word]]]:
    """The statements of a text with their words, empty ones left out.

    >>> [statement for statement, _ in statements("BEGIN; SELECT ';' ;; ")]
    ['BEGIN', "SELECT ';'"]
    """
    found: list[tuple[str, list[Word]]] = []
    current: list[Word] = []
    for word in [*words(text), Word("symbol", ";", len(text), len(text))]:
        if word.text != ";":
            current.append(word)
        elif current:
            first = current[0].start
            own = [Word(each.kind, each.text, each.start - first, each.end - first) for each in current]
            found.append((text[first : current[-1].end], own))
            current = []
    return found


def unquoted(text: str) -> str:
    """What a quoted text or name stands for.

    >>> unquoted("'it''s'"), unquoted('"a b"'), unquoted("$$x$$"), unquoted("plain")
    ("it's", 'a b', 'x', 'plain')
    """
    if text[:1] == "$" and text[-1:] == "$":
        tag = text.index("$", 1) + 1
        return text[tag:-tag]
    if text[-1:] not in ("'", '"') or len(text) < 2:
        return text
    mark, start = text[-1], text.index(text[-1])
    inside, prefix = text[start + 1 : -1].replace(mark * 2, mark), text[:start].lower()
    escaped = re.sub(r"\\[^xuU0-7]", "", inside) if prefix == "e" else inside
    if prefix in ("b", "x") or (prefix in ("e", "u&") and "\\" in escaped):
        raise Refused("This text is not supported", why="it is written in numbers", instead="its letters", code="0A000")
    if prefix != "e":
        return inside
    simple = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
    return re.sub(r"\\(.)", lambda found: simple.get(found.group(1), found.group(1)), inside, flags=re.DOTALL)


def without(text: str, gone: Sequence[Word]) -> str:
    """The text without some of its words.

    >>> text = "SELECT public.people.age"
    >>> without(text, words(text)[1:3])
    'SELECT people.age'
    """
    pieces, at = [], 0
    for word in gone:
        pieces.append(text[at : word.start])
        at = word.end
    return "".join([*pieces, text[at:]])


def _after_comment(text: str, at: int) -> int:
    depth = 1
    while depth:
        match = _COMMENT.search(text, at)
        if match is None:
            raise _unended("a comment")
        depth += 1 if match.group() == "/*" else -1
        at = match.end()
    return at


def _unended(what: str) -> Refused:
    return Refused("The statement is invalid", why=f"{what} does not end", instead="the closing mark", code="42601")


OPENERS = ("select", "with", "values", "table", "(")
"""What a question begins with."""
EXAMPLES = {
    "close": "CLOSE c",
    "copy": "COPY (SELECT …) TO STDOUT (FORMAT csv, HEADER)",
    "deallocate": "DEALLOCATE p",
    "declare": "DECLARE c CURSOR FOR SELECT …",
    "execute": "EXECUTE p (1, 'F')",
    "explain": "EXPLAIN (FORMAT JSON) SELECT …",
    "fetch": "FETCH FORWARD 10 FROM c",
    "move": "MOVE FORWARD 10 IN c",
    "prepare": "PREPARE p (int, text) AS SELECT …",
    "reset": "RESET cloister.spend",
    "set": "SET cloister.spend = '0.1'",
    "show": "SHOW cloister.spend",
}
_DIGITS = 18


class Rest:
    """The words that are still to be read."""

    def __init__(self, own: Sequence[Word], first: str) -> None:
        self.own, self.at, self.first = own, 0, first

    def had(self, *names: str) -> bool:
        """Reads these keywords, in order, where they come next."""
        found = self.own[self.at : self.at + len(names)]
        if len(found) == len(names) and all(word.says(name) for word, name in zip(found, names, strict=True)):
            self.at += len(names)
            return True
        return False

    def expect(self, *names: str) -> None:
        """Reads these keywords, which must come next."""
        if not self.had(*names):
            raise self.refused()

    def name(self) -> str:
        """A name, dots included."""
        found = self.plain_name()
        return found + ("." + self.name() if self.had(".") else "")

    def plain_name(self) -> str:
        """A name without dots: small letters, unless it is in quotes."""
        word = self.next()
        if word.kind not in ("word", "quoted") or not word.lower:
            raise self.refused()
        return word.lower

    def next(self) -> Word:
        """The next word."""
        if self.at >= len(self.own):
            raise self.refused()
        self.at += 1
        return self.own[self.at - 1]

    def says(self, *names: str) -> bool:
        """Whether one of these keywords or signs comes next; nothing is read."""
        return self.at < len(self.own) and self.own[self.at].says(*names)

    def number(self) -> int:
        """A whole number, with its sign."""
        sign = -1 if self.had("-") else 1
        word = self.next()
        if word.kind != "number" or not word.text.isdigit() or len(word.text) > _DIGITS:
            raise self.refused()
        return sign * int(word.text)

    def value(self) -> str:
        """A value, or several with commas between them."""
        parts = []
        while True:
            sign = "-" if self.had("-") else ""
            word = self.next()
            if word.kind not in ("word", "quoted", "string", "number"):
                raise self.refused()
            parts.append(sign + (unquoted(word.text) if word.kind in ("string", "quoted") else word.text))
            if not self.had(","):
                return ", ".join(parts)

    def end(self) -> None:
        """Nothing may be left."""
        if self.at < len(self.own):
            raise self.refused()

    def refused(self) -> Refused:
        """It does not read as such a statement."""
        what = self.first.upper()
        return Refused(f"This {what} is invalid", why="it cannot be read", instead=EXAMPLES.get(self.first, what), code="42601")
