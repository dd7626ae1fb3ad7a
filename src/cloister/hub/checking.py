"""What a setting's value may be: numbers that a hub can work with, names and addresses that are some, files that hold what they
should, and a folder that nobody else reads.

`faults_of` asks about each value by itself, `weaknesses` about what choices mean together too.
"""

import base64
import binascii
import ipaddress
import re
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cloister.crypto.tls import valid_now
from cloister.errors import InvalidParameter
from cloister.hub.settings import Settings, is_loopback, listed
from cloister.hub.web.languages import N_
from cloister.installed import install, lacking
from cloister.privacy import exact


@dataclass(frozen=True, kw_only=True)
class Weakness:
    """What is wrong with a value or a choice, or weak about it."""

    name: str
    why: str
    instead: str
    grave: bool = True

    def __str__(self) -> str:
        return f"{'wrong' if self.grave else 'weak'}: {self.name}: {self.why}.\n  Instead: {self.instead}"


@dataclass(frozen=True)
class _Whole:
    """The whole numbers that a setting may have: outside of them a hub can't work; beyond `odd` it can, but should not."""

    name: str
    least: int
    most: int
    few: str
    many: str
    example: int
    odd: int | None = field(default=None, kw_only=True)
    oddly: str = field(default="", kw_only=True)


_READERS = ("postgres", "spark")
"""The extras of which each reads a kind of database."""
_OFFERED = {
    "learn": N_("nobody can train a model or make a projection: what learning needs is not installed"),
    "anonymize": N_("nobody can anonymise a table, or download rows as Parquet: what that needs is not installed"),
    "files": N_("workbooks and files of statistics packages can't be uploaded: what reads them is not installed"),
    "guests": N_("no algorithm of pure Python runs near rows: what runs it is not installed"),
    "together": N_("sites can't learn jointly from exact sums: what their encryption needs is not installed"),
}
"""What a hub does not offer without an extra."""
_NO_PORT = N_("ports are numbers from 1 to 65535")
_LONG = N_("a limit of more than a hundred years limits nothing")
_AT_ONCE = N_("a session would end at once")
_NUMBERS = (
    _Whole("port", 1, 65535, _NO_PORT, _NO_PORT, 8765),
    _Whole("pg_port", 0, 65535, _NO_PORT, _NO_PORT, 5433),
    _Whole(
        name="session_hours",
        least=1,
        most=876_000,
        few=_AT_ONCE,
        many=_LONG,
        example=12,
        odd=744,
        oddly=N_("someone who takes over a session has it for more than a month"),
    ),
    _Whole("idle_minutes", 1, 52_560_000, _AT_ONCE, _LONG, 60),
    _Whole(
        name="token_days",
        least=1,
        most=36_500,
        few=N_("an API token would expire at once"),
        many=_LONG,
        example=90,
        odd=366,
        oddly=N_("a stolen API token stays valid for more than a year"),
    ),
    _Whole("asking", 1, 1000, N_("no query would ever run"), N_("a process has no more than 1000 connections"), 16),
    _Whole("prepared", 1, 100_000, N_("no data set could be queried"), N_("each takes memory for an engine of its own"), 64),
    _Whole("workers", 0, 1000, N_("there is no such number of jobs"), N_("a process can't run more than 1000 jobs at once"), 1),
    _Whole("upload_megabytes", 1, 2**20, N_("no file could be uploaded"), N_("more than a terabyte is taken by no upload"), 2048),
    _Whole(
        name="tick_ms",
        least=1,
        most=10_000,
        few=N_("without ticks the time of an answer may tell of rows"),
        many=N_("every answer would wait for more than ten seconds"),
        example=10,
        odd=1000,
        oddly=N_("every answer may wait for more than a second"),
    ),
)
_LEVELS = ("debug", "info", "warning", "error")
_MEMORY = re.compile(r"[0-9]+(\.[0-9]+)?\s*(k|m|g|t|kb|mb|gb|tb|kib|mib|gib|tib)", re.IGNORECASE)
_LEAST_MEMORY = 32 * 2**20
_KEY_HOLDER = re.compile(r"\s*\S.* [0-9a-fA-F]{128}\s*")
_DOCS = re.compile(r"https?://[^\s\"'<>?#]+")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9.])?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")
_KEY_BYTES = 32
_KEY_BACK = "the key from your key backup; of a new hub: cloister hub key > master.key"
_OTHERS = 0o077
_KEPT = ("hub.db", "ledger.db", "master.key")


