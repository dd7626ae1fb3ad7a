"""Streams."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cloister.hub.database import UTCDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    op.create_table(
        "stream",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("declared", sa.JSON(), nullable=False),
        sa.Column("shown", sa.Boolean(), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["owner"], ["person.id"], name=op.f("fk_stream_owner_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stream")),
    )
    op.create_index(op.f("ix_stream_owner"), "stream", ["owner"])
    op.create_table(
        "stream_device",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("stream", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("revoked", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["stream"], ["stream.id"], name=op.f("fk_stream_device_stream_stream")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stream_device")),
        sa.UniqueConstraint("digest", name=op.f("uq_stream_device_digest")),
    )
    op.create_index(op.f("ix_stream_device_stream"), "stream_device", ["stream"])
    op.create_table(
        "stream_batch",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("stream", sa.String(length=32), nullable=False),
        sa.Column("arrived", UTCDateTime(), nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["stream.id"], name=op.f("fk_stream_batch_stream_stream")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stream_batch")),
    )
    op.create_index(op.f("ix_stream_batch_stream"), "stream_batch", ["stream"])
    op.create_index(op.f("ix_stream_batch_arrived"), "stream_batch", ["arrived"])
    op.create_table(
        "stream_step",
        sa.Column("stream", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["stream"], ["stream.id"], name=op.f("fk_stream_step_stream_stream")),
        sa.PrimaryKeyConstraint("stream", "number", name=op.f("pk_stream_step")),
    )
