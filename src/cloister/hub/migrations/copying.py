"""Models and anonymised tables out of the tables in which they lay before, by their ids, into `stored_release`.

It is done at each opening, since a process of the version before may write there until the last one of it has ended; what was
copied once is not copied again. The next version drops these tables, and this file.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, ForeignKey, Row, String, Table, insert, select
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base, Damaged
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
            if any(type(value) is Damaged for value in row):  # `cloister hub check` names it; the others are copied
                continue
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


class LearntModel(Base):
    """One model."""

    __tablename__ = "learnt_model"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    title: Mapped[str] = mapped_column(String(200), default="")
    algorithm: Mapped[str] = mapped_column(String(32), default="")
    method: Mapped[str] = mapped_column(String(60))
    data_sets: Mapped[list[str]]
    table: Mapped[str] = mapped_column(String(200))
    columns: Mapped[dict[str, Any]]
    """The features in their order under "features", each with its declaration, and the name of the target under "target"."""
    purpose: Mapped[str] = mapped_column(default="")
    cost: Mapped[dict[str, Any]]
    card: Mapped[str]
    body: Mapped[str]
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]


class AnonymizedTable(Base):
    """A table that was released."""

    __tablename__ = "anonymized_table"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    title: Mapped[str] = mapped_column(String(200))
    data_sets: Mapped[list[str]]
    table: Mapped[str] = mapped_column(String(200))
    made: Mapped[str] = mapped_column(String(32), default="")
    version: Mapped[str] = mapped_column(String(32), default="")
    digest: Mapped[str] = mapped_column(String(64), default="")
    purpose: Mapped[str] = mapped_column(default="")
    order: Mapped[dict[str, Any]]
    report: Mapped[dict[str, Any]]
    report_page: Mapped[str]
    certificate: Mapped[dict[str, Any]]
    certificate_page: Mapped[str]
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]
