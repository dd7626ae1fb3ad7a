"""The workbench: a question is written, explained as it is typed, rehearsed, asked, kept.

Every button works without scripts; with them, what a question costs and how sharp its answer will be is shown while it is typed.
A form carries a key that is used once, so that one sent twice is charged once.
"""

import json
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.guidance import guidance_of
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.ids import new_secret
from cloister.hub.platform.access import named_algorithm
from cloister.hub.problems import problem_of
from cloister.hub.records.accounts import names_of
from cloister.hub.releases.kinds import ANSWERS
from cloister.hub.releases.pages import release_page
from cloister.hub.releases.reading import releases_of, seen_release
from cloister.hub.releases.tables import answer_in, asked_in, free_tables, tables_of
from cloister.hub.services.asking.answering import LONG, ask, ask_once, told_by_id
from cloister.hub.services.asking.answers import ANSWER, CONFIDENCES, confidences, unpacked
from cloister.hub.services.asking.authorised import algorithms_to_ask_under
from cloister.hub.services.asking.both_ways import both_pages
from cloister.hub.services.asking.charts import chart_svg, retold
from cloister.hub.services.asking.pages_boards import board_pages, published_pages
from cloister.hub.services.asking.pages_build import (
    PILOT,
    START,
    TERMS,
    build_page,
    builder,
    built_sql,
    is_built,
    margins_by_size,
    page_of_sql,
    pilot_sql,
)
from cloister.hub.services.asking.preview import explain, preview, rehearse
from cloister.hub.services.asking.question_request import NAME, WISH, QuestionRequest
from cloister.hub.services.asking.saved import remove, save, saved_of, seen_question
from cloister.hub.services.asking.showing import KNOWN, of_table, page_of, shown
from cloister.hub.web.forms import Form, FormDep, go, ungrouped
from cloister.hub.web.languages import Language
from cloister.hub.web.pictures import themed
from cloister.hub.web.render import is_fragment, render, request_gettext, request_language
from cloister.hub.web.routing import After, Confidence, Number, Pages
from cloister.hub.work.offer import Offer
from cloister.hub.work.offers import offers
from cloister.hub.work.ordering import open_projects
from cloister.privacy import exact_positive, text_of
from cloister.session.questions.spend import amount_of
from cloister.stored import canonical
from cloister.tables import Category, PublicTable
from cloister.tables.expression.names import alias, quoted

_FIELDS = ("sql", "algorithm", "dialect", *TERMS)
_PAGE = 30
_LATELY = timedelta(minutes=10)
ChartPage = Annotated[int, Query(ge=1, le=10_000_000)]
_Id = Annotated[str, Query(max_length=32, pattern=r"^[A-Za-z0-9_-]*$")]


def add(routes: Pages) -> None:
    _asking(routes)
    builder(routes)
    _between(routes)
    _saved(routes)
    both_pages(routes)
    board_pages(routes)
    published_pages(routes)


