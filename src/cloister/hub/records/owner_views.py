"""Findings for an owner alone: exact, computed from rows, encrypted, and gone after a week."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import ForeignKey, String, delete
from sqlalchemy.orm import Mapped, Session, mapped_column

from cloister.hub.database import Identified
from cloister.hub.ids import new_id

if TYPE_CHECKING:
    from cloister.hub.hub import Hub

VIEW_KEPT = timedelta(days=7)
"""How long one is kept: it holds values of rows, and another costs nothing but time."""


class OwnerView(Identified):
    """What was found in a data set for its owner. Its table is called after the first kind there was: trials of anonymising."""

    __tablename__ = "anonymizing_trial"

    kind: Mapped[str] = mapped_column(String(20), server_default="trial")
    """As the audit log has it, and as its secret is bound to it."""
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    data_set: Mapped[str] = mapped_column(String(32), index=True)
    order: Mapped[dict[str, Any]]
    """What was asked for, without values of rows."""
    wrapped: Mapped[bytes]
    """What was found, as JSON, wrapped by the master key: it holds values of rows."""
    created: Mapped[datetime]

    @property
    def about(self) -> str:
        """What its secret is bound to."""
        return f"{self.kind} {self.id} of data set {self.data_set}"


def view_of(hub: Hub, person: str, which: str, kind: str, order: Mapping[str, Any], found: Mapping[str, Any]) -> OwnerView:
    """What was found for a person, wrapped and bound to the view and to whose rows it is of; not yet in the database."""
    row = OwnerView(id=new_id(), kind=kind, person=person, data_set=which, order=dict(order), wrapped=b"", created=hub.now())
    row.wrapped = hub.keys.wrap(json.dumps(found).encode(), row.about)
    return row


def found_in(hub: Hub, row: OwnerView) -> dict[str, Any]:
    """What was found, for somebody who may look at this moment."""
    found: dict[str, Any] = json.loads(hub.keys.unwrap(row.wrapped, row.about))
    return found


def forget_views(db: Session, now: datetime) -> None:
    """Delete those that were kept long enough."""
    db.execute(delete(OwnerView).where(OwnerView.created < now - VIEW_KEPT))
