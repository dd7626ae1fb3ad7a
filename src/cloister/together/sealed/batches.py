"""Batches of masked cells: what an owner uploads, and what of it the hub and the key holder add up.

    cloister masked cells 1\\n | length of the header, 4 bytes | header, canonical JSON | key, sealed | cells, 8 bytes each

Each batch has a key of its own, drawn when it is written and sealed to the key holder about the header. Of a marginal, the pads
of `PAGE` rows are the stream of AES-256 in counter mode under a key that follows from the batch's, the marginal's place and the
page's: no position of any stream masks two values, and rows are never written again. A row that changed is one more row of its
person, as far as `max_rows` has room for it: nothing but the hub's word leaves the old one out of later sums.

Rows stand in random places among the padding. So a person who is added or removed takes the place of a row of zeros and moves
nobody else, and a hub that asks about some places of a batch learns no more of one person than by asking about all.

A batch may follow another of its owner's and *withdraw* rows of those before it, by their places: who keeps count of places (a
sealed collection) puts a changed row into the next batch and withdraws the old one. The key holder accepts a batch after the one
that it follows, one follower of each, and no sum over withdrawn rows any more: so the old row and the new one are never in one
sum, whichever batches a hub shows, and what the hub learns of places is which were withdrawn when. A first batch may name its
*beginning*, which stays when rows are sealed from the start again or keys are renewed: two first batches of one beginning, and
what follows them, are never in one sum either.

The header has the format, bounds included. Whoever relays a batch can't put another header before the same key: it would not
open. Nor can a stranger charge the people that a format names: the owner signs the header, with a keyed digest of the batch's key
in it, for one key holder, which takes batches of the owners that it was told about, and of nobody else.

A cell and its pad modulo 2⁶⁴ are uniform, whatever the cell holds (`cloister.crypto.masking`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.crypto import SigningKey, canonical_json, is_signed, seal
from cloister.crypto.masking import add_mask
from cloister.crypto.sealing import OVERHEAD
from cloister.errors import EngineError, InvalidDeclaration
from cloister.noise import default_random
from cloister.tables import Integer, PrivateTable, Text, Workspace, prepare
from cloister.together.journal import Journal
from cloister.together.sealed.format import MaskedFormat

MAGIC = b"cloister masked cells 1\n"
PAGE = 1024
KEY_BYTES = 32
LONGEST_HEADER = 1 << 20
_NUMBER = "number of the row"
Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Rows of a batch: from, up to and not including; in their order, and apart."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """What stands before the cells of a batch: its public header and its sealed key."""

    data: bytes

    @cached_property
    def id(self) -> str:
        """By which a batch is known."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def about(self) -> bytes:
        """The header, which the sealed key is bound to."""
        return self.data[:-_SEALED]

    @property
    def sealed(self) -> bytes:
        """The key of the batch, sealed."""
        return self.data[-_SEALED:]

    @cached_property
    def _told(self) -> dict[str, Any]:
        start = len(MAGIC) + 4
        text = self.about[start:]
        try:
            told = json.loads(text)
            if canonical_json(told).encode() != text or not self.about.startswith(MAGIC) or type(told["rows"]) is not int:
                raise ValueError
            if told.get("withdrawn") and not told.get("after"):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _damaged("its header can't be read") from None
        return dict(told)

    @cached_property
    def format(self) -> MaskedFormat:
        """The format of the batch."""
        return MaskedFormat.from_plain(self._told["format"])

    @property
    def rows(self) -> int:
        """How many rows it has, padding included."""
        return int(self._told["rows"])

    @property
    def after(self) -> str:
        """The batch that it follows; "" for a first one."""
        return str(self._told.get("after", ""))

    @property
    def beginning(self) -> str:
        """What a first batch is of: the same rows may be in another of the same beginning."""
        return str(self._told.get("beginning") or self.id)

    @property
    def signer(self) -> str:
        """Who signed it, by key; "" where nobody did, as in earlier versions."""
        return str(self._told.get("signed by", ""))

    @property
    def owner(self) -> str:
        """Whose batch it is: of the signer's, or of who signed the one that it renews."""
        return str(self._told.get("owner") or self.signer)

    def is_signed(self, to: bytes, key: bytes) -> bool:
        """Whether its signer signed this header about this key of the batch, for this key holder."""
        told = dict(self._told)
        try:
            signer, signature = bytes.fromhex(self.signer), bytes.fromhex(told.pop("signature", ""))
        except (ValueError, TypeError):
            return False
        return told.get("key") == _digest_of(key) and is_signed(signer, _statement(told, to), signature)

    @cached_property
    def withdrawn(self) -> dict[str, Ranges]:
        """Rows of batches before it that no longer count."""
        found = {}
        try:
            for batch, pairs in dict(self._told.get("withdrawn", {})).items():
                found[batch] = tuple((first, after) for first, after in pairs)
                ends = [0, *(each for pair in found[batch] for each in pair)]
                if not all(type(each) is int for each in ends) or sorted(ends) != ends:
                    raise ValueError
        except (ValueError, TypeError):
            raise _damaged("its header withdraws rows that do not exist") from None
        return found

    def following(self, names: Mapping[str, str]) -> dict[str, Any]:
        """What its header says about other batches, where those have other names now."""
        if not self.after:
            return {"beginning": self.beginning}
        return about_others(names[self.after], {names[batch]: ranges for batch, ranges in self.withdrawn.items()}, "")

    @classmethod
    def read(cls, path: Path) -> Head:
        """Of a file."""
        start = len(MAGIC) + 4
        if not path.is_file():
            raise InvalidDeclaration(
                "The batches are invalid", why=f"there is no {path.name}", instead="the *.masked files, or their folder"
            )
        with path.open("rb") as file:
            data = file.read(start)
            length = int.from_bytes(data[len(MAGIC) :], "big")
            if not data.startswith(MAGIC) or length > LONGEST_HEADER:
                raise _damaged(f"{path.name} is not a batch of masked cells")
            found = cls(data=data + file.read(length + _SEALED))
        if path.stat().st_size != len(found.data) + found.rows * found.format.bytes_a_row:
            raise _damaged(f"{path.name} is not whole")
        return found


