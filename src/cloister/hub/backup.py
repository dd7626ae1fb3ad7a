"""A hub's folder copied while it runs, and put back.

What is copied: hub.db and ledger.db by SQLite's own online backup, encrypted tables, masked batches, and the audit log's head; a
manifest with the digest of each comes last, so that a copy that was interrupted is none.

What is left out on purpose:

- master.key and hub.toml, which may hold secrets. Anyone who has backup and key has the data: keep them apart.
- ledger.head. It is there to tell that a ledger was put back; with the copy beside it, it would vouch for an old ledger. So a
  ledger that was put back is frozen until its owner has said what was spent since (`cloister ledger restore`).

What is put back never takes the place of something: where there is a hub already, nothing is done.
"""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.edition import EDITION
from cloister.hub.settings import Settings
from cloister.hub.storage.table_store import file_digest
from cloister.stored import flush

_FORMAT = 1
_MANIFEST = "manifest.json"
_DATABASES = ("ledger.db", "hub.db")
"""In the order in which they are put back: where hub.db is, everything is."""
_TABLES, _MASKED = Path("vault") / "tables", Path("masked")


class BackupRefused(CloisterError):
    """A copy that cannot be made, or cannot be put back."""


def back_up(settings: Settings, folder: Path) -> int:
    """Copy the hub of these settings into a new folder; how many files that were. The hub may be running."""
    instead = "copies of trail.head, both databases (pg_dump) and the folders vault and masked, in this order"
    _check_files(settings, "The backup was not made", instead)
    if not settings.path("hub.db").is_file():
        raise BackupRefused(
            "The backup was not made", why="there is no hub in this folder", instead="cloister hub backup FOLDER --data DIR"
        )
    if folder.exists() and any(folder.iterdir()):
        raise BackupRefused("The backup was not made", why="its folder is not empty", instead="a new folder for each backup")
    with _disk("The backup was not made"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        head = settings.path("trail.head")
        if head.is_file():
            shutil.copyfile(head, folder / "trail.head")  # before the database: a head never leads
        _copy_database(settings.path("hub.db"), folder / "hub.db")
        _copy_database(settings.path("ledger.db"), folder / "ledger.db")  # after it: no answer is kept that the ledger lacks
        (folder / _TABLES).mkdir(mode=0o700, parents=True)
        (folder / _MASKED).mkdir(mode=0o700)
        for part in (_TABLES, _MASKED):
            tables = settings.path(str(part))
            for path in sorted(tables.iterdir()) if tables.is_dir() else []:
                with contextlib.suppress(FileNotFoundError):  # destroyed meanwhile, on purpose
                    shutil.copyfile(path, folder / part / path.name)
        files = {str(path.relative_to(folder)): file_digest(path) for path in sorted(folder.rglob("*")) if path.is_file()}
        told = {"format": _FORMAT, "cloister": EDITION, "made": datetime.now(UTC).isoformat(timespec="seconds"), "files": files}
        for name in files:
            (folder / name).chmod(0o600)
            flush(folder / name)
        (folder / _MANIFEST).write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
        (folder / _MANIFEST).chmod(0o600)
        flush(folder / _MANIFEST)
    return len(files)


def put_back(folder: Path, settings: Settings) -> int:
    """Put a backup into the place of a hub that is gone; how many files that were. The hub must not be running.

    Heads that are still there stay: they tell what the backup lacks. Sessions and one-time links end.
    """
    data = settings.data
    instead = "take the lines database and ledger out of hub.toml first; afterwards cloister hub move postgresql://…"
    _check_files(settings, "The backup was not put back", instead)
    if in_the_way := database_file(data):
        raise BackupRefused(
            "The backup was not put back",
            why=f"there is a {in_the_way} in {data.name}, and nothing is overwritten",
            instead="move hub.db*, ledger.db* and vault away; leave ledger.head and trail.head where they are",
        )
    files = _checked(folder)
    with _disk("The backup was not put back"):
        for part in (_TABLES, _MASKED):
            (data / part).mkdir(mode=0o700, parents=True, exist_ok=True)
        data.chmod(0o700)
        rest = [name for name in files if name not in _DATABASES and not (name == "trail.head" and (data / name).exists())]
        for name in (*rest, *_DATABASES):
            part = data / f"{name}.part"
            shutil.copyfile(folder / name, part)
            part.chmod(0o600)
            if name == "hub.db":  # who was signed out since, or used a link, is not let in once more
                with contextlib.closing(sqlite3.connect(part)) as db, db:
                    db.executescript("DELETE FROM web_session; DELETE FROM one_time_link")
            flush(part)
            part.replace(data / name)
    return len(files)


def _check_files(settings: Settings, what: str, instead: str) -> None:
    if settings.database or settings.ledger:
        raise BackupRefused(what, why="the hub's databases are on PostgreSQL", instead=instead)


def database_file(data: Path) -> str:
    """The name of a file of the hub's databases in a folder, or empty; a log without its database is one too, since SQLite
    would write it over another database that is put there."""
    names = [f"{name}{end}" for name in _DATABASES for end in ("", "-wal", "-shm", "-journal")]
    return next((name for name in names if (data / name).exists()), "")


def _checked(folder: Path) -> list[str]:
    """The files of a backup, each as it was written."""
    try:
        told: Any = json.loads((folder / _MANIFEST).read_text())
        files: dict[str, str] = dict(told["files"])
        known = told["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise _no_backup(f"it has no {_MANIFEST}, so it was interrupted or is no backup") from None
    if known != _FORMAT:
        raise _no_backup(f"its format is {known!r}, which this version does not know")
    if not set(_DATABASES) <= set(files):
        raise _no_backup("a database is missing in it")
    for name, digest in files.items():
        inside = Path(name).parts in {(each,) for each in (*_DATABASES, "trail.head")} or (
            Path(name).parent in (_TABLES, _MASKED) and Path(name).name not in ("", "..")
        )
        if not inside:
            raise _no_backup("it names a file that no backup has")
        path = folder / name
        if not path.is_file() or path.is_symlink() or file_digest(path) != digest:
            raise _no_backup(f"{name} is missing in it, or was changed")
    return list(files)


def _copy_database(source: Path, target: Path) -> None:
    with contextlib.closing(sqlite3.connect(source, timeout=30)) as old, contextlib.closing(sqlite3.connect(target)) as new:
        old.backup(new, pages=1000, sleep=0.01)
        if new.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise BackupRefused("The backup was not made", why=f"{source.name} is damaged", instead="an earlier backup")


@contextlib.contextmanager
def _disk(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "a database could not be read or written"
        raise BackupRefused(
            what, why=reason.lower(), instead="another place, with enough room, that this user may write"
        ) from None


def _no_backup(why: str) -> InvalidParameter:
    return InvalidParameter("The backup is invalid", why=why, instead="a folder that cloister hub backup has written")
