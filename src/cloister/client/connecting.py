"""Opening a session with a hub: where it is, who asks, and how both prove it."""

import ipaddress
import os
import ssl
import time
from pathlib import Path

import httpx

from cloister.client.session import RemoteSession
from cloister.client.transport import Transport
from cloister.crypto import client_context
from cloister.errors import InvalidParameter

TOKEN = "CLOISTER_TOKEN"  # noqa: S105  (the name of a variable)
_CONNECT_SECONDS = 10.0
_CONNECTIONS = 32


def connect(
    url: str,
    *,
    token: str | None = None,
    verify: str | Path | bool = True,
    certificate: str | Path | tuple[str | Path, str | Path] | None = None,
    timeout: float = 600.0,
    project: str = "",
    purpose: str = "",
    algorithm: str = "",
) -> RemoteSession:
    """A session whose questions a hub answers.

    Parameters
    ----------
    url
        Where people reach the hub, as https://hub.example.org. Plain http is for a hub on this machine alone.
    token
        An API token, made at /account/tokens; without it, the environment variable CLOISTER_TOKEN.
    verify
        True: the hub's certificate is checked against the authorities of this system; a path: against those of that file (PEM).
    certificate
        For a hub that asks clients for one: the file with certificate and key, or both files.
    timeout
        How many seconds an answer may take.
    project, purpose
        What questions are asked in (a project's name, or its id) and for, unless they say otherwise.
    algorithm
        The algorithm of the hub, by name or id, under which all is asked and learnt: it says what that may be.

    >>> connect("http://hub.example.org", token="clo_secret")
    Traceback (most recent call last):
    ...
    cloister.errors.InvalidParameter: The address of the hub is invalid: plain http would show the token to the network.
      Instead: cloister.connect("https://hub.example.org")
    >>> connect("https://hub.example.org", token="clo_secret")
    <RemoteSession: https://hub.example.org>
    """
    address = checked_address(url)
    known = os.environ.get(TOKEN, "") if token is None else token
    if not isinstance(known, str) or not known or not known.isascii() or not known.isprintable() or " " in known:
        raise InvalidParameter(
            "The session was not opened",
            why="no API token was given" if not known else "no hub gives such a token",
            instead=f'token="clo_…", from {address}/account/tokens, or the environment variable {TOKEN}',
        )
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 1e6:
        raise InvalidParameter(f"timeout={timeout!r} is invalid", why="it must be seconds, more than 0", instead="timeout=600")
    secure = address.startswith("https:")
    client = httpx.Client(
        base_url=address,
        headers={"Authorization": f"Bearer {known}", "Accept": "application/json"},
        verify=_context(verify, certificate) if secure else False,
        timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
        limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
        follow_redirects=False,
        trust_env=secure,
    )
    transport = Transport(client, timeout=timeout, now=time.monotonic)
    return RemoteSession(transport, project=project, purpose=purpose, algorithm=algorithm)


def checked_address(url: str) -> str:
    """The address of a hub, without a slash at its end; one over which a token would be seen is refused.

    >>> checked_address("https://hub.example.org/"), checked_address("http://127.0.0.1:8765")
    ('https://hub.example.org', 'http://127.0.0.1:8765')
    """
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, TypeError, ValueError):
        raise _no_address() from None
    if found.scheme not in ("http", "https") or not found.host or found.userinfo or found.query or found.fragment:
        raise _no_address()
    if found.scheme == "http" and not _loopback(found.host):
        raise InvalidParameter(
            "The address of the hub is invalid",
            why="plain http would show the token to the network",
            instead=f'cloister.connect("https://{found.netloc.decode()}")',
        )
    return str(found).rstrip("/")


def _context(verify: str | Path | bool, certificate: str | Path | tuple[str | Path, str | Path] | None) -> ssl.SSLContext:
    if verify is False:
        raise InvalidParameter(
            "verify=False is invalid",
            why="anyone in between would get the token",
            instead='verify="authority.pem", the authority that signed the hub\'s certificate',
        )
    context = client_context(None if verify is True else verify)
    if certificate is not None:
        files = certificate if isinstance(certificate, tuple) else (certificate, None)
        try:
            context.load_cert_chain(*(None if file is None else str(file) for file in files))  # type: ignore[arg-type]
        except (OSError, ssl.SSLError):
            raise InvalidParameter(
                "The client's certificate is invalid",
                why="its files cannot be read, or do not belong together",
                instead='certificate=("client.pem", "client-key.pem")',
            ) from None
    return context


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _no_address() -> InvalidParameter:
    return InvalidParameter(
        "The address of the hub is invalid",
        why="it is not an http:// or https:// address",
        instead='cloister.connect("https://hub.example.org")',
    )
