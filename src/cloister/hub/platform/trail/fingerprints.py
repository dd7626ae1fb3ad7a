"""The shape of a question: what it computes, and the conditions that it computes it under, each in one normal form.

Two questions that compute the same under conditions that hardly differ can be subtracted; what is left is the person (or the few)
for whom the conditions differ. `closeness` says how two sets of conditions differ. Differential privacy bounds what subtraction
gives; the steward should hear of it all the same. The conditions of a subquery are part of what it computes.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, Literal

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.generator import Generator

from cloister.query.forms import form_of, stand_ins

Closeness = Literal["same", "narrow", "one conjunct", "far"]
_LONGEST = 20_000
_NARROW = 3
_MOST_FORMS = 1024


@dataclass(frozen=True, kw_only=True, order=True)
class Condition:
    """One conjunct: its text, the same without its constants, and those; of a list of values, the template shows one."""

    text: str
    template: str
    constants: tuple[str, ...] = ()

    @property
    def negated(self) -> bool:
        """Whether it leaves somebody out, by saying who they are not."""
        return self.template.startswith("NOT ")

    @property
    def equals(self) -> bool:
        """Whether it names a value."""
        return " = " in self.template


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """What a question computes, as a digest, and its conjuncts.

    >>> one = fingerprint("SELECT COUNT(*) FROM people WHERE age < 40 AND sex = 'F'")
    >>> other = fingerprint("select count(*) as n from people where 'F' = sex and 40 > age")
    >>> one == other, [each.text for each in one.conditions]
    (True, ['age < 40', "sex = 'F'"])
    """

    aggregate: str
    conditions: tuple[Condition, ...]

    @cached_property
    def parts(self) -> frozenset[Condition]:
        """The conjuncts as a set; kept, since one question is compared with many."""
        return frozenset(self.conditions)

    def details(self) -> dict[str, Any]:
        """As a line of the audit log keeps it."""
        conditions = [[each.text, each.template, *each.constants] for each in self.conditions]
        return {"aggregate": self.aggregate, "conditions": conditions}

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> Fingerprint | None:
        """As it was kept."""
        try:
            conditions = [
                Condition(text=text, template=bare, constants=tuple(rest)) for text, bare, *rest in details["conditions"]
            ]
            return cls(aggregate=str(details["aggregate"]), conditions=tuple(conditions))
        except (KeyError, TypeError, ValueError):
            return None


def fingerprint(sql: str, dialect: str | None = None, *, tree: exp.Expression | None = None) -> Fingerprint | None:
    """The shape of a question; None for what cannot be read as one SELECT. `tree` is the text as it was parsed before, a copy of
    which nothing else is made."""
    if len(sql) > _LONGEST:
        return None
    try:
        tree = parse_one(sql, dialect=dialect) if tree is None else tree
    except (SqlglotError, RecursionError):
        return None
    if not isinstance(tree, exp.Select):
        return None
    wording = Wording()
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.this.lower())
        name.set("quoted", False)
    where = tree.args.get("where")
    conjuncts = [] if where is None else list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    conditions = {_condition(each, wording) for each in conjuncts}
    for name in ("where", "order", "limit"):
        tree.set(name, None)
    for alias in list(tree.find_all(exp.Alias)):
        alias.replace(alias.this)
    if len(tree.expressions) > 1:
        tree.set("expressions", sorted(tree.expressions, key=wording.text))
    aggregate = hashlib.sha256(wording.text(tree).encode()).hexdigest()[:32]
    return Fingerprint(aggregate=aggregate, conditions=tuple(sorted(conditions)))


class _Shapes:
    """The shapes of forms: texts that differ in the numbers of their conditions alone have shapes that do so too. As in
    `query/forms.py`, a form is looked at with numbers of ours in it, when it comes again, and kept where putting the analyst's
    own into what was found gives exactly what is found of the analyst's own text.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str | None], tuple[Fingerprint, tuple[str, ...]] | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def shape(self, sql: str, dialect: str | None, tree: Callable[[], exp.Expression | None]) -> Fingerprint | None:
        """As `fingerprint` finds it."""
        form = form_of(sql)
        key = None if form is None else (form.text, dialect)
        with self._lock:
            again = key in self._known
            known = self._known.get(key) if key is not None else None
            if key is not None:
                self._known[key] = known
                self._known.move_to_end(key)
                while len(self._known) > _MOST_FORMS:
                    self._known.popitem(last=False)
        if form is not None and known is not None:
            return _with_numbers(*known, form.numbers)
        found = fingerprint(sql, dialect, tree=tree())
        if form is not None and key is not None and again and found is not None:
            ours = stand_ins(form)
            shape = fingerprint(form.written(ours), dialect)
            if shape is not None:
                learnt = shape, tuple(str(number) for number in ours)
                if _with_numbers(*learnt, form.numbers) == found:
                    with self._lock:
                        self._known[key] = learnt
        return found


_SHAPES = _Shapes()


def shape_of(sql: str, dialect: str | None, tree: Callable[[], exp.Expression | None]) -> Fingerprint | None:
    """The shape of a question, as `fingerprint` finds it, found once for texts that differ in numbers alone. `tree` gives the
    text as it was parsed, where it has to be looked at."""
    return _SHAPES.shape(sql, dialect, tree)


