"""Native guests that try to leave, to stay, to look around or to tell the next one something: a test for each way known."""

from __future__ import annotations

import json
import os
import platform
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.errors import AccessDenied, EngineError, InvalidParameter, MissingDependency
from cloister.guests.sandbox import control_groups, processes
from cloister.guests.sandbox.opening import sandboxes
from cloister.guests.sandbox.processes import ProcessSandbox, why_not
from cloister.guests.sandbox.seccomp import seccomp_filter
from cloister.guests.sandbox.wasm import Ran
from cloister.noise import Random

KNOWN = ["ctypes", "fcntl", "mmap", "pickle", "resource", "select", "signal", "socket"]
HEAD = "import os, sys, time, json, ctypes, resource, fcntl, socket, select, builtins\n"
ROWS = {"age": [7]}


def refused_here(language: Any) -> None:
    """Skip where the machine has no such sandbox; fail where one is required."""
    if why := why_not(language):
        assert os.environ.get("CLOISTER_REQUIRE_ENGINES") != "1", f"the process sandbox is required here: {why}"
        pytest.skip(why)


def test_a_busy_machine_has_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """R alone may take a second to start where other work goes on."""
    refused_here("python")
    whole = ProcessSandbox._exchange

    def late(self: ProcessSandbox, request: bytes) -> str:
        return whole(self, request) if self._seconds > 10 else json.dumps({"failed": "late"})

    monkeypatch.setattr(ProcessSandbox, "_exchange", late)
    assert why_not() == ""


@pytest.fixture(scope="module")
def server() -> Iterator[ProcessSandbox]:
    """One fork server for all guests of this file."""
    refused_here("python")
    with ProcessSandbox("def f(rows): return 1", "f", seconds=5, memory=64 << 20, packages=KNOWN) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def impatient() -> Iterator[ProcessSandbox]:
    """Another one for guests that would not end."""
    refused_here("python")
    with ProcessSandbox("def f(rows): return 1", "f", seconds=0.2, memory=64 << 20, packages=KNOWN) as sandbox:
        yield sandbox


def ran(server: ProcessSandbox, code: str) -> Ran:
    """One run of it."""
    server._code = code
    return server.run([ROWS])


