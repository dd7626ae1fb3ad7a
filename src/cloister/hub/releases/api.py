"""The API of releases of every kind: lists, files, with whom one is shared, its name."""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import create_model
from starlette.responses import Response

from cloister.errors import InvalidParameter, Missing
from cloister.hub.database import of_each
from cloister.hub.decisions.facts import facts_of, project_of
from cloister.hub.description import Limit
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import ANSWERS, ReleaseKind, View, Which
from cloister.hub.releases.pooling import pooling_api
from cloister.hub.releases.reading import file_of, own_release, read_release, releases_of
from cloister.hub.releases.shapes import Line, ReleaseLine, Releases, Renamed, Shares, Sharing, TableAnswered, TableQuestion
from cloister.hub.releases.sharing import rename, share_release, shares_of, withdraw
from cloister.hub.releases.tables import answer_in
from cloister.hub.web.languages import language_of
from cloister.hub.web.routing import After, Confidence, Number, Routes

Form = Annotated[str, Path(max_length=20, pattern=r"^[a-z-]+$")]


def api(kinds: Iterable[ReleaseKind]) -> APIRouter:
    routes = Routes()
    _reading(routes, sorted({file.media_type for kind in kinds for file in kind.files.values()}))
    _sharing(routes)
    pooling_api(routes, {kind.name: kind for kind in kinds})
    return routes.router


