"""A release: the table leaves by the marked door, is attacked, and becomes a data set of its own that inherits what holds for it.

The NotPrivate event is in the ledger before anything else is kept of the table. What a killed process had begun is begun once
more, decided again and under an event of its own: the first one stays, though nothing had left. The table is kept in the
transaction that ends the job, so an order has one at most. A release that is cancelled after the rows were read counts as one
that was refused: the event stays.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cloister.errors import CloisterError, InvalidParameter, UnsupportedQuery
from cloister.hub.ids import new_id
from cloister.hub.policy import inherit, write_policy
from cloister.hub.problems import Conflict
from cloister.hub.records.policies import parts_of
from cloister.hub.records.releases import StoredRelease
from cloister.hub.service import JobType
from cloister.hub.services.anonymizing.authorised import ACTION, AuthorisedTable, check_free, ready, unsaid
from cloister.hub.services.anonymizing.order import ORDER, Order
from cloister.hub.services.anonymizing.reading import csv_digest
from cloister.hub.services.catalogue import register
from cloister.hub.services.jobs import Stopped, Superseded, caller_of_job
from cloister.hub.services.trail import write
from cloister.hub.work.held import steadily
from cloister.hub.work.recheck import present, withheld
from cloister.hub.work.refusals import note_refusal
from cloister.printable import json_of
from cloister.session.state.scrubbed import scrubbed

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.anonymize.certificate import Certificate
    from cloister.anonymize.from_tables import Published
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.records.catalogue import DataSet, DataSetVersion
    from cloister.hub.service import Progress
    from cloister.tables.sourcing.sources import Source


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    order = ORDER.made({**payload["order"], **payload["secret"]})
    with hub.database.reading() as db:
        caller = present(hub, db, caller_of_job(progress, payload))

    def decide() -> AuthorisedTable:
        with hub.database.reading() as db:
            found = ready(hub, db, present(hub, db, caller), order)
            check_free(db, order.name)
        return found

    found, (published, certificate) = steadily(decide, lambda found: _published(hub, caller, found, progress))
    order, name = found.order, found.row.name
    progress.tell("keeping the table", 0.9)
    body = io.BytesIO()
    published.table.write_parquet(body)
    columns = published.table.columns
    number = new_id()
    result = {"href": f"/anonymised/{number}"}

    sent: list[str] = []

    def looked(source: Source) -> None:
        """The digest on the certificate is that of the file that is downloaded, which no table beyond a download's limit is."""
        with suppress(UnsupportedQuery):
            sent.append(csv_digest(order.name, source))

    def along(db: Db, made: DataSet, version: DataSetVersion) -> None:
        """What is kept of the release, in the transaction of its data set: neither is ever there without the other."""
        progress.finish(db, result)
        now = _still(hub, db, caller, order)
        if now.policy != again.policy:
            raise Conflict(
                "The table was not released", why="its data set is being changed just now", instead="the same once more"
            )
        paper = replace(certificate, digest=sent[0]) if sent else certificate
        told = paper.to_dict()
        told["risk"]["digest"] = paper.digest
        report = published.report.to_dict()
        papers = {
            "report": report,
            "report_page": published.report.to_html(),
            "certificate": told,
            "certificate_page": paper.to_html(title=order.title),
        }
        reached = [each["reached"] for each in report["models"]]
        row = StoredRelease(
            id=number,
            person=caller.id,
            kind="anonymised",
            title=order.title,
            data_sets=[now.row.id],
            purpose=order.purpose,
            cost={},
            digest=version.digest,
            body=json_of(papers).encode(),
            policy=write_policy(inherit([found.policy, now.policy])),
            created=hub.now(),
            details={"table": name, "version": version.id, "order": order.plain(), "models": reached},
            data_set=made.id,
        )
        db.add(row)
        db.flush()
        write(
            db,
            hub,
            caller,
            ACTION,
            kind="anonymized-table",
            object_id=row.id,
            purpose=order.purpose,
            data_sets=[now.row.id, made.id],
            columns=[f"{name}.{column}" for column in columns],
            models=[model.name for model in order.models()],
        )

    try:
        with hub.database.reading() as db:
            again = _still(hub, db, caller, order)
        register(
            hub,
            caller,
            name=order.name,
            title=order.title,
            source=[body.getvalue()],
            kind="parquet",
            public=True,
            about=_about(order, found),
            metadata=_metadata(again, columns),
            released={"population": again.row.population or "", "institution": again.row.institution},
            along=along,
            looked=looked,
        )
    except Superseded:  # whoever has it now tells of it
        raise
    except CloisterError as error:
        _failed(hub, caller, order, name, error)
        raise
    return result


def _published(hub: Hub, caller: Caller, found: AuthorisedTable, progress: Progress) -> tuple[Published, Certificate]:
    """The table and its certificate, out of the rows that were decided on."""
    from cloister.anonymize.from_tables import publish_rows

    order, name = found.order, found.row.name
    _go_on(progress)
    progress.tell("anonymising", 0.1)
    anonymizer = order.anonymizer(progress)
    try:
        prepared = found.session.registry.row_access(name).prepare()
        published = publish_rows(prepared, found.row.population or name, hub.ledger, name, anonymizer, who=caller.email)
        if not published.table.height:
            raise InvalidParameter(
                "The table was not released", why="no row is left of it", instead="run a trial with the same settings"
            )
        _go_on(progress)
        progress.tell("simulating attacks", 0.5)
        certificate: Certificate = scrubbed(lambda: anonymizer.certificate(published.table))
        _go_on(progress)
    except CloisterError as error:
        stopped = progress.stopped()
        _failed(hub, caller, order, name, error)
        if stopped:  # a search that was told to stop says that it was ended
            raise Stopped from None
        raise unsaid(error) from None
    return published, certificate


def _failed(hub: Hub, caller: Caller, order: Order, name: str, error: CloisterError) -> None:
    """Write down that nothing became of it."""
    note_refusal(hub, caller, ACTION, error, kind="data-set", purpose=order.purpose, table=name)


def _still(hub: Hub, db: Db, caller: Caller, order: Order) -> AuthorisedTable:
    """The order as it stands now: what was deleted, given to another or forbidden while the rows were worked on stays here."""
    try:
        return ready(hub, db, present(hub, db, caller), order)
    except CloisterError as error:
        raise withheld(
            "The table was not released",
            f"{error.why}, after the request was submitted; the population stays marked as unbounded",
            error,
        ) from None


def _go_on(progress: Progress) -> None:
    if progress.stopped():
        raise Stopped


def _about(order: Order, found: AuthorisedTable) -> str:
    models = ", ".join(model.name for model in order.models())
    return f"Made of {found.row.name} ({found.row.title}), version {found.row.version}: {models}. Not differentially private."


def _metadata(found: AuthorisedTable, columns: list[str]) -> dict[str, Any]:
    """The policies of the data set and of the columns that are left: they travel."""
    given = parts_of(found.row)
    return {
        "policy": given.get("policy", {}),
        "columns": {name: each for name, each in given.get("columns", {}).items() if name in columns},
        "contribution": given.get("contribution", {}),
    }


RELEASE = JobType(kind="anonymizing.release", title="Anonymised table", run=_run)
