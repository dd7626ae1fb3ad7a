"""Batches of masked cells: what an owner uploads, and what of it the hub and the key holder add up.

    cloister masked cells 1\\n | length of the header, 4 bytes | header, canonical JSON | key, sealed | cells, 8 bytes each

Each batch has a key of its own, drawn when it is written and sealed to the key holder about the header. Of a marginal, the pads
of `PAGE` rows are the stream of AES-256 in counter mode under a key that follows from the batch's, the marginal's place and the
page's: no position of any stream masks two values, and rows are never written again. A row that changed is one more row of its
person, as far as `max_rows` has room for it: nothing but the hub's word leaves the old one out of later sums.

Rows stand in random places among the padding. So a person who is added or removed takes the place of a row of zeros and moves
nobody else, and a hub that asks about some places of a batch learns no more of one person than by asking about all.

The header has the format, bounds included. Whoever relays a batch can't put another header before the same key: it would not
open. A cell and its pad modulo 2⁶⁴ are uniform, whatever the cell holds (`cloister.crypto.masking`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.crypto import canonical_json, seal
from cloister.crypto.masking import add_mask
from cloister.crypto.sealing import OVERHEAD
from cloister.errors import EngineError, InvalidDeclaration
from cloister.noise import default_random
from cloister.tables import PrivateTable, Text, Workspace, prepare
from cloister.together.journal import Journal
from cloister.together.sealed.format import MaskedFormat

MAGIC = b"cloister masked cells 1\n"
PAGE = 1024
KEY_BYTES = 32
LONGEST_HEADER = 1 << 20
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

    @classmethod
    def read(cls, path: Path) -> Head:
        """Of a file."""
        start = len(MAGIC) + 4
        with path.open("rb") as file:
            data = file.read(start)
            length = int.from_bytes(data[len(MAGIC) :], "big")
            if not data.startswith(MAGIC) or length > LONGEST_HEADER:
                raise _damaged(f"{path.name} is no batch of masked cells")
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
        head = self.head
        sizes = [head.format.numbers(each) for each in head.format.marginals]
        start, numbers = len(head.data) + 8 * head.rows * sum(sizes[:place]), sizes[place]
        cells = np.memmap(self.path, dtype="<u8", mode="r", offset=start, shape=(head.rows, numbers))
        total = np.zeros(numbers, dtype=np.uint64)
        for first, after in ranges:
            total += cells[first:after].sum(axis=0, dtype=np.uint64)
        return total


def pad_sums(key: bytes, declared: MaskedFormat, place: int, ranges: Ranges) -> npt.NDArray[np.uint64]:
    """The sums of the pads of those cells, from the batch's key alone."""
    numbers = declared.numbers(declared.marginals[place])
    total = np.zeros(numbers, dtype=np.uint64)
    for page, parts in pages_of(ranges).items():
        pads = _pads(key, place, page, parts[-1][1], numbers)
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


def _pads(key: bytes, place: int, page: int, rows: int, numbers: int) -> npt.NDArray[np.uint64]:
    """The pads of the first rows of a page."""
    vector = np.zeros((rows * numbers, 1), dtype=np.uint64)
    add_mask(vector, hmac.digest(key, f"pads {place} {page}".encode(), "sha256"))
    return vector.reshape(rows, numbers)


