"""Published views of answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cloister.hub.database import UTCDateTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    op.create_table(
        "published_view",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.Column("data_sets", sa.JSON(), nullable=False),
        sa.Column("origins", sa.JSON(), nullable=False),
        sa.Column("until", UTCDateTime(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("revoked", UTCDateTime(), nullable=True),
        sa.Column("revoked_by", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_published_view_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_published_view")),
    )
    op.create_index(op.f("ix_published_view_person"), "published_view", ["person"])
