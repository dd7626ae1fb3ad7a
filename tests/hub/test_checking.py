"""What each value may be: a hub that can't work with one says so before it starts, in a sentence of its own."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from cloister import installed
from cloister.errors import InvalidParameter
from cloister.hub import serving
from cloister.hub.checking import Weakness, weaknesses
from cloister.hub.hub import Hub
from cloister.hub.services import all_services
from cloister.hub.serving import bound, check
from cloister.hub.settings import Settings
from cloister.hub.web.languages import language_of
from cloister.installed import install
from tests.cli.test_hub import cloister
from tests.hub.faults.processes import ROOT
from tests.hub.test_serving import Authority

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"port": 99999}, "port"),
    ({"port": -1}, "port"),
    ({"port": 0}, "port"),
    ({"pg_port": 99999}, "pg_port"),
    ({"pg_port": -1}, "pg_port"),
    ({"pg_port": 8765}, "pg_port"),
    ({"max_delta": "banana"}, "delta_floor"),
    ({"max_delta": "2"}, "delta_floor"),
    ({"max_delta": "1e99999999"}, "delta_floor"),
    ({"survey_cap": "1e99999999"}, "survey_cap"),
    ({"key_holder": "keys"}, "key_holder"),
    ({"key_holder": "keys " + "5f" * 63}, "key_holder"),
    ({"key_holder": "5f" * 64}, "key_holder"),
    ({"docs": "javascript:alert(1)"}, "docs"),
    ({"docs": "docs.example.org"}, "docs"),
    ({"docs": "https://docs.example.org/?page"}, "docs"),
    ({"memory": "lots"}, "memory"),
    ({"memory": "512"}, "memory"),
    ({"memory": "0GiB"}, "memory"),
    ({"memory": "10 KB"}, "memory"),
    ({"log_level": "loud"}, "log_level"),
    ({"log_level": "INFO"}, "log_level"),
    ({"session_hours": -3}, "session_hours"),
    ({"session_hours": 0}, "session_hours"),
    ({"session_hours": 10**12}, "session_hours"),
    ({"idle_minutes": 0}, "idle_minutes"),
    ({"idle_minutes": 10**12}, "idle_minutes"),
    ({"token_days": 0}, "token_days"),
    ({"token_days": 100_000}, "token_days"),
    ({"asking": 0}, "asking"),
    ({"asking": 10**6}, "asking"),
    ({"prepared": 0}, "prepared"),
    ({"workers": -1}, "workers"),
    ({"upload_megabytes": -5}, "upload_megabytes"),
    ({"upload_megabytes": 0}, "upload_megabytes"),
    ({"tick_ms": 99_999_999}, "tick_ms"),
    ({"tick_ms": 0}, "tick_ms"),
    ({"proxies": "notanip"}, "proxies"),
    ({"proxies": "127.0.0.1, 10.0.0.1/8"}, "proxies"),
    ({"sources": "ht!tp"}, "sources"),
    ({"sources": "db.example.org:5432, db.example.org:99999"}, "sources"),
    ({"oidc_roles": "emperor"}, "oidc_roles"),
    ({"oidc_roles": "analyst, Analyst"}, "oidc_roles"),
    ({"hosts": "http://x/y"}, "hosts"),
    ({"hosts": "hub.internal:8765"}, "hosts"),
    ({"address": "hub.example.org"}, "address"),
    ({"address": "ftp://x"}, "address"),
    ({"address": "https://", "proxies": "127.0.0.1"}, "address"),
    ({"address": "https://hub.example.org/hub", "proxies": "127.0.0.1"}, "address"),
    ({"address": "https://hub.example.org:port", "proxies": "127.0.0.1"}, "address"),
    ({"oidc_issuer": "https://[::1", "oidc_client": "hub"}, "oidc_issuer"),
    ({"database": "postgresql://[::1/hub", "ledger": "postgresql:///ledger"}, "database"),
    ({"source_authorities": "/no/such.pem"}, "source_authorities"),
    ({"master_key": "x"}, "master_key"),
    ({"master_key": "\xe9"}, "master_key"),
    ({"master_key": base64.b64encode(bytes(31)).decode()}, "master_key"),
]
CHINESE = language_of("zh_CN")
ODD: list[tuple[dict[str, Any], str]] = [
    ({"token_days": 400}, "token_days"),
    ({"session_hours": 1000}, "session_hours"),
    ({"tick_ms": 2000}, "tick_ms"),
    ({"proxies": "0.0.0.0/0"}, "proxies"),
]
FINE: list[dict[str, Any]] = [
    {"docs": "https://docs.example.org/cloister/"},
    {"database": "postgresql:///hub", "ledger": "postgresql:///ledger"},
    {
        "database": "postgresql://a:5432,b:5433/hub?sslmode=verify-full",
        "ledger": "postgresql://a:5432,b:5433/l?sslmode=verify-full",
    },
    {"max_delta": "0"},
    {"key_holder": "the keys " + "5f" * 64},
    {"max_delta": "1/100000"},
    {"memory": "512MB"},
    {"memory": "1.5 gb"},
    {"hosts": "hub.internal, other.internal., 10.0.0.2, ::1, hub_1"},
    {"address": "http://hub.example.org:8080/"},
    {"address": "http://[::1]:8765"},
    {"proxies": "10.0.0.0/8, ::1"},
    {"sources": "db.example.org:5432@10.1.0.0/16, [::1]:5432"},
    {"oidc_roles": ""},
    {"oidc_roles": "analyst, owner"},
    {"workers": 0, "asking": 1, "port": 65535, "pg_port": 1, "tick_ms": 1000},
]


def in_chinese(weak: Weakness) -> None:
    """The administrator's page says it in their language: no words of ours in a row stay English."""
    told = CHINESE.gettext(weak.why)
    assert re.search("[\u3400-\u9fff]", told), weak.why
    assert not re.search("[a-z]{2,} [a-z]{2,}", told), told