def _with_numbers(shape: Fingerprint, ours: Sequence[str], numbers: Sequence[int]) -> Fingerprint:
    """The shape with other numbers in the places of ours."""
    theirs = {mine: str(number) for mine, number in zip(ours, numbers, strict=True)}
    conditions = set()
    for each in shape.conditions:
        text = each.text
        for constant in each.constants:
            text = text.replace(constant, theirs.get(constant, constant))
        constants = tuple([theirs.get(constant, constant) for constant in each.constants])
        conditions.add(Condition(text=text, template=each.template, constants=constants))
    return Fingerprint(aggregate=shape.aggregate, conditions=tuple(sorted(conditions)))


def closeness(one: Fingerprint, other: Fingerprint) -> Closeness:
    """How the conditions of two questions that compute the same differ.

    "narrow": by a conjunct that leaves somebody out or that is one of many, or by one step of one constant; so the difference of
    the answers is about few. "one conjunct": by an ordinary one, as when a total is split.

    >>> total = fingerprint("SELECT COUNT(*) FROM p")
    >>> women, others = (fingerprint(f"SELECT COUNT(*) FROM p WHERE {which}") for which in ("sex = 'F'", "name <> 'x'"))
    >>> closeness(total, women), closeness(total, others)
    ('one conjunct', 'narrow')
    >>> closeness(*(fingerprint(f"SELECT COUNT(*) FROM p WHERE age < {age}") for age in (40, 41)))
    'narrow'
    """
    if one.aggregate != other.aggregate:
        return "far"
    left, right = one.parts, other.parts
    more, less = left - right, right - left
    if not more and not less:
        return "same"
    if len(more) + len(less) == 1:
        (extra,) = more | less
        longer = len(max(left, right, key=len))
        return "narrow" if extra.negated or (extra.equals and longer > _NARROW) else "one conjunct"
    if len(more) == 1 and len(less) == 1:
        (here,), (there,) = more, less
        opposite = here.text == f"NOT {there.text}" or there.text == f"NOT {here.text}"
        if opposite and min(len(left), len(right)) > _NARROW:
            return "narrow"
        if here.template == there.template and _neighbours(here, there):
            return "narrow"
    return "far"


def _neighbours(here: Condition, there: Condition) -> bool:
    """Whether two conjuncts of one template differ by one step of one constant, or by one value of a long list."""
    if " IN (?)" in here.template:
        apart = set(here.constants) ^ set(there.constants)
        return len(apart) == 1 and max(len(here.constants), len(there.constants)) > _NARROW
    if here.equals or len(here.constants) != len(there.constants):
        return False
    moved = [pair for pair in zip(here.constants, there.constants, strict=True) if pair[0] != pair[1]]
    return len(moved) == 1 and _one_step(*moved[0])


def _one_step(here: str, there: str) -> bool:
    """Whether two constants are neighbours, as finely as they are written.

    >>> _one_step("40", "41"), _one_step("0.5", "0.6"), _one_step("40", "50"), _one_step("2020-01-31", "2020-02-01")
    (True, True, False, True)
    """
    try:
        return abs((date.fromisoformat(here) - date.fromisoformat(there)).days) == 1
    except ValueError:
        pass
    try:
        one, other = Decimal(here), Decimal(there)
    except InvalidOperation:
        return False
    finest = min(int(one.as_tuple().exponent), int(other.as_tuple().exponent), 0)
    return abs(one - other) == Decimal(1).scaleb(finest)


def _condition(node: exp.Expression, wording: Wording) -> Condition:
    """A conjunct in its normal form: the column on the left, `<>` and NOT IN as NOT, constants in one writing."""
    while isinstance(node, exp.Paren):
        node = node.this
    turned = {exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}
    kind = type(node)
    if kind in turned and isinstance(node.this, exp.Literal) and not isinstance(node.expression, exp.Literal):
        node = turned[kind](this=node.expression, expression=node.this)
    if isinstance(node, exp.NEQ):
        node = exp.Not(this=exp.EQ(this=node.this, expression=node.expression))
    text = wording.text(node)
    constants = tuple(each.this for each in node.find_all(exp.Literal, bfs=False))
    return Condition(text=text, template=wording.template(node), constants=constants)


class _Bare(Generator):  # type: ignore[misc]
    """Writes `?` for a constant, and one for a whole list of them."""

    def literal_sql(self, expression: exp.Literal) -> str:
        """A constant."""
        return "?"

    def in_sql(self, expression: exp.In) -> str:
        """Among constants, however many."""
        if expression.expressions and all(isinstance(each, exp.Literal) for each in expression.expressions):
            return f"{self.sql(expression, 'this')} IN (?)"
        return str(super().in_sql(expression))


class Wording:
    """Writes several parts of one tree, which is its caller's own: writing may change it.

    >>> import sqlglot
    >>> part, wording = sqlglot.parse_one("age IN (1, 2) /* some */"), Wording()
    >>> wording.text(part), wording.template(part)
    ('age IN (1, 2)', 'age IN (?)')
    """

    def __init__(self) -> None:
        self._text = Generator(normalize=True, comments=False)
        self._template = _Bare(normalize=True, comments=False)

    def text(self, part: exp.Expression) -> str:
        """As it stands."""
        return str(self._text.generate(part, copy=False))

    def template(self, part: exp.Expression) -> str:
        """Without its constants."""
        return str(self._template.generate(part, copy=False))
