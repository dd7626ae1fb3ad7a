"""The second sandbox: processes behind bubblewrap's walls, for code that needs numpy, scikit-learn or R, and that somebody read.

Native code meets the kernel, has a clock and shares the processor's caches with whatever else runs: so it is for admitted code.
What stands around it: namespaces of users, processes, mounts, network, messages and names (bubblewrap); a process forked for each
run from one that has imported the packages before any row arrives (`fork_server.py`); a file system of its own in memory, where
for Python nothing else is; a list of system calls (`seccomp.py`); Landlock where the kernel has it; limits of memory, time and
files; a control group where an administrator gave one.

**The clock must be harmless.** A run that is told the time may tell the next run how long it took, if that begins when it ended:
then one person would move two blocks. So runs begin on a grid of time (`grid.py`).
"""

import base64
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cloister.errors import CloisterError, EngineError, InvalidParameter, MissingDependency
from cloister.guests.sandbox.control_groups import end_beyond, into, new_group
from cloister.guests.sandbox.environments import environment
from cloister.guests.sandbox.grid import Grid
from cloister.guests.sandbox.r_script import r_script
from cloister.guests.sandbox.seccomp import seccomp_filter
from cloister.guests.sandbox.wasm import Opened, Ran, ran_of

Language: TypeAlias = Literal["python", "r"]
_PARTS = tuple(Path(__file__).with_name(name) for name in ("app.py", "fork_server.py"))
_PATIENCE, _OPENING, _LOOK = 20.0, 120.0, 0.05
_ROOM = 1 << 16
_SCRATCH = 64 << 20
_TAMED = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # its own takes a gigabyte of addresses at once, and whether that fits is chance
}
"""What libraries are told: a guest has one thread, and a limit of its address space."""
_R_SHARE = {f"R_{name.upper()}_DIR": f"/usr/share/R/{name}" for name in ("share", "include", "doc")}
_MEMORY_OF_R = 1 << 30
"""What R's own libraries and stack take of the address space before a guest's first line."""
_PROBE = """
def f(_):
    import os, sys
    held = []
    for name, arguments in (("fork", ()), ("listdir", ("/usr",)), ("kill", (1, 0)), ("open", ("/proc/self/status", 0))):
        try:
            getattr(os, name)(*arguments)
            held.append(name)
        except OSError:
            pass
    return held + [name for name in os.environ]
"""


class ProcessSandbox(Opened):
    """One guest's text beside a fork server; each run is a fork of it, with nothing of the run before.

    With `paced`, runs begin on the grid: for runs that have rows.
    """

    def __init__(
        self,
        code: str,
        entry: str,
        *,
        seconds: float = 1.0,
        memory: int = 256 << 20,
        packages: Sequence[str] = (),
        environment: str = "",
        language: Language = "python",
        paced: bool = False,
        room: int = _ROOM,
    ) -> None:
        self._code, self._entry, self._language = code, entry, language
        self._memory, self._seconds, self._room = memory, seconds, room
        self.grid = Grid(seconds, paced=paced)
        self._packages, self._environment = tuple(packages), environment
        self._server: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._group: Path | None = None
        self._base, self._within, self._opened = 0, 0, False

    def run(self, arguments: list[Any], *, ask: Callable[[str], str] | None = None) -> Ran:
        """One run. The same failure for whatever it does; the next begins on the grid."""
        if ask is not None:
            raise InvalidParameter("way= is invalid", why="a guest that asks is pure Python", instead="no packages=")
        if not self._opened:
            self._started()
        try:
            self._started()
            request = self._request(arguments)
            self.grid.await_step()
            return ran_of(self._exchange(request))
        except (CloisterError, OSError):  # a server that can't be had again: an error here would say something about one run
            return Ran()

    def close(self) -> None:
        """End the server, and with it everything in its namespace."""
        server, self._server, self._within = self._server, None, 0
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if server is not None:
            server.kill()
            server.wait()
        if self._group is not None:
            with suppress(OSError):
                self._group.rmdir()
            self._group = None

    def _request(self, arguments: list[Any]) -> bytes:
        if self._language == "r":
            return json.dumps({"code": r_script(self._code, self._entry, arguments[0])}).encode()
        return json.dumps({"code": self._code, "entry": self._entry, "argument": json.dumps(arguments)}).encode()

    def _exchange(self, request: bytes) -> str:
        """The request as a file that nobody can change, the reply as one that nobody can make larger."""
        assert self._socket is not None
        with _in_memory(request) as asked, _in_memory(b"", room=self._room) as replied:
            try:
                socket.send_fds(self._socket, [struct.pack("=Q", self._base + self._memory)], [asked, replied])
                self._await_end()
            except OSError:
                self.close()
                return ""
            return os.pread(replied, self._room, 0).split(b"\0", 1)[0].decode(errors="replace")

    def _await_end(self) -> None:
        """Until the server says that a run is over; meanwhile, where no control group does, look what it uses in sum."""
        assert self._socket is not None
        end = time.monotonic() + self._seconds + _PATIENCE
        self._socket.settimeout(_LOOK)
        while time.monotonic() < end:
            try:
                if self._socket.recv(16) != b"over":
                    raise OSError
            except TimeoutError:
                if self._group is None and self._within:
                    end_beyond(self._within, self._base + self._memory + _SCRATCH)
            else:
                return
        raise OSError

    def _started(self) -> None:
        if self._server is not None:
            return
        about = {
            "language": self._language,
            "packages": self._packages,
            "packages_at": "/packages",
            "parts": "/parts",
            "program": str(_r_home()) if self._language == "r" else "",
            "environment": {**_TAMED, **_R_SHARE, "R_DEFAULT_PACKAGES": "NULL", "LC_ALL": "C.UTF-8"},
            "seconds": self._seconds,
            "scratch": _SCRATCH,
            "room": self._room,
            "filter": base64.b64encode(seccomp_filter(runs_a_program=self._language == "r")).decode(),
        }
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told_by, tell = os.pipe()
        try:
            try:
                walls = _walls(self._language, tell, self._environment)
                self._group = new_group(self._memory + _SCRATCH + (1 << 30))
                words = [*into(self._group), *walls, str(Path(sys.executable).resolve()), "-I", "-S", "/parts/fork_server.py"]
                self._server = subprocess.Popen(  # noqa: S603 (our own program and arguments)
                    [*words, json.dumps(about)],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    pass_fds=[tell],
                    start_new_session=True,
                )
            finally:
                theirs.close()
                os.close(tell)
            self._check_opened(told_by)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(told_by)
        self._opened = True

    def _check_opened(self, told_by: int) -> None:
        """Packages are there, and the walls stand: tried by a run of our own, before any row."""
        assert self._socket is not None
        try:
            self._socket.settimeout(_OPENING)
            told = json.loads(self._socket.recv(1 << 16) or b"null")
            self._within = int(json.loads(os.read(told_by, 1 << 12) or b"null")["child-pid"])
            pages = int(Path(f"/proc/{self._within}/statm").read_text().split()[0])
        except (OSError, ValueError, KeyError, TypeError):
            told = None
        if not isinstance(told, dict):
            raise EngineError(
                "The process sandbox was not opened",
                why="this machine does not let bubblewrap make its namespaces",
                instead="cloister hub check, which says what is missing; or a guest of pure Python",
            )
        if told["missing"]:
            raise InvalidParameter(
                f"packages={told['missing']!r} is invalid",
                why=f"the environment {self._environment!r} has no such package"
                if self._environment
                else "there is no such package beside cloister",
                instead="an environment that has it: cloister guest environment list",
            )
        self._base = _MEMORY_OF_R if self._language == "r" else pages * os.sysconf("SC_PAGE_SIZE")
        if self._language == "r":
            return
        probe = json.dumps({"code": _PROBE, "entry": "f", "argument": "[0]"}).encode()
        found = ran_of(self._exchange(probe))
        if not found.done or found.value:
            raise EngineError(
                "The process sandbox was not opened",
                why="a guest of our own could do what none may do, or could not run at all",
                instead="cloister hub check",
            )


