"""The pages on which owners and stewards read code, proof and audit, and let it near rows or stop it; one run from two sides:
what the author of the code is told about it, and what the owner of the data sees.

The author learns that it ran, when, for which purpose, from which institution, and on which data set where they may know of it:
never a value, and never who. The owner sees besides who asked, what it cost whom, which columns were read and who had admitted
the code; and the author's side, to know what leaves on that way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Annotated, Any

from fastapi import Path, Request
from sqlalchemy import select
from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.errors import CloisterError, Missing
from cloister.hub.decisions.checking import allowed
from cloister.hub.decisions.facts import facts_of
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access import algorithms_of
from cloister.hub.problems import problem_of
from cloister.hub.records.access import Algorithm
from cloister.hub.records.accounts import Person, names_of
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.guests import admission
from cloister.hub.services.guests.admission import ADMIT, NAME, needed_by, reviewed
from cloister.hub.services.guests.reviewing import order_review
from cloister.hub.services.guests.running import ACTION
from cloister.hub.services.guests.settings import guest_of
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.languages import N_
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Number, Pages
from cloister.hub.work.offers import offers, runnable

_RUNS = 20
Name = Annotated[str, Path(max_length=63, pattern=r"^[^\x00-\x1f]*$")]


@dataclass(frozen=True, kw_only=True)
class Line:
    """An algorithm near a data set, in the list."""

    algorithm: str
    title: str
    data_set: str
    way: str
    needed: int
    state: str


def add(routes: Pages) -> None:
    @routes.get("/algorithm-reviews", ADMIT)
    def reviews(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        """Which code may run near which of one's data sets."""
        with hub.database.reading() as db:
            lines = sorted(_lines(hub, db, caller), key=lambda line: (line.state == "admitted", line.algorithm, line.data_set))
        return render(request, "guests/reviews.html", lines=lines)

    @routes.get("/algorithm-reviews/{name}/{table}", ADMIT)
    def review(request: Request, hub: HubDep, caller: PersonDep, name: Name, table: Name) -> Response:
        """Code, proof, audit, approvals and runs of one algorithm near one data set."""
        return _page(request, hub, caller, name, table)

    def acts(path: str, said: str, act: Callable[[Hub, Caller, str, str, Any], str | None]) -> None:
        @routes.post(f"/algorithm-reviews/{{name}}/{{table}}/{path}", ADMIT, name=f"{path} an algorithm")
        def done(request: Request, hub: HubDep, caller: PersonDep, name: Name, table: Name, form: FormDep) -> Response:
            try:
                job = act(hub, caller, name, table, form)
            except CloisterError as error:
                return _page(request, hub, caller, name, table, problem=problem_of(error), typed=form)
            to = f"/jobs/{job}" if job else f"/algorithm-reviews/{name}/{table}"
            return go(request, to, request_gettext(request)(said))

    acts("audit", "", lambda hub, caller, name, table, form: order_review(hub, caller, name, table, form.text("spend") or "1"))
    acts(
        "approve", N_("You approved this code."), lambda hub, caller, name, table, _: admission.approve(hub, caller, name, table)
    )
    acts(
        "stop",
        N_("The algorithm was stopped."),
        lambda hub, caller, name, table, form: admission.stop(hub, caller, name, table, form.text("why", most=200)),
    )
    acts("lift", N_("The algorithm may run again."), lambda hub, caller, name, table, _: admission.lift(hub, caller, name, table))

    @routes.get("/algorithm-runs/{number}", "algorithm.see")
    def run(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        """One run: what its author is told, and what the owner of the data sees."""
        with hub.database.reading() as db:
            found = sides_of(hub, db, caller, number, request_gettext(request))
        return render(request, "guests/sides.html", found=found)


def choices(hub: Hub, db: Db, caller: Caller, _: Mapping[str, Any]) -> dict[str, Any]:
    """The algorithms that somebody may run, and the data sets near which one of them may."""
    known = runnable(hub, db, caller, ACTION, NAME)
    tables = [each.which.name for each in offers(hub, db, caller, ACTION, under=known)]
    algorithms = [(each.row.name, f"{each.row.title} ({each.row.name})" if each.row.title else each.row.name) for each in known]
    return {"choices": {"algorithm": algorithms, "table": [(name, name) for name in tables]}}


def _lines(hub: Hub, db: Db, caller: Caller) -> Iterator[Line]:
    rows = [row for row in algorithms_of(hub, db, caller) if row.service == NAME and row.withdrawn is None]
    facts = facts_of(hub, db)
    for which in facts.data_sets.values():
        if not rows or not allowed(hub, db, caller, ADMIT, which).allowed:
            continue
        for row in rows:
            guest = guest_of(row.name, row.settings)
            if not set(guest.inputs) <= which.columns:
                continue
            try:
                now = reviewed(hub, db, caller, row.name, which.name)
            except CloisterError:  # its rows cannot be reached now
                continue
            yield Line(
                algorithm=row.name, title=row.title, data_set=which.name, way=guest.way, needed=needed_by(guest), state=now.state
            )


def _page(request: Request, hub: Hub, caller: Caller, name: str, table: str, **told: Any) -> Response:
    with hub.database.reading() as db:
        now = reviewed(hub, db, caller, name, table)
        wanted = select(StoredRelease).where(StoredRelease.kind == "guest", StoredRelease.algorithm == now.algorithm.id)
        newest = db.scalars(wanted.order_by(StoredRelease.created.desc()).limit(10 * _RUNS))
        runs = [row for row in newest if now.data_set.id in row.data_sets][:_RUNS]
        people = {each["person"] for each in now.approvals} | {now.algorithm.provider, now.stopped_by}
        shown: dict[str, Any] = {
            "now": now,
            "runs": runs,
            "names": names_of(db, people | {row.person for row in runs}),
            "changes": _changes(db, now.algorithm),
            "mine": any(each["person"] == caller.id for each in now.approvals),
            "owns": caller.id == now.data_set.owner,
            "provides": caller.id == now.algorithm.provider,
        }
    return render(request, "guests/review.html", **shown, **{"problem": None, "typed": None, **told})


def _changes(db: Db, row: Algorithm) -> str:
    """How the code differs from that of the version before."""
    if row.version == 1:
        return ""
    before = db.scalar(
        select(Algorithm)
        .where((Algorithm.package == row.package) | (Algorithm.name == row.package), Algorithm.version < row.version)
        .order_by(Algorithm.version.desc())
        .limit(1)
    )
    if before is None:
        return ""
    left, right = (str(each.settings.get("code", "")).splitlines() for each in (before, row))
    return "\n".join(unified_diff(left, right, before.name, row.name, lineterm=""))


Pairs = Sequence[tuple[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What is shown of one run."""

    row: StoredRelease
    title: str
    author: Pairs
    owner: Pairs
    """Empty for who is no owner of the data."""


def sides_of(hub: Hub, db: Db, caller: Caller, number: str, _: Callable[[str], str]) -> Sides:
    """A run by the id of its release, for its author, an owner of its data, or a steward; for anybody else there is none."""
    row = db.get(StoredRelease, number)
    algorithm = None if row is None or row.kind != "guest" else db.get(Algorithm, row.algorithm)
    if row is None or algorithm is None:
        raise _missing()
    facts = facts_of(hub, db)
    sets = [facts.data_sets[each] for each in row.data_sets if each in facts.data_sets]
    owns = bool(sets) and all(allowed(hub, db, caller, ADMIT, each).allowed for each in sets)
    if not owns and caller.id != algorithm.provider:
        raise _missing()
    known = [each.name for each in sets if owns or allowed(hub, db, caller, "dataset.see", each).allowed]
    asker = db.get(Person, row.person)
    author = [
        (_("Algorithm"), f"{algorithm.name}, {_('version')} {algorithm.version}"),
        (_("Digest of the code"), row.details["digest"][:16]),
        (_("When"), row.created),
        (_("Purpose"), row.purpose or "–"),
        (_("Institution"), (asker.institution if asker else "") or "–"),
        (_("Data sets"), ", ".join(known) or "–"),
    ]
    owner = [
        (_("Asked by"), asker.name if asker else row.person),
        (_("Cost"), ", ".join(f"{cost} ({population})" for population, cost in row.cost.items())),
        (_("Columns"), ", ".join(row.details["inputs"])),
        (_("Admitted"), _(row.details.get("provenance") or N_("needs no approval"))),
        (_("Result"), row.title or row.id),
    ]
    return Sides(row=row, title=algorithm.title, author=author, owner=owner if owns else [])


def _missing() -> Missing:
    return Missing("There is no such run", why="it does not exist, or is not open to you", instead="/algorithms")
