"""TLS for both ends: no version before 1.2, and a certificate is checked wherever one is asked for.

A context opens no connection; that is for whoever holds a socket. What a file of a server holds that is no certificate, or no
key, fails as `ssl.SSLError` or `OSError`: only the caller knows by which name its user gave the file.
"""

import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from cloister.errors import InvalidParameter


def client_context(authority: str | Path | None = None) -> ssl.SSLContext:
    """For a client: the server's certificate and name are checked, against the authorities in that file (PEM) or, without one,
    against those of this system.

    >>> client_context().verify_mode.name, client_context().check_hostname
    ('CERT_REQUIRED', True)
    """
    try:
        context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    except OSError:
        why = f"{Path(authority or '').name!r} is not there, or holds no certificate in PEM"
        raise InvalidParameter("The authority is invalid", why=why, instead="the PEM file of who signed the server's") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def server_context(certificate: str | Path, key: str | Path, client_authority: str | Path | None = None) -> ssl.SSLContext:
    """For a server, with its certificate and key (PEM); with `client_authority`, a client without a certificate of that authority
    is refused in the handshake.

    >>> server_context("server.crt", "server.key")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    if client_authority:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_authority)
    return context


def valid_now(path: str | Path) -> bool:
    """Whether the days of the first certificate of a PEM file include today; so too where its form is not read here."""
    try:
        own = x509.load_pem_x509_certificates(Path(path).read_bytes())[0]
    except ValueError:
        return True
    return own.not_valid_before_utc <= datetime.now(UTC) <= own.not_valid_after_utc
