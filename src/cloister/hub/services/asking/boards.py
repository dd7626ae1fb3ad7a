"""Dashboards: answers that somebody arranges on a page, for themselves and for the members of a project.

A dashboard holds no number of its own: it names releases, and each is decided on at each look, for whoever looks. It is refreshed
only on purpose. What that costs is said before, from the plans of its queries; an answer about data that have not changed since
costs nothing.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session as Db

from cloister.errors import BudgetExceeded, CloisterError, InvalidParameter, Missing
from cloister.hub.decisions.checking import check, own_project
from cloister.hub.decisions.policy import Object
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import digest, new_id
from cloister.hub.platform.trail import write
from cloister.hub.records.asking import Dashboard
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import ANSWERS
from cloister.hub.releases.reading import seen_release
from cloister.hub.services.asking.answering import LONG, Answered, Beside, ask, ask_once, ask_together
from cloister.hub.services.asking.answers import unpacked
from cloister.hub.services.asking.preview import explain
from cloister.hub.services.asking.question_request import WISH, QuestionRequest
from cloister.printable import is_text
from cloister.privacy import Guarantee, text_of
from cloister.session import Plan
from cloister.session.questions.spend import amount_of
from cloister.stored import canonical

SHOWS = ("both", "chart", "table")
MOST_PARTS = 24
PATIENCE = 20.0
"""Seconds after which a refresh asks no further query: its page must answer."""
_MOST = 200


@dataclass(frozen=True, kw_only=True)
class Part:
    """A place on a dashboard: the release in it, None where it is closed to the reader, and what is shown of it."""

    number: str
    row: StoredRelease | None
    shows: str


@dataclass(frozen=True, kw_only=True)
class RefreshPrice:
    """What new answers to the queries of a dashboard would cost, by population, and which queries have one."""

    costs: Mapping[str, Guarantee]
    wishes: tuple[tuple[tuple[str, ...], QuestionRequest], ...]
    """With the releases that each stands for now: several that were asked together, under one charge, are so again."""
    long: tuple[str, ...] = ()
    """Releases whose queries may take longer than a page waits: each is asked by itself, as a job."""
    closed: tuple[str, ...] = ()
    """Releases whose queries can't be asked any more: of a data set that is closed, or that was declared again."""

    @property
    def text(self) -> str:
        """As a form carries it back."""
        return "; ".join(f"{name}: {cost}" for name, cost in sorted(self.costs.items()))


def create_board(hub: Hub, db: Db, caller: Caller, title: str, project: str) -> Dashboard:
    """An empty dashboard; in a project, its members see it."""
    name = " ".join(title.split())
    if not is_text(name):
        raise InvalidParameter("The name is invalid", why="it must be a line of 1 to 200 characters", instead="Wards at a glance")
    project = own_project(hub, db, caller, project, closed=True)
    row = Dashboard(id=new_id(), person=caller.id, project=project, title=name, layout={"parts": []}, created=hub.now())
    check(hub, db, caller, "question.manage", _object(row, caller.id))
    db.add(row)
    write(hub, db, caller, "dashboard.create", kind="dashboard", object_id=row.id)
    return row


def boards_of(db: Db, caller: Caller) -> list[Dashboard]:
    """Those that somebody may see, the newest first."""
    mine = or_(Dashboard.person == caller.id, Dashboard.project.in_(sorted(caller.projects)))
    return list(db.scalars(select(Dashboard).where(mine).order_by(Dashboard.created.desc(), Dashboard.id.desc()).limit(_MOST)))


def seen_board(hub: Hub, db: Db, caller: Caller, number: str, *, own: bool = False) -> Dashboard:
    """A dashboard that somebody may see, or may change; any other is missing, whether it exists or not."""
    row = db.get(Dashboard, number)
    reads = row is not None and (row.person == caller.id or (row.project != "" and row.project in caller.projects))
    if row is None or not reads or (own and row.person != caller.id):
        raise Missing("There is no such dashboard", why="it does not exist, or is not yours", instead="/dashboards")
    check(hub, db, caller, "question.manage" if own else "question.see", _object(row, caller.id))
    return row


def parts_of(hub: Hub, db: Db, caller: Caller, row: Dashboard) -> list[Part]:
    """What is on it, each decided on for this reader now."""
    found = []
    for part in _parts(row):
        try:
            release = seen_release(hub, db, caller, part["release"], kind=ANSWERS)
        except CloisterError:
            release = None
        found.append(Part(number=part["release"], row=release, shows=part["shows"]))
    return found


def add_part(hub: Hub, db: Db, caller: Caller, row: Dashboard, release: str, shows: str) -> None:
    """Put an answer at the end."""
    parts, kept = _parts(row), seen_release(hub, db, caller, release, kind=ANSWERS)
    if len(parts) >= MOST_PARTS or any(part["release"] == kept.id for part in parts):
        raise InvalidParameter(
            "The answer was not added",
            why=f"it is on the dashboard already, or {MOST_PARTS} others are",
            instead="remove one first",
        )
    _keep(hub, db, caller, row, [*parts, {"release": kept.id, "shows": shows if shows in SHOWS else SHOWS[0]}])


def change_part(hub: Hub, db: Db, caller: Caller, row: Dashboard, release: str, what: str) -> None:
    """Move the part of a release up, take it away, or say what is shown of it, wherever it stands by now."""
    parts = _parts(row)
    place = next((place for place, part in enumerate(parts) if part["release"] == release), None)
    if place is None:
        raise Missing("There is no such part", why="the dashboard has changed", instead=f"/dashboards/{row.id}")
    if what == "up":
        parts.insert(max(place - 1, 0), parts.pop(place))
    elif what == "remove":
        del parts[place]
    elif what in SHOWS:
        parts[place] = {**parts[place], "shows": what}
    _keep(hub, db, caller, row, parts)