class Sealer:
    """An owner's end: bounds values, counts people's rows, masks, and seals the key to the key holder.

    `counts` remembers how many rows each person had in earlier batches of the format for this key holder, under a key of its own
    (a table with a unit needs it); it and the rows stay with the owner. Where a row is a person, nobody may be in two batches of
    a format: the owner sees to that. What is drawn is always fresh: the same key twice would be the same pads.
    """

    def __init__(self, declared: MaskedFormat, key_holder: bytes, *, counts: Journal | None = None) -> None:
        if len(key_holder) != 2 * KEY_BYTES:
            raise InvalidDeclaration("The key holder's key is invalid", why="it has 64 bytes", instead="cloister csp show")
        if declared.unit is not None and counts is None:
            raise InvalidDeclaration(
                "counts= is missing",
                why=f"{declared.unit!r} says whose row it is, and a person's rows count over all batches",
                instead="counts=Journal(folder)",
            )
        self.format, self._to = declared, key_holder[KEY_BYTES:]
        name = hashlib.sha256(declared.text.encode() + self._to).hexdigest()  # no request has batches of two formats
        self._counts = None if counts is None else counts.of(name)

    def seal(self, source: Any, path: str | Path) -> Path:
        """Writes a batch of these rows: anything that a private table is made of."""
        codes = self._codes(source)
        real = len(next(iter(codes.values())))
        rows = max(1, -(-real // self.format.pad_to)) * self.format.pad_to
        header = canonical_json({"format": self.format.plain(), "rows": rows}).encode()
        about, key = MAGIC + len(header).to_bytes(4, "big") + header, default_random().bytes(KEY_BYTES)
        if len(header) > LONGEST_HEADER:
            raise InvalidDeclaration("The format is invalid", why="it is longer than a header", instead="fewer categories")
        path = Path(path)
        draft = path.with_name(f"{path.name}.draft")
        with draft.open("wb") as file:
            file.write(about + seal(self._to, key, about))
            for each in self._masked(codes, key, default_random().permutation(rows), real):
                file.write(each.astype("<u8").tobytes())
        draft.replace(path)
        return path

    def _masked(
        self, codes: Mapping[str, npt.NDArray[Any]], key: bytes, order: npt.NDArray[np.int64], real: int
    ) -> Iterator[npt.NDArray[np.uint64]]:
        """Pages of masked cells; `order` says which row is in each place, from `real` on padding."""
        for place, marginal in enumerate(self.format.marginals):
            for page in range(-(-len(order) // PAGE)):
                here = order[page * PAGE : (page + 1) * PAGE]
                masked, kept = _pads(key, place, page, len(here), self.format.numbers(marginal)), here < real
                cells = self.format.encoded({name: values[here[kept]] for name, values in codes.items()}, marginal)
                masked[kept] += cells.view(np.uint64)
                yield masked

    def _codes(self, source: Any) -> dict[str, npt.NDArray[Any]]:
        """The rows in codes, as they count: values within bounds, and of each person no more rows than declared."""
        columns = dict(self.format.columns)
        if self.format.unit is not None:
            columns.setdefault(self.format.unit, Text())
        table = PrivateTable(source, columns, self.format.unit, self.format.max_rows, row_is_person=True)
        prepared = prepare(table, workspace=Workspace.of())
        try:
            codes = prepared.rows(list(columns))
        finally:
            prepared.close()
        if self.format.unit is None:
            return codes
        kept = self._within(codes[self.format.unit].tolist())
        return {name: codes[name][kept] for name in self.format.columns}

    def _within(self, units: Sequence[Any]) -> npt.NDArray[np.bool_]:
        """Which rows still count; what they take is on disk before the batch is."""
        assert self._counts is not None
        assert self.format.max_rows is not None
        journal = self._counts
        with journal.locked():
            key = journal.get("key") or default_random().bytes(KEY_BYTES)
            journal.put("key", key)
            used: dict[str, int] = json.loads(journal.get("rows") or b"{}")
            kept = np.zeros(len(units), dtype=np.bool_)
            for place, unit in enumerate(units):
                name = hmac.digest(key, str(unit).encode(), "sha256").hex()
                if used.get(name, 0) < self.format.max_rows:
                    used[name], kept[place] = used.get(name, 0) + 1, True
            journal.put("rows", canonical_json(used).encode())
        return kept


def _damaged(why: str) -> EngineError:
    return EngineError("A batch could not be read", why=why, instead="the batch as its owner wrote it")
