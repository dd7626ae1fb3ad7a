"""Lines that were changed into what no line ever was: the line is named, whatever it holds now; and what is said of a cut end."""

from __future__ import annotations

import logging

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from cloister.cli.trail import audit_trail
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail import SERVICE, verify, write_alone
from cloister.hub.settings import Settings

ADA = Caller(id="ada", via="session")
TAMPERED = [
    "details = 'x'",
    "cost = 'x'",
    "moment = 'x'",
    "moment = x'ff00'",
    "details = '{\"a\": NaN}'",
    "details = x'ff00ff'",
    "details = CAST(x'ff00ff' AS TEXT)",
    "person = x'ff00ff'",
    "person = CAST(x'c328' AS TEXT)",
    "purpose = 7",
    "hash = x'ff00ff'",
    "hash = 'é'",
    "hash = CAST(x'c328' AS TEXT)",
    "details = '" + "[" * 100_000 + "]" * 100_000 + "'",
    "details = '[]'",
    "cost = 'null'",
]


@pytest.fixture
def folder(tmp_path):
    settings = Settings(data=tmp_path / "hub", workers=0)
    with Hub(settings, [SERVICE]) as hub:
        for number in range(6):
            write_alone(hub, ADA, "dataset.see", kind="data-set", object_id=f"d{number}")
    return settings.data


def changed(folder, *statements):
    with Hub(Settings(data=folder), []) as hub, hub.database.begin() as db:
        for each in statements:
            db.execute(text(each.replace(":", "\\:")))


@pytest.mark.parametrize("what", TAMPERED, ids=lambda what: what[:30])
@pytest.mark.parametrize("number", [1, 4])
def test_a_line_that_can_no_more_be_read_is_named(folder, what, number):
    changed(folder, f"UPDATE trail SET {what} WHERE number = {number}")
    outcome = CliRunner().invoke(audit_trail, ["verify", "--data", str(folder)])
    assert outcome.exit_code == 1
    assert f"BROKEN: line {number}: it" in outcome.output
    assert "changed" in outcome.output


def test_a_line_that_is_missing_before_one_that_cannot_be_read_comes_first(folder):
    about = "DELETE FROM trail_about WHERE number = 2"
    changed(folder, about, "DELETE FROM trail WHERE number = 2", "UPDATE trail SET moment = 'x' WHERE number = 3")
    outcome = CliRunner().invoke(audit_trail, ["verify", "--data", str(folder)])
    assert "BROKEN: line 2: it is missing" in outcome.output


def test_what_is_said_of_lines_that_were_deleted_is_true(folder, caplog):
    changed(folder, "DELETE FROM trail_about WHERE number > 4", "DELETE FROM trail WHERE number > 4")
    with caplog.at_level(logging.ERROR, "cloister.hub.trail"), Hub(Settings(data=folder, workers=0), [SERVICE]) as hub:
        assert verify(hub).number == 5
    assert "line 6 is known, and the newest that is there is 4" in caplog.text


def test_what_is_said_of_a_last_line_that_is_another_is_true(folder, caplog):
    changed(folder, f"UPDATE trail SET hash = '{'0' * 64}' WHERE number = 6")
    with caplog.at_level(logging.ERROR, "cloister.hub.trail"), Hub(Settings(data=folder, workers=0), [SERVICE]) as hub:
        assert verify(hub).number == 6
    assert "line 6 is not the one that is known" in caplog.text
