"""Which calls of the kernel a native guest may make: a list, as a program of the kernel's own filter (seccomp, classic BPF).

What is not listed fails with "not permitted": processes and threads, signals, sockets, shared memory, locks, keys, mounts, the
load of the machine (`sysinfo`), whatever drops or looks up cached pages, and every call that a later kernel brings. Pipes and
shared mappings too: their inode numbers come from counters of the whole machine, which one run could move and the next one read.
"""

import platform
import struct

from cloister.errors import EngineError

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, lseek 8 62, open 2 -, openat 257 56,
close 3 57, close_range 436 436, stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291, access 21 -,
faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78, getdents64 217 61, getcwd 79 17, chdir 80 49,
mkdir 83 -, mkdirat 258 34, unlink 87 -, unlinkat 263 35, rmdir 84 -, rename 82 -, renameat 264 38, renameat2 316 276,
ftruncate 77 46, dup 32 23, dup2 33 -, dup3 292 24, munmap 11 215,
mremap 25 216, mprotect 10 226, brk 12 214, rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139,
sigaltstack 131 132, futex 202 98, set_robust_list 273 99, rseq 334 293, set_tid_address 218 96, arch_prctl 158 -,
getpid 39 172, gettid 186 178, getppid 110 173, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177,
getrusage 98 165, getrlimit 97 163, sched_yield 24 124, sched_getaffinity 204 123, clock_getres 229 114,
gettimeofday 96 169, time 201 -, nanosleep 35 101, clock_nanosleep 230 115, poll 7 -, ppoll 271 73, select 23 -,
pselect6 270 72, getrandom 318 278, uname 63 160, umask 95 166, exit 60 93, exit_group 231 94, restart_syscall 219 128
"""
_PRLIMIT, _IOCTL, _CLOCK, _ADVISE, _EXECVE = (302, 261), (16, 29), (228, 113), (28, 233), (59, 221)
_MAP, _FCNTL = (9, 222), (72, 25)
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD, _FOURTH = 0, 4, 16, 24, 32, 40
_ALLOW, _KILL, _NOT_PERMITTED, _NO_TERMINAL = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050019
_CLOSE_ON_EXEC = (0x5450, 0x5451)
_ADVICE = (4, 8, 14, 15)
"""Give back own memory, or take it in larger pages; not: throw cached pages of a library away, which others would see."""
_OF_OWN_FILES = (0, 1, 2, 3, 4, 1030)
"""Copies and flags of what is open; not: locks, or leases and owners of files, by which the kernel signals whom a guest names."""


def seccomp_filter(*, runs_a_program: bool = False, machine: str | None = None) -> bytes:
    """The filter's program; with `execve` for a language whose interpreter begins in the sandbox, which without `fork` replaces a
    process and adds none.

    >>> len(seccomp_filter(machine="x86_64")) % 8, len(seccomp_filter(machine="aarch64")) % 8
    (0, 0)
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise EngineError(
            "The process sandbox was not opened",
            why=f"its filter of system calls is not written for {machine}",
            instead="x86_64 or aarch64, or a guest of pure Python",
        )
    place = list(_ARCHITECTURES).index(machine)
    numbers = [each.split()[1 + place] for each in _CALLS.split(",")]
    calls = [int(each) for each in numbers if each != "-"] + ([_EXECVE[place]] if runs_a_program else [])
    one_argument = [
        *_when(_PRLIMIT[place], _FIRST, (0,), _NOT_PERMITTED),  # its own limits, nobody else's
        *_when(_IOCTL[place], _SECOND, _CLOSE_ON_EXEC, _NO_TERMINAL),
        *_when(_ADVISE[place], _THIRD, _ADVICE, _NOT_PERMITTED),
        *_when(_FCNTL[place], _SECOND, _OF_OWN_FILES, _NOT_PERMITTED),
        (_EQUAL, 0, 4, _CLOCK[place]),
        (_LOAD, 0, 0, _FIRST),
        (_AT_LEAST, 0, 1, 1 << 31),  # below zero are the clocks of other processes
        (_RETURN, 0, 0, _NOT_PERMITTED),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, _MAP[place]),
        (_LOAD, 0, 0, _FOURTH),
        (_HAS_BIT, 0, 1, 1),  # shared memory, whose inode numbers are counted with those of requests
        (_RETURN, 0, 0, _NOT_PERMITTED),
        (_RETURN, 0, 0, _ALLOW),
    ]
    simple = [(_EQUAL, len(calls) - where, 0, number) for where, number in enumerate(calls)]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        *one_argument,
        *simple,
        (_RETURN, 0, 0, _NOT_PERMITTED),  # the numbers of x32 too, which are none of these
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *each) for each in program)


def _when(call: int, argument: int, among: tuple[int, ...], otherwise: int) -> list[tuple[int, int, int, int]]:
    """This call with its argument among these; otherwise it fails so. Only the low half of an argument is looked at, where the
    kernel takes no more of it."""
    checks = [(_EQUAL, len(among) - where, 0, value) for where, value in enumerate(among)]
    return [
        (_EQUAL, 0, len(among) + 3, call),
        (_LOAD, 0, 0, argument),
        *checks,
        (_RETURN, 0, 0, otherwise),
        (_RETURN, 0, 0, _ALLOW),
    ]
