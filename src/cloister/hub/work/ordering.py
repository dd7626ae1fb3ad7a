"""How work is ordered, in the API and on a page, from the one dataclass that says what an order is.

Its fields are those of the JSON body, of the form and of what a job keeps. A field says its label and its help in its metadata
(`asked`); what most orders name besides (a spend, a purpose, a project, a title) needs no words of its own.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict, TypeAdapter
from sqlalchemy import select
from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.decisions.facts import facts_of
from cloister.hub.guidance import guidance_of
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.ids import new_secret
from cloister.hub.problems import problem_of
from cloister.hub.records.access import Project
from cloister.hub.web.forms import Form, FormDep, go, ungrouped
from cloister.hub.web.languages import N_
from cloister.hub.web.render import render
from cloister.hub.web.routing import IdempotencyKey, Pages, Routes
from cloister.hub.work.authorise import AuthorisedOrder
from cloister.hub.work.bounds import Left, account_of, left_of
from cloister.hub.work.concurrency import looking
from cloister.hub.work.offer import Offer
from cloister.hub.work.one_table import ReadyTable
from cloister.hub.work.orders import OrderedWork, submit_order
from cloister.hub.work.submitting import accepted
from cloister.lazily import check_installed
from cloister.privacy import Guarantee
from cloister.session.questions.spend import amount_of, measure_of
from cloister.stored import canonical
from cloister.tables.expression.names import quotation
from cloister.tables.sourcing.reading import representable

Before = Callable[[Hub, AuthorisedOrder[Any]], Any]
"""What is said before work by the marked door, from declarations alone."""
Errors = Callable[[Hub, ReadyTable[Any]], Any]
"""What to expect of work that may be done, from declarations alone: in the API, lines of a table of errors."""
Doubt = Callable[[ReadyTable[Any], Any], CloisterError | None]
"""Why an order is hardly meant, by what to expect of it: on a page it is confirmed before it is carried out."""

_PLAIN = "work/order.html"
_LABELS = {"table": N_("Data set"), "spend": N_("Spend"), "purpose": N_("Purpose"), "project": N_("Project"), "title": N_("Name")}


def asked(label: str, about: str = "", *, several: bool = False, **more: Any) -> Any:
    """A field of an order with the words of its form; English msgids. `several`: a list separated by commas, of boxes to tick
    where what there is to choose from is known."""
    return field(metadata={"label": label, "help": about, "several": several}, **more)


def whole(text: str) -> int:
    """A whole number as it was typed, also with blanks or commas between the thousands; 0 for what is none, or beyond all that is
    meant.

    >>> whole("12"), whole("10,000"), whole("-1"), whole("0" * 9 + "12")
    (12, 10000, 0, 0)
    """
    text = ungrouped(text)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def agreed(text: str) -> bool:
    """Whether somebody said yes.

    >>> agreed("yes"), agreed(" TRUE"), agreed("no"), agreed("")
    (True, True, False, False)
    """
    return text.strip().casefold() in ("yes", "true")


class JobOfWork(BaseModel):
    """The job that does it: look at /jobs/{job}, whose result says where it is."""

    job: str


class Priced(BaseModel):
    """What an order would cost: nothing is spent by asking."""

    cost: str
    charge: str
    """What of it is still to be charged, at most."""
    population: str


class Forecast(Priced):
    """The same, with the errors to expect, from declarations alone."""

    errors: list[dict[str, str | float | None]]


@dataclass(frozen=True, kw_only=True)
class Price:
    """The same for a page, with what is left."""

    cost: Guarantee
    """What the order names."""
    charge: Guarantee
    """What of it is still to be charged, at most."""
    population: str
    left: tuple[Left, ...]
    beside: Any
    """What the service says besides."""
    doubt: CloisterError | None = None

    @property
    def guidance(self) -> Any:
        """What such a promise means."""
        return guidance_of(self.cost)

    @property
    def bought_before(self) -> bool:
        """Whether some of it was."""
        return amount_of(self.charge) < amount_of(self.cost)


def price(
    hub: Hub,
    caller: Caller,
    work: OrderedWork[Any, Any],
    order: Any,
    beside: Errors = lambda *_: None,
    doubt: Doubt = lambda *_: None,
) -> Price:
    """What an order would cost, what would be left, and what the service says besides: spends nothing and reads no row. Refused
    where it would be."""
    with looking(hub, caller):
        with hub.database.reading() as db:
            check_installed(work.extra, work.words.withheld)
            found: ReadyTable[Any] = work.ready(hub, db, caller, order)
            who = account_of(facts_of(hub, db), caller, found.terms.project)
            left = left_of(hub, db, caller, who, found.objects, found.decisions, found.charges)
        told, population = beside(hub, found), found.which.population
        return Price(
            cost=found.cost, charge=found.charge, population=population, left=left, beside=told, doubt=doubt(found, told)
        )


def before_start(hub: Hub, caller: Caller, work: OrderedWork[Any, Any], order: Any, before: Before) -> Any:
    """What is said before work by the marked door is ordered, which has no price. Refused where it would be."""
    check_texts(order)
    with looking(hub, caller):
        with hub.database.reading() as db:
            check_installed(work.extra, work.words.withheld)
            found = work.ready(hub, db, caller, order)
        return before(hub, found)


def open_projects(db: Db, caller: Caller) -> list[tuple[str, str]]:
    """The projects in which somebody may order: each by its id and its title."""
    mine = select(Project.id, Project.title).where(Project.id.in_(sorted(caller.projects)), Project.closed.is_(None))
    return [(row.id, row.title) for row in db.execute(mine.order_by(Project.title))]


def about_offered(hub: Hub, offered: Sequence[Offer], typed: Mapping[str, Any]) -> tuple[Offer | None, dict[str, Any]]:
    """The data set of those on offer that a form is about, the first where none is typed; and what such a form shows of it."""
    opened = {each.which.name: each for each in offered}
    name = typed["table"] if typed["table"] in opened else next(iter(opened), "")
    offer = opened.get(name)
    return offer, {
        "opened": list(opened),
        "chosen": name,
        "measure": "" if offer is None else measure_of(hub.ledger.budget(offer.which.population)),
        "purposes": () if offer is None else offer.purposes,
        "names_purpose": offer is not None and offer.names_purpose,
    }


def check_texts(order: Any) -> None:
    """Refuse an order in which a text has half of a character: it can't be kept.

    >>> check_texts(["people\\ud800"])
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The order is invalid: a text holds half of a character...
    """
    if isinstance(order, str):
        if not representable(order):
            why = "a text holds half of a character, or a NUL"
            raise InvalidParameter("The order is invalid", why=why, instead="the text without it")
    elif isinstance(order, Mapping):
        for each in chain(order.keys(), order.values()):
            check_texts(each)
    elif isinstance(order, list | tuple):
        for each in order:
            check_texts(each)
    elif is_dataclass(order):
        for each in fields(order):
            check_texts(getattr(order, each.name))


def order_api(
    work: OrderedWork[Any, Any],
    request: type[Any],
    path: str,
    *,
    summaries: tuple[str, ...] = ("", ""),
    errors: Errors | None = None,
    mark: str = "",
    job: str = "",
    without: frozenset[str] = frozenset(),
) -> APIRouter:
    """`POST path` orders it, `POST path/price` says what it would cost, and which errors to expect. `summaries`: what the two are
    called in the API's description; one alone: there is no price. `mark`, and all fields but those `without`, are what a key is
    for. `job`: where another kind than the work's own does it. The request may bring an example (`description.example`)."""
    request.__pydantic_config__ = {**getattr(request, "__pydantic_config__", {}), **ConfigDict(extra="forbid")}
    routes, body = Routes(), Annotated[request, Body()]

    def order(hub: HubDep, caller: CallerDep, wanted: Any, key: IdempotencyKey = "") -> Response:
        """Order it as a job, charged. The same `Idempotency-Key` submits one job."""
        check_texts(wanted)
        told = TypeAdapter(request).dump_json(wanted, exclude={*without, *work.stored.untold(wanted)})
        return accepted(submit_order(hub, caller, work, key, f"{mark or work.job}\n".encode() + told, wanted, job=job))

    def priced(hub: HubDep, caller: CallerDep, wanted: Any) -> Priced:
        """From declarations and the ledger alone: spends nothing and reads no row."""
        check_texts(wanted)
        found = price(hub, caller, work, wanted, errors or (lambda *_: None))
        told = {"cost": str(found.cost), "charge": str(found.charge), "population": found.population}
        return Priced(**told) if errors is None else Forecast(**told, errors=[dict(each) for each in found.beside])

    for route in (order, priced):
        route.__annotations__["wanted"] = body
    name = path.strip("/")
    how: dict[str, Any] = {"name": f"order {name}", "status_code": 202, "response_model": JobOfWork, "ticked": True}
    routes.post(path, work.action, summaries[0] or f"Order: {name}", "The job that does it", **how)(order)
    if len(summaries) > 1:
        how = {"name": f"price {name}", "response_model": Priced if errors is None else Forecast, "ticked": True}
        routes.post(f"{path}/price", work.action, summaries[1] or f"Price: {name}", "The cost", **how)(priced)
    return routes.router


