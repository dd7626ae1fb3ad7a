"""The table store: tables at rest, encrypted, each version under a key of its own, which the master key wraps.

What is sent goes `receive` → `look` → `add`; what is stored is opened as a source of rows, and is destroyed. At no moment is a
row on the disk in plain: uploads and tables are encrypted files (`crypto/encrypted_file.py`), and what is converted between the
two goes through memory and pipes. The store keeps files; who owns them and the wrapped keys are in the hub's database, so that no
file alone can be read, and a new master key (`hub/keys.py`) changes no file.

Folders: `uploads/` holds what arrived whole, `tables/` what is stored, `working/` what is on its way.

Destroying a table destroys its key first: without it the file is noise. What remains after that: copies of the wrapped key in
backups of the database and in pages that the database has not written over yet, and, whoever has such a copy and the master
key, the file where a backup or a solid-state disk keeps its blocks (overwriting would not reach these, so it is not tried). To be
rid of that as well, give the hub a new master key afterwards and destroy the old one.
"""

# ruff: noqa: S608 - this file writes SQL: every name in it is our own

from __future__ import annotations

import hashlib
import io
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, Any, Literal

from cloister.crypto import DecryptedReader, Keyring, decrypted, new_key
from cloister.errors import EngineError, InvalidParameter
from cloister.hub.ids import new_id
from cloister.hub.storage.foreign import PACKED, Reading, kind_inside, read_foreign, unpacked
from cloister.hub.storage.limits import Limits, RefusedUpload
from cloister.hub.storage.spelling import cell_reader
from cloister.hub.storage.texts import PARQUET, Content
from cloister.hub.storage.uploads import Received, Upload, in_memory, settle
from cloister.hub.web.languages import N_
from cloister.tables.engines.connection import connected
from cloister.tables.engines.folder import PrivateFolder, sweep
from cloister.tables.engines.guard import guarded, tried
from cloister.tables.expression.names import quotation
from cloister.tables.sourcing.encrypted import EncryptedSource, MemoryFile, write_encrypted
from cloister.tables.sourcing.reading import read_days, read_number, read_truth, read_whole, spelt
from cloister.tables.sourcing.sources import CsvSource, ParquetSource, Source

_FOLDERS = ("uploads", "tables", "working")
_READ = 2**20
_CELLS = count()


class DamagedTable(EngineError):
    """A stored table that is not there, or not what was stored."""

    stored = "DamagedTable"


@dataclass(frozen=True, kw_only=True)
class StoredTable:
    """Where a table lies and how it is read again: what the hub's database keeps of it. `wrapped_key` None: it was destroyed."""

    file: str
    """Its name in the store."""
    digest: str
    """SHA-256 of the encrypted file."""
    length: int
    wrapped_key: bytes | None = field(repr=False)
    about: str
    """What its key is bound to: whose rows these are, and the file. A key that is put in another's place opens nothing."""