def value(server: ProcessSandbox, body: str) -> Any:
    """What a guest of these lines returns."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    found = ran(server, f"{HEAD}def f(rows):\n{lines}\n")
    assert found.done, found.why
    return found.value


HOSTILE = {
    "reads a file": "open('/etc/passwd').read()",
    "reads the interpreter": "open('/parts/app.py').read()",
    "reads /proc": "open('/proc/self/environ').read()",
    "reads the memory of the server": "open('/proc/1/mem').read()",
    "reads the load": "os.getloadavg()",
    "reads the machine": "os.listdir('/sys')",
    "writes beside": "open('/guest', 'w').write('x' * 10**9)",
    "fills the disk": "open('/tmp/guest', 'wb').write(b'x' * (1 << 20) * 100)",
    "fills the disk in pieces": "[open(f'/tmp/{k}', 'wb').write(b'x' * (1 << 20)) for k in range(200)]",
    "makes many files": "[open(f'/tmp/{k}', 'w') for k in range(10**5)]",
    "makes a link": "os.symlink('/etc/passwd', '/tmp/x')",
    "makes a hard link": "os.link('/tmp', '/tmp/x')",
    "makes a device": "os.mknod('/tmp/x', 0o60666, os.makedev(8, 0))",
    "climbs out": "(os.chroot('/tmp'), os.listdir('../..'))",
    "forks": "os.fork()",
    "a fork bomb": "[os.fork() for _ in iter(int, 1)]",
    "starts a thread": "__import__('_thread').start_new_thread(print, ())",
    "runs a program": "os.execv('/bin/sh', ['sh'])",
    "runs a program by its file": "os.execve(0, ['sh'], {})",
    "starts a program": "os.posix_spawn('/bin/ls', ['ls'], {})",
    "opens a socket": "socket.socket()",
    "opens a local socket": "socket.socket(socket.AF_UNIX)",
    "opens a pair": "socket.socketpair()",
    "asks for a name": "socket.gethostbyname('localhost')",
    "waits for events": "select.epoll()",
    "ends the server": "os.kill(1, 9)",
    "stops the server": "os.kill(1, 19)",
    "signals the group": "os.killpg(0, 9)",
    "limits the server": "resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))",
    "reads the server's clock": "time.clock_gettime((~1 << 3) | 2)",
    "raises its own limit": "resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))",
    "changes its priority": "os.nice(5)",
    "chooses a processor": "os.sched_setaffinity(0, [0])",
    "becomes somebody": "os.setuid(0)",
    "changes a mode": "os.chmod('/tmp', 0o777)",
    "locks a file": "fcntl.flock(open('/tmp/x', 'w'), fcntl.LOCK_EX)",
    "shares memory": "os.memfd_create('x')",
    "dumps core": "os.abort()",
    "reads where nothing is": "ctypes.string_at(0)",
    "leaves by exit": "sys.exit(0)",
    "leaves at once": "os._exit(7)",
    "fills memory": "['x' * 10**6 + str(k) for k in range(10**6)]",
    "one large text": "'x' * 10**10",
    "returns much": "'x' * (2 << 20)",
    "returns a million numbers": "list(range(10**6))",
    "returns depth": "__import__('functools').reduce(lambda inner, _: [inner], range(10**5), 0)",
    "returns bytes": "b'x'",
    "a pickle": "__import__('pickle').loads(b'cos\\nabort\\n(tR.')",
    "a package that is not named": "__import__('scipy')",
    "asks without a share": "ask('SELECT COUNT(*) FROM people', 1)",
    "raises its row": "[][rows['age'][0]]",
}


ENDLESS = {
    "never ends": "[0 for _ in iter(int, 1)]",
    "sleeps by a row": "time.sleep(rows['age'][0])",
    "ignores signals and sleeps": "(__import__('signal').signal(15, lambda *_: 0), time.sleep(100))",
    "waits for itself": "select.select([], [], [])",
}


@pytest.mark.parametrize("what", ENDLESS)
def test_a_guest_that_does_not_end_is_ended(impatient: ProcessSandbox, what: str) -> None:
    before = impatient._server
    assert not ran(impatient, f"{HEAD}def f(rows):\n    return {ENDLESS[what]}\n").done
    assert impatient._server is before


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_guest_gives_no_value_and_the_server_goes_on(server: ProcessSandbox, what: str) -> None:
    before = server._server
    found = ran(server, f"{HEAD}def f(rows):\n    return {HOSTILE[what]}\n")
    assert not found.done
    assert found.value is None
    assert server._server is before
    assert value(server, "return rows['age']") == [7]


CALLS = """
ptrace 101, process_vm_readv 310, process_vm_writev 311, kill 62, tkill 200, tgkill 234, clone 56, fork 57, vfork 58,
clone3 435, execve 59, execveat 322, socket 41, socketpair 53, shmget 29, msgget 68, semget 64, mq_open 240,
memfd_create 319, memfd_secret 447, add_key 248, request_key 249, keyctl 250, unshare 272, setns 308, mount 165,
umount2 166, pivot_root 155, chroot 161, bpf 321, perf_event_open 298, userfaultfd 323, io_uring_setup 425,
pidfd_open 434, pidfd_getfd 438, kcmp 312, open_by_handle_at 304, name_to_handle_at 303, sysinfo 99, mincore 27,
fadvise64 221, preadv2 327, cachestat 451, readahead 187, flock 73, inotify_init1 294, fanotify_init 300,
setpriority 141, ioprio_set 251, sched_setaffinity 203, sched_setscheduler 144, fchmod 91, utimensat 280, fsetxattr 190,
fgetxattr 193, linkat 265, mknodat 259, timer_create 222, timerfd_create 283, eventfd2 290, tee 276, splice 275,
vmsplice 278, sendfile 40, copy_file_range 326, prctl 157, seccomp 317, capset 126, process_madvise 440,
migrate_pages 256, move_pages 279, mbind 237, remap_file_pages 216, sync 162, syslog 103, quotactl 179, swapoff 168,
init_module 175, kexec_load 246, personality 135, times 100, sethostname 170, setrlimit 160, landlock_restrict_self 446,
open_tree 428, fsopen 430, mount_setattr 442, pipe 22, pipe2 293, statfs 137, fstatfs 138, getpid-of-x32 1073741863,
a-call-to-come 999
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86_64")
def test_no_call_of_the_kernel_is_there_that_is_not_listed(server: ProcessSandbox) -> None:
    body = f"""
libc = ctypes.CDLL(None, use_errno=True)
held = []
for name, number in {dict(each.split() for each in CALLS.split(","))!r}.items():
    ctypes.set_errno(0)
    if libc.syscall(int(number), 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1:
        held.append([name, ctypes.get_errno()])
page = libc.mmap
page.restype = ctypes.c_void_p
where = page(None, 4096, 1, 34, -1, 0)
for advice in (3, 9, 20, 21, 22, 100):
    if libc.madvise(ctypes.c_void_p(where), 4096, advice) != -1:
        held.append(["madvise", advice])
return held
"""
    assert value(server, body) == []


