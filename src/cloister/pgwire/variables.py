"""What a connection has set, with PostgreSQL's rules: SET ends with a rolled-back transaction, SET LOCAL with every one.

There is no default spend. Tools preview and refresh by themselves, so whoever spends says so; and a pool of connections that
rolls back takes the spend with it.
"""

import re
from collections.abc import Mapping
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cloister.errors import CloisterError, InvalidParameter
from cloister.pgwire.backend import Asking
from cloister.pgwire.failures import Refused
from cloister.pgwire.types import CODECS
from cloister.privacy import exact_positive, text_of
from cloister.session.releases.uncertainty import check_confidence

VERSION = "15.0"

_EMPTY = """
application_name cloister.algorithm cloister.project cloister.purpose cloister.spend cloister.within session_authorization
"""
_ON = """
default_transaction_read_only enable_nestloop enable_seqscan integer_datetimes standard_conforming_strings
synchronize_seqscans transaction_read_only
"""
_OFF = "cloister.fresh cloister.margins is_superuser jit row_security ssl"
_NONE = """
idle_in_transaction_session_timeout lock_timeout max_parallel_workers_per_gather ssl_renegotiation_limit statement_timeout
"""
_DEFAULTS = {
    **dict.fromkeys(_EMPTY.split(), ""),
    **dict.fromkeys(_ON.split(), "on"),
    **dict.fromkeys(_OFF.split(), "off"),
    **dict.fromkeys(_NONE.split(), "0"),
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "cloister.confidence": "0.95",
    "datestyle": "ISO, MDY",
    "default_transaction_isolation": "read committed",
    "extra_float_digits": "1",
    "intervalstyle": "postgres",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "lc_messages": "C",
    "max_connections": "100",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "search_path": "public",
    "server_encoding": "UTF8",
    "server_version": VERSION,
    "server_version_num": "150000",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "work_mem": "4MB",
}
_UNCHANGED = """
integer_datetimes is_superuser lc_collate lc_ctype max_connections max_identifier_length max_index_keys server_encoding
server_version server_version_num session_authorization ssl
"""
_FIXED = _UNCHANGED.split()
_SPELLED = {"datestyle": "DateStyle", "intervalstyle": "IntervalStyle", "timezone": "TimeZone"}
_TRUTHS = {"on": "on", "true": "on", "yes": "on", "1": "on", "t": "on", "off": "off", "false": "off", "no": "off", "0": "off"}
_ENCODINGS = {
    **dict.fromkeys(("UNICODE", "SQLASCII"), "UTF8"),
    **dict.fromkeys(("WIN936", "CP936", "EUCCN"), "GBK"),
    **dict.fromkeys(("WIN950", "CP950"), "BIG5"),
    **dict.fromkeys(("WIN932", "CP932", "SHIFTJIS", "MSKANJI"), "SJIS"),
    **dict.fromkeys(("WIN949", "CP949", "EUCKR"), "UHC"),
    "ISO88591": "LATIN1",
    "ISO885915": "LATIN9",
}
_HOURS = re.compile(r"[+-]?\d{1,2}(?:\.\d+)?")
_WEST = re.compile(r"(?:<[^<>]+>|[A-Za-z]{3,}|)([+-]\d{1,2})(?::([0-5]\d))?")
_UNITS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "": 1}

_TOLD = """
application_name client_encoding datestyle default_transaction_read_only integer_datetimes intervalstyle
is_superuser server_encoding server_version session_authorization standard_conforming_strings timezone
"""
REPORTED = _TOLD.split()


def known(name: str) -> bool:
    """Whether there is such a setting."""
    return name.lower() in _DEFAULTS


def spelled(name: str) -> str:
    """A setting's name as PostgreSQL spells it to clients.

    >>> spelled("timezone"), spelled("is_superuser")
    ('TimeZone', 'is_superuser')
    """
    return _SPELLED.get(name, name)


