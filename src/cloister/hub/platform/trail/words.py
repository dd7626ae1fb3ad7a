"""What entries say, for people: what happened, the kinds of objects, and the names of what has one."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.hub.decisions.policy import actions
from cloister.hub.records.access import Algorithm, Project
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import DataSet

N_ = str
"""Marks an English text that is translated where it is shown."""

_EVENTS = {
    "access.ask": N_("Access requested"),
    "access.decide": N_("Access request decided"),
    "access.see": N_("Access request viewed"),
    "alert.raise": N_("Alert raised"),
    "alert.see": N_("Alert acknowledged"),
    "algorithm.admit": N_("Algorithm approved"),
    "algorithm.audit": N_("Algorithm audited"),
    "algorithm.lift": N_("Algorithm let run again"),
    "algorithm.manage": N_("Algorithm changed"),
    "algorithm.register": N_("Algorithm registered"),
    "algorithm.run": N_("Algorithm run"),
    "algorithm.see": N_("Algorithm viewed"),
    "algorithm.stop": N_("Algorithm stopped"),
    "anonymize.run": N_("Anonymised table made"),
    "budget.ask": N_("More budget requested"),
    "budget.charges": N_("Shares and charges viewed"),
    "budget.raise": N_("Budget raised"),
    "budget.see": N_("Budget viewed"),
    "compress.run": N_("Projection made"),
    "contribution.manage": N_("Policy of contributed data changed"),
    "contribution.see": N_("Uses of contributed data viewed"),
    "dataset.budget": N_("Budget set"),
    "dataset.check": N_("File checked"),
    "dataset.close": N_("Data set closed"),
    "dataset.connect": N_("Database connected"),
    "dataset.delete": N_("Data set deleted"),
    "dataset.describe": N_("Data set description changed"),
    "dataset.destroy": N_("Key of a version destroyed"),
    "dataset.discard": N_("Upload discarded"),
    "dataset.expire": N_("Retention ended: keys destroyed"),
    "dataset.grant": N_("Access granted"),
    "dataset.list": N_("Catalogue listing changed"),
    "dataset.look": N_("First rows of an upload viewed"),
    "dataset.manage": N_("Data set changed"),
    "dataset.open": N_("Data set opened"),
    "dataset.redeclare": N_("Declaration changed"),
    "dataset.register": N_("Data set registered"),
    "dataset.revoke": N_("Access revoked"),
    "dataset.see": N_("Data set viewed"),
    "dataset.shared": N_("Data set closed: another one has the same rows"),
    "dataset.trial": N_("Trial reading of an upload made"),
    "dataset.upload": N_("File uploaded"),
    "dataset.uses": N_("Uses of a data set viewed"),
    "dataset.version": N_("Version added"),
    "dashboard.change": N_("Dashboard changed"),
    "dashboard.create": N_("Dashboard created"),
    "dashboard.refresh": N_("Dashboard refreshed"),
    "dashboard.remove": N_("Dashboard removed"),
    "job.cancel": N_("Job cancelled"),
    "job.end": N_("Job ended"),
    "job.see": N_("Job viewed"),
    "job.submit": N_("Job submitted"),
    "joint.run": N_("Directions learnt jointly"),
    "learn.run": N_("Model trained"),
    "metrics.see": N_("Metrics viewed"),
    "password.change": N_("Password changed"),
    "people.block": N_("Person blocked"),
    "people.describe": N_("Person's details changed"),
    "people.invite": N_("Person invited"),
    "people.join": N_("Person joined"),
    "people.password-link": N_("Password reset link created"),
    "people.see": N_("People viewed"),
    "people.unblock": N_("Person unblocked"),
    "people.withdraw-invitation": N_("Invitation withdrawn"),
    "policy.see": N_("Institution's policy viewed"),
    "policy.write": N_("Institution's policy changed"),
    "profile.change": N_("Profile changed"),
    "profile.manage": N_("Profile changed"),
    "project.create": N_("Project started"),
    "project.manage": N_("Project changed"),
    "project.see": N_("Project viewed"),
    "public.read": N_("Public page read"),
    "question.ask": N_("Query run"),
    "question.explain": N_("Query explained"),
    "question.manage": N_("Saved query changed"),
    "question.rehearse": N_("Query rehearsed"),
    "question.remove": N_("Saved query removed"),
    "question.save": N_("Query saved"),
    "question.see": N_("Saved query viewed"),
    "release.answer": N_("Synthetic table queried"),
    "release.compare": N_("Release compared with its rows"),
    "release.derive": N_("Release made of releases"),
    "release.download": N_("Answer downloaded"),
    "release.publish": N_("Answer published"),
    "release.rename": N_("Answer renamed"),
    "release.see": N_("Answer viewed"),
    "release.share": N_("Answer shared"),
    "release.unpublish": N_("Published view revoked"),
    "release.withdraw": N_("Answer no longer shared"),
    "roles.give": N_("Roles changed"),
    "session.begin": N_("Signed in"),
    "session.end": N_("Signed out"),
    "session.fail": N_("Sign-in failed"),
    "session.second-factor": N_("Two-step verification changed"),
    "settings.see": N_("Settings viewed"),
    "stream.close": N_("Stream closed"),
    "stream.device": N_("Device of a stream added"),
    "stream.manage": N_("Stream changed"),
    "stream.open": N_("Stream opened"),
    "stream.revoke": N_("Key of a device revoked"),
    "stream.see": N_("Stream viewed"),
    "stream.send": N_("Readings sent"),
    "survey.answer": N_("Survey answered"),
    "survey.close": N_("Survey closed"),
    "survey.compose": N_("Survey composed"),
    "survey.download": N_("Survey results downloaded"),
    "survey.drop": N_("Survey discarded"),
    "survey.invite": N_("Survey invitations created"),
    "survey.manage": N_("Survey changed"),
    "survey.open": N_("Survey opened"),
    "survey.see": N_("Survey viewed"),
    "synthesise.run": N_("Synthetic table made"),
    "token.make": N_("API token created"),
    "token.manage": N_("API tokens changed"),
    "token.rename": N_("API token renamed"),
    "token.revoke": N_("API token revoked"),
    "trail.accept": N_("Missing entries acknowledged"),
    "trail.export": N_("Audit log exported"),
    "trail.gap": N_("Audit log entries are missing"),
    "trail.own": N_("Own audit log viewed"),
    "trail.read": N_("Audit log viewed"),
    "trail.verify": N_("Audit log verified"),
}
"""What happened, by the name under which an entry stores it. A denied attempt has the title of its action instead."""

KINDS = {
    "alert": N_("alert"),
    "algorithm": N_("algorithm"),
    "algorithm-result": N_("result of an algorithm"),
    "anonymized-table": N_("anonymised table"),
    "comparison": N_("comparison with the rows"),
    "connection": N_("connection"),
    "stream": N_("stream"),
    "survey": N_("survey"),
    "survey-model": N_("model of a survey"),
    "data-set": N_("data set"),
    "dashboard": N_("dashboard"),
    "grant": N_("grant"),
    "invitation": N_("invitation"),
    "job": N_("job"),
    "exact-joint-result": N_("exact joint result"),
    "joint-result": N_("joint result"),
    "journeys": N_("synthetic journeys"),
    "model": N_("model"),
    "person": N_("person"),
    "population": N_("population"),
    "project": N_("project"),
    "projected-data": N_("projected data"),
    "projection": N_("projection"),
    "question": N_("saved query"),
    "release": N_("answer"),
    "request": N_("request"),
    "rule": N_("rule"),
    "token": N_("API token"),
    "synthetic-table": N_("synthetic table"),
    "trial": N_("trial of a table"),
    "trail": N_("audit log"),
    "upload": N_("upload"),
}
"""What objects are called that have no name of their own."""


def titles() -> dict[str, str]:
    """Name of an event → what happened, in English; an action without an event of its own has its title.

    >>> titles()["job.end"], titles()["question.ask"]
    ('Job ended', 'Query run')
    """
    return attempts() | _EVENTS


def attempts() -> dict[str, str]:
    """Action → its title, in English: what somebody tried where an entry is not done.

    >>> attempts()["question.ask"]
    'Run a query'
    """
    return {name: action.title for name, action in actions().items()}


def names_of_objects(db: Session, ids: Iterable[str], *, data_sets: Iterable[str] | None = None) -> dict[str, str]:
    """Id → name, of the data sets, people, projects and algorithms among `ids`; of `data_sets` alone where they are given."""
    wanted = {each for each in ids if each}
    seen = wanted if data_sets is None else wanted & set(data_sets)
    found = {row.id: row.name for row in db.execute(select(DataSet.id, DataSet.name).where(DataSet.id.in_(seen)))}
    for kind in (Person, Project, Algorithm):
        found |= {row.id: row.name for row in db.execute(select(kind.id, kind.name).where(kind.id.in_(wanted)))}
    return found
