"""Whose a device of a stream is."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    op.add_column("stream_device", sa.Column("person", sa.String(length=100), nullable=False, server_default=""))
