"""The services of a hub, one line each. A new service is a package beside these and a line in the list.

What all of them stand on (accounts, access, catalogue, …) is in `hub/platform`; what several of them need to carry work out in
`hub/work`, and what holds for all that left in `hub/releases`. A service uses only the names that another's `__init__` exports.
"""

import importlib

from cloister.hub.service import Service

_NAMES = (
    "platform.trail",  # first: everybody writes into it, and it is closed last
    "platform.accounts",
    "platform.access",
    "platform.catalogue",
    "services.asking",
    "platform.budgets",
    "services.learning",
    "services.anonymizing",
    "services.synthesising",
    "services.journeys",
    "services.guests",
    "services.projecting",
    "services.joint_learning",
    "services.sites",
    "services.pooling",
    "services.vault",
    "services.surveys",
    "services.streams",
    "services.admin",
    "platform.jobs",  # last: work begins when everything else is open
)


def all_services() -> list[Service]:
    """Every service, in the order in which a process opens them.

    >>> [service.name for service in all_services()][:2]
    ['trail', 'accounts']
    """
    return [importlib.import_module(f"cloister.hub.{name}").SERVICE for name in _NAMES]
