"""Surveys whose answers two servers add up."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cloister.hub.database import UTCDateTime

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up. A process of the version before knows none of these tables."""
    op.create_table(
        "joint_survey",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("questions", sa.JSON(), nullable=False),
        sa.Column("invited", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("link", sa.String(length=64), nullable=False),
        sa.Column("helper", sa.JSON(), nullable=False),
        sa.Column("sums", sa.String(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("opened", UTCDateTime(), nullable=True),
        sa.Column("closed", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_joint_survey_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_joint_survey")),
    )
    op.create_index(op.f("ix_joint_survey_person"), "joint_survey", ["person"])
    op.create_table(
        "joint_ticket",
        sa.Column("survey", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("used", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["survey"], ["joint_survey.id"], name=op.f("fk_joint_ticket_survey_joint_survey")),
        sa.PrimaryKeyConstraint("survey", "digest", name=op.f("pk_joint_ticket")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "joint_report",
        sa.Column("survey", sa.String(length=32), nullable=False),
        sa.Column("nonce", sa.String(length=32), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.ForeignKeyConstraint(["survey"], ["joint_survey.id"], name=op.f("fk_joint_report_survey_joint_survey")),
        sa.PrimaryKeyConstraint("survey", "nonce", name=op.f("pk_joint_report")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_joint_report_state"), "joint_report", ["state"])
