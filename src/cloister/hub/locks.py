"""Who holds a hub's folder while it works: hubs that serve and workers together, and whoever changes the master key alone.

The locks are the system's (`flock`), on files that hold nothing: a process that was killed holds none. They belong to serving and
not to opening: a hub that is opened to print a link, or to look, asks nobody.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from cloister.errors import CloisterError
from cloister.hub.settings import Settings

_RUNNING, _SERVING = "running.lock", "serving.lock"


class HubRuns(CloisterError):
    """Something that is not to be done while a hub runs on the folder."""


@contextlib.contextmanager
def shared_lock(settings: Settings, what: str = "The hub was not started") -> Iterator[None]:
    """Work with the folder's master key, beside others who do; where it is being changed, `what` is said."""
    with _held(settings.path(_RUNNING), fcntl.LOCK_SH) as got:
        if not got:
            raise HubRuns(
                what, why="its master key is being changed just now", instead="wait until cloister hub rotate-key has ended"
            )
        yield


@contextlib.contextmanager
def serving_lock(settings: Settings) -> Iterator[None]:
    """Serve: with its database in the folder a hub is one process, on PostgreSQL several."""
    with shared_lock(settings), contextlib.ExitStack() as held:
        if not settings.database and not held.enter_context(_held(settings.path(_SERVING), fcntl.LOCK_EX)):
            raise HubRuns(
                "The hub was not started",
                why=f"another hub runs on the folder {settings.data.name}, and one with its database in files is one process",
                instead='database = "postgresql://hub@db.example.org/hub", for several processes',
            )
        yield


@contextlib.contextmanager
def exclusive_lock(settings: Settings, what: str) -> Iterator[None]:
    """Do `what` while no hub and no worker runs on this folder."""
    with _held(settings.path(_RUNNING), fcntl.LOCK_EX) as got:
        if not got:
            raise HubRuns(what, why="a hub or a worker runs on this folder", instead="end it (SIGTERM), and run this again")
        yield


@contextlib.contextmanager
def _held(path: Path, how: int) -> Iterator[bool]:
    """Whether the lock could be had, held until the end."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # the hub itself says what it can't write
        yield True
        return
    try:
        got = True
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            got = False
        except OSError:  # a disk without locks, as some that are reached over the network
            pass
        yield got
    finally:
        os.close(descriptor)
