"""An author's package: one archive becomes an algorithm, or the next version of one, once its tests passed.

The archive is read in memory (`cloister.guests.package`). Tests run here in WebAssembly; with a data set that the author may
know of, the code runs on made-up rows of its declarations besides, and tests that ask for rows get such rows. Nothing here reads
a row, so what failed is told to the author in full. Native code is not run before somebody approved it (`reviewing.py`).
"""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel
from starlette.responses import Response

from cloister.errors import CloisterError, Conflict, InvalidDeclaration, InvalidParameter
from cloister.guests import Guest, run_tests, run_trial
from cloister.guests.package import MOST_BYTES, unpacked
from cloister.guests.trial import Trial
from cloister.hub.decisions.checking import check
from cloister.hub.decisions.policy.strict import load
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep, PersonDep
from cloister.hub.platform.access import next_version, register_algorithm, settings_of
from cloister.hub.platform.catalogue import seen
from cloister.hub.problems import problem_of
from cloister.hub.records.access import Algorithm
from cloister.hub.services.guests.admission import NAME, declared_table
from cloister.hub.services.guests.settings import check_settings, guest_of
from cloister.hub.web.forms import check_token, go
from cloister.hub.web.multipart import FileForm
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages, Routes
from cloister.tables import PrivateTable

_FEW = 5
"""Blocks of made-up rows: somebody waits."""


async def received(stream: AsyncIterator[bytes]) -> bytes:
    """The archive, as far as one may be."""
    whole = bytearray()
    async for chunk in stream:
        whole += chunk
        if len(whole) > MOST_BYTES:
            break  # `unpacked` refuses it
    return bytes(whole)


def upload(hub: Hub, caller: Caller, archive: bytes, table: str = "") -> tuple[Algorithm, Trial]:
    """Register what an archive holds, and what became of its tests and of runs on made-up rows of a data set."""
    with hub.database.reading() as db:
        check(hub, db, caller, "algorithm.register")
        declared = declared_table(hub, db, caller, seen(hub, db, caller, table, "dataset.see")) if table else None
    package = unpacked(archive)
    about = _about(package.declaration)
    settings = settings_of("", **{name: each for name, each in package.programs.items() if name != "about"})
    settings |= settings_of(package.declaration)
    for name in ("name", "title", "about"):
        settings.pop(name, None)
    settings |= {"language": "r"} if package.language == "r" else {}
    check_settings(settings)
    guest = guest_of(about["name"], settings)
    tried = _tried(guest, settings.get("tests", ""), table, declared)
    with hub.database.begin() as db:
        version_of, name = next_version(db, caller, about["name"])
        if version_of is not None and version_of.settings == settings:
            raise Conflict(
                "The package was not registered", why=f"{version_of.name} is the same already", instead="a package that differs"
            )
        row = register_algorithm(
            hub,
            db,
            caller,
            name=name,
            title=about["title"] or about["name"],
            about=about["about"] or package.programs.get("about", "")[:2000],
            service=NAME,
            settings=settings,
            version_of="" if version_of is None else version_of.name,
        )
        db.flush()
        db.expunge(row)
    return row, tried


def _about(declaration: str) -> dict[str, str]:
    found = load(declaration, "guest.json", '{"name": "middle"}')
    texts = {name: found.get(name, "") for name in ("name", "title", "about")}
    if not all(isinstance(each, str) for each in texts.values()) or not texts["name"]:
        raise InvalidDeclaration(
            "guest.json is invalid", why="it says the name of the algorithm, and may say a title", instead='"name": "middle"'
        )
    if "code" in found:
        raise InvalidDeclaration("guest.json is invalid", why="code has a file of its own", instead="guest.py")
    return texts


def _tried(guest: Guest, tests: str, table: str, declared: PrivateTable | None) -> Trial:
    """What became of the package, where it may run here; what failed is refused."""
    if guest.needs.native:
        return run_tests(guest, tests)  # none
    tried = run_tests(guest, tests) if declared is None else run_trial(guest, table, declared, tests, most=_FEW)
    if not tried.well:
        why = tried.failed[0] if tried.failed else tried.why
        raise InvalidParameter(
            "The package was not registered",
            why=f"a test failed: {why}" if tried.failed else f"on made-up rows of {table}: {why}",
            instead="cloister guest try, which says more",
        )
    return tried


_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


class PackageOut(BaseModel):
    """What became of a package."""

    name: str
    package: str
    version: int
    passed: int
    """Tests."""
    done: int
    """Of the runs on made-up rows those that returned what is declared."""
    runs: int


def api(routes: Routes) -> APIRouter:
    """Add the route of the API."""

    @routes.post(
        "/uploads/algorithms",
        "algorithm.register",
        "Upload a package of an algorithm",
        "The algorithm, and what became of its tests",
        status_code=201,
        openapi_extra=_BODY,
    )
    async def uploaded(
        request: Request, hub: HubDep, caller: CallerDep, table: Annotated[str, Query(max_length=63)] = ""
    ) -> PackageOut:
        """The body is a ZIP archive with `guest.json`, `guest.py`, tests and licence; `table` names a data set on whose made-up
        rows it is tried."""
        archive = await received(request.stream())
        row, tried = await run_in_threadpool(lambda: upload(hub, caller, archive, table))
        how = {"passed": tried.passed, "done": tried.done, "runs": tried.runs}
        return PackageOut(name=row.name, package=row.package or row.name, version=row.version, **how)

    return routes.router


def pages(routes: Pages) -> None:
    """Add the page with the form."""

    @routes.get("/algorithm-packages", "algorithm.register")
    def form(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        """The form."""
        return render(request, "guests/package.html", table="", problem=None)

    @routes.post("/uploads/algorithms", "algorithm.register", own_check=True)
    async def sent(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        """Register a package."""
        fields: dict[str, str] = {}
        try:
            form = FileForm(request.headers.get("content-type", ""), request.stream())
            fields = await form.head()
            check_token(request, fields)
            archive = await received(form.file())
            row, tried = await run_in_threadpool(lambda: upload(hub, caller, archive, fields.get("table", "")))
        except CloisterError as error:
            problem = problem_of(error)
            shown = {"table": fields.get("table", "")[:63], "problem": problem}
            return await run_in_threadpool(lambda: render(request, "guests/package.html", status=problem.status, **shown))
        _ = request_gettext(request)
        said = _("Version %(n)s was registered. Tests passed: %(passed)s.", n=row.version, passed=tried.passed)
        return go(request, f"/algorithms/{row.name}", said)
