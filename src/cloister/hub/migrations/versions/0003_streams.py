"""Streams."""

from cloister.hub.migrations.tables import create_table

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    create_table("stream", "id:32* owner:32#>person title:200 declared:json shown:bool taken:int state:20 created:time")
    create_table("stream_device", "id:32* stream:32#>stream name:100 digest:64! hour:int used:int created:time revoked:time?")
    create_table("stream_batch", "id:32* stream:32#>stream arrived:time# last:int body:bytes")
    create_table("stream_step", "stream:32*>stream number:int* body:json")
