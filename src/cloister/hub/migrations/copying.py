"""Models and anonymised tables out of the tables in which they lay before (`records/former.py`), by their ids.

It is done at each opening, since a process of the version before may write there until the last one of it has ended; what was
copied once is not copied again.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Table, insert, select

from cloister.hub.records.former import AnonymizedTable, LearntModel
from cloister.hub.records.releases import StoredRelease
from cloister.printable import json_of


def copy_former(connection: Connection) -> int:
    """Copy what was not copied yet; how many."""
    stored, counted = _table(StoredRelease), 0
    for kind, row_of in ((LearntModel, _model), (AnonymizedTable, _anonymised)):
        former = _table(kind)
        missing = select(former.c.id).where(former.c.id.not_in(select(stored.c.id)))
        for number in connection.execute(missing).scalars().all():
            row = connection.execute(select(former).where(former.c.id == number)).one()
            told = {name: getattr(row, name) for name in ("id", "person", "title", "data_sets", "purpose", "policy", "created")}
            connection.execute(insert(stored).values(**told, project="", sql="", **row_of(row)))
            counted += 1
    return counted


def _table(kind: Any) -> Table:
    table: Table = kind.__table__
    return table


def _model(row: Row[Any]) -> dict[str, Any]:
    details = {"project": row.project, "method": row.method, "table": row.table, "columns": row.columns, "card": row.card}
    return {
        "kind": "model",
        "algorithm": row.algorithm,
        "cost": row.cost,
        "digest": "",
        "body": row.body.encode(),
        "details": details,
        "data_set": "",
    }


def _anonymised(row: Row[Any]) -> dict[str, Any]:
    papers = {name: getattr(row, name) for name in ("report", "report_page", "certificate", "certificate_page")}
    models = [each["reached"] for each in row.report["models"]]
    return {
        "kind": "anonymised",
        "algorithm": "",
        "cost": {},
        "digest": row.digest,
        "body": json_of(papers).encode(),
        "details": {"table": row.table, "version": row.version, "order": row.order, "models": models},
        "data_set": row.made,
    }
