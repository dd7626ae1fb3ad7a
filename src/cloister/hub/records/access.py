"""Who may do what: grants, requests, the institution's rules, projects and algorithms."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base, Identified


class Grant(Identified):
    """A role on an object: its attributes say who is in it, its rules what they may do (`policy/facts.py` reads both)."""

    __tablename__ = "grant_"

    kind: Mapped[str] = mapped_column(String(20))
    """data-set, algorithm or project."""
    object: Mapped[str] = mapped_column(String(32), index=True)
    role: Mapped[str] = mapped_column(String(100))
    attributes: Mapped[dict[str, Any]]
    rules: Mapped[dict[str, Any]]
    granted_by: Mapped[str] = mapped_column(ForeignKey("person.id"))
    created: Mapped[datetime]
    revoked: Mapped[datetime | None] = mapped_column(default=None)
    revoked_by: Mapped[str] = mapped_column(String(32), default="")
    request: Mapped[str] = mapped_column(String(32), default="")


class AccessRequest(Identified):
    """Somebody asks an owner for access."""

    __tablename__ = "access_request"

    data_set: Mapped[str] = mapped_column(ForeignKey("data_set.id"), index=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    purpose: Mapped[str] = mapped_column(default="")
    wanted: Mapped[dict[str, Any]]
    """Actions, columns, share and until when, as they are asked for."""
    state: Mapped[str] = mapped_column(String(20), default="open")
    """open, granted, denied, withdrawn."""
    decided_by: Mapped[str] = mapped_column(String(32), default="")
    decided: Mapped[datetime | None] = mapped_column(default=None)
    created: Mapped[datetime]


class Message(Base):
    """What is said about a request (of access, or of budget)."""

    __tablename__ = "message"

    id: Mapped[int] = mapped_column(primary_key=True)
    about: Mapped[str] = mapped_column(String(32), index=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"))
    text: Mapped[str]
    created: Mapped[datetime]


class InstitutionRule(Identified):
    """A rule of the institution, above what owners decide."""

    __tablename__ = "institution_rule"

    title: Mapped[str] = mapped_column(String(200))
    rule: Mapped[dict[str, Any]]
    made_by: Mapped[str] = mapped_column(ForeignKey("person.id"))
    created: Mapped[datetime]
    ended: Mapped[datetime | None] = mapped_column(default=None)


class Project(Identified):
    """A workspace: one study, its members, the data sets of several owners, what was asked and released."""

    __tablename__ = "project"

    name: Mapped[str] = mapped_column(String(63), unique=True)
    title: Mapped[str] = mapped_column(String(200))
    purpose: Mapped[str] = mapped_column(default="")
    about: Mapped[str] = mapped_column(default="")
    lead: Mapped[str] = mapped_column(ForeignKey("person.id"))
    created: Mapped[datetime]
    closed: Mapped[datetime | None] = mapped_column(default=None)


class ProjectMember(Base):
    """A person of a project."""

    __tablename__ = "project_member"

    project: Mapped[str] = mapped_column(ForeignKey("project.id"), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), primary_key=True)
    joined: Mapped[datetime]


class ProjectInvitation(Base):
    """An e-mail address that was invited: whoever has it here, now or later, may come in. Nobody is looked up."""

    __tablename__ = "project_invitation"

    project: Mapped[str] = mapped_column(ForeignKey("project.id"), primary_key=True)
    email: Mapped[str] = mapped_column(String(254), primary_key=True)
    invited: Mapped[datetime]


class ProjectDataSet(Base):
    """A data set of a project, and its owner's approval."""

    __tablename__ = "project_data_set"

    project: Mapped[str] = mapped_column(ForeignKey("project.id"), primary_key=True)
    data_set: Mapped[str] = mapped_column(ForeignKey("data_set.id"), primary_key=True)
    asked: Mapped[datetime]
    approved: Mapped[datetime | None] = mapped_column(default=None)
    approved_by: Mapped[str] = mapped_column(String(32), default="")


class Algorithm(Identified):
    """An algorithm or a service as an object with a policy of its own."""

    __tablename__ = "algorithm"

    name: Mapped[str] = mapped_column(String(63), unique=True)
    title: Mapped[str] = mapped_column(String(200))
    about: Mapped[str] = mapped_column(default="")
    provider: Mapped[str] = mapped_column(ForeignKey("person.id"))
    service: Mapped[str] = mapped_column(String(40))
    """The service of the hub that runs it."""
    package: Mapped[str] = mapped_column(String(63), default="")
    """The name of its first version; empty: it is the first."""
    version: Mapped[int] = mapped_column(default=1)
    settings: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]
    withdrawn: Mapped[datetime | None] = mapped_column(default=None)


class GuestReview(Identified):
    """What is known of an algorithm's code near one data set: the audit, who approved it, and whether it was stopped.

    The code of an algorithm never changes under its id. What the data set declares of the columns that it reads may change, and
    then audit and approvals hold no longer: `declared` says for which declaration they were given.
    """

    __tablename__ = "guest_review"
    __table_args__ = (UniqueConstraint("algorithm", "data_set"),)

    algorithm: Mapped[str] = mapped_column(ForeignKey("algorithm.id"), index=True)
    data_set: Mapped[str] = mapped_column(ForeignKey("data_set.id"), index=True)
    declared: Mapped[str] = mapped_column(String(64), default="")
    """A digest of the code and of what the data set declared when it was reviewed."""
    found: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """What tests, runs on made-up rows and the audit gave; empty before."""
    approvals: Mapped[list[Any]] = mapped_column(default=list)
    """`{"person": …, "when": …}`, the first one first."""
    stopped: Mapped[datetime | None] = mapped_column(default=None)
    stopped_by: Mapped[str] = mapped_column(String(32), default="")
    """A person; empty: the hub itself, after an alert."""
    why: Mapped[str] = mapped_column(String(200), default="")
    """An English msgid, or what a person wrote."""
    created: Mapped[datetime]


class BudgetRequest(Identified):
    """Somebody asks for more of a population's budget."""

    __tablename__ = "budget_request"

    population: Mapped[str] = mapped_column(ForeignKey("population.name"), index=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    wanted: Mapped[str] = mapped_column(String(60))
    """The share asked for, in the budget's own measure, as text."""
    reason: Mapped[str] = mapped_column(default="")
    state: Mapped[str] = mapped_column(String(20), default="open")
    decided_by: Mapped[str] = mapped_column(String(32), default="")
    decided: Mapped[datetime | None] = mapped_column(default=None)
    created: Mapped[datetime]
