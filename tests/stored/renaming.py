"""Every class of the library under another name, in another module, and written otherwise by `repr`: as if all had been renamed.

What is stored must not notice. Nothing that only reads attributes does, so the rest of the library goes on.
"""

from __future__ import annotations

import dataclasses
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import cloister

_SKIPPED = ("cloister.__main__", "cloister.hub.migrations.versions", "cloister.attacks", "cloister.cli", "cloister.client")
"""Nothing of theirs is stored, and some of it runs when it is imported."""


def classes() -> list[type]:
    """Every class that the library makes."""
    for each in pkgutil.walk_packages(cloister.__path__, "cloister."):
        if not each.name.startswith(_SKIPPED):
            import_module(each.name)
    modules = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "cloister"]
    found = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    return sorted((each for each in found if each.__module__.split(".")[0] == "cloister"), key=lambda each: each.__qualname__)


@contextmanager
def renamed() -> Iterator[list[type]]:
    """All of them, meanwhile. Annotations are looked up where a class says that it stands, so every module is there too."""
    before = [(each, each.__name__, each.__qualname__, each.__module__, vars(each).get("__repr__")) for each in classes()]
    moved = {f"elsewhere.{module}": sys.modules[module] for _, _, _, module, _ in before}
    sys.modules.update(moved)
    changed: list[type] = []
    try:
        for number, (each, _, _, module, _) in enumerate(before):
            each.__name__ = each.__qualname__ = f"Renamed{number}"
            each.__module__ = f"elsewhere.{module}"
            if dataclasses.is_dataclass(each):
                each.__repr__ = _nonsense  # type: ignore[assignment]
            changed.append(each)
        yield changed
    finally:
        for name in moved:
            del sys.modules[name]
        for each, name, qualified, module, written in before:
            each.__name__, each.__qualname__, each.__module__ = name, qualified, module
            if each.__repr__ is _nonsense:  # type: ignore[comparison-overlap]
                del each.__repr__
                if written is not None:
                    each.__repr__ = written  # type: ignore[method-assign]


def _nonsense(self: object) -> str:
    return f"<{id(self)}>"
