"""Views: what a person may read for a purpose, joined over collections.

A view names collections with the fields that it shows, the fields by which they are joined, a condition on the first one, people,
and purposes. It belongs to whoever has the keys and is enforced where they are, at the proxy: the server knows of no view, and a
person has a token that opens views alone. `"$person"` in a condition stands for whoever reads, so one view shows each doctor
their own patients.

Claim: what someone learns of documents through a view is a function of the shown fields of those that meet its condition, joined.
Sketch: a filter of theirs is read against the shown fields of the first collection, so no other field can be compared; both
filters hold of every document; joined documents are those with the same value in the joining field; only shown fields are
returned. That a filter finds nothing says so of shown fields alone. How long an answer takes depends on more than is shown.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloister.errors import AccessDenied, InvalidDeclaration
from cloister.vault.fields import Field
from cloister.vault.filters import read
from cloister.vault.values import comparable
from cloister.vault.vault import Vault

__all__ = ["View", "Views"]

PERSON = "$person"
_IDENTITY = {"_id": Field(equal=True)}
Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class View:
    """Which fields of which collections, for whom and for what.

    >>> View(collections={"visits": ["day"]}, people=["ana"], purposes=["care"]).refusal("bob", "care")
    'it is not for this person'
    """

    collections: Mapping[str, Sequence[str]]
    people: Sequence[str]
    purposes: Sequence[str]
    on: Mapping[str, str] = field(default_factory=dict)
    """Of each collection, the field by which its documents belong to those of the others; nothing for one alone."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Of the first collection."""

    def __post_init__(self) -> None:
        formed = isinstance(self.collections, Mapping) and isinstance(self.on, Mapping) and isinstance(self.where, Mapping)
        lists = [self.people, self.purposes, *self.collections.values()] if formed and self.collections else [""]
        if not all(isinstance(each, list | tuple) and each and all(isinstance(one, str) for one in each) for each in lists):
            raise _invalid("its people, purposes and the fields of each collection are lists of names", 'people = ["ana"]')
        if self.on.keys() != (self.collections.keys() if len(self.collections) > 1 else set()):
            raise _invalid("several collections are joined on a field of each", 'on = { patients = "_id", visits = "patient" }')

    def refusal(self, person: str, purpose: str) -> str:
        """Why someone may not read it, or nothing."""
        if person not in self.people:
            return "it is not for this person"
        return "" if purpose in self.purposes else f"its purposes are: {', '.join(self.purposes)}"


class Views:
    """The views of a vault, and the people who have a token for them: of each the SHA-256, in hexadecimal digits.

    >>> from cloister.vault import Equal, Keys, Random
    >>> store = Vault("sqlite://", Keys.generate())
    >>> patients = store.collection("patients", {"town": Equal(), "name": Random()})
    >>> visits = store.collection("visits", {"patient": Equal(), "day": Random()})
    >>> _ = patients.insert_one({"_id": 7, "town": "Basel", "name": "Ada"}), visits.insert_one({"_id": 1, "patient": 7, "day": 3})
    >>> both = {"visits": ["day"], "patients": ["town"]}
    >>> view = View(collections=both, on={"visits": "patient", "patients": "_id"}, people=["ana"], purposes=["care"])
    >>> Views(store, {"days": view}).read("days", person="ana", purpose="care")
    [{'visits': {'day': 3}, 'patients': {'town': 'Basel'}}]
    """

    def __init__(self, store: Vault, views: Mapping[str, View], tokens: Mapping[str, str] | None = None) -> None:
        self._store, self._views, self._tokens = store, dict(views), dict(tokens or {})
        for view in self._views.values():
            for name, shown in view.collections.items():
                fields = _IDENTITY | store.collection(name).fields
                wanted = {*shown, *([view.on[name]] if view.on else [])}
                if wanted - fields.keys():
                    raise _invalid(f"a field of {name!r} is not declared", ", ".join(map(repr, fields)))
                joined = view.on.get(name, "_id")
                if not (fields[joined].equal or fields[joined].exposed == "equal"):
                    raise _invalid(
                        f"{joined!r} of {name!r} was not declared to be found by equality", "Equal() in its declaration"
                    )
            first = next(iter(view.collections))
            read(_stated(view.where, ""), store.collection(first).fields)

    def person(self, token: str) -> str:
        """Whose token it is; nobody's is ""."""
        digest = hashlib.sha256(token.encode()).hexdigest()
        return next((name for name, known in self._tokens.items() if hmac.compare_digest(digest.encode(), known.encode())), "")

    def read(self, name: str, *, person: str, purpose: str, filter: Any = None) -> list[Document]:  # noqa: A002 - as pymongo calls it
        """The documents of a view, by collection; a filter compares shown fields of the first one."""
        view = self._views.get(name)
        why = "there is no such view for this person" if view is None else view.refusal(person, purpose)
        if view is None or why:
            raise AccessDenied("The view was denied", why=why, instead="a view of yours, for a purpose of it")
        (first, shown), *others = view.collections.items()
        collection = self._store.collection(first)
        seen = read(filter, {field: each for field, each in collection.fields.items() if field in shown})
        if "_id" not in shown and "_id" in _names(seen):
            raise AccessDenied("The view was denied", why="it does not show _id", instead="a filter on fields that it shows")
        found = [each for each in collection.find(_stated(view.where, person)) if seen.holds(each)]
        rows = [({first: _part(each, shown)}, each.get(view.on.get(first, "_id"))) for each in found]
        for other, fields in others:
            by, values = view.on[other], {comparable(value): value for _, value in rows if value is not None}
            here: dict[bytes, list[Document]] = {}
            for each in self._store.collection(other).find({by: {"$in": [*values.values()]}}) if values else []:
                here.setdefault(comparable(each.get(by)), []).append(_part(each, fields))
            rows = [(row | {other: each}, value) for row, value in rows for each in here.get(comparable(value), [])]
        return [row for row, _ in rows]


def _part(document: Document, shown: Sequence[str]) -> Document:
    return {name: document[name] for name in shown if name in document}


def _stated(where: Any, person: str) -> Any:
    """A condition with the person in it."""
    if isinstance(where, Mapping):
        return {name: _stated(each, person) for name, each in where.items()}
    if isinstance(where, list):
        return [_stated(each, person) for each in where]
    return person if where == PERSON else where


def _names(given: Any) -> set[str]:
    return {each.name for each in given.conditions} | {name for parts in given.either for part in parts for name in _names(part)}


def _invalid(why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration("The view is invalid", why=why, instead=instead)
