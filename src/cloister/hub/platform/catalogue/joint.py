"""Data sets whose rows are at several sites: the hub holds who takes part (a roster that all signed), and never a row.

One coordinator (`together.Coordinator`) for each roster in each process; sites call any of them, and any asks. What a version
keeps is the roster with its signatures and the declared overlap. A site with several tables is in a data set for each, all of
one owner's and under one roster: who calls for one calls for all.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy.orm import Session as Db

from cloister.crypto import SigningKey, canonical_json
from cloister.hub.hub import Hub
from cloister.hub.platform.catalogue.remote import Called, RowsElsewhere, legible, newest_of, text_in
from cloister.hub.problems import Conflict
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.declarations import domains_of
from cloister.tables.sourcing.sources import Source
from cloister.together import Coordinator, Roster, SignedRoster
from cloister.together.joint import JointSource

SITES = "sites"
"""The kind of such a version, as it is stored."""
DEADLINE, READING = 30.0, 330.0
"""Seconds that a site may take for one step of a question, and for the one that reads its rows: over its usual `time_limit`."""
WAIT = 4.0
"""Seconds after which a site's call ends that nothing came for: a hub that stops waits for calls to end."""


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Who takes part, and at how many sites one person may have rows ("none", or a number)."""

    signed: SignedRoster
    overlap: str | int

    def text(self) -> str:
        """As it is stored."""
        return canonical_json({"signed": self.signed.plain(), "overlap": self.overlap})

    @classmethod
    def read(cls, text: str) -> Joined:
        """Again from the text."""
        told = json.loads(text)
        return cls(signed=SignedRoster.from_plain(told["signed"]), overlap=told["overlap"])

    def source(self, hub: Hub, declaration: Mapping[str, Any], coordinator: Coordinator | None = None) -> Source:
        """The rows, as a session asks for them."""
        found = coordinator or Coordinator(key_of(hub), self.signed)
        overlap = self.overlap if self.overlap == "none" else min(int(self.overlap), len(self.signed.roster.sites))
        return JointSource(found.sites, domains_of(SITES, declaration), declaration.get("unit"), overlap=overlap)

    def after(self, signed: SignedRoster) -> Joined:
        """The same with another roster. Who said that a person may be at all sites says so of the new ones, too; and what was
        declared stays, however few sites there are for a while."""
        everywhere = self.overlap != "none" and int(self.overlap) >= len(self.signed.roster.sites)
        return Joined(signed=signed, overlap=max(int(self.overlap), len(signed.roster.sites)) if everywhere else self.overlap)


def key_of(hub: Hub) -> SigningKey:
    """The key by which sites know this hub."""
    return SigningKey(hub.secret(SITES))


@dataclass
class SiteRows(RowsElsewhere):
    """The rows of sites; a version holds the roster."""

    joined: Joined
    declaration: Mapping[str, Any]
    after: Roster | None = None
    """The roster that this one takes the place of, in each data set that has it."""
    kind = SITES

    def __post_init__(self) -> None:
        self.schema = self.joined.source(self.hub, self.declaration).schema
        roster = self.joined.signed.roster
        self.told = {"roster": roster.digest, "sites": ", ".join(roster.sites)}
        keys = sorted(key.hex() for key in roster.sites.values())
        self.origin = hmac.digest(self.hub.secret("origin of rows"), " ".join(["sites", *keys]).encode(), "sha256").hex()

    def text(self) -> str:
        """The roster, and at how many sites one person may be."""
        return self.joined.text()

    def take(self, db: Db) -> None:
        """Refuses a site that another open data set of this hub asks already, but for one of the same owner and roster."""
        check_sites(self.hub, db, db.get_one(DataSet, self._made_for), self.joined, after=self.after)


def check_sites(hub: Hub, db: Db, row: DataSet, joined: Joined, after: Roster | None = None) -> None:
    """Refuses a data set at sites that call for another open one already, but for one of the same owner and roster: a site's
    calls reach one roster."""
    own = {key: name for name, key in joined.signed.roster.sites.items()}
    for other, theirs in legible(hub, versions_at_sites(db), joined_in):
        taken = own.keys() & set(theirs.signed.roster.sites.values())
        same = other.owner == row.owner and theirs.signed.roster in (joined.signed.roster, after)
        if taken and not same and other.id != row.id:
            raise Conflict(
                f"The site {own[min(taken)]!r} can't take part",
                why="a site of this key takes part in an open data set of this hub, of another owner or roster",
                instead="the roster of that data set; or cloister site init in another folder, for a site of its own",
            )


def versions_at_sites(db: Db, *, open_only: bool = True) -> list[tuple[DataSet, DataSetVersion]]:
    """The data sets whose rows are at sites: those that are open, or all."""
    return newest_of(db, SITES, open_only=open_only)


def joined_in(hub: Hub, version: DataSetVersion) -> Joined:
    """What a version keeps."""
    return Joined.read(text_in(hub, version))


class Coordinators(Called[Coordinator]):
    """Those of one process, by the digests of their rosters."""

    kind = SITES

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub)
        self._known: WeakValueDictionary[str, Coordinator] = WeakValueDictionary()  # as long as a session or a call needs one

    def of(self, signed: SignedRoster) -> Coordinator:
        """The one of a roster."""
        with self._lock:
            found = self._known.get(signed.roster.digest)
            if found is None:
                found = Coordinator(key_of(self._hub), signed, deadline=DEADLINE, reading=READING, wait=WAIT, post=self._post)
                self._known[signed.roster.digest] = found
            return found

    def of_version(self, version: DataSetVersion) -> Coordinator:
        """The one of the sites of a version."""
        return self.of(joined_in(self._hub, version).signed)


def coordinators_of(hub: Hub) -> Coordinators:
    """The coordinators of this process."""
    found: Coordinators | None = hub.parts.get(SITES)
    return hub.parts.setdefault(SITES, Coordinators(hub)) if found is None else found
