"""The API of data sets of masked cells."""

from typing import Annotated, Any

from fastapi import Path, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from cloister.crypto import fingerprint
from cloister.hub.description import example
from cloister.hub.guidance import budget_of
from cloister.hub.hub import HubDep, PersonDep
from cloister.hub.platform.catalogue import key_of
from cloister.hub.services.vault.keeping import (
    PLAIN,
    Line,
    NewMaskedDataSet,
    followed,
    keep_scores,
    received,
    registered,
    renewed,
    standings,
)
from cloister.hub.web.routing import Routes

_Name = Annotated[str, Path(max_length=63, pattern=PLAIN)]
_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


class NewPads(BaseModel):
    """The same cells under the pads of another key holder."""

    model_config = ConfigDict(extra="forbid", strict=True) | example(
        holder="new keys", key="cd" * 64, uploads=["01JD0000000000000000000000"]
    )

    holder: Line
    key: Line
    uploads: Annotated[list[Line], Field(max_length=100_000, description="The differences, in the order of the batches.")]


class Verified(BaseModel):
    """What `cloister vault verify --json` printed."""

    model_config = ConfigDict(extra="forbid", strict=True)

    problems: Annotated[list[Line], Field(max_length=1000)]
    changes: Annotated[int, Field(ge=0, description="Of the collections, so far.")]
    epoch: Annotated[int, Field(ge=1, description="One more after each rotation of keys.")]


class Scores(BaseModel):
    """What `cloister vault show` said of fields, `cloister vault score` of each, and `cloister vault verify` of the store."""

    model_config = ConfigDict(extra="forbid", strict=True) | example(
        scores={"town": "100 cells; guessed without looking: 60 %"}, verified={"problems": [], "changes": 12, "epoch": 2}
    )

    scores: Annotated[dict[Line, Line], Field(max_length=1000, default_factory=dict)]
    layers: Annotated[dict[Line, list[Line]], Field(max_length=1000, default_factory=dict)]
    verified: Verified | None = None


class MaskedUpload(BaseModel):
    """What was uploaded, and of which data set it is the next version by now."""

    upload: str
    batch: str
    rows: int
    format: str
    data_set: str
    version: int


class MaskedOut(BaseModel):
    """A data set of masked cells."""

    name: str
    holder: str
    fingerprint: str
    present: str
    batches: int
    rows: int


class MaskedList(BaseModel):
    """One's own, and the key by which a key holder knows this hub."""

    hub: str
    fingerprint: str
    items: list[MaskedOut]


class Version(BaseModel):
    """The version that questions read from now on."""

    version: int


def add(routes: Routes) -> None:
    @routes.post(
        "/uploads/masked",
        "dataset.register",
        "Upload a batch of masked cells",
        "The upload, or the version that it became",
        status_code=201,
        openapi_extra=_BODY,
    )
    async def upload(request: Request, hub: HubDep, caller: PersonDep) -> MaskedUpload:
        """The body is a batch, or a difference of pads. A batch that follows the newest of one's data set is its next version."""
        found = await received(hub, caller, request.stream())
        name, version = await run_in_threadpool(lambda: followed(hub, caller, found) or ("", 0))
        head = found.head
        return MaskedUpload(
            upload=found.id,
            batch="" if head is None else head.id,
            rows=0 if head is None else head.rows,
            format="" if head is None else str(head.format),
            data_set=name,
            version=version,
        )

    @routes.get(
        "/masked-datasets",
        "dataset.register",
        "List your data sets of masked cells",
        "The hub's key, and the data sets with their key holders",
    )
    def listed(hub: HubDep, caller: PersonDep) -> MaskedList:
        """With when each key holder last called."""
        key, items = key_of(hub).public, []
        for each in standings(hub, caller):
            rows = sum(rows - gone for _, rows, gone, _ in each.batches)
            about = {"name": each.row.name, "holder": each.holder, "fingerprint": each.fingerprint, "present": str(each.present)}
            items.append(MaskedOut(**about, batches=len(each.batches), rows=rows))
        return MaskedList(hub=key.hex(), fingerprint=fingerprint(key), items=items)

    @routes.post(
        "/masked-datasets", "dataset.register", "Register a data set of masked cells", "Its first version", status_code=201
    )
    def make(hub: HubDep, caller: PersonDep, body: NewMaskedDataSet) -> Version:
        """Of a first batch that was uploaded. Its format declares the columns."""
        budget = budget_of(body.epsilon, body.delta, body.rho) if body.epsilon or body.rho else None
        return Version(version=registered(hub, caller, body, budget).version)

    @routes.post(
        "/masked-datasets/{name}/pads",
        "dataset.register",
        "Put masked cells under another key holder's pads",
        "The version that questions read",
    )
    def pads(hub: HubDep, caller: PersonDep, name: _Name, body: NewPads) -> Version:
        """After a key was copied: the differences that `cloister csp renew` wrote. Versions before it are destroyed."""
        return Version(version=renewed(hub, caller, name, body.holder, body.key, body.uploads))

    @routes.put(
        "/masked-datasets/{name}/scores",
        "dataset.register",
        "Keep leakage scores for yourself",
        "They are kept for a week",
        status_code=204,
    )
    def scores(hub: HubDep, caller: PersonDep, name: _Name, body: Scores) -> None:
        """What attackers would get of each field of the owner's own store, and whether it is as it was written: for the owner
        alone. What is left out stays."""
        verified = None if body.verified is None else body.verified.model_dump()
        keep_scores(hub, caller, name, body.scores, verified, body.layers)
