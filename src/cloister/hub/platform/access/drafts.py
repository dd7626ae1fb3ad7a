"""A grant as it is written: a form's fields, or JSON, become one draft; what contradicts the data set is refused.

A draft is the JSON form of a grant ({"role": …, "members": {…}, "rules": {…}}), which `hub/decisions/policy/facts.py` reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cloister.errors import CloisterError, InvalidDeclaration
from cloister.hub.decisions.policy import GrantFacts, Object, actions, check_amount
from cloister.hub.decisions.policy.methods import check_methods
from cloister.hub.decisions.policy.shares import PUBLISH
from cloister.hub.decisions.policy.strict import guarantee_text, load, mapping
from cloister.hub.hub import Hub
from cloister.hub.records.catalogue import DataSet
from cloister.hub.web.forms import Form, listed
from cloister.hub.web.languages import N_, NC_
from cloister.privacy import Guarantee
from cloister.session.questions.spend import spend_of

_AREAS = {
    "data-set": (
        *("dataset", "question", "learn", "anonymize", "synthesise", "compress", "joint", "release", "budget", "algorithm.run"),
    )
}
_NOT_HERE = ("question.see", "question.manage")
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "listed": {
        "role": "reader of the catalogue",
        "members": {"anybody": True},
        "rules": {"actions": ["dataset.see", "dataset.describe"]},
    },
    "explain": {"role": "planner", "rules": {"actions": ["question.explain"]}},
    "ask": {"role": "analyst", "rules": {"actions": ["question.ask", "release.download"]}},
    "ask-and-train": {"role": "analyst", "rules": {"actions": ["question.ask", "learn.run", "release.download"]}},
    "algorithm": {"role": "analyst", "rules": {"actions": ["algorithm.run", "release.download"]}},
    "answers": {"role": "reader of answers", "rules": {"actions": ["dataset.see", "release.see", "release.download"]}},
    "research": {"role": "researcher", "rules": {"actions": ["question.ask", "release.download"], "purposes": ["research"]}},
}
"""What is granted most often: an owner adds who, for what, and until when."""
BUNDLES = (
    ("ask", N_("Run queries"), N_("They run queries and download the answers.")),
    ("ask-and-train", N_("Run queries and train models"), N_("They run queries, train models, and download both.")),
    ("answers", N_("See shared answers"), N_("They see and download what others share with them. They cannot run a query.")),
    ("explain", N_("Plan queries"), N_("They see what a query would cost and its margin of error. They get no answer.")),
)
"""The presets among which a form lets choose, each with what it says and what it gives."""
_BUNDLES_OF_RELEASED = (
    ("ask", N_("Run queries and read the table"), N_("They run queries, and see and download every row of this released table.")),
    ("answers", N_("Read the table"), N_("They see and download every row of this released table. They cannot run a query.")),
)
"""The same where the data set is itself what was released: to see and to download it is to have it whole."""
PURPOSES = (
    *(NC_("purpose", "research"), NC_("purpose", "teaching"), NC_("purpose", "care"), NC_("purpose", "official statistics")),
    *(NC_("purpose", "quality assurance"), NC_("purpose", "planning"), NC_("purpose", "method development")),
)
"""Purposes that most owners know. They are stored in English, as they are compared; owners add their own."""
_TICKED = ("actions", "columns", "days", "methods", "prohibitions", "purposes")
"""Fields of forms that are boxes of which several can be ticked."""


class Typed(dict[str, Any]):
    """What was typed into a form, by the names of its fields; one that was not there is empty, so that templates may ask for any.

    >>> Typed({"role": "reader"})["people"]
    ''
    """

    def __missing__(self, name: str) -> str:
        return ""

    @classmethod
    def of(cls, form: Form) -> Typed:
        """The fields of a form, boxes to tick as lists."""
        return cls({name: form.all(name) if name in _TICKED else form[name] for name in form})


def grantable(kind: str) -> list[tuple[str, str]]:
    """The actions that a grant on such an object may name, with their titles.

    >>> [name for name, title in grantable("algorithm")]
    ['algorithm.see', 'algorithm.run']
    """
    areas = _AREAS.get(kind, (kind,))
    offered = {name: action.title for name, action in actions().items() if action.grantable}
    here = (name for name in offered if any(name == area or name.startswith(f"{area}.") for area in areas))
    return [(name, offered[name]) for name in here if name not in _NOT_HERE]


def bundles_for(row: DataSet) -> tuple[tuple[str, str, str], ...]:
    """The bundles that mean something on a data set: without a budget there is nothing to plan, and no model to train."""
    if row.released:
        return _BUNDLES_OF_RELEASED
    return tuple(each for each in BUNDLES if row.population is not None or each[0] not in ("ask-and-train", "explain"))


def share_of(text: str, budget: Guarantee) -> dict[str, str]:
    """A share that was typed as one number, in the measure of the budget.

    >>> from cloister.privacy import PureDP
    >>> share_of("0.5", PureDP(2))
    {'epsilon': '0.5'}
    """
    return guarantee_text(spend_of(text, budget).whole())


def purpose_named(name: str, _: Callable[[str], str] = str) -> str:
    """A purpose in the reader's words, beside the stored name where that is another.

    >>> purpose_named("care"), purpose_named("bicycle lanes")
    ('care', 'bicycle lanes')
    """
    known = _(NC_("purpose", name)) if name in PURPOSES else name
    return name if known == name else f"{known} ({name})"


def chosen_purposes(typed: Mapping[str, Any]) -> list[str]:
    """The purposes that a form holds: those that were ticked, as they are, and others that were written between commas.

    >>> chosen_purposes({"purposes": ["research"], "other_purposes": "care, planning"})
    ['research', 'care', 'planning']
    >>> chosen_purposes({"purposes": ["heart, lung"]})
    ['heart, lung']
    """
    return list(dict.fromkeys([*(typed.get("purposes") or ()), *listed(str(typed.get("other_purposes") or ""))]))


def with_purposes(typed: Mapping[str, Any], which: Object | None, own: bool = True) -> dict[str, Any]:
    """The fields of a form with the purposes that it offers: the common ones, what its owner already named for the data set
    (shown to its owner alone), and what was chosen."""
    chosen, known = chosen_purposes(typed), set[str]()
    if which is not None and own:
        known = {name for grant in which.grants for name in grant.rules.purposes or ()}
        known |= {name for policy in which.policies for name in policy.purposes or ()}
    offered = [*PURPOSES, *sorted((known | set(chosen)) - set(PURPOSES))]
    return {**typed, "purposes": chosen, "other_purposes": "", "purposes_offered": offered}


def draft_of(form: Form, budget: Guarantee | None = None) -> dict[str, Any]:
    """The draft that a form holds: as JSON where that was written, else from its fields, which add to a preset."""
    written = form.text("json", most=65_536)
    if written:
        return dict(load(written))
    preset = PRESETS.get(form.text("preset"), {})
    lists = ("people", "institutions", "projects", "training")
    members: dict[str, Any] = {key: names for key in lists if (names := _named(form, key))}
    if form.flag("anybody"):
        members["anybody"] = True
    rules: dict[str, Any] = {
        "actions": form.all("actions"),
        "purposes": chosen_purposes({"purposes": form.all("purposes")}) + _named(form, "other_purposes"),
        "not_before": form.text("not_before"),
        "until": form.text("until"),
        "columns": form.all("columns"),
        "methods": form.all("methods"),
        "rows": form.text("rows"),
        "risk": form.text("risk", most=100),
        "networks": _named(form, "networks"),
        "hours": _hours(form),
        "algorithms": _named(form, "algorithms"),
        "only_with": _named(form, "only_with"),
    }
    share = form.text("share", most=100)
    if share:
        if budget is None:
            raise InvalidDeclaration("share is invalid", why="this data set spends no budget", instead="leave it empty")
        rules["share"] = share_of(share, budget)
    if form.flag("alone"):
        rules["only_with"] = []
    given = {key: value for key, value in rules.items() if value or (key == "only_with" and form.flag("alone"))}
    return {
        "role": form.text("role") or preset.get("role", ""),
        "members": {**preset.get("members", {}), **members},
        "rules": {**preset.get("rules", {}), **given},
    }


def rules_in(draft: Mapping[str, Any]) -> Mapping[str, Any]:
    """The rules of a draft, where these alone are asked for.

    >>> rules_in({"rules": {"actions": ["question.ask"]}}), rules_in({})
    ({'actions': ['question.ask']}, {})
    """
    return mapping(draft.get("rules", {}), "rules")


def check_grant(hub: Hub, grant: GrantFacts, which: Object, row: DataSet | None) -> None:
    """Refuse what could never hold for the object: foreign actions, columns that are not declared, a condition that is none, a
    share in another measure, a risk that is none, an end that is past, a method that no hub knows, publishing without an end.
    """
    wanted = dict(grantable(which.kind))
    for name in sorted(grant.rules.actions):
        if name not in wanted:
            raise _wrong("actions", f"{name!r} is not granted on this", ", ".join(wanted))
    if grant.rules.until is not None and grant.rules.until <= hub.now():
        raise _wrong("until", "it is over already", "a day that comes")
    if PUBLISH in grant.rules.actions and grant.rules.until is None:
        raise _wrong("until", "publishing shows answers to anyone, and is granted with an end", "a last day")
    check_methods(grant.rules.methods)
    if grant.rules.columns is not None and not grant.rules.columns:
        names = json.dumps(sorted(which.columns)[:2], ensure_ascii=False) if which.columns else "leave it out"
        raise _wrong("columns", "it names no column; without the list, all may be read", names)
    if row is None:
        for part in ("columns", "rows", "share", "risk"):
            if getattr(grant.rules, part):
                raise _wrong(part, "an algorithm has none", f"the {part} of the data set, in a grant on that")
        return
    unknown = sorted((grant.rules.columns or frozenset()) - which.columns)
    if unknown:
        raise _wrong("columns", "one of them is not declared", ", ".join(sorted(which.columns)))
    if grant.rules.rows:
        condition_columns(grant.rules.rows, row)
    if grant.rules.share is not None:
        _check_share(hub, grant.rules.share, row)
    if grant.rules.risk is not None and row.population is None:
        raise _wrong("risk", "this data set spends no budget", "leave it empty")
    if grant.rules.risk is not None and not 0 < grant.rules.risk < 1:
        raise _wrong("risk", "0 would allow nothing, and 1 would not limit anything", "0.25")


def condition_columns(text: str, row: DataSet) -> frozenset[str]:
    """The columns that a condition on rows reads, by the declaration alone, as a session will read it; one that is none is
    refused."""
    from cloister.hub.records.declarations import table_of
    from cloister.query.views import row_condition
    from cloister.tables import PrivateTable

    names = [*row.declaration.get("columns", {}), *([row.declaration["unit"]] if row.declaration.get("unit") else [])]
    table = table_of(row, {name: [] for name in names}, "declared")
    if not isinstance(table, PrivateTable):
        raise _wrong("rows", "a public table is seen whole", "leave it empty")
    return frozenset(row_condition(text, row.name, table).columns())


def _check_share(hub: Hub, share: Guarantee, row: DataSet) -> None:
    if row.population is None:
        raise _wrong("share", "this data set spends no budget", "leave it empty")
    try:
        spend_of(share, hub.ledger.budget(row.population))
        check_amount(share)
    except CloisterError as error:
        raise _wrong("share", error.why, error.instead) from None


def _named(form: Form, place: str) -> list[str]:
    """The names in a field. One in which only commas stand would be no condition at all, which nobody wrote."""
    written = form.text(place)
    names = listed(written)
    if written and not names:
        raise _wrong(place, "no name is between the commas", "a name, or leave it empty")
    return names


def _hours(form: Form) -> list[dict[str, Any]]:
    days, begin, end = form.all("days"), form.text("from"), form.text("to")
    if not (days or begin or end):
        return []
    said = {"days": days, "from": begin, "to": end}
    return [{key: value for key, value in said.items() if value}]


def _wrong(place: str, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"{place} is invalid", why=why, instead=instead)