_SEALED = KEY_BYTES + OVERHEAD


@dataclass(frozen=True)
class Batch:
    """A batch as the hub has it.

    >>> from tempfile import TemporaryDirectory
    >>> from cloister.tables import Integer
    >>> from cloister.together import KeyHolder, Marginal
    >>> format = MaskedFormat(columns={"age": Integer(17, 90)}, marginals=[Marginal(sums=["age"])], population="patients")
    >>> with TemporaryDirectory() as folder:
    ...     path = Sealer(format, KeyHolder().public).seal({"age": [39, 51]}, Path(folder) / "first.masked")
    ...     Batch(path).head.rows, Batch(path).sums(0, ((0, 1024),)).size
    (1024, 3)
    """

    path: Path

    @cached_property
    def head(self) -> Head:
        """Its header, and its sealed key."""
        return Head.read(self.path)

    def sums(self, place: int, ranges: Ranges) -> npt.NDArray[np.uint64]:
        """The sums of a marginal's masked cells over some rows."""
        cells = self._cells(place, "r")
        total = np.zeros(cells.shape[1], dtype=np.uint64)
        for first, after in ranges:
            total += cells[first:after].sum(axis=0, dtype=np.uint64)
        return total

    def erase(self, ranges: Ranges) -> None:
        """Overwrites the cells of rows that were withdrawn: not even the key holder's help opens them again."""
        for place in range(len(self.head.format.marginals)):
            cells = self._cells(place, "r+")
            for first, after in ranges:
                if cells[first:after].any():
                    cells[first:after] = 0
            cells.flush()

    def _cells(self, place: int, mode: Literal["r", "r+"]) -> np.memmap[Any, np.dtype[np.uint64]]:
        head = self.head
        sizes = [head.format.numbers(each) for each in head.format.marginals]
        start = len(head.data) + 8 * head.rows * sum(sizes[:place])
        return np.memmap(self.path, dtype="<u8", mode=mode, offset=start, shape=(head.rows, sizes[place]))


