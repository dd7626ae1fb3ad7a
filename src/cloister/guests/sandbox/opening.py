"""Which of the two sandboxes a guest runs in, and what this machine has of them."""

from dataclasses import dataclass
from typing import Any

from cloister.guests.sandbox.control_groups import group_folder
from cloister.guests.sandbox.processes import Language, ProcessSandbox, why_not
from cloister.guests.sandbox.wasm import Opened, Sandbox
from cloister.installed import lacking


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a guest needs of a machine: nothing more than WebAssembly has, or packages, or another language.

    >>> Needs().native, Needs(packages=("numpy",)).native, Needs(language="r").native
    (False, True, True)
    """

    language: Language = "python"
    packages: tuple[str, ...] = ()
    environment: str = ""
    """Of which the packages are; empty: beside cloister."""

    @property
    def native(self) -> bool:
        """Whether it runs in a process of the machine, which is for admitted code."""
        return bool(self.packages) or self.language != "python"

    def sandbox(self, code: str, entry: str, *, seconds: float, memory: int, paced: bool = False, room: int = 1 << 16) -> Opened:
        """A sandbox for one guest; `paced` where it is run on rows."""
        if not self.native:
            return Sandbox(code, entry, seconds=seconds, memory=memory, paced=paced)
        about: dict[str, Any] = {"seconds": seconds, "memory": memory, "packages": self.packages, "language": self.language}
        about |= {"environment": self.environment}
        return ProcessSandbox(code, entry, **about, paced=paced, room=room)


PLAIN = Needs()


def sandboxes() -> list[tuple[str, str]]:
    """What this machine has: of each sandbox its name, and why it is missing (nothing where it is there). Processes are opened
    and tried; an image is not built for it."""
    wanting = lacking("guests")
    limits = "" if group_folder() else "none is delegated (systemd, or CLOISTER_GUESTS_CGROUP): sums are watched from outside"
    return [
        ("WebAssembly, pure Python", f"{' and '.join(wanting)} is not installed" if wanting else ""),
        ("processes, Python with packages, admitted code", why_not()),
        ("processes, R, admitted code", why_not("r")),
        ("control groups around processes", limits),
    ]
