"""The API of results that are handed to owners; orders are the frame's."""

from pydantic import BaseModel
from starlette.responses import Response

from cloister.hub.hub import CallerDep, HubDep
from cloister.hub.services.joint_learning.exact import EXACT, ExactJoint, before
from cloister.hub.services.joint_learning.order import ACTION
from cloister.hub.services.joint_learning.results import owned_results, take_away
from cloister.hub.web.routing import Number, Routes, attachment
from cloister.hub.work.ordering import before_start


class OwnedOut(BaseModel):
    """A result in which there are rows of yours."""

    id: str
    method: str
    table: str
    columns: list[str]
    cost: dict[str, str]


class BeforeOut(BaseModel):
    """Before exact directions are ordered."""

    tells: str
    owners: str
    populations: str
    holder: str
    fingerprint: str
    seconds: float
    megabytes: float
    gates: int
    guarantee: str = "not differentially private"


class OwnedList(BaseModel):
    """The newest of them."""

    items: list[OwnedOut]


def add(routes: Routes) -> None:
    @routes.get(
        "/joint-learning/results", "dataset.see", "List joint results that your rows are in", "The results, the newest first"
    )
    def listed(hub: HubDep, caller: CallerDep) -> OwnedList:
        """Those of which you own a part. Each goes to the owners of all parts."""
        with hub.database.reading() as db:
            rows = owned_results(hub, db, caller)
        told = [
            OwnedOut(id=each.id, cost=each.cost, **{name: each.details[name] for name in ("method", "table", "columns")})
            for each in rows
        ]
        return OwnedList(items=told)

    @routes.get(
        "/joint-learning/results/{number}",
        "release.download",
        "Download a joint result as an owner",
        "The directions, how rows are projected by them, and the guarantee",
        ticked=True,
    )
    def taken(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """For the owner of a part; written down in the audit log."""
        found = take_away(hub, caller, number)
        return Response(found.body, headers=attachment(found.name), media_type="application/json")

    @routes.post(
        "/joint-learning/exact/price",
        ACTION,
        "Estimate what exact joint learning tells, takes and sends",
        "What leaves, to whom, and what it takes",
        ticked=True,
    )
    def told(hub: HubDep, caller: CallerDep, body: ExactJoint) -> BeforeOut:
        """From declarations alone: no site is asked, and no row is read."""
        found = before_start(hub, caller, EXACT, body, before)
        return BeforeOut(**{**found, "tells": found["tells"] % found})
