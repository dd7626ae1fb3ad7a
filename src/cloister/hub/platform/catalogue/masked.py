"""Data sets of masked cells: the hub holds what it can't read, and a key holder that never sees a cell helps to ask it.

What a version keeps is whose key it is and which batches there are; the batches are files of their own in the folder `masked`,
by their ids. Each version has the batches of the one before and one more (`together/sealed/batches.py`), or the same ones under
another key holder's pads. A key holder calls any process of the hub, as sites do (`joint.py`).

Cells that a batch withdraws are overwritten once no question can be reading them any more: an hour after, as soon as anything is
uploaded or a version destroyed, or the hub starts.
"""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.crypto import canonical_json
from cloister.errors import CloisterError, Conflict
from cloister.hub.hub import Hub
from cloister.hub.platform.catalogue.joint import DEADLINE, READING, WAIT, key_of
from cloister.hub.platform.catalogue.remote import Called, RowsElsewhere, legible, newest_of, text_in
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.together.sealed.batches import Batch, Head, in_order, withdrawn_by
from cloister.together.sealed.table import SealedSource
from cloister.together.sealed.wire import KeyHolderLine

_LOG = logging.getLogger("cloister.hub.catalogue")

MASKED = "masked"
"""The kind of such a version, as it is stored; the folder, and the key of the lines of a process."""
_SETTLED = timedelta(hours=1)
_FRESH, _WAITING = 60, 86_400
"""Seconds: a batch may lie there before the version that names it is committed; an upload waits to be registered."""


@dataclass(frozen=True, kw_only=True)
class Masked:
    """Who has the keys, and which batches there are, in their order."""

    name: str
    """What the key holder is called here and there."""
    key: bytes
    batches: tuple[str, ...]
    layers: Mapping[str, list[str]] = field(default_factory=dict)
    """How the owner's own store keeps each field, as the owner says."""

    def text(self) -> str:
        """As it is stored."""
        told = {"name": self.name, "key": self.key.hex(), "batches": list(self.batches), "layers": dict(self.layers)}
        return canonical_json(told)

    @classmethod
    def read(cls, text: str) -> Masked:
        """Again from the text."""
        told = json.loads(text)
        return cls(name=told["name"], key=bytes.fromhex(told["key"]), batches=tuple(told["batches"]), layers=told["layers"])

    def source(self, hub: Hub, line: KeyHolderLine) -> SealedSource:
        """The cells, as a session asks for them."""
        return SealedSource([batch_file(hub, each) for each in self.batches], line, purpose="", who="")


def batch_file(hub: Hub, batch: str) -> Path:
    """Where a batch lies."""
    return folder_of(hub) / f"{batch}.masked"


def folder_of(hub: Hub) -> Path:
    """Where batches lie."""
    folder = hub.settings.path(MASKED)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def line_of(hub: Hub, masked: Masked) -> KeyHolderLine:
    """The mailbox of its key holder, in this process."""
    return lines_of(hub).of(masked)


@dataclass
class MaskedRows(RowsElsewhere):
    """Batches that were uploaded; a version holds their names."""

    masked: Masked
    kind = MASKED

    def __post_init__(self) -> None:
        self.schema = self.masked.source(self.hub, line_of(self.hub, self.masked)).schema
        first = f"masked {self.masked.batches[0]}"
        self.origin = hmac.digest(self.hub.secret("origin of rows"), first.encode(), "sha256").hex()

    def text(self) -> str:
        """Whose key it is, and which batches there are."""
        return self.masked.text()

    @property
    def length(self) -> int:
        """Of all batches."""
        return sum(batch_file(self.hub, each).stat().st_size for each in self.masked.batches)

    def take(self, db: Db) -> None:
        """Refuses batches that another data set of this hub has: its population would be charged beside."""
        for data_set, masked in legible(self.hub, masked_versions(db, open_only=False), masked_in):
            if data_set.id != self._made_for and {*masked.batches} & {*self.masked.batches}:
                raise Conflict(
                    "The batch was not taken",
                    why=f"the data set {data_set.name!r} has it",
                    instead="that data set, or batches from another beginning",
                )


