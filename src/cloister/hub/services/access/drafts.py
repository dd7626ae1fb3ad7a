"""A grant as it is written: a form's fields, or JSON, become one draft; what contradicts the data set is refused.

A draft is the JSON form of a grant ({"role": …, "members": {…}, "rules": {…}}), which `hub/policy/texts.py` reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from cloister.errors import CloisterError, InvalidDeclaration
from cloister.hub.policy import GrantFacts, Object, actions, check_amount
from cloister.hub.policy.methods import check_methods
from cloister.hub.policy.strict import load
from cloister.hub.policy.texts_write import guarantee_text
from cloister.hub.records.catalogue import DataSet
from cloister.hub.web.languages import N_, NC_
from cloister.session.questions.spend import spend_of

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.web.forms import Form
    from cloister.privacy import Guarantee

_AREAS = {"data-set": ("dataset", "question", "learn", "anonymize", "synthesise", "release", "budget", "algorithm.run")}
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
    "answers": {"role": "reader of answers", "rules": {"actions": ["dataset.see", "release.see", "release.download"]}},
    "research": {"role": "researcher", "rules": {"actions": ["question.ask", "release.download"], "purposes": ["research"]}},
}
"""What is granted most often: an owner adds who, for what, and until when."""
BUNDLES = (
    ("ask", N_("They may ask"), N_("run queries, and download the answers")),
    ("ask-and-train", N_("They may ask and train"), N_("run queries, train models, and download both")),
    ("answers", N_("They may look at answers"), N_("see and download what others share with them; they cannot run a query")),
    ("explain", N_("They may plan"), N_("see what a query would cost and its margin of error; nothing is answered")),
)
"""The presets among which a form lets choose, each with what it says and what it gives."""
PURPOSES = (
    *(NC_("purpose", "research"), NC_("purpose", "teaching"), NC_("purpose", "care"), NC_("purpose", "official statistics")),
    *(NC_("purpose", "quality assurance"), NC_("purpose", "planning"), NC_("purpose", "method development")),
)
"""Purposes that most owners know. They are stored in English, as they are compared; owners add their own."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def grantable(kind: str) -> list[tuple[str, str]]:
    """The actions that a grant on such an object may name, with their titles.

    >>> [name for name, title in grantable("algorithm")]
    ['algorithm.see', 'algorithm.run']
    """
    areas = _AREAS.get(kind, (kind,))
    offered = {name: action.title for name, action in actions().items() if action.grantable}
    here = (name for name in offered if any(name == area or name.startswith(f"{area}.") for area in areas))
    return [(name, offered[name]) for name in here if name not in _NOT_HERE]


def listed(text: str) -> list[str]:
    """What stands one a line, or between commas.

    >>> listed("research, teaching\\n care ")
    ['research', 'teaching', 'care']
    """
    return [part.strip() for part in re.split(r"[\n,;]", text) if part.strip()]


def share_of(text: str, budget: Guarantee) -> dict[str, str]:
    """A share that was typed as one number, in the measure of the budget.

    >>> from cloister.privacy import PureDP
    >>> share_of("0.5", PureDP(2))
    {'epsilon': '0.5'}
    """
    return guarantee_text(spend_of(text, budget).whole())


def last_day(until: str, zone: str = "UTC") -> str:
    """The day that an end names in a form: the one that ends with it.

    >>> last_day("2027-01-01T00:00:00Z"), last_day("2026-12-31T16:00:00Z", "Asia/Shanghai"), last_day("")
    ('2026-12-31', '2026-12-31', '')
    """
    if not until:
        return ""
    return (datetime.fromisoformat(until) - timedelta(seconds=1)).astimezone(ZoneInfo(zone)).date().isoformat()