def kind_api(
    kind: ReleaseKind,
    line: type[Line],
    whole: type[Line],
    *,
    names: tuple[str, str, str],
    nouns: tuple[str, str],
    forms: tuple[str, ...],
) -> APIRouter:
    """The releases of a kind under an address of their own: the list, lines under the first of `names`; each by its id; its file
    in one of these forms. `nouns`: what several are called, and one."""
    routes = Routes()
    told: dict[str, Any] = {names[0]: (list[line], ...), "next": (str | None, ...)}  # type: ignore[valid-type]
    about = f"Some {nouns[0]}, the newest first. `next`: what to give as `after` for the following ones."
    page = create_model(f"{line.__name__}s", __doc__=about, **told)

    @routes.get(
        kind.path, "release.see", f"List {nouns[0]}", f"The {nouns[0]}, the newest first", response_model=page, name=names[0]
    )
    def several(hub: HubDep, caller: CallerDep, which: Which = kind.first, after: After = "", limit: Limit = 50) -> Any:
        """One's own, or those shown to one; the newest first."""
        with hub.database.reading() as db:
            rows = releases_of(hub, db, caller, kind=kind.name, which=which, after=after, limit=limit + 1)
        more = rows[limit - 1].id if len(rows) > limit else None
        return {names[0]: of_each(rows[:limit], line.of), "next": more}

    @routes.get(
        f"{kind.path}/{{number}}", "release.see", f"Get {nouns[1]}", "All that is kept of it", response_model=whole, name=names[1]
    )
    def one(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """One of them, whole."""
        with hub.database.reading() as db:
            row = read_release(hub, db, caller, number, kind=kind.name)
        return Response(
            kind.told(View(hub=hub, caller=caller, row=row, language=language_of("en"))), media_type="application/json"
        )

    def file(hub: HubDep, caller: CallerDep, number: Number, form: Any = forms[0]) -> Response:
        """Its file."""
        return file_of(hub, caller, number, form, kind=kind.name)

    file.__annotations__["form"] = Annotated[str, Query(pattern=f"^({'|'.join(forms)})$")]
    routes.get(
        f"{kind.path}/{{number}}/download",
        "release.download",
        f"Download {nouns[1]}",
        response_class=Response,
        responses={
            200: {"content": {kind.files[each].media_type.partition(";")[0]: {} for each in forms}, "description": "The file"}
        },
        name=names[2],
    )(file)
    return routes.router


def _reading(routes: Routes, media_types: list[str]) -> None:
    @routes.get("/releases", "release.see", "List releases", "The releases, the newest first")
    def releases(
        hub: HubDep,
        caller: CallerDep,
        which: Which = "all",
        search: Annotated[str, Query(max_length=200)] = "",
        project: Annotated[str, Query(max_length=63)] = "",
        kind: Annotated[str, Query(max_length=20, description="Of which kind; `all`: of every one.")] = ANSWERS,
        after: After = "",
        limit: Limit = 50,
    ) -> Releases:
        """One's own, those shown to one, and those of one's projects; the newest first."""
        with hub.database.reading() as db:
            named = project_of(facts_of(hub, db), caller, project)
            how = {"kind": kind, "search": search, "project": named, "after": after}
            rows = releases_of(hub, db, caller, which=which, limit=limit + 1, **how)
        more = rows[limit - 1].id if len(rows) > limit else None
        return Releases(releases=of_each(rows[:limit], lambda row: ReleaseLine.of(row, mine=row.person == caller.id)), next=more)

    @routes.post(
        "/releases/answer", "question.ask", "Ask a released table", "The answer, with intervals and how sure each is", ticked=True
    )
    def answer(hub: HubDep, caller: CallerDep, wanted: TableQuestion) -> TableAnswered:
        """SQL on a release that is a table, such as a synthetic one, by its name in queries: nothing is charged. What others show
        you takes `release.download` on what it came from, as a file does."""
        found = answer_in(hub, caller, wanted.sql, confidence=wanted.confidence, program=True)
        if found is None:
            raise Missing("There is no such table", why="the query names none that is open to you", instead="/synthetic")
        asked, told = found
        columns = {
            name: [None if isinstance(each, float) and each != each else each for each in values]
            for name, values in told.table.to_pydict().items()
        }
        how: dict[str, Any] = {"confidence": wanted.confidence, "cost": dict(asked.cost), "notes": list(told.notes)}
        return TableAnswered(release=asked.which.id, table=asked.which.name, columns=columns, **how)

    @routes.get(
        "/releases/{number}/download/{form}",
        "release.download",
        "Download a release",
        ticked=True,
        response_class=Response,
        responses={200: {"content": {kind: {} for kind in media_types}, "description": "The file"}},
    )
    def file(hub: HubDep, caller: CallerDep, number: Number, form: Form, confidence: Confidence = 0.95) -> Response:
        """Of an answer: `json` as it was answered, for programs that read it back; `readable` for people, with question, margins
        and policy; `parquet`, or `csv` in a ZIP, with margins as columns; each with its provenance. Of a model: `json`, `card`.
        Of an anonymised table: `csv`, `parquet`, `report`, `certificate`."""
        return file_of(hub, caller, number, form, confidence=confidence)


def _sharing(routes: Routes) -> None:
    @routes.get(
        "/releases/{number}/shares",
        "release.share",
        "List the shares of a release",
        "The e-mail addresses and projects that it is shared with",
    )
    def shares(hub: HubDep, caller: CallerDep, number: Number) -> Shares:
        """The addresses and projects, for the analyst who asked; `asleep` says why a share is suspended."""
        with hub.database.reading() as db:
            row = own_release(hub, db, caller, number, "release.see")
        return _shares(hub, caller, row)

    @routes.post(
        "/releases/{number}/shares",
        "release.share",
        "Share a release",
        "The e-mail addresses and projects that it is shared with",
    )
    def share(hub: HubDep, caller: CallerDep, number: Number, wanted: Sharing) -> Shares:
        """Show it to the person with an e-mail address (you are not told whether there is one), or to a project of your own."""
        _one(wanted)
        with hub.database.begin() as db:
            row = own_release(hub, db, caller, number, "release.share")
            share_release(hub, db, caller, row, email=wanted.email, project=wanted.project)
        return _shares(hub, caller, row)

    @routes.post(
        "/releases/{number}/shares/withdraw",
        "release.share",
        "Stop sharing a release",
        "The e-mail addresses and projects that it is still shared with",
    )
    def unshare(hub: HubDep, caller: CallerDep, number: Number, wanted: Sharing) -> Shares:
        """What was looked at or downloaded before is not undone."""
        _one(wanted)
        with hub.database.begin() as db:
            row = own_release(hub, db, caller, number, "release.see")
            withdraw(hub, db, caller, row, email=wanted.email, project=wanted.project)
        return _shares(hub, caller, row)

    @routes.post("/releases/{number}/title", "release.share", "Rename a release", "The release under its new name")
    def title(hub: HubDep, caller: CallerDep, number: Number, wanted: Renamed) -> ReleaseLine:
        """Another name for one's own release."""
        with hub.database.begin() as db:
            row = own_release(hub, db, caller, number, "release.see")
            rename(hub, db, caller, row, wanted.title)
        return ReleaseLine.of(row, mine=row.person == caller.id)


def _shares(hub: Hub, caller: Caller, row: StoredRelease) -> Shares:
    with hub.database.reading() as db:
        return Shares(shares=shares_of(hub, db, caller, row))


def _one(wanted: Sharing) -> None:
    if bool(wanted.email) == bool(wanted.project):
        raise InvalidParameter(
            "The share is invalid", why="it names either a person or a project", instead='{"email": "ada@example.org"}'
        )
