"""Both ends of TLS, joined in memory: whom each of them believes."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from cloister.crypto import client_context, server_context
from cloister.errors import InvalidParameter
from tests.certificates import certificate


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Key and certificate by name; each certificate signed itself, so that it is its own authority."""
    folder = tmp_path_factory.mktemp("tls")
    return {name: certificate(folder / name, name) for name in ("server", "ana", "eve")}


def shaken(server: ssl.SSLContext, client: ssl.SSLContext, name: str = "server") -> tuple[str | None, bytes]:
    """The protocol that both ends agree on, and what the server then reads; whatever one of them refuses is raised."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(6):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    ends[0].write(b"hello")
    return ends[1].version(), ends[1].read(5)


def test_a_client_believes_the_authority_that_it_was_given_and_the_name_in_the_certificate(
    pairs: dict[str, tuple[Path, Path]],
) -> None:
    key, public = pairs["server"]
    assert shaken(server_context(public, key), client_context(public)) == ("TLSv1.3", b"hello")
    for authority, name in [(None, "server"), (pairs["eve"][1], "server"), (public, "x")]:
        with pytest.raises(ssl.SSLCertVerificationError):
            shaken(server_context(public, key), client_context(authority), name)


def test_a_server_with_an_authority_lets_in_only_who_has_its_certificate(pairs: dict[str, tuple[Path, Path]]) -> None:
    key, public = pairs["server"]
    for name, welcome in [("ana", True), ("eve", False), (None, False)]:
        client = client_context(public)
        if name is not None:
            client.load_cert_chain(pairs[name][1], pairs[name][0])
        server = server_context(public, key, pairs["ana"][1])
        if welcome:
            assert shaken(server, client) == ("TLSv1.3", b"hello")
        else:
            with pytest.raises(ssl.SSLError):
                shaken(server, client)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_neither_end_speaks_what_is_older_than_1_2(pairs: dict[str, tuple[Path, Path]]) -> None:
    key, public = pairs["server"]
    for weak in (0, 1):
        ends = [server_context(public, key), client_context(public)]
        ends[weak].minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        ends[weak].maximum_version = ssl.TLSVersion.TLSv1_1
        assert ends[1 - weak].minimum_version == ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError):
            shaken(ends[0], ends[1])


def test_what_is_no_certificate_or_not_its_key_fails(pairs: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate")
    for name in ("text", "missing"):
        with pytest.raises(InvalidParameter, match=f"{name!r} is not there, or holds no certificate"):
            client_context(tmp_path / name)
    with pytest.raises(ssl.SSLError):
        server_context(pairs["server"][1], pairs["eve"][0])
