"""Masked cells of a collection: what a hub and a key holder answer questions from, with noise, and neither can read.

A format declares marginals, sums, squares and products (`cloister.together.MaskedFormat`); its sealer (`Sealer`) masks a batch.
This file says which records go into a batch. A batch has the records that are new or have changed since the last one, at places
drawn at random among padding, and withdraws the places of those that changed or are gone. So a record is in each sum at most
once, with its newest values as of the last batch; what is not in a batch is not asked about.

No position is used twice: a batch has a key of its own and is written once, under a number that follows the last one. The
client's state says where each record's cells are before the batch has its name, so that after a crash the file is either named or
written again by nobody. A state from a backup would write a second batch of the same number: the key holder refuses the second.
Who begins again has each record in two first batches; they name one beginning, and the key holder puts both in no sum.

Who forgets a person deletes their records, so the next batch withdraws their cells, and the hub overwrites them.
"""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from cloister.errors import InvalidDeclaration, InvalidParameter, UnknownColumn
from cloister.vault.index import HANDLE
from cloister.vault.state import Cell, CellBatch
from cloister.vault.values import comparable, encode

if TYPE_CHECKING:
    from cloister.vault.changes import Reader
    from cloister.vault.store import Row

Ranges: TypeAlias = tuple[tuple[int, int], ...]
SUFFIX = ".masked"
_EMPTIED = 2
"""A batch of which less than one in so many rows is left is withdrawn whole: plans name the rows that are left."""


class Format(Protocol):
    """What is sealed of a record."""

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns."""

    @property
    def unit(self) -> str | None:
        """The column that says whose record it is."""

    @property
    def max_rows(self) -> int | None:
        """How many records of a person count."""


class Header(Protocol):
    """What stands before the cells of a batch."""

    @property
    def id(self) -> str:
        """By which it is known."""

    @property
    def rows(self) -> int:
        """With padding."""


class CellSealer(Protocol):
    """Masks cells: a `cloister.together.Sealer`."""

    @property
    def format(self) -> Format:
        """The format."""

    @property
    def name(self) -> str:
        """Of format and key holder."""

    def add(
        self, source: Mapping[str, Sequence[Any]], path: Path, *, after: str, withdrawn: Mapping[str, Ranges], beginning: str
    ) -> tuple[Header, list[int]]:
        """Writes a batch: its header, and the place of each row."""


@dataclass(frozen=True, kw_only=True)
class Masked:
    """What was written: a batch to upload, or None where nothing had changed."""

    path: Path | None
    added: int = 0
    withdrawn: int = 0
    waiting: int = 0
    """Records that don't count, since their person has `max_rows` others."""


