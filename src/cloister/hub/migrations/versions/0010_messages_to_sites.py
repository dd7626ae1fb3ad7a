"""Messages to sites that processes leave for one another, and when each site last called."""

from cloister.hub.migrations.tables import create_table

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up. A process of the version before knows none of these tables, and its sites call it."""
    create_table(
        "site_message",
        "id:32* parties:64# name:text digest:64 round:64 most:big message:bytes answer:bytes? since:float ends:float",
    )
    create_table("site_call", "parties:64* name:text* seen:float problem:text")
