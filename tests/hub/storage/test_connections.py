"""Connections: each way round the list is closed, and what is on it is reached, with TLS where it must be."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cloister.crypto import WrongKey
from cloister.errors import AccessDenied, CloisterError, EngineError, InvalidParameter
from cloister.hub.keys import hub_keyring
from cloister.hub.storage import Allowed, guarded_address, keep, reopen
from cloister.tables import Integer, PrivateTable, prepare
from cloister.tables.sourcing.sources import Source
from scripts import postgres
from tests.certificates import certificate

psycopg = pytest.importorskip("psycopg")
from psycopg.conninfo import conninfo_to_dict  # noqa: E402

KEYS = hub_keyring(bytes(32))
LISTED = Allowed.read("db.example.org:5432, 10.1.2.3:6000, inside.example.org:5432@10.7.0.0/16, [2001:db8::5]:5432")
PUBLIC = "93.184.216.34"


def resolve(host: str, port: int) -> list[str]:
    return [host] if host[0].isdigit() or ":" in host else [PUBLIC]


def parts_of(address: str, *, where: list[str] | None = None, listed: list[Allowed] = LISTED, **options: Path) -> dict[str, str]:
    found = guarded_address(address, listed, resolve=(lambda *_: where) if where is not None else resolve, **options)
    conninfo, _, table = found.conninfo.rpartition("::")
    assert table
    return {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}


def test_what_is_listed_is_connected_to_where_it_was_looked_at() -> None:
    parts = parts_of("postgresql://ann:s%20ecret@DB.example.org./clinic::visits")
    assert parts["host"] == "db.example.org"
    assert parts["hostaddr"] == PUBLIC
    assert (parts["port"], parts["dbname"], parts["user"], parts["password"]) == ("5432", "clinic", "ann", "s ecret")
    assert (parts["sslmode"], parts["sslrootcert"]) == ("verify-full", "system")
    assert parts["sslcertmode"] == parts["gssencmode"] == "disable"
    assert not Path(parts["passfile"]).exists()


def test_the_list_is_empty_at_first() -> None:
    assert Allowed.read("") == []
    with pytest.raises(AccessDenied, match="administrator"):
        guarded_address("postgresql://u@db.example.org/clinic::visits", [], resolve=resolve)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u@evil.example.org/clinic::visits",
        "postgresql://u@db.example.org:5433/clinic::visits",
        "postgresql://u@db.example.org.evil.org/clinic::visits",
        "postgresql://u@sub.db.example.org/clinic::visits",
        "postgresql://u@db.example.org/clinic?host=evil.example.org::visits",
        "postgresql://u@db.example.org/clinic?port=22::visits",
        "postgresql://db.example.org:x@evil.example.org/clinic::visits",
        "postgresql://u@127.0.0.1/clinic::visits",
        "postgresql://u@localhost/clinic::visits",
        "postgresql://u@2130706433/clinic::visits",
        "postgresql://u@0x7f000001/clinic::visits",
        "postgresql://u@127.1/clinic::visits",
        "postgresql://u@[::1]/clinic::visits",
        "postgresql://u@[::ffff:127.0.0.1]/clinic::visits",
        "postgresql://u@169.254.169.254:80/latest::visits",
        "postgresql://u@[2001:db8::6]/clinic::visits",
        "postgresql://u@10.1.2.3:5432/clinic::visits",
    ],
)
def test_what_is_not_listed(address: str) -> None:
    with pytest.raises(AccessDenied, match="not among the databases"):
        guarded_address(address, LISTED, resolve=resolve)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("postgresql://u@db.example.org/clinic", "not a postgresql:// or sc:// address of a table"),
        ("postgresql://u@db.example.org/clinic::", "not a postgresql:// or sc:// address of a table"),
        ("host=db.example.org dbname=clinic user=u::visits", "not a postgresql:// or sc:// address"),
        ("mysql://u@db.example.org/clinic::visits", "not a postgresql:// or sc:// address"),
        ("postgresql://u@db.example.org/cli%00nic::visits", "not a postgresql:// or sc:// address"),
        ("postgresql://u@db.example.org/clinic\0::visits", "not a postgresql:// or sc:// address"),
        ("postgresql://u@/clinic::visits", "names no host"),
        ("postgresql:///clinic?user=u::visits", "names no host"),
        ("postgresql:///clinic?user=u&host=/var/run/postgresql::visits", "names no host"),
        ("postgresql://u@%2Fvar%2Frun%2Fpostgresql/clinic::visits", "names no host"),
        ("postgresql://u@%40abstract/clinic::visits", "names no host"),
        ("postgresql://u@db.example.org/clinic?host=/tmp::visits", "names no host"),
        ("postgresql://u@db.example.org,evil.example.org/clinic::visits", "several hosts"),
        ("postgresql://u@db.example.org:5432,evil.example.org:5432/clinic::visits", "several hosts"),
        ("postgresql://u@db.example.org/clinic?port=5432,22::visits", "several hosts"),
        ("postgresql://u@db.example.org/clinic?port=5432%20::visits", "its host is not a name"),
        ("postgresql://u@db.example.org%0a/clinic::visits", "its host is not a name"),
        ("postgresql://u@db.example.org%20hostaddr=10.0.0.1/clinic::visits", "its host is not a name"),
        ("postgresql://u@[fe80::1%25eth0]/clinic::visits", "its host is not a name"),
        ("postgresql://u@db.example.org/clinic?hostaddr=127.0.0.1::visits", "hostaddr= is not taken"),
        ("postgresql://u@db.example.org/clinic?service=other::visits", "service= is not taken"),
        ("postgresql://u@db.example.org/clinic?servicefile=/etc/passwd::visits", ""),
        ("postgresql://u@db.example.org/clinic?passfile=/etc/passwd::visits", "passfile= is not taken"),
        ("postgresql://u@db.example.org/clinic?options=-csearch_path%3Devil::visits", "options= is not taken"),
        ("postgresql://u@db.example.org/clinic?sslkey=/etc/ssl/private/key.pem::visits", "sslkey= is not taken"),
        ("postgresql://u@db.example.org/clinic?sslcert=/etc/passwd::visits", "sslcert= is not taken"),
        ("postgresql://u@db.example.org/clinic?sslrootcert=/tmp/mine.pem::visits", "sslrootcert= is not taken"),
        ("postgresql://u@db.example.org/clinic?sslkeylogfile=/tmp/keys::visits", "sslkeylogfile= is not taken"),
        ("postgresql://u@db.example.org/clinic?gssdelegation=1::visits", "gssdelegation= is not taken"),
        ("postgresql://u@db.example.org/clinic?requiressl=0::visits", ""),
        ("postgresql://u@db.example.org/clinic?replication=database::visits", "replication= is not taken"),
        ("postgresql://u@db.example.org/host%3Devil::visits", "no database"),
        ("postgresql://u@db.example.org/postgresql%3A%2F%2Fevil%2Fx::visits", "no database"),
        ("postgresql://u@db.example.org/::visits", "no database"),
        ("postgresql://db.example.org/clinic::visits", "no user"),
        ("postgresql://u@db.example.org/clinic?sslmode=disable::visits", "TLS is required"),
        ("postgresql://u@db.example.org/clinic?sslmode=prefer::visits", "TLS is required"),
        ("postgresql://u@db.example.org/clinic?sslmode=allow::visits", "TLS is required"),
        ("postgresql://u@10.1.2.3:6000/clinic?sslmode=disable::visits", "TLS is required"),
    ],
)
def test_what_an_address_may_not_say(address: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match="connection is invalid") as caught:
        guarded_address(address, LISTED, resolve=resolve)
    assert why in caught.value.why
    assert caught.value.instead


@pytest.mark.parametrize(
    "where",
    [
        ["127.0.0.1"],
        ["127.8.9.10"],
        ["::1"],
        ["0.0.0.0"],
        ["169.254.169.254"],
        ["fe80::1"],
        ["fe80::1%eth0"],
        ["::ffff:127.0.0.1"],
        ["::ffff:169.254.169.254"],
        ["2002:7f00:1::"],
        ["64:ff9b::7f00:1"],
        ["64:ff9b::a9fe:a9fe"],
        ["64:ff9b::a01:203"],
        ["64:ff9b:1::909:909"],
        ["2002:909:909::"],
        ["2001:0:4136:e378:8000:63bf:3fff:fdd2"],
        ["2001:db8::6"],
        ["fd00:ec2::254"],
        ["fd20:ce::254"],
        ["fec0::1"],
        ["ff05::2"],
        ["100::1"],
        ["::7f00:1"],
        ["::ffff:100.100.100.200"],
        ["0.1.2.3"],
        ["100.64.0.1"],
        ["100.100.100.200"],
        ["127.255.255.254"],
        ["168.63.129.16"],
        ["192.0.0.192"],
        ["192.0.2.1"],
        ["198.18.0.1"],
        ["240.0.0.1"],
        ["224.0.0.1"],
        ["255.255.255.255"],
        ["::"],
        [PUBLIC, "127.0.0.1"],
        ["127.0.0.1", PUBLIC],
        ["no address"],
    ],
)
def test_a_listed_name_that_resolves_elsewhere(where: list[str]) -> None:
    with pytest.raises(AccessDenied, match="not allowed to have"):
        parts_of("postgresql://u@db.example.org/clinic::visits", where=where)


@pytest.mark.parametrize(
    "where", [PUBLIC, "10.1.2.3", "172.31.0.1", "192.168.7.7", "2a00:1450::5", "fd12:3456:789a::5", "64:ff9b::909:909"]
)
def test_where_institutions_keep_databases_a_listed_name_may_lead(where: str) -> None:
    assert parts_of("postgresql://u@db.example.org/clinic::visits", where=[where])["hostaddr"] == where


@pytest.mark.parametrize("where", ["100.100.1.1", "192.0.0.192", "fd00:ec2::254", "fec0::1", "2002:7f00:1::"])
def test_what_is_set_aside_is_reached_where_the_list_names_it(where: str) -> None:
    for listed in (f"db.example.org:5432@{where}", f"[{where}]:5432" if ":" in where else f"{where}:5432"):
        host = "db.example.org" if "@" in listed else listed.rpartition(":")[0]
        found = parts_of(f"postgresql://u@{host}/clinic::visits", where=[where], listed=Allowed.read(listed))
        assert found["hostaddr"] == where


def test_a_name_with_a_network_stays_in_it() -> None:
    address = "postgresql://u@inside.example.org/clinic::visits"
    assert parts_of(address, where=["10.7.1.1"])["hostaddr"] == "10.7.1.1"
    for where in ([PUBLIC], ["10.8.0.1"], ["10.7.1.1", "10.8.0.1"], ["::1"]):
        with pytest.raises(AccessDenied):
            parts_of(address, where=where)
    local = Allowed.read("mine.example.org:5432@127.0.0.0/8")
    assert parts_of("postgresql://u@mine.example.org/clinic::t", where=["127.0.0.2"], listed=local)["hostaddr"] == "127.0.0.2"


def test_a_name_is_asked_for_once() -> None:
    """What it resolves to the second time is not asked: the address that was looked at is the one in the connection."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return [PUBLIC] if len(asked) == 1 else ["127.0.0.1"]

    found = guarded_address("postgresql://u@db.example.org/clinic::visits", LISTED, resolve=rebinding)
    assert asked == ["db.example.org"]
    assert f"hostaddr={PUBLIC}" in found.conninfo


