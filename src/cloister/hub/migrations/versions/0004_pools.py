"""Data sets that are made of others."""

from cloister.hub.migrations.tables import create_table

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    create_table("data_set_part", "data_set:32*>data_set part:32*#>data_set place:int")
