"""Dashboards."""

from cloister.hub.migrations.tables import create_table

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    create_table("dashboard", "id:32* person:32#>person project:32 title:200 layout:json created:time refreshed:time?")
