"""Words that the hub keeps in its database, in English for people; the pages translate them."""

from __future__ import annotations

from cloister.hub.web.languages import N_

__all__ = ["ROLES", "STATES", "role_title", "state_title"]

ROLES = {
    "administrator": N_("Administrator"),
    "algorithm-provider": N_("Algorithm provider"),
    "analyst": N_("Data user"),
    "csp": N_("Crypto service provider"),
    "owner": N_("Data owner"),
    "provider": N_("Data provider"),
    "steward": N_("Steward"),
}

STATES = {
    "active": N_("Active"),
    "approved": N_("Approved"),
    "asked": N_("Asked"),
    "blocked": N_("Blocked"),
    "cancelled": N_("Cancelled"),
    "closed": N_("Closed"),
    "collecting": N_("Taking answers"),
    "deleted": N_("Deleted"),
    "denied": N_("Denied"),
    "done": N_("Done"),
    "draft": N_("Draft"),
    "expired": N_("Expired"),
    "failed": N_("Failed"),
    "granted": N_("Granted"),
    "open": N_("Open"),
    "pending": N_("Pending"),
    "ready": N_("Ready"),
    "revoked": N_("Revoked"),
    "running": N_("Running"),
    "unbounded": N_("Unbounded"),
    "waiting": N_("Waiting"),
    "withdrawn": N_("Withdrawn"),
}


def role_title(role: str) -> str:
    """A role, for people.

    >>> role_title("owner"), role_title("head-gardener")
    ('Data owner', 'Head gardener')
    """
    return ROLES.get(role, role.replace("-", " ").capitalize())


def state_title(state: str) -> str:
    """A state, for people.

    >>> state_title("done"), state_title("half_done")
    ('Done', 'Half done')
    """
    return STATES.get(state, state.replace("_", " ").replace("-", " ").capitalize())
