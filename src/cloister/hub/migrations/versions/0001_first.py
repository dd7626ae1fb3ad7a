"""The first tables."""

from alembic import op

from cloister.hub.migrations.tables import create_table

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step up."""
    create_table("attempts", "subject:100* failures:int until:time? last:time")
    create_table("generation", "id:int* number:int", autoincrement=False)
    create_table("kept_secret", "name:40* wrapped:bytes")
    create_table("one_time_link", "digest:64* kind:20 email:320 roles:json made_by:32 created:time expires:time used:time?")
    create_table(
        "person",
        "id:32* email:320! name:200 institution:200 password:300? totp:bytes? totp_step:int subject:500?! training:json "
        "attributes:json locale:10 blocked:bool created:time",
    )
    create_table("sign_on", "digest:64* browser:64 person:32 nonce:64 verifier:64 back:500 expires:time")
    create_table(
        "trail",
        "number:int* moment:time# person:32 action:60# kind:40 object:200# purpose:text cost:json outcome:20 details:json "
        "hash:64",
        autoincrement=False,
    )
    op.create_index("ix_trail_person_number", "trail", ["person", "number"])
    create_table("trail_head", "id:int* number:int hash:64")
    create_table("alert", "id:32* person:32#>person kind:40 about:json created:time seen_by:32 seen:time?")
    create_table(
        "algorithm",
        "id:32* name:63! title:200 about:text provider:32>person service:40 settings:json created:time withdrawn:time?",
    )
    create_table(
        "api_token",
        "id:32* person:32#>person name:200 digest:64! scopes:json second_factor:bool created:time expires:time "
        "revoked:time? used:time?",
    )
    create_table(
        "arrival",
        "id:32* person:32#>person kind:20 shown:300 digest:64 length:big wrapped:bytes columns:json typed:json file:200 "
        "key:bytes? file_digest:64 file_length:big created:time",
    )
    create_table(
        "grant_",
        "id:32* kind:20 object:32# role:100 attributes:json rules:json granted_by:32>person created:time revoked:time? "
        "revoked_by:32 request:32",
    )
    create_table("idempotency", "key:200* person:32>person request:64 status:int? response:bytes? created:time")
    create_table("institution_rule", "id:32* title:200 rule:json made_by:32>person created:time ended:time?")
    create_table(
        "job",
        "id:32* kind:60# person:32#>person title:200 purpose:text payload:json secret:bytes? notes:json state:20# "
        "stage:200 share:double? attempts:int worker:100 beat:time? stopping:bool result:json problem:json created:time "
        "begun:time? ended:time?",
    )
    create_table("message", "id:int* about:32# person:32>person text:text created:time")
    create_table("person_role", "person:32*>person role:40* given_by:32 given:time")
    create_table("population", "name:200* title:200 unit:40 owner:32#>person about:text people:int? created:time")
    create_table("project", "id:32* name:63! title:200 purpose:text about:text lead:32>person created:time closed:time?")
    create_table("recovery_code", "digest:64* person:32#>person created:time used:time?")
    create_table(
        "saved_question",
        "id:32* person:32#>person project:32 title:200 sql:text spend:100 within:double? purpose:text dialect:40 "
        "algorithm:32 created:time",
    )
    create_table(
        "stored_release",
        "id:32* person:32#>person project:32# kind:20 title:200 sql:text purpose:text data_sets:json cost:json digest:64# "
        "body:bytes policy:json created:time withdrawn:time? algorithm:32",
    )
    create_table("trail_about", "object:200* number:int*#>trail.number")
    create_table(
        "web_session",
        "digest:64* person:32#>person created:time used:time expires:time ended:bool second_factor:bool setup:bytes? "
        "address:64 agent:200",
    )
    create_table(
        "budget_request",
        "id:32* population:200#>population.name person:32#>person project:32 wanted:60 reason:text state:20 decided_by:32 "
        "decided:time? created:time",
    )
    create_table(
        "data_set",
        "id:32* name:63! title:200 about:text owner:32#>person provider:320 institution:200 public:bool "
        "population:200?#>population.name declaration:json metadata:json released:json window:json version:int state:20 "
        "created:time changed:time",
    )
    create_table("project_invitation", "project:32*>project email:254* invited:time")
    create_table("project_member", "project:32*>project person:32*>person joined:time")
    create_table("project_share", "release:32*>stored_release project:32*>project shared:time")
    create_table("release_share", "release:32*>stored_release email:254* shared:time")
    create_table(
        "access_request",
        "id:32* data_set:32#>data_set person:32#>person project:32 purpose:text wanted:json state:20 decided_by:32 "
        "decided:time? created:time",
    )
    create_table(
        "data_set_version",
        "id:32* data_set:32#>data_set number:int kind:20 file:200 key:bytes? digest:64 address:bytes? format:20 "
        "length:big origin:64# created:time created_by:32 destroyed:time?",
        unique=("data_set", "number"),
    )
    create_table("project_data_set", "project:32*>project data_set:32*>data_set asked:time approved:time? approved_by:32")
    create_table(
        "learnt_model",
        "id:32* person:32#>person project:32 title:200 algorithm:32 method:60 data_sets:json table:200 columns:json "
        "purpose:text cost:json card:text body:text policy:json created:time",
    )
    create_table("anonymizing_trial", "id:32* person:32#>person data_set:32# order:json wrapped:bytes created:time")
    create_table(
        "anonymized_table",
        "id:32* person:32#>person project:32 title:200 data_sets:json table:200 made:32 version:32 digest:64 purpose:text "
        "order:json report:json report_page:text certificate:json certificate_page:text policy:json created:time",
    )
    create_table(
        "survey",
        "id:32* person:32#>person title:200 purpose:text draft:json invited:bool hoped:int state:20 body:text tally:text "
        "words:text looking:32 created:time opened:time? closed:time?",
    )
    create_table("survey_refusal", "id:32* survey:32#>survey reason:60")
    create_table("survey_report", "id:32* survey:32#>survey body:text counted:bool#", with_rowid=False)
    create_table("survey_ticket", "survey:32*>survey digest:64* used:bool", with_rowid=False)
