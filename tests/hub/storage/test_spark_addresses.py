"""Addresses of Spark: each way round the list is closed, a token is required, and TLS outside of this machine."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from cloister.crypto import WrongKey
from cloister.errors import AccessDenied, CloisterError, InvalidParameter
from cloister.hub.keys import hub_keyring
from cloister.hub.storage import Allowed, guarded_address, keep, reopen
from cloister.hub.storage import connections as addresses

KEYS = hub_keyring(bytes(32))
LISTED = Allowed.read("spark.example.org:15002, 10.1.2.3:6000, inside.example.org:15002@10.7.0.0/16, localhost:15002")
PUBLIC = "93.184.216.34"


@pytest.fixture(autouse=True)
def authorities(tmp_path: Path) -> Path:
    file = tmp_path / "authorities.pem"
    file.write_text("certificates of the institution")
    return file


def resolve(host: str, port: int) -> list[str]:
    return ["127.0.0.1"] if host == "localhost" else [host] if host[0].isdigit() or ":" in host else [PUBLIC]


def passed(address: str, authorities: Path, where: list[str] | None = None) -> addresses.SparkAddress:
    found = guarded_address(
        address, LISTED, authorities=authorities, resolve=(lambda *_: where) if where is not None else resolve
    )
    assert isinstance(found, addresses.SparkAddress)
    return found


def test_what_is_listed_is_connected_to_where_it_was_looked_at(authorities: Path) -> None:
    found = passed("sc://SPARK.example.org./;token=s%3Becret;user_id=ann::clinic.visits", authorities)
    place = found.place
    assert (place.host, place.port, place.address, place.tls) == ("spark.example.org", 15002, PUBLIC, True)
    assert (place.token, place.user, place.must_ask) == ("s;ecret", "ann", True)
    assert place.authorities == b"certificates of the institution"
    assert found.table == ("clinic", "visits")
    assert found.shown == "sc://spark.example.org:15002::clinic.visits"


@pytest.mark.parametrize(
    "address",
    [
        "sc://evil.example.org/;token=t::visits",
        "sc://spark.example.org:15003/;token=t::visits",
        "sc://spark.example.org.evil.org/;token=t::visits",
        "sc://127.0.0.1/;token=t::visits",
        "sc://2130706433/;token=t::visits",
        "sc://0x7f000001/;token=t::visits",
        "sc://[::1]/;token=t::visits",
        "sc://[::ffff:127.0.0.1]/;token=t::visits",
        "sc://169.254.169.254:80/;token=t::visits",
        "sc://10.1.2.3/;token=t::visits",
    ],
)
def test_what_is_not_listed(address: str, authorities: Path) -> None:
    with pytest.raises(AccessDenied, match="not among the databases"):
        passed(address, authorities)


@pytest.mark.parametrize(
    "where", [["127.0.0.1"], ["0.0.0.0"], ["169.254.169.254"], ["fe80::1"], ["::ffff:127.0.0.1"], [PUBLIC, "127.0.0.1"]]
)
def test_a_listed_name_that_resolves_elsewhere(where: list[str], authorities: Path) -> None:
    with pytest.raises(AccessDenied, match="not allowed to have"):
        passed("sc://spark.example.org/;token=t::visits", authorities, where=where)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("sc://spark.example.org::visits", "holds no token"),
        ("sc://spark.example.org/;token=::visits", "holds no token"),
        ("sc://spark.example.org/;token=t;use_ssl=false::visits", "TLS is required"),
        ("sc://10.1.2.3:6000/;token=t;use_ssl=false::visits", "TLS is required"),
        ("sc://spark.example.org/;token=t;use_ssl=maybe::visits", "neither true nor false"),
        ("sc://spark.example.org/;token=a%0d%0ab::visits", "plain letters"),
        ("sc://spark.example.org/;token=t;user_id=a%00b::visits", "plain letters"),
        ("sc://spark.example.org/;token=t;session_id=0::visits", "session_id= is not taken"),
        ("sc://spark.example.org/;token=t;user_agent=x::visits", "user_agent= is not taken"),
        ("sc://spark.example.org/;token=t;x-remote-user=root::visits", "x-remote-user= is not taken"),
        ("sc://spark.example.org/;token=t::csv.`/etc/passwd`", "its table is not a name"),
        ("sc://spark.example.org/;token=t::", "its table is not a name"),
        ("sc://spark.example.org,evil/;token=t::visits", "sc:// address"),
        ("sc://ann@spark.example.org/;token=t::visits", "sc:// address"),
        ("sc://spark.example.org%0a/;token=t::visits", "sc:// address"),
        ("spark://spark.example.org:7077::visits", "sc:// address"),
    ],
)
def test_what_an_address_may_not_say(address: str, why: str, authorities: Path) -> None:
    with pytest.raises(CloisterError, match="is invalid") as caught:
        passed(address, authorities)
    assert why in caught.value.why
    assert caught.value.instead


def test_tls_is_left_out_on_this_machine_alone(authorities: Path) -> None:
    assert passed("sc://spark.example.org/;token=t;use_ssl=true::visits", authorities).place.tls
    local = passed("sc://localhost/;token=t::visits", authorities).place
    assert (local.tls, local.authorities, local.address) == (False, None, "127.0.0.1")
    assert passed("sc://localhost/;token=t;use_ssl=true::visits", authorities).place.tls
    with pytest.raises(AccessDenied):
        passed("sc://localhost/;token=t::visits", authorities, where=[PUBLIC])


def test_the_operating_system_vouches_where_no_file_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    address = "sc://spark.example.org/;token=t::visits"
    for name, text in (("a.pem", "one"), ("b.pem", "two"), ("c.txt", "three")):
        (tmp_path / name).write_text(text)
    (tmp_path / "authorities.pem").unlink()
    paths = type("Paths", (), {"cafile": None, "capath": str(tmp_path)})
    monkeypatch.setattr(addresses.ssl, "get_default_verify_paths", lambda: paths)
    found = guarded_address(address, LISTED, resolve=resolve)
    assert isinstance(found, addresses.SparkAddress)
    assert found.place.authorities == b"one\ntwo"
    monkeypatch.setattr(paths, "capath", str(tmp_path / "nothing"))
    with pytest.raises(InvalidParameter, match="no authority for the server's certificate is known"):
        guarded_address(address, LISTED, resolve=resolve)
    with pytest.raises(InvalidParameter, match="source_authorities"):
        guarded_address(address, LISTED, authorities=tmp_path / "no such file", resolve=resolve)


def test_the_token_is_kept_wrapped_and_shown_nowhere(authorities: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    address = "sc://spark.example.org/;user_id=ann;token=hunter2::clinic.visits"
    kept = keep(address, LISTED, KEYS, "7", authorities=authorities, resolve=resolve)
    assert kept.shown == "sc://spark.example.org:15002::clinic.visits"
    assert b"hunter2" not in kept.wrapped
    shown = repr(kept) + repr(passed(address, authorities)) + caplog.text
    for change in (";use_ssl=false::", ";session_id=1::", "::csv.`/x`.", ";token=again::"):
        with pytest.raises(CloisterError) as caught:
            passed(address.replace("::", change), authorities)
        shown += str(caught.value)
    assert "hunter2" not in shown
    with pytest.raises(WrongKey):
        reopen(kept, LISTED, hub_keyring(bytes(31) + b"?"), resolve=resolve)
    with pytest.raises(AccessDenied):  # the list has changed
        reopen(kept, [], KEYS, resolve=resolve)
