"""Regular expressions, and SIMILAR TO, as patterns of LIKE, which take time in proportion to a text and mean the same everywhere.

    'D.*'            → 'D%'                 '(a|b)c'   → 'ac' or 'bc'
    '[abc]x?'        → 'ax', 'a', 'bx', …   'a{2}'     → 'aa'

A repeated group, a class that is excluded, and % or _ as themselves have no such pattern. A dot stands for any sign here, in
some engines for any but the end of a line. SIMILAR TO is a regular expression of the whole text in DuckDB; in the standard and
in PostgreSQL % and _ are those of LIKE in it, and a dot is a dot.
"""

from dataclasses import dataclass

_MOST = 32
"""The most patterns that one is written as."""
_MOST_REPEATS = 16
_SIGNS = "%_"
_CLOSING = "|)"
_SPECIAL = "*+?{}[](|)^$.\\"


class _NoPattern(Exception):
    """What LIKE cannot say."""


def likes(pattern: str, *, standard: bool = False, whole: bool = True) -> list[str] | None:
    """Patterns of LIKE, one of which holds where the regular expression does; None where there are none.

    `standard` reads the signs of the SQL standard; unless `whole`, the expression may stand anywhere in the text.

    >>> likes("D.*"), likes("D%", standard=True), likes("(no|so)uth"), likes("^a|b$", whole=False)
    (['D%'], ['D%'], ['nouth', 'south'], ['a%', '%b'])
    >>> likes("(ab)*"), likes("100%")
    (None, None)
    """
    try:
        reader = _Reader(pattern, standard, whole)
        found = reader.alternatives(outermost=True)
        if reader.place < len(pattern):
            return None
    except _NoPattern:
        return None
    return list(dict.fromkeys(found))


@dataclass
class _Reader:
    pattern: str
    standard: bool
    whole: bool
    place: int = 0

    def next(self) -> str:
        """The next sign; nothing at the end."""
        return self.pattern[self.place : self.place + 1]

    def alternatives(self, *, outermost: bool = False) -> list[str]:
        """What stands between bars."""
        found = self._sequence(outermost)
        while self.next() == "|":
            self.place += 1
            found = _few(found + self._sequence(outermost))
        return found

    def _sequence(self, outermost: bool) -> list[str]:
        anchored = not self.standard and outermost
        first = last = self.whole
        if anchored and self.next() == "^":
            self.place, first = self.place + 1, True
        found = [""]
        while self.next() and self.next() not in _CLOSING:
            if anchored and self.next() == "$" and self.pattern[self.place + 1 : self.place + 2] in ("", "|"):
                self.place, last = self.place + 1, True
                break
            found = _product(found, self._repeated(self._one()))
        return [f"{'' if first else '%'}{each}{'' if last else '%'}" for each in found] if outermost else found

    def _one(self) -> list[str]:
        sign = self.next()
        self.place += 1
        if sign == "(":
            if self.pattern.startswith("?:", self.place):
                self.place += 2
            found = self.alternatives()
            self._expect(")")
            return found
        if sign == "[":
            return self._class()
        if self.standard and sign in _SIGNS:
            return [sign]
        if sign == "." and not self.standard:
            return ["_"]
        if sign == "\\":
            sign = self.next()
            self.place += 1
            if not sign or sign.isalnum():  # \d, \b and the like
                raise _NoPattern
            return [_plain(sign)]
        if sign in _SPECIAL and not (self.standard and sign in ".^$"):
            raise _NoPattern
        return [_plain(sign)]

    def _class(self) -> list[str]:
        end = self.pattern.find("]", self.place)
        inner = self.pattern[self.place : end]
        if end < 0 or not inner or not inner.replace("-", "").replace(" ", "").isalnum():
            raise _NoPattern
        self.place = end + 1
        signs: list[str] = []
        at = 0
        while at < len(inner):
            if inner[at + 1 : at + 2] == "-" and at + 2 < len(inner):
                first, last = ord(inner[at]), ord(inner[at + 2])
                if not first <= last < first + _MOST:
                    raise _NoPattern
                signs += map(chr, range(first, last + 1))
                at += 3
            else:
                signs.append(inner[at])
                at += 1
        return _few([_plain(each) for each in signs])

    def _repeated(self, found: list[str]) -> list[str]:
        sign = self.next()
        if sign not in ("*", "+", "?", "{") or not sign:
            return found
        self.place += 1
        if sign == "{":
            end = self.pattern.find("}", self.place)
            low, comma, high = self.pattern[self.place : max(end, self.place)].partition(",")
            self.place = end + 1
            if not low.isdecimal() or len(low + high) > 4 or (comma and not high.isdecimal()):
                raise _NoPattern
            least, most = int(low), int(high or low)
        elif sign == "?":
            least, most = 0, 1
        elif found == ["_"]:
            return ["%" if sign == "*" else "_%"]
        elif found == ["%"]:
            return ["%"]
        else:
            raise _NoPattern
        if self.next() in ("?", "*", "+", "{") and self.next():  # a lazy one, or one of another
            raise _NoPattern
        if not least <= most <= _MOST_REPEATS:
            raise _NoPattern
        times = [[""]]
        for _ in range(most):
            times.append(_product(times[-1], found))
        return _few([each for some in times[least:] for each in some])

    def _expect(self, sign: str) -> None:
        if self.next() != sign:
            raise _NoPattern
        self.place += 1


def _plain(sign: str) -> str:
    if sign in _SIGNS:
        raise _NoPattern
    return sign


def _few(found: list[str]) -> list[str]:
    if len(found) > _MOST:
        raise _NoPattern
    return found


def _product(left: list[str], right: list[str]) -> list[str]:
    if len(left) * len(right) > _MOST:
        raise _NoPattern
    return [one + other for one in left for other in right]
