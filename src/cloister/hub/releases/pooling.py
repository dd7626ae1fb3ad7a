"""Several releases of a kind made one, such as the synthetic tables of two hospitals: on a page, and in the API.

Owners synthesise apart; somebody who may read each of the tables pools them, in a project or alone. Nothing is charged
(`deriving.py`). What holds: a person of one population has the guarantee of that one, a person of several the sum.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Request
from pydantic import Field
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.description import Taken, example
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.problems import Problem, problem_of
from cloister.hub.releases.deriving import keep_derived, read_sources
from cloister.hub.releases.kinds import ReleaseKind
from cloister.hub.releases.reading import read_release, releases_of
from cloister.hub.releases.shapes import ReleaseLine, Title
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import render
from cloister.hub.web.routing import Pages, Routes
from cloister.hub.work.concurrency import working

_SHOWN = 50
_MOST = 20


class Pooling(Taken):
    """Which releases are pooled: two or more of one kind, of different populations."""

    model_config = example(releases=["1f3a9c2b", "77d0e4aa"], table="patients", title="Both hospitals")

    releases: Annotated[list[Annotated[str, Field(max_length=32)]], Field(min_length=2, max_length=_MOST)]
    table: Annotated[str, Field(max_length=40, pattern=r"^([a-z][a-z0-9_]*)?$", description="What the pool is a table of.")] = ""
    title: Title = ""


def pool(hub: Hub, caller: Caller, kind: ReleaseKind, ids: Sequence[str], *, table: str, title: str) -> str:
    """The id of the pool."""
    if kind.pooled is None or not 2 <= len(set(ids)) == len(ids) <= _MOST:
        raise InvalidParameter(
            "The tables cannot be pooled", why=f"they are 2 to {_MOST} different ones", instead="two tables of different people"
        )
    sources = read_sources(hub, caller, ids, kind.name)
    populations = [name for each in sources for name in each.cost]
    twice = next((name for name in populations if populations.count(name) > 1), None)
    if twice is not None:
        raise InvalidParameter(
            "The tables cannot be pooled",
            why=f"two of them are of the population {twice!r}, and the same people would be counted twice",
            instead="tables of different populations",
        )
    with working(hub, caller):
        body, details = kind.pooled(sources, table)
    return keep_derived(hub, caller, kind, sources, body=body, details=details, title=title)


def pooling_api(routes: Routes, kinds: Mapping[str, ReleaseKind]) -> None:
    """The route, for whatever kinds are pooled."""

    @routes.post(
        "/releases/pool",
        "release.pool",
        "Pool releases of different populations",
        "The pool, a release of the same kind",
        ticked=True,
        status_code=201,
    )
    def pooled(hub: HubDep, caller: CallerDep, wanted: Pooling) -> ReleaseLine:
        """One synthetic table of several, at no cost. A person who is in one of their populations has the guarantee of that one;
        a person who is in several, the sum. Of one population twice: not pooled, since people would count twice."""
        with hub.database.reading() as db:
            first = read_release(hub, db, caller, wanted.releases[0])
        number = pool(hub, caller, kinds[first.kind], wanted.releases, table=wanted.table, title=wanted.title)
        with hub.database.reading() as db:
            return ReleaseLine.of(read_release(hub, db, caller, number), mine=True)


def pooling_pages(routes: Pages, kind: ReleaseKind) -> None:
    """The form, and what it does."""

    def shown(request: Request, hub: Hub, caller: Caller, typed: Mapping[str, Any], problem: Problem | None = None) -> Response:
        with hub.database.reading() as db:
            rows = releases_of(hub, db, caller, kind=kind.name, limit=_SHOWN)
        parts = [each for each in rows if "of" not in each.details]
        first = {"releases": (), "table": "", "title": ""}
        return render(request, "releases/pool.html", kind=kind, rows=parts, typed=first | {**typed}, problem=problem)

    @routes.get(f"{kind.path}/pool", "release.see")
    def form(request: Request, hub: HubDep, caller: CallerDep) -> Response:
        """Those that may be pooled."""
        return shown(request, hub, caller, {})

    @routes.post(f"{kind.path}/pool", "release.pool", ticked=True)
    def pooled(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """To the page of the pool."""
        typed = {name: form.text(name, most=200) for name in ("table", "title")}
        chosen = form.all("releases")
        try:
            wanted = Pooling.model_validate({"releases": chosen, **typed}) if len(chosen) > 1 and len(chosen) <= _MOST else None
            number = pool(hub, caller, kind, wanted.releases if wanted else [], **typed)
        except CloisterError as found:
            return shown(request, hub, caller, {"releases": chosen, **typed}, problem_of(found))
        except ValueError:
            told = "it is a word of small letters, digits and underscores, of at most 40 characters"
            error: CloisterError = InvalidParameter("The table's name is invalid", why=told, instead="patients")
            return shown(request, hub, caller, {"releases": chosen, **typed}, problem_of(error))
        return go(request, f"{kind.path}/{number}")
