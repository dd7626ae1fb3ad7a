"""The pages of releases: for each kind its list, and one by one; and what may be done with a release of any kind."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from sqlalchemy import select
from sqlalchemy.orm import Session as Db
from starlette.responses import RedirectResponse, Response

from cloister.errors import CloisterError
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy import Object, Policy, actions
from cloister.hub.decisions.policy.shares import PUBLISH
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.ids import new_secret
from cloister.hub.problems import Problem, beside_form, problem_of
from cloister.hub.records.access import Project
from cloister.hub.records.accounts import names_of
from cloister.hub.records.policies import policy_in
from cloister.hub.releases.api import Form
from cloister.hub.releases.comparing import compare_release, owns_sources, seen_comparison
from cloister.hub.releases.kinds import ANSWERS, ReleaseKind, View, Which, kind_of
from cloister.hub.releases.pooling import pooling_pages
from cloister.hub.releases.reading import file_of, own_release, releases_of, seen_release, titles_of
from cloister.hub.releases.sharing import rename, share_release, shares_of, withdraw
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import is_open, render, request_gettext, request_language
from cloister.hub.web.routing import After, Confidence, Number, Pages

_PAGE = 30


def pages(kinds: Iterable[ReleaseKind]) -> APIRouter:
    routes = Pages()
    for kind in kinds:
        _of_kind(routes, kind)
    _of_any(routes)
    return routes.router


def _of_kind(routes: Pages, kind: ReleaseKind) -> None:
    if kind.pooled is not None:
        pooling_pages(routes, kind)

    @routes.get(kind.path, "release.see")
    def releases(
        request: Request,
        hub: HubDep,
        caller: CallerDep,
        which: Which = kind.first,
        search: Annotated[str, Query(max_length=200)] = "",
        after: After = "",
    ) -> Response:
        """Those of oneself, those shown to one, those of one's projects."""
        with hub.database.reading() as db:
            how: dict[str, Any] = {"kind": kind.name, "which": which, "search": search, "after": after}
            rows = releases_of(hub, db, caller, limit=_PAGE + 1, **how)
            more = {
                "people": names_of(db, [row.person for row in rows]),
                "algorithms": titles_of(db, [row.algorithm for row in rows]),
                **kind.listed(hub, db, caller),
            }
        part = {"which": which, "search": search}
        onwards = {**part, "after": rows[_PAGE - 1].id} if len(rows) > _PAGE else {}
        return render(
            request,
            kind.list_template,
            kind=kind,
            releases=rows[:_PAGE],
            older=f"{kind.path}?{urlencode(onwards)}" if onwards else "",
            first_page=f"{kind.path}?{urlencode(part)}",
            paged=bool(after),
            which=which,
            search=search,
            **more,
        )

    @routes.get(f"{kind.path}/{{number}}", "release.see", ticked=True)
    def release(
        request: Request, hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95, joint: bool = False
    ) -> Response:
        """One of them: what it is, its guarantee, where it came from, its files, with whom it is shared. Any kind is found
        by /releases."""
        with hub.database.reading() as db:
            found = kind_of(hub, seen_release(hub, db, caller, number))
        if found is not kind and kind.path == "/releases":
            return RedirectResponse(f"{found.path}/{number}", 303)
        return release_page(request, hub, caller, number, kind, confidence=confidence, joint=joint)

    if kind.against_rows is not None:
        _compared(routes, kind, kind.against_rows.action)
    if kind.path == "/releases":
        return

    @routes.get(f"{kind.path}/{{number}}/{{file}}", "release.download")
    def file(
        request: Request,
        hub: HubDep,
        caller: CallerDep,
        number: Number,
        file: Annotated[str, Path(max_length=100)],
        form: Annotated[str, Query(max_length=20)] = "",
    ) -> Response:
        """One of its files, under an older address of it; `download` is the one that is named, or the first."""
        wanted = file if file != "download" else form or next(iter(kind.files), "")
        return file_of(hub, caller, number, wanted, kind=kind.name, language=request_language(request))


