"""Reviews of algorithms near rows, and their versions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cloister.hub.database import UTCDateTime

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    op.add_column("algorithm", sa.Column("package", sa.String(length=63), nullable=False, server_default=""))
    op.add_column("algorithm", sa.Column("version", sa.Integer(), nullable=False, server_default="1"))
    op.create_table(
        "guest_review",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("algorithm", sa.String(length=32), nullable=False),
        sa.Column("data_set", sa.String(length=32), nullable=False),
        sa.Column("declared", sa.String(length=64), nullable=False),
        sa.Column("found", sa.JSON(), nullable=False),
        sa.Column("approvals", sa.JSON(), nullable=False),
        sa.Column("stopped", UTCDateTime(), nullable=True),
        sa.Column("stopped_by", sa.String(length=32), nullable=False),
        sa.Column("why", sa.String(length=200), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["algorithm"], ["algorithm.id"], name=op.f("fk_guest_review_algorithm_algorithm")),
        sa.ForeignKeyConstraint(["data_set"], ["data_set.id"], name=op.f("fk_guest_review_data_set_data_set")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_guest_review")),
        sa.UniqueConstraint("algorithm", "data_set", name=op.f("uq_guest_review_algorithm")),
    )
    op.create_index(op.f("ix_guest_review_algorithm"), "guest_review", ["algorithm"])
    op.create_index(op.f("ix_guest_review_data_set"), "guest_review", ["data_set"])
