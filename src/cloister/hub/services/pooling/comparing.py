"""One question of a data set of several owners: of each part alone, of all together, and of all apart and then added up.

The margins follow from declarations and from the spend: nothing is charged, and no row is read. Together is what one table with
all rows would give: the noise is one table's. Apart, the noises of k parts add up to k times the variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.services.pooling.making import HIDDEN, Pool
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Terms, Words, authorise, visible
from cloister.hub.work.facts import facts_of
from cloister.privacy import Guarantee
from cloister.session.questions.touched import Touched

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.query import Session

_WORDS = Words(
    name="The comparison",
    invalid=N_("The comparison is invalid"),
    denied=N_("The comparison was denied"),
    withheld=N_("The comparison was not released"),
)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The margins (95 %) of one way, by column; none where it may not be asked, with the reason."""

    way: str
    """The name of a data set, or "apart"."""
    margins: Mapping[str, float]
    why: str = ""


class _Explaining:
    """The question, as the frame decides about it: it reads nothing and costs nothing."""

    words = _WORDS

    def __init__(self, sql: str, purpose: str) -> None:
        self.terms, self._sql = Terms(action="question.explain", purpose=purpose), sql

    def touches(self, session: Session) -> Touched:
        return session.touched(self._sql)

    def costs(self, session: Session) -> Mapping[str, Guarantee]:
        return {}


def compare(hub: Hub, db: Db, caller: Caller, pool: Pool, sql: str, spend: str, purpose: str = "") -> list[Compared]:
    """Together first; then each part for itself, as far as the caller may ask about it; and all of these, added up."""
    found = [_margins(hub, db, caller, pool.name, sql, spend, purpose)]
    alone = []
    for part in pool.parts:
        if part == HIDDEN:
            continue
        try:
            alone.append(_margins(hub, db, caller, part, _about(sql, pool.name, part), spend, purpose))
        except CloisterError as error:
            found.append(Compared(way=part, margins={}, why=error.why))
    if len(alone) == len(pool.parts):
        added = {name: math.hypot(*(each.margins.get(name, math.inf) for each in alone)) for name in found[0].margins}
        found.append(Compared(way="apart", margins=added))
    return [found[0], *alone, *found[1:]]


def _margins(hub: Hub, db: Db, caller: Caller, name: str, sql: str, spend: str, purpose: str) -> Compared:
    facts = facts_of(hub, db)
    seen = {each.name: each for each in facts.data_sets.values() if each.name == name and visible(hub, caller, facts, each)}
    allowed = authorise(hub, db, facts, caller, _Explaining(sql, purpose), seen, priced=False)
    with allowed.held.pinned():
        plan = allowed.session.explain(sql, spend)
    margins: Mapping[str, Any] = plan.margin().columns
    return Compared(way=name, margins={column: float(series.values[0]) for column, series in margins.items()})


def _about(sql: str, pool: str, part: str) -> str:
    """The same question of another table."""
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.errors.SqlglotError:
        raise InvalidParameter("The query is invalid", why="it is not SQL", instead="SELECT COUNT(*) AS n FROM …") from None
    for table in list(tree.find_all(exp.Table)):
        if table.name.casefold() == pool.casefold():
            table.set("this", exp.to_identifier(part))
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(pool)))
    return str(tree.sql(dialect="duckdb"))