def _compared(routes: Pages, kind: ReleaseKind, action: str) -> None:
    @routes.post(f"{kind.path}/{{number}}/comparison", action, ticked=True)
    def compare(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Compare it with the rows that it was made of: to the page of the job."""
        with hub.database.reading() as db:
            row = seen_release(hub, db, caller, number, kind=kind.name)
        try:
            job = compare_release(hub, caller, row, f"form {form.text('key', most=60)}")
        except CloisterError as error:
            return release_page(request, hub, caller, number, kind, problem=problem_of(error))
        return go(request, f"/jobs/{job}")

    @routes.get(f"{kind.path}/comparisons/{{number}}", action)
    def comparison(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """What was found, for the owner alone."""
        with hub.database.reading() as db:
            view, found = seen_comparison(hub, db, caller, number, kind)
        return render(request, "releases/comparison.html", kind=kind, view=view, found=found)


def release_page(
    request: Request,
    hub: Hub,
    caller: Caller,
    number: str,
    kind: ReleaseKind,
    *,
    confidence: float = 0.95,
    joint: bool = False,
    problem: Problem | None = None,
    more: Mapping[str, Any] | None = None,
) -> Response:
    """The page of a release of a kind; `more`: what it shows besides."""
    _ = request_gettext(request)
    with hub.database.reading() as db:
        row = seen_release(hub, db, caller, number, kind=kind.name)
        mine = row.person == caller.id
        own = select(Project.id, Project.title).where(Project.id.in_(sorted(caller.projects)))
        told = {
            "shares": shares_of(hub, db, caller, row, _) if mine else [],
            "asker": names_of(db, [row.person]).get(row.person, ""),
            "algorithm": titles_of(db, [row.algorithm]).get(row.algorithm, ""),
            "projects": [(each.id, each.title) for each in db.execute(own.order_by(Project.title))],
            "policy": policy_words(policy_in(row.policy), facts_of(hub, db).data_sets, _),
            "may_download": _may(hub, db, caller, number, "release.download"),
            "may_share": _may(hub, db, caller, number, "release.share"),
            "may_publish": mine and kind.name == ANSWERS and _may(hub, db, caller, number, PUBLISH),
            "may_name": is_open(caller, "release.share"),
            "may_compare": kind.against_rows is not None and "of" not in row.details and owns_sources(db, caller, row),
            "key": new_secret(),
        }
    view = View(hub=hub, caller=caller, row=row, language=request_language(request), confidence=confidence, joint=joint)
    how: dict[str, Any] = {"kind": kind, "row": row, "mine": mine, "problem": problem, **told}
    return render(request, kind.template, **how, **kind.shown(view), **(more or {}))


def _of_any(routes: Pages) -> None:
    @routes.get("/releases/{number}/download/{form}", "release.download", ticked=True)
    def file(
        request: Request, hub: HubDep, caller: CallerDep, number: Number, form: Form, confidence: Confidence = 0.95
    ) -> Response:
        return file_of(hub, caller, number, form, confidence=confidence, language=request_language(request))

    @routes.post("/releases/{number}/share", "release.share")
    def share(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Show it to an address, or to a project; the page says the same whether or not anybody has that address."""
        _ = request_gettext(request)
        project, address = form.text("project", most=40), form.text("email", most=300)
        try:
            with hub.database.begin() as db:
                row = own_release(hub, db, caller, number, "release.share")
                share_release(hub, db, caller, row, email=address, project=project)
        except CloisterError as error:
            return _back(request, hub, caller, number, error, address)
        said = _("The person with this address here sees it now. Send them the link.")
        return go(request, _page_of(hub, row), _("The members of the project see it now.") if project else said)

    @routes.post("/releases/{number}/withdraw", "release.share")
    def unshare(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        _ = request_gettext(request)
        with hub.database.begin() as db:
            row = own_release(hub, db, caller, number, "release.see")
            withdraw(hub, db, caller, row, email=form.text("email", most=300), project=form.text("project", most=40))
        return go(request, _page_of(hub, row), _("It is no longer shown there."))

    @routes.post("/releases/{number}/title", "release.share")
    def title(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        _ = request_gettext(request)
        try:
            with hub.database.begin() as db:
                row = own_release(hub, db, caller, number, "release.see")
                rename(hub, db, caller, row, form.text("title", most=1000))
        except CloisterError as error:
            return _back(request, hub, caller, number, error)
        return go(request, _page_of(hub, row), _("The name was changed."))


def _may(hub: Hub, db: Db, caller: Caller, number: str, action: str) -> bool:
    """Whether the page offers it: the caller's roles have the action, and it is allowed on this release."""
    if not is_open(caller, action):
        return False
    try:
        seen_release(hub, db, caller, number, action)
    except CloisterError:
        return False
    return True


def _page_of(hub: Hub, row: Any) -> str:
    return f"{kind_of(hub, row).path}/{row.id}"


def _back(request: Request, hub: Hub, caller: Caller, number: str, error: CloisterError, address: str = "") -> Response:
    """The page of the release, which says what was wrong, with the address that was typed."""
    with hub.database.reading() as db:
        kind = kind_of(hub, own_release(hub, db, caller, number, "release.see"))
    return release_page(request, hub, caller, number, kind, problem=beside_form(error), more={"email": address})


def policy_words(policy: Policy, data_sets: Mapping[str, Object], _: Callable[[str], str] = str) -> list[tuple[str, str]]:
    """What holds for something that was derived from data, as names and sentences.

    >>> policy_words(Policy(purposes=frozenset({"research"}), sensitivity="special"), {})
    [('Purposes', 'research'), ('Sensitivity', 'a special category of the law')]
    """
    known = actions()

    def named(name: str) -> str:
        return data_sets[name].name if name in data_sets else name

    told: list[tuple[str, str]] = []
    if policy.purposes is not None:
        told.append((_("Purposes"), ", ".join(sorted(policy.purposes)) or _("none")))
    if policy.prohibitions:
        titles = [_(known[each].title) if each in known else each for each in sorted(policy.prohibitions)]
        told.append((_("Not allowed"), "; ".join(titles)))
    if policy.labels:
        told.append((_("Labels"), ", ".join(sorted(policy.labels))))
    if policy.consent:
        told.append((_("Consent"), ", ".join(sorted(policy.consent))))
    if policy.sensitivity:
        level = {"special": "a special category of the law"}.get(policy.sensitivity, policy.sensitivity)
        told.append((_("Sensitivity"), _(level)))
    if policy.retention is not None:
        told.append((_("May be used until"), f"{policy.retention:%Y-%m-%d %H:%M %Z}"))
    if policy.combinable_with is not None:
        told.append((_("May be combined with"), ", ".join(sorted(map(named, policy.combinable_with))) or _("nothing")))
    for source in sorted(policy.sources):
        columns = ", ".join(source.columns) or _("its rows alone")
        told.append((_("Derived from"), f"{named(source.object)}: {columns}"))
    return told
