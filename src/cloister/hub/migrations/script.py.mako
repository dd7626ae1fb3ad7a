"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cloister.hub.database import UTCDateTime

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    ${upgrades if upgrades else "pass"}
