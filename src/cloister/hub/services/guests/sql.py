"""`SELECT * FROM cloister.run('name', 'data set', '0.1')`: a run as a table, for clients of PostgreSQL.

It is the order of a job like any other: the same decision, charge, release and entry of the audit log. The statement waits for
the job; a client that goes away finds the result on the page of the job. EXPLAIN says cost and margins, and spends nothing.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.errors import Conflict, EngineError, InvalidParameter
from cloister.guests.blocks import Failed
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.access import named_algorithm
from cloister.hub.records.jobs import Job
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.guests.admission import NAME
from cloister.hub.services.guests.running import RUNNING, Order, expected
from cloister.hub.services.guests.settings import way_of
from cloister.hub.work.orders import look, submit_order
from cloister.pgwire import AnswerColumn, Asking, FreeAnswer
from cloister.privacy import Guarantee
from cloister.session import Frame, Series

_PATIENCE, _LOOK = 600.0, 0.1
_EXAMPLE = "SELECT * FROM cloister.run('name', 'data set', '0.1')"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a run would cost, and the margins of its noise."""

    cost: Guarantee
    margins: Sequence[Mapping[str, Any]]

    def margin(self, confidence: float = 0.95) -> Frame:
        """At the confidence that the run was asked about with."""
        return Frame({each["name"]: Series("real", np.array([each["margin"]])) for each in self.margins})

    def __str__(self) -> str:
        lines = [f"{each['name']}  ± {each['margin']:.6g}" for each in self.margins]
        return "\n".join(["run of an algorithm", *lines, f"cost: {self.cost}", "nothing was spent and no row was read"])


class RunFunction:
    """`cloister.run`."""

    action = "algorithm.run"

    def shape(self, hub: Hub, caller: Caller, given: Sequence[str], how: Asking) -> list[AnswerColumn]:
        """Its columns, from the declaration of the algorithm."""
        order = _order(given, how, spend="1")
        with hub.database.reading() as db:
            way = way_of(named_algorithm(hub, db, caller, order.algorithm, NAME).settings)
        if way == "ask":
            return [AnswerColumn("result", "text", False)]
        return [AnswerColumn("name", "text", False), AnswerColumn("value", "real", False), AnswerColumn("margin", "real", False)]

    def explain(self, hub: Hub, caller: Caller, given: Sequence[str], how: Asking) -> Expected:
        """Spends nothing and reads no row."""
        with hub.database.reading() as db:
            found = RUNNING.ready(hub, db, caller, _order(given, how))
        return Expected(cost=found.cost, margins=expected(hub, found, how.confidence))

    def check(self, hub: Hub, caller: Caller, given: Sequence[str], how: Asking) -> None:
        """Refuse who could not order it any more; it is paid for."""
        with hub.database.reading() as db:
            RUNNING.ready(hub, db, caller, _order(given, how), charges=False)

    def call(self, hub: Hub, caller: Caller, given: Sequence[str], how: Asking) -> FreeAnswer:
        """Order it, wait for it, and give what left."""
        order = _order(given, how)
        found = look(hub, caller, RUNNING, order)
        margins = {each["name"]: each["margin"] for each in expected(hub, found, how.confidence)}
        row = _awaited(hub, submit_order(hub, caller, RUNNING, "", b"", order))
        told = json.loads(row.body)
        if "asked" in told:
            table = Frame({"result": Series("text", np.array([json.dumps(told["values"], ensure_ascii=False)], dtype=object))})
        else:
            values = told["values"]
            table = Frame(
                {
                    "name": Series("text", np.array(list(values), dtype=object)),
                    "value": Series("real", np.array(list(values.values()), dtype=float)),
                    "margin": Series("real", np.array([margins.get(name, np.nan) for name in values], dtype=float)),
                }
            )
        told_beside = [f"/algorithm-results/{row.id}", *([row.details["provenance"]] if row.details.get("provenance") else [])]
        told_beside += [str(Failed(**told["failed"]))] if "failed" in told else []
        cost = ", ".join(f"{each} of {population!r}" for population, each in row.cost.items())
        return FreeAnswer(table, tuple(told_beside), f"cost {cost}")


def _order(given: Sequence[str], how: Asking, *, spend: str = "") -> Order:
    if not 2 <= len(given) <= 3:
        raise InvalidParameter(
            "The call is invalid", why="it names an algorithm, a data set, and what it may cost", instead=_EXAMPLE
        )
    paid = given[2] if len(given) == 3 else how.spend or spend
    if not paid:
        raise InvalidParameter("The run was not ordered", why="no spend is set, and there is no default", instead=_EXAMPLE)
    return Order(algorithm=given[0], table=given[1], spend=paid, purpose=how.purpose, project=how.project)


def _awaited(hub: Hub, job: str) -> StoredRelease:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with hub.database.reading() as db:
            row = db.get_one(Job, job)
            if row.state == "done":
                found = db.get_one(StoredRelease, row.result["guest"])
                db.expunge(found)
                return found
            if row.state in ("failed", "cancelled"):
                problem = row.problem
                why = problem.get("why") or "its job was cancelled"
                raise Conflict(problem.get("title") or "The run failed", why=why, instead=problem.get("instead") or _EXAMPLE)
        time.sleep(_LOOK)
    raise EngineError("The run goes on", why="it waits for a worker", instead="/jobs")
