"""What is PostgreSQL's own: where its key and head are kept, lost connections, a password that is never told."""

from __future__ import annotations

import pytest

from cloister.errors import LedgerError, LedgerFrozen, LedgerUnavailable
from cloister.ledger import Ledger
from cloister.privacy import PureDP
from tests.ledger.conftest import new_schema

pytestmark = pytest.mark.postgres
TENTH = PureDP("0.1")


@pytest.fixture
def url(postgres_server, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return new_schema(postgres_server)


def test_the_step_from_a_file_is_an_address(url, tmp_path):
    with Ledger(url) as ledger:
        ledger.open("people", PureDP(1), who="owner")
        ledger.reserve({"people": TENTH}, who="ada", what="plan")
    with Ledger(url) as ledger:
        assert ledger.spent("people") == TENTH
        assert ledger.verify() is True
    endings = sorted(path.suffix for path in (tmp_path / "state" / "cloister").iterdir())
    assert endings == [".head", ".key"]


def test_a_second_machine_needs_the_key_and_the_head(url, tmp_path, monkeypatch):
    with Ledger(url) as ledger:
        ledger.open("people", PureDP(1), who="owner")
    first = tmp_path / "state" / "cloister"
    (key,) = first.glob("*.key")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "second"))
    with pytest.raises(LedgerError, match="key file"):
        Ledger(url)
    with Ledger(url, key=key) as ledger, pytest.raises(LedgerFrozen, match="head is missing"):
        ledger.open("people", None, who="ada")


def test_a_lost_connection_is_made_anew_and_nobody_notices(url, postgres_server):
    import psycopg

    with Ledger(url) as ledger:
        ledger.open("people", PureDP(1), who="owner")
        assert ledger.spent("people") == PureDP(0)
        with psycopg.connect(postgres_server.url, autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        ledger.reserve({"people": TENTH}, who="ada", what="plan")
        assert ledger.spent("people") == TENTH
        assert ledger.verify() is True


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path):
    with pytest.raises(LedgerUnavailable) as refusal:
        Ledger("postgresql://ada:open-sesame@127.0.0.1:1/ledger", key=bytes(32), head=tmp_path / "head")
    assert "127.0.0.1" in str(refusal.value)
    assert "sesame" not in str(refusal.value)
