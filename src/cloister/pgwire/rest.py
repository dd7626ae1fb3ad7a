"""The words of a statement that are still to be read."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.pgwire.failures import Refused
from cloister.pgwire.words import Word, unquoted

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
