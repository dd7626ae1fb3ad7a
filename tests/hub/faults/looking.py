"""What has to hold after whatever happened: no answer without a charge, no budget exceeded, both chains whole."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sqlalchemy import select

from cloister.hub.hub import Hub
from cloister.hub.platform.trail import verify
from cloister.hub.records.asking import Idempotency
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from cloister.privacy import PureDP
from tests.hub.faults.prepared import COST, SET, Prepared

__all__ = ["Found", "look"]


class Found:
    """What the ledger and the database say, beside what the clients have."""

    def __init__(self, hub: Hub, received: Sequence[dict[str, Any]]) -> None:
        self.charges = hub.ledger.charges(SET)
        self.settled = Counter(each.what for each in self.charges if each.state == "settled")
        self.open = [each for each in self.charges if each.state != "settled"]
        self.spent = hub.ledger.spent(SET)
        self.answers = [each for each in received if each["status"] == 201]
        with hub.database.reading() as db:
            self.releases = dict(db.execute(select(StoredRelease.id, StoredRelease.digest)).all())
            self.stored = dict(db.execute(select(Idempotency.key, Idempotency.response).where(Idempotency.status == 201)).all())
            acts = select(AuditLine.action, AuditLine.object, AuditLine.outcome)
            self.asked = [row for row in db.execute(acts) if row.action == "question.ask"]


def look(place: Prepared, received: Sequence[dict[str, Any]], *, seed: int = 0) -> Found:
    """Everything that holds after any fault; the rest is for the test to ask of what is found."""
    with place.opened() as hub:
        assert hub.ledger.frozen is None
        assert hub.ledger.verify() is True
        whole = verify(hub)
        assert whole is True, str(whole)
        found = Found(hub, received)
    assert found.spent == PureDP(Fraction(COST) * len(found.charges))
    assert found.spent <= place.budget
    assert max(found.settled.values(), default=1) == 1, "a question was charged and answered twice"
    for each in found.answers:
        assert each.get("again", True), f"question {each['number']}: another answer under the same key"
        assert found.settled[found.releases[each["release"]]] == 1, f"question {each['number']}: an answer without a charge"
        kept = found.stored.get(f"key-{seed}-{each['number']}")
        if kept is not None:
            assert hashlib.sha256(kept).hexdigest() == each["digest"]
    told = Counter(found.releases[each["release"]] for each in found.answers)
    assert max(told.values(), default=1) == 1, "one charge answered two questions"
    written = Counter(row.object for row in found.asked if row.outcome == "done")
    assert all(written[each["release"]] == 1 for each in found.answers), "an answer that the trail does not know"
    return found