class TableStore:
    """Tables in a folder, under keys. Several processes may have the same one open."""

    def __init__(self, folder: Path, keys: Keyring, *, limits: Limits | None = None, keep_hours: float = 24) -> None:
        self.folder = folder
        self.limits = limits or Limits()
        self._keys = keys
        for name in _FOLDERS:
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep(folder / "working")
        for path in (folder / "uploads").iterdir():
            found = tried(path.stat, OSError)
            if found is not None and found.st_mtime < time.time() - keep_hours * 3600:
                path.unlink(missing_ok=True)

    def receiving(self, kind: str, how: Reading = Reading()) -> Upload:  # noqa: B008 - it is frozen
        """An upload of the kind csv or parquet, to be written piece by piece; `how` the values of a CSV file are written."""
        return Upload(self.folder, self._keys, kind, self.limits, how)

    def receive(self, chunks: Iterable[bytes], kind: str) -> Received:
        """Everything that comes, encrypted on its way to the disk; all of it or nothing."""
        with self.receiving(kind) as upload:
            for chunk in chunks:
                upload.write(chunk)
            return upload.finish()

    def look(self, received: Received, *, rows: int = 0) -> Header:
        """The columns of an upload, and so many of its first rows for its owner."""
        return header(self._upload(received), self._key_of(received), received.kind, rows)

    def converted(self, received: Received, how: Reading, name: str = "") -> Received:
        """A foreign file as a CSV file, read in a process of its own; the upload is gone afterwards, and stays where it fails.

        A compressed file may hold one: `name` says so where it does not say it itself. A Parquet file in it stays one.
        """
        with in_memory(self._upload(received), self._key_of(received)) as file:
            inside = kind_inside(file, received.kind, name, self.limits) if received.kind in PACKED else ""
            if inside:
                with unpacked(file, received.kind, self.limits) as plain:
                    made = self._converted(plain, inside, how)
            else:
                made = self._converted(file, received.kind, how)
        self.discard(received)
        return replace(made, digest=received.digest, length=received.length)

    def _converted(self, file: MemoryFile, kind: str, how: Reading) -> Received:
        how_written = how if kind in PACKED else replace(how, lines=1)
        with read_foreign(file, kind, how, self.limits) as pieces:
            first = next(pieces, b"")
            whole = kind in PACKED and first.startswith(PARQUET)
            with self.receiving("parquet" if whole else "csv", how_written) as upload:
                for piece in chain((first,), pieces):
                    upload.write(piece)
                return upload.finish()

    def add(self, received: Received, *, about: str) -> StoredTable:
        """An upload as a table under a fresh key, bound to what it is for. The upload is gone afterwards; a failure leaves it,
        and nothing else.
        """
        path, upload_key = self._upload(received), self._key_of(received)
        if received.kind == "csv":
            stored = self._written(CsvSource(SealedPlace(path, upload_key)), about)  # type: ignore[arg-type]
        else:
            with in_memory(path, upload_key) as file:
                stored = self._written(ParquetSource(Path(file.path)), about)
        path.unlink(missing_ok=True)
        return stored

    def respelled(self, stored: StoredTable, how: Mapping[str, Reading], *, about: str) -> StoredTable:
        """The same rows as another table under a fresh key, with the texts of these columns read as is said."""
        return self._written(self.open(stored, name=stored.file, how=how), about)

    def bound(self, stored: StoredTable, about: str) -> StoredTable:
        """The same table with its key bound to something else, as when an upload becomes a version; the file stays as it is."""
        assert stored.wrapped_key is not None
        key = self._keys.unwrap(stored.wrapped_key, stored.about)
        return replace(stored, wrapped_key=self._keys.wrap(key, about), about=about)

    def discard(self, received: Received) -> None:
        """Removes an upload that is not wanted."""
        (self.folder / "uploads" / _plain(received.id)).unlink(missing_ok=True)

    def open(
        self, stored: StoredTable, *, name: str, identity: str | None = None, how: Mapping[str, Reading] | None = None
    ) -> Source:
        """The rows of a stored table, after its digest was checked. `name` is its data set's, for messages; `identity` is the
        name by which the ledger knows the same people's rows again, whatever version of them this is; `how` the texts of some
        columns are to be read.
        """
        if stored.wrapped_key is None:
            raise _damaged(name, "its key was destroyed", "a new version of the data set: upload the file again")
        found = tried(lambda: file_digest(self.path(stored)), OSError)
        if found is None:
            raise _damaged(name, "its file is missing", _mend(stored))
        if found != stored.digest:
            raise _damaged(name, "its file is not what was stored", _mend(stored))
        key = self._keys.unwrap(stored.wrapped_key, stored.about)
        return RespelledSource(self.path(stored), key, identity=identity, how=how or {})

    def destroy(self, stored: StoredTable, forget: Callable[[], None]) -> None:
        """Destroys a table: first its key, with `forget`, which removes the wrapped key from the database and returns when that
        is committed; then its file. Stopped in between, what is left is a file that nobody can read.
        """
        forget()
        self.path(stored).unlink(missing_ok=True)

    def path(self, stored: StoredTable) -> Path:
        """Where the file of a table lies."""
        return self.folder / "tables" / _plain(stored.file)

    def _written(self, source: Source, about: str) -> StoredTable:
        """The rows of a source as a table under a fresh key; a failure leaves nothing."""
        key, file = new_key(), new_id()
        stored = StoredTable(file=file, digest="", length=0, wrapped_key=None, about=f"{about} file {file}")
        with PrivateFolder(self.folder / "working") as working:
            part = working / "part"
            written = write_encrypted(source, part, key, memory_limit=self.limits.memory)
            settle(part, self.path(stored))
        return replace(stored, digest=written.digest, length=written.bytes, wrapped_key=self._keys.wrap(key, stored.about))

    def _upload(self, received: Received) -> Path:
        path = self.folder / "uploads" / _plain(received.id)
        if not path.is_file():
            raise RefusedUpload(
                "The upload is not here", why="it was stored, discarded or too old", instead="upload the file again"
            )
        return path

    def _key_of(self, received: Received) -> bytes:
        return self._keys.unwrap(received.wrapped_key, f"upload {received.id}")

    def __repr__(self) -> str:
        return "<TableStore>"


def _plain(name: str) -> str:
    """The name of a file of ours, and no way out of the folder."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{22}", name):
        raise InvalidParameter(
            "The file is invalid", why="its name is not one that the hub gives", instead="the name as it was given"
        )
    return name


def file_digest(path: Path) -> str:
    """SHA-256 of what is in a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mend(stored: StoredTable) -> str:
    told = N_("the file {name} from a backup, or a new version of the data set: upload the file again")
    return told.format(name=f"tables/{stored.file}")


def _damaged(name: str, why: str, instead: str) -> DamagedTable:
    return DamagedTable(f"The data set {name!r} was not opened", why=why, instead=instead)


