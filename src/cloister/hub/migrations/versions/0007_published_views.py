"""Published views of answers."""

from cloister.hub.migrations.tables import create_table

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    create_table(
        "published_view",
        "id:32* person:32#>person title:200 parts:json data_sets:json origins:json until:time created:time revoked:time? "
        "revoked_by:32",
    )
