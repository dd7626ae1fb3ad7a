"""The institution's own policy: rules above every owner. They are made and ended, never deleted."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import InvalidDeclaration, Missing
from cloister.hub.decisions.checking import check
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy import MandatoryRule, check_amount
from cloister.hub.decisions.policy.actions import READS
from cloister.hub.decisions.policy.methods import check_methods
from cloister.hub.decisions.policy.strict import load
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.trail import write
from cloister.hub.records.access import InstitutionRule
from cloister.hub.web.forms import Form, listed

DATA_ACTIONS = (*READS, "release.see", "release.download")
_LISTS = ("labels", "populations", "for_institutions", "training", "purposes", "networks")


def rule_draft(form: Form) -> dict[str, Any]:
    """The rule that a form holds: as JSON where that was written, else from its fields."""
    written = form.text("json", most=65_536)
    if written:
        return dict(load(written))
    draft: dict[str, Any] = {"title": form.text("title", most=200)}
    for name in ("institution", "epsilon_of_population", "epsilon_of_allotment", "delta"):
        draft[name] = form.text(name, most=200)
    for name in _LISTS:
        draft[name] = listed(form.text(name))
    for name in ("actions", "methods"):
        draft[name] = form.all(name)
    for name in ("deny", "second_factor"):
        draft[name] = form.flag(name)
    together = listed(form.text("together"))
    if together:
        draft["forbidden"] = [[_part(text) for text in together]]
    return {name: value for name, value in draft.items() if value}


def make_rule(hub: Hub, db: Session, caller: Caller, draft: Mapping[str, Any]) -> InstitutionRule:
    """Keep a rule. It holds from the next question on."""
    check(hub, db, caller, "policy.write")
    title = draft.get("title")
    if not isinstance(title, str) or not title.strip() or len(title) > 200:
        raise InvalidDeclaration("title is invalid", why="a rule has a name of 1 to 200 characters", instead='"Clinical data"')
    found = MandatoryRule.read(_with_ids(hub, db, draft), id=new_id())
    check_methods(found.methods)
    for place in ("epsilon_of_population", "epsilon_of_allotment"):
        check_amount(getattr(found, place) or Fraction(0), place)
    row = InstitutionRule(id=found.id, title=found.title, rule=found.to_keep(), made_by=caller.id, created=hub.now())
    db.add(row)
    bump(db)
    write(hub, db, caller, "policy.write", kind="rule", object_id=row.id, title=row.title, rule=row.rule)
    return row


def end_rule(hub: Hub, db: Session, caller: Caller, number: str) -> InstitutionRule:
    """End a rule; it stays readable."""
    check(hub, db, caller, "policy.write")
    row = db.get(InstitutionRule, number[:32])
    if row is None:
        raise Missing("There is no such rule", why="the institution's policy does not hold it", instead="/policy")
    if row.ended is None:
        row.ended = hub.now()
        bump(db)
        write(hub, db, caller, "policy.write", kind="rule", object_id=row.id, title=row.title, ended=True)
    return row


def every_rule(db: Session) -> list[InstitutionRule]:
    """Every rule, ended ones too, the newest first."""
    return list(db.scalars(select(InstitutionRule).order_by(InstitutionRule.created.desc(), InstitutionRule.id)))


def _part(text: str) -> dict[str, str]:
    """A part of a combination as it is typed: "health", "health.diagnosis", ".diagnosis", or "#clinical" for a label.

    >>> _part("health.diagnosis"), _part("#clinical"), _part(".gene")
    ({'object': 'health', 'column': 'diagnosis'}, {'label': 'clinical'}, {'column': 'gene'})
    """
    if text.startswith("#"):
        return {"label": text[1:]}
    name, _, column = text.partition(".")
    return {key: value for key, value in (("object", name), ("column", column)) if value}


def _with_ids(hub: Hub, db: Session, draft: Mapping[str, Any]) -> dict[str, Any]:
    """Names of data sets in combinations become ids: a data set that is renamed stays forbidden."""
    ids = {each.name: each.id for each in facts_of(hub, db).data_sets.values()}
    combinations = draft.get("forbidden")
    if not isinstance(combinations, list):
        return dict(draft)

    def part(value: object) -> object:
        if not isinstance(value, Mapping) or "object" not in value:
            return value
        name = value["object"]
        if isinstance(name, str) and name not in ids and name not in ids.values():
            raise InvalidDeclaration("forbidden is invalid", why="one of the data sets does not exist", instead="the name of one")
        return {**value, "object": ids.get(name, name) if isinstance(name, str) else name}

    changed = [[part(each) for each in one] if isinstance(one, list) else one for one in combinations]
    return {**draft, "forbidden": changed}