def _asking(routes: Pages) -> None:
    @routes.get("/ask", "question.explain")
    def workbench(
        request: Request,
        hub: HubDep,
        caller: CallerDep,
        saved: _Id = "",
        release: _Id = "",
        about: Annotated[str, Query(max_length=63)] = "",
        algorithm: Annotated[str, Query(max_length=63, pattern=r"^[A-Za-z0-9_-]*$")] = "",
    ) -> Response:
        """An empty question, one that was saved, that of a release, or that of an algorithm."""
        values = dict(START)
        with hub.database.reading() as db:
            if saved:
                kept = seen_question(hub, db, caller, saved)
                values |= {"sql": kept.sql, "spend": kept.spend, "purpose": kept.purpose, "project": kept.project}
                values |= {"within": "" if kept.within is None else str(kept.within).removesuffix(".0"), "title": kept.title}
                values |= {"by": "" if kept.within is None else "margin", "algorithm": kept.algorithm}
                values |= {"dialect": kept.dialect or ""}
            elif release:
                row = seen_release(hub, db, caller, release, kind=ANSWERS)
                values |= {"sql": row.sql, "purpose": row.purpose, "project": row.project, "algorithm": row.algorithm}
                values |= {"dialect": row.details.get("dialect", "")}
            elif algorithm:
                values |= {"algorithm": algorithm}
            elif not about:
                values |= _last(hub, db, caller)
        return _page(request, hub, caller, values, about=about, begins=True)

    @routes.post("/ask", "question.ask", ticked=True)
    def run(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """Ask it: to the page of the release, or of the job that will make it. What a released table answers costs nothing, is
        kept nowhere, and is shown at once."""
        try:
            free = _of_table(hub, caller, form)
            if free is not None:
                return _again(request, hub, caller, form, **free)
            wish = _wish(hub, caller, form)
            where = _asked(
                hub, caller, wish if wish.within is None else replace(wish, most=_most(form)), form.text("key", most=60)
            )
        except CloisterError as error:
            return _refused(request, hub, caller, form, error)
        return go(request, where)

    @routes.post("/ask/explain", "question.explain", ticked=True)
    def explained(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """What it would cost, how sharp it would be, what would be left: a part of the page, or the page with it."""
        try:
            sql = _sql(hub, caller, form)
            wrote = sql if is_built(form) else ""
            if is_fragment(request) and not sql:
                return render(request, "asking/explained.html", told=None, problem=None, place=None)
            with hub.database.reading() as db:
                table = asked_in(hub, db, caller, sql)
            if table is not None and is_fragment(request):
                return render(
                    request, "asking/explained.html", told=None, problem=None, place=None, asked_table=table, built=wrote
                )
            if table is not None:
                return _again(request, hub, caller, form, asked_table=table)
            told = _told(hub, caller, form, request_language(request))
        except CloisterError as error:
            return _refused(request, hub, caller, form, error)
        if is_fragment(request):
            return render(request, "asking/explained.html", told=told, problem=None, place=None, built=wrote)
        return _again(request, hub, caller, form, told=told)

    @routes.post("/ask/rehearse", "question.rehearse")
    def rehearsed(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """What the answer would look like, from made-up rows."""
        try:
            free = _of_table(hub, caller, form)
            if free is not None:
                return _again(request, hub, caller, form, **free)
            wish = _wish(hub, caller, form)
            release = rehearse(hub, caller, wish)
        except CloisterError as error:
            return _refused(request, hub, caller, form, error)
        return _again(request, hub, caller, form, rehearsal=shown(release, wish.confidence), notes=release.notes)

    @routes.post("/ask/save", "question.manage")
    def kept(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        _ = request_gettext(request)
        try:
            wish = _wish(hub, caller, form)
            with hub.database.begin() as db:
                row = save(hub, db, caller, wish, form.text("title", most=1000))
        except CloisterError as error:
            return _refused(request, hub, caller, form, error)
        return go(request, f"/ask?saved={row.id}", _("The query was saved."))


def _between(routes: Pages) -> None:
    @routes.post("/ask/sql", "question.explain", ticked=True)
    def edited(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        try:
            return _page(request, hub, caller, {**_values(form), "sql": _sql(hub, caller, form)})
        except CloisterError as error:
            return _refused(request, hub, caller, form, error)

    @routes.post("/ask/build", "question.explain", ticked=True)
    def formed(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        try:
            return page_of_sql(request, hub, caller, _sql(hub, caller, form), form)
        except CloisterError as error:
            return _refused(request, hub, caller, form, error)

    @routes.post("/ask/pilot", "question.ask", ticked=True)
    def piloted(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """Count the groups of a query for a small spend, and say what is to be expected with groups of these sizes."""
        try:
            wish = _wish(hub, caller, form)
            pilot = replace(wish, sql=pilot_sql(hub, caller, wish.sql), spend=PILOT, within=None, pilot="", most="")
            where = _asked(hub, caller, pilot, f"{form.text('key', most=60)} pilot")
            if where.startswith("/jobs/"):
                return go(request, where)
            return _again(request, hub, caller, form, told=_told(hub, caller, form, request_language(request)))
        except CloisterError as error:
            return _refused(request, hub, caller, form, error)


def _again(request: Request, hub: Hub, caller: Caller, form: Form, **more: Any) -> Response:
    """The page that a form came from, as it was sent."""
    if not is_built(form):
        return _page(request, hub, caller, _values(form), **more)
    if "problem" not in more:
        more["built"] = built_sql(hub, caller, form)
    return build_page(request, hub, caller, form, **more)


def _of_table(hub: Hub, caller: Caller, form: Form) -> dict[str, Any] | None:
    """What the page shows of a query that names a released table; None where it names none."""
    asked = answer_in(hub, caller, _sql(hub, caller, form), confidence=_confidence(form))
    if asked is None:
        return None
    cells = of_table(asked[1])
    used = {cell.known for line in cells.rows for cell in line}
    known = {label: words for label, words in KNOWN.items() if label in used}
    return {"asked_table": asked[0], "answer": cells, "answer_notes": asked[1].notes, "known": known}


def _last(hub: Hub, db: Db, caller: Caller) -> dict[str, str]:
    """The question that was answered a moment ago: whoever goes back from its answer finds it in the editor again."""
    rows = releases_of(hub, db, caller, which="mine", limit=1)
    fresh = [row for row in rows if hub.now() - row.created < _LATELY]
    kept = ("sql", "purpose", "project", "algorithm")
    return {name: str(getattr(row, name)) for row in fresh for name in kept}


def _asked(hub: Hub, caller: Caller, wish: QuestionRequest, key: str) -> str:
    """Where the answer is, or will be."""

    if not key:
        raise InvalidParameter("The query is invalid", why="its form has no key", instead="load the page again: /ask")
    status, body = ask_once(
        hub,
        caller,
        f"form {key}",
        canonical(wish, {QuestionRequest: WISH}).encode(),
        lambda beside: [ask(hub, caller, wish, beside=beside)],
        told_by_id,
        later=lambda: wish if _long(hub, caller, wish) else None,
    )
    told = json.loads(body)
    return f"/jobs/{told['job']}" if status == 202 else page_of(told["release"], wish.confidence)


def _long(hub: Hub, caller: Caller, wish: QuestionRequest) -> bool:
    """Whether it runs as a job. What is refused here is refused again by asking, which writes that to the audit log."""
    try:
        return not wish.pilot and explain(hub, caller, wish).time_limit > LONG
    except CloisterError:
        return False


def _told(hub: Hub, caller: Caller, form: Form, language: Language) -> dict[str, Any]:
    """Everything that the part about a plan shows."""
    wish = _wish(hub, caller, form)
    found = preview(hub, caller, wish)
    dearest = max((amount_of(each) for each in found.plan.costs.values()), default=Fraction(0))
    named = form.text("spend", most=100) if wish.within is not None else ""
    margins = {name: float(series.values[0]) for name, series in found.plan.margin(wish.confidence).columns.items()}
    return {
        "preview": found,
        "plan": found.plan,
        "margins": margins,
        "by_size": margins_by_size(hub, caller, wish, found.plan),
        "confidence": wish.confidence,
        "guidance": guidance_of(found.plan.cost),
        "denied": problem_of(found.denied) if found.denied is not None else None,
        "picture": themed(retold(found.plan.picture(), language, plan=True)),
        "text": str(found.plan),
        "shown": text_of(dearest) if wish.within is not None and not wish.pilot else "",
        "above": named if named and exact_positive(named, "spend") < dearest else "",
        "unused": wish.within is None and bool(form.text("within", most=40)),
        "long": found.plan.time_limit > LONG,
    }


def _wish(hub: Hub, caller: Caller, form: Form) -> QuestionRequest:
    """What the form asks for. The spend decides, or the margin: which, the form says where it names both."""
    within = _number(form, "within") if _decides(form) == "margin" else None
    return QuestionRequest(
        sql=_sql(hub, caller, form),
        spend="" if within is not None else form.text("spend", most=100),
        within=within,
        pilot=form.text("pilot", most=100) if within is not None else "",
        confidence=_confidence(form),
        purpose=form.text("purpose", most=2000),
        project=form.text("project", most=40),
        algorithm=form.text("algorithm", most=63),
        dialect=form.text("dialect", most=40) or None,
    )


def _sql(hub: Hub, caller: Caller, form: Form) -> str:
    """The question: as the builder's form says it, as it was typed, or as the algorithm that is chosen has it."""
    if is_built(form):
        return built_sql(hub, caller, form)
    typed, algorithm = form.text("sql", most=60_000), form.text("algorithm", most=63)
    if typed or not algorithm:
        return typed
    with hub.database.reading() as db:
        return str(named_algorithm(hub, db, caller, algorithm, NAME).settings.get("sql", ""))


def _decides(form: Form) -> str:
    """Whether the spend or the margin is what counts."""
    by, margin, spend = form.text("by", most=10), form.text("within", most=40), form.text("spend", most=100)
    if not by and margin and spend:
        raise InvalidParameter(
            "The query is invalid",
            why="it names both a spend and a margin, and not which of them decides",
            instead="choose one of the two under “Set by”",
        )
    if by == "margin" and not margin:
        raise InvalidParameter(
            "The query is invalid", why="the margin decides, and none is named", instead="a number in the field “Margin”"
        )
    return by if by in ("spend", "margin") else "margin" if margin else "spend"


def _most(form: Form) -> str:
    """What a margin may cost at most: the spend that stands beside it, or what the page has shown of its cost."""
    most = form.text("spend", most=100) or form.text("shown", most=100)
    if not most and form.text("pilot", most=100):
        raise InvalidParameter(
            "The query is invalid",
            why="what its margin costs follows from the pilot, and no largest spend is given",
            instead="name the most in the field “Spend”",
        )
    if not most:
        raise InvalidParameter(
            "The query is invalid",
            why="what its margin costs was not shown yet, and no largest spend is given",
            instead="press “Explain” first, or name the most in the field “Spend”",
        )
    exact_positive(most, "spend")
    return most


def _number(form: Form, name: str) -> float | None:
    text = ungrouped(form.text(name, most=40))
    try:
        value = float(text) if text else None
    except ValueError:
        value = float("nan")
    if value is not None and not 0 < value <= 1e300:
        raise InvalidParameter("The margin is invalid", why="it is not a number greater than 0", instead="50")
    return value


def _confidence(form: Form) -> float:
    chosen = form.text("confidence", "0.95", most=10)
    return float(chosen) if chosen in CONFIDENCES else 0.95


def _values(form: Form) -> dict[str, str]:
    return {name: form.get(name, "") for name in _FIELDS}


def _refused(request: Request, hub: Hub, caller: Caller, form: Form, error: CloisterError) -> Response:
    """The question again, with what was wrong: by its three parts, and where in the text."""
    problem, place = problem_of(error), error_position(form.get("sql", "")[:60_000], error)
    if is_fragment(request):
        return render(request, "asking/explained.html", status=200, told=None, problem=problem, place=place)  # a part of a page
    return _again(request, hub, caller, form, problem=problem, place=place)


def _page(
    request: Request, hub: Hub, caller: Caller, values: dict[str, str], *, about: str = "", begins: bool = False, **more: Any
) -> Response:
    with hub.database.reading() as db:
        runnable = algorithms_to_ask_under(hub, db, caller)
        opened = offers(hub, db, caller, "question.explain", under=runnable, then="question.ask")
        tables = [*tables_of(hub, db, caller), *free_tables(hub, db, caller)]
        projects = open_projects(db, caller)
    known = sorted([*opened, *tables], key=lambda each: each.which.name != about)
    examples = [(each.which.name, example_of(each)) for each in known if each.plain and example_of(each)]
    if not values.get("sql") and about and examples:
        values = {**values, "sql": examples[0][1]}
    own, named = [each.row for each in runnable], values.get("algorithm", "")
    chosen = next((each for each in own if named in (each.id, each.name)), None)
    plain = not opened or any(each.plain for each in opened)
    if begins and not named and not plain and own:
        chosen = own[0]
    values = {**values, "algorithm": chosen.name if chosen else ""}
    if chosen and not values.get("sql"):
        values["sql"] = str(chosen.settings.get("sql", ""))
    return render(
        request,
        "asking/ask.html",
        values={name: values.get(name, "") for name in _FIELDS},
        data_sets=known,
        examples=examples[:6],
        quoted=quoted,
        projects=projects,
        purposes=sorted({name for each in opened for name in each.purposes}),
        purpose_required=bool(opened) and not tables and all(each.names_purpose for each in opened),
        algorithms=own,
        plain=plain,
        hidden_algorithm=begins and bool(named) and chosen is None,
        confidences=confidences(request_gettext(request)),
        key=new_secret(),
        **{"told": None, "problem": None, "place": None, "rehearsal": None, "notes": (), **more},
    )


def example_of(offer: Offer) -> str:
    """A first question about a data set, from its declaration.

    >>> import cloister as cl
    >>> from cloister.hub.decisions.policy import Object
    >>> table = cl.PrivateTable({"sex": ["F"]}, columns={"sex": cl.Category(["F", "M"])})
    >>> example_of(Offer(which=Object(kind="data-set", id="d1", name="people"), table=table))
    'SELECT sex, COUNT(*) AS n FROM people GROUP BY sex'
    """
    name = quoted(offer.which.name)
    if isinstance(offer.table, PublicTable):
        return ""
    columns = offer.table.columns
    keys = [quoted(each) for each, domain in columns.items() if isinstance(domain, Category) or domain.kind == "boolean"]
    if not keys:
        return f"SELECT COUNT(*) AS n FROM {name}"  # noqa: S608  (a text for an editor)
    numbers = [quoted(each) for each, domain in columns.items() if domain.kind in ("integer", "real")]
    mean = f", AVG({numbers[0]}) AS {numbers[0]}" if numbers else ""
    return f"SELECT {keys[0]}, COUNT(*) AS {alias('n', columns)}{mean} FROM {name} GROUP BY {keys[0]}"  # noqa: S608


_QUOTED = re.compile(r"'([^']{1,60}?)…?'|\"([^\"]{1,60}?)…?\"|\b([A-Z][A-Z_]{2,}(?:\([^)]*\))?)")


@dataclass(frozen=True, kw_only=True)
class ErrorPosition:
    """A part of a text, by line and column from 1."""

    line: int
    column: int
    text: str
    whole: str
    """The line in which it stands."""


def error_position(sql: str, error: CloisterError) -> ErrorPosition | None:
    """The part of a question that a refusal names; None where it names none.

    >>> from cloister.errors import UnknownColumn
    >>> error_position("SELECT a,\\n  b FROM t", UnknownColumn("The column 'b' is not known", why="declared are 'a'"))
    ErrorPosition(line=2, column=3, text='b', whole='  b FROM t')
    """
    for match in _QUOTED.finditer(error.what):
        word = next(each for each in match.groups() if each)
        found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sql, re.IGNORECASE)
        if found is not None:
            before = sql[: found.start()]
            start = before.rfind("\n") + 1
            end = sql.find("\n", found.start())
            whole = sql[start : len(sql) if end < 0 else end]
            return ErrorPosition(line=before.count("\n") + 1, column=found.start() - start + 1, text=found[0], whole=whole[:200])
    return None


def _saved(routes: Pages) -> None:
    @routes.get("/questions", "question.see")
    def questions(request: Request, hub: HubDep, caller: CallerDep, after: After = "") -> Response:
        with hub.database.reading() as db:
            rows = saved_of(db, caller, after=after, limit=_PAGE + 1)
            people = names_of(db, [row.person for row in rows])
            own = {each.row.id: each.row.title for each in algorithms_to_ask_under(hub, db, caller)}
        older = f"/questions?{urlencode({'after': rows[_PAGE - 1].id})}" if len(rows) > _PAGE else ""
        return render(request, "asking/questions.html", questions=rows[:_PAGE], people=people, own=own, older=older)

    @routes.post("/questions/{number}/remove", "question.manage")
    def forget(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        _ = request_gettext(request)
        with hub.database.begin() as db:
            remove(hub, db, caller, number)
        return go(request, "/questions", _("The query was removed. Its answers stay."))

    @routes.get("/releases/{number}/print", "release.see", ticked=True)
    def printed(
        request: Request, hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95, joint: bool = False
    ) -> Response:
        """An answer as it is printed: nothing folded, nothing beside it."""
        on_paper = replace(ANSWER, template="asking/printed.html")
        return release_page(request, hub, caller, number, on_paper, confidence=confidence, joint=joint)

    @routes.get("/releases/{number}/chart.svg", "release.see", ticked=True)
    def chart(
        request: Request, hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95, page: ChartPage = 1
    ) -> Response:
        """A page of the chart: statistics by the first key, with error bars."""
        with hub.database.reading() as db:
            row = seen_release(hub, db, caller, number, kind=ANSWERS)
        drawn = chart_svg(hub, row, unpacked(row), round(confidence, 4), request_language(request), page)
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
        headers["Vary"] = "Cookie, Accept-Language"
        return Response(drawn, headers=headers, media_type="image/svg+xml")
