"""A disk that is full, files that may not be opened, a folder that may only be read: a clean refusal, nothing charged without a
trace, and the hub goes on when there is room again, without being started anew."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from cloister.errors import CloisterError
from cloister.hub import services
from cloister.hub.hub import Hub
from tests.hub.faults.asker import REFUSALS, Asker
from tests.hub.faults.looking import look
from tests.hub.faults.prepared import Prepared, prepare
from tests.hub.faults.processes import Process, free_port, hall

GOOD = (201, "")


@contextmanager
def standing(place: Prepared, tmp: Path) -> Iterator[tuple[Process, Asker]]:
    """A hub that runs, and somebody whom it has answered; what it told is compared with the ledger when it has ended."""
    with hall(place, tmp) as processes:
        port = free_port()
        process = processes.hub(port)
        asker = Asker(place, f"http://127.0.0.1:{port}")
        assert asker.ask() == GOOD
        yield process, asker
        assert asker.ask() == GOOD
        assert asker.get("/healthz").status_code == 200
        asker.close()
        assert process.end() == 0
    look(place, asker.received)


def ask_until_refused(asker: Asker) -> None:
    """Ask until there is no room; it is said in words that a client understands, and said again."""
    found = GOOD
    for _ in range(400):
        found = asker.ask()
        if found != GOOD:
            break
    assert found in REFUSALS
    for _ in range(5):
        assert asker.ask() in {*REFUSALS, GOOD}


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    place = prepare(tmp_path / "hub", people=1, pays_for=10_000)
    with standing(place, tmp_path) as (process, asker):
        before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        largest = max(path.stat().st_size for path in place.folder.glob("*.db*"))
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (largest + 100_000, before[1]))
        ask_until_refused(asker)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("a file system can only be mounted by root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_full(tmp_path: Path, small_disk: Path) -> None:
    place = prepare(small_disk / "hub", people=1, pays_for=10_000)
    with standing(place, tmp_path) as (_, asker):
        ballast = small_disk / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        ask_until_refused(asker)
        assert asker.get("/api/v1/me").status_code in (200, 503)
        ballast.unlink()


def test_no_more_files_may_be_opened(tmp_path: Path) -> None:
    place = prepare(tmp_path / "hub", people=1, pays_for=10_000)
    with standing(place, tmp_path) as (process, asker), ExitStack() as stack:
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        most = max(int(name) for name in os.listdir(f"/proc/{process.pid}/fd")) + 1
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (most + 2, before[1]))
        for _ in range(10):
            client = stack.enter_context(httpx.Client(timeout=0.3, trust_env=False))
            with suppress(httpx.TransportError):
                client.get(asker.address)
        for _ in range(5):
            assert asker.ask() in {*REFUSALS, GOOD}
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)


def test_a_folder_that_may_only_be_read(shelf: Prepared) -> None:
    with pytest.raises(CloisterError), Hub(shelf.settings, services.all_services()) as hub:
        hub.ledger.raise_budget("people", shelf.budget, who="owner", why="nobody may")


@pytest.fixture
def shelf() -> Iterator[Prepared]:
    """A hub in a folder that this process may only read, whoever it runs as."""
    with tempfile.TemporaryDirectory() as folder:
        place = prepare(Path(folder) / "hub", people=1, pays_for=10)
        with place.opened() as hub:  # so that everything is imported while it can be read
            hub.ledger.verify()
        everything = [Path(folder), *Path(folder).rglob("*")]
        modes = {path: path.stat().st_mode for path in everything}
        for path in everything:
            path.chmod(0o555 if path.is_dir() else 0o444)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            yield place
        finally:
            os.seteuid(user)
            for path, mode in modes.items():
                path.chmod(mode)