def test_no_signal_goes_out_by_way_of_a_lease(server: ProcessSandbox) -> None:
    """The kernel signals the owner of a lease that is broken, whoever was named: the server, and it would begin anew, which the
    next run would see by its own number. Locks of files are seen by runs beside it."""
    body = """
held = []
where = os.open("/tmp/x", os.O_CREAT | os.O_RDWR)
for command, argument in ((1024, 1), (8, 1), (10, 2), (15, bytes(8)), (1026, 1), (5, bytes(32)), (6, bytes(32)), (37, bytes(32))):
    try:
        fcntl.fcntl(where, command, argument)
        held.append(command)
    except OSError as error:
        held += [] if error.errno == 1 else [command, error.errno]
return held
"""
    assert value(server, body) == []


def test_there_is_one_empty_folder_and_what_was_handed_over(server: ProcessSandbox) -> None:
    body = """
held = []
for number in range(256):
    try:
        held.append([number, oct(os.fstat(number).st_mode)[2:-4]])
    except OSError:
        pass
return [os.listdir("/"), os.listdir("/tmp"), dict(os.environ), sys.path, sys.argv[1:] and "told", held, os.getuid()]
"""
    folders, files, environment, path, _, held, user = value(server, body)
    assert (folders, files, environment, path, user) == (["tmp"], [], {}, [], 65534)
    assert [number for number, _ in held[:3]] == [0, 1, 2]
    assert sorted(kind for _, kind in held[3:]) == ["10", "10"]  # no socket: the request and the place for the reply
    assert value(server, "return [k for k in range(3, 256) if os.path.exists(f'/dev/fd/{k}')]") == []


LEAVE = """
json.left = builtins.left = "left"; sys.left = "left"; os.umask(0o7)
open("/tmp/left", "w").write("left")
for number in (0, 1, 2):
    fcntl.fcntl(number, fcntl.F_SETFL, fcntl.fcntl(number, fcntl.F_GETFL) | os.O_NONBLOCK | os.O_APPEND)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
held = ["x" * 10**6 for _ in range(30)]
end = time.process_time() + 0.1
while time.process_time() < end:
    pass
os.environ["left"] = "left"; sys.modules["json"].dumps.left = 1
return 1
"""
LOOK = """
found = [getattr(json, "left", 0), getattr(builtins, "left", 0), getattr(sys, "left", 0), os.listdir("/tmp"), os.umask(0o77)]
found += [fcntl.fcntl(number, fcntl.F_GETFL) for number in (0, 1, 2)]
found += [resource.getrlimit(resource.RLIMIT_NOFILE), list(os.environ), hasattr(json.dumps, "left")]
about = resource.getrusage(resource.RUSAGE_CHILDREN)
return found + [about.ru_utime, about.ru_maxrss, os.getppid(), list(os.times())[2:4]]
"""


