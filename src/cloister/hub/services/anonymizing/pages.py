"""The pages: what each column is, a trial for the owner's eyes, the release.

A form is read into an order here too. Its fields of a column are numbered: a column's name may be anything. Of the first form:
what each column is, and what must hold. Of the second: which choice of a trial is released.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.ids import new_secret
from cloister.hub.platform.catalogue import search as data_sets_of
from cloister.hub.platform.trail import left
from cloister.hub.problems import Problem, problem_of
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.policies import policies_in_row
from cloister.hub.services.anonymizing.authorised import ACTION, open_for_anonymising
from cloister.hub.services.anonymizing.order import (
    DISTANCES,
    DIVERSITIES,
    LIKENESSES,
    METRICS,
    ORDER,
    PARTS,
    SEARCHES,
    Anonymizing,
    Releasing,
)
from cloister.hub.services.anonymizing.order import MISSING as MISSING_WORDS
from cloister.hub.services.anonymizing.papers import page_in
from cloister.hub.services.anonymizing.picture import frontier_svg, named
from cloister.hub.services.anonymizing.reading import order_of, seen_trial
from cloister.hub.services.anonymizing.releasing import ANONYMISING
from cloister.hub.services.anonymizing.trees import tree_of_lines
from cloister.hub.services.anonymizing.trying import TRY
from cloister.hub.services.anonymizing.words import ABSENT, COUNTED, LIKENED, MEASURED, SEARCHED, SPREAD
from cloister.hub.web.forms import Form, FormDep, go
from cloister.hub.web.render import render, request_gettext, request_language
from cloister.hub.web.routing import Number, Pages, attachment
from cloister.hub.work.ordering import submit_form

SIMPLE = (
    "table", "k", "l", "diversity", "c", "t", "distance", "beta", "likeness", "delta", "alpha", "search", "metric", "suppression",
    "missing", "purpose",
)  # fmt: skip
_EMPTY = {
    "k": "5", "diversity": "distinct", "likeness": "basic", "search": "optimal", "metric": "loss", "suppression": "0",
    "missing": "value",
}  # fmt: skip
"""What a field that is left empty says."""
_LONGEST = 200_000


def order_typed(form: Form, columns: Sequence[str]) -> Anonymizing:
    """The order of a form about a data set with these columns; a column of which nothing is said is dropped."""
    texts = {name: form.text(name, most=2000) or _EMPTY.get(name, "") for name in SIMPLE}
    parts = {name: form.text(f"part_{place}", "identifying", most=20) for place, name in enumerate(columns)}
    parts |= roles_typed(form, columns)
    told: dict[str, Any] = {**texts, "k": _whole(texts["k"], "k"), "l": _diversity(texts["l"]) if texts["l"] else None}
    hierarchies = {name: text for name, text in lines_typed(form, columns).items() if text}
    return Anonymizing(**told, parts=parts, hierarchies=hierarchies)


def roles_typed(form: Form, columns: Sequence[str]) -> dict[str, str]:
    """The roles of columns that were written as lines, of which a later one holds: `* = kept`, `age = quasi`."""
    found = dict[str, str]()
    for line in filter(str.strip, form.text("roles", most=20_000).splitlines()):
        written, _, role = (each.strip() for each in line.rpartition("="))
        named = [written] if written in columns else [each for each in columns if fnmatchcase(each, written)]
        if role not in PARTS or not named:
            raise InvalidParameter(
                f"The line {line.strip()[:60]!r} is invalid",
                why="it is a column, or several by *, and its role: quasi, sensitive, identifying or kept",
                instead="* = quasi",
            )
        found |= dict.fromkeys(named, role)
    return found


def lines_typed(form: Form, columns: Sequence[str]) -> dict[str, str]:
    """The hierarchy that was written or sent for each column; empty where one is to be chosen."""
    found = {name: form.text(f"lines_{place}", most=_LONGEST) for place, name in enumerate(columns)}
    sent, which = form.file("file"), form.text("file_column", most=6)
    if sent is None:
        return found
    if not which.isascii() or not which.isdigit() or int(which) >= len(columns):
        raise InvalidParameter("The hierarchy is invalid", why="the file has no column", instead="the file and its column")
    body = sent.file.read(4 * _LONGEST + 1)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidParameter(
            "The hierarchy is invalid", why="its file is not UTF-8 text", instead="a CSV file as ARX writes it"
        ) from None
    if len(text) > _LONGEST:
        raise InvalidParameter("The hierarchy is invalid", why=f"it is over {_LONGEST:,} characters", instead="fewer lines")
    return found | {columns[int(which)]: text.replace("\r\n", "\n").strip()}


def chosen(form: Form, order: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Releasing:
    """The release of what a trial was asked for, with the choice that was made among its points, and what it is to be called."""
    which = form.text("choice", most=6)
    if not which.isascii() or not which.isdigit() or int(which) >= len(points) or "why" in points[int(which)]:
        raise InvalidParameter("The release is invalid", why="no table was chosen", instead="one of those that were compared")
    point = points[int(which)]
    told = ORDER.given({name: value for name, value in order.items() if name in ORDER.attributes})
    told |= {"k": int(point["k"]), "levels": dict(point["levels"] or {})}
    named = {name: form.text(name, most=2000) for name in ("title", "name")}
    return Releasing(**told | named, understood=form.flag("understood"))


def values_typed(order: Mapping[str, Any]) -> dict[str, str]:
    """An order as the fields of a form show it."""
    return {name: "" if order.get(name) is None else str(order[name]) for name in SIMPLE}


def _diversity(text: str) -> int | float:
    """What l is: entropy takes parts of a value as well.

    >>> _diversity("2"), _diversity("2.5")
    (2, 2.5)
    """
    if text.isascii() and text.count(".") == 1 and text.replace(".", "").isdigit() and len(text) <= 9:
        return float(text)
    return _whole(text, "l")


def _whole(text: str, what: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidParameter(f"The value of {what} is invalid", why="it is not a whole number", instead="5")
    return int(text)


_FIRST = {**dict.fromkeys(SIMPLE, ""), **_EMPTY, "suppression": "0.02"}
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
    roles: Mapping[str, str] = {}
    if form is not None:
        try:
            typed = lines_typed(form, list(declared))
            roles = roles_typed(form, list(declared))
        except CloisterError as error:
            problem = problem or problem_of(error)
    columns = []
    for place, (column, domain) in enumerate(declared.items()):
        kept = (found or {}).get("trees", {}).get(column)
        if form is not None:
            part, lines = roles.get(column, form.get(f"part_{place}", "")), typed.get(column, "")
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
        roles=form.get("roles", "") if form is not None and not roles else "",
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


def add(routes: Pages) -> None:
    @routes.get("/anonymise", ACTION)
    def start(
        request: Request,
        hub: HubDep,
        caller: CallerDep,
        about: Annotated[str, Query(max_length=63)] = "",
        trial: Annotated[str, Query(max_length=32)] = "",
        edit: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """What each column of a data set is; as it was in a trial, where one is named."""
        if not trial:
            return order_page(request, hub, caller, about=about)
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, trial)
        return order_page(request, hub, caller, trial=row, found=found, edit=edit)

    @routes.post("/anonymise/hierarchies", ACTION)
    def drawn(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """The form again, with its hierarchies as trees. No row is read."""
        number = form.text("trial", most=32)
        if not number:
            return order_page(request, hub, caller, form=form)
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        return order_page(request, hub, caller, form=form, trial=row, found=found)

    @routes.post("/anonymise/trials", ACTION, ticked=True)
    def attempt(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        try:
            with hub.database.reading() as db:
                table = open_for_anonymising(hub, db, caller, form.text("table", most=63))
            order = order_typed(form, list(table.columns))
            job = submit_form(hub, caller, ANONYMISING, form, order, (False, order), "/anonymise", job=TRY.kind)
        except CloisterError as error:
            return order_page(request, hub, caller, form=form, problem=problem_of(error))
        return go(request, f"/jobs/{job}")

    @routes.get("/anonymise/trials/{number}", ACTION)
    def trial(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """Risk against loss, to choose from; the hierarchies; the release."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        return trial_page(request, hub, caller, row, found)

    @routes.get("/anonymise/trials/{number}/risk", ACTION)
    def risk(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """How easily people are found in the rows as they are: a page that stands alone. Exact, for the owner's eyes."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        left(hub, caller, "trial", row.id, [row.data_set], str(row.order["purpose"]), "risk")
        page = page_in(found["page"], request_language(request)).encode()
        return Response(page, headers=attachment(f"risk-{row.order['table']}.html"), media_type="text/html; charset=utf-8")

    @routes.post("/anonymise", ACTION, ticked=True)
    def release(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """The release of what was chosen in a trial: to the page of its job."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, form.text("trial", most=32))
        try:
            order = chosen(form, order_of(row, found), found["points"])
            job = submit_form(hub, caller, ANONYMISING, form, order, (True, order), "/anonymise")
        except CloisterError as error:
            return trial_page(request, hub, caller, row, found, form=form, problem=problem_of(error))
        return go(request, f"/jobs/{job}")