def days_in(rules: Mapping[str, Any], zone: str) -> dict[str, Any]:
    """The same rules with each day as the moment that it means in the hub's time zone: `not_before` begins with its day, `until`
    ends with it. What is no day stays, for its reader to take or to refuse.

    >>> days_in({"not_before": "2026-12-31", "until": "2026-12-31"}, "Asia/Shanghai")
    {'not_before': '2026-12-30T16:00:00+00:00', 'until': '2026-12-31T16:00:00+00:00'}
    >>> days_in({"until": "2026-12-31T18:00:00+01:00", "actions": []}, "UTC")
    {'until': '2026-12-31T18:00:00+01:00', 'actions': []}
    """
    found = dict(rules)
    for name, more in (("not_before", 0), ("until", 1)):
        value = found.get(name)
        if not (isinstance(value, str) and _DAY.fullmatch(value)):
            continue
        try:
            day = date.fromisoformat(value) + timedelta(days=more)
        except (ValueError, OverflowError):
            continue
        found[name] = datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC).isoformat()
    return found


def chosen_purposes(typed: Mapping[str, Any]) -> list[str]:
    """The purposes that a form holds: those that were ticked, and others that were written.

    >>> chosen_purposes({"purposes": ["research"], "other_purposes": "care, planning"}), chosen_purposes({"purposes": "a, b"})
    (['research', 'care', 'planning'], ['a', 'b'])
    """
    ticked, written = typed.get("purposes") or [], typed.get("other_purposes") or ""
    every = [ticked] if isinstance(ticked, str) else list(ticked)
    return list(dict.fromkeys(name for text in [*every, str(written)] for name in listed(text)))


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
    lists = {"people": "people", "institutions": "institutions", "projects": "projects", "training": "training"}
    members: dict[str, Any] = {key: names for key, field in lists.items() if (names := listed(form.text(field)))}
    if form.flag("anybody"):
        members["anybody"] = True
    rules: dict[str, Any] = {
        "actions": form.all("actions"),
        "purposes": chosen_purposes({"purposes": form.all("purposes"), "other_purposes": form.text("other_purposes")}),
        "not_before": form.text("not_before"),
        "until": form.text("until"),
        "columns": form.all("columns"),
        "methods": form.all("methods"),
        "rows": form.text("rows"),
        "risk": form.text("risk", most=100),
        "networks": listed(form.text("networks")),
        "hours": _hours(form),
        "algorithms": listed(form.text("algorithms")),
        "only_with": listed(form.text("only_with")),
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


def check_grant(hub: Hub, grant: GrantFacts, which: Object, row: DataSet | None) -> None:
    """Refuse what could never hold for the object: foreign actions, columns that are not declared, a condition that is none, a
    share in another measure, a risk that is none, an end that is past, a method that no hub knows.
    """
    wanted = dict(grantable(which.kind))
    for name in sorted(grant.rules.actions):
        if name not in wanted:
            raise _wrong("actions", f"{name!r} is not granted on this", ", ".join(wanted))
    if grant.rules.until is not None and grant.rules.until <= hub.now():
        raise _wrong("until", "it is over already", "a day that comes")
    check_methods(grant.rules.methods)
    if grant.rules.columns is not None and not grant.rules.columns:
        raise _wrong("columns", "it names no column; without the list, all may be read", _some(which.columns))
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
    if grant.rules.risk is not None:
        _check_risk(grant.rules.risk, row)


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


def _check_risk(risk: Fraction, row: DataSet) -> None:
    if row.population is None:
        raise _wrong("risk", "this data set spends no budget", "leave it empty")
    if not 0 < risk < 1:
        raise _wrong("risk", "0 would allow nothing, and 1 would not limit anything", "0.25")


def _hours(form: Form) -> list[dict[str, Any]]:
    days, begin, end = form.all("days"), form.text("from"), form.text("to")
    if not (days or begin or end):
        return []
    said = {"days": days, "from": begin, "to": end}
    return [{key: value for key, value in said.items() if value}]


def _some(columns: frozenset[str]) -> str:
    return json.dumps(sorted(columns)[:2], ensure_ascii=False) if columns else "leave it out"


def _wrong(place: str, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"{place} is invalid", why=why, instead=instead)
