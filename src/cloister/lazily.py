"""Public names that are loaded when they are first used, so that `import cloister` and its rooms stay quick.

What a package imports for type checkers alone is what it offers: each line under `if TYPE_CHECKING:` is read as it stands there,
as `from cloister.ledger.ledger import Ledger as Ledger`, and nothing is imported before somebody asks for the name.
"""

import gc
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

from cloister.errors import MissingDependency
from cloister.installed import install, lacking

__all__ = ["Lazily", "check_installed", "loading", "needing"]


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


@contextmanager
def needing(what: str, why: str, extra: str) -> Iterator[None]:
    """Around the import of a package that may not be installed: what can't be done without it, and the extra that brings it.

    >>> with needing("The answer was not found", "thought is not installed", "learn"):
    ...     import thought
    Traceback (most recent call last):
        ...
    cloister.errors.MissingDependency: The answer was not found: thought is not installed.
      Instead: pip install ...
    """
    try:
        yield
    except ImportError:
        raise MissingDependency(what, why=why, instead=install(extra)) from None


class Lazily:
    """The public names of a package, and where each lives. `extras` says which optional extra brings a package that may not be
    installed.

    >>> import cloister.crypto
    >>> names = Lazily("cloister.crypto")
    >>> "SigningKey" in names.all, names.get("SigningKey").__name__
    (True, 'SigningKey')
    """

    def __init__(self, package: str, *, extras: Mapping[str, str] | None = None) -> None:
        self.package = package
        with open(str(sys.modules[package].__file__), encoding="utf-8") as source:
            offered = re.findall(r"^    from (\S+) import (\w+) as \w+$", source.read(), re.MULTILINE)
        self.homes = {name: module for module, name in offered if module != package}
        self.extras = dict(extras or {})

    @property
    def all(self) -> list[str]:
        """The names, for `__all__`."""
        return sorted(self.homes)

    @property
    def public(self) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
        """What a package offers as `__all__`, `__getattr__` and `__dir__`."""
        return self.all, self.get, lambda: self.all

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
