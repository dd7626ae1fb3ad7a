"""How a connection begins: encryption, the client's wishes, and a token as the password.

The token goes over the wire as it is, so it is asked for over TLS only; where the hub has no certificate, on loopback only (with
one, what comes over loopback in the clear may have come through somebody's tunnel). SCRAM, which never sends the password,
needs a salted verifier that was made when the password was set. Of a token only a plain digest is kept, from which no verifier
can be made; keeping one beside it would be one more thing to steal. TLS protects the token on its way.
"""

import asyncio
import ipaddress
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from cloister.pgwire import protocol
from cloister.pgwire.failures import Refused
from cloister.pgwire.variables import known


@dataclass(frozen=True, kw_only=True)
class Cancel:
    """Not a connection at all: another one is to give up what it does."""

    process: int
    secret: int


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """Who a client says it is, and what it sets."""

    user: str
    database: str
    settings: Mapping[str, str]


async def greet(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext | None, address: str
) -> Wishes | Cancel:
    """The first messages, up to the one that names the user."""
    encrypted = False
    for _ in range(3):
        code, data = await protocol.read_startup(reader)
        body = protocol.Body(data)
        if code == protocol.CANCEL:
            return Cancel(process=body.int32(), secret=body.oid())
        if code == protocol.TLS and context is not None and not encrypted:
            await _refuse_early_words(reader)
            writer.write(b"S")
            await writer.start_tls(context)
            encrypted = True
        elif code in (protocol.TLS, protocol.GSS):
            writer.write(b"N")
            await writer.drain()
        elif code >> 16 == protocol.VERSION_3:
            if not encrypted and (context is not None or not is_loopback(address)):
                raise Refused(
                    "The connection is not allowed",
                    why="it is not encrypted, and the token would travel in the clear",
                    instead="sslmode=require",
                    code="28000",
                    fatal=True,
                )
            return _wishes(body, writer, code & 0xFFFF)
        else:
            break
    raise protocol.breach("this version of the protocol is not spoken")


async def password(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """The token."""
    writer.write(protocol.ASK_PASSWORD)
    await writer.drain()
    letter, body = await protocol.read_message(reader, protocol.LARGEST_STARTUP)
    if letter != "p":
        raise protocol.breach("the password was expected")
    found = body.text()
    body.end()
    return found


def is_loopback(address: str) -> bool:
    """Whether nobody else's wire lies between.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("10.0.0.7"), is_loopback("")
    (True, True, False, False)
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def options_of(text: str) -> dict[str, str]:
    r"""The settings in the `options` of a client, as `PGOPTIONS="-c cloister.margins=on"` sends them.

    >>> options_of(r"-c cloister.purpose=a\ study --cloister.margins=on")
    {'cloister.purpose': 'a study', 'cloister.margins': 'on'}
    """
    parts = re.findall(r"(?:\\.|[^\s\\])+", text, flags=re.DOTALL)
    found, wants = {}, False
    for part in (re.sub(r"\\(.)", r"\1", each, flags=re.DOTALL) for each in parts):
        if part == "-c":
            wants = True
            continue
        given = part if wants else part[2:] if part.startswith(("-c", "--")) else ""
        name, equals, value = given.partition("=")
        if not equals:
            raise Refused(
                "The options are invalid",
                why="only -c name=value is understood",
                instead="-c cloister.margins=on",
                code="22023",
                fatal=True,
            )
        found[name.replace("-", "_")] = value
        wants = False
    return found


def _wishes(body: protocol.Body, writer: asyncio.StreamWriter, minor: int) -> Wishes:
    given: dict[str, str] = {}
    while name := body.text():
        given[name] = body.text()
    body.end()
    unknown = [name for name in given if name.startswith("_pq_.")]
    if minor or unknown:
        told = b"".join(map(protocol.text, unknown))
        writer.write(protocol.message("v", bytes([0, 3, 0, 0]) + len(unknown).to_bytes(4, "big") + told))
    user = given.get("user", "")
    if not user:
        raise Refused("You could not be signed in", why="no user was named", instead="user=ada", code="28000", fatal=True)
    settings = {name: value for name, value in given.items() if known(name)}
    settings |= options_of(given.get("options", ""))
    return Wishes(user=user, database=given.get("database") or user, settings=settings)


async def _refuse_early_words(reader: asyncio.StreamReader) -> None:
    """Bytes that came before the handshake were not protected by it, and would be taken for words that were."""
    early = asyncio.ensure_future(reader.read(1))
    await asyncio.sleep(0)
    if early.done() and early.result():
        raise protocol.breach("words came before the encryption that they asked for")
    early.cancel()
    await asyncio.wait([early])
