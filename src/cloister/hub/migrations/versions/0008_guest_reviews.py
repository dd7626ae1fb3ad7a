"""Reviews of algorithms near rows, and their versions."""

import sqlalchemy as sa
from alembic import op

from cloister.hub.migrations.tables import create_table

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    op.add_column("algorithm", sa.Column("package", sa.String(length=63), nullable=False, server_default=""))
    op.add_column("algorithm", sa.Column("version", sa.Integer(), nullable=False, server_default="1"))
    create_table(
        "guest_review",
        "id:32* algorithm:32#>algorithm data_set:32#>data_set declared:64 found:json approvals:json stopped:time? "
        "stopped_by:32 why:200 created:time",
        unique=("algorithm", "data_set"),
    )
