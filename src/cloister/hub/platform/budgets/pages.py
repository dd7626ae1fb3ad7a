"""Pages of budgets: those that one sees, and one with its shares, charges, picture and requests.

The history of a budget as a picture: what was spent, as steps, under what may be spent. A small SVG of our own, drawn from the
ledger's public account; no value of a row is near it.

It is served as an image, so it can't use the page's colours: each look has its own.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Path, Query, Request
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.decisions.checking import allowed
from cloister.hub.decisions.facts import facts_of
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access import Typed, thread
from cloister.hub.platform.budgets import acts
from cloister.hub.platform.budgets.granted import granted_shares
from cloister.hub.platform.budgets.guidance import USUAL, advice, number_of_questions
from cloister.hub.platform.budgets.reading import (
    balance_of,
    balances,
    budget_events,
    charges_of,
    purses_of,
    reserved_in,
    seen_population,
    shares_of,
)
from cloister.hub.platform.catalogue import window_with
from cloister.hub.problems import problem_of
from cloister.hub.records.accounts import names_of
from cloister.hub.service import Card
from cloister.hub.web.formats import zone_of
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.languages import N_
from cloister.hub.web.render import ZONE_COOKIE, render, request_gettext
from cloister.hub.web.routing import Number, Pages
from cloister.ledger import Charge
from cloister.privacy import ZCDP, text_of
from cloister.privacy.rational import figures
from cloister.session.questions.spend import amount_of, less

NAME = r"^[^\x00-\x1f]+$"
_Name = Annotated[str, Path(max_length=200, pattern=NAME)]
_After = Annotated[int, Query(ge=0, le=2**53)]
_PAGE = 50


def add(routes: Pages) -> None:
    @routes.get("/budgets", "budget.see")
    def listed(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        with hub.database.reading() as db:
            found = balances(hub, db, caller)
            asked = acts.open_requests(db, caller)
            names = names_of(db, [each.person for each in asked])
        return render(request, "budgets/list.html", balances=found, requests=asked, names=names, usual=USUAL)

    @routes.get("/budgets/{population}", "budget.see")
    def one(request: Request, hub: HubDep, caller: PersonDep, population: _Name, after: _After = 0) -> Response:
        return render(request, "budgets/budget.html", **_one(request, hub, caller, population, {}, after))

    @routes.get("/budgets/{population}/history.svg", "budget.see")
    def history(
        request: Request, hub: HubDep, caller: PersonDep, population: _Name, look: Literal["light", "dark"] = "light"
    ) -> Response:
        _ = request_gettext(request)
        with hub.database.reading() as db:
            row, _which = seen_population(hub, db, caller, population)
        limits = [Step(when=each.when, amount=amount_of(each.budget)) for each in budget_events(hub, row.name)]
        letter = "ρ" if isinstance(hub.ledger.budget(row.name), ZCDP) else "ε"
        title = _("Spending of %(name)s over time", name=row.title)
        now = hub.now().astimezone(zone_of(request.cookies.get(ZONE_COOKIE, "")))
        picture = drawn(steps(hub.ledger.charges(row.name)), limits, now, look=look, letter=letter, title=title)
        return Response(picture, media_type="image/svg+xml")

    @routes.post("/budgets/{population}/raise", "budget.raise")
    def raise_(request: Request, hub: HubDep, caller: PersonDep, population: _Name, form: FormDep) -> Response:
        said = request_gettext(request)("The budget was raised. The ledger and the audit log keep the reason.")

        def act() -> None:
            amount, why = form.text("amount", most=100), form.text("why")
            acts.raise_budget(hub, caller, population, amount=amount, why=why, delta=form.text("delta", most=100))

        return _done(request, hub, caller, population, form, act, said)

    @routes.post("/budgets/{population}/allot", "dataset.budget")
    def allot(request: Request, hub: HubDep, caller: PersonDep, population: _Name, form: FormDep) -> Response:
        said = request_gettext(request)("The share was set.")

        def act() -> None:
            who, amount = form.text("who", most=320), form.text("amount", most=100)
            acts.allot(hub, caller, population, who=who, amount=amount)

        return _done(request, hub, caller, population, form, act, said)

    @routes.post("/budgets/{population}/requests", "budget.ask")
    def ask(request: Request, hub: HubDep, caller: PersonDep, population: _Name, form: FormDep) -> Response:
        said = request_gettext(request)("Your request was sent to the owner.")

        def act() -> None:
            amount, reason = form.text("amount", most=60), form.text("reason")
            acts.ask_more(hub, caller, population, amount=amount, reason=reason, project=form.text("project", most=32))

        return _done(request, hub, caller, population, form, act, said)

    @routes.post("/budgets/{population}/requests/{number}/decide", "dataset.budget")
    def decide(request: Request, hub: HubDep, caller: PersonDep, population: _Name, number: Number, form: FormDep) -> Response:
        yes = form.text("decision") == "grant"
        _ = request_gettext(request)

        def act() -> None:
            amount, message = form.text("amount", most=60), form.text("message")
            acts.decide_request(hub, caller, number, yes=yes, amount=amount, message=message)

        said = _("The share was granted.") if yes else _("The request was refused.")
        return _done(request, hub, caller, population, form, act, said)

    @routes.post("/budgets/{population}/requests/{number}/withdraw", "budget.ask")
    def withdraw(request: Request, hub: HubDep, caller: PersonDep, population: _Name, number: Number, form: FormDep) -> Response:
        said = request_gettext(request)("The request was withdrawn.")
        return _done(request, hub, caller, population, form, partial(acts.withdraw_request, hub, caller, number), said)


def _done(
    request: Request, hub: Hub, caller: Caller, population: str, form: FormDep, act: Callable[[], object], said: str
) -> Response:
    try:
        act()
    except CloisterError as error:
        problem = problem_of(error)
        if problem.status == 404:
            raise
        values = _one(request, hub, caller, population, dict(form), 0) | {"problem": problem}
        return render(request, "budgets/budget.html", **values)
    return go(request, f"/budgets/{quote(population, safe='')}", said)


def _one(request: Request, hub: Hub, caller: Caller, name: str, typed: dict[str, str], after: int) -> dict[str, Any]:
    with hub.database.reading() as db:
        row, which = seen_population(hub, db, caller, name)
        balance = balance_of(hub, db, caller, row, which)
        only = None if balance.whole else purses_of(db, caller)
        owns = allowed(hub, db, caller, "dataset.budget", which).allowed
        window = window_with(db, row.name)
        asked, own = acts.open_requests(db, caller, row.name), acts.mine(db, caller, row.name)
        facts = facts_of(hub, db)
        drawing = [each for each in facts.data_sets.values() if each.population == row.name]
        tables = sorted(each.name for each in drawing if allowed(hub, db, caller, "dataset.see", each).allowed)
        people = names_of(db, [row.owner, *(each.person for each in asked)])
        said = {each.id: thread(db, each.id) for each in (*asked, *own)}
        granted = granted_shares(hub, db, row.name, None if balance.whole else caller, request_gettext(request))
    charges, older = charges_of(hub, row.name, only=only, after=after, limit=_PAGE)
    held = reserved_in(hub.ledger.charges(row.name), balance.total)
    return {
        "row": row,
        "balance": balance,
        "settled": less(balance.spent, held) or reserved_in([], balance.total),
        "held": held,
        "owns": owns,
        "shares": shares_of(hub, row.name, only),
        "granted": granted,
        "charges": charges,
        "older": f"?after={older}" if older else "",
        "first": after == 0,
        "events": budget_events(hub, row.name) if balance.whole else [],
        "requests": asked,
        "own": own,
        "said": said,
        "people": people,
        "projects": [(number, facts.projects[number].name) for number in sorted(caller.projects & facts.projects.keys())],
        "project_names": {number: each.name for number, each in facts.projects.items()},
        "tables": tables,
        "window": {} if window is None else window.window,
        "advice": advice(balance.total, row.people, hub.settings.max_delta, request_gettext(request), unit=row.unit),
        "left_questions": number_of_questions(balance.remaining),
        "usual": USUAL,
        "typed": Typed(typed),
        "problem": None,
    }


_WIDTH, _HEIGHT = 760, 260
_DAY = 86_400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 34


@dataclass(frozen=True, kw_only=True)
class _Look:
    ink: str
    line: str
    fill: str
    limit: str


LOOKS = {
    "light": _Look(ink="#51605c", line="#dcd9cf", fill="#17594b", limit="#9b2c22"),
    "dark": _Look(ink="#a2b1ac", line="#2b3634", fill="#63b9a2", limit="#f3a79d"),
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """From this moment on, so much was spent (or could be)."""

    when: datetime
    amount: Fraction


def steps(charges: Iterable[Charge]) -> list[Step]:
    """What was spent in all, at the moment of each charge; what was given back is left out.

    >>> steps([])
    []
    """
    found, total = [], Fraction(0)
    for each in charges:
        if each.cost is not None and each.state != "voided":
            total += amount_of(each.cost)
            found.append(Step(when=each.when, amount=total))
    return found


def drawn(
    spent: Sequence[Step], limits: Sequence[Step], until: datetime, *, look: str = "light", letter: str = "ε", title: str = ""
) -> str:
    """The picture, by the clocks of `until`. `limits`: the budget, as it was opened and raised.

    >>> from datetime import timedelta
    >>> begun = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    >>> picture = drawn([], [Step(when=begun, amount=Fraction(1))], begun + timedelta(days=30), title="A & B")
    >>> "<title>A &amp; B</title>" in picture, picture.count("<path")
    (True, 2)
    """
    colours = LOOKS[look]
    begin = min([each.when for each in (*limits, *spent)], default=until)
    most = max([each.amount for each in (*limits, *spent)], default=Fraction(1)) or Fraction(1)
    length = max((until - begin).total_seconds(), 1.0)

    def across(when: datetime) -> float:
        share = min(max((when - begin).total_seconds() / length, 0.0), 1.0)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def up(amount: Fraction) -> float:
        return _HEIGHT - _BOTTOM - float(amount / most) * (_HEIGHT - _TOP - _BOTTOM)

    def path(found: Sequence[Step], first: Fraction) -> str:
        parts, height = [f"M{across(begin):.1f} {up(first):.1f}"], first
        for each in found:
            parts.append(f"H{across(each.when):.1f}")
            if each.amount != height:
                parts.append(f"V{up(each.amount):.1f}")
                height = each.amount
        return "".join([*parts, f"H{across(until):.1f}"])

    floor = up(Fraction(0))
    area = path(spent, Fraction(0)) + f"V{floor:.1f}H{across(begin):.1f}Z"
    bound = path(limits, limits[0].amount if limits else most)
    marks = Markup("").join(
        Markup(
            '<line x1="{}" x2="{}" y1="{}" y2="{}" stroke="{}"/><text x="{}" y="{}" text-anchor="end" fill="{}">{} = {}</text>'
        ).format(
            _LEFT,
            _WIDTH - _RIGHT,
            up(amount),
            up(amount),
            colours.line,
            _LEFT - 8,
            up(amount) + 4,
            colours.ink,
            letter,
            _short(amount),
        )
        for amount in (Fraction(0), most / 2, most)
    )
    form = "%Y-%m-%d" if (until - begin).total_seconds() > _DAY else "%H:%M"
    days = Markup("").join(
        Markup('<text x="{}" y="{}" text-anchor="{}" fill="{}">{}</text>').format(
            across(when), _HEIGHT - 10, anchor, colours.ink, when.astimezone(until.tzinfo).strftime(form)
        )
        for when, anchor in ((begin, "start"), (until, "end"))
    )
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="14" role="img">'
            '<title>{}</title>{}<path d="{}" fill="{}" fill-opacity="0.85"/>'
            '<path d="{}" fill="none" stroke="{}" stroke-width="2" stroke-dasharray="6 4"/>{}</svg>'
        ).format(_WIDTH, _HEIGHT, title, marks, area, colours.fill, bound, colours.limit, days)
    )


def _short(amount: Fraction) -> str:
    text = text_of(amount)
    return text if len(text) <= 6 else figures(amount, 3)


def cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    """The card of budgets, for anyone who may see one; its template translates the titles."""
    found = balances(hub, db, caller, 4)
    if not found:
        return []
    values = {"title": N_("Budgets"), "budgets": found, "waiting": len(acts.open_requests(db, caller))}
    return [Card(template="budgets/card.html", values=values, order=25)]