def test_a_name_without_an_address() -> None:
    def unknown(*_: object) -> list[str]:
        raise socket.gaierror

    for lookup in (unknown, lambda *_: []):
        with pytest.raises(InvalidParameter, match="has no address"):
            guarded_address("postgresql://u@db.example.org/clinic::visits", LISTED, resolve=lookup)


def test_tls() -> None:
    address = "postgresql://u@db.example.org/clinic{}::visits"
    authorities = Path("/etc/authorities.pem")
    for given, mode, root in (
        ("", "verify-full", "system"),
        ("?sslmode=verify-full", "verify-full", "system"),
        ("?sslmode=verify-ca", "verify-full", "system"),  # the system's authorities vouch for anybody
        ("?sslmode=require", "require", None),
    ):
        parts = parts_of(address.format(given))
        assert (parts["sslmode"], parts.get("sslrootcert")) == (mode, root)
    parts = parts_of(address.format("?sslmode=verify-ca"), authorities=authorities)
    assert (parts["sslmode"], parts["sslrootcert"]) == ("verify-ca", str(authorities))
    local = Allowed.read("localhost:5432")
    assert parts_of("postgresql://u@localhost/clinic::t", where=["::1", "127.0.0.1"], listed=local)["sslmode"] == "prefer"
    with pytest.raises(AccessDenied):
        parts_of("postgresql://u@localhost/clinic::t", where=[PUBLIC], listed=local)


