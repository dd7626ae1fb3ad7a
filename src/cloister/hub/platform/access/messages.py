"""What is said about a request, of access or of budget: a thread of messages, the oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.errors import InvalidParameter
from cloister.hub.records.access import Message
from cloister.printable import is_text

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_LONGEST = 4000
_MOST = 200


def spoken(text: str, title: str = "the message", most: int = _LONGEST) -> str:
    """A text that people wrote to each other, of a size to read.

    >>> spoken("  Which study is it?\\r\\nAda ")
    'Which study is it?\\nAda'
    """
    told = text.replace("\r\n", "\n").strip()
    if not is_text(told, most, lines=True):
        raise InvalidParameter(
            f"{title.capitalize()} is invalid", why=f"it must be a text of 1 to {most} characters", instead="a few sentences"
        )
    return told


def say(hub: Hub, db: Session, caller: Caller, about: str, text: str) -> Message:
    """Add a message. Whether somebody may speak here was decided before."""
    if len(thread(db, about)) >= _MOST:
        raise InvalidParameter("The message is invalid", why=f"there are {_MOST} already", instead="a decision, or a new request")
    row = Message(about=about, person=caller.id, text=spoken(text), created=hub.now())
    db.add(row)
    db.flush()
    return row


def thread(db: Session, about: str) -> list[Message]:
    """Everything that was said."""
    return list(db.scalars(select(Message).where(Message.about == about).order_by(Message.id).limit(_MOST)))