def in_order(heads: Sequence[Head]) -> list[Head]:
    """Each after the one that it follows. Refused: one is missing, two follow one, or one withdraws rows of none before it."""
    known, found, waiting = set[str](), list[Head](), sorted(heads, key=lambda each: each.id)
    followed = [each.after for each in waiting if each.after]
    while ready := [each for each in waiting if not each.after or each.after in known]:
        found += ready
        known |= {each.id for each in ready}
        waiting = [each for each in waiting if each.id not in known]
    if waiting or len({*followed}) < len(followed):
        raise InvalidDeclaration(
            "The batches are invalid",
            why="one follows a batch that is missing" if waiting else "two follow the same batch, so rows may be in both",
            instead="all batches of an owner, as they were written",
        )
    rows: dict[str, int] = {}
    for head in found:
        if any(ranges and ranges[-1][1] > rows.get(batch, 0) for batch, ranges in head.withdrawn.items()):
            raise InvalidDeclaration(
                "The batches are invalid",
                why="one withdraws rows that no batch before it has",
                instead="all batches of an owner, as they were written",
            )
        rows[head.id] = head.rows
    return found


def withdrawn_by(heads: Sequence[Head]) -> dict[str, Ranges]:
    """Of each batch the rows that later ones withdrew."""
    found: dict[str, list[tuple[int, int]]] = {}
    for head in heads:
        for batch, ranges in head.withdrawn.items():
            found.setdefault(batch, []).extend(ranges)
    return {batch: joined(ranges) for batch, ranges in found.items()}


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges in order, those that touch as one.

    >>> joined([(5, 7), (0, 2), (2, 3)])
    ((0, 3), (5, 7))
    """
    found: list[tuple[int, int]] = []
    for first, after in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(after, found[-1][1])
        elif first < after:
            found.append((first, after))
    return tuple(found)


def without(rows: int, gone: Ranges) -> Ranges:
    """The rows of a batch that are left.

    >>> without(10, ((0, 3), (5, 7)))
    ((3, 5), (7, 10))
    """
    ends = [0, *(each for pair in gone for each in pair), rows]
    return tuple((first, after) for first, after in zip(ends[::2], ends[1::2], strict=True) if first < after)


def pad_sums(key: bytes, declared: MaskedFormat, place: int, ranges: Ranges) -> npt.NDArray[np.uint64]:
    """The sums of the pads of those cells, from the batch's key alone."""
    numbers = declared.numbers(declared.marginals[place])
    total = np.zeros(numbers, dtype=np.uint64)
    for page, parts in pages_of(ranges).items():
        pads = pads_of(key, place, page, parts[-1][1], numbers)
        for first, after in parts:
            total += pads[first:after].sum(axis=0, dtype=np.uint64)
    return total


