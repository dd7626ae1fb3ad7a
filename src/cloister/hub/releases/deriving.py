"""What is made of releases alone, kept as a release: post-processing, so nothing is charged and its guarantee is theirs.

It carries the policies of all that it was made of, and the costs of their populations. Whoever makes it must be allowed to take
each of them as a program does (`read_release`); what binds their sources binds it at each look, as it binds them (`derived.py`).
What was made twice of the same is one release.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter
from cloister.hub.decisions.policy import inherit
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.labels import check_title
from cloister.hub.platform.trail import write
from cloister.hub.records.policies import policy_in
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.derived import check_derived
from cloister.hub.releases.kinds import ReleaseKind
from cloister.hub.releases.reading import read_release

DERIVE = "release.derive"
"""The action of the entries about it."""


def read_sources(hub: Hub, caller: Caller, ids: Sequence[str], kind: str) -> list[StoredRelease]:
    """The releases that something is to be made of, as a program reads them."""
    with hub.database.reading() as db:
        return [read_release(hub, db, caller, number, kind=kind) for number in ids]


def keep_derived(
    hub: Hub,
    caller: Caller,
    kind: ReleaseKind,
    sources: Sequence[StoredRelease],
    *,
    body: bytes,
    details: Mapping[str, Any],
    title: str,
    purpose: str = "",
    finish: Callable[[Db, str], None] = lambda *_: None,
) -> str:
    """The id of the release. Its sources are asked about once more where it is kept; `finish` is in that transaction.
    What has no release as its source, such as a model of a survey's reports, names its own purpose."""
    check_title(title)
    purposes = sorted({each.purpose for each in sources}) or [purpose]
    if len(purposes) > 1:
        raise InvalidParameter(
            "The releases are invalid",
            why="they were made for different purposes",
            instead="releases that were made for one purpose",
        )
    digest = hashlib.sha256(body).hexdigest()
    with hub.database.begin() as db:
        for each in sources:
            read_release(hub, db, caller, each.id, kind=each.kind)
        own = (StoredRelease.person == caller.id) & (StoredRelease.kind == kind.name) & StoredRelease.withdrawn.is_(None)
        known = db.scalar(select(StoredRelease.id).where(own, StoredRelease.digest == digest))
        if known is not None:
            finish(db, known)
            return known
        row = StoredRelease(
            id=new_id(),
            person=caller.id,
            kind=kind.name,
            title=title,
            algorithm="",
            project="",
            data_sets=sorted({number for each in sources for number in each.data_sets}),
            purpose=purposes[0],
            cost={population: cost for each in sources for population, cost in each.cost.items()},
            digest=digest,
            body=body,
            policy=inherit([policy_in(each.policy) for each in sources]).to_dict(),
            created=hub.now(),
            details={"project": "", "of": [each.id for each in sources], **details},
        )
        # several are a combination, which the policies and the grants of all of their data must allow
        check_derived(hub, db, caller, row, "release.download" if len(sources) > 1 else "release.see")
        db.add(row)
        db.flush()
        told = {"purpose": row.purpose, "data_sets": list(row.data_sets), "of": row.details["of"]}
        write(hub, db, caller, DERIVE, kind=kind.trail, object_id=row.id, **told)
        finish(db, row.id)
        return row.id
