"""The services of a hub, one line each. A new service is a package beside these and a line in the list.

Services stand in an order (.importlinter): one uses those under it, and only the names that their `__init__.py` export. What
several of them need to carry work out is in `hub/work`, and what holds for all that left in `hub/releases`.
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
    "synthesising",
    "journeys",
    "guests",
    "projecting",
    "joint_learning",
    "sites",
    "pooling",
    "vault",
    "surveys",
    "streams",
    "admin",
    "jobs",  # last: work begins when everything else is open
)


def all_services() -> list[Service]:
    """Every service, in the order in which a process opens them.

    >>> [service.name for service in all_services()][:2]
    ['trail', 'accounts']
    """
    return [importlib.import_module(f"cloister.hub.services.{name}").SERVICE for name in _NAMES]
