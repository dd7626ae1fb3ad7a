"""Who is meant: a person by their address or their id, and the names of several."""

import re
import unicodedata
from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import InvalidParameter, Missing
from cloister.hub.records.accounts import Person

_EMAIL = re.compile(r"[^\s@<>\"(),:;\\\[\]]{1,64}@[^\s@<>\"(),:;\\\[\]]{1,255}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_LONGEST_EMAIL = 320


def folded(address: str) -> str:
    """An e-mail address as it is kept and compared: A to Z are a to z, and a letter that is written in two parts is written as
    one (NFC). Nothing else is taken for the same: ß is not ss, and ⓐ is not a, since to a mail server they are other people.

    >>> folded(" Ada@Example.ORG "), folded("Straße@Uni.de") == folded("strasse@uni.de")
    ('ada@example.org', False)
    """
    text = unicodedata.normalize("NFC", address[:_LONGEST_EMAIL].strip())
    text = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    unseen = any(unicodedata.category(letter)[0] == "C" for letter in text)  # joiners too, which nobody sees in an address
    if len(address) >= _LONGEST_EMAIL or not _EMAIL.fullmatch(text) or unseen:
        raise InvalidParameter("The e-mail address is invalid", why="it is not a valid e-mail address", instead="ada@example.org")
    return text


def person_of_address(db: Session, address: str) -> Person | None:
    """The person of an e-mail address, however it is capitalised."""
    try:
        known = folded(address)
    except InvalidParameter:
        return None
    return db.scalar(select(Person).where(Person.email == known))


def person_by_id(db: Session, person: str) -> Person:
    """The person of an id."""
    found = db.get(Person, person) if _ID.fullmatch(person) else None
    if found is None:
        raise Missing("There is no such person", why="no one here has this id", instead="/people")
    return found


def names_of(db: Session, people: Iterable[str]) -> dict[str, str]:
    """Id → name, for pages that name several people."""
    wanted = {each for each in people if each}
    return {row.id: row.name for row in db.execute(select(Person.id, Person.name).where(Person.id.in_(wanted)))}