def why_not(language: Language = "python") -> str:
    """Why this machine has no such sandbox, or nothing where it has: a sandbox is opened and tried."""
    try:
        code = "f <- function(rows) 1" if language == "r" else "def f(rows):\n    return 1\n"
        with ProcessSandbox(code, "f", language=language, seconds=_OPENING) as tried:  # a busy machine has it, too
            ran = tried.run([{}])
    except (EngineError, MissingDependency) as refused:
        return refused.why
    return "" if ran.done else "a run of one line did not end in time"


@cache
def _bubblewrap() -> str:
    found = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    if found is None:
        raise MissingDependency(
            "The process sandbox was not opened", why="bubblewrap is not installed", instead="apt-get install bubblewrap"
        )
    return found


@cache
def _r_home() -> Path:
    found = next(
        (Path(each) for each in ("/usr/lib/R", "/usr/lib64/R", "/usr/local/lib/R") if (Path(each) / "bin/exec/R").exists()), None
    )
    if found is None:
        raise MissingDependency("The guest in R was not run", why="R is not installed", instead="apt-get install r-base-core")
    return found


def _walls(language: Language, tell: int, named: str) -> list[str]:
    """What bubblewrap is told: every namespace, no capability but those that a forked run needs to wall itself in further, and to
    read: the system's libraries, the interpreter, the packages."""
    words = [_bubblewrap(), "--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--info-fd", str(tell)]
    words += ["--clearenv", "--uid", "65534", "--gid", "65534", "--hostname", "guest", "--cap-drop", "ALL"]
    words += ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SYS_CHROOT"]
    for name, value in _TAMED.items():
        words += ["--setenv", name, value]
    words += ["--ro-bind", "/usr", "/usr"]
    for name in ("/lib", "/lib64", "/bin"):
        if Path(name).is_symlink():
            words += ["--symlink", os.readlink(name), name]
        elif Path(name).exists():
            words += ["--ro-bind", name, name]
    readable = [Path(sys.base_prefix).resolve()]
    if language == "python":  # at a place of its own, which the empty /tmp does not hide
        packages = environment(named).packages if named else Path(sysconfig.get_paths()["purelib"]).resolve()
        words += ["--ro-bind", str(packages), "/packages"]
    else:
        readable += [Path("/etc/R"), Path("/etc/alternatives")]
    for path in readable:
        if path.exists() and not path.is_relative_to("/usr"):
            words += ["--ro-bind", str(path), str(path)]
    for part in _PARTS:
        words += ["--ro-bind", str(part), f"/parts/{part.name}"]
    return [*words, "--dev-bind", "/dev/null", "/dev/null", "--tmpfs", "/tmp", "--remount-ro", "/", "--chdir", "/"]  # noqa: S108


@contextmanager
def _in_memory(content: bytes, *, room: int | None = None) -> Iterator[int]:
    """A file of no folder: sealed with its content, or with its size alone."""
    file = os.memfd_create("guest", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
        if room is None:
            view = memoryview(content)
            while view:
                view = view[os.write(file, view) :]
            seals |= fcntl.F_SEAL_WRITE
            os.lseek(file, 0, os.SEEK_SET)
        else:
            os.ftruncate(file, room)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals | fcntl.F_SEAL_SEAL)
        yield file
    finally:
        os.close(file)
