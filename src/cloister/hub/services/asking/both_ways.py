"""One data set asked both ways on one page: query by query while its budget lasts, and from a table that was released of it.

What the table answers is free. What the data set would answer is told as margins of error, from declarations alone, when the
table's own cost is shared by so many queries: they cross where asking one by one errs as much as the table. Then the query may be
asked of the data set for such a share, and its answer stands beside the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
from typing import Annotated, Any

import numpy as np
from fastapi import Query, Request
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.ids import new_secret
from cloister.hub.platform.budgets import sees_budget
from cloister.hub.problems import problem_of
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import TableAnswer, kind_of
from cloister.hub.releases.reading import seen_release
from cloister.hub.releases.tables import answer_in, name_in_queries, tables_of
from cloister.hub.services.asking.answering import ask
from cloister.hub.services.asking.preview import afford
from cloister.hub.services.asking.question_request import QuestionRequest
from cloister.hub.services.asking.showing import of_table, shown
from cloister.hub.web.forms import FormDep
from cloister.hub.web.pictures import lines_of
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages
from cloister.privacy import Guarantee, exact_positive, text_of
from cloister.query.another_table import about_another
from cloister.session import Affordable
from cloister.session.questions.spend import amount_of
from cloister.tables.expression.names import alias, quoted

QUERIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000)
"""How many queries may share the cost of the table."""
_DIGITS = 4
_FIELDS = ("sql", "spend", "purpose")


@dataclass(frozen=True, kw_only=True)
class BothWays:
    """What the page shows of one query."""

    answer: TableAnswer
    """From the table, for nothing."""
    statistic: str
    flat: float | None
    """Half of the mean interval there; None where nothing is known of any cell."""
    lines: tuple[tuple[int, str, float], ...]
    """So many queries, what each may spend, and the margin of each."""
    crossing: int | None
    """From how many on the table errs less; None where asking errs less with any number that is shown."""


def both_ways(hub: Hub, caller: Caller, row: StoredRelease, wish: QuestionRequest) -> BothWays:
    """The answer of the table, and margins of the data set: spends nothing. The query names the data set."""
    name = str(row.details["table"])
    found = answer_in(hub, caller, about_another(wish.sql, name, name_in_queries(row)), confidence=wish.confidence)
    if found is None:
        raise InvalidParameter("The query is invalid", why=f"it does not ask about {name}", instead=f"FROM {name}")
    answer = found[1]
    if not answer.statistics:
        raise InvalidParameter("The query is invalid", why="it measures nothing", instead="COUNT(*) AS n")
    amount = amount_of(cost_of(hub, row))
    spends = [Fraction(text_of(Fraction(f"{float(amount / number):.{_DIGITS}g}"))) for number in QUERIES]
    margins = afford(hub, caller, wish, spends)
    statistic = next(iter(answer.statistics))
    widths = _margins(margins, statistic)
    flat = _half_width(answer, statistic)
    lines = [(number, text_of(spend), width) for number, spend, width in zip(QUERIES, spends, widths, strict=True)]
    kept = tuple(line for line in lines if np.isfinite(line[2]))
    return BothWays(answer=answer, statistic=statistic, flat=flat, lines=kept, crossing=crossing(kept, flat))


def crossing(lines: Sequence[tuple[int, str, float]], flat: float | None) -> int | None:
    """From how many queries on the margin of each is that of the table: between two that were worked out along a power of their
    number, as the noise grows.

    >>> crossing([(1, "1", 3.0), (10, "0.1", 30.0)], 9.0)
    3
    >>> crossing([(1, "1", 3.0), (10, "0.1", 30.0)], 90.0) is None
    True
    """
    if flat is None or not lines or lines[-1][2] < flat:
        return None
    if lines[0][2] >= flat:
        return lines[0][0]
    after = next(place for place, (_, _, width) in enumerate(lines) if width >= flat)
    (less, _, below), (more, _, above) = lines[after - 1 : after + 1]
    number: float = less * (flat / below) ** (log(more / less) / log(above / below))
    return ceil(round(number, 6))


def cost_of(hub: Hub, row: StoredRelease) -> Guarantee:
    """What the table was made for."""
    as_table = kind_of(hub, row).as_table
    assert as_table is not None
    return as_table.guarantee(row)


def both_pages(routes: Pages) -> None:
    @routes.get("/ask/both", "question.explain", ticked=True)
    def both(
        request: Request,
        hub: HubDep,
        caller: CallerDep,
        about: Annotated[str, Query(max_length=32, pattern=r"^[A-Za-z0-9_-]*$")] = "",
    ) -> Response:
        """A query about a data set of which a table was released."""
        return _page(request, hub, caller, about, dict.fromkeys(_FIELDS, ""))

    @routes.post("/ask/both", "question.explain", ticked=True)
    def compared(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """The same query both ways: what the table answers, and the margins of asking; spends nothing."""
        typed = {name: form.text(name, most=50_000) for name in _FIELDS}
        return _page(request, hub, caller, form.text("about", most=40), typed)

    @routes.post("/ask/both/ask", "question.ask", ticked=True)
    def asked(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """The same, and the answer of the data set, charged."""
        typed = {name: form.text(name, most=50_000) for name in _FIELDS}
        return _page(request, hub, caller, form.text("about", most=40), typed, buy=True)


def _page(request: Request, hub: Hub, caller: Caller, about: str, typed: dict[str, str], *, buy: bool = False) -> Response:
    _ = request_gettext(request)
    with hub.database.reading() as db:
        tables = [each for each in tables_of(hub, db, caller) if "of" not in each.row.details]
        number = about or next((each.row.id for each in tables), "")
        row = seen_release(hub, db, caller, number) if number else None  # with its body, which a list leaves out
        if row is not None and ("table" not in row.details or kind_of(hub, row).as_table is None):
            row = None
        left = _left(hub, db, caller, row)
    told: dict[str, Any] = {"tables": tables, "row": row, "left": left, "typed": typed, "key": new_secret()}
    if row is not None and not typed.get("sql"):
        told["typed"] = {**typed, "sql": _first(row)}
    if row is not None and typed.get("sql"):
        try:
            wish = QuestionRequest(sql=typed["sql"], spend=typed.get("spend", ""), purpose=typed.get("purpose", ""))
            found = both_ways(hub, caller, row, QuestionRequest(sql=wish.sql, purpose=wish.purpose))
            told |= {"found": found, "cells": of_table(found.answer), "picture": _picture(found, _)}
            told["pays"] = _pays(found, left)
            if buy:
                exact_positive(typed["spend"], "spend")
                told["asked"] = shown(ask(hub, caller, wish).release, wish.confidence)
        except CloisterError as error:
            told["problem"] = problem_of(error)
    return render(request, "asking/both.html", **{"problem": None, "found": None, "asked": None, **told})


def _first(row: StoredRelease) -> str:
    name = row.details["columns"][0]
    first, count = quoted(name), alias("n", [name])
    return f"SELECT {first}, COUNT(*) AS {count} FROM {quoted(row.details['table'])} GROUP BY {first}"  # noqa: S608 for an editor


def _left(hub: Hub, db: Any, caller: Caller, row: StoredRelease | None) -> Guarantee | None:
    """What is left of the budget, where one may know it."""
    populations = [] if row is None else list(row.cost)
    if len(populations) != 1 or not sees_budget(hub, db, caller, populations[0]):
        return None
    return hub.ledger.remaining(populations[0])


def _pays(found: BothWays, left: Guarantee | None) -> int | None:
    """How many queries with the table's margin what is left pays for: then the budget ends."""
    if left is None or found.crossing is None:
        return None
    whole = Fraction(found.lines[0][1]) * found.lines[0][0]
    return int(amount_of(left) * found.crossing / whole)


def _margins(found: Affordable, statistic: str) -> list[float]:
    told = found.to_pydict()
    return [float(width) for width in told.get(statistic, [np.nan] * len(told["spend"]))]


def _half_width(answer: TableAnswer, statistic: str) -> float | None:
    ends = [np.array(answer.table[f"{statistic}{end}"].tolist(), dtype=float) for end in ("_low", "_high")]
    widths = (ends[1] - ends[0]) / 2
    known = widths[np.isfinite(widths)]
    return float(known.mean()) if len(known) and known.mean() > 0 else None


def _picture(found: BothWays, _: Any) -> str:
    """Both as lines, and a rule where they cross."""
    asked = [(float(number), width) for number, _spend, width in found.lines if width > 0]
    if not asked or found.flat is None:
        return ""
    lines = {_("asked one by one"): asked, _("from the table"): [(asked[0][0], found.flat), (asked[-1][0], found.flat)]}
    return lines_of(lines, x=_("Queries"), y=_("Margin of error"), chosen=float(found.crossing or asked[-1][0]))
