"""What an institution sets: from a file, then from the environment, each name in one place with its meaning.

The file is `hub.toml` in the hub's folder (or `--settings FILE`); the variable of `session_hours` is CLOISTER_HUB_SESSION_HOURS,
and the environment wins over the file. A name that is not known is refused. `checking.weaknesses` says what is
odd or weak about a choice.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from cloister.errors import InvalidParameter
from cloister.parsers import toml_in
from cloister.stored import Stored

PREFIX = "CLOISTER_HUB_"
_KNOWN_PORT = re.compile(r"^(http://.+):(?:0*80)?$|^(https://.+):(?:0*443)?$")


def _set(default: Any, about: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"about": about, "secret": secret}, repr=not secret)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set. Each field's `about` is its line in the documentation.

    >>> Settings(data=Path("hub")).port
    8765
    """

    data: Path = field(metadata={"about": "The folder of everything in this hub; never set in a file.", "secret": False})
    title: str = _set("cloister", "The hub's name, on every page.")
    institution: str = _set("", "The institution that runs it.")
    host: str = _set("127.0.0.1", "The address to listen on.")
    port: int = _set(8765, "The port to listen on.")
    address: str = _set("", "The public address, as https://hub.example.org; links and the check of origins use it.")
    database: str = _set("", "postgresql://… of the hub's own database; empty: SQLite in the folder.", secret=True)
    ledger: str = _set("", "postgresql://… of the ledger; empty: SQLite in the folder.", secret=True)
    master_key: str = _set("", "The master key in base64; empty: the file master.key in the folder.", secret=True)
    master_key_file: str = _set("", "Another place for the file of the master key, such as a mounted secret.")
    certificate: str = _set("", "The TLS certificate (PEM); empty: plain HTTP, for loopback or behind a proxy that ends TLS.")
    certificate_key: str = _set("", "The key of the TLS certificate (PEM).")
    client_authority: str = _set("", "Accept only clients with a certificate of this authority (PEM): mutual TLS.")
    hosts: str = _set("", "Further names that a request's Host may have, separated by commas; other names are denied.")
    proxies: str = _set(
        "", "Addresses of proxies whose X-Forwarded-For is believed, separated by commas; `address` says whether TLS ends there."
    )
    session_hours: int = _set(12, "How long a session lasts.")
    idle_minutes: int = _set(60, "How long an unused session lasts.")
    token_days: int = _set(90, "How long an API token may last at most.")
    second_factor: str = _set("optional", "optional, owners (owners, stewards, administrators) or everyone.")
    password_length: int = _set(12, "The least length of a password.")
    oidc_issuer: str = _set("", "The identity provider for single sign-on; empty: none.")
    oidc_client: str = _set("", "The hub's name at the identity provider.")
    oidc_secret: str = _set("", "The hub's secret at the identity provider.", secret=True)
    oidc_roles: str = _set("analyst", "The roles of a person who first signs in by single sign-on, separated by commas.")
    pg_port: int = _set(0, "The port for PostgreSQL clients; 0: none.")
    tick_ms: int = _set(10, "Answers leave at multiples of so many milliseconds.")
    upload_megabytes: int = _set(2048, "The largest upload.")
    sources: str = _set(
        "",
        "PostgreSQL and Spark Connect servers that data sets may be registered from, as host:port, separated by commas;"
        " empty: none.",
    )
    source_authorities: str = _set("", "The authority for the certificates of those servers (PEM); empty: the system.")
    max_delta: str = _set("1e-5", "The largest δ that a budget, a share or all releases of a population may come to.")
    survey_cap: str = _set("20", "The largest ε that all answers of one respondent to a survey may add up to.")
    survey_hourly: int = _set(600, "How many reports one network may send to an open survey in an hour; 0: any number.")
    mqtt: str = _set(
        "",
        "The MQTT 5 broker of streams, as mqtts://hub:password@broker.example.org:8883/cloister, whose last part is what topics"
        " begin with, in one process of the hub that runs jobs; empty: none.",
        secret=True,
    )
    mqtt_authority: str = _set("", "The authority for the broker's certificate (PEM); empty: the system.")
    workers: int = _set(1, "How many jobs run at once in the hub's own process; 0: only `cloister worker` processes run them.")
    asking: int = _set(16, "How many queries run at once in a process.")
    docs: str = _set(
        "", "Where this documentation is read, as https://docs.example.org; empty: help links lead to the hub's own page of help."
    )
    key_holder: str = _set(
        "", "The key holder of exact joint results: its name, a space, its public key (128 digits); empty: none are made."
    )
    zone: str = _set("UTC", "The time zone in which the hours of grants are meant, as Europe/Lisbon.")
    memory: str = _set(
        "1GiB",
        "The most memory that the engine of one data set takes; more is spilled, encrypted, into the folder "
        "`scratch`, or the query is refused.",
    )
    prepared: int = _set(
        64, "How many data sets a process keeps prepared for queries; the others are prepared again when they are queried."
    )
    log_level: str = _set("info", "debug, info, warning or error.")
    metrics_token: str = _set("", "The bearer token of /metrics; empty: loopback only.", secret=True)

    def path(self, name: str) -> Path:
        """A file or folder of the hub."""
        return self.data / name

    @property
    def secure(self) -> bool:
        """Whether people reach it by TLS, so that cookies may be marked so."""
        return bool(self.certificate) or self.origin.startswith("https://")

    @property
    def origin(self) -> str:
        """How people reach it, as browsers write it: in small letters, without a port that goes without saying."""
        if self.address:
            return _KNOWN_PORT.sub(r"\1\2", self.address.lower().rstrip("/"))
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    def known_host(self, host: str) -> bool:
        """Whether a request may name this host, port and all: a name of the hub's own, this machine, or one in `hosts`. A page of
        another site whose name was made to lead here (DNS rebinding) names its own.

        >>> settings = Settings(data=Path("hub"), hosts="hub.internal")
        >>> [settings.known_host(each) for each in ("localhost:8765", "[::1]", "hub.internal", "evil.example:8765", "")]
        [True, True, True, False, False]
        """
        from urllib.parse import urlsplit

        found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", host)
        if found is None:
            return False
        name = found[1].strip("[]").casefold().rstrip(".")
        names = {self.host, urlsplit(self.address).hostname or "", *listed(self.hosts)}
        return is_loopback(name) or name in {each.casefold().rstrip(".") for each in names if each}

    def shown(self) -> dict[str, str]:
        """All values, secrets hidden.

        >>> Settings(data=Path("hub"), oidc_secret="x").shown()["oidc_secret"]
        '(set)'
        """
        secret = {name for name, each in known_settings().items() if each.metadata["secret"]}
        told = SETTINGS.told(self).items()
        return {name: ("(set)" if value else "") if name in secret else str(value) for name, value in told}


