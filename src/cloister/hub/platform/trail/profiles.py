"""What is usual for a person: how many questions a day, at which hours, about which columns and data sets, at what cost.

A history is read from the audit log alone, and grows by the lines that are new since it was looked at last, so that looking after
each question stays quick however long it is.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sqlalchemy import String, cast, select
from sqlalchemy.orm import Session
from sqlglot import exp

from cloister.hub.hub import Hub
from cloister.hub.platform.trail.fingerprints import Fingerprint, shape_of
from cloister.hub.platform.trail.reading import sealed
from cloister.hub.records.trail import AuditLine
from cloister.privacy.rational import text_of

ASK = "question.ask"
"""The action of the lines that profiles are made of."""
_MOST_LINES = 20_000
_MOST_SHAPES = 500
_MOST_PEOPLE = 500
_DAYS = 90
_AMOUNT = re.compile(r"(?:([ερ])\s*=\s*)?([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?(?:/[0-9]+)?)", re.IGNORECASE)


def question_details(
    *,
    sql: str,
    data_sets: Iterable[str],
    columns: Iterable[str] = (),
    dialect: str | None = None,
    tree: Callable[[], exp.Expression | None] = lambda: None,
) -> dict[str, Any]:
    """The details of a line about a question: what `write(…, "question.ask", **question_details(…))` is given.

    `data_sets` are ids or names, `columns` are "data set.column". `tree` gives what `fingerprint` is given, where it is needed.
    """
    shape = shape_of(sql, dialect, tree)
    return {
        "sql": sql,
        "data_sets": sorted(set(data_sets)),
        "columns": sorted(set(columns)),
        **({"shape": shape.details()} if shape is not None else {}),
    }


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question, as the audit log has it."""

    when: datetime
    columns: tuple[str, ...] = ()
    data_sets: tuple[str, ...] = ()
    shape: Fingerprint | None = None

    @classmethod
    def of(cls, when: datetime, details: Mapping[str, Any]) -> Question:
        """From the columns of a line."""
        return cls(
            when=when.astimezone(UTC),
            columns=_texts(details.get("columns")),
            data_sets=_texts(details.get("data_sets")),
            shape=Fingerprint.of(details["shape"]) if isinstance(details.get("shape"), Mapping) else None,
        )


class History:
    """What a person asked until now, summed up."""

    def __init__(self) -> None:
        self.seen = 0
        """The number of the newest line that is in here."""
        self.total = 0
        self.days: Counter[date] = Counter()
        self.hours: Counter[int] = Counter()
        self.columns: Counter[str] = Counter()
        self.first: dict[str, datetime] = {}
        """When a column was first touched."""
        self.data_sets: Counter[str] = Counter()
        self.begun: datetime | None = None
        self.shapes: dict[Fingerprint, datetime] = {}
        """The newest different shapes, the newest last, and when each was asked last."""

    def add(self, question: Question, line: int = 0) -> None:
        """One question more."""
        self.seen = max(self.seen, line)
        self.total += 1
        self.begun = self.begun or question.when
        day = question.when.date()
        if day not in self.days:
            for old in [each for each in self.days if each < day - timedelta(days=_DAYS)]:
                del self.days[old]
        self.days[day] += 1
        self.hours[question.when.hour] += 1
        self.columns.update(question.columns)
        self.data_sets.update(question.data_sets)
        for column in question.columns:
            self.first.setdefault(column, question.when)
        if question.shape is not None:
            self.shapes.pop(question.shape, None)
            self.shapes[question.shape] = question.when
            if len(self.shapes) > _MOST_SHAPES:
                del self.shapes[next(iter(self.shapes))]

    def daily(self, until: date, days: int = 30) -> list[tuple[date, int]]:
        """Questions a day, up to a day, days without any included."""
        return [(day, self.days[day]) for day in (until - timedelta(days=back) for back in range(days - 1, -1, -1))]


class Histories:
    """The histories that a process has at hand; the ones used longest ago are let go."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self._kept: OrderedDict[str, History] = OrderedDict()

    def before(self, db: Session, person: str, line: int) -> History:
        """A person's history up to where this process looked last, or up to a line where it did not; for who holds the turn."""
        history = self._kept.pop(person, None) or read_history(db, person, until=line - 1)
        self._kept[person] = history
        if len(self._kept) > _MOST_PEOPLE:
            self._kept.popitem(last=False)
        return history

    @staticmethod
    def of(hub: Hub) -> Histories:
        """Those of this process."""
        found: Histories = hub.parts.setdefault("trail histories", Histories())
        return found


def read_history(db: Session, person: str, *, until: int | None = None) -> History:
    """A person's history from the audit log, up to a line: the newest twenty thousand questions."""
    history = History()
    for number, question in questions_since(db, person, 0, until=until):
        history.add(question, number)
    return history


def questions_since(db: Session, person: str, seen: int, *, until: int | None = None) -> list[tuple[int, Question]]:
    """A person's questions after a line, in their order, with the numbers of their lines."""
    lines = (
        select(AuditLine.number, AuditLine.when, AuditLine.details)
        .where(AuditLine.person == person, AuditLine.number > seen)
        .where(AuditLine.action == ASK, AuditLine.outcome == "done", sealed())
    )
    if until is not None:
        lines = lines.where(AuditLine.number <= until)
    found = db.execute(lines.order_by(AuditLine.number.desc()).limit(_MOST_LINES)).all()
    return [(line.number, Question.of(line.when, line.details)) for line in reversed(found)]


def spend_of(db: Session, person: str) -> dict[tuple[str, str], Fraction]:
    """What a person spent, by population and parameter (ε or ρ), on whatever has a cost."""
    lines = select(AuditLine.cost).where(AuditLine.person == person, AuditLine.outcome == "done", sealed())
    costs = db.scalars(lines.where(cast(AuditLine.cost, String) != "{}").order_by(AuditLine.number.desc()).limit(_MOST_LINES))
    found: dict[tuple[str, str], Fraction] = {}
    for population, text in (each for cost in costs for each in cost.items()):
        parameter, amount = amount_of(str(text))
        found[population, parameter] = found.get((population, parameter), Fraction(0)) + amount
    return found


def shown(hub: Hub, db: Session, person: str) -> dict[str, Any]:
    """A person's history as pages and programs show it."""
    history, spent = read_history(db, person), spend_of(db, person)
    return {
        "total": history.total,
        "begun": history.begun,
        "days": history.daily(hub.now().date()),
        "hours": [(hour, history.hours[hour]) for hour in range(24)],
        "columns": history.columns.most_common(30),
        "data_sets": history.data_sets.most_common(30),
        "spend": [(name, f"{parameter} = {text_of(amount)}") for (name, parameter), amount in sorted(spent.items())],
    }


@lru_cache(maxsize=1024)
def amount_of(text: str) -> tuple[str, Fraction]:
    """The first parameter of a guarantee's text, and which it is.

    >>> amount_of("ε = 0.1, δ = 1e-6"), amount_of("1/3"), amount_of("?")
    (('ε', Fraction(1, 10)), ('ε', Fraction(1, 3)), ('ε', Fraction(0, 1)))
    """
    found = _AMOUNT.match(text.strip())
    if found is None:
        return "ε", Fraction(0)
    return found[1] or "ε", Fraction(found[2])


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()
