"""How connections begin: encryption, log-in, wishes, cancel."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import struct
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import cloister as cl
from cloister.pgwire import Backend, Limits, PgSession
from cloister.pgwire import startup as beginnings
from tests.pgwire.conftest import TOKEN, Running, Start
from tests.pgwire.raw import Raw, error, fields, letters, message, rows, startup, text

TLS = struct.pack("!ii", 8, 80877103)
GSS = struct.pack("!ii", 8, 80877104)


@pytest.fixture
def context(tmp_path: Path) -> ssl.SSLContext:
    """A certificate for 127.0.0.1 that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
    certificate = builder.add_extension(alternative, critical=False).sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (tmp_path / "key.pem").write_bytes(pem)
    (tmp_path / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    return found


def test_tls_with_a_certificate_that_is_checked(start: Start, context: ssl.SSLContext, tmp_path: Path) -> None:
    running = start(context=context)
    with running.connect(sslmode="verify-full", sslrootcert=str(tmp_path / "certificate.pem")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SHOW ssl").fetchone() == ("on",)


def test_without_a_certificate_tls_is_declined_and_libpq_that_wants_it_goes(running: Running) -> None:
    with running.connect(sslmode="prefer") as connection:
        assert not connection.pgconn.ssl_in_use
    with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
        running.connect(sslmode="require")


def test_with_a_certificate_plain_text_is_refused_from_this_machine_too(start: Start, context: ssl.SSLContext) -> None:
    """What comes over loopback in the clear may be somebody's tunnel; a client that prefers TLS gets it."""
    running = start(context=context)
    with pytest.raises(psycopg.OperationalError, match="not encrypted"):
        running.connect(sslmode="disable")
    with running.connect(sslmode="prefer") as connection:
        assert connection.pgconn.ssl_in_use
    with Raw(running.port) as raw:
        raw.send(startup(user="ada"))
        letter, body = raw.read()
        assert (letter, fields(body)["C"]) == ("E", "28000")
        assert raw.ended()


def test_plain_text_from_elsewhere_is_refused_before_the_token_is_asked_for(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginnings, "is_loopback", lambda _: False)
    with Raw(running.port) as raw:
        raw.send(startup(user="ada"))
        letter, body = raw.read()
        assert (letter, fields(body)["C"]) == ("E", "28000")
        assert fields(body)["H"] == "sslmode=require"
        assert raw.ended()


def test_words_before_the_handshake_are_refused(start: Start, context: ssl.SSLContext) -> None:
    with Raw(start(context=context).port) as raw:
        raw.send(TLS + startup(user="ada"))
        assert raw.exactly(1) == b"E"


def test_gss_is_declined_and_the_connection_goes_on(running: Running) -> None:
    with Raw(running.port) as raw:
        raw.send(GSS)
        assert raw.exactly(1) == b"N"
        raw.send(TLS)
        assert raw.exactly(1) == b"N"
        raw.log_in()
        assert rows(raw.query("SELECT 1")) == [[b"1"]]


@pytest.mark.parametrize(("user", "token"), [("ada", "wrong"), ("nobody", TOKEN), ("ada", ""), ("eve", TOKEN)])
def test_every_wrong_log_in_is_refused_in_the_same_words(running: Running, user: str, token: str) -> None:
    with Raw(running.port) as raw:
        raw.send(startup(user=user), message("p", text(token)))
        assert raw.read()[0] == "R"
        letter, body = raw.read()
        assert letter == "E"
        assert fields(body) == {
            "S": "FATAL",
            "V": "FATAL",
            "C": "28P01",
            "M": "You could not be signed in: the name or the token is wrong",
            "H": "an API token as password",
        }
        assert raw.ended()


def test_wishes_of_the_client(running: Running) -> None:
    with running.connect(application_name="a test", options=r"-c cloister.purpose=a\ study --cloister.margins=on") as connection:
        assert connection.execute("SHOW cloister.purpose").fetchone() == ("a study",)
        assert connection.execute("SHOW cloister.margins").fetchone() == ("on",)
        assert connection.execute("SELECT current_setting('application_name')").fetchone() == ("a test",)
        assert connection.info.parameter_status("server_version") == "15.0"
        assert connection.info.parameter_status("TimeZone") == "UTC"
        connection.execute("SET application_name = 'another'")
        assert connection.info.parameter_status("application_name") == "another"
    with pytest.raises(psycopg.OperationalError, match="nosuch"):
        running.connect(options="-c nosuch=1")


def test_a_newer_minor_version_is_told_of_ours(running: Running) -> None:
    body = struct.pack("!i", 196610) + text("user") + text("ada") + text("_pq_.future") + text("1") + b"\0"
    with Raw(running.port) as raw:
        raw.send(struct.pack("!i", len(body) + 4) + body)
        assert raw.read() == ("v", struct.pack("!ii", 196608, 1) + text("_pq_.future"))
        assert raw.read()[0] == "R"


class Waiting:
    """A backend whose questions wait until they are let go."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.asked, self.go, self.closed = backend, threading.Event(), threading.Event(), threading.Event()

    def login(self, user: str, token: str, address: str) -> PgSession:
        session: Any = self.backend.login(user, token, address)
        ask, close = session.ask, session.close

        def waited(*given: Any, **how: Any) -> cl.Release:
            self.asked.set()
            self.go.wait(60)
            found: cl.Release = ask(*given, **how)
            return found

        def closed() -> None:
            close()
            self.closed.set()

        session.ask, session.close = waited, closed
        found: PgSession = session
        return found


def waiting(start: Start, limits: Limits | None = None) -> tuple[Running, Waiting]:
    """A front before a backend that waits."""
    found: list[Waiting] = []

    def wrap(backend: Backend) -> Backend:
        found.append(Waiting(backend))
        return found[0]

    return start(limits, wrap), found[0]


def test_cancel_gives_up_on_a_question_whose_charge_stands(start: Start) -> None:
    running, backend = waiting(start)
    with Raw(running.port).log_in() as raw:
        raw.query("SET cloister.spend = 1")
        raw.send(message("Q", text("SELECT COUNT(*) FROM people")))
        assert backend.asked.wait(30)
        process, secret = raw.key
        with Raw(running.port) as wrong:
            wrong.send(struct.pack("!iiiI", 16, 80877102, process, secret ^ 1))
            assert wrong.ended()
        with Raw(running.port) as right:
            right.send(struct.pack("!iiiI", 16, 80877102, process, secret))
            assert right.ended()
        assert error(raw.until())["C"] == "57014"
        backend.go.set()
        assert letters(raw.query("SELECT COUNT(*) FROM people")) == "TDCZ"
    assert running.charges == 1


def test_a_statement_that_takes_too_long_ends_and_others_go_on_meanwhile(start: Start) -> None:
    running, backend = waiting(start)
    with Raw(running.port).log_in() as raw, running.connect() as other:
        raw.query("SET cloister.spend = 1; SET statement_timeout = '200ms'")
        raw.send(message("Q", text("SELECT COUNT(*) FROM people")))
        assert backend.asked.wait(30)
        assert other.execute("SELECT 1").fetchone() == (1,)
        assert error(raw.until())["C"] == "57014"
        backend.go.set()


def test_a_client_that_leaves_is_charged_and_its_session_closed_afterwards(start: Start) -> None:
    running, backend = waiting(start)
    raw = Raw(running.port).log_in()
    raw.query("SET cloister.spend = 1; SET statement_timeout = '200ms'")
    raw.send(message("Q", text("SELECT COUNT(*) FROM people")))
    assert backend.asked.wait(30)
    raw.socket.shutdown(socket.SHUT_RDWR)
    raw.socket.close()
    assert not backend.closed.is_set()
    backend.go.set()
    assert backend.closed.wait(30)
    assert running.charges == 1


def test_what_costs_nothing_is_answered_before_a_goodbye_that_is_sent_with_it(running: Running) -> None:
    with Raw(running.port).log_in() as raw:
        raw.send(message("Q", text("SELECT 1; SHOW server_version; SELECT COUNT(*) FROM pg_class")), message("X"))
        assert letters(raw.until()) == "TDCTDCTDCZ"


@pytest.mark.parametrize("last", [b"", message("X")], ids=["falls silent", "says goodbye"])
def test_what_a_client_that_has_gone_still_waited_for_is_never_asked(start: Start, last: bytes) -> None:
    running, backend = waiting(start, Limits(askers=1))
    with Raw(running.port).log_in() as first:
        first.query("SET cloister.spend = 1")
        first.send(message("Q", text("SELECT COUNT(*) FROM people")))
        assert backend.asked.wait(30)
        second = Raw(running.port).log_in()
        second.query("SET cloister.spend = 1")
        second.send(message("Q", text("SELECT SUM(age) FROM people")), last)
        second.socket.shutdown(socket.SHUT_RDWR)
        second.socket.close()
        assert backend.closed.wait(30), "its session ends although the other's question goes on"
        backend.go.set()
        assert letters(first.until()) == "TDCZ"
    assert running.charges == 1