def submit_form(
    hub: Hub, caller: Caller, work: OrderedWork[Any, Any], form: Form, order: Any, told: Any, path: str, *, job: str = ""
) -> str:
    """The id of the job that carries out what a page ordered; a form that is sent twice, with the same `told`, makes one."""
    key = form.text("key", most=60)
    if not key:
        raise InvalidParameter(work.words.invalid, why="its form has no key", instead=f"load the page again: {path}")
    request = canonical(told, {type(order): work.stored}).encode()
    return submit_order(hub, caller, work, f"form {key}", request, order, job=job)


def order_pages(
    work: OrderedWork[Any, Any],
    request: type[Any],
    path: str,
    template: str = _PLAIN,
    *,
    more: Callable[[Hub, Db, Caller, Mapping[str, Any]], Mapping[str, Any]] = lambda *_: {},
    errors: Errors = lambda *_: (),
    doubt: Doubt | None = None,
    before: Before | None = None,
    priced_at: str = "price",
    heading: str = "",
) -> APIRouter:
    """`GET path` is the form, `POST path/price` the form with the price, `POST path` orders: to the page of the job. Work by the
    marked door has no price; `before` says what stands in its place. What `doubt` says is confirmed first. `more`: what a
    template of its own shows besides, by what was typed; of the plain form `choices`, by the name of a field, and `chosen`, the
    data set that they are of. A field that is a tuple is one of boxes to tick; one that is a mapping is not on the form."""
    routes = Pages()
    several = {each.name for each in fields(request) if each.metadata.get("several")}
    lists = {each.name: "tuple[" in str(each.type) for each in fields(request) if "Mapping[" not in str(each.type)}

    def shown(asked: Request, hub: Hub, caller: Caller, values: Mapping[str, Any], **told: Any) -> Response:
        with hub.database.reading() as db:
            shows, projects = {"chosen": "", **more(hub, db, caller, values)}, open_projects(db, caller)
        inputs = list(_inputs(request, values, shows.get("choices", {}))) if template == _PLAIN else ()
        how: dict[str, Any] = {"work": work, "path": path, "inputs": inputs, "projects": projects, "key": new_secret()}
        how["heading"] = heading or work.title
        return render(asked, template, **how, **shows, **{"price": None, "before": None, "problem": None, **told})

    def typed(form: Form) -> dict[str, Any]:
        return {name: tuple(dict.fromkeys(form.all(name))) if many else _text(form, name) for name, many in lists.items()}

    def _text(form: Form, name: str) -> str:
        return ", ".join(form.all(name)) if name in several else form.get(name, "")

    def wanted_in(form: Form) -> Any:
        texts = {name: form.text(name, most=2000, several=name in several) for name, many in lists.items() if not many}
        return request(**{**typed(form), **texts})

    @routes.get(path, work.action)
    def start(asked: Request, hub: HubDep, caller: CallerDep, about: Annotated[str, Query(max_length=63)] = "") -> Response:
        """An empty order, for one data set."""
        return shown(asked, hub, caller, {"table": about})

    def priced(asked: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """What it would cost, and what would be left."""
        values = typed(form)
        try:
            wanted = wanted_in(form)
            if before is not None:
                return shown(asked, hub, caller, values, before=before_start(hub, caller, work, wanted, before))
            found = price(hub, caller, work, wanted, errors, doubt or (lambda *_: None))
        except CloisterError as error:
            return shown(asked, hub, caller, values, problem=problem_of(error))
        return shown(asked, hub, caller, values, price=found)

    def doubted(hub: Hub, caller: Caller, form: Form, wanted: Any) -> Price | None:
        if doubt is None or agreed(form.get("confirmed", "")):
            return None
        with suppress(CloisterError):  # the order itself is refused for that; of one that was made before nothing is asked
            found = price(hub, caller, work, wanted, errors, doubt)
            return found if found.doubt else None
        return None

    if not work.marked or before is not None:
        routes.post(f"{path}/{priced_at}", work.action, ticked=True)(priced)

    @routes.post(path, work.action, ticked=True)
    def order(asked: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """Order it; a form that is sent twice orders once."""
        values = typed(form)
        try:
            wanted = wanted_in(form)
            if (found := doubted(hub, caller, form, wanted)) is not None and found.doubt is not None:
                return shown(asked, hub, caller, values, price=found, problem=problem_of(found.doubt))
            job = submit_form(hub, caller, work, form, wanted, wanted, path)
        except CloisterError as error:
            return shown(asked, hub, caller, values, problem=problem_of(error))
        return go(asked, f"/jobs/{job}")

    return routes.router


def listed(text: str) -> tuple[str, ...]:
    """What a text names, separated by commas; a name may have a Chinese one in it where there are others, and any in quotes.

    >>> listed("age, pay,"), listed("age，pay"), listed("age, （男，女）"), listed('age, "height, in m"')
    (('age', 'pay'), ('age', 'pay'), ('age', '（男，女）'), ('age', 'height, in m'))
    """
    comma = "," if "," in text else "，"
    parts = map(str.strip, re.findall(rf'\s*("(?:[^"]|"")+"|[^{comma}]+)', text))
    return tuple(part[1:-1].replace('""', '"') if part[2:] and part[0] == part[-1] == '"' else part for part in parts if part)


def as_listed(name: str) -> str:
    """A name as `listed` reads it.

    >>> as_listed("age"), as_listed("height, in m")
    ('age', '"height, in m"')
    """
    return quotation(name) if re.search('[,，"]', name) else name


def _inputs(
    request: type[Any], values: Mapping[str, Any], choices: Mapping[str, Sequence[tuple[str, str]]]
) -> Iterator[dict[str, Any]]:
    """The fields of the form; what was typed is among the choices of its field, whatever it is."""
    for each in fields(request):
        value = values.get(each.name, each.default if isinstance(each.default, str) else "")
        known, several = [*choices.get(each.name, ())], each.metadata.get("several", False)
        typed = list(map(as_listed, listed(value))) if several else [value]
        known += [(name, name) for name in typed if known and name and name not in dict(known)]
        needed = not isinstance(each.default, str)
        label = each.metadata.get("label") or _LABELS[each.name]
        yield {"name": each.name, "label": label, "help": each.metadata.get("help", ""), "required": needed} | {
            "value": value,
            "choices": known,
            "ticked": typed if several and known else None,
        }
