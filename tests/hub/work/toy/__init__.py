"""A whole service in one file: how often each value of a column occurs, with noise, ordered and done as a job.

Tests run it, the product does not have it, and `docs/how-to/write-a-hub-service.md` explains it piece by piece.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cloister.errors import InvalidParameter
from cloister.hub.decisions.policy.actions import Action
from cloister.hub.hub import Hub
from cloister.hub.releases.kinds import File, FileKind, ReleaseKind, View
from cloister.hub.service import Link, Service
from cloister.hub.spreadsheets import safe
from cloister.hub.web.languages import N_
from cloister.hub.work.attempts import AttemptSession
from cloister.hub.work.authorise import Words
from cloister.hub.work.one_table import ReadyTable, ready_table
from cloister.hub.work.ordering import asked, order_api, order_pages
from cloister.hub.work.orders import OrderedWork, Product, job_of
from cloister.privacy import Guarantee
from cloister.query import Session
from cloister.session import Count, Question, Release
from cloister.stored import Stored
from cloister.tables import Boolean, Category, PrivateTable

# -- the action: what a grant gives, and what the audit log calls it
MAKE = Action(name="tally.make", title=N_("Make a tally"), roles=frozenset({"analyst", "owner"}), by="grant", data=True)


# -- the order: the form, the JSON body and what the job keeps
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A tally of a column."""

    table: str
    column: str = asked(N_("Column"), N_("one with declared values"))
    spend: str
    purpose: str = ""
    project: str = ""
    title: str = ""

    @property
    def algorithm(self) -> str:
        """No algorithm makes tallies."""
        return ""

    @property
    def question(self) -> Question:
        """What the door is asked."""
        return Question(table=self.table, by=(self.column,), statistics=(Count(),))


# -- the release: what is kept, shown, read by programs, taken away
def _lines(view: View) -> list[list[Any]]:
    """Each value, its count, and the margin of that."""
    release = Release.from_json(view.row.body.decode())
    margins = release.margin(view.confidence)["count"].tolist()
    values, counts = (series.tolist() for series in release.table.columns.values())
    return [[value, count, margin] for value, count, margin in zip(values, counts, margins, strict=True)]


def _shown(view: View) -> dict[str, Any]:
    _ = view.language.gettext
    pairs = [(_("Data set"), view.row.details["table"]), (_("Column"), view.row.details["column"])]
    return {"pairs": pairs, "columns": [_("Value"), _("Count"), _("Margin")], "lines": _lines(view)}


def _csv(view: View) -> File:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([["value", "count", "margin"], *([safe(str(line[0])), *line[1:]] for line in _lines(view))])
    return File(name=f"tally-{view.row.id}.csv", body=text.getvalue().encode())


TALLY = ReleaseKind(
    name="tally",
    path="/tallies",
    trail="tally",
    title=N_("Tallies"),
    missing=N_("There is no such tally"),
    shown=_shown,
    told=lambda view: view.row.body,
    files={"csv": FileKind(media_type="text/csv; charset=utf-8", make=_csv)},
)


# -- the work: what it touches, what it costs, how it is done
class _Tallying(OrderedWork[Wanted, ReadyTable[Wanted]]):
    job, title, action, release = "tallying.make", N_("Tally"), MAKE.name, TALLY
    stored = Stored(Wanted, "Tally", "table", "column", "spend", "purpose", "project", "title")
    stages = {"preparing the tables": 0.1, "reserving the cost": 0.2, "counting": 0.3, "keeping the tally": 0.9}  # noqa: RUF012
    words = Words(
        name="The tally",
        invalid=N_("The tally is invalid"),
        denied=N_("The tally was denied"),
        withheld=N_("The tally was not released"),
    )

    def ready(self, *given: Any, **how: Any) -> ReadyTable[Wanted]:
        order: Wanted = given[3]

        def charge(session: Session, _: PrivateTable, budget: Guarantee) -> Guarantee:
            return session.explain(order.question, order.spend).cost

        return ready_table(self, *given, **how, columns=(order.column,), charge=charge)

    def rehearse(self, found: ReadyTable[Wanted]) -> None:
        if not isinstance(found.table.column(found.order.column), Category | Boolean):
            raise InvalidParameter(
                self.words.invalid, why=N_("the column has no declared values"), instead="a column that is a category"
            )

    def run(self, hub: Hub, found: ReadyTable[Wanted], session: Callable[[], AttemptSession]) -> Product:
        order = found.order
        release = session().measure(order.question, order.spend, purpose=order.purpose)
        details = {"table": order.table, "column": order.column}
        return Product(body=release.to_json().encode(), cost=release.spent_by, details=details)


TALLYING = _Tallying()

# -- the service: everything that the hub has to know of it
SERVICE = Service(
    name="tallying",
    title=N_("Tallies"),
    pages=lambda: order_pages(TALLYING, Wanted, "/tally"),
    api=lambda: order_api(TALLYING, Wanted, "/tallies"),
    jobs=(job_of(TALLYING),),
    releases=(TALLY,),
    links=(Link(N_("Tallies"), "/tallies", "release.see", "learn", 29, "chart", help="how-to/which-method"),),
)
