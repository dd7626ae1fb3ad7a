"""A throw-away PostgreSQL server: for tests and benchmarks, never for data that matter (it does not fsync).

    python scripts/postgres.py start            # prints the address and the folder
    python scripts/postgres.py stop FOLDER

The server lives in a temporary folder of its own, on a free port of 127.0.0.1, under a password drawn for it; it is not a system
service. PostgreSQL refuses to run as root: started by root, it runs as the user `postgres`, or `nobody` where there is none.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "logging_collector": "off",
}


class CannotStart(Exception):
    """No PostgreSQL binaries, or the server did not come up."""


@dataclass(frozen=True)
class Server:
    """A running server: its address (user `cloister`, database `postgres`), its folder and its process."""

    url: str
    folder: Path
    pid: int
    command: tuple[str, ...] = ()


def binaries() -> Path:
    """The folder that holds `initdb` and `postgres`: the newest that Debian installed, or wherever PATH has it."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].split(".")[0]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    if initdb is None:
        raise CannotStart("PostgreSQL is not installed: apt-get install postgresql")
    return Path(initdb).resolve().parent


def start(parent: str | Path | None = None, **more: str) -> Server:
    """Makes a cluster in a new temporary folder and starts it; seconds. `more` are settings beside those above."""
    tools = binaries()
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="cloister-postgres-", dir=parent))
    password = secrets.token_hex(16)
    try:
        (folder / "password").write_text(password, encoding="ascii")
        if user is not None:
            for path in (folder, folder / "password"):
                os.chown(path, user.pw_uid, user.pw_gid)
        _run([tools / "initdb", "-D", folder / "data", "-U", "cloister", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C",
              "--no-sync", f"--pwfile={folder / 'password'}"], user, folder)  # fmt: skip
        port = _free_port()
        settings = [part for name, value in (_SETTINGS | more).items() for part in ("-c", f"{name}={value}")]
        command = [str(tools / "postgres"), "-D", str(folder / "data"), "-p", str(port), "-k", str(folder), *settings]
        process = _launch(command, folder)
        _wait(tools, port, process)
    except (OSError, subprocess.SubprocessError, CannotStart) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise CannotStart(f"PostgreSQL did not start: {error}") from error
    return Server(f"postgresql://cloister:{password}@127.0.0.1:{port}/postgres", folder, process.pid, tuple(command))


def kill(server: Server) -> None:
    """kill -9 of the server and of all processes that work for it: as when the machine's memory ran out."""
    children = [int(pid) for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]
    for pid in (server.pid, *children):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(server.pid, 0)


def again(server: Server) -> Server:
    """Starts a server that was killed: at the same address, after its log was replayed."""
    port = int(server.command[server.command.index("-p") + 1])
    for attempt in range(100):
        process = _launch(list(server.command), server.folder)
        try:
            _wait(binaries(), port, process)
        except CannotStart:  # the last of the killed processes still holds its memory
            if attempt == 99:
                raise
            time.sleep(0.05)
        else:
            break
    return replace(server, pid=process.pid)


def stop(folder: str | Path, pid: int | None = None) -> None:
    """Stops the server of a folder by its own process number, and removes the folder."""
    folder = Path(folder)
    if pid is None:
        lines = (folder / "data" / "postmaster.pid").read_text(encoding="ascii").splitlines()
        pid = int(lines[0])
    try:
        os.kill(pid, signal.SIGINT)  # PostgreSQL's fast shutdown
        for _ in range(200):
            if not (folder / "data" / "postmaster.pid").exists():
                break
            time.sleep(0.05)
        else:
            os.kill(pid, signal.SIGQUIT)
    except ProcessLookupError:
        pass
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(parent: str | Path | None = None) -> Iterator[Server]:
    """A server for the length of a `with`."""
    server = start(parent)
    try:
        yield server
    finally:
        stop(server.folder, server.pid)


def _launch(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True, **_as(_unprivileged())
        )


def _unprivileged() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise CannotStart("there is no user that PostgreSQL could run as")


def _as(user: pwd.struct_passwd | None) -> dict[str, object]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _run(command: list[object], user: pwd.struct_passwd | None, folder: Path) -> None:
    for left in (2, 1, 0):
        done = subprocess.run([str(part) for part in command], check=False, capture_output=True, cwd=folder, **_as(user))
        if done.returncode >= 0 or not left:  # a signal, seen once (SIGABRT): the machine had run short of something
            break
        shutil.rmtree(folder / "data", ignore_errors=True)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-500:]
        raise CannotStart(f"{Path(str(command[0])).name} ended with {done.returncode}: {said}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(tools: Path, port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            raise CannotStart("the server ended at once")
        ready = subprocess.run([str(tools / "pg_isready"), "-h", "127.0.0.1", "-p", str(port)], capture_output=True, check=False)
        if ready.returncode == 0:
            return
        time.sleep(0.05)
    process.kill()
    raise CannotStart("the server did not answer within 15 seconds")


def main(arguments: list[str]) -> int:
    """The command line."""
    if arguments[:1] == ["start"] and len(arguments) == 1:
        server = start()
        print(f"{server.url}\n{server.folder}")
        return 0
    if arguments[:1] == ["stop"] and len(arguments) == 2:
        stop(arguments[1])
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