def test_a_run_leaves_nothing_to_the_next(server: ProcessSandbox) -> None:
    before = value(server, LOOK)
    assert value(server, LEAVE) == 1
    assert value(server, LOOK) == before
    assert before[:4] == [0, 0, 0, []]


def test_the_number_of_a_request_tells_nothing_of_the_run_before(server: ProcessSandbox) -> None:
    """Inode numbers of files in memory are counted for the whole machine: a run must have no way to move that counter."""
    body = "held = []\nfor k in range(50):\n    try:\n        held.append(__import__('mmap').mmap(-1, 4096, {flags}))\n"
    body += "    except OSError:\n        pass\nreturn len(held)"
    assert value(server, body.format(flags=1)) == 0
    assert value(server, body.format(flags=3)) == 0
    assert value(server, body.format(flags=2)) == 50


def test_memory_of_a_run_is_not_found_by_the_next(server: ProcessSandbox) -> None:
    """Half of what it may have, full of one pattern; the next looks through as much fresh memory."""
    ran(server, "def f(rows):\n    held = b'canary-7' * (3 << 20)\n    return 1\n")
    body = "libc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\nwhere = libc.malloc(24 << 20)\n"
    assert value(server, body + "return b'canary-7' in ctypes.string_at(where, 24 << 20)") is False


def test_no_writable_memory_is_shared_between_runs(server: ProcessSandbox) -> None:
    """What a package maps as shared as it is imported would be one place to write for all runs. Read from outside."""
    assert server._server is not None
    found = subprocess.run(["ps", "--ppid", str(server._server.pid), "-o", "pid="], capture_output=True, text=True, check=True)
    [number] = found.stdout.split()
    try:
        lines = Path(f"/proc/{number}/maps").read_text().splitlines()
    except PermissionError:
        pytest.skip("its memory is hidden from this user")
    assert lines
    assert not [line for line in lines if line.split()[1][1] == "w" and line.split()[1][3] == "s"]


def test_what_it_prints_goes_nowhere_but_to_its_author(server: ProcessSandbox, capfd: pytest.CaptureFixture[str]) -> None:
    told = "print('row', rows); os.write(1, b'row'); os.write(2, b'row'); ctypes.CDLL(None).puts(b'row')"
    code = f"{HEAD}def f(rows):\n    {told}\n    return 1\n"
    assert ran(server, code) == Ran(value=1, done=True, why="", printed="row {'age': [7]}\n")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("raw", ["b'\\xff' * 70000", "b'{' * 65536", "b'\"5\"'", "b'{\"value\": 5}'", "b'[' * 60000", "b''"])
def test_whatever_it_writes_into_the_reply_is_one_failure(server: ProcessSandbox, raw: str) -> None:
    before = server._server
    tries = (f"os.{call}" for call in ("ftruncate(k, 1 << 30)", f"pwrite(k, {raw}, 0)"))
    body = "".join(f"        try: {each}\n        except OSError: pass\n" for each in tries)
    body = f"    for k in range(3, 9):\n{body}    os._exit(3)"
    assert not ran(server, f"{HEAD}def f(rows):\n{body}\n").done
    assert server._server is before


