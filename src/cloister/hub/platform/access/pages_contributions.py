"""Pages of data providers: what one gave, the policy that one attaches to it, and for what it was used."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.errors import Missing
from cloister.hub.database import readable
from cloister.hub.decisions.checking import check
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy import Object, Policy, actions
from cloister.hub.decisions.policy.actions import READS
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access.days import last_day
from cloister.hub.platform.access.drafts import Typed
from cloister.hub.platform.access.names import names_in
from cloister.hub.platform.access.parts import Name, done
from cloister.hub.platform.access.rules import DATA_ACTIONS
from cloister.hub.platform.access.sentences import Gettext
from cloister.hub.platform.access.views import unreadable_views
from cloister.hub.platform.trail import gave, of_data_set, titles, write
from cloister.hub.records.access import Algorithm
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import parts_of, policies_in_row
from cloister.hub.records.trail import AuditLine
from cloister.hub.web.forms import Form, FormDep, listed
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages

_MOST_USES = 50
_READS = (*READS, "release.download")
_Before = Annotated[int | None, Query(ge=1)]


def add(routes: Pages) -> None:
    @routes.get("/contributions", "contribution.see")
    def listed(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        with hub.database.reading() as db:
            rows = contributions_of(db, caller)
            names = names_in(db, people=[row.owner for row in rows])
        attached = {row.id for row in rows if parts_of(row).get("contribution")}
        return render(request, "access/contributions.html", rows=rows, names=names, attached=attached)

    @routes.get("/contributions/{name}", "contribution.see")
    def one(request: Request, hub: HubDep, caller: PersonDep, name: Name, before: _Before = None) -> Response:
        """For what one contribution was used, and its policy."""
        return render(request, "access/contribution.html", **_one(hub, caller, name, before, {}, request_gettext(request)))

    @routes.post("/contributions/{name}", "contribution.manage")
    def keep(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        _, values, path = request_gettext(request), Typed.of(form), f"/contributions/{name}"
        said = _("Your policy binds everyone from the next query on.")

        def act(db: Session) -> None:
            attach(hub, db, caller, name, policy_draft(form))

        again = partial(_one, hub, caller, name, None, values, _)
        return done(request, hub, act, path, said, "access/contribution.html", again)


def _one(hub: Hub, caller: Caller, name: str, before: int | None, typed: dict[str, Any], _: Gettext) -> dict[str, Any]:
    with hub.database.reading() as db:
        row = contribution(hub, db, caller, name, "contribution.see")
        uses, older = uses_of(db, row, before=before)
        names = names_in(db, people=[row.owner])
        found, unread = policies_in_row(row)
        own = [each for each in unread if each.place == "contribution"]
        unreadable = unreadable_views(db, replace(facts_of(hub, db), unreadable=tuple(own)), _)
    kept = {} if own else found.given.to_dict()
    lists = {key: ", ".join(kept.get(key, [])) for key in ("purposes", "consent", "labels")}
    known, never = actions(), kept.get("prohibitions", [])
    offered = (*DATA_ACTIONS, *(each for each in never if each not in DATA_ACTIONS))  # what was prohibited once stays so
    return {
        "row": row,
        "uses": uses,
        "titles": titles(),
        "older": f"/contributions/{row.name}?before={older}" if older else "",
        "first": before is None,
        "names": names,
        "actions": [(key, known[key].title) for key in offered],
        "typed": Typed({**lists, "prohibitions": never, "retention": last_day(kept.get("retention", "")), **typed}),
        "unreadable": unreadable,
        "problem": None,
    }


@dataclass(frozen=True, kw_only=True)
class Use:
    """One use of what somebody gave: when, for what, by whose institution; never what came out."""

    when: datetime
    action: str
    purpose: str
    institution: str
    columns: tuple[str, ...]
    cost: Mapping[str, str]
    algorithm: str = ""
    """The title of the one that ran; empty where none did."""


def contributions_of(db: Session, caller: Caller) -> list[DataSet]:
    """The data sets whose data somebody gave."""
    wanted = select(DataSet).where(gave(caller), DataSet.state != "deleted")
    return readable(db.scalars(wanted.order_by(DataSet.name)), but="metadata_")


def contribution(hub: Hub, db: Session, caller: Caller, name: str, action: str) -> DataSet:
    """A data set, by its name, whose data this person gave; any other is missing."""
    row = db.scalar(select(DataSet).where(DataSet.name == name, DataSet.state != "deleted", gave(caller)))
    if row is None:
        raise Missing("There is no such contribution", why="it does not exist, or is not yours", instead="/contributions")
    check(hub, db, caller, action, Object(kind="contribution", id=row.id, name=row.name, owner=caller.id))
    return row


def attach(hub: Hub, db: Session, caller: Caller, name: str, draft: Mapping[str, Any]) -> Policy:
    """Attach a policy to what one gave. It binds everybody, the owner too, from the next question on."""
    row = contribution(hub, db, caller, name, "contribution.manage")
    policy = Policy.read(draft)
    kept = policy.to_keep()
    row.metadata_, row.changed = {**parts_of(row), "contribution": kept}, hub.now()
    bump(db)
    write(hub, db, caller, "contribution.manage", kind="data-set", object_id=row.id, data_sets=[row.id], policy=kept)
    return policy


def policy_draft(form: Form) -> dict[str, Any]:
    """The policy that a form holds."""
    draft = {
        "purposes": listed(form.text("purposes")),
        "prohibitions": form.all("prohibitions"),
        "consent": listed(form.text("consent")),
        "labels": listed(form.text("labels")),
        "retention": form.text("retention"),
    }
    return {name: value for name, value in draft.items() if value}


def uses_of(db: Session, row: DataSet, *, before: int | None = None) -> tuple[list[Use], int | None]:
    """For what a data set was used, the newest first, and where the older uses begin. Who asked is known by institution alone."""
    wanted = select(AuditLine, Person.institution).outerjoin(Person, Person.id == AuditLine.person)
    wanted = wanted.where(of_data_set(row.id), AuditLine.action.in_(_READS), AuditLine.outcome == "done")
    if before is not None:
        wanted = wanted.where(AuditLine.number < before)
    rows = list(db.execute(wanted.order_by(AuditLine.number.desc()).limit(_MOST_USES + 1)))
    shown = rows[:_MOST_USES]
    ran = [line.details.get("algorithm", "") for line, _ in shown]
    titles = {row.id: row.title for row in db.execute(select(Algorithm.id, Algorithm.title).where(Algorithm.id.in_(ran)))}
    uses = [
        Use(
            when=line.when,
            action=line.action,
            purpose=line.purpose,
            institution=institution or "",
            columns=tuple(_columns(line, row.name)),
            cost={name: str(each) for name, each in line.cost.items() if name == row.population},
            algorithm=titles.get(by, by),
        )
        for (line, institution), by in zip(shown, ran, strict=True)
    ]
    return uses, shown[-1][0].number if len(rows) > _MOST_USES else None


def _columns(line: AuditLine, name: str) -> list[str]:
    told = line.details.get("columns", [])
    return [each.removeprefix(f"{name}.") for each in told if isinstance(each, str) and each.startswith(f"{name}.")]
