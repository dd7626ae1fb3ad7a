"""From an upload to a data set of masked cells, to its next version, and to the same cells under another key holder's pads.

An upload waits for a day, for its sender alone. One that follows the newest batch of a data set of theirs is its next version at
once; a first one waits until it is registered; differences of pads wait until all are there.
"""

import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import delete, select
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from cloister.crypto import fingerprint
from cloister.errors import CloisterError, Conflict, EngineError, InvalidDeclaration, InvalidParameter, Missing
from cloister.hub.database import DatabaseUnavailable
from cloister.hub.decisions.checking import check
from cloister.hub.decisions.facts import data_set_object
from cloister.hub.description import example
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.catalogue import (
    Masked,
    MaskedRows,
    Wanted,
    add_masked,
    batch_file,
    folder_of,
    legible,
    line_of,
    made_of,
    masked_in,
    masked_versions,
    sweep_masked,
)
from cloister.hub.platform.trail import write
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.declarations import check_declaration, check_reasons
from cloister.hub.records.owner_views import VIEW_KEPT, OwnerView, forget_views, found_in, view_of
from cloister.hub.storage.uploads import FULL_DISK, NOT_KEPT, settle
from cloister.printable import is_text
from cloister.privacy import Guarantee
from cloister.stored import flush
from cloister.together.coordinator import Presence
from cloister.together.sealed.batches import Batch, Head, withdrawn_by
from cloister.together.sealed.renewing import MARK, apply_difference

SCORES = "leakage"
"""The kind of such an owner's view, as it is stored."""
_MOST_FIELDS, _LONGEST_TEXT = 1000, 2000
_SHOWN_BYTES = 96
PLAIN = r"^[^\x00]*$"
Line = Annotated[str, Field(max_length=5000, pattern=PLAIN)]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """An upload; `head` is None for a difference of pads."""

    id: str
    head: Head | None
    bytes: int


class NewMaskedDataSet(BaseModel):
    """A data set of a first batch that was uploaded."""

    model_config = ConfigDict(extra="forbid", strict=True) | example(
        upload="01JD0000000000000000000000",
        name="patients",
        title="Patients of the clinic",
        holder="keys",
        key="ab" * 64,
        population="patients",
        reason="The clinic takes adults up to 90.",
        epsilon="2",
        layers={"age": ["AES-GCM-SIV", "range index of 8 levels"]},
    )

    upload: Line
    name: Line
    title: Line
    about: Line = ""
    reason: Annotated[Line, Field(description="Where the bounds come from, in public words.")]
    holder: Annotated[Line, Field(description="The key holder's name, as in its csp.toml.")]
    key: Annotated[Line, Field(description="The key holder's public key, 128 digits.")]
    population: Line
    epsilon: Line = ""
    delta: Line = ""
    rho: Line = ""
    layers: Annotated[dict[Line, list[Line]], Field(max_length=1000)] = {}
    listed: bool = False


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One data set as its owner sees it here."""

    row: DataSet
    holder: str
    fingerprint: str
    present: Presence
    layers: Mapping[str, list[str]]
    format: str
    batches: list[tuple[str, int, int, int]]
    """Id, rows with padding, rows that were withdrawn, bytes."""
    stored: str
    """A row as it is stored, in hexadecimal digits."""
    scores: Mapping[str, str]
    verified: Mapping[str, Any] | None
    """What the owner's own tool found when it last compared the store with what was written, for the owner alone."""


async def received(hub: Hub, caller: Caller, stream: AsyncIterator[bytes]) -> Waiting:
    """An upload, whole."""
    most, number = hub.settings.upload_megabytes, new_id()
    part, size = folder_of(hub) / f"{number}.{caller.id}.part", 0
    try:
        with part.open("xb") as file:
            async for chunk in stream:
                size += len(chunk)
                if size > most * 2**20:
                    raise InvalidParameter(
                        "The upload is invalid",
                        why=f"it has more than {most:,} MB",
                        instead="fewer rows in each batch, or upload_megabytes in hub.toml",
                    )
                await run_in_threadpool(file.write, chunk)
        await run_in_threadpool(flush, part)
    except ClientDisconnect:
        part.unlink(missing_ok=True)
        raise InvalidParameter(
            "The upload is invalid", why="it ended before it was whole", instead="the same upload once more"
        ) from None
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise EngineError(NOT_KEPT, **FULL_DISK) from None
        raise
    part.chmod(0o600)
    part.rename(_waiting_file(hub, caller, number))
    await run_in_threadpool(sweep_masked, hub)
    return waiting(hub, caller, number)


def waiting(hub: Hub, caller: Caller, number: str) -> Waiting:
    """One's own upload."""
    path = _waiting_file(hub, caller, number)
    if not path.is_file():
        raise Missing("There is no such upload", why="it does not exist, or was used", instead="/masked")
    try:
        head = Head.read(path)
    except CloisterError as error:
        if not _is_difference(path):
            path.unlink()
            raise InvalidParameter("The upload is invalid", why=error.why, instead=error.instead) from None
        head = None
    return Waiting(id=number, head=head, bytes=path.stat().st_size)


