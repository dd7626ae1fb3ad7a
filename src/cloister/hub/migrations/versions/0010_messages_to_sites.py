"""Messages to sites that processes leave for one another, and when each site last called."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up. A process of the version before knows none of these tables, and its sites call it."""
    op.create_table(
        "site_message",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("parties", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("round", sa.String(length=64), nullable=False),
        sa.Column("most", sa.BigInteger(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        sa.Column("since", sa.Float(), nullable=False),
        sa.Column("ends", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_site_message")),
    )
    op.create_index(op.f("ix_site_message_parties"), "site_message", ["parties"])
    op.create_table(
        "site_call",
        sa.Column("parties", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("seen", sa.Float(), nullable=False),
        sa.Column("problem", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("parties", "name", name=op.f("pk_site_call")),
    )
