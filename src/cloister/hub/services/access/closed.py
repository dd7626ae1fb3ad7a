"""A condition on rows that reads what is closed to those who would see the rows: refused when the grant is made.

It would be refused at each question anyway, since a question under the grant reads the condition's columns. Said to the owner
in advance, it can be mended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cloister.errors import InvalidDeclaration
from cloister.hub.policy import Context, GrantFacts, Object, Who, actions, decide, words
from cloister.hub.services.access.drafts import condition_columns
from cloister.hub.work.facts import facts_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.hub import Hub
    from cloister.hub.records.catalogue import DataSet

_CLOSED = ("denied", "prohibited", "combination", "retention")


def check_condition(hub: Hub, db: Session, grant: GrantFacts, which: Object, row: DataSet) -> None:
    """Refuse a condition whose columns the institution's rules, or policies of the data, close whoever asks."""
    read, rules = condition_columns(grant.rules.rows, row), grant.rules
    everybody = Who(id=which.owner, roles=frozenset().union(*(each.roles for each in actions().values())))
    reasons = _CLOSED if rules.purposes is None else (*_CLOSED, "purpose")
    for name in sorted(rules.actions):
        if not actions()[name].data:
            continue
        found = [
            decide(
                everybody,
                name,
                replace(which, grants=()),
                Context(now=hub.now(), purpose=purpose, columns={which.id: frozenset()}, behind={which.id: read}),
                facts_of(hub, db).mandatory,
            )
            for purpose in sorted(rules.purposes or {""})
        ]
        if all(not each.allowed and each.reason in reasons for each in found):
            raise InvalidDeclaration(
                "rows is invalid",
                why=f"it reads {', '.join(sorted(read))}. {words(found[0])} (rule {found[0].rule})",
                instead="a condition on other columns",
            )
