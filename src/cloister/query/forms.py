"""Texts that differ only in the numbers of their conditions are read once: the form is kept, and the numbers are put into it.

Dashboards and programs ask the same text again and again with another threshold, and to parse it takes longer than to answer it.
A form is a text in which every whole number that stands on the right of a comparison of a name (`age > 40`) is left open. What a
form means is never guessed: it is read by the parser, with numbers of ours in the open places, and kept only where

- each of these numbers is in the condition on the rows, once, as the constant of a comparison, and nowhere else in what was
  read;
- putting the analyst's own numbers into their places gives exactly what the parser makes of the analyst's own text.

A number is digits without a sign, a point or a leading zero, with a word or the end behind it: to put others there changes no
word of the text, in any dialect. What a form means is kept by the very tables that it was read against, which are never changed:
another declaration, another version and another view of the columns are other objects, and so is the snapshot that they live in
(`session/state/table_snapshot.py`). A condition of a view is joined to a question after it was read, and is no part of this.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cloister.query.parse import Parsed, parse
from cloister.query.sources import Tables
from cloister.tables import And, Compare, Expression, Literal, Not, Or

_LONGEST = 4_000
_MOST_NUMBERS = 32
_MOST_FORMS = 512
_OPEN = "\x01"
_PLAIN = re.compile(r"(?:[A-Za-z0-9_\s.,()*<>=!+%;]|-(?!-)|/(?!\*)|'[^'\\\x01]*')*", re.ASCII)
"""No comments, no quoted names, no escapes: words whose ends are the same in every dialect."""
_NUMBER = re.compile(
    r"'[^']*'|(?<![\w.])([A-Za-z_][\w.]*\s*(?:<=|>=|<>|!=|<|>|=)\s*)(0|[1-9][0-9]{0,14})"
    r"(?=\s*(?:\)|;|$|(?:AND|OR|GROUP|ORDER|HAVING|LIMIT)\b))",
    re.ASCII | re.IGNORECASE,
)
_HERE = threading.local()
"""The last form of a thread is kept: whoever answers a question has its text looked at several times."""
_FIRST, _STEP = 7_310_000_000_000_009, 10_000_000_019
"""The stand-ins: longer than any number that is left open, so that none of these is taken for one."""


@dataclass(frozen=True, slots=True)
class Form:
    """A text with its numbers left open, and these, in the order of the text."""

    text: str
    numbers: tuple[int, ...]

    def written(self, numbers: Sequence[int]) -> str:
        """The text with other numbers."""
        parts = self.text.split(_OPEN)
        return parts[0] + "".join(f"{number}{part}" for number, part in zip(numbers, parts[1:], strict=True))


def form_of(sql: str) -> Form | None:
    """The form of a text; None where it is too long, or not written plainly enough to tell.

    >>> form = form_of("SELECT COUNT(*) FROM people WHERE age > 40 AND pay <= 9")
    >>> form.numbers, form.written([1, 2])
    ((40, 9), 'SELECT COUNT(*) FROM people WHERE age > 1 AND pay <= 2')
    >>> form_of("SELECT COUNT(*) FROM people WHERE age > 40 -- of age") is None
    True
    """
    last: tuple[str, Form | None] | None = getattr(_HERE, "form", None)
    if last is not None and last[0] is sql:
        return last[1]
    found = _form_of(sql)
    _HERE.form = (sql, found)
    return found


def _form_of(sql: str) -> Form | None:
    if not isinstance(sql, str) or len(sql) > _LONGEST or _PLAIN.fullmatch(sql) is None:
        return None
    numbers: list[int] = []

    def opened(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0]
        numbers.append(int(found[2]))
        return found[1] + _OPEN

    text = _NUMBER.sub(opened, sql)
    return Form(text, tuple(numbers)) if len(numbers) <= _MOST_NUMBERS else None


def stand_ins(form: Form) -> tuple[int, ...]:
    """A number of ours for each open place, all different."""
    return tuple(_FIRST + place * _STEP for place in range(len(form.numbers)))


def filled(condition: Expression, numbers: Mapping[int, int]) -> Expression:
    """The condition with other constants in its comparisons.

    >>> from cloister.tables import Column
    >>> filled(Compare(">", Column("age"), Literal(7)), {7: 40})
    Compare(op='>', left=Column(name='age'), right=Literal(value=40))
    """
    if isinstance(condition, Compare):
        right = condition.right
        if type(right) is Literal and type(right.value) is int and right.value in numbers:
            return Compare(condition.op, condition.left, Literal(numbers[right.value]))
        return condition
    if isinstance(condition, And | Or):
        return type(condition)(*(filled(part, numbers) for part in condition.parts))
    if isinstance(condition, Not):
        return Not(filled(condition.part, numbers))
    return condition


@dataclass(slots=True)
class _Template:
    """What a form means against some tables: what was read with stand-ins in it; none, where it is to be read again each time."""

    tables: tuple[object, ...]
    """Held, so that nothing else can come to have their places in memory."""
    parsed: Parsed | None = None
    numbers: tuple[int, ...] = ()
    tried: bool = False

    def put(self, form: Form) -> Parsed:
        """What the analyst's own text means. Its tree is not kept."""
        assert self.parsed is not None
        if not form.numbers:
            return self.parsed
        question = self.parsed.questions[0]
        assert question.where is not None
        where = filled(question.where, dict(zip(self.numbers, form.numbers, strict=True)))
        return replace(self.parsed, questions=(replace(question, where=where),))


class Forms:
    """The forms that were read against the tables of one snapshot, the newest used of them; each is made when it comes again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[object, _Template] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def parsed(self, sql: str, tables: Tables, dialect: str | None) -> Parsed:
        """What a text asks of these tables, as `parse` says it; without its tree where its form was known."""
        form = form_of(sql)
        if form is None:
            return parse(sql, tables, dialect)
        key = (form.text, dialect, tuple(zip(tables, map(id, tables.values()), strict=True)))
        with self._lock:
            known = self._known.get(key)
            if known is None:
                self._known[key] = _Template(tuple(tables.values()))
                while len(self._known) > _MOST_FORMS:
                    self._known.popitem(last=False)
            else:
                self._known.move_to_end(key)
        if known is not None and known.parsed is not None:
            return known.put(form)
        parsed = parse(sql, tables, dialect)
        if known is not None and not known.tried:
            known.tried = True
            _learn(known, form, parsed, lambda text: parse(text, tables, dialect))
        return parsed


def _learn(template: _Template, form: Form, parsed: Parsed, read: Callable[[str], Parsed]) -> None:
    """Keep what the form means, where it is sure."""
    if parsed.above is not None or len(parsed.questions) != 1 or parsed.publics or not isinstance(parsed.question.table, str):
        return
    numbers = stand_ins(form)
    tried = _Template(template.tables, replace(read(form.written(numbers)) if numbers else parsed, tree=None), numbers)
    assert tried.parsed is not None
    told = repr(tried.parsed)
    where = repr(tried.parsed.question.where) if tried.parsed.questions else ""
    if any(told.count(str(number)) != 1 or where.count(str(number)) != 1 for number in numbers):
        return
    again = tried.put(form)
    if again == parsed and repr(again) == repr(parsed):
        template.numbers = numbers
        template.parsed = tried.parsed  # last: who sees it sees all
