"""Ids and the names that people use: grants and rules keep ids, pages show names, and forms take names.

A name is looked up among what the one who writes it may see; what they may not see is unknown in the words for what does not
exist.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import InvalidDeclaration
from cloister.hub.decisions.checking import allowed
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy import GrantFacts, Object
from cloister.hub.hub import Caller, Hub
from cloister.hub.records.access import AccessRequest, Algorithm, Project, ProjectDataSet, ProjectMember
from cloister.hub.records.accounts import Person, folded, person_of_address
from cloister.hub.records.catalogue import DataSet

_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")


@dataclass(frozen=True, kw_only=True)
class Names:
    """Id → name, for pages.

    >>> Names(people={"p1": "Ada"}).person("p1"), Names().person("p2")
    ('Ada', 'p2')
    """

    people: Mapping[str, str] = field(default_factory=dict)
    emails: Mapping[str, str] = field(default_factory=dict)
    projects: Mapping[str, str] = field(default_factory=dict)
    data_sets: Mapping[str, str] = field(default_factory=dict)
    algorithms: Mapping[str, str] = field(default_factory=dict)
    zone: str = "UTC"
    """In which the hours of grants are meant."""

    def person(self, number: str) -> str:
        """A person's name."""
        return self.people.get(number, number)

    def project(self, number: str) -> str:
        """A project's name."""
        return self.projects.get(number, number)

    def object(self, number: str) -> str:
        """The name of a data set or an algorithm."""
        return self.data_sets.get(number) or self.algorithms.get(number, number)


def names_in(db: Session, grants: Iterable[GrantFacts] = (), people: Iterable[str] = ()) -> Names:
    """The names of everything that grants speak of, and of further people."""
    wanted = set(people)
    for grant in grants:
        wanted |= (grant.members.people or frozenset()) | {grant.granted_by}
    rows = list(db.execute(select(Person.id, Person.name, Person.email).where(Person.id.in_(wanted - {""}))))
    return Names(
        people={row.id: row.name for row in rows},
        emails={row.id: row.email for row in rows},
        projects={row.id: row.name for row in db.execute(select(Project.id, Project.name))},
        data_sets={row.id: row.name for row in db.execute(select(DataSet.id, DataSet.name))},
        algorithms={row.id: row.name for row in db.execute(select(Algorithm.id, Algorithm.name))},
    )


def person_called(db: Session, which: Object, text: str) -> Person:
    """The person of an e-mail address or an id, for the owner of an object: somebody who is in a grant on it, who asked for it,
    or whose project did. Of anybody else it is not told whether they are here.
    """
    found = person_of_address(db, text) if "@" in text else db.get(Person, text) if _ID.fullmatch(text) else None
    if found is None or not _known_to(db, which, found):
        why = "no one with this address has a grant from you, has asked you for access, or is in a project that has"
        raise _unknown("people", why, '"ada@example.org"')
    return found


def _known_to(db: Session, which: Object, person: Person) -> bool:
    if any({person.id, person.email} & (grant.members.people or frozenset()) for grant in which.grants):
        return True
    asked = select(AccessRequest.id).where(AccessRequest.data_set == which.id, AccessRequest.person == person.id)
    joined = select(ProjectMember.person).join(ProjectDataSet, ProjectDataSet.project == ProjectMember.project)
    joined = joined.where(ProjectDataSet.data_set == which.id, ProjectMember.person == person.id)
    return db.scalar(asked.limit(1)) is not None or db.scalar(joined.limit(1)) is not None


def resolved(hub: Hub, db: Session, caller: Caller, draft: Mapping[str, Any]) -> dict[str, Any]:
    """The draft of a grant with ids where names were written. What is no list is left as it is, for its reader to refuse.

    An e-mail address stays one, and nobody is looked up: whoever has it here, now or later, is meant, and its owner is not told
    whether anybody does.
    """
    facts = facts_of(hub, db)

    def among(objects: Iterable[Object], action: str) -> dict[str, str]:
        seen = [each for each in objects if allowed(hub, db, caller, action, each).allowed]
        return {each.name: each.id for each in seen} | {each.id: each.id for each in seen}

    def exchanged(part: str, key: str, find: Callable[[str], str]) -> None:
        inner = found.get(part)
        listed = inner.get(key) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping) and isinstance(listed, list):
            found[part] = {**inner, key: [find(each) if isinstance(each, str) else each for each in listed]}

    def one_of(kinds: dict[str, str], place: str) -> Callable[[str], str]:
        def find(text: str) -> str:
            if text not in kinds:
                raise _unknown(place, "one of them does not exist, or was not shown to you", "a name that you see in the hub")
            return kinds[text]

        return find

    found = dict(draft)
    exchanged("members", "people", lambda text: folded(text) if "@" in text else _by_id(db, text))
    exchanged("members", "projects", one_of(among(facts.projects.values(), "project.see"), "projects"))
    exchanged("rules", "algorithms", one_of(among(facts.algorithms.values(), "algorithm.see"), "algorithms"))
    data_sets = among(facts.data_sets.values(), "dataset.see")
    algorithms = among(facts.algorithms.values(), "algorithm.see")
    exchanged("rules", "only_with", one_of(algorithms | data_sets, "only_with"))
    return found


def _by_id(db: Session, text: str) -> str:
    found = db.get(Person, text) if _ID.fullmatch(text) else None
    if found is None:
        raise _unknown("people", "it is neither an e-mail address nor a person's id", '"ada@example.org"')
    return found.id


def _unknown(place: str, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"{place} is invalid", why=why, instead=instead)