def remove_board(hub: Hub, db: Db, caller: Caller, number: str) -> None:
    """Keep it no longer; its answers stay."""
    db.delete(seen_board(hub, db, caller, number, own=True))
    write(hub, db, caller, "dashboard.remove", kind="dashboard", object_id=number)


def refresh_price(hub: Hub, caller: Caller, number: str) -> RefreshPrice:
    """What a refresh would cost now: spends nothing and reads no row."""
    with hub.database.reading() as db:
        row = seen_board(hub, db, caller, number, own=True)
        rows = [part.row for part in parts_of(hub, db, caller, row) if part.row is not None]
        asked = [(each.id, each.digest, _wish(each), unpacked(each).provenance.charges) for each in rows if each.sql]
    groups: dict[Any, list[tuple[str, QuestionRequest, Plan, bool]]] = {}
    costs: dict[str, Guarantee] = {}
    wishes: list[tuple[tuple[str, ...], QuestionRequest]] = []
    long, closed = list[str](), list[str]()
    for old, before, wish, charges in asked:
        try:
            plan = explain(hub, caller, wish)
        except CloisterError:  # the others go on
            closed.append(old)
            continue
        if plan.time_limit > LONG:
            if plan.digest != before:
                long.append(old)
            continue
        # a charge pays for one answer, or for several that agree
        group = groups.setdefault((charges, replace(wish, sql="SELECT")) if charges else old, [])
        twice = any(each.sql == wish.sql for _, each, *_ in group)
        (groups.setdefault(old, []) if twice else group).append((old, wish, plan, plan.digest == before))
    for group in groups.values():
        if all(same for *_, same in group):
            continue
        _, wish, plan, _ = group[0]
        if len(group) > 1:
            wish = replace(wish, more=tuple(each.sql for _, each, *_ in group[1:]))
            plan = explain(hub, caller, wish)
        wishes.append((tuple(old for old, *_ in group), wish))
        for population, cost in plan.costs.items():
            if amount_of(cost):
                costs[population] = costs[population] + cost if population in costs else cost
    return RefreshPrice(costs=costs, wishes=tuple(wishes), long=tuple(long), closed=tuple(closed))


def refresh(hub: Hub, caller: Caller, number: str, *, most: str, key: str) -> tuple[int, int]:
    """Ask again the queries whose answers would be others, where that costs what was shown, for as long as a page may wait: how
    many are new, and how many are left for another refresh."""
    begun, price = time.monotonic(), refresh_price(hub, caller, number)
    if price.text != most and price.wishes:  # where nothing is left to ask, a form that was sent twice is answered twice
        raise BudgetExceeded(
            "The dashboard was not refreshed",
            why="what a refresh costs has changed since it was shown",
            instead="look at the cost again",
        )
    sizes = [len(olds) for olds, _ in price.wishes]
    for place, (olds, wish) in enumerate(price.wishes):
        if place and time.monotonic() - begun > PATIENCE:
            return sum(sizes[:place]), sum(sizes[place:])
        found = dict(zip(olds, _asked(hub, caller, wish, f"{key} {digest(' '.join(olds))}"), strict=True))
        with hub.database.begin() as db:  # each at once: what was charged is on the page, whatever happens to the next
            row = seen_board(hub, db, caller, number, own=True)
            row.layout = {"parts": [{**part, "release": found.get(part["release"], part["release"])} for part in _parts(row)]}
            row.refreshed = hub.now()
            if place == 0:
                write(hub, db, caller, "dashboard.refresh", kind="dashboard", object_id=number)
    return sum(sizes), 0


def _asked(hub: Hub, caller: Caller, wish: QuestionRequest, key: str) -> list[str]:
    def answer(beside: Beside | None) -> list[Answered]:
        return ask_together(hub, caller, wish, beside=beside) if wish.more else [ask(hub, caller, wish, beside=beside)]

    request = canonical(wish, {QuestionRequest: WISH}).encode()
    _, body = ask_once(hub, caller, f"form {key}", request, answer, _told)
    return [str(each) for each in json.loads(body)["releases"]]


def _told(kept: Sequence[Answered]) -> bytes:
    return json.dumps({"releases": [each.id for each in kept]}).encode()


def _wish(row: StoredRelease) -> QuestionRequest:
    """The query of an answer, read as it was then, for what that one cost."""
    spend, dialect = text_of(amount_of(unpacked(row).cost)), row.details.get("dialect")
    how: dict[str, Any] = {"purpose": row.purpose, "project": row.project, "algorithm": row.algorithm, "dialect": dialect}
    return QuestionRequest(sql=row.sql, spend=spend, **how)


def _parts(row: Dashboard) -> list[dict[str, Any]]:
    return list(row.layout["parts"])


def _keep(hub: Hub, db: Db, caller: Caller, row: Dashboard, parts: Sequence[Mapping[str, Any]]) -> None:
    row.layout = {"parts": list(parts)}
    write(hub, db, caller, "dashboard.change", kind="dashboard", object_id=row.id)


def _object(row: Dashboard, reader: str) -> Object:
    """As a decision sees it: a page of queries, of whoever may read it."""
    return Object(kind="question", id=row.id, name=row.title, owner=reader)