def only(settings: Settings, name: str) -> Weakness:
    """What is said of one setting, once."""
    [found] = [weak for weak in weaknesses(settings) if weak.name == name]
    return found


@pytest.mark.parametrize(("given", "name"), WRONG)
def test_a_value_that_no_hub_works_with_is_told_and_keeps_it_from_starting(
    given: dict[str, Any], name: str, tmp_path: Path
) -> None:
    settings = Settings(data=tmp_path, **given)
    found = only(settings, name)
    assert found.grave
    assert len(found.why) > 10
    assert found.instead
    in_chinese(found)
    with pytest.raises(InvalidParameter, match=f"was not started: {name}"):
        check(settings)


@pytest.mark.parametrize(("given", "name"), ODD)
def test_a_value_that_is_odd_is_told(given: dict[str, Any], name: str, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, **given)
    assert not only(settings, name).grave
    in_chinese(only(settings, name))
    check(settings)


@pytest.mark.parametrize("given", FINE)
def test_a_value_that_is_fine_is_not_told(given: dict[str, Any], tmp_path: Path) -> None:
    assert weaknesses(Settings(data=tmp_path, **given)) == []


def test_sources_that_nothing_here_can_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data=tmp_path, sources="db.example.org:5432")
    for missing, told in (("psycopg",), False), (("grpc",), False), (("psycopg", "grpc"), True):
        monkeypatch.setattr(installed, "find_spec", lambda name, missing=missing: None if name in missing else name)
        found = [weak for weak in weaknesses(settings) if weak.name == "sources"]
        assert [weak.grave for weak in found] == [False] * told
        for weak in found:
            in_chinese(weak)
        assert all(install("postgres") in weak.instead and install("spark") in weak.instead for weak in found)


def test_files_that_are_no_certificate_and_no_key(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    certificate, key = authority.issue("hub")
    another, garbage, locked = authority.issue("other")[1], str(tmp_path / "garbage.pem"), str(tmp_path / "locked.key")
    Path(garbage).write_bytes(b"\xff\xfe no PEM\n")
    secret = serialization.BestAvailableEncryption(b"word")
    Path(locked).write_bytes(authority.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret))
    check(Settings(data=tmp_path, certificate=certificate, certificate_key=key, client_authority=authority.file))
    for given, name in [
        ({"certificate": garbage, "certificate_key": key}, "certificate"),
        ({"certificate": certificate, "certificate_key": garbage}, "certificate_key"),
        ({"certificate": certificate, "certificate_key": another}, "certificate_key"),
        ({"certificate": authority.file, "certificate_key": locked}, "certificate_key"),
        ({"client_authority": garbage}, "client_authority"),
        ({"source_authorities": garbage}, "source_authorities"),
    ]:
        settings = Settings(data=tmp_path, **given)
        assert only(settings, name).grave
        in_chinese(only(settings, name))
        with pytest.raises(InvalidParameter, match=f"was not started: {name}"):
            check(settings)


@pytest.mark.parametrize("days", [-400, 400])
def test_a_certificate_out_of_its_days_is_told_and_keeps_nothing_from_starting(days: int, tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path, "ours").issue("hub", days)
    settings = Settings(data=tmp_path, certificate=certificate, certificate_key=key)
    found = only(settings, "certificate")
    assert "it has expired" in found.why
    in_chinese(found)
    check(settings)