_BY_KIND = {
    **dict.fromkeys(("integer", "huge"), "Integer"),
    **dict.fromkeys(("float", "decimal"), "Real"),
    **dict.fromkeys(("date", "days", "timestamp", "timestamptz"), "Date"),
    "boolean": "Boolean",
    "other": "",
}
_BY_VALUE = (("Integer", read_whole), ("Real", read_number), ("Date", read_days), ("Boolean", read_truth))
_LONGEST_CATEGORY = 40
_START = 3  # chunks: the first two lines of any CSV file that was received are in them


@dataclass(frozen=True, kw_only=True)
class HeaderColumn:
    """One column: its name, its kind, and what it may be declared as, for the owner to fill in; nothing where nothing fits."""

    name: str
    kind: str
    suggested: str


@dataclass(frozen=True, kw_only=True)
class Header:
    """The columns of an upload, and the first rows where they were asked for: these are for the owner only, and never logged.

    Kinds are those that `PrivateTable` recognises; a CSV file is text throughout. A suggestion is what a column may be declared
    as. Bounds and categories are never filled in: one that is copied from the data says something about the rows. Where rows
    are shown, what is suggested for a text follows from the rows that are shown, and is for anyone who may see these."""

    columns: tuple[HeaderColumn, ...]
    rows: tuple[tuple[str | None, ...], ...] = field(default=(), repr=False)


class SealedPlace:
    """A sealed file, opened as the content that it holds."""

    suffix = ""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path, self._key = path, key

    def open(self, mode: Literal["rb"]) -> IO[bytes]:
        """The content from its first byte."""
        return io.BufferedReader(DecryptedReader(self._path.open("rb"), self._key), 2**20)


class RespelledSource(EncryptedSource):
    """A stored table with the texts of some columns read as is said (`spelling.py`), of numbers and days by that alone."""

    def __init__(self, path: Path, key: bytes, *, identity: str | None, how: Mapping[str, Reading]) -> None:
        super().__init__(path, key, identity=identity)
        self._how = {name: each for name, each in how.items() if self.schema.get(name) == "text"}
        told = {name for name, each in self._how.items() if each.numbers or each.dates}
        self.delimiters = {name: each for name, each in self.delimiters.items() if name not in told}

    def _read(self, connection: Any, relation: str) -> str:
        """A SELECT around them. What reads a cell fails on none; if it did, the value would be missing."""
        read = []
        for name, how in self._how.items():
            function, column = f"cloister_cell_{next(_CELLS)}", quotation(name)
            connection.create_function(
                function, cell_reader(how), ["VARCHAR"], "VARCHAR", null_handling="special", exception_handling="return_null"
            )
            read.append(f"{function}(CAST({column} AS VARCHAR)) AS {column}")
        cells = f"(SELECT * REPLACE ({', '.join(read)}) FROM {relation}) AS cells" if read else relation
        return super()._read(connection, cells)


def header(path: Path, key: bytes, kind: str, rows: int) -> Header:
    """What a received upload is, with so many of its first rows."""
    if kind == "csv":
        with path.open("rb") as sealed:
            start = b"".join(islice(decrypted(sealed, key), _START))
        return header_of(CsvSource(Content(start)), rows)  # type: ignore[arg-type]  # its lines are read, and nothing else
    with in_memory(path, key) as file:
        return header_of(ParquetSource(Path(file.path)), rows)


def suggestion(kind: str, values: Sequence[str | None]) -> str:
    """What a column of the kind may be declared as, by the texts that are shown of it.

    >>> suggestion("integer", []), suggestion("text", []), suggestion("text", ["39", None]), suggestion("text", ["F", "M", "F"])
    ('Integer', 'Text', 'Integer', 'Category')
    """
    if kind in _BY_KIND:
        return _BY_KIND[kind]
    shown = [value for value in values if value is not None]
    if not shown:
        return "Text"
    for name, read in _BY_VALUE:
        if all(read(value) is not None for value in shown):
            return name
    repeats = len(set(shown)) < len(shown)
    return "Category" if repeats and max(map(len, shown)) <= _LONGEST_CATEGORY else "Text"


def header_of(source: Source, rows: int) -> Header:
    """The columns of a source, and so many of its first rows."""
    shown = guarded("The upload could not be read", lambda: _rows(source, rows), why="its first rows are damaged") if rows else ()
    columns = []
    for i, (name, kind) in enumerate(source.schema.items()):
        cells, by = [row[i] for row in shown], source.delimiters.get(name, "")
        read = [cell and spelt(cell, ("decimal", "date"), by) for cell in cells]
        columns.append(HeaderColumn(name=name, kind=kind, suggested=suggestion(kind, read)))
    return Header(columns=tuple(columns), rows=shown)


def _rows(source: Source, count: int) -> tuple[tuple[str | None, ...], ...]:
    with connected() as connection:
        relation = source.attach(connection)
        found: list[Any] = connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {relation} LIMIT {int(count)}").fetchall()
        source.detach(connection)
    return tuple(found)
