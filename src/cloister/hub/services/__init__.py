"""The services of a hub, one line each. A new service is a package beside these and a line in the list.

A service may use another only through the names that its `__init__.py` exports, or through its `models.py`.
"""

from __future__ import annotations

import importlib

from cloister.hub.service import Service

__all__ = ["all_services"]

_NAMES = (
    "trail",  # first: everybody writes into it, and it is closed last
    "accounts",
    "access",
    "catalogue",
    "asking",
    "budgets",
    "learning",
    "anonymizing",
    "surveys",
    "admin",
    "jobs",  # last: work begins when everything else is open
)


def all_services() -> list[Service]:
    """Every service, in the order in which a process opens them.

    >>> [service.name for service in all_services()][:2]
    ['trail', 'accounts']
    """
    return [importlib.import_module(f"cloister.hub.services.{name}").SERVICE for name in _NAMES]