SETTINGS = Stored(
    Settings,
    "hub.toml",
    *("data", "title", "institution", "host", "port", "address", "database", "ledger", "master_key", "master_key_file"),
    *("certificate", "certificate_key", "client_authority", "hosts", "proxies", "session_hours", "idle_minutes", "token_days"),
    *("second_factor", "password_length", "oidc_issuer", "oidc_client", "oidc_secret", "oidc_roles", "pg_port", "tick_ms"),
    *("upload_megabytes", "sources", "source_authorities", ("delta_floor", "max_delta"), "survey_cap", "survey_hourly"),
    *(
        "mqtt",
        "mqtt_authority",
        "workers",
        "asking",
        "docs",
        "key_holder",
        "zone",
        "memory",
        "prepared",
        "log_level",
        "metrics_token",
    ),
)
"""What files and environments call the settings."""


def known_settings() -> dict[str, Field[Any]]:
    """Every setting: its name in a file, and its field. (`data` stands in no file.)

    >>> known_settings()["port"].default
    8765
    """
    of = {each.name: each for each in fields(Settings)}
    return {name: of[attribute] for name, attribute in SETTINGS.pairs}


def load(data: Path, *, file: Path | None = None, environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """The settings of the hub in a folder; what is given by hand wins over the environment, and that over the file.

    >>> load(Path("hub"), environment={"CLOISTER_HUB_PORT": "9000"}).port
    9000
    """
    path = file or data / "hub.toml"
    values: dict[str, Any] = {}
    if path.exists():
        values |= _of_file(path)
    elif file is not None:
        raise InvalidParameter(
            f"The settings {path.name!r} are invalid", why="there is no such file", instead="--settings hub.toml"
        )
    known = known_settings()
    del known["data"]
    for name, text in (environment or {}).items():
        if name.startswith(PREFIX) and name != f"{PREFIX}DATA":
            values[name.removeprefix(PREFIX).lower()] = text
    values |= {name: value for name, value in given.items() if value is not None}
    for name in values:
        if name not in known:
            raise InvalidParameter(
                f"The setting {name!r} is invalid",
                why="there is none of that name",
                instead=f"--data {values[name]}" if name == "data" else "cloister hub check lists all settings",
            )
    return SETTINGS.made({name: _value(name, known[name], value) for name, value in values.items()}, data=data)


def listed(text: str) -> list[str]:
    """The parts of a setting that names several, between commas.

    >>> listed("127.0.0.1, ::1,")
    ['127.0.0.1', '::1']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def _of_file(path: Path) -> dict[str, Any]:
    try:
        return toml_in(path)
    except ValueError as error:
        raise InvalidParameter(
            f"The settings {path.name!r} are invalid", why=f"they are not TOML: {error}", instead="port = 8765"
        ) from None


def _value(name: str, known: Field[Any], value: Any) -> Any:
    if known.type == "int":
        try:
            if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
                raise ValueError
            return int(value)
        except (TypeError, ValueError):
            raise InvalidParameter(
                f"The setting {name} is invalid", why=f"{value!r} is not a whole number", instead=f"{name} = 10"
            ) from None
    if not isinstance(value, str):
        shown = "…" if known.metadata["secret"] else value
        like = ", ".join(map(str, shown)) if isinstance(shown, list) else known.default if isinstance(shown, bool) else shown
        raise InvalidParameter(f"The setting {name} is invalid", why=f"{shown!r} is not a text", instead=f'{name} = "{like}"')
    return value


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