def masked_versions(db: Db, *, open_only: bool = True) -> list[tuple[DataSet, DataSetVersion]]:
    """The data sets of masked cells, with their newest versions."""
    return newest_of(db, MASKED, open_only=open_only)


def masked_in(hub: Hub, version: DataSetVersion) -> Masked:
    """What a version keeps."""
    return Masked.read(text_in(hub, version))


class Lines(Called[KeyHolderLine]):
    """The mailboxes of the key holders, in one process."""

    kind = MASKED

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub)
        self._known: dict[tuple[str, bytes], KeyHolderLine] = {}

    def of(self, masked: Masked) -> KeyHolderLine:
        """The one of a key holder."""
        with self._lock:
            about = (masked.name, masked.key)
            if about not in self._known:
                how = {"deadline": DEADLINE, "reading": READING, "wait": WAIT, "post": self._post}
                self._known[about] = KeyHolderLine(key_of(self._hub), masked.name, masked.key, **how)
            return self._known[about]

    def of_version(self, version: DataSetVersion) -> KeyHolderLine:
        """The one of the key holder of a version."""
        return self.of(masked_in(self._hub, version))

    def of_settings(self) -> KeyHolderLine | None:
        """The one of the key holder of exact joint results; None where the settings name none."""
        name, _, digits = self._hub.settings.key_holder.strip().rpartition(" ")
        try:
            key = bytes.fromhex(digits)
        except ValueError:
            key = b""
        return self.of(Masked(name=name, key=key, batches=())) if name and len(key) == 64 else None

    def _opened(self, versions: Iterable[tuple[DataSet, DataSetVersion]]) -> list[KeyHolderLine]:
        found, own = super()._opened(versions), self.of_settings()
        return found if own is None or own in found else [*found, own]


def lines_of(hub: Hub) -> Lines:
    """The mailboxes of this process."""
    found: Lines | None = hub.parts.get(MASKED)
    return hub.parts.setdefault(MASKED, Lines(hub)) if found is None else found


def _settled(hub: Hub, db: Db, data_set: str) -> list[DataSetVersion]:
    """The newest version that is so old that none before it is being read."""
    wanted = select(DataSetVersion).where(
        DataSetVersion.data_set == data_set, DataSetVersion.created <= hub.now() - _SETTLED, DataSetVersion.address.is_not(None)
    )
    found = db.scalars(wanted.order_by(DataSetVersion.number.desc()).limit(1)).first()
    return [] if found is None else [found]


def _overwrite(hub: Hub, batches: Iterable[str]) -> None:
    """The cells that these batches withdrew from one another."""
    paths = {each: batch_file(hub, each) for each in batches}
    if all(path.exists() for path in paths.values()):
        for batch, ranges in withdrawn_by(in_order([Head.read(path) for path in paths.values()])).items():
            Batch(paths[batch]).erase(ranges)


def sweep_masked(hub: Hub) -> None:
    """Overwrites cells that were withdrawn, removes batches that no version names, and uploads that waited for a day."""
    with hub.database.reading() as db:
        every = [data_set for data_set, _ in masked_versions(db, open_only=False)]
        old = [(data_set, version) for data_set in every for version in _settled(hub, db, data_set.id)]
        wanted = select(DataSet, DataSetVersion).join(DataSetVersion, DataSetVersion.data_set == DataSet.id)
        wanted = wanted.where(DataSetVersion.kind == MASKED, DataSetVersion.address.is_not(None))
        live = [(data_set, version) for data_set, version in db.execute(wanted)]
        settled, read = (list(legible(hub, each, masked_in)) for each in (old, live))
        kept = {batch for _, masked in read for batch in masked.batches}
    for _, masked in settled:
        try:
            _overwrite(hub, masked.batches)
        except (CloisterError, OSError, ValueError) as error:  # what one owner uploaded stops no other's
            _LOG.warning("cells that %s withdrew were not overwritten: %s", masked.name, type(error).__name__)
    for path in folder_of(hub).iterdir():
        if path.suffix == ".masked" and len(read) < len(live):
            continue  # it may be a batch of a version that can't be read today
        patience = _FRESH if path.suffix == ".masked" else _WAITING
        with suppress(FileNotFoundError):  # another process sweeps too
            if path.stem not in kept and time.time() - path.stat().st_mtime > patience:
                path.unlink()
