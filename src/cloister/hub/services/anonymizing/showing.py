"""What the pages show of an order and of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.ids import new_secret
from cloister.hub.problems import Problem, problem_of
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import policies_in_row
from cloister.hub.services.anonymizing.authorised import open_for_anonymising
from cloister.hub.services.anonymizing.modelling import DISTANCES, DIVERSITIES, LIKENESSES
from cloister.hub.services.anonymizing.order import METRICS, SEARCHES
from cloister.hub.services.anonymizing.order import MISSING as MISSING_WORDS
from cloister.hub.services.anonymizing.picture import frontier_svg, named
from cloister.hub.services.anonymizing.reading import order_of
from cloister.hub.services.anonymizing.trees import tree_of_lines
from cloister.hub.services.anonymizing.typed import SIMPLE, lines_typed, values_typed
from cloister.hub.services.anonymizing.words import ABSENT, COUNTED, LIKENED, MEASURED, SEARCHED, SPREAD
from cloister.hub.services.catalogue import search as data_sets_of
from cloister.hub.web.render import render, request_gettext

if TYPE_CHECKING:
    from fastapi import Request

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.records.owner_views import OwnerView
    from cloister.hub.web.forms import Form

_FIRST = {
    **dict.fromkeys(SIMPLE, ""), "k": "5", "suppression": "0.02", "search": "optimal", "metric": "loss", "missing": "value",
    "diversity": "distinct", "likeness": "basic",
}  # fmt: skip
"""What an empty form says."""
_RARE = ("diversity", "c", "distance", "beta", "likeness", "delta", "alpha")
"""Fields of models that few need: folded, unless one says something."""
_SENSITIVE = ("confidential", "special")


def order_page(
    request: Request,
    hub: Hub,
    caller: Caller,
    *,
    about: str = "",
    form: Form | None = None,
    trial: OwnerView | None = None,
    found: Mapping[str, Any] | None = None,
    edit: str = "",
    problem: Problem | None = None,
) -> Response:
    """The form: empty, as it was typed, or as a trial was ordered (with the hierarchy of `edit` written out)."""
    order: Mapping[str, Any] = {} if trial is None else order_of(trial, found or {"hierarchies": {}})
    if form is not None:
        values = {name: form.get(name, "") for name in SIMPLE}
    else:
        values = {**_FIRST, **(values_typed({**_FIRST, **order}) if order else {"table": about})}
    with hub.database.reading() as db:
        own, _more = data_sets_of(hub, db, caller, mine=True, limit=200)
        names = [each.row.name for each in own if not each.row.public and each.row.state == "open"]
        name = values["table"] or (names[0] if names else "")
        table = None
        if name in names:
            try:
                table = open_for_anonymising(hub, db, caller, name)
            except CloisterError as error:
                problem = problem or problem_of(error)
        told = next((policies_in_row(each.row)[0].columns for each in own if each.row.name == name), {})
    declared = {} if table is None else table.columns
    typed: Mapping[str, str] = {}
    if form is not None:
        try:
            typed = lines_typed(form, list(declared))
        except CloisterError as error:
            problem = problem or problem_of(error)
    columns = []
    for place, (column, domain) in enumerate(declared.items()):
        kept = (found or {}).get("trees", {}).get(column)
        if form is not None:
            part, lines = form.get(f"part_{place}", ""), typed.get(column, "")
        else:
            usual = "sensitive" if column in told and told[column].sensitivity in _SENSITIVE else "quasi"
            part = order["parts"].get(column, "identifying") if order else usual
            lines = order.get("hierarchies", {}).get(column, "")
        if not lines and edit == column and kept is not None:
            lines = kept["lines"]
        tree, wrong = _tree(column, lines, kept)
        problem = problem or wrong
        columns.append({"name": column, "kind": domain.kind, "part": part, "lines": lines, "tree": tree, "open": edit == column})
    _ = request_gettext(request)
    return render(
        request,
        "anonymizing/order.html",
        status=200 if problem is None else problem.status,
        values={**values, "table": name},
        names=names,
        columns=columns,
        searches=[(each, _(SEARCHED[each])) for each in SEARCHES],
        diversities=[(each, _(COUNTED[each])) for each in DIVERSITIES],
        distances=[(each, _(SPREAD[each])) for each in DISTANCES],
        likenesses=[(each, _(LIKENED[each])) for each in LIKENESSES],
        rare=any(values[each] not in ("", _FIRST[each]) for each in _RARE),
        metrics=[(each, _(MEASURED[each])) for each in METRICS],
        absent=[(each, _(ABSENT[each])) for each in MISSING_WORDS],
        trial=trial.id if trial is not None else "",
        key=new_secret(),
        problem=problem,
    )


def _tree(column: str, lines: str, kept: Mapping[str, Any] | None) -> tuple[Mapping[str, Any] | None, Problem | None]:
    """The tree of the lines that stand there, else the one that was chosen in the trial; and what is wrong with the lines."""
    if not lines:
        return kept, None
    try:
        return tree_of_lines(column, lines), None
    except CloisterError as error:
        named = InvalidParameter(f"The hierarchy of {column!r} is invalid", why=error.why, instead=error.instead)
        return None, problem_of(named)


def trial_page(
    request: Request,
    hub: Hub,
    caller: Caller,
    trial: OwnerView,
    found: Mapping[str, Any],
    *,
    form: Form | None = None,
    problem: Problem | None = None,
) -> Response:
    """What was found, to choose from; and the release."""
    _ = request_gettext(request)
    points = found["points"]
    words = {
        "risk": _("people who are found, when everyone is looked up"),
        "loss": _("share of the columns that is lost"),
        "raw": _("as it is"),
    }
    with hub.database.reading() as db:
        data_set = db.get(DataSet, trial.data_set)
    assert data_set is not None  # a trial goes with its data set
    asked = next((place for place, each in enumerate(points) if each["k"] == trial.order["k"] and "why" not in each), None)
    usual = {
        "title": _("%(title)s, anonymised") % {"title": data_set.title},
        "name": f"{data_set.name[:50]}_anonymised",
        "choice": "" if asked is None else str(asked),
    }
    values = usual if form is None else {name: form.get(name, "") for name in usual}
    return render(
        request,
        "anonymizing/trial.html",
        status=200 if problem is None else problem.status,
        trial=trial,
        found=found,
        points=[{**each, "name": name, "place": f"{place}"} for place, (name, each) in enumerate(named(points))],
        picture=frontier_svg(points, found["before"], words),
        values=values,
        population=data_set.population,
        searched=SEARCHED,
        key=new_secret(),
        problem=problem,
    )