@pytest.mark.parametrize("host", ["192.0.2.1", "not a host", "127.0.0.1:8765"])
def test_a_host_that_is_not_here_is_said_in_place_of_a_port_that_is_taken(host: str) -> None:
    with pytest.raises(InvalidParameter, match="is not an address of this machine") as refused:
        bound(host, 0, "The hub was not started", "another port")
    assert "another port" not in str(refused.value)


def test_a_port_that_is_taken_is_said_with_one_that_a_user_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_bound", lambda *_: (_ for _ in ()).throw(PermissionError()))
    said = cloister("hub", "--data", str(tmp_path / "hub"), "--port", "443", code=1).stderr
    assert "port 443 of 127.0.0.1 is taken, or may not be listened on" in said
    assert "Instead: port = 8765, or another that is free" in said


def test_a_master_key_that_is_none_is_told_wherever_it_is(tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    for text in (b"", b"no key\n", b"\xff\xfe\x00", base64.b64encode(bytes(16))):
        mounted.write_bytes(text)
        found = only(Settings(data=tmp_path, master_key_file=str(mounted)), "master_key_file")
        assert found.grave
        in_chinese(found)
    mounted.write_bytes(base64.b64encode(bytes(32)) + b"\n")
    assert weaknesses(Settings(data=tmp_path, master_key_file=str(mounted))) == []
    (tmp_path / "master.key").write_text("too short\n")
    (tmp_path / "master.key").chmod(0o600)
    found = only(Settings(data=tmp_path), "master_key")
    assert found.grave
    assert "master.key" in found.why
    assert weaknesses(Settings(data=tmp_path, master_key_file=str(mounted))) == []


def test_a_folder_that_others_read_is_told_and_what_a_hub_writes_there_is_its_users_alone(tmp_path: Path) -> None:
    data = tmp_path / "open"
    data.mkdir()
    data.chmod(0o755)
    before = os.umask(0o022)
    try:
        with Hub(Settings(data=data, workers=0), all_services()) as hub:
            modes = {path.name: path.stat().st_mode & 0o777 for path in data.iterdir()}
            assert {"hub.db", "hub.db-wal", "ledger.db", "master.key", "trail.head"} <= set(modes)
            assert hub.secret("ledger")
        assert {mode for name, mode in modes.items() if name != "vault"} == {0o600}
        assert modes.get("vault", 0o700) == 0o700
        found = only(Settings(data=data), "data")
        assert not found.grave
        assert "0755" in found.why
        in_chinese(found)
        assert found.instead == f"chmod 700 {data}"
        data.chmod(0o700)
        for name in ("hub.db", "ledger.db", "trail.head", "master.key"):
            (data / name).chmod(0o644)
        found_now = weaknesses(Settings(data=data))
        assert {weak.name for weak in found_now} == {"data"}
        for weak in found_now:
            in_chinese(weak)
        Hub(Settings(data=data, workers=0), []).close()
        assert {path.stat().st_mode & 0o777 for path in data.iterdir() if path.is_file()} == {0o600}
        assert weaknesses(Settings(data=data)) == []
    finally:
        os.umask(before)


def test_a_backup_and_what_a_restore_moves_aside_are_their_users_alone(tmp_path: Path) -> None:
    data, backup = tmp_path / "hub", tmp_path / "backup"
    before = os.umask(0o022)
    try:
        Hub(Settings(data=data, workers=0), all_services()).close()
        backup.mkdir()
        cloister("hub", "backup", str(backup), "--data", str(data))
        assert {path.stat().st_mode & 0o777 for path in backup.rglob("*") if path.is_file()} == {0o600}
        assert backup.stat().st_mode & 0o777 == 0o700
        commands = tmp_path / "bin"
        commands.mkdir()
        (commands / "cloister").write_text("#!/bin/sh\n")
        (commands / "cloister").chmod(0o755)
        words = [shutil.which("sh") or "/bin/sh", str(ROOT / "docs" / "deploy" / "restore.sh")]
        environment = {"DATA": str(data), "BACKUP": str(backup), "PATH": f"{commands}:{os.environ['PATH']}"}
        subprocess.run(words, env=environment, check=True)
    finally:
        os.umask(before)
    [aside] = tmp_path.glob("hub.lost-*")
    assert aside.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("wrong", ["log_level=loud", "port=99999"])
def test_the_start_says_what_is_wrong_in_place_of_an_error_of_its_own(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, value = wrong.split("=")
    monkeypatch.setenv(f"CLOISTER_HUB_{name.upper()}", value)
    said = cloister("hub", "--data", str(tmp_path / "hub"), code=1).stderr
    assert f"The hub was not started: {name}" in said
    assert "report it" not in said
    assert not (tmp_path / "hub" / "hub.db").exists()
