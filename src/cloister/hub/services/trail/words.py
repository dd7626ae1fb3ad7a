"""What lines say, for people: titles of actions that no policy knows, of kinds of objects, and the names of what has one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.hub.policy import actions
from cloister.hub.records.access import Algorithm, Project
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import DataSet

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["KINDS", "names_of_objects", "titles"]

N_ = str
"""Marks an English text that is translated where it is shown."""

_OWN = {
    "trail.export": N_("Export the trail"),
    "trail.gap": N_("Lines of the trail are lost"),
    "trail.accept": N_("Answer for lost lines"),
    "alert.raise": N_("Raise an alert"),
    "alert.see": N_("Look at an alert"),
    "job.submit": N_("Submit a job"),
    "job.end": N_("A job ended"),
    "session.begin": N_("Log in"),
    "session.end": N_("Log out"),
    "session.fail": N_("A log-in failed"),
    "session.second-factor": N_("Change the second factor"),
    "password.change": N_("Change a password"),
    "profile.change": N_("Change a profile"),
    "people.join": N_("Join the hub"),
    "people.describe": N_("Change what is known of a person"),
    "people.password-link": N_("Make a link to a new password"),
    "people.unblock": N_("Unblock people"),
    "people.withdraw-invitation": N_("Withdraw an invitation"),
    "token.make": N_("Make an API token"),
    "token.rename": N_("Rename an API token"),
    "token.revoke": N_("Revoke an API token"),
    "dataset.upload": N_("Upload a file"),
    "dataset.check": N_("Check the file"),
    "dataset.connect": N_("Connect to a database"),
    "dataset.discard": N_("Discard an upload"),
    "dataset.expire": N_("A data set reached its last day"),
    "dataset.look": N_("Look at the first rows of an upload"),
    "question.save": N_("Save a question"),
    "question.remove": N_("Remove a saved question"),
    "release.rename": N_("Rename an answer"),
    "release.withdraw": N_("Show an answer no longer"),
    "survey.open": N_("Open a survey"),
    "survey.close": N_("Close a survey"),
    "survey.invite": N_("Make invitations to a survey"),
    "survey.drop": N_("Throw a draft of a survey away"),
}

KINDS = {
    "alert": N_("alert"),
    "algorithm": N_("algorithm"),
    "anonymized-table": N_("anonymised table"),
    "connection": N_("connection"),
    "survey": N_("survey"),
    "data-set": N_("data set"),
    "grant": N_("grant"),
    "invitation": N_("invitation"),
    "job": N_("job"),
    "model": N_("model"),
    "person": N_("person"),
    "population": N_("population"),
    "project": N_("project"),
    "question": N_("saved question"),
    "release": N_("answer"),
    "request": N_("request"),
    "rule": N_("rule"),
    "token": N_("API token"),
    "trial": N_("trial of a table"),
    "trail": N_("trail"),
    "upload": N_("upload"),
}
"""What objects are called that have no name of their own."""

DETAILS = (
    N_("about"),
    N_("address"),
    N_("after"),
    N_("algorithm"),
    N_("attempt"),
    N_("before"),
    N_("by"),
    N_("bytes"),
    N_("changed"),
    N_("charged by"),
    N_("columns"),
    N_("data sets"),
    N_("days"),
    N_("decision"),
    N_("ended"),
    N_("filters"),
    N_("form"),
    N_("format"),
    N_("grants"),
    N_("job"),
    N_("joined"),
    N_("ledger lines"),
    N_("made by"),
    N_("name"),
    N_("outcome"),
    N_("person"),
    N_("policy"),
    N_("population"),
    N_("project"),
    N_("purpose"),
    N_("reason"),
    N_("release"),
    N_("request"),
    N_("roles"),
    N_("rows"),
    N_("rule"),
    N_("scopes"),
    N_("service"),
    N_("share"),
    N_("state"),
    N_("title"),
    N_("until"),
    N_("version"),
    N_("via"),
    N_("wanted"),
    N_("who"),
    N_("why"),
    N_("withdrawn"),
)
"""What a line may say besides, as a page names it."""


def titles() -> dict[str, str]:
    """Action → title, in English.

    >>> titles()["job.end"], titles()["question.ask"]
    ('A job ended', 'Ask a question')
    """
    return {name: action.title for name, action in actions().items()} | _OWN


def names_of_objects(db: Session, ids: Iterable[str], *, data_sets: Iterable[str] | None = None) -> dict[str, str]:
    """Id → name, of the data sets, people, projects and algorithms among `ids`; of `data_sets` alone where they are given."""
    wanted = {each for each in ids if each}
    seen = wanted if data_sets is None else wanted & set(data_sets)
    found = {row.id: row.name for row in db.execute(select(DataSet.id, DataSet.name).where(DataSet.id.in_(seen)))}
    for kind in (Person, Project, Algorithm):
        found |= {row.id: row.name for row in db.execute(select(kind.id, kind.name).where(kind.id.in_(wanted)))}
    return found