@pytest.mark.parametrize(
    "text", ["db.example.org", "db:0", "db:70000", ":5432", "db:5432@nowhere", "a b:1", "u@db:5432", "*:5432", "db:x"]
)
def test_a_list_that_cannot_be_read(text: str) -> None:
    if text == "*:5432":
        listed = Allowed.read(text)  # a star is a name like any other: it is no pattern
        with pytest.raises(AccessDenied):
            guarded_address("postgresql://u@db.example.org/clinic::visits", listed, resolve=resolve)
        return
    with pytest.raises(InvalidParameter, match="host:port"):
        Allowed.read(text)


def test_credentials_are_kept_wrapped_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    address = "postgresql://ann:hunter2@db.example.org/clinic::visits"
    kept = keep(address, LISTED, KEYS, "7", resolve=resolve)
    assert kept.shown == "postgresql://db.example.org:5432/clinic::visits"
    assert b"hunter2" not in kept.wrapped
    shown = repr(kept) + repr(guarded_address(address, LISTED, resolve=resolve)) + caplog.text
    for change in ("?sslmode=disable", "?service=x", "?host=evil"):
        with pytest.raises(CloisterError) as caught:
            guarded_address(address.replace("::", f"{change}::"), LISTED, resolve=resolve)
        shown += str(caught.value)
    assert "hunter2" not in shown
    assert "ann" not in shown
    with pytest.raises(WrongKey):
        reopen(kept, LISTED, hub_keyring(bytes(31) + b"?"), resolve=resolve)
    with pytest.raises(AccessDenied):  # the list has changed
        reopen(kept, [], KEYS, resolve=resolve)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    try:
        started = postgres.start()
    except postgres.CannotStart as error:
        pytest.skip(str(error))
    yield started
    postgres.stop(started.folder, started.pid)


