"""Public names that are loaded when they are first used, so that `import cloister` and its rooms stay quick.

A package writes which of its modules each public name lives in; nothing of them is imported before somebody asks for the name.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

from cloister.errors import MissingDependency
from cloister.installed import install, lacking

__all__ = ["Lazily", "check_installed", "loading"]


@contextmanager
def loading() -> Iterator[None]:
    """While modules load, nobody looks for garbage: what they make is kept, and to look through it takes an eighth of the time.

    >>> with loading():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def check_installed(extra: str, what: str) -> None:
    """Refuse what a hub can't do without an extra that is not installed.

    >>> check_installed("anonymize", "The table was not anonymised")
    """
    if lacking(extra):
        why = "this hub was installed without what this needs"
        raise MissingDependency(what, why=why, instead=f"the administrator's help: {install(extra)}")


class Lazily:
    """The public names of a package, and where each lives.

    `homes` has the names of each module, relative to the package where it begins with a dot; `extras` says which optional extra
    brings a package that may not be installed.

    >>> names = Lazily("cloister.ledger", {".ledger": "Ledger"})
    >>> names.all, names.get("Ledger").__name__
    (['Ledger'], 'Ledger')
    """

    def __init__(self, package: str, homes: Mapping[str, str], *, extras: Mapping[str, str] | None = None) -> None:
        self.package = package
        self.homes = {
            name: f"{package}{module}" if module.startswith(".") else module
            for module, names in homes.items()
            for name in names.split()
        }
        self.extras = dict(extras or {})

    @property
    def all(self) -> list[str]:
        """The names, for `__all__`."""
        return sorted(self.homes)

    def dir(self) -> list[str]:
        """The names, for `__dir__`."""
        return self.all

    def get(self, name: str) -> object:
        """What stands behind a name, for `__getattr__`; a missing package is said with the line that installs it."""
        if name not in self.homes:
            raise AttributeError(f"module {self.package!r} has no attribute {name!r}")
        try:
            with loading():
                value: object = getattr(import_module(self.homes[name]), name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in self.extras:
                raise
            raise MissingDependency(
                f"{name} was not loaded",
                why=f"the package {missing} is not installed",
                instead=install(self.extras[missing]),
            ) from None
        if self.package in sys.modules:
            setattr(sys.modules[self.package], name, value)
        return value