def pages_of(ranges: Ranges) -> dict[int, list[tuple[int, int]]]:
    """The pages that have some of these rows, and where in each they are: the pads of a page are made once.

    >>> pages_of(((0, 2), (5, 1030)))
    {0: [(0, 2), (5, 1024)], 1: [(0, 6)]}
    """
    found: dict[int, list[tuple[int, int]]] = {}
    for first, after in ranges:
        for page in range(first // PAGE, -(-after // PAGE)):
            found.setdefault(page, []).append((max(first - page * PAGE, 0), min(after - page * PAGE, PAGE)))
    return found


def pads_of(key: bytes, place: int, page: int, rows: int, numbers: int) -> npt.NDArray[np.uint64]:
    """The pads of the first rows of a page."""
    vector = np.zeros((rows * numbers, 1), dtype=np.uint64)
    add_mask(vector, hmac.digest(key, f"pads {place} {page}".encode(), "sha256"))
    return vector.reshape(rows, numbers)


def about_others(after: str, withdrawn: Mapping[str, Ranges] | None, beginning: str) -> dict[str, Any]:
    """What a header says about other batches."""
    told = {"after": after, "withdrawn": dict(withdrawn or {}), "beginning": "" if after else beginning}
    return {name: each for name, each in told.items() if each}


def headed(declared: MaskedFormat, rows: int, to: bytes, key: bytes, told: Mapping[str, Any], signer: SigningKey | None) -> Head:
    """The header of a batch, signed, with its key sealed about it."""
    said = {"format": declared.plain(), "rows": rows, **told}
    if signer is not None:
        said |= {"signed by": signer.public.hex(), "key": _digest_of(key)}
        said["signature"] = signer.sign(_statement(said, to)).hex()
    header = canonical_json(said).encode()
    if len(header) > LONGEST_HEADER:
        raise InvalidDeclaration(
            "The format is invalid", why="it is longer than a header", instead="fewer categories; or all rows sealed again"
        )
    about = MAGIC + len(header).to_bytes(4, "big") + header
    return Head(data=about + seal(to, key, about))


def _digest_of(key: bytes) -> str:
    """Of a batch's key, which is random: it tells nothing of it, nor of its pads."""
    return hmac.digest(key, b"named in the header", "sha256").hex()


def _statement(told: Mapping[str, Any], to: bytes) -> bytes:
    return canonical_json(["cloister masked cells", to.hex(), told]).encode()


class Sealer:
    """An owner's end: bounds values, counts people's rows, masks, and seals the key to the key holder.

    `owner` is the key that signs its batches. A key holder that is called by a hub takes none without: its operator is given the
    public half, and whose people it speaks for.

    `counts` remembers how many rows each person had in earlier batches of the format for this key holder, under a key of its own
    (a table with a unit needs it); it and the rows stay with the owner. Where a row is a person, nobody may be in two batches of
    a format: the owner sees to that. What is drawn is always fresh: the same key twice would be the same pads.
    """

    def __init__(
        self, declared: MaskedFormat, key_holder: bytes, *, counts: Journal | None = None, owner: SigningKey | None = None
    ) -> None:
        if len(key_holder) != 2 * KEY_BYTES:
            raise InvalidDeclaration("The key holder's key is invalid", why="it has 64 bytes", instead="cloister csp show")
        self.format, self._to = declared, key_holder[KEY_BYTES:]
        self.name = hashlib.sha256(declared.text.encode() + self._to).hexdigest()  # no request has batches of two formats
        self._counts, self._owner = None if counts is None else counts.of(self.name), owner
        self.rows = self.over = 0
        """Of the last batch, for its owner alone: the rows in it, and those that `seal` left out over `max_rows`."""

    def seal(self, source: Any, path: str | Path) -> Path:
        """Writes a batch of these rows: anything that a private table is made of."""
        path, unit = Path(path), self.format.unit
        if unit is not None and self._counts is None:
            raise InvalidDeclaration(
                "counts= is missing",
                why=f"{unit!r} says whose row it is, and a person's rows count over all batches",
                instead="counts=Journal(folder)",
            )
        codes, counts = self._codes(source), self._counts
        if unit is None or counts is None:
            self._written(codes, path, {})
            return path
        with counts.locked():
            _count(counts)
            kept, used = self._within(codes[unit].tolist(), counts)
            codes = {name: codes[name][kept] for name in self.format.columns}
            begun = canonical_json([f"{path.absolute()}.draft", used.decode()]).encode()
            self._written(codes, path, {}, lambda: counts.put("begun", begun))
            _count(counts)
        self.over += int((~kept).sum())
        return path

    def add(
        self,
        source: Mapping[str, Sequence[Any]],
        path: str | Path,
        *,
        after: str = "",
        withdrawn: Mapping[str, Ranges] | None = None,
        beginning: str = "",
    ) -> tuple[Head, list[int]]:
        """Writes a batch that follows another and withdraws rows, for someone who keeps the places of rows and counts those of
        each person (`max_rows`): its header, and the place of each row. `beginning` names what a first one is of."""
        rows = len(next(iter(source.values())))
        codes = self._codes({**source, _NUMBER: [*range(rows)]}, {_NUMBER: Integer(0, max(1, rows - 1))})
        order = np.argsort(codes.pop(_NUMBER), kind="stable")
        told = about_others(after, withdrawn, beginning)
        head, places = self._written({name: values[order] for name, values in codes.items()}, Path(path), told)
        return head, places.tolist()

    def _written(
        self, codes: Mapping[str, npt.NDArray[Any]], path: Path, told: Mapping[str, Any], counted: Callable[[], object] = bool
    ) -> tuple[Head, npt.NDArray[np.int64]]:
        self.rows = real = len(next(iter(codes.values())))
        rows = max(1, -(-real // self.format.pad_to)) * self.format.pad_to
        key = default_random().bytes(KEY_BYTES)
        head = headed(self.format, rows, self._to, key, told, self._owner)
        draft, order = path.with_name(f"{path.name}.draft"), default_random().permutation(rows)
        with draft.open("wb") as file:
            file.write(head.data)
            for each in self._masked(codes, key, order, real):
                file.write(each.astype("<u8").tobytes())
            file.flush()
            os.fsync(file.fileno())
        counted()  # when there is a batch, and before anybody has it
        draft.replace(path)
        return head, np.argsort(order)[:real]

    def _masked(
        self, codes: Mapping[str, npt.NDArray[Any]], key: bytes, order: npt.NDArray[np.int64], real: int
    ) -> Iterator[npt.NDArray[np.uint64]]:
        """Pages of masked cells; `order` says which row is in each place, from `real` on padding."""
        for place, marginal in enumerate(self.format.marginals):
            for page in range(-(-len(order) // PAGE)):
                here = order[page * PAGE : (page + 1) * PAGE]
                masked, kept = pads_of(key, place, page, len(here), self.format.numbers(marginal)), here < real
                cells = self.format.encoded({name: values[here[kept]] for name, values in codes.items()}, marginal)
                masked[kept] += cells.view(np.uint64)
                yield masked

    def _codes(self, source: Any, more: Mapping[str, Any] | None = None) -> dict[str, npt.NDArray[Any]]:
        """The rows in codes, with values within bounds."""
        columns = {**self.format.columns, **(more or {})}
        if self.format.unit is not None:
            columns.setdefault(self.format.unit, Text())
        table = PrivateTable(source, columns, self.format.unit, self.format.max_rows, row_is_person=True)
        prepared = prepare(table, workspace=Workspace.of())
        try:
            self.over = prepared.owner_report().rows_over_cap if self.format.unit and not more else 0
            return prepared.rows(list(columns))
        finally:
            prepared.close()

    def _within(self, units: Sequence[Any], counts: Journal) -> tuple[npt.NDArray[np.bool_], bytes]:
        """Which rows still count, and what is used with them."""
        key = counts.get("key") or default_random().bytes(KEY_BYTES)
        counts.put("key", key)
        used: dict[str, int] = json.loads(counts.get("rows") or b"{}")
        kept, most = np.zeros(len(units), dtype=np.bool_), self.format.max_rows or 0
        for place, unit in enumerate(units):
            name = hmac.digest(key, str(unit).encode(), "sha256").hex()
            if used.get(name, 0) < most:
                used[name], kept[place] = used.get(name, 0) + 1, True
        return kept, canonical_json(used).encode()


def _count(counts: Journal) -> None:
    """Count the rows of the last batch where it got its name; a draft, which nobody has, goes."""
    begun = json.loads(counts.get("begun") or "[]")
    if begun and Path(begun[0]).exists():
        Path(begun[0]).unlink()
    elif begun:
        counts.put("rows", begun[1].encode())
    counts.drop("begun")


def _damaged(why: str) -> EngineError:
    return EngineError("A batch could not be read", why=why, instead="the batch as its owner wrote it")