def test_hostile_guests_in_a_mixture_leave_no_process_and_no_file(server: ProcessSandbox) -> None:
    random = Random.deterministic(21)
    slow = {
        "never ends",
        "sleeps by a row",
        "ignores signals and sleeps",
        "fills memory",
        "fills the disk in pieces",
        "a fork bomb",
    }
    pieces = [
        each for name, each in HOSTILE.items() if name not in slow | {"leaves at once", "dumps core", "reads where nothing is"}
    ]
    before, held = server._server, set(Path("/tmp").iterdir())
    for _ in range(120):
        chosen = [pieces[place] for place in random.below(len(pieces), 3).tolist()]
        body = "".join(f"    try: told.append(repr({each})[:99])\n    except BaseException: pass\n" for each in chosen)
        assert "root:" not in str(ran(server, f"{HEAD}def f(rows):\n    told = []\n{body}    return told\n").value)
    assert server._server is before
    assert before is not None
    below = subprocess.run(
        ["ps", "--ppid", str(before.pid), "-o", "pid="], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(below) == 1
    assert not subprocess.run(
        ["ps", "--ppid", below[0], "-o", "pid="], capture_output=True, text=True, check=False
    ).stdout.split()
    assert not [each for each in set(Path("/tmp").iterdir()) - held if each.name in ("guest", "x", "left")]


def test_runs_begin_on_a_grid_that_no_run_can_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock of the test's own: however long a run takes, and its rows to be read, the next begins at the same moment."""
    begun: dict[str, list[float]] = {}
    for name, used in {"quick": [0.0] * 5, "slow": [1.0] * 5, "by rows": [0.0, 1.0, 0.3, 0.9, 0.0]}.items():
        now = [100.0]
        sandbox = ProcessSandbox("def f(rows): return 1", "f", seconds=1.0, paced=True)
        times = iter(used)

        def exchange(_: bytes, now: list[float] = now, times: Iterator[float] = times, name: str = name) -> str:
            begun.setdefault(name, []).append(round(now[0] - 100, 6))
            now[0] += next(times)
            return ""

        monkeypatch.setattr(processes.time, "monotonic", lambda now=now: now[0])
        monkeypatch.setattr(processes.time, "sleep", lambda far, now=now: now.__setitem__(0, now[0] + far))
        monkeypatch.setattr(sandbox, "_started", lambda: None)
        monkeypatch.setattr(sandbox, "_exchange", exchange)
        for _ in range(5):
            sandbox.run([ROWS])
    assert begun["quick"] == begun["slow"] == begun["by rows"] == [0, 1.15, 2.3, 3.45, 4.6]


def test_a_server_that_dies_is_one_failure_and_the_next_run_has_a_new_one(server: ProcessSandbox) -> None:
    assert server._server is not None
    server._server.kill()
    server._server.wait()
    server._code = "def f(rows): return 1"
    assert [server.run([ROWS]).done for _ in range(2)] == [False, True]


def test_a_server_that_cannot_be_had_again_is_no_error_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    refused_here("python")
    with ProcessSandbox("def f(rows): return 1", "f", seconds=5) as sandbox:
        sandbox.close()
        monkeypatch.setattr(processes, "_bubblewrap", lambda: "/bin/false")
        assert sandbox.run([ROWS]) == Ran()
        monkeypatch.setattr(processes, "_bubblewrap", lambda: "/nowhere")
        assert sandbox.run([ROWS]) == Ran()
        monkeypatch.undo()
        assert sandbox.run([ROWS]).done
    monkeypatch.setattr(processes, "_bubblewrap", lambda: "/bin/false")
    with pytest.raises(EngineError):
        ProcessSandbox("def f(rows): return 1", "f").run([ROWS])


def test_an_unknown_package_is_named_before_any_row(server: ProcessSandbox) -> None:
    with pytest.raises(InvalidParameter, match="no such package"):
        ProcessSandbox("def f(rows): return 1", "f", packages=["not_here", "json"])._started()


def test_without_bubblewrap_and_without_namespaces_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_bubblewrap", lambda: "/bin/false")
    assert "namespaces" in why_not()
    processes._bubblewrap.cache_clear() if hasattr(processes._bubblewrap, "cache_clear") else None
    monkeypatch.undo()
    monkeypatch.setattr(processes.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(processes, "_bubblewrap", processes._bubblewrap.__wrapped__)
    files = os.listdir("/proc/self/fd")
    assert why_not() == "bubblewrap is not installed"
    assert len(os.listdir("/proc/self/fd")) == len(files)


def test_walls_that_do_not_stand_are_seen_before_any_row(server: ProcessSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter that lets everything pass: the probe forks, and the sandbox is refused."""
    monkeypatch.setattr(processes, "seccomp_filter", lambda **_: struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000))
    with pytest.raises(EngineError, match="could do what none may do"), ProcessSandbox("def f(rows): return 1", "f"):
        pass


def test_a_control_group_is_used_where_an_administrator_gave_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder that looks like one: the kernel of the machine of tests has none to write."""
    monkeypatch.setattr(control_groups, "_delegated", lambda: None)
    assert control_groups.group_folder() is None
    assert "sums are watched" in dict(sandboxes())["control groups around processes"]
    monkeypatch.setenv("CLOISTER_GUESTS_CGROUP", str(tmp_path))
    assert control_groups.group_folder() is None
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    assert control_groups.group_folder() == tmp_path
    made = control_groups.new_group(123)
    assert made is not None
    assert {each.name: each.read_text() for each in made.iterdir()} == {
        "memory.max": "123",
        "memory.swap.max": "0",
        "pids.max": "8",
    }
    subprocess.run([*control_groups.into(made), "/bin/true"], check=True)
    assert (made / "cgroup.procs").read_text() == "0\n"


def test_a_group_that_systemd_delegated_is_found_and_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own, service = tmp_path / "own", tmp_path / "system.slice" / "cloister.service"
    (service / "hub").mkdir(parents=True)
    own.write_text("1:name=systemd:/\n0::/system.slice/cloister.service/hub\n")
    (service / "cgroup.controllers").write_text("cpu memory pids\n")
    (service / "cgroup.subtree_control").write_text("")
    said: dict[str, bytes] = {}

    def told(path: Path, name: str) -> bytes:
        if name not in said or path != service:
            raise OSError
        return said[name]

    monkeypatch.setattr(control_groups.os, "getxattr", told)
    assert control_groups._delegated(tmp_path, own) is None  # root may write there, and it is nobody's to use
    said["trusted.delegate"] = b"1"
    found = control_groups._delegated(tmp_path, own)
    assert found == service
    assert control_groups._limits(service)
    assert (service / "cgroup.subtree_control").read_text() == "+memory +pids"
    (service / "cgroup.controllers").write_text("cpu\n")
    (service / "cgroup.subtree_control").write_text("")
    assert not control_groups._limits(service)
    own.write_text("0::/\n")
    assert control_groups._delegated(tmp_path, own) is None
    assert control_groups._delegated(tmp_path, tmp_path / "nowhere") is None


CHILDREN = """
import os, time
def f(rows):
    for _ in range(4):
        if not os.fork():
            held = b"x" * (20 << 20)
            time.sleep(30)
    time.sleep(3)
    return 1
"""


def test_sums_are_watched_where_no_group_is_and_walls_failed(server: ProcessSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a filter that lets everything pass, a guest has children, each within its own limits: all of them are ended."""
    monkeypatch.setattr(processes, "seccomp_filter", lambda **_: struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000))
    monkeypatch.setattr(processes, "_PROBE", "def f(_): return []")
    with ProcessSandbox(CHILDREN, "f", seconds=20, memory=64 << 20) as sandbox:
        before = sandbox._server
        assert not sandbox.run([ROWS]).done
        assert sandbox._server is before
        sandbox._code = "def f(rows):\n    import time\n    time.sleep(0.3)\n    return 1\n"
        assert sandbox.run([ROWS]).done  # one process, and no more memory than it may have
        monkeypatch.setattr(processes, "end_beyond", lambda *_: False)
        sandbox._code = CHILDREN
        assert sandbox.run([ROWS]).done  # it was the watcher


def test_the_filter_is_refused_for_a_machine_that_it_was_not_written_for() -> None:
    with pytest.raises(EngineError, match="riscv64"):
        seccomp_filter(machine="riscv64")
    assert len(seccomp_filter(runs_a_program=True, machine="x86_64")) == len(seccomp_filter(machine="x86_64")) + 8


def guest(**how: Any) -> cl.Guest:
    """A native guest by blocks."""
    code = "def f(rows):\n    import numpy as np\n    return np.array([np.mean(rows['age'])])\n"
    return cl.Guest(
        **{
            "code": code,
            "entry": "f",
            "packages": ["numpy"],
            "inputs": ["age"],
            "output": cl.Vector([(0, 100)]),
            "blocks": 5,
            "seconds": 5,
            **how,
        }
    )


def test_packages_that_import_late_work_where_no_file_is() -> None:
    """scikit-learn reads names of columns through narwhals, whose parts it imports at the first frame; the texts of pandas are
    Arrow's, whose own pool would take all the addresses that a guest has."""
    code = (
        "def f(rows):\n    import pandas\n    from sklearn.linear_model import LinearRegression\n"
        "    frame = pandas.DataFrame({'x': rows['x']})\n    fit = LinearRegression().fit(frame, rows['y'])\n"
        "    import pyarrow\n"
        "    return [fit.coef_[0], fit.predict(frame)[0], float(pyarrow.default_memory_pool().backend_name == 'system')]\n"
    )
    with ProcessSandbox(code, "f", seconds=20, memory=1 << 30, packages=["pandas", "sklearn.linear_model"]) as sandbox:
        found = sandbox.run([{"x": [1.0, 2.0, 3.0], "y": [5.0, 7.0, 9.0]}])
    assert found.done
    assert found.value == pytest.approx([2, 5, 1])


def test_native_code_is_run_only_as_it_was_admitted(server: ProcessSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.time, "sleep", lambda _: None)
    table = cl.PrivateTable({"age": [10, 30, 50] * 100}, {"age": cl.Integer(0, 100)})
    with cl.Session({"people": table}, budget=cl.PureDP(10**9), random=Random.deterministic(3)) as session:
        with pytest.raises(AccessDenied, match="names its digest"):
            guest().run(session, "people", 1)
        with pytest.raises(AccessDenied, match="another version"):
            guest().run(session, "people", 1, admitted=guest(seconds=0.3).digest)
        assert str(session.spent) == "ε = 0"
        assert all(each.done for each in guest().rehearse(session, "people"))
        found = guest().run(session, "people", 10**8, admitted=guest().digest)
    assert abs(found.values["0"] - 30) < 4


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"packages": "numpy"}, "list of at most"),
        ({"packages": ["numpy; import os"]}, "names of modules"),
        ({"packages": ["numpy"], "way": "ask"}, "talks to the host"),
        ({"language": "perl"}, "'python' or 'r'"),
        ({"language": "r"}, "modules of Python"),
        ({"language": "r", "packages": []}, "no function"),
    ],
)
def test_what_cannot_be_is_refused_in_its_own_words(how: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        guest(**how)


def test_r_gets_rows_as_vectors_and_gives_numbers() -> None:
    refused_here("r")
    code = "f <- function(rows) { cat('seen'); c(median(rows$age, na.rm = TRUE), sum(rows$sex == 'é\"\\\\'), NA, 1 / 0) }"
    with ProcessSandbox(code, "f", seconds=8, language="r") as sandbox:
        found = sandbox.run([{"age": [1, None, 5.5], "sex": ['é"\\', "b\0", "🌙\n"]}])
        assert found.done, found.why
        assert json.dumps(found.value) == "[3.25, 1, NaN, Infinity]"
        assert found.printed == "seen"
        for hostile in (
            "system('ls')",
            "readLines('/etc/passwd')",
            "readLines('/proc/1/environ')",
            "socketConnection(port = 80)",
        ):
            sandbox._code = f"f <- function(rows) {{ found <- {hostile}; stopifnot(!is.null(attr(found, 'status'))); 1 }}"
            assert not sandbox.run([{"age": [1]}]).done, hostile


def test_the_missing_r_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise MissingDependency("The guest in R was not run", why="R is not installed", instead="apt-get install r-base-core")

    monkeypatch.setattr(processes, "_r_home", none)
    assert why_not("r") == "R is not installed"
