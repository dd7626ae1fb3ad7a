"""All tables of the hub: what migrations compare a database with."""

from __future__ import annotations

import importlib
import pkgutil

from cloister.hub import records


def every_model() -> None:
    """Declare every table on the one `Base`.

    >>> every_model()
    >>> from cloister.hub.database import Base
    >>> "person" in Base.metadata.tables
    True
    """
    for found in pkgutil.iter_modules(records.__path__):
        importlib.import_module(f"cloister.hub.records.{found.name}")
    for frame in ("secrets", "generation"):
        importlib.import_module(f"cloister.hub.{frame}")
