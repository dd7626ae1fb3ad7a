"""The shares that grants give: whose, how much of each is drawn, and which are over.

A share is a condition of its grant, and lives in nothing else: it bounds what somebody has drawn of the population in all while
the grant stands, and is gone with it. The ledger counts what was drawn, whatever became of the grant. What an owner allots by
hand is the ledger's own (`reading.py`), and the smaller of the two holds.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from pydantic import BaseModel, Field
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from cloister.hub.decisions.facts import facts_of, project_account
from cloister.hub.decisions.policy import GrantFacts
from cloister.hub.description import Told
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.access import Names, members_text, names_in
from cloister.hub.records.access import Grant, Project, ProjectDataSet
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import grant_in_row
from cloister.privacy import Guarantee, zero_of
from cloister.session.questions.spend import less

_MOST = 200


class GrantedOut(BaseModel):
    """The share that a grant gives: what somebody may have drawn in all while it stands. It ends with the grant; what was drawn
    stays counted."""

    grant: str
    data_set: str
    role: str
    who: str
    share: Told
    drawn: Told | None = Field(description="What was drawn in all; null: the grant names nobody, and each has so much.")
    state: str = Field(description="active, waiting, expired, revoked; deleted, with its data set.")
    ends: datetime | None = Field(description="When it ended, or will.")

    @property
    def stands(self) -> bool:
        """Whether it bounds anything now."""
        return self.state == "active"

    @property
    def left(self) -> Guarantee | None:
        """What may still be drawn under it; None for nothing, and where nobody is named."""
        return None if self.drawn is None else less(self.share, self.drawn)


def granted_shares(
    hub: Hub, db: Session, population: str, caller: Caller | None = None, _: Callable[[str], str] = str
) -> list[GrantedOut]:
    """The shares of all grants on data sets that draw on a population, those that stand first, the newest before the older; for a
    caller, those that are theirs, or of a project of theirs.
    """
    live = [each.id for each in facts_of(hub, db).data_sets.values() if each.population == population]
    deleted = (DataSet.population == population) & (DataSet.state == "deleted")
    sets = {row.id: row for row in db.scalars(select(DataSet).where(or_(DataSet.id.in_(live), deleted)))}
    wanted = select(Grant).where(Grant.kind == "data-set", Grant.object.in_(sets)).order_by(Grant.created.desc(), Grant.id)
    rows = [(row, facts) for row in db.scalars(wanted) if (facts := grant_in_row(row)[0]).rules.share is not None]
    names = names_in(db, (facts for _row, facts in rows))
    found = []
    for row, facts in rows:
        state, ends = _state(hub, row, facts, sets[row.object])
        assert facts.rules.share is not None
        for who, counted in _purses(facts, names, caller, _):
            found.append(
                GrantedOut(
                    grant=row.id,
                    data_set=sets[row.object].name,
                    role=row.role,
                    who=who,
                    share=facts.rules.share,
                    drawn=hub.ledger.spent_by(population, who) if counted else None,
                    state=state,
                    ends=ends,
                )
            )
            if len(found) >= _MOST:
                return sorted(found, key=lambda each: not each.stands)
    return sorted(found, key=lambda each: not each.stands)


def shares_of_project(hub: Hub, db: Session, row: Project) -> list[tuple[str, Guarantee, Guarantee]]:
    """What a project may draw in all, by population, and what is left of it: as an owner set it by hand, or as grants say that
    stand; the smaller of the two holds.
    """
    inside = select(ProjectDataSet.data_set).where(ProjectDataSet.project == row.id)
    populations = select(DataSet.population).where(DataSet.id.in_(inside)).distinct().order_by(DataSet.population)
    found = []
    for name in filter(None, db.scalars(populations)):
        allotted = hub.ledger.allotment(name, project_account(row.name))
        if allotted is not None:
            found.append((name, *allotted))
        mine = [each for each in granted_shares(hub, db, name) if each.stands and each.who == project_account(row.name)]
        found += [(name, each.share, each.left or zero_of(each.share)) for each in mine]
    return found


def _state(hub: Hub, row: Grant, facts: GrantFacts, which: DataSet) -> tuple[str, datetime | None]:
    until, begins, now = facts.rules.until, facts.rules.not_before, hub.now()
    if row.revoked is not None and not (until is not None and until < row.revoked):
        return "revoked", row.revoked
    if until is not None and until <= now:
        return "expired", until
    if which.state == "deleted":
        return "deleted", which.changed
    return ("waiting" if begins is not None and begins > now else "active"), until


def _purses(facts: GrantFacts, names: Names, caller: Caller | None, _: Callable[[str], str]) -> Iterator[tuple[str, bool]]:
    """The names under which the ledger counts what is drawn under a grant; who is in it, where it names nobody."""
    members = facts.members
    if members.projects is not None:
        mine: Iterable[str] = members.projects if caller is None else members.projects & caller.projects
        yield from sorted((project_account(names.project(each)), True) for each in mine)
    elif members.people is not None:
        addresses = {each if "@" in each else names.emails.get(each, "") for each in members.people} - {""}
        yield from sorted((each, True) for each in addresses if caller is None or each == caller.email)
    elif caller is None:
        yield members_text(members, names, _), False
    elif members.institutions is None or caller.institution in members.institutions:
        yield caller.email, True  # what it asks of them besides is looked at when they act
