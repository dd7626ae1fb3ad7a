"""From rows of the database to the facts that a decision is made from; worked out once a generation.

`Facts` is everything that decisions need of the objects: data sets with their grants and policies, algorithms, projects, and the
institution's rules. It is never changed; a change of any of them makes a new generation, and that a new `Facts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.hub.database import OF_ONE_MOMENT, readable
from cloister.hub.decisions.policy import GrantFacts, MandatoryRule, Members, Object, Policy, Rules, Who
from cloister.hub.generation import generation
from cloister.hub.hub import Caller, Hub
from cloister.hub.records.access import Algorithm, Grant, InstitutionRule, Project, ProjectDataSet
from cloister.hub.records.catalogue import DataSet, DataSetPart
from cloister.hub.records.policies import Policies, Unreadable, grant_in_row, policies_in_row, rule_in_row

_PART = "access facts"
_OPEN = (
    "dataset.see",
    "dataset.describe",
    "question.ask",
    "question.explain",
    "question.rehearse",
    "release.see",
    "release.download",
    "release.share",
)
_PUBLIC = GrantFacts(id="public", role="public", members=Members(anybody=True), rules=Rules(actions=frozenset(_OPEN)))
"""What everybody who has signed in may do with a public table: it protects nobody."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One generation of objects and rules."""

    generation: int
    data_sets: Mapping[str, Object] = field(default_factory=dict)
    """By id."""
    algorithms: Mapping[str, Object] = field(default_factory=dict)
    """Those that were not withdrawn."""
    projects: Mapping[str, Object] = field(default_factory=dict)
    """Those that were not closed."""
    mandatory: tuple[MandatoryRule, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    """Rows that hold, and can't be read: they close what they govern (`stored.py`)."""


def facts_of(hub: Hub, db: Session) -> Facts:
    """What holds now. What a transaction reads that may still be undone is kept for it alone."""
    now = generation(db)
    known: Facts | None = hub.parts.get(_PART)
    if known is None or known.generation != now:
        kept: Any = hub.parts if OF_ONE_MOMENT in db.info else db.info
        known = kept.get(_PART)
        if known is None or known.generation != now:
            known = kept[_PART] = read_facts(db)
    return known


def parts_by_data_set(db: Session) -> dict[str, list[str]]:
    """The ids of the parts of each data set that has any, in their order."""
    found: dict[str, list[str]] = {}
    for row in db.scalars(select(DataSetPart).order_by(DataSetPart.data_set, DataSetPart.place)):
        found.setdefault(row.data_set, []).append(row.part)
    return found


def known_generation(hub: Hub) -> int | None:
    """The generation of the facts that this process holds; None before there are any."""
    known: Facts | None = hub.parts.get(_PART)
    return None if known is None else known.generation


def who_of(caller: Caller, facts: Facts | None = None) -> Who:
    """The person as a decision sees them. A certificate holds to the end of its last day; a project that was closed has no
    members.
    """
    return Who(
        id=caller.id,
        email=caller.email,
        roles=caller.roles,
        institution=caller.institution,
        projects=caller.projects if facts is None else caller.projects & facts.projects.keys(),
        training={name: _end_of(day) for name, day in caller.training.items()},
        attributes=caller.attributes,
        token_scopes=frozenset({"*"}) if caller.via == "token" and caller.scopes is None else caller.scopes,
        second_factor=caller.second_factor,
    )


def data_set_object(
    row: DataSet, grants: tuple[GrantFacts, ...] = (), attached: Policies | None = None, parts: Sequence[str] = ()
) -> Object:
    """A data set as a decision sees it. `metadata_` holds its policy under "policy" and those of its columns under "columns";
    `attached` are these where they were read already.

    What was released as a data set is still of the population and the institution whose data it was made of.
    """
    behind = row.released or {}
    found = policies_in_row(row)[0] if attached is None else attached
    policy, given = found.whole, replace(found.given, given=True)
    return Object(
        kind="data-set",
        id=row.id,
        name=row.name,
        owner=row.owner,
        institution=behind.get("institution", row.institution),
        labels=policy.labels | given.labels,
        population=behind.get("population", row.population or ""),
        columns=frozenset(row.declaration.get("columns", {})),
        grants=grants,
        policies=tuple(each for each in (policy, given) if each != Policy()),
        column_policies=found.columns,
        closed=row.state == "closed",
        parts=tuple(parts),
    )


def project_object(row: Project, owners: frozenset[str] = frozenset()) -> Object:
    """A project as a decision sees it: its members see it, and so do the owners whose data sets it asks for."""
    sees = Rules(actions=frozenset({"project.see"}))
    grants = [GrantFacts(id="members", role="member", members=Members(projects=frozenset({row.id})), rules=sees)]
    if owners:
        grants.append(GrantFacts(id="owners", role="owner of its data", members=Members(people=owners), rules=sees))
    return Object(kind="project", id=row.id, name=row.name, owner=row.lead, grants=tuple(grants))


def inside(which: Object, project: str) -> Object:
    """A data set as it is seen in a project: only what was granted to the project counts, or what everybody may."""
    if which.kind != "data-set":
        return which
    kept = (each for each in which.grants if each.id == _PUBLIC.id or project in (each.members.projects or ()))
    return replace(which, grants=tuple(kept))


def read_facts(db: Session) -> Facts:
    """What holds now, as the rows say it; `facts_of` asks once a generation."""
    grants: dict[str, list[GrantFacts]] = {}
    wrong: list[Unreadable] = []
    for row in db.scalars(select(Grant).order_by(Grant.created)):
        found, unread = grant_in_row(row)
        if unread is None:
            grants.setdefault(row.object, []).append(found)
        elif not found.revoked:
            wrong.append(unread)

    def of(name: str) -> tuple[GrantFacts, ...]:
        return tuple(grants.get(name, ()))

    parts = parts_by_data_set(db)
    asked: dict[str, set[str]] = {}
    wanted = select(ProjectDataSet.project, DataSet.owner).join(DataSet, DataSet.id == ProjectDataSet.data_set)
    for project, owner in db.execute(wanted):
        asked.setdefault(project, set()).add(owner)
    kept = db.scalars(select(InstitutionRule).where(InstitutionRule.ended.is_(None)).order_by(InstitutionRule.created))
    rules = [rule_in_row(row) for row in kept]
    wanted_sets = select(DataSet).where(DataSet.state != "deleted")
    held = readable(db.scalars(wanted_sets), but="metadata_", quietly=True)  # what can't be read is open to nobody
    data_sets = [(row, *policies_in_row(row)) for row in held]
    algorithms = readable(db.scalars(select(Algorithm).where(Algorithm.withdrawn.is_(None))), quietly=True)
    present = {row.id for row, _, _ in data_sets} | {row.id for row in algorithms}
    unreadable = [
        *(unread for _, unread in rules if unread is not None),
        *(unread for _, _, found in data_sets for unread in found),
        *(unread for unread in wrong if unread.about in present),
    ]
    return Facts(
        generation=generation(db),
        data_sets={
            row.id: data_set_object(
                row, (*of(row.id), *((_PUBLIC,) if row.public and not row.released else ())), attached, parts.get(row.id, ())
            )
            for row, attached, _ in data_sets
        },
        algorithms={
            row.id: Object(kind="algorithm", id=row.id, name=row.name, owner=row.provider, grants=of(row.id))
            for row in algorithms
        },
        projects={
            row.id: project_object(row, frozenset(asked.get(row.id, ())))
            for row in readable(db.scalars(select(Project).where(Project.closed.is_(None))), quietly=True)
        },
        mandatory=tuple(rule for rule, _ in rules),
        unreadable=tuple(unreadable),
    )


def project_of(facts: Facts, caller: Caller, named: str) -> str:
    """The id of an open project that the caller is in, from its id or its name; anything else stays as it is, to be refused."""
    mine = caller.projects & facts.projects.keys()
    return named if named in mine else next((each for each in mine if facts.projects[each].name == named), named)


def project_account(project: str) -> str:
    """The name under which the ledger counts what is asked in a project, by the project's name.

    >>> project_account("heart-study")
    'project heart-study'
    """
    return f"project {project}"


def _end_of(day: str) -> datetime:
    """The end of a day; of what is no day, a moment long ago: such a certificate holds no more."""
    try:
        return datetime.combine(datetime.fromisoformat(day).date(), time.max, UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
