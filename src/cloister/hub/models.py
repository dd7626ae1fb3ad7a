"""All tables of the hub, whichever service they belong to: what migrations compare a database with."""

from __future__ import annotations

import importlib

__all__ = ["every_model"]

_HOMES = ("accounts", "access", "catalogue", "asking", "budgets", "jobs", "trail")


def every_model() -> None:
    """Declare every service's tables on the one `Base`.

    >>> every_model()
    >>> from cloister.hub.database import Base
    >>> "person" in Base.metadata.tables
    True
    """
    for frame in ("kept", "generation"):
        importlib.import_module(f"cloister.hub.{frame}")
    for home in _HOMES:
        importlib.import_module(f"cloister.hub.services.{home}.models")
