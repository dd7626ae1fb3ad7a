"""Dashboards."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cloister.hub.database import UTCDateTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    op.create_table(
        "dashboard",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("layout", sa.JSON(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("refreshed", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_dashboard_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dashboard")),
    )
    op.create_index(op.f("ix_dashboard_person"), "dashboard", ["person"])