def weaknesses(settings: Settings) -> list[Weakness]:
    """What is wrong or weak, the grave first; empty for a hub that is in order.

    >>> [weak.name for weak in weaknesses(Settings(data=Path("hub"), host="0.0.0.0", address="http://hub.example.org"))]
    ['certificate', 'second_factor']
    """
    found: list[Weakness] = []

    def weak(name: str, why: str, instead: str, *, grave: bool = False) -> None:
        found.append(Weakness(name=name, grave=grave, why=why, instead=instead))

    if not is_loopback(settings.host) and not settings.secure:
        weak("certificate", "people would reach the hub over plain HTTP", "certificate = and certificate_key =", grave=True)
    if bool(settings.certificate) != bool(settings.certificate_key):
        weak("certificate_key", "a certificate and its key go together", "both, or neither", grave=True)
    for name in ("certificate", "certificate_key", "client_authority", "master_key_file", "mqtt_authority"):
        value = getattr(settings, name)
        if value and not Path(value).is_file():
            weak(name, "there is no such file", f'{name} = "/path/to/file.pem"', grave=True)
    if settings.secure and not settings.certificate and not settings.proxies.strip():
        why = "TLS ends at a proxy that is not named, so that everybody seems to come from the proxy's address"
        weak("proxies", why, 'proxies = "127.0.0.1"', grave=True)
    for name in ("database", "ledger"):
        value = getattr(settings, name)
        if value and _parts(value, hosts=True).scheme != "postgresql":
            weak(name, "it is not a PostgreSQL address", f'{name} = "postgresql://hub@db.example.org/hub"', grave=True)
        elif value and "sslmode=verify-full" not in value and not is_loopback(_parts(value, hosts=True).hostname or "localhost"):
            weak(name, "its certificate is not checked", "…?sslmode=verify-full", grave=False)
    if bool(settings.database) != bool(settings.ledger):
        weak("ledger", "one of hub and ledger is on PostgreSQL and the other in the folder", "both, for several processes")
    if settings.second_factor not in ("optional", "owners", "everyone"):
        weak("second_factor", "it is not one of the three choices", 'second_factor = "owners"', grave=True)
    elif settings.second_factor == "optional" and not is_loopback(settings.host):
        weak("second_factor", "a stolen password of an owner is enough to raise a budget", 'second_factor = "owners"')
    if settings.password_length < 12:
        weak("password_length", "short passwords are guessed", "password_length = 12", grave=settings.password_length < 8)
    if settings.oidc_issuer and not _reached_safely(settings.oidc_issuer):
        weak("oidc_issuer", "it is not reached by https", 'oidc_issuer = "https://login.example.org"', grave=True)
    if settings.oidc_issuer and not settings.oidc_client:
        weak("oidc_client", "the identity provider asks which hub this is", 'oidc_client = "cloister"', grave=True)
    if {"administrator", "steward"} & {*listed(settings.oidc_roles)}:
        weak("oidc_roles", "everyone whom the identity provider knows would govern the hub", 'oidc_roles = "analyst"', grave=True)
    found += faults_of(settings)
    if settings.master_key and not any(each.name == "master_key" for each in found):
        weak("master_key", "an environment is seen by every program of its user", "master_key_file = a mounted secret")
    if settings.pg_port and not settings.certificate and not is_loopback(settings.host):
        weak("pg_port", "tokens would cross the network in the clear", "certificate =", grave=True)
    if not _is_number(settings.survey_cap, lambda cap: cap > 0):
        weak("survey_cap", "it is not a number above 0", 'survey_cap = "20"', grave=True)
    if not _is_number(settings.max_delta, lambda delta: 0 <= delta < 1):
        weak("delta_floor", "it is not a number from 0 to less than 1", 'delta_floor = "1e-5"', grave=True)
    if settings.survey_hourly < 0:
        weak("survey_hourly", "it is not a number of reports", "survey_hourly = 600", grave=True)
    if not known_zone(settings.zone):
        weak("zone", "there is no such time zone", 'zone = "Europe/Lisbon"', grave=True)
    return sorted(found, key=lambda each: not each.grave)


def unoffered() -> list[Weakness]:
    """What this hub does not offer, for want of an extra: told where somebody checks it, since it may be meant so."""
    wanting = ((extra, why) for extra, why in _OFFERED.items() if lacking(extra))
    return [Weakness(name=extra, why=why, instead=install(extra), grave=False) for extra, why in wanting]


def _is_number(text: str, fits: Callable[[Fraction], bool]) -> bool:
    try:
        return fits(exact(text))
    except InvalidParameter:
        return False


def known_zone(name: str) -> bool:
    """Whether a time zone has this name.

    >>> known_zone("Europe/Lisbon"), known_zone("Lisbon"), known_zone("")
    (True, False, False)
    """
    try:
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return False
    return True


def _parts(address: str, *, hosts: bool = False) -> SplitResult:
    """Those of an address, perhaps of several hosts with a port each; of one that can't be read (half of an IPv6 address, a port
    that is not a number) those of nothing."""
    try:
        parts = urlsplit(address)
        return parts if hosts or parts.port != 0 else urlsplit("")
    except ValueError:
        return urlsplit("")