class Variables:
    """The settings of one connection, and the state of its transaction.

    >>> found = Variables({"session_authorization": "ada"})
    >>> found.set("cloister.spend", "0.10")
    >>> found.get("cloister.spend"), found.asking().pays, found.state
    ('0.1', True, 'I')
    """

    def __init__(self, start: Mapping[str, str]) -> None:
        self._first = {**_DEFAULTS, **start}
        self._values = dict(self._first)
        self._kept = dict(self._first)
        self._before: dict[str, str] | None = None
        self._after: dict[str, str] = {}
        self._points: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self._failed = False

    def get(self, name: str) -> str:
        """The value of a setting."""
        if not known(name):
            raise _unknown(name)
        return self._values[name.lower()]

    def everything(self) -> list[tuple[str, str]]:
        """All names with their values, in order."""
        return sorted((spelled(name), value) for name, value in self._values.items())

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Sets, or with None sets back. Setting a spend takes back the wanted margin, and the other way round."""
        name = name.lower()
        if not known(name):
            raise _unknown(name)
        if name in _FIXED:
            raise Refused(f"SET {name} was refused", why="it cannot be changed", instead=f"SHOW {name}", code="55P02")
        changed = {name: self._first[name] if value is None else _checked(name, value)}
        if changed[name] and name == "cloister.spend":
            changed["cloister.within"] = ""
        elif changed[name] and name == "cloister.within":
            changed["cloister.spend"] = ""
        if self._before is not None and not local:
            self._after |= changed
        if self._before is not None or not local:
            self._values |= changed

    def start(self, options: Mapping[str, str]) -> None:
        """What the client asks for when it connects: the values that RESET goes back to."""
        for name, value in options.items():
            self.set(name, value)
        self._first = dict(self._values)

    def reset_all(self) -> None:
        """Every setting as it was when the connection began."""
        for name in [name for name, value in self._values.items() if name not in _FIXED and value != self._first[name]]:
            self.set(name, None)

    @property
    def state(self) -> str:
        """I: idle; T: in a transaction; E: in a failed one."""
        return "I" if self._before is None else "E" if self._failed else "T"

    def begin(self) -> None:
        """A transaction begins; in one already, nothing happens."""
        if self._before is None:
            self._before, self._after = dict(self._values), {}

    def fail(self) -> None:
        """A statement failed: in a transaction, nothing more is done before its end."""
        self._failed = self._before is not None

    def finish(self, *, commit: bool) -> bool:
        """The transaction ends; whether it was committed."""
        commit = commit and not self._failed
        if self._before is not None:
            self._values = {**self._before, **(self._after if commit else {})}
        self._before, self._after, self._points, self._failed = None, {}, [], False
        self.settle()
        return commit

    def settle(self) -> None:
        """Outside a transaction, what was set until here stays."""
        self._kept = dict(self._values) if self._before is None else self._kept

    def undo(self) -> None:
        """Outside a transaction, what was set since then is set no more: its statements stand or fall together."""
        self._values = dict(self._kept) if self._before is None else self._values

    def mark(self, name: str) -> None:
        """SAVEPOINT."""
        self._points.append((name, dict(self._values), dict(self._after)))

    @property
    def depth(self) -> int:
        """How many savepoints there are."""
        return len(self._points)

    def release(self, name: str) -> int:
        """RELEASE SAVEPOINT; how many there are before it."""
        place = self._point(name)
        del self._points[place:]
        return place

    def back_to(self, name: str) -> int:
        """ROLLBACK TO SAVEPOINT; how many there are before it."""
        place = self._point(name)
        self._values, self._after = map(dict, self._points[place][1:])
        del self._points[place + 1 :]
        self._failed = False
        return place

    def asking(self) -> Asking:
        """How the next question is to be asked."""
        value = self._values
        return Asking(
            spend=value["cloister.spend"] or None,
            within=float(value["cloister.within"]) if value["cloister.within"] else None,
            confidence=float(value["cloister.confidence"]),
            purpose=value["cloister.purpose"],
            project=value["cloister.project"],
            algorithm=value["cloister.algorithm"],
            fresh=value["cloister.fresh"] == "on",
            margins=value["cloister.margins"] == "on",
        )

    @property
    def seconds(self) -> float:
        """The client's own time limit of a statement; 0: none."""
        return _milliseconds(self._values["statement_timeout"]) / 1000

    def _point(self, name: str) -> int:
        for place in range(len(self._points) - 1, -1, -1):
            if self._points[place][0] == name:
                return place
        raise Refused(f"The savepoint {name!r} was not found", why="none has that name", instead="ROLLBACK", code="3B001")


