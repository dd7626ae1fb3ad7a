"""The hub's own state: whether it is well, what it counts, how it is set.

Pages of the administrator, and the two addresses that machines read: /healthz and /metrics. People, policies and the audit log
have services of their own.
"""

from __future__ import annotations

from cloister.hub.service import Link, Service
from cloister.hub.services.admin.routes import api, pages

__all__ = ["SERVICE"]

SERVICE = Service(
    name="admin",
    title="Administration",
    pages=pages,
    api=api,
    links=(
        Link(
            title="Settings",
            path="/settings",
            group="govern",
            help="reference/settings",
            action="settings.see",
            order=90,
            icon="settings",
        ),
    ),
)
