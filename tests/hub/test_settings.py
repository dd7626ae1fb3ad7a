"""Settings: each has a meaning, comes from where it should, and is refused where it is none; what is weak is said."""

from __future__ import annotations

import base64
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import InvalidParameter
from cloister.hub.checking import weaknesses
from cloister.hub.hub import Hub
from cloister.hub.serving import check
from cloister.hub.settings import PREFIX, Settings, known_settings, load
from tests.hub.test_serving import Authority

EACH = {name: each for name, each in known_settings().items() if name != "data"}
SECRETS = {"database", "ledger", "master_key", "oidc_secret", "metrics_token", "mqtt"}
OTHER: dict[str, Any] = {name: 7 if each.type == "int" else f"/{name}" for name, each in EACH.items()}
"""For each setting a value that is not its default."""


@pytest.mark.parametrize("name", EACH)
def test_each_setting_says_what_it_is_and_is_read_from_file_and_environment(name: str, tmp_path: Path) -> None:
    setting = EACH[name]
    assert len(setting.metadata["about"]) > 10
    assert setting.metadata["about"].endswith(".")
    assert setting.type in ("int", "str")
    assert setting.metadata["secret"] is (name in SECRETS)
    value, field = OTHER[name], setting.name
    assert getattr(load(tmp_path), field) == setting.default
    written = str(value) if setting.type == "int" else f'"{value}"'
    (tmp_path / "hub.toml").write_text(f"{name} = {written}\n")
    assert getattr(load(tmp_path), field) == value
    environment = {f"{PREFIX}{name.upper()}": "8" if setting.type == "int" else "/environment"}
    assert getattr(load(tmp_path, environment=environment), field) == (8 if setting.type == "int" else "/environment")
    assert getattr(load(tmp_path, environment=environment, **{name: value}), field) == value
    assert getattr(load(tmp_path, environment=environment, **{name: None}), field) != value


@pytest.mark.parametrize("name", EACH)
def test_a_value_of_the_wrong_kind_is_refused_by_name_without_showing_a_secret(name: str, tmp_path: Path) -> None:
    for wrong in ('"canary"', "1.9", "true", "inf", "nan") if EACH[name].type == "int" else ("[1]", "740128", "true"):
        (tmp_path / "hub.toml").write_text(f"{name} = {wrong}\n")
        with pytest.raises(InvalidParameter, match=name) as refused:
            load(tmp_path)
        assert not (EACH[name].metadata["secret"] and wrong in str(refused.value))


@pytest.mark.parametrize(
    ("line", "like"), [('hosts = ["a", "b"]', 'hosts = "a, b"'), ("second_factor = true", 'second_factor = "optional"')]
)
def test_a_list_or_a_truth_value_is_refused_with_a_line_that_can_be_written(line: str, like: str, tmp_path: Path) -> None:
    (tmp_path / "hub.toml").write_text(line)
    with pytest.raises(InvalidParameter) as refused:
        load(tmp_path)
    assert refused.value.instead == like
    (tmp_path / "hub.toml").write_text(like)
    load(tmp_path)


def test_names_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "hub.toml").write_text("prot = 8765\n")
    with pytest.raises(InvalidParameter, match="'prot'"):
        load(tmp_path)
    (tmp_path / "hub.toml").unlink()
    with pytest.raises(InvalidParameter, match="'prot'"):
        load(tmp_path, environment={f"{PREFIX}PROT": "8765", "PATH": "/bin"})
    with pytest.raises(InvalidParameter, match="no such file"):
        load(tmp_path, file=tmp_path / "missing.toml")
    (tmp_path / "broken.toml").write_text("port = = 1")
    with pytest.raises(InvalidParameter, match="are not TOML"):
        load(tmp_path, file=tmp_path / "broken.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidParameter, match="are not TOML"):
        load(tmp_path, file=tmp_path / "binary.toml")


def test_the_folder_is_not_a_setting_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "hub.toml").write_text('data = "/elsewhere"\n')
    with pytest.raises(InvalidParameter, match="Instead: --data /elsewhere"):
        load(tmp_path)
    assert load(tmp_path / "hub", environment={f"{PREFIX}DATA": "/elsewhere"}).data == tmp_path / "hub", (
        "what a command is given wins"
    )


def test_secrets_are_shown_nowhere(tmp_path: Path) -> None:
    told = Settings(data=tmp_path, **dict.fromkeys(SECRETS, "canary-secret"))
    assert "canary-secret" not in str(told.shown())
    assert set(told.shown()) == {"data", *EACH}
    assert "canary-secret" not in repr(told)


