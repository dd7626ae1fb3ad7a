"""Data sets that are made of others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    op.create_table(
        "data_set_part",
        sa.Column("data_set", sa.String(length=32), nullable=False),
        sa.Column("part", sa.String(length=32), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["data_set"], ["data_set.id"], name=op.f("fk_data_set_part_data_set_data_set")),
        sa.ForeignKeyConstraint(["part"], ["data_set.id"], name=op.f("fk_data_set_part_part_data_set")),
        sa.PrimaryKeyConstraint("data_set", "part", name=op.f("pk_data_set_part")),
    )
    op.create_index(op.f("ix_data_set_part_part"), "data_set_part", ["part"])