def _reached_safely(address: str) -> bool:
    parts = _parts(address)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def faults_of(settings: Settings) -> Iterator[Weakness]:
    """Each value that a hub can't work with, or should not have.

    >>> from cloister.hub.settings import Settings
    >>> [(fault.name, fault.why) for fault in faults_of(Settings(data=Path("hub"), port=99999))]
    [('port', '99999 is not a port: ports are numbers from 1 to 65535')]
    """
    for each in _NUMBERS:
        yield from _number(each, getattr(settings, each.name))
    if settings.pg_port and settings.pg_port == settings.port:
        yield Weakness(name="pg_port", why="pages and PostgreSQL clients can't come in by one port", instead="pg_port = 5433")
    yield from _texts(settings)
    yield from _names(settings)
    yield from _files(settings)
    yield from _folder(settings.data)


def _number(known: _Whole, value: int) -> Iterator[Weakness]:
    instead = f"{known.name} = {known.example}"
    if not known.least <= value <= known.most:
        why = known.few if value < known.least else known.many
        yield Weakness(name=known.name, why=f"{value} is not a port: {why}" if why == _NO_PORT else why, instead=instead)
    elif known.odd is not None and value > known.odd:
        yield Weakness(name=known.name, why=known.oddly, instead=instead, grave=False)


def _texts(settings: Settings) -> Iterator[Weakness]:
    """Values that have a form of their own."""
    memory = settings.memory.strip()
    if _MEMORY.fullmatch(memory) is None:
        yield Weakness(name="memory", why=f"{settings.memory!r} is not an amount of memory", instead='memory = "1GiB"')
    elif _bytes(memory) < _LEAST_MEMORY:
        yield Weakness(name="memory", why="no engine works with less than 32 MiB", instead='memory = "1GiB"')
    if settings.log_level not in _LEVELS:
        why = f"{settings.log_level!r} is not one of {', '.join(_LEVELS)}"
        yield Weakness(name="log_level", why=why, instead='log_level = "info"')
    if settings.key_holder and _KEY_HOLDER.fullmatch(settings.key_holder) is None:
        why = "it is not a name, a space and a public key of 128 hexadecimal digits"
        yield Weakness(name="key_holder", why=why, instead='key_holder = "NAME DIGITS", as cloister csp show prints them')


def _names(settings: Settings) -> Iterator[Weakness]:
    """Addresses, hosts and roles."""
    if settings.address and not _is_origin(settings.address):
        why = f"{settings.address!r} is not an address of a hub: https:// or http://, a host, perhaps a port, and nothing more"
        yield Weakness(name="address", why=why, instead='address = "https://hub.example.org"')
    if settings.docs and _DOCS.fullmatch(settings.docs) is None:
        why = f"{settings.docs!r} is not an address that pages can link to: https:// or http://, and no query"
        yield Weakness(name="docs", why=why, instead='docs = "https://docs.example.org"')
    for host in listed(settings.hosts):
        if _HOST.fullmatch(host) is None:
            why = f"{host!r} is not a host name; an address or a port is not part of it"
            yield Weakness(name="hosts", why=why, instead='hosts = "hub.internal"')
            break
    for proxy in listed(settings.proxies):
        network = _network(proxy)
        if network is None:
            why = f"{proxy!r} is not an IP address or network"
            yield Weakness(name="proxies", why=why, instead='proxies = "127.0.0.1"')
            break
        if network.prefixlen == 0:
            why = "every client would be believed about its own address"
            yield Weakness(name="proxies", why=why, instead='proxies = "127.0.0.1"', grave=False)
            break
    yield from _sources(settings)
    yield from _broker(settings.mqtt)
    from cloister.hub.decisions.policy.actions import OFFERED_ROLES, ROLES

    for role in listed(settings.oidc_roles):
        if role not in ROLES:
            why = f"{role!r} is not a role; the roles are {', '.join(OFFERED_ROLES)}"
            yield Weakness(name="oidc_roles", why=why, instead='oidc_roles = "analyst"')
            break


def _sources(settings: Settings) -> Iterator[Weakness]:
    if not settings.sources.strip():
        return
    from cloister.hub.storage.allowed import Allowed

    for source in listed(settings.sources):
        try:
            Allowed.read(source)
        except InvalidParameter:
            why = f"{source!r} is not host:port or host:port@network"
            yield Weakness(name="sources", why=why, instead='sources = "db.example.org:5432"')
            return
    if all(lacking(extra) for extra in _READERS):
        why = "no database can be read: neither psycopg is installed nor pyspark with what Spark Connect needs"
        instead = " or ".join(install(extra) for extra in _READERS)
        yield Weakness(name="sources", why=why, instead=instead, grave=False)