class Masker:
    """Writes the batches of one collection for one format and key holder."""

    def __init__(self, reader: Reader, names: Iterable[str], person: str | None, sealer: CellSealer, folder: Path) -> None:
        self.reader, self.state, self.sealer, self.folder = reader, reader.state, sealer, folder
        self.table, self.form, self.format = reader.table, sealer.name, sealer.format
        self.unit, self.columns = self.format.unit, list(dict.fromkeys([*self.format.columns, *filter(None, [self.format.unit])]))
        known = {*names, "_id"}
        for name in self.columns:
            if name not in known:
                raise UnknownColumn(
                    f"The format has a column {name!r} that is not known",
                    why="the collection does not declare it",
                    instead=", ".join(map(repr, sorted(known))),
                )
        if self.unit != person:
            raise InvalidDeclaration(
                "The format is invalid",
                why=f"the collection says whose record it is by {person!r}" if person else "no field says whose record it is",
                instead=f"unit={person!r}, max_rows=…" if person else "unit=None",
            )

    def write(self, *, restart: bool = False) -> Masked:
        """One batch; with `restart`, the first of all records once more."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("ab") as lock:  # of two processes, the second waits and goes on from the first
            fcntl.flock(lock, fcntl.LOCK_EX)
            if restart:
                self._check_free(0)
                self.state.drop_cells(self.table, self.form)
            return self._next()

    def _next(self) -> Masked:
        self._named()
        with self.reader.reading():
            before = self.state.cell_batches(self.table, self.form)
            leaves = {handle: leaf.mac for handle, leaf in self.state.leaves(self.table).items()}
            known = self.state.cells(self.table, self.form)
            changed = [handle for handle, mac in leaves.items() if handle not in known or known[handle].mac != mac]
            fresh = self._read(changed)
            same = {handle: each for handle, each in fresh.items() if handle in known and known[handle].digest == each.digest}
            renewed = fresh.keys() - same.keys()
            stay = {handle: cell for handle, cell in known.items() if handle in leaves and handle not in renewed}
            emptied = _emptied(before, stay)
            moved = [handle for handle, cell in stay.items() if cell.batch in emptied]
            again = self._read(moved)
        stay = {handle: cell for handle, cell in stay.items() if cell.batch not in emptied}
        wanted, waiting = self._counted(stay, {**{handle: fresh[handle] for handle in fresh if handle in renewed}, **again})
        gone = {handle: cell for handle, cell in known.items() if handle not in stay}
        touched = {handle: stay[handle]._replace(mac=leaves[handle]) for handle in same if handle in stay}
        if not wanted and not gone:
            self.state.keep_cells(self.table, self.form, None, touched, [], before=len(before))
            return Masked(path=None, waiting=waiting)
        path = self._write(before, wanted, gone, emptied, touched)
        return Masked(path=path, added=len(wanted), withdrawn=len(gone), waiting=waiting)

    def _write(
        self,
        before: Sequence[CellBatch],
        wanted: Mapping[bytes, _Fresh],
        gone: Mapping[bytes, Cell],
        emptied: set[int],
        touched: Mapping[bytes, Cell],
    ) -> Path:
        places: dict[str, list[int]] = {}
        for cell in gone.values():
            if cell.batch not in emptied:
                places.setdefault(before[cell.batch].id, []).append(cell.place)
        withdrawn = {batch: _ranges(each) for batch, each in places.items()}
        withdrawn |= {before[number].id: ((0, before[number].rows),) for number in emptied}
        source = {name: [each.values[at] for each in wanted.values()] for at, name in enumerate(self.columns)}
        self._check_free(len(before))
        draft = self._path(len(before), ".new")
        beginning = self.reader.keys.mac("beginning of cells", self.table, b"").hex()  # the same after a restoration
        after = before[-1].id if before else ""
        head, found = self.sealer.add(source, draft, after=after, withdrawn=withdrawn, beginning=beginning)
        cells = {
            handle: Cell(len(before), place, each.person, each.digest, each.mac)
            for (handle, each), place in zip(wanted.items(), found, strict=True)
        }
        made = CellBatch(head.id, head.rows, len(wanted))
        left = gone.keys() - cells.keys()
        self.state.keep_cells(self.table, self.form, made, {**touched, **cells}, left, before=len(before))
        return draft.rename(self._path(len(before)))

    def _check_free(self, number: int) -> None:
        if self._path(number).exists():
            raise InvalidParameter(
                "The batch was not written",
                why="its folder has a batch of this number already, and this client would write another",
                instead="mask(sealer, another_folder, restart=True), and another data set of the hub",
            )

    def _path(self, number: int, more: str = "") -> Path:
        return self.folder / f"{self.form[:12]}-{number:06d}{SUFFIX}{more}"

    def _named(self) -> None:
        """A batch that the state has and that a crash left without its name gets it."""
        number = len(self.state.cell_batches(self.table, self.form)) - 1
        if number >= 0 and self._path(number, ".new").exists():
            self._path(number, ".new").rename(self._path(number))

    def _read(self, handles: Sequence[bytes]) -> dict[bytes, _Fresh]:
        return {row.handle: self._fresh(row, leaf.mac) for row, leaf in self.reader.known(handles)}

    def _fresh(self, row: Row, mac: bytes) -> _Fresh:
        document = self.reader.sealer.opened(row)
        values = [document.get(name) for name in self.columns]
        person = b""
        if self.unit is not None:
            person = self.reader.keys.mac("person of cells", self.table, comparable(document[self.unit]))[:HANDLE]
        return _Fresh(values, person, self.reader.keys.mac("cells", self.table, encode(values)), mac)

    def _counted(self, stay: Mapping[bytes, Cell], fresh: Mapping[bytes, _Fresh]) -> tuple[dict[bytes, _Fresh], int]:
        """Which records count, where a person may have no more than so many; and how many don't."""
        if self.unit is None:
            return dict(fresh), 0
        most = self.format.max_rows or 1
        counts = Counter(cell.person for cell in stay.values())
        wanted = {}
        for handle, each in fresh.items():
            if counts[each.person] < most:
                counts[each.person] += 1
                wanted[handle] = each
        return wanted, len(fresh) - len(wanted)


@dataclass(frozen=True)
class _Fresh:
    """A record that goes into the next batch."""

    values: list[Any]
    person: bytes
    digest: bytes
    mac: bytes


def _emptied(batches: Sequence[CellBatch], stay: Mapping[bytes, Cell]) -> set[int]:
    left = Counter(cell.batch for cell in stay.values())
    return {number for number, each in enumerate(batches) if 0 < left[number] * _EMPTIED < each.sealed}


def _ranges(places: Iterable[int]) -> Ranges:
    found: list[tuple[int, int]] = []
    for place in sorted(places):
        if found and found[-1][1] == place:
            found[-1] = found[-1][0], place + 1
        else:
            found.append((place, place + 1))
    return tuple(found)
