"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from cloister.hub.database import UTCDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    op.create_table(
        "attempts",
        sa.Column("subject", sa.String(length=100), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("until", UTCDateTime(), nullable=True),
        sa.Column("last", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_attempts")),
    )
    op.create_table(
        "generation",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_generation")),
    )
    op.create_table(
        "kept_secret",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_kept_secret")),
    )
    op.create_table(
        "one_time_link",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("made_by", sa.String(length=32), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("expires", UTCDateTime(), nullable=False),
        sa.Column("used", UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_one_time_link")),
    )
    op.create_table(
        "person",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("institution", sa.String(length=200), nullable=False),
        sa.Column("password", sa.String(length=300), nullable=True),
        sa.Column("totp", sa.LargeBinary(), nullable=True),
        sa.Column("totp_step", sa.Integer(), nullable=False),
        sa.Column("subject", sa.String(length=500), nullable=True),
        sa.Column("training", sa.JSON(), nullable=False),
        sa.Column("attributes", sa.JSON(), nullable=False),
        sa.Column("locale", sa.String(length=10), nullable=False),
        sa.Column("blocked", sa.Boolean(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person")),
        sa.UniqueConstraint("email", name=op.f("uq_person_email")),
        sa.UniqueConstraint("subject", name=op.f("uq_person_subject")),
    )
    op.create_table(
        "sign_on",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("browser", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("verifier", sa.String(length=64), nullable=False),
        sa.Column("back", sa.String(length=500), nullable=False),
        sa.Column("expires", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sign_on")),
    )
    op.create_table(
        "trail",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("moment", UTCDateTime(), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("action", sa.String(length=60), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("object", sa.String(length=200), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("cost", sa.JSON(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_trail")),
    )
    op.create_index(op.f("ix_trail_action"), "trail", ["action"], unique=False)
    op.create_index(op.f("ix_trail_moment"), "trail", ["moment"], unique=False)
    op.create_index(op.f("ix_trail_object"), "trail", ["object"], unique=False)
    op.create_index("ix_trail_person_number", "trail", ["person", "number"], unique=False)
    op.create_table(
        "trail_head",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trail_head")),
    )
    op.create_table(
        "alert",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("about", sa.JSON(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("seen_by", sa.String(length=32), nullable=False),
        sa.Column("seen", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_alert_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert")),
    )
    op.create_index(op.f("ix_alert_person"), "alert", ["person"], unique=False)
    op.create_table(
        "algorithm",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("about", sa.String(), nullable=False),
        sa.Column("provider", sa.String(length=32), nullable=False),
        sa.Column("service", sa.String(length=40), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("withdrawn", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["provider"], ["person.id"], name=op.f("fk_algorithm_provider_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_algorithm")),
        sa.UniqueConstraint("name", name=op.f("uq_algorithm_name")),
    )
    op.create_table(
        "api_token",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("second_factor", sa.Boolean(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("expires", UTCDateTime(), nullable=False),
        sa.Column("revoked", UTCDateTime(), nullable=True),
        sa.Column("used", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_api_token_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_token")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_token_digest")),
    )
    op.create_index(op.f("ix_api_token_person"), "api_token", ["person"], unique=False)
    op.create_table(
        "arrival",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("shown", sa.String(length=300), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("typed", sa.JSON(), nullable=False),
        sa.Column("file", sa.String(length=200), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=True),
        sa.Column("file_digest", sa.String(length=64), nullable=False),
        sa.Column("file_length", sa.BigInteger(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_arrival_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_arrival")),
    )
    op.create_index(op.f("ix_arrival_person"), "arrival", ["person"], unique=False)
    op.create_table(
        "grant_",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("object", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=100), nullable=False),
        sa.Column("attributes", sa.JSON(), nullable=False),
        sa.Column("rules", sa.JSON(), nullable=False),
        sa.Column("granted_by", sa.String(length=32), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("revoked", UTCDateTime(), nullable=True),
        sa.Column("revoked_by", sa.String(length=32), nullable=False),
        sa.Column("request", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["granted_by"], ["person.id"], name=op.f("fk_grant__granted_by_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grant_")),
    )
    op.create_index(op.f("ix_grant__object"), "grant_", ["object"], unique=False)
    op.create_table(
        "idempotency",
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("response", sa.LargeBinary(), nullable=True),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_idempotency_person_person")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_idempotency")),
    )
    op.create_table(
        "institution_rule",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("rule", sa.JSON(), nullable=False),
        sa.Column("made_by", sa.String(length=32), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("ended", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["made_by"], ["person.id"], name=op.f("fk_institution_rule_made_by_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_institution_rule")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=60), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=True),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("stage", sa.String(length=200), nullable=False),
        sa.Column("share", sa.Double(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=100), nullable=False),
        sa.Column("beat", UTCDateTime(), nullable=True),
        sa.Column("stopping", sa.Boolean(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("problem", sa.JSON(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("begun", UTCDateTime(), nullable=True),
        sa.Column("ended", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_job_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    op.create_index(op.f("ix_job_kind"), "job", ["kind"], unique=False)
    op.create_index(op.f("ix_job_person"), "job", ["person"], unique=False)
    op.create_index(op.f("ix_job_state"), "job", ["state"], unique=False)
    op.create_table(
        "message",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("about", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_message_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_message")),
    )
    op.create_index(op.f("ix_message_about"), "message", ["about"], unique=False)
    op.create_table(
        "person_role",
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("role", sa.String(length=40), nullable=False),
        sa.Column("given_by", sa.String(length=32), nullable=False),
        sa.Column("given", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_person_role_person_person")),
        sa.PrimaryKeyConstraint("person", "role", name=op.f("pk_person_role")),
    )
    op.create_table(
        "population",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("unit", sa.String(length=40), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("about", sa.String(), nullable=False),
        sa.Column("people", sa.Integer(), nullable=True),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["owner"], ["person.id"], name=op.f("fk_population_owner_person")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_population")),
    )
    op.create_index(op.f("ix_population_owner"), "population", ["owner"], unique=False)
    op.create_table(
        "project",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("about", sa.String(), nullable=False),
        sa.Column("lead", sa.String(length=32), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("closed", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["lead"], ["person.id"], name=op.f("fk_project_lead_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "recovery_code",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("used", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_recovery_code_person_person")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_recovery_code")),
    )
    op.create_index(op.f("ix_recovery_code_person"), "recovery_code", ["person"], unique=False)
    op.create_table(
        "saved_question",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("sql", sa.String(), nullable=False),
        sa.Column("spend", sa.String(length=100), nullable=False),
        sa.Column("within", sa.Double(), nullable=True),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("dialect", sa.String(length=40), nullable=False),
        sa.Column("algorithm", sa.String(length=32), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_saved_question_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_question")),
    )
    op.create_index(op.f("ix_saved_question_person"), "saved_question", ["person"], unique=False)
    op.create_table(
        "stored_release",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("sql", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("data_sets", sa.JSON(), nullable=False),
        sa.Column("cost", sa.JSON(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("policy", sa.JSON(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("withdrawn", UTCDateTime(), nullable=True),
        sa.Column("algorithm", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_stored_release_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stored_release")),
    )
    op.create_index(op.f("ix_stored_release_digest"), "stored_release", ["digest"], unique=False)
    op.create_index(op.f("ix_stored_release_person"), "stored_release", ["person"], unique=False)
    op.create_index(op.f("ix_stored_release_project"), "stored_release", ["project"], unique=False)
    op.create_table(
        "trail_about",
        sa.Column("object", sa.String(length=200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["number"], ["trail.number"], name=op.f("fk_trail_about_number_trail")),
        sa.PrimaryKeyConstraint("object", "number", name=op.f("pk_trail_about")),
    )
    op.create_index(op.f("ix_trail_about_number"), "trail_about", ["number"], unique=False)
    op.create_table(
        "web_session",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("used", UTCDateTime(), nullable=False),
        sa.Column("expires", UTCDateTime(), nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.Column("second_factor", sa.Boolean(), nullable=False),
        sa.Column("setup", sa.LargeBinary(), nullable=True),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("agent", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_web_session_person_person")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_web_session")),
    )
    op.create_index(op.f("ix_web_session_person"), "web_session", ["person"], unique=False)
    op.create_table(
        "budget_request",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("population", sa.String(length=200), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("wanted", sa.String(length=60), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("decided_by", sa.String(length=32), nullable=False),
        sa.Column("decided", UTCDateTime(), nullable=True),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_budget_request_person_person")),
        sa.ForeignKeyConstraint(["population"], ["population.name"], name=op.f("fk_budget_request_population_population")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_request")),
    )
    op.create_index(op.f("ix_budget_request_person"), "budget_request", ["person"], unique=False)
    op.create_index(op.f("ix_budget_request_population"), "budget_request", ["population"], unique=False)
    op.create_table(
        "data_set",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("about", sa.String(), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("provider", sa.String(length=320), nullable=False),
        sa.Column("institution", sa.String(length=200), nullable=False),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("population", sa.String(length=200), nullable=True),
        sa.Column("declaration", sa.JSON(), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("released", sa.JSON(), nullable=False),
        sa.Column("window", sa.JSON(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("changed", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["owner"], ["person.id"], name=op.f("fk_data_set_owner_person")),
        sa.ForeignKeyConstraint(["population"], ["population.name"], name=op.f("fk_data_set_population_population")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_set")),
        sa.UniqueConstraint("name", name=op.f("uq_data_set_name")),
    )
    op.create_index(op.f("ix_data_set_owner"), "data_set", ["owner"], unique=False)
    op.create_index(op.f("ix_data_set_population"), "data_set", ["population"], unique=False)
    op.create_table(
        "project_invitation",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("invited", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["project.id"], name=op.f("fk_project_invitation_project_project")),
        sa.PrimaryKeyConstraint("project", "email", name=op.f("pk_project_invitation")),
    )
    op.create_table(
        "project_member",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("joined", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_project_member_person_person")),
        sa.ForeignKeyConstraint(["project"], ["project.id"], name=op.f("fk_project_member_project_project")),
        sa.PrimaryKeyConstraint("project", "person", name=op.f("pk_project_member")),
    )
    op.create_table(
        "project_share",
        sa.Column("release", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("shared", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["project.id"], name=op.f("fk_project_share_project_project")),
        sa.ForeignKeyConstraint(["release"], ["stored_release.id"], name=op.f("fk_project_share_release_stored_release")),
        sa.PrimaryKeyConstraint("release", "project", name=op.f("pk_project_share")),
    )
    op.create_table(
        "release_share",
        sa.Column("release", sa.String(length=32), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("shared", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["release"], ["stored_release.id"], name=op.f("fk_release_share_release_stored_release")),
        sa.PrimaryKeyConstraint("release", "email", name=op.f("pk_release_share")),
    )
    op.create_table(
        "access_request",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("data_set", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("wanted", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("decided_by", sa.String(length=32), nullable=False),
        sa.Column("decided", UTCDateTime(), nullable=True),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["data_set"], ["data_set.id"], name=op.f("fk_access_request_data_set_data_set")),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_access_request_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_request")),
    )
    op.create_index(op.f("ix_access_request_data_set"), "access_request", ["data_set"], unique=False)
    op.create_index(op.f("ix_access_request_person"), "access_request", ["person"], unique=False)
    op.create_table(
        "data_set_version",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("data_set", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("file", sa.String(length=200), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("address", sa.LargeBinary(), nullable=True),
        sa.Column("format", sa.String(length=20), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("origin", sa.String(length=64), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("created_by", sa.String(length=32), nullable=False),
        sa.Column("destroyed", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["data_set"], ["data_set.id"], name=op.f("fk_data_set_version_data_set_data_set")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_set_version")),
        sa.UniqueConstraint("data_set", "number", name=op.f("uq_data_set_version_data_set")),
    )
    op.create_index(op.f("ix_data_set_version_data_set"), "data_set_version", ["data_set"], unique=False)
    op.create_index(op.f("ix_data_set_version_origin"), "data_set_version", ["origin"], unique=False)
    op.create_table(
        "project_data_set",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("data_set", sa.String(length=32), nullable=False),
        sa.Column("asked", UTCDateTime(), nullable=False),
        sa.Column("approved", UTCDateTime(), nullable=True),
        sa.Column("approved_by", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["data_set"], ["data_set.id"], name=op.f("fk_project_data_set_data_set_data_set")),
        sa.ForeignKeyConstraint(["project"], ["project.id"], name=op.f("fk_project_data_set_project_project")),
        sa.PrimaryKeyConstraint("project", "data_set", name=op.f("pk_project_data_set")),
    )
    op.create_table(
        "learnt_model",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("algorithm", sa.String(length=32), nullable=False),
        sa.Column("method", sa.String(length=60), nullable=False),
        sa.Column("data_sets", sa.JSON(), nullable=False),
        sa.Column("table", sa.String(length=200), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("cost", sa.JSON(), nullable=False),
        sa.Column("card", sa.String(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("policy", sa.JSON(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_learnt_model_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_learnt_model")),
    )
    op.create_index(op.f("ix_learnt_model_person"), "learnt_model", ["person"], unique=False)
    op.create_table(
        "anonymizing_trial",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("data_set", sa.String(length=32), nullable=False),
        sa.Column("order", sa.JSON(), nullable=False),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_anonymizing_trial_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_anonymizing_trial")),
    )
    op.create_index(op.f("ix_anonymizing_trial_person"), "anonymizing_trial", ["person"], unique=False)
    op.create_index(op.f("ix_anonymizing_trial_data_set"), "anonymizing_trial", ["data_set"], unique=False)
    op.create_table(
        "anonymized_table",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("data_sets", sa.JSON(), nullable=False),
        sa.Column("table", sa.String(length=200), nullable=False),
        sa.Column("made", sa.String(length=32), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("order", sa.JSON(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.Column("report_page", sa.String(), nullable=False),
        sa.Column("certificate", sa.JSON(), nullable=False),
        sa.Column("certificate_page", sa.String(), nullable=False),
        sa.Column("policy", sa.JSON(), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_anonymized_table_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_anonymized_table")),
    )
    op.create_index(op.f("ix_anonymized_table_person"), "anonymized_table", ["person"], unique=False)
    op.create_table(
        "survey",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("person", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("draft", sa.JSON(), nullable=False),
        sa.Column("invited", sa.Boolean(), nullable=False),
        sa.Column("hoped", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("tally", sa.String(), nullable=False),
        sa.Column("words", sa.String(), nullable=False),
        sa.Column("looking", sa.String(length=32), nullable=False),
        sa.Column("created", UTCDateTime(), nullable=False),
        sa.Column("opened", UTCDateTime(), nullable=True),
        sa.Column("closed", UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["person"], ["person.id"], name=op.f("fk_survey_person_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_survey")),
    )
    op.create_index(op.f("ix_survey_person"), "survey", ["person"], unique=False)
    op.create_table(
        "survey_refusal",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("survey", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.String(length=60), nullable=False),
        sa.ForeignKeyConstraint(["survey"], ["survey.id"], name=op.f("fk_survey_refusal_survey_survey")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_survey_refusal")),
    )
    op.create_index(op.f("ix_survey_refusal_survey"), "survey_refusal", ["survey"], unique=False)
    op.create_table(
        "survey_report",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("survey", sa.String(length=32), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["survey"], ["survey.id"], name=op.f("fk_survey_report_survey_survey")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_survey_report")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_survey_report_counted"), "survey_report", ["counted"], unique=False)
    op.create_index(op.f("ix_survey_report_survey"), "survey_report", ["survey"], unique=False)
    op.create_table(
        "survey_ticket",
        sa.Column("survey", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("used", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["survey"], ["survey.id"], name=op.f("fk_survey_ticket_survey_survey")),
        sa.PrimaryKeyConstraint("survey", "digest", name=op.f("pk_survey_ticket")),
        sqlite_with_rowid=False,
    )
