"""The declarations that earlier versions were asked under."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up. A process of the version before names this column in nothing that it writes."""
    op.add_column("data_set_version", sa.Column("declaration", sa.JSON(), server_default="{}", nullable=False))