def _checked(name: str, value: str) -> str:
    if name == "cloister.spend":
        return text_of(exact_positive(value, "spend")) if value.strip() else ""
    if name == "cloister.within":
        return repr(float(min(exact_positive(value, "within"), exact_positive("1e300", name)))) if value.strip() else ""
    if name == "cloister.confidence":
        try:
            check_confidence(float(value))
        except (ValueError, CloisterError):
            raise InvalidParameter(
                "SET cloister.confidence is invalid", why="it is not between 0 and 1", instead="SET cloister.confidence = '0.95'"
            ) from None
    elif _DEFAULTS[name] in ("on", "off"):
        if value.lower() not in _TRUTHS:
            raise InvalidParameter(f"SET {name} is invalid", why="it is neither on nor off", instead=f"SET {name} = on")
        if name == "standard_conforming_strings" and _TRUTHS[value.lower()] == "off":
            raise InvalidParameter(f"SET {name} is invalid", why="a backslash is read as itself", instead=r"E'\n'")
        return _TRUTHS[value.lower()]
    elif name == "client_encoding":
        called = "".join(filter(str.isalnum, value.upper())).replace("WINDOWS", "WIN")
        called = _ENCODINGS.get(called, called)
        if called not in CODECS:
            raise InvalidParameter(
                "SET client_encoding is invalid", why=f"what is spoken is {', '.join(CODECS)}", instead="PGCLIENTENCODING=UTF8"
            )
        return called
    elif name == "timezone":
        zone_of(value)
    elif name == "datestyle":
        if not value.upper().startswith("ISO"):
            raise InvalidParameter("SET DateStyle is invalid", why="dates are written as ISO 8601", instead="ISO")
        return "ISO, MDY"
    elif name.endswith("_timeout"):
        _milliseconds(value)
    return value[:1000]


@lru_cache(64)
def zone_of(text: str) -> tzinfo:
    """A time zone by its name, by hours east of Greenwich, or, as POSIX writes it, by hours west behind a name or none.

    >>> [str(zone_of(each)) for each in ("asia/shanghai", "5.5", "+8", "GMT-08:00", "+08:00")]
    ['Asia/Shanghai', 'UTC+05:30', 'UTC+08:00', 'UTC+08:00', 'UTC-08:00']
    """
    hours, west = _HOURS.fullmatch(text), _WEST.fullmatch(text)
    try:
        if hours or west:
            minutes = float(text) * 60 if hours or west is None else -(float(west[1]) * 60 + float(f"{west[1][0]}{west[2] or 0}"))
            return timezone(timedelta(minutes=minutes))
        return ZoneInfo({each.lower(): each for each in available_timezones()}[text.lower()])
    except (KeyError, ValueError):
        raise InvalidParameter(
            "SET TimeZone is invalid", why="it is not the name of a time zone", instead="SET TimeZone = 'Asia/Shanghai'"
        ) from None


def _milliseconds(value: str) -> float:
    number = value.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = value.strip()[len(number) :].strip()
    if not number.isascii() or not number.isdigit() or unit not in _UNITS or len(number) > 12:
        raise InvalidParameter("The time is invalid", why="it is not a number of milliseconds", instead="'5s'")
    return float(int(number) * _UNITS[unit])


def _unknown(name: str) -> Refused:
    names = ", ".join(name for name in sorted(_DEFAULTS) if name.startswith("cloister."))
    return Refused(f"The setting {name[:63]!r} was not found", why=f"cloister's are {names}", instead="SHOW ALL", code="42704")
