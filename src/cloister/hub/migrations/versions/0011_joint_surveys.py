"""Surveys whose answers two servers add up."""

from cloister.hub.migrations.tables import create_table

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up. A process of the version before knows none of these tables."""
    create_table(
        "joint_survey",
        "id:32* person:32#>person title:200 purpose:text questions:json invited:bool state:20 link:64 helper:json "
        "sums:text result:json created:time opened:time? closed:time?",
    )
    create_table("joint_ticket", "survey:32*>joint_survey digest:64* used:bool", with_rowid=False)
    create_table("joint_report", "survey:32*>joint_survey nonce:32* body:text state:10#", with_rowid=False)
