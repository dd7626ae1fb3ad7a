"""Every action of the hub: its name, its title, which roles may do it at all, and who decides on the single object.

Three ways to decide (`Action.by`):

- `role`: the role is enough; the action touches no object of somebody else (invite people, read the audit log).
- `owner`: the role, and the object is one's own (grant access to a data set, cancel a job).
- `grant`: the role, and the object is one's own or its owner granted the action (ask a question, see a release).

An *overseer* is a role that may do an object's action without owning it; no overseer ever reaches rows. An administrator has no
right to data by office. `register_actions` lets a service add its own actions; a name is taken once.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from cloister.errors import InvalidParameter

N_ = str
"""Marks an English text that is translated where it is shown."""

ADMINISTRATOR = "administrator"
STEWARD = "steward"
OWNER = "owner"
PROVIDER = "provider"
ANALYST = "analyst"
ALGORITHM_PROVIDER = "algorithm-provider"
CSP = "csp"
ANYBODY = "anybody"
NOBODY = "nobody"

ROLES: Mapping[str, str] = MappingProxyType(
    {
        ADMINISTRATOR: N_("administrator"),
        STEWARD: N_("steward"),
        OWNER: N_("data owner"),
        PROVIDER: N_("data provider"),
        ANALYST: N_("analyst"),
        ALGORITHM_PROVIDER: N_("algorithm provider"),
        CSP: N_("key holder"),
    }
)
"""The roles that a person may have, several at once, with their titles."""

OFFERED_ROLES = tuple(role for role in ROLES if role != CSP)
"""The roles that can be given today. Nothing stands behind the others yet; a person who has one keeps it."""

STANDINGS = (NOBODY, ANYBODY)
"""What everyone is besides: not signed in, or signed in. An action for `nobody` is open to all."""

_NAME = re.compile(r"[a-z][a-z-]*(\.[a-z][a-z-]*)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing that can be done, and who may do it at all.

    >>> Action(name="survey.open", title="Open a survey", roles=frozenset({"owner"}), by="owner").grantable
    False
    """

    name: str
    title: str
    roles: frozenset[str]
    by: Literal["role", "owner", "grant"] = "role"
    overseers: frozenset[str] = frozenset()
    data: bool = False
    """Rows or releases are read: the purpose must be stated, and the institution's rules apply without being asked to."""
    implied_by: frozenset[str] = frozenset()
    """Actions whose grant gives this one too."""
    by_token: bool = True
    """False: only a person in a browser, never an API token. So is whatever gives people, roles, access or budget: it would
    outlive the token, and a stolen one could make itself a successor."""
    by_algorithm: bool = False
    """A guest's algorithm runs, and the context must name it."""
    as_algorithm: bool = False
    """It may be done by an algorithm, as the context names one: then a grant of `algorithm.run` that names it gives this too, and
    what closes `algorithm.run` closes this."""
    by_method: bool = False
    """A model is trained: rules may say by which methods, and of a context that names none they allow nothing."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise _refused(self.name, "a name is lower-case words joined by dots", 'name="survey.open"')
        unknown = sorted((self.roles | self.overseers) - {*ROLES, *STANDINGS})
        if unknown or not self.roles:
            raise _refused(self.name, f"its roles must be among {', '.join([*ROLES, *STANDINGS])}", 'roles=frozenset({"owner"})')
        if self.overseers and (self.by == "role" or not (self.overseers <= self.roles or ANYBODY in self.roles)):
            raise _refused(self.name, "overseers watch over an object, and need the role itself", 'by="owner"')
        if self.data and self.overseers:
            raise _refused(self.name, "no role gives access to rows or releases", "data=False, or no overseers")

    @property
    def grantable(self) -> bool:
        """Whether an owner may put it into a grant."""
        return self.by == "grant"


def _of(name: str, title: str, *roles: str, by: Literal["role", "owner", "grant"] = "role", **more: object) -> Action:
    sets = {key: frozenset(value) if isinstance(value, tuple) else value for key, value in more.items()}
    return Action(name=name, title=title, roles=frozenset(roles), by=by, **sets)  # type: ignore[arg-type]


READS = ("question.ask", "learn.run", "anonymize.run", "synthesise.run", "compress.run", "joint.run", "algorithm.run")
"""What is done with the rows of a data set."""
_OFFICE = (ADMINISTRATOR, STEWARD)
_USERS = (ANALYST, OWNER)

BUILT_IN = (
    _of("public.read", N_("Read the public pages"), NOBODY),
    _of("profile.manage", N_("Change one's own profile"), ANYBODY, by_token=False),
    _of("token.manage", N_("Make and revoke API tokens"), ANYBODY, by="owner", overseers=(ADMINISTRATOR,), by_token=False),
    _of("people.see", N_("See who uses the hub"), *_OFFICE),
    _of("people.invite", N_("Invite people"), *_OFFICE, by_token=False),
    _of("people.block", N_("Block people"), ADMINISTRATOR, by_token=False),
    _of("roles.give", N_("Give and take roles"), ADMINISTRATOR, by_token=False),
    _of("policy.see", N_("Read the institution's policy"), ANYBODY),
    _of("policy.write", N_("Write the institution's policy"), *_OFFICE, by_token=False),
    _of("settings.see", N_("See the settings"), ADMINISTRATOR),
    _of("metrics.see", N_("See the metrics"), ADMINISTRATOR),
    _of("trail.own", N_("View your own audit log"), ANYBODY),
    _of("trail.read", N_("View the whole audit log"), *_OFFICE),
    _of("trail.acknowledge", N_("Acknowledge alerts"), *_OFFICE),
    _of("trail.verify", N_("Verify the audit log"), *_OFFICE),
    _of("dataset.register", N_("Register a data set"), OWNER),
    _of(
        "dataset.see",
        N_("See a data set in the catalogue"),
        ANYBODY,
        by="grant",
        overseers=_OFFICE,
        implied_by=(*READS, "question.explain", "question.rehearse", "dataset.describe", "dataset.version", "dataset.uses"),
    ),
    _of("dataset.describe", N_("Describe a data set"), OWNER, PROVIDER, ANALYST, by="grant"),
    _of("dataset.version", N_("Add a version"), OWNER, PROVIDER, by="grant"),
    _of("dataset.uses", N_("See what ran on a data set"), ANYBODY, by="grant", overseers=(STEWARD,)),
    _of("dataset.manage", N_("Manage a data set"), OWNER, by="owner"),
    _of("dataset.delete", N_("Delete a data set"), OWNER, by="owner"),
    _of("dataset.grant", N_("Grant and revoke access"), OWNER, by="owner", by_token=False),
    _of("dataset.budget", N_("Set a budget and its shares"), OWNER, by="owner", by_token=False),
    _of("contribution.see", N_("See how your contributed data is used"), PROVIDER, OWNER, by="owner"),
    _of("contribution.manage", N_("Attach a policy to your contributed data"), PROVIDER, OWNER, by="owner"),
    _of("access.ask", N_("Ask for access"), ANYBODY),
    _of("access.see", N_("See a request for access"), ANYBODY, by="owner", overseers=(STEWARD,)),
    _of("access.decide", N_("Decide on a request for access"), OWNER, by="owner", by_token=False),
    _of("project.create", N_("Start a project"), *_USERS, *_OFFICE),
    _of("project.manage", N_("Manage a project"), *_USERS, *_OFFICE, by="owner"),
    _of("project.join", N_("Join a project"), ANYBODY),
    _of("project.see", N_("See a project"), ANYBODY, by="grant", overseers=_OFFICE),
    _of("question.explain", N_("Explain a query"), *_USERS, by="grant", implied_by=("question.ask",), as_algorithm=True),
    _of(
        "question.rehearse",
        N_("Rehearse a query"),
        *_USERS,
        by="grant",
        implied_by=("question.ask", "question.explain"),
        as_algorithm=True,
    ),
    _of("question.ask", N_("Run a query"), *_USERS, by="grant", data=True, as_algorithm=True),
    _of("question.see", N_("See a saved query"), ANYBODY, by="grant", implied_by=("question.manage",)),
    _of("question.manage", N_("Save and share queries"), *_USERS, by="grant"),
    _of("learn.run", N_("Train a model"), *_USERS, by="grant", data=True, by_method=True, as_algorithm=True),
    _of("anonymize.run", N_("Make an anonymised table"), *_USERS, by="grant", data=True),
    _of("synthesise.run", N_("Make a synthetic table"), *_USERS, by="grant", data=True),
    _of("compress.run", N_("Make a projection"), *_USERS, by="grant", data=True),
    _of("joint.run", N_("Learn jointly: the result goes to all owners"), *_USERS, by="grant", data=True),
    _of("release.see", N_("See a release"), ANYBODY, by="grant", data=True, implied_by=("release.download", "release.share")),
    _of("release.download", N_("Download a release"), ANYBODY, by="grant", data=True),
    _of("release.pool", N_("Pool releases"), ANYBODY),
    _of("release.share", N_("Share a release"), *_USERS, by="grant", data=True),
    _of("release.publish", N_("Publish an answer on other sites"), *_USERS, by="grant", data=True, by_token=False),
    _of("algorithm.register", N_("Register an algorithm"), ALGORITHM_PROVIDER),
    _of("algorithm.manage", N_("Manage an algorithm"), ALGORITHM_PROVIDER, by="owner"),
    _of("algorithm.see", N_("See an algorithm"), ANYBODY, by="grant", overseers=_OFFICE, implied_by=("algorithm.run",)),
    _of("algorithm.run", N_("Run an algorithm"), *_USERS, by="grant", data=True, by_algorithm=True),
    _of("job.see", N_("See a job"), ANYBODY, by="owner", overseers=_OFFICE),
    _of("job.cancel", N_("Cancel a job"), ANYBODY, by="owner", overseers=(ADMINISTRATOR,)),
    _of("budget.see", N_("See a budget"), ANYBODY, by="grant", overseers=_OFFICE, implied_by=READS),
    _of("budget.ask", N_("Ask for more budget"), *_USERS),
    _of("budget.raise", N_("Raise a budget"), OWNER, by="owner", by_token=False),
)
"""What the frame itself knows; services register theirs."""

_ACTIONS: dict[str, Action] = {action.name: action for action in BUILT_IN}


def actions() -> Mapping[str, Action]:
    """Every action that is known, by its name; a view that nobody can change.

    >>> actions()["question.ask"].title
    'Run a query'
    """
    return MappingProxyType(_ACTIONS)


def register_actions(more: Iterable[Action]) -> None:
    """Add a service's own actions: all of them, or none where one name is already taken.

    >>> register_actions([Action(name="question.ask", title="Ask", roles=frozenset({"analyst"}))])
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The action 'question.ask' is invalid: its name is taken.
      Instead: register it once, under a name of its own
    """
    new: dict[str, Action] = {}
    for action in more:
        if action.name in _ACTIONS or action.name in new:
            raise _refused(action.name, "its name is taken", "register it once, under a name of its own")
        new[action.name] = action
    _ACTIONS.update(new)


def known(name: str) -> bool:
    """Whether an action, or a token's scope such as `question.*` or `*` (everything), names something that can be done.

    >>> known("question.ask"), known("question.*"), known("question.steal"), known("*")
    (True, True, False, True)
    """
    if name == "*":
        return True
    if name.endswith(".*"):
        return any(each.startswith(name[:-1]) for each in _ACTIONS)
    return name in _ACTIONS


def _refused(name: str, why: str, instead: str) -> InvalidParameter:
    return InvalidParameter(f"The action {name!r} is invalid", why=why, instead=instead)
