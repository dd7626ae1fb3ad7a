"""What a run may use in sum, with whatever it starts: limits of a process don't add up over children.

With a control group (cgroup v2) the kernel keeps the sum: in a folder that `CLOISTER_GUESTS_CGROUP` names, or in the one that
systemd delegated to the hub's service (`Delegate=memory pids` with `DelegateSubgroup=hub`, so that no process is in it). Without
one the host looks at the processes below the fork server while a run lasts: there is one, and it has the memory of one, or all of
them are ended. That is slower than the kernel; what stands before it is that a guest can start no process at all.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_WANTED = {"memory", "pids"}


def group_folder() -> Path | None:
    """Where groups can be made; None where nobody gave such a folder."""
    named = os.environ.get("CLOISTER_GUESTS_CGROUP")
    return next((each for each in (Path(named) if named else None, _delegated()) if each is not None and _limits(each)), None)


def _limits(folder: Path) -> bool:
    """Whether memory and processes can be limited in groups of this folder; where only its own switch is off, it is put on."""
    try:
        switch = folder / "cgroup.subtree_control"
        if not set(switch.read_text().split()) >= _WANTED:
            if not set((folder / "cgroup.controllers").read_text().split()) >= _WANTED:
                return False
            switch.write_text("+memory +pids")
        return os.access(folder, os.W_OK)
    except OSError:
        return False


def _delegated(mounted: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Path | None:
    """The folder above this process's own group, where systemd says that it gave it away: root may write to any."""
    try:
        path = next(line.removeprefix("0::") for line in own.read_text().splitlines() if line.startswith("0::/"))
        above = (mounted / path.lstrip("/")).parent
        for name in ("user.delegate", "trusted.delegate"):
            with suppress(OSError):
                if path.count("/") > 1 and os.getxattr(above, name) == b"1":
                    return above
    except (OSError, StopIteration):
        pass
    return None


def new_group(memory: int) -> Path | None:
    """A group of its own with these limits."""
    folder = group_folder()
    if folder is None:
        return None
    made = folder / f"guest-{os.getpid()}-{time.monotonic_ns()}"
    made.mkdir()
    for name, most in (("memory.max", str(memory)), ("memory.swap.max", "0"), ("pids.max", "8")):
        with suppress(FileNotFoundError):  # a kernel without swap has no limit of it
            (made / name).write_text(most)
    return made


def into(group: Path | None) -> list[str]:
    """A shell that enters the group before it becomes bubblewrap: whatever that starts is counted."""
    return [] if group is None else ["/bin/sh", "-c", 'echo 0 > "$0/cgroup.procs" && exec "$@"', str(group)]


def end_beyond(server: int, memory: int) -> bool:
    """End every process below the server where there is more than one, or where they hold more memory in sum. Whether it did."""
    found = _below(server)
    if len(found) < 2 and sum(map(_resident, found)) <= memory:
        return False
    for number in found:
        with suppress(OSError):
            held = os.pidfd_open(number)
            try:
                if number in _below(server):  # its number might be somebody else's by now
                    signal.pidfd_send_signal(held, signal.SIGKILL)
            finally:
                os.close(held)
    return True


def _below(number: int) -> list[int]:
    """Children, and theirs."""
    try:
        children = [int(each) for each in Path(f"/proc/{number}/task/{number}/children").read_text().split()]
    except OSError:
        return []
    return [each for child in children for each in (child, *_below(child))]


def _resident(number: int) -> int:
    try:
        return int(Path(f"/proc/{number}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
