"""Ibis's compilers, one at a time.

`ibis.to_sql` imports the package of compilers, whose `__init__` imports all twenty of them and sqlglot's dialect of each:
a fifth of a second in which nothing happens to a question. Each compiler is a module of its own that stands alone, so the package
is put in place unexecuted. Anyone who asks it for more than a module that is there has it executed as it is.
"""

import sys
import threading
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from cloister.lazily import loading

PACKAGE = "ibis.backends.sql.compilers"
_LOCK = threading.RLock()


class _Deferred(ModuleType):
    """A package whose modules can be imported while its own body waits for somebody who asks for a name that it defines."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}")
        if find_spec(f"{PACKAGE}.{name}") is not None:
            return import_module(f"{PACKAGE}.{name}")
        with _LOCK:
            spec = self.__spec__
            if type(self) is _Deferred and spec is not None and spec.loader is not None:
                self.__class__ = ModuleType  # type: ignore[assignment]
                spec.loader.exec_module(self)
        return getattr(self, name)


def _deferred(spec: ModuleSpec) -> ModuleType:
    package = module_from_spec(spec)
    package.__class__ = _Deferred
    return package


class _Ibis:
    """Ibis, imported when it is first asked for anything: that takes longer than all that describes a table."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module("ibis"), name)


ibis = _Ibis()


def load(dialect: str) -> None:
    """Ibis, and its compiler for one dialect."""
    name = f"{PACKAGE}.{dialect}"
    if name in sys.modules:
        return
    with _LOCK, loading():
        import_module("ibis.backends.sql")
        if PACKAGE not in sys.modules and (spec := find_spec(PACKAGE)) is not None:
            sys.modules[PACKAGE] = package = _deferred(spec)
            sys.modules["ibis.backends.sql"].compilers = package  # type: ignore[attr-defined]
        import_module(name)


def sql_of(expression: Any, dialect: str) -> str:
    """The SQL of an Ibis expression.

    >>> import ibis
    >>> sql_of(ibis.table({"a": "int64"}, name="t").count(), "duckdb")
    'SELECT COUNT(*) AS "CountStar(t)" FROM "t" AS "t0"'
    """
    load(dialect)
    return str(ibis.to_sql(expression, dialect=dialect, pretty=False))