@pytest.mark.postgres
def test_a_listed_database_is_read(server: postgres.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = conninfo_to_dict(server.url)
    host, port = url.get("host", "127.0.0.1"), url["port"]
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute("CREATE TABLE visits AS SELECT 3 AS k")
    address = f"postgresql://{url['user']}:{url.get('password', 'x')}@{host}:{port}/{url['dbname']}::visits"
    listed = Allowed.read(f"{host}:{port}")
    for name, value in (("PGHOSTADDR", "10.255.255.1"), ("PGOPTIONS", "-c search_path=nowhere"), ("PGSSLMODE", "verify-full")):
        monkeypatch.setenv(name, value)
    source = guarded_address(address, listed).open()
    assert source.schema == {"k": "integer"}
    kept = keep(address, listed, KEYS, "7")
    with prepare(PrivateTable(reopen(kept, listed, KEYS), columns={"k": Integer(0, 9)})) as prepared:
        assert prepared.rows(["k"])["k"].tolist() == [3]


@pytest.mark.postgres
def test_the_certificate_is_that_of_the_name_though_the_address_is_pinned(server: postgres.Server, tmp_path: Path) -> None:
    url = conninfo_to_dict(server.url)
    port = url["port"]
    listed = Allowed.read(f"db.test:{port}@127.0.0.0/8, other.test:{port}@127.0.0.0/8")

    def opened(host: str, mode: str, authorities: Path | None) -> Source:
        address = f"postgresql://{url['user']}:{url['password']}@{host}:{port}/{url['dbname']}?sslmode={mode}::pg_catalog.pg_am"
        return guarded_address(address, listed, authorities=authorities, resolve=lambda *_: ["127.0.0.1"]).open()

    with pytest.raises(EngineError, match="refused"):  # the server speaks no TLS yet: nothing is sent to it
        opened("db.test", "require", None)
    certificate(tmp_path, "db.test")
    owner = (server.folder / "data").stat()
    for name in ("server.key", "server.crt"):
        placed = server.folder / "data" / name
        placed.write_bytes((tmp_path / name).read_bytes())
        placed.chmod(0o600)
        os.chown(placed, owner.st_uid, owner.st_gid)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET ssl = on")
        connection.execute("SELECT pg_reload_conf()")
    right = tmp_path / "server.crt"
    _, wrong = certificate(tmp_path / "other", "db.test")
    eventually(lambda: opened("db.test", "require", None))
    assert opened("db.test", "verify-full", right).schema["amname"] == "text"
    assert opened("other.test", "verify-ca", right).schema["amname"] == "text"
    for host, mode, authorities in (
        ("other.test", "verify-full", right),
        ("db.test", "verify-full", wrong),
        ("db.test", "verify-ca", wrong),
        ("db.test", "verify-full", None),
    ):
        with pytest.raises(EngineError, match="refused"):
            opened(host, mode, authorities)


def eventually(work: Callable[[], object]) -> None:
    """The server reads its settings anew in its own time."""
    for _ in range(100):
        with suppress(EngineError):
            work()
            return
        time.sleep(0.1)
    work()
