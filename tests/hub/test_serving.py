"""A hub as a server: TLS and client certificates that hold, plain text that gets nowhere, and an orderly end."""

from __future__ import annotations

import datetime
import ipaddress
import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import cloister as cl
from cloister.client import HubUnreachable
from cloister.errors import InvalidParameter
from tests.hub import forked
from tests.hub.house import Clock, House, served
from tests.tiers import some_by_day

COUNT = "SELECT COUNT(*) AS n FROM people"


class Authority:
    """Signs certificates, for tests."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._signed(name, self.key, self.key, name, authority=True)
        self.file = self._written(f"{name}.pem", self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, days: int = 0) -> tuple[str, str]:
        """The files of a certificate and its key, as of so many days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(name, key, self.key, self.name, authority=False, days=days)
        plain = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return (
            self._written(f"{name}-{self.name}.pem", certificate.public_bytes(serialization.Encoding.PEM)),
            self._written(f"{name}-{self.name}.key", plain),
        )

    def _signed(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        signer: ec.EllipticCurvePrivateKey,
        issuer: str,
        *,
        authority: bool,
        days: int = 0,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)

        def named(text: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        others = (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        )
        signs = {"digital_signature": True, "key_cert_sign": authority, "crl_sign": authority}
        usage = x509.KeyUsage(**signs, **dict.fromkeys(others, False))
        return (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(issuer))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
            .sign(signer, hashes.SHA256())
        )

    def _written(self, name: str, text: bytes) -> str:
        (self.folder / name).write_bytes(text)
        return str(self.folder / name)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("theirs"), "theirs")


def stage(folder: Path, **settings: str) -> Iterator[tuple[str, str]]:
    """The address of a hub, and its analyst's token."""
    house = House(folder, Clock(), **settings)
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    with served(house.hub) as url:
        yield url, ana.token
    house.close()


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, ours: Authority) -> Iterator[tuple[str, str]]:
    certificate, key = ours.issue("hub")
    yield from stage(tmp_path_factory.mktemp("secure") / "hub", certificate=certificate, certificate_key=key)


@pytest.fixture
def mutual(tmp_path: Path, ours: Authority) -> Iterator[tuple[str, str]]:
    certificate, key = ours.issue("hub")
    yield from stage(tmp_path / "hub", certificate=certificate, certificate_key=key, client_authority=ours.file)


def place(url: str) -> tuple[str, int]:
    found = httpx.URL(url)
    assert found.port is not None
    return found.host, found.port


def test_with_a_certificate_plain_text_gets_no_answer(secure: tuple[str, str]) -> None:
    url, _ = secure
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http{url[5:]}/healthz")
    with socket.create_connection(place(url), timeout=10) as plain:
        plain.sendall(b"GET /login HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            answered = plain.recv(4096)
        except OSError:
            answered = b""
    assert b"HTTP" not in answered


def test_a_client_that_trusts_the_authority_asks_and_one_that_does_not_stops(secure: tuple[str, str], ours: Authority) -> None:
    url, token = secure
    with cl.connect(url, token=token, verify=ours.file, purpose="x") as session:
        assert session.sql(COUNT, spend="0.1").num_rows == 1
    with cl.connect(url, token=token) as session, pytest.raises(HubUnreachable, match="could not be verified"):
        session.sql(COUNT, spend="0.1")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_old_protocols_are_refused_and_cookies_are_for_tls_alone(secure: tuple[str, str], ours: Authority) -> None:
    url, _ = secure
    context = ssl.create_default_context(cafile=ours.file)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(place(url), timeout=10) as plain, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(plain, server_hostname="localhost")
    page = httpx.get(f"{url}/login", verify=ssl.create_default_context(cafile=ours.file), timeout=60)
    assert page.headers["strict-transport-security"].startswith("max-age=")
    assert all("secure" in cookie.lower() for cookie in page.headers.get_list("set-cookie"))


def test_mutual_tls_lets_in_only_who_has_a_certificate_of_that_authority(
    mutual: tuple[str, str], ours: Authority, theirs: Authority
) -> None:
    url, token = mutual
    with cl.connect(url, token=token, verify=ours.file, certificate=ours.issue("ana"), purpose="x") as session:
        assert session.sql(COUNT, spend="0.1").num_rows == 1
    for stranger in (None, theirs.issue("eve")):
        with (
            cl.connect(url, token=token, verify=ours.file, certificate=stranger, timeout=1.5) as session,
            pytest.raises(HubUnreachable),
        ):
            session.sql(COUNT, spend="0.1")


def test_a_certificate_without_its_key_keeps_the_hub_from_starting(tmp_path: Path, ours: Authority) -> None:
    from cloister.hub.serving import serve

    house = House(tmp_path / "hub", Clock(), certificate=ours.file)
    with pytest.raises(InvalidParameter, match="certificate_key"):
        serve(house.hub)
    house.close()


@some_by_day("how", [signal.SIGINT, signal.SIGTERM], lambda how: how == signal.SIGTERM)
def test_it_ends_in_order_when_it_is_told_to(tmp_path: Path, empty_hub: Path, how: signal.Signals) -> None:
    shutil.copytree(empty_hub, tmp_path / "hub")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "cloister", "hub", "--data", str(tmp_path / "hub"), "--port", str(port)]
    env = {**os.environ, "CLOISTER_HUB_LOG_LEVEL": "warning"}
    process = forked.python(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"cloister is at http://127.0.0.1:{port}\n"
        assert "makes the administrator" in process.stdout.readline()
        link = process.stdout.readline().strip()
        assert httpx.get(link, timeout=60).status_code == 200
        process.send_signal(how)
        process.wait(60)
        assert process.stderr is not None
        err = process.stderr.read()
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert not (tmp_path / "hub" / "hub.db-wal").exists()  # the database was closed
