"""A release as work of the frame (`hub/work/orders.py`): the table leaves by the marked door, is attacked, and becomes a data set
of its own that inherits what holds for it.

The NotPrivate event is in the ledger before anything else is kept of the table. What a killed process had begun is begun once
more, decided again and under an event of its own: the first one stays, though nothing had left. A release that is cancelled
after the rows were read counts as one that was refused: the event stays.
"""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session as Db

from cloister.errors import (
    AccessDenied,
    CloisterError,
    EngineError,
    InvalidParameter,
    LedgerError,
    MissingDependency,
    UnsupportedQuery,
)
from cloister.hub.hub import Caller, Hub
from cloister.hub.services.anonymizing.authorised import ACTION, WORDS, AuthorisedTable, check_free, ready
from cloister.hub.services.anonymizing.order import ORDER, Anonymizing
from cloister.hub.services.anonymizing.reading import csv_digest
from cloister.hub.services.anonymizing.tables import TABLE
from cloister.hub.web.languages import N_
from cloister.hub.work.orders import NewDataSet, OrderedWork, Product, Running, job_of
from cloister.printable import json_of
from cloister.session.state.scrubbed import scrubbed

if TYPE_CHECKING:
    from cloister.anonymize.certificate import Certificate
    from cloister.anonymize.from_tables import Published
    from cloister.tables.sourcing.sources import Source

_STAGES = {"preparing the tables": 0.0, "anonymising": 0.1, "simulating attacks": 0.5, "keeping the table": 0.9}


class _Anonymising(OrderedWork[Anonymizing, AuthorisedTable]):
    """Orders of anonymised tables; trials look at the same (`trying.py`)."""

    job, title, action, words, release = "anonymizing.release", N_("Anonymised table"), ACTION, WORDS, TABLE
    extra = "anonymize"
    stages, stored, secret, marked = _STAGES, ORDER, ("hierarchies",), True

    def about(self, order: Anonymizing) -> dict[str, Any]:
        return {"kind": "data-set", "table": order.table[:200]}

    def ready(
        self, hub: Hub, db: Db, caller: Caller, order: Anonymizing, *, progress: Any = None, paid: Any = None
    ) -> AuthorisedTable:
        found = ready(hub, db, caller, order)  # the session tells no stage: how far it is follows from the order alone
        check_free(db, order.name)
        return found

    def settled(self, found: AuthorisedTable) -> Anonymizing:
        """As it was sent: a column that the data set declares later is dropped, whatever there was then."""
        return found.sent

    def run(self, hub: Hub, found: AuthorisedTable, stage: Running) -> Product:
        from cloister.anonymize.from_tables import publish_rows

        order, row = found.order, found.row
        stage.tell("anonymising")
        anonymizer = order.anonymizer(stage.stopped)
        rows, how = found.session.registry.row_access(row.name), (row.population or row.name, hub.ledger, row.name, anonymizer)
        published = publish_rows(rows.prepare, rows.declaration, *how, who=found.session.who)
        if not published.table.height:
            raise InvalidParameter(
                "The table was not released", why="no row is left of it", instead="run a trial with the same settings"
            )
        stage.tell("simulating attacks")
        certificate: Certificate = scrubbed(lambda: anonymizer.certificate(published.table))
        models = [each["reached"] for each in published.report.to_dict()["models"]]
        return Product(
            body=lambda source: _papers(order, published, certificate, source),
            details={"table": row.name, "order": self.told(order)[0], "models": models},
            data_set=_data_set(found, published),
        )

    def unsaid(self, error: CloisterError) -> CloisterError:
        if isinstance(error, EngineError | LedgerError | MissingDependency | AccessDenied):
            return error
        return InvalidParameter(
            "No table was made",
            why="the rows can't meet the requested models; a trial shows why",
            instead="run a trial with the same settings: it says why, and what would do",
        )

    def written(self, found: AuthorisedTable) -> dict[str, Any]:
        columns = [f"{found.row.name}.{column}" for column in found.order.left]
        return {"columns": columns, "models": [model.name for model in found.order.models()]}


def _papers(order: Anonymizing, published: Published, certificate: Certificate, source: Source) -> bytes:
    """The report and the certificate, whose digest is that of the file that is downloaded, which no table beyond a download's
    limit is."""
    with suppress(UnsupportedQuery):
        certificate = replace(certificate, digest=csv_digest(order.name, source))
    told = certificate.to_dict()
    told["risk"]["digest"] = certificate.digest
    papers = {
        "report": published.report.to_dict(),
        "report_page": published.report.to_html(),
        "certificate": told,
        "certificate_page": certificate.to_html(title=order.title),
    }
    return json_of(papers).encode()


def _data_set(found: AuthorisedTable, published: Published) -> NewDataSet:
    order, row, body = found.order, found.row, io.BytesIO()
    published.table.write_parquet(body)
    models = ", ".join(model.name for model in order.models())
    about = f"Made of {row.name} ({row.title}), version {row.version}: {models}. Not differentially private."
    return NewDataSet(name=order.name, about=about, rows=body.getvalue(), columns=published.table.columns)


ANONYMISING = _Anonymising()
RELEASE = job_of(ANONYMISING)