WEAK: list[tuple[dict[str, Any], str, bool]] = [
    ({"host": "0.0.0.0"}, "certificate", True),
    ({"host": "::", "address": "http://hub.example.org"}, "certificate", True),
    ({"certificate": __file__}, "certificate_key", True),
    ({"certificate": "/no/such.pem", "certificate_key": __file__}, "certificate", True),
    ({"client_authority": "/no/such.pem"}, "client_authority", True),
    ({"master_key_file": "/no/such.key"}, "master_key_file", True),
    ({"database": "mysql://x", "ledger": "postgresql://localhost/x"}, "database", True),
    ({"database": "postgresql://db.example.org/hub", "ledger": "postgresql://localhost/x"}, "database", False),
    ({"database": "postgresql://localhost/hub"}, "ledger", False),
    ({"second_factor": "sometimes"}, "second_factor", True),
    ({"host": "0.0.0.0", "address": "https://hub.example.org"}, "second_factor", False),
    ({"password_length": 10}, "password_length", False),
    ({"password_length": 6}, "password_length", True),
    ({"oidc_issuer": "http://login.example.org"}, "oidc_issuer", True),
    ({"master_key": base64.b64encode(bytes(32)).decode()}, "master_key", False),
    ({"address": "https://hub.example.org"}, "proxies", True),
    ({"pg_port": 5433, "host": "0.0.0.0", "address": "https://hub.example.org"}, "pg_port", True),
    ({"tick_ms": 0}, "tick_ms", True),
    ({"survey_cap": "0"}, "survey_cap", True),
    ({"survey_cap": "1/0"}, "survey_cap", True),
    ({"survey_cap": "much"}, "survey_cap", True),
    ({"survey_hourly": -1}, "survey_hourly", True),
]


@pytest.mark.parametrize(("given", "name", "grave"), WEAK)
def test_what_is_wrong_or_weak_is_said_and_what_is_grave_keeps_a_hub_from_starting(
    given: dict[str, Any], name: str, grave: bool, tmp_path: Path
) -> None:
    settings = Settings(data=tmp_path, **given)
    found = {weak.name: weak for weak in weaknesses(settings)}
    assert found[name].grave is grave
    assert found[name].why
    assert found[name].instead
    assert [weak.grave for weak in weaknesses(settings)] == sorted((weak.grave for weak in weaknesses(settings)), reverse=True)
    if grave:
        with pytest.raises(InvalidParameter, match="was not started"):
            check(settings)


def test_a_hub_on_this_machine_is_in_order_and_so_is_one_behind_a_proxy(tmp_path: Path) -> None:
    assert weaknesses(Settings(data=tmp_path)) == []
    behind = Settings(
        data=tmp_path, host="0.0.0.0", address="https://hub.example.org", proxies="10.0.0.2", second_factor="owners"
    )
    assert weaknesses(behind) == []
    assert behind.secure
    assert behind.origin == "https://hub.example.org"
    assert dataclasses.replace(behind, address="", host="::1").origin == "http://[::1]:8765"
    check(behind)


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://hub.example.org:443", "https://hub.example.org"),
        ("https://Hub.Example.org/", "https://hub.example.org"),
        ("HTTPS://hub.example.org:8443", "https://hub.example.org:8443"),
        ("https://hub.example.org:80", "https://hub.example.org:80"),
        ("http://hub.example.org:80/", "http://hub.example.org"),
        ("https://[2001:DB8::443]:443", "https://[2001:db8::443]"),
        ("https://[2001:db8::443]", "https://[2001:db8::443]"),
        ("https://hub.example.org:", "https://hub.example.org"),
    ],
)
def test_an_address_is_compared_as_browsers_write_it(address: str, origin: str, tmp_path: Path) -> None:
    """Otherwise every form, the one to sign in too, would come from another site."""
    settings = Settings(data=tmp_path, address=address, proxies="10.0.0.2")
    assert weaknesses(settings) == []
    assert settings.origin == origin
    assert settings.secure is origin.startswith("https")
    assert [each.name for each in weaknesses(Settings(data=tmp_path, address=address))] == ["proxies"] * settings.secure


def test_a_hub_that_ends_tls_itself_needs_no_proxies(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path, "ours").issue("hub")
    own = Settings(data=tmp_path, address="https://hub.example.org", certificate=certificate, certificate_key=key)
    assert weaknesses(own) == []
    unnamed = next(weak for weak in weaknesses(Settings(data=tmp_path, address="https://hub.example.org")) if weak.grave)
    assert unnamed.instead == 'proxies = "127.0.0.1"'


def test_the_master_key_comes_from_file_environment_or_is_made(tmp_path: Path) -> None:
    with Hub(Settings(data=tmp_path / "a"), []) as hub:
        assert (tmp_path / "a" / "master.key").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
        sealed = hub.secret("ledger")
    text = (tmp_path / "a" / "master.key").read_text()
    (tmp_path / "a" / "master.key").unlink()
    with Hub(Settings(data=tmp_path / "a", master_key=text), []) as hub:
        assert hub.secret("ledger") == sealed
    (tmp_path / "mounted").write_text(text)
    with Hub(Settings(data=tmp_path / "a", master_key_file=str(tmp_path / "mounted")), []) as hub:
        assert hub.secret("ledger") == sealed
    with pytest.raises(InvalidParameter, match="is missing"):
        Hub(Settings(data=tmp_path / "a", master_key_file=str(tmp_path / "nowhere")), [])
