"""Who asks: found by one statement, with all that they are, and anew each time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import delete, update

from cloister.hub.decisions.callers import caller_again, caller_for, caller_of_token
from cloister.hub.problems import Unauthenticated
from cloister.hub.records.access import Project, ProjectMember
from cloister.hub.records.accounts import ApiToken, Person, PersonRole
from cloister.hub.services.asking.keeping import rush_of
from tests.hub.asking.conftest import Stage
from tests.hub.house import Visitor


@pytest.fixture
def bea(stage: Stage) -> Visitor:
    """An analyst and owner, in two projects."""
    found = stage.house.person("analyst", "owner", email="bea@example.org", name="Bea")
    with stage.hub.database.begin() as db:
        for name in ("heart", "lung"):
            db.add(Project(id=name, name=name, title=name, lead=found.id, created=stage.hub.now()))
            db.flush()
            db.add(ProjectMember(project=name, person=found.id, joined=stage.hub.now()))
    return found


def test_all_roles_and_projects_are_told_however_somebody_is_looked_for(stage: Stage, bea: Visitor) -> None:
    caller = caller_of_token(stage.hub, bea.token, "127.0.0.1")
    assert (set(caller.roles), set(caller.projects)) == ({"analyst", "owner"}, {"heart", "lung"})
    with stage.hub.database.reading() as db:
        assert caller_again(stage.hub, db, caller) == caller
        same = caller_for(stage.hub, db, bea.id)
    assert same is not None
    assert (same.roles, same.projects) == (caller.roles, caller.projects)
    assert caller_of_token(stage.hub, stage.ana.token).projects == frozenset()


def test_what_was_taken_away_is_gone_with_the_next_question(stage: Stage, bea: Visitor) -> None:
    caller_of_token(stage.hub, bea.token)
    with stage.hub.database.begin() as db:
        db.execute(delete(PersonRole).where(PersonRole.person == bea.id))
        db.execute(delete(ProjectMember).where(ProjectMember.person == bea.id, ProjectMember.project == "lung"))
    caller = caller_of_token(stage.hub, bea.token)
    assert (set(caller.roles), set(caller.projects)) == (set(), {"heart"})
    with stage.hub.database.begin() as db:
        db.execute(update(Person).where(Person.id == bea.id).values(blocked=True))
    with pytest.raises(Unauthenticated):
        caller_of_token(stage.hub, bea.token)
    with stage.hub.database.begin() as db:
        db.execute(update(Person).where(Person.id == bea.id).values(blocked=False))
        db.execute(update(ApiToken).where(ApiToken.person == bea.id).values(revoked=stage.hub.now()))
    with pytest.raises(Unauthenticated):
        caller_of_token(stage.hub, bea.token)
    with stage.hub.database.reading() as db:
        assert caller_again(stage.hub, db, caller) is None
        assert caller_again(stage.hub, db, replace(caller, id="another")) is None


def test_a_question_is_counted_while_it_is_answered_whatever_becomes_of_it(stage: Stage) -> None:
    stage.ask()
    assert stage.post("/questions", {"sql": "SELECT nothing", "spend": "0.1"}).status_code >= 400
    assert rush_of(stage.hub).coming() == 0
    with rush_of(stage.hub).one():
        assert rush_of(stage.hub).coming() == 1
        stage.ask("SELECT COUNT(*) AS n FROM people WHERE age > 40")
    assert rush_of(stage.hub).coming() == 0
