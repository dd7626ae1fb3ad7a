"""One question of a data set of several owners: of each part alone, of all together, and of all apart and then added up.

The margins follow from declarations and from the spend: nothing is charged, and no row is read. Together is what one table with
all rows would give: the noise is one table's. Apart, the noises of k parts add up to k times the variance. What raw rows in one
table would give, without any noise, is shown for made-up rows that follow the declarations: a size to hold the margins against.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy.orm import Session as Db
from sqlglot import exp

from cloister.errors import CloisterError
from cloister.hub.decisions.facts import facts_of
from cloister.hub.hub import Caller, Hub
from cloister.hub.services.pooling.making import HIDDEN, PoolOut
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Authorised, Terms, Words, authorise, visible
from cloister.privacy import Guarantee, PureDP
from cloister.query import Session
from cloister.query.another_table import about_another
from cloister.query.words import statement
from cloister.session.questions.touched import Touched

_NO_NOISE = PureDP(10**9)
_WORDS = Words(
    name="The comparison",
    invalid=N_("The comparison is invalid"),
    denied=N_("The comparison was denied"),
    withheld=N_("The comparison was not released"),
)


class WayOut(BaseModel):
    """The margins of error (95 %) of one way: of the whole, of one part, or of all parts apart and added up; and, of raw rows in
    one table, what made-up rows give without noise."""

    way: str
    margins: dict[str, float]
    why: str
    values: dict[str, float] = Field(description='Of the way "raw" alone.')


class _Explaining:
    """The question, as the frame decides about it: it reads nothing and costs nothing."""

    words = _WORDS

    def __init__(self, sql: str, purpose: str) -> None:
        self.terms, self._sql = Terms(action="question.explain", purpose=purpose), sql

    def touches(self, session: Session) -> Touched:
        return session.touched(self._sql)

    def costs(self, session: Session) -> Mapping[str, Guarantee]:
        return {}


def compare(hub: Hub, db: Db, caller: Caller, pool: PoolOut, sql: str, spend: str, purpose: str = "") -> list[WayOut]:
    """Together first; then each part for itself, as far as the caller may ask about it; all of these, added up; and raw rows."""
    asked = {part: about_another(sql, pool.name, part) for part in pool.parts}
    together = _allowed(hub, db, caller, pool.name, sql, purpose)
    found, alone = [_margins(together, pool.name, sql, spend)], []
    for part in pool.parts:
        if part == HIDDEN:
            continue
        try:
            alone.append(_margins(_allowed(hub, db, caller, part, asked[part], purpose), part, asked[part], spend))
        except CloisterError as error:
            found.append(WayOut(way=part, margins={}, why=error.why, values={}))
    if len(alone) == len(pool.parts):
        named, plain = _added(sql)
        names = [name for name in found[0].margins if name in named or _plain(name) in plain]
        added = {name: math.hypot(*(each.margins.get(name, math.inf) for each in alone)) for name in names}
        found.append(_way("apart", added))
    return [found[0], *alone, *found[1:], _raw(together, sql, found[0].margins)]


def _added(sql: str) -> tuple[set[str], set[str]]:
    """The columns that are counts and sums of rows: by the names that the query gives them, and by the plain names of the others.
    They add up over parts, and no other number does.

    >>> _added('SELECT COUNT(*) AS n, AVG(pay) AS "N", SUM("Pay a day"), COUNT(DISTINCT pay) AS d FROM people')
    ({'n'}, {'sum(pay a day)'})
    """
    query, _ = statement(sql, None)
    sums = [each for each in query.expressions if isinstance(each.unalias(), exp.Count | exp.Sum) and not each.find(exp.Distinct)]
    plain = {_plain("count_star()" if each.find(exp.Star) else each.sql()) for each in sums if not each.alias}
    return {each.alias for each in sums if each.alias}, plain


def _plain(name: str) -> str:
    return name.replace('"', "").casefold()


def _allowed(hub: Hub, db: Db, caller: Caller, name: str, sql: str, purpose: str) -> Authorised:
    facts = facts_of(hub, db)
    words = {name, *(word.casefold() for word in re.findall(r"\w+", sql))}  # of a public table that is joined, too
    named = (each for each in facts.data_sets.values() if each.name.casefold() in words or each.name == name)
    seen = {each.name: each for each in named if visible(hub, caller, facts, each)}
    return authorise(hub, db, facts, caller, _Explaining(sql, purpose), seen, priced=False)


def _raw(allowed: Authorised, sql: str, columns: Mapping[str, float]) -> WayOut:
    """What made-up rows give in one table, at a spend for which noise is nil: no real person's row is read."""
    from cloister.query import Session
    from cloister.session.execution.rehearsal import rehearsal_tables

    with allowed.held.pinned():
        held = allowed.session
        tables = {name: table for name, table in held.registry.snapshot.tables.items() if name in held.tables}
        with Session(rehearsal_tables(tables), budget=_NO_NOISE) as stage:
            found = stage.through(held).sql(sql, _NO_NOISE.epsilon).to_pydict()
    values = {name: found[name][0] for name in columns if found.get(name)}
    numbers = {
        name: float(each) for name, each in values.items() if isinstance(each, int | float | Decimal) and math.isfinite(each)
    }
    return WayOut(way="raw", margins={}, why="", values=numbers)


def _margins(allowed: Authorised, name: str, sql: str, spend: str) -> WayOut:
    with allowed.held.pinned():
        plan = allowed.session.explain(sql, spend)
    margins: Mapping[str, Any] = plan.margin().columns
    known = {column: float(series.values[0]) for column, series in margins.items()}
    return _way(name, known)


def _way(name: str, margins: Mapping[str, float]) -> WayOut:
    return WayOut(way=name, margins={column: each for column, each in margins.items() if math.isfinite(each)}, why="", values={})
