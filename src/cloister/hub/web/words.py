"""Words that the hub keeps in its database, in English for people; the pages translate them."""

from __future__ import annotations

from cloister.hub.web.languages import N_, NC_

ROLES = {
    "administrator": N_("Administrator"),
    "algorithm-provider": N_("Algorithm provider"),
    "analyst": N_("Analyst"),
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
    "unbounded": N_("Not covered by the budget"),
    "waiting": N_("Waiting"),
    "withdrawn": N_("Withdrawn"),
}

TERMS = (
    NC_("along", "along the dates in {column}"),
    NC_("along", "by its owner's hand, along no column"),
    NC_("bound", "less than {number}"),
    NC_("bound", "more than {number}"),
    *(NC_("every", "month"), NC_("every", "quarter"), NC_("every", "year")),
    *(NC_("kind", "boolean"), NC_("kind", "category"), NC_("kind", "date"), NC_("kind", "decimal"), NC_("kind", "identifier")),
    *(NC_("kind", "integer"), NC_("kind", "real"), NC_("kind", "text")),
    *(NC_("kinds", "days"), NC_("kinds", "numbers"), NC_("kinds", "texts"), NC_("kinds", "truth values")),
    *(NC_("kinds", "persons"), NC_("kinds", "values of {column}")),
    *(NC_("kind", "dates"), NC_("kind", "decimal numbers"), NC_("kind", "times"), NC_("kind", "whole numbers")),
    *(NC_("kind", "a type that no declaration fits"), NC_("kind", "numbers"), NC_("kind", "truth values")),
    *(
        NC_("kind", "avg"),
        NC_("kind", "correlation"),
        NC_("kind", "covariance"),
        NC_("kind", "mean"),
        NC_("kind", "sum"),
        NC_("kind", "variance"),
    ),
    *(NC_("part", "columns"), NC_("part", "risk"), NC_("part", "rows"), NC_("part", "share")),
    NC_("shape", "a flat list of numbers"),
    NC_("shape", "rows of {dimensions} numbers"),
    *(NC_("state", "reserved"), NC_("state", "settled"), NC_("state", "unknown"), NC_("state", "voided")),
    NC_("told", "A charge of {cost}, and a charge to the share for stored answers,"),
    *(NC_("unit", "group"), NC_("unit", "household"), NC_("unit", "person")),
    *(NC_("wanted", "settled"), NC_("wanted", "voided")),
    *(NC_("what", "The budget"), NC_("what", "The budget of {name}"), NC_("what", "The data set"), NC_("what", "The model")),
    *(NC_("what", "The question"), NC_("what", "The share")),
    *(NC_("what", "bytes"), NC_("what", "columns"), NC_("what", "rows")),
    N_("The description is invalid"),
)
"""Words of the library's that stand inside its messages, by the place where they do (`retelling.py`)."""


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
