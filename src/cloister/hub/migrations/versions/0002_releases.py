"""Releases of every kind in one table; kinds of owner views."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up. A process of the version before names none of these columns in what it writes."""
    op.add_column("stored_release", sa.Column("details", sa.JSON(), server_default="{}", nullable=False))
    op.add_column("stored_release", sa.Column("data_set", sa.String(length=32), server_default="", nullable=False))
    op.add_column("anonymizing_trial", sa.Column("kind", sa.String(length=20), server_default="trial", nullable=False))
