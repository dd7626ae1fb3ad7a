"""The first tables."""

from __future__ import annotations

from alembic import op

from cloister.hub.database import Base
from cloister.hub.models import every_model

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    every_model()
    Base.metadata.create_all(op.get_bind())
