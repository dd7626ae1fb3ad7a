"""The hub's own state: whether it is well, what it counts, how it is set.

Pages of the administrator, and the two addresses that machines read: /healthz and /metrics. People, policies and the audit log
have services of their own.
"""

import ipaddress
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from sqlalchemy import text
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.checking import unoffered, weaknesses
from cloister.hub.decisions.facts import facts_of
from cloister.hub.edition import EDITION
from cloister.hub.hub import Hub, HubDep
from cloister.hub.ids import same
from cloister.hub.platform.access import damaged_views, unreadable_views
from cloister.hub.problems import Unauthenticated
from cloister.hub.service import Link, Service
from cloister.hub.settings import known_settings
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages, Routes


def pages() -> APIRouter:
    """What machines read at fixed addresses, and the administrator's page."""
    routes = Pages()

    @routes.get("/healthz", "public.read")
    def healthz(hub: HubDep) -> Response:
        found = health(hub)
        return JSONResponse(found.told(), 200 if found.well else 503)

    @routes.get("/metrics", "public.read")
    def metrics(hub: HubDep, request: Request) -> Response:
        if not _may_read(hub.settings.metrics_token, request):
            raise Unauthenticated(
                "The metrics are not open to you", why="the token is missing or another", instead="Authorization: Bearer …"
            )
        return Response(hub.meter.text(), media_type="text/plain; version=0.0.4")

    @routes.get("/settings", "settings.see")
    def settings(hub: HubDep, request: Request) -> Response:
        with hub.database.reading() as db:
            _ = request_gettext(request)
            unreadable = unreadable_views(db, facts_of(hub, db), _) + damaged_views(db, _)
        return render(
            request,
            "admin/settings.html",
            settings=hub.settings.shown(),
            meanings={name: each.metadata["about"] for name, each in known_settings().items()},
            weaknesses=weaknesses(hub.settings) + unoffered(),
            health=health(hub).told(),
            unreadable=unreadable,
            version=EDITION,
        )

    return routes.router


def api() -> APIRouter:
    """What a client asks first: which hub is this, and is it well."""
    routes = Routes()

    @routes.get("/hub", "public.read", "Get the title, version and health of the hub", "Title, institution, version and health")
    def about(hub: HubDep) -> dict[str, Any]:
        return {
            "title": hub.settings.title,
            "institution": hub.settings.institution,
            "version": EDITION,
            "health": health(hub).told(),
        }

    return routes.router


def _may_read(token: str, request: Request) -> bool:
    if token:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        return same(given, token)
    if request.state.forwarded:  # through a proxy that the settings do not name: everybody would seem to be here
        return False
    host = (request.url.hostname or "").lower()  # another name: a proxy on this machine, or a page that a browser here shows
    return all(_loopback(each) for each in (request.state.address, "127.0.0.1" if host == "localhost" else host))


def _loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class Health:
    """What works."""

    database: bool
    ledger: bool
    policy: bool = True
    """Every grant, rule and policy that is stored can be read. What can't be closes what it governs, and the rest answers."""

    @property
    def well(self) -> bool:
        """Whether the hub answers."""
        return self.database and self.ledger

    def told(self) -> dict[str, str]:
        """As it is told to machines.

        >>> Health(database=True, ledger=True, policy=False).told()["status"]
        'degraded'
        """
        found = {
            "status": "failing" if not self.well else "ok" if self.policy else "degraded",
            "database": "ok" if self.database else "failing",
            "ledger": "ok" if self.ledger else "failing",
        }
        return found if self.policy else {**found, "policy": "unreadable"}


def health(hub: Hub) -> Health:
    """Ask each part for a trifle."""
    return Health(database=_answers(hub), ledger=_charges(hub), policy=_reads(hub))


def _answers(hub: Hub) -> bool:
    try:
        with hub.database.reading() as db:
            return db.execute(text("SELECT 1")).scalar() == 1
    except CloisterError:
        return False


def _charges(hub: Hub) -> bool:
    try:
        return hub.ledger.frozen is None and hub.ledger.head[0] > 0
    except CloisterError:
        return False


def _reads(hub: Hub) -> bool:
    try:
        with hub.database.reading() as db:
            return not facts_of(hub, db).unreadable
    except CloisterError:
        return True  # the database is away, which is told already


SERVICE = Service(
    name="admin",
    title="Administration",
    pages=pages,
    api=api,
    links=(Link("Settings", "/settings", "settings.see", "govern", 90, "settings", help="reference/settings"),),
)
