"""The API of releases: lists, one, its margins, its files, with whom it is shared, its name."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from cloister.errors import InvalidParameter
from cloister.hub.caller import Caller, CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import Hub, HubDep
from cloister.hub.records.asking import StoredRelease
from cloister.hub.services.asking.downloads import MEDIA_TYPES, Form, download
from cloister.hub.services.asking.reading import Which, own_release, read_release, releases_of, seen_release, unpacked
from cloister.hub.services.asking.shapes import (
    Answer,
    Margins,
    ReleaseLine,
    Releases,
    Renamed,
    Shares,
    Sharing,
    answer_bytes,
    finite,
    line_of,
    share_line,
)
from cloister.hub.services.asking.sharing import rename, share_with_person, share_with_project, shares_of, withdraw
from cloister.hub.services.trail import left
from cloister.hub.web.routing import TICKED, WRITTEN, After, Confidence, Number

__all__ = ["file_of", "routes"]


def routes(router: APIRouter) -> None:
    """Add them."""
    _reading(router)
    _sharing(router)


def file_of(hub: Hub, caller: Caller, number: str, form: Form, confidence: float) -> Response:
    """A release as a file. That it left is a line of the trail, written before it does."""
    with hub.database.reading() as db:
        row = seen_release(hub, db, caller, number, "release.download")
    found = download(row, unpacked(row), form, confidence, hub.settings.data)
    left(hub, caller, "release", row.id, row.data_sets, row.purpose, form)
    return Response(found.body, headers=found.headers, media_type=found.media_type)


def _reading(router: APIRouter) -> None:
    @router.get(
        "/releases",
        dependencies=[needs("release.see")],
        summary="List releases",
        response_description="The releases, the newest first",
    )
    def releases(
        hub: HubDep,
        caller: CallerDep,
        which: Which = "all",
        search: Annotated[str, Query(max_length=200)] = "",
        project: Annotated[str, Query(max_length=32)] = "",
        after: After = "",
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> Releases:
        """One's own, those shown to one, and those of one's projects; the newest first."""
        with hub.database.reading() as db:
            rows = releases_of(hub, db, caller, which=which, search=search, project=project, after=after, limit=limit + 1)
        more = rows[limit - 1].id if len(rows) > limit else None
        return Releases(releases=[line_of(row, caller.id) for row in rows[:limit]], next=more)

    @router.get(
        "/releases/{number}",
        dependencies=[TICKED, needs("release.see")],
        response_model=Answer,
        summary="Get a release",
        response_description="The release as it was answered",
    )
    def release(hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95) -> Response:
        """A stored release, byte for byte what was answered at that confidence. What others show you takes `release.download` on
        what it came from, as a file does; a browser shows it without."""
        with hub.database.reading() as db:
            row = read_release(hub, db, caller, number)
        return Response(answer_bytes(row, unpacked(row), confidence), media_type="application/json")

    @router.get(
        "/releases/{number}/margins",
        dependencies=[TICKED, needs("release.see")],
        summary="Get the margins of error of a release",
        response_description="The margins at the confidence that is asked for",
    )
    def margins(hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95, joint: bool = False) -> Margins:
        """At another confidence; with `joint`, all intervals hold at once. It takes what the release takes."""
        with hub.database.reading() as db:
            found = unpacked(read_release(hub, db, caller, number))
        widths, drowned = found.margin(confidence, joint=joint), found.drowned(confidence)
        names = found.statistics()
        return Margins(
            confidence=confidence,
            joint=joint,
            margins={name: [finite(float(each)) for each in widths[name].tolist()] for name in names},
            drowned={name: [bool(each) for each in drowned[name].tolist()] for name in names},
        )

    @router.get(
        "/releases/{number}/download/{form}",
        dependencies=[TICKED, needs("release.download")],
        summary="Download a release",
        response_class=Response,
        responses={200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}, "description": "The file"}},
    )
    def file(hub: HubDep, caller: CallerDep, number: Number, form: Form, confidence: Confidence = 0.95) -> Response:
        """`json` as it was answered, for programs that read it back; `readable` for people, with question, margins and policy;
        Parquet, or a ZIP of CSV, with margins as columns; each with its provenance."""
        return file_of(hub, caller, number, form, confidence)


def _sharing(router: APIRouter) -> None:
    @router.get(
        "/releases/{number}/shares",
        dependencies=[needs("release.share")],
        summary="List the shares of a release",
        response_description="The e-mail addresses and projects that it is shared with",
    )
    def shares(hub: HubDep, caller: CallerDep, number: Number) -> Shares:
        """The addresses and projects, for the analyst who asked; `asleep` says why a share is suspended."""
        with hub.database.reading() as db:
            row = own_release(hub, db, caller, number, "release.see")
        return _shares(hub, caller, row)

    @router.post(
        "/releases/{number}/shares",
        dependencies=[needs("release.share"), WRITTEN],
        summary="Share a release",
        response_description="The e-mail addresses and projects that it is shared with",
    )
    def share(hub: HubDep, caller: CallerDep, number: Number, wanted: Sharing) -> Shares:
        """Show it to the person with an e-mail address (you are not told whether there is one), or to a project of your own."""
        _one(wanted)
        with hub.database.begin() as db:
            row = own_release(hub, db, caller, number, "release.share")
            if wanted.project:
                share_with_project(db, hub, caller, row, wanted.project)
            else:
                share_with_person(db, hub, caller, row, wanted.email)
        return _shares(hub, caller, row)

    @router.post(
        "/releases/{number}/shares/withdraw",
        dependencies=[needs("release.share"), WRITTEN],
        summary="Stop sharing a release",
        response_description="The e-mail addresses and projects that it is still shared with",
    )
    def unshare(hub: HubDep, caller: CallerDep, number: Number, wanted: Sharing) -> Shares:
        """What was looked at or downloaded before is not undone."""
        _one(wanted)
        with hub.database.begin() as db:
            row = own_release(hub, db, caller, number, "release.see")
            withdraw(db, hub, caller, row, email=wanted.email, project=wanted.project)
        return _shares(hub, caller, row)

    @router.post(
        "/releases/{number}/title",
        dependencies=[needs("release.share"), WRITTEN],
        summary="Rename a release",
        response_description="The release under its new name",
    )
    def title(hub: HubDep, caller: CallerDep, number: Number, wanted: Renamed) -> ReleaseLine:
        """Another name for one's own release."""
        with hub.database.begin() as db:
            row = own_release(hub, db, caller, number, "release.see")
            rename(db, hub, caller, row, wanted.title)
        return line_of(row, caller.id)


def _shares(hub: Hub, caller: Caller, row: StoredRelease) -> Shares:
    with hub.database.reading() as db:
        return Shares(shares=[share_line(each) for each in shares_of(hub, db, caller, row)])


def _one(wanted: Sharing) -> None:
    if bool(wanted.email) == bool(wanted.project):
        raise InvalidParameter(
            "The share is invalid", why="it names either a person or a project", instead='{"email": "ada@example.org"}'
        )