def all_waiting(hub: Hub, caller: Caller) -> list[Waiting]:
    """One's own uploads that are registered nowhere."""
    return [waiting(hub, caller, path.name.split(".")[0]) for path in sorted(folder_of(hub).glob(f"*.{caller.id}.waiting"))]


def followed(hub: Hub, caller: Caller, upload: Waiting) -> tuple[str, int] | None:
    """The data set whose next version it is by now, and the version; None where it follows no batch of one's own."""
    if upload.head is None or not upload.head.after:
        return None
    for row, masked in _own(hub, caller):
        if masked.batches[-1] == upload.head.after:
            with hub.database.reading() as db:
                check(hub, db, caller, "dataset.version", data_set_object(row))
            made = replace(masked, batches=(*masked.batches, upload.head.id))
            with _kept(hub, caller, upload):
                return row.name, add_masked(hub, caller, row.id, made, masked)
    _waiting_file(hub, caller, upload.id).unlink()
    if any(upload.head.id in masked.batches for _, masked in _own(hub, caller)):  # sent twice
        raise Conflict("The batch was not taken", why="it is here already", instead="the next one")
    raise Conflict(
        "The batch was not taken",
        why="it follows a batch that is not the newest of a data set of yours here",
        instead="the batches in the order in which they were written",
    )


def registered(hub: Hub, caller: Caller, asked: NewMaskedDataSet, budget: Guarantee | None) -> DataSet:
    """The data set of a first batch."""
    upload = waiting(hub, caller, asked.upload)
    if upload.head is None or upload.head.after:
        raise InvalidParameter("The upload is invalid", why="it is not a first batch", instead="the first that was written")
    form = upload.head.format
    told = {
        "columns": {name: each.describe() for name, each in form.columns.items()},
        "unit": form.unit,
        "max_rows": form.max_rows,
    }
    declaration = check_declaration(asked.name, {**told, "reasons": dict.fromkeys(form.columns, asked.reason)})
    check_reasons(declaration)
    masked = Masked(name=_name(asked.holder), key=_key(asked.key), batches=(upload.head.id,), layers=_layers(asked.layers))
    wanted = Wanted(
        name=asked.name,
        title=asked.title,
        about=asked.about,
        declaration=declaration,
        population=asked.population,
        budget=budget,
        listed=asked.listed,
        row_is_person=form.unit is None,
        metadata={"contribution": dict(form.policy)},  # binds here as it does at the key holder, and nobody here can change it
    )
    with _kept(hub, caller, upload):
        return made_of(hub, caller, MaskedRows(hub, masked), wanted)


def renewed(hub: Hub, caller: Caller, name: str, holder: str, key: str, uploads: Sequence[str]) -> int:
    """The same cells under the pads of another key holder: the version. The versions before it are destroyed."""
    row, masked = _one(hub, caller, name)
    with hub.database.reading() as db:
        check(hub, db, caller, "dataset.manage", data_set_object(row))
    if len(uploads) != len(masked.batches):
        count = len(masked.batches)
        raise InvalidParameter(
            "The differences are invalid", why=f"there are {count} batches", instead="one for each, in their order"
        )
    made: dict[str, Path] = {}
    for batch, number in zip(masked.batches, uploads, strict=True):
        difference, out = _waiting_file(hub, caller, number), folder_of(hub) / f"{new_id()}.{caller.id}.renewed"
        if not difference.is_file():
            raise Missing("There is no such upload", why="it does not exist, or was used", instead="/masked")
        head = apply_difference(batch_file(hub, batch), difference, out)
        if head.after != next(reversed(made), ""):
            raise InvalidDeclaration(
                "The differences are invalid", why="they are in another order", instead="as they were written"
            )
        made[head.id] = out
    for name, out in made.items():  # all at once: whoever sweeps leaves what is new for a minute
        os.utime(out)
        flush(out)
        settle(out, batch_file(hub, name))
    now = replace(masked, name=_name(holder), key=_key(key), batches=tuple(made))
    version = add_masked(hub, caller, row.id, now, masked, alone=True)
    for each in uploads:
        _waiting_file(hub, caller, each).unlink(missing_ok=True)
    sweep_masked(hub)
    return version