def _broker(address: str) -> Iterator[Weakness]:
    if not address:
        return
    place = _parts(address)
    example = 'mqtt = "mqtts://hub:password@broker.example.org:8883"'
    if not place.hostname or place.scheme not in ("mqtt", "mqtts") or {"+", "#"} & {*place.path}:
        yield Weakness(name="mqtt", why="it is not the address of a broker", instead=example)
    elif place.scheme == "mqtt" and not is_loopback(place.hostname or ""):
        yield Weakness(name="mqtt", why="readings and keys of devices would cross the network in the clear", instead=example)
    elif lacking("mqtt"):
        yield Weakness(name="mqtt", why="the client for MQTT is not installed", instead=install("mqtt"))


def _files(settings: Settings) -> Iterator[Weakness]:
    """What is in the files that are named; that they are there is asked elsewhere."""
    certificate, key = settings.certificate, settings.certificate_key
    for name in ("certificate", "client_authority", "source_authorities", "mqtt_authority"):
        value = getattr(settings, name)
        if not value:
            continue
        if name == "source_authorities" and not Path(value).is_file():
            yield Weakness(name=name, why="there is no such file", instead=f'{name} = "/path/to/file.pem"')
        elif Path(value).is_file():
            why = _why_not(lambda value=value: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cafile=value))  # type: ignore[misc]
            if why:
                why = why if why == _UNREADABLE else "the file holds no certificate in PEM"
                yield Weakness(name=name, why=why, instead=f'{name} = "/path/to/certificate.pem"')
                certificate = "" if name == "certificate" else certificate
            elif name == "certificate" and not valid_now(value):
                why = "it has expired, or is valid only later by this machine's clock: browsers and clients refuse it"
                yield Weakness(name=name, why=why, instead="a new one in its place; then start the hub again", grave=False)
    if certificate and key and Path(certificate).is_file() and Path(key).is_file():
        why = _why_not(lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: b""))
        if why:
            why = why if why == _UNREADABLE else "the file holds no key in PEM without a password that belongs to the certificate"
            yield Weakness(name="certificate_key", why=why, instead='certificate_key = "/path/to/key.pem"')
    yield from _master_key(settings)


def _master_key(settings: Settings) -> Iterator[Weakness]:
    """A key that is none: what it locked can't be read by it."""
    name = "master_key_file" if settings.master_key_file and not settings.master_key else "master_key"
    path = Path(settings.master_key_file) if settings.master_key_file else settings.path("master.key")
    text, where = settings.master_key.encode(), name
    if not text:
        if not path.is_file():
            return
        where = path.name
        try:
            text = path.read_bytes()
        except OSError:
            yield Weakness(name=name, why=f"{path.name} can't be read by this user", instead=f"chmod u+r {path}")
            return
    try:
        size = len(base64.b64decode(text.strip(), validate=True))
    except (binascii.Error, ValueError):
        yield Weakness(name=name, why=f"{where} is not base64", instead=_KEY_BACK)
        return
    if size != _KEY_BYTES:
        why = f"{where} is {size} bytes long, and a master key is {_KEY_BYTES}"
        yield Weakness(name=name, why=why, instead=_KEY_BACK)


def _folder(data: Path) -> Iterator[Weakness]:
    """Whether other users of this machine can read what is in it."""
    try:
        mode = data.stat().st_mode & 0o777
    except OSError:
        return
    if mode & _OTHERS:
        why = f"other users of this machine may look into the folder {data.name} (its mode is {mode:04o})"
        yield Weakness(name="data", why=why, instead=f"chmod 700 {data}", grave=False)
    for name in _KEPT:
        try:
            mode = (data / name).stat().st_mode & 0o777
        except OSError:
            continue
        if mode & _OTHERS:
            why = f"other users of this machine may read {name} (its mode is {mode:04o})"
            yield Weakness(name="data", why=why, instead=f"chmod 600 {data / name}", grave=False)


_UNREADABLE = N_("the file can't be read by this user")


def _why_not(read: Callable[[], None]) -> str:
    """Why a file was not taken; empty where it was."""
    try:
        read()
    except (ssl.SSLError, ValueError) as error:
        return str(error) or "it was not taken"
    except OSError:
        return _UNREADABLE
    return ""


def _bytes(memory: str) -> float:
    """What an amount of memory is, by its letter; thousands and 1024s are alike here."""
    number = re.match(r"[0-9.]+", memory)
    assert number is not None
    letter = memory[number.end() :].strip()[0].lower()
    return float(number[0]) * 1024.0 ** " kmgt".index(letter)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _is_origin(address: str) -> bool:
    """Whether links can be made of it, and browsers tell it as the place that a form comes from."""
    parts = _parts(address)
    rest = (parts.path.strip("/"), parts.query, parts.fragment, parts.username or "", parts.password or "")
    return parts.scheme in ("http", "https") and _HOST.fullmatch(parts.hostname or "") is not None and not any(rest)