def keep_scores(
    hub: Hub,
    caller: Caller,
    name: str,
    scores: Mapping[str, str],
    verified: Mapping[str, Any] | None = None,
    layers: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """What the owner's own tool found that attackers would get of each field, how each is stored, and whether the store is as it
    was written: for the owner alone, encrypted, for a week. What is not said stays as it was."""
    row, _ = _one(hub, caller, name)
    texts = [*scores, *scores.values()]
    if (
        not (scores or verified or layers)
        or len(scores) > _MOST_FIELDS
        or not all(is_text(each, _LONGEST_TEXT, lines=True) for each in texts)
    ):
        raise InvalidParameter("The scores are invalid", why="they are not texts", instead="what cloister vault score printed")
    before = _kept_view(hub, caller, row.id) or {}
    seen = before.get("verified") if verified is None else {**verified, "at": hub.now().isoformat()}
    found = {"scores": dict(scores) or before.get("scores", {}), "verified": seen}
    found["layers"] = _layers(layers) if layers else before.get("layers", {})
    view = view_of(hub, caller.id, row.id, SCORES, {"fields": len(scores)}, found)
    with hub.database.begin() as db:
        check(hub, db, caller, "dataset.manage", data_set_object(row))
        forget_views(db, hub.now())
        db.execute(delete(OwnerView).where(OwnerView.data_set == row.id, OwnerView.kind == SCORES))
        db.add(view)
        write(hub, db, caller, "dataset.manage", kind="data-set", object_id=row.id, data_sets=[row.id], name=row.name)


def standings(hub: Hub, caller: Caller) -> list[Standing]:
    """One's own data sets of masked cells."""
    return [standing(hub, caller, row.name) for row, _ in _own(hub, caller)]


def standing(hub: Hub, caller: Caller, name: str) -> Standing:
    """One of them."""
    row, masked = _one(hub, caller, name)
    files = [Batch(batch_file(hub, each)) for each in masked.batches]
    gone = withdrawn_by([each.head for each in files])
    batches = []
    for each in files:
        withdrawn = sum(after - first for first, after in gone.get(each.head.id, ()))
        batches.append((each.head.id, each.head.rows, withdrawn, each.path.stat().st_size))
    kept = _kept_view(hub, caller, row.id) or {}
    verified = kept.get("verified")
    return Standing(
        row=row,
        holder=masked.name,
        fingerprint=fingerprint(masked.key),
        present=line_of(hub, masked).presence[masked.name],
        layers=kept.get("layers") or {field: list(words) for field, words in masked.layers.items()},
        format=str(files[0].head.format),
        batches=batches,
        stored=files[-1].sums(0, ((0, 1),)).tobytes()[:_SHOWN_BYTES].hex(" ", 8),
        scores=kept.get("scores", {}),
        verified=verified and {**verified, "at": datetime.fromisoformat(verified["at"])},
    )


def _kept_view(hub: Hub, caller: Caller, data_set: str) -> dict[str, Any] | None:
    mine = (OwnerView.data_set == data_set) & (OwnerView.person == caller.id) & (OwnerView.kind == SCORES)
    with hub.database.reading() as db:
        view = db.scalar(select(OwnerView).where(mine, OwnerView.created >= hub.now() - VIEW_KEPT))
        return None if view is None else found_in(hub, view)


def _own(hub: Hub, caller: Caller) -> list[tuple[DataSet, Masked]]:
    with hub.database.reading() as db:
        return [(row, masked) for row, masked in legible(hub, masked_versions(db), masked_in) if row.owner == caller.id]


def _one(hub: Hub, caller: Caller, name: str) -> tuple[DataSet, Masked]:
    for row, masked in _own(hub, caller):
        if row.name == name:
            return row, masked
    raise Missing("There is no such data set", why="it does not exist, or is not yours", instead="/masked")


class _kept:  # noqa: N801 - it stands in a `with`
    """An upload under the name of its batch, too, which it loses again where what follows fails."""

    def __init__(self, hub: Hub, caller: Caller, upload: Waiting) -> None:
        assert upload.head is not None
        self._from, self._to = _waiting_file(hub, caller, upload.id), batch_file(hub, upload.head.id)

    def __enter__(self) -> None:
        try:
            os.link(self._from, self._to)
        except FileExistsError:
            raise Conflict("The batch was not taken", why="it is here already", instead="the next one") from None
        os.utime(self._to)
        flush(self._to.parent)

    def __exit__(self, kind: object, error: object, _: object) -> None:
        if kind is None:
            self._from.unlink(missing_ok=True)
        elif isinstance(error, CloisterError) and not isinstance(error, DatabaseUnavailable):  # or it may be committed
            self._to.unlink()


def _waiting_file(hub: Hub, caller: Caller, number: str) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", number):
        raise Missing("There is no such upload", why="it does not exist, or was used", instead="/masked")
    return folder_of(hub) / f"{number}.{caller.id}.waiting"


def _is_difference(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK


def _key(text: str) -> bytes:
    try:
        found = bytes.fromhex(text.strip())
    except ValueError:
        found = b""
    if len(found) != 64:
        raise InvalidParameter(
            "The key holder's key is invalid", why="it has 128 digits", instead="the key that cloister csp show prints"
        )
    return found


def _name(text: str) -> str:
    if not is_text(text, 100) or not text or "/" in text:
        raise InvalidParameter(
            "The key holder's name is invalid", why="it is empty, too long or has a slash", instead="its name in csp.toml"
        )
    return text


def _layers(given: Mapping[str, Any]) -> dict[str, list[str]]:
    words = [each for name, found in given.items() for each in (name, *found)]
    if len(given) > _MOST_FIELDS or not all(is_text(each, 200) for each in words):
        raise InvalidParameter(
            "The fields are invalid", why="they are not names with their layers", instead="what cloister vault show --json prints"
        )
    return {name: list(found) for name, found in given.items()}
