"""Tables of a Spark that is reached over Spark Connect: `sc://host:port/;use_ssl=true;token=…::catalog.schema.table`.

The client is pyspark's own, and needs no Java on this machine. `spark_connection.py` has the session with the server, and
`spark_calls.py` says what each call may do.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from cloister.errors import EngineError, InvalidDeclaration
from cloister.tables.engines.guard import tried
from cloister.tables.engines.spark import SparkSource, files_below, schema_of
from cloister.tables.engines.spark_connection import USER, Kept, SparkConnection, SparkPlace

if TYPE_CHECKING:
    from cloister.tables.engines.spark_calls import Asking

EXAMPLE = '"sc://spark.example.org:15002/;token=…::catalog.schema.table"'
_ADDRESS = re.compile(
    r"sc://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?(?:/(?P<parameters>(?:;[^;/?#\s]+)*);?)?"
)
_PART = r"(?:`[\w $#@+-]+`|[\w$#@+-]+)"
_PORT = "15002"
_LOCAL = ("localhost", "127.0.0.1", "::1")

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class SparkAddress:
    """An address, taken apart.

    >>> read_address("sc://spark.example.org/;token=a%3Bb;use_ssl=true::clinic.`my visits`").table
    ('clinic', 'my visits')
    """

    host: str
    port: int
    parameters: dict[str, str] = field(repr=False)
    table: tuple[str, ...]


def read_address(text: str) -> SparkAddress:
    """Host, port, parameters and the parts of the table's name; refused where it is none."""
    server, separator, name = text.rpartition("::")
    found = _ADDRESS.fullmatch(server) if separator else None
    if found is None or not 0 < int(found["port"] or _PORT) < 65536:
        raise refused_address("it is not an sc:// address of a table")
    if not re.fullmatch(rf"{_PART}(?:\.{_PART})*", name):
        raise refused_address("its table is not a name of letters, digits and underscores, with dots between the parts")
    given = [each.partition("=") for each in filter(None, (found["parameters"] or "").split(";"))]
    if len({key for key, _, _ in given}) < len(given):
        raise refused_address("it says a parameter twice")
    return SparkAddress(
        host=found["host"].strip("[]"),
        port=int(found["port"] or _PORT),
        parameters={key: unquote(value) for key, _, value in given},
        table=tuple(part.strip("`") for part in re.findall(_PART, name)),
    )


def refused_address(why: str, instead: str = EXAMPLE) -> InvalidDeclaration:
    """That an address was refused."""
    return InvalidDeclaration("The Spark address is invalid", why=why, instead=instead)


class SparkConnectSource(SparkSource):
    """A table or view of a Spark's catalogue."""

    def __init__(self, place: SparkPlace, table: tuple[str, ...], part: str = "") -> None:
        self.place = place
        self.part = part
        self._connection = SparkConnection.to(place)
        self.table = self._whole_name(table)
        self.schema = self._connection.opening(lambda session: schema_of(self._in(session)))

    @classmethod
    def from_url(cls, url: str) -> SparkConnectSource:
        """From "sc://host:port/;token=…::catalog.schema.table"; by TLS where `use_ssl` says so, and where there is a token that
        would leave this machine."""
        written = read_address(url)
        given = dict(written.parameters)
        token, user, tls = (given.pop(name, "") for name in ("token", "user_id", "use_ssl"))
        if given:
            raise refused_address(f"{min(given)}= is not taken from an address")
        place = SparkPlace(
            host=written.host,
            port=written.port,
            tls=tls.lower() == "true" or bool(token and written.host not in _LOCAL),
            token=token,
            user=user or USER,
        )
        return cls(place, written.table)

    def _whole_name(self, table: tuple[str, ...]) -> tuple[str, ...]:
        """With catalogue and schema, as the server tells them."""
        from pyspark.errors import AnalysisException

        name = _quoted(table)
        entry = self._connection.opening(lambda session: tried(lambda: session.catalog.getTable(name), AnalysisException))
        if entry is None:
            raise EngineError(
                "The Spark table could not be opened",
                why="the server has none of this name that may be read with this token",
                instead="a name that SHOW TABLES lists, as catalog.schema.table",
            )
        if entry.isTemporary:
            raise EngineError(
                "The Spark table could not be opened",
                why="it is a temporary view, which somebody's session may take away",
                instead="a table or a view of the catalogue",
            )
        return (entry.catalog or "spark_catalog", *(entry.namespace or ()), entry.name)

    def _in(self, session: Any) -> Any:
        return session.table(_quoted(self.table))

    @property
    def frame(self) -> Any:
        """The rows, in the session of this moment; refused where the columns are no longer those that were opened."""
        frame = self._in(self.session)
        if list(schema_of(frame).items()) != list(self.schema.items()):
            raise EngineError(
                "The Spark table is not supported",
                why="its columns are others than when it was opened",
                instead="the table with the columns that it had, or a new declaration",
            )
        return frame

    @property
    def session(self) -> Any:
        """The session of this moment."""
        return self._connection.session

    def asking(self) -> AbstractContextManager[Asking]:
        """Within it, another thread can end what this one asks."""
        return self._connection.calls.asking()

    def again(self, work: Callable[[], Result]) -> Result:
        """What the work gives; done once more where the session was gone."""
        return self._connection.again(lambda _: work())

    def watch(self, kept: Kept) -> None:
        """Put these prepared rows up again in each new session."""
        self._connection.kept.add(kept)

    @property
    def named(self) -> str:
        """The whole name of the table, as it is shown."""
        return ".".join(part if re.fullmatch(r"\w+", part) else f"`{part}`" for part in self.table)

    @property
    def shown(self) -> str:
        """Server and table, without what is secret."""
        return f"{self.place.shown}::{self.named}"

    def identity(self) -> str:
        """The table, and the part."""
        return f"{self.whole} {self.part}" if self.part else self.whole

    def lineage(self) -> frozenset[str]:
        """The table by its whole name, and the files that it reads, at each address that the server's name has: however the
        server is written, and whether it is a table or a view of one."""
        host, port = self.place.host, self.place.port
        found = tried(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), OSError, UnicodeError) or []
        servers = {f"{each}:{port}" for each in {host, *(str(one[4][0]) for one in found)}}
        files = tried(lambda: self._connection.again(lambda session: self._in(session).inputFiles()), Exception) or ()
        return frozenset(f"spark {each}::{self.named.casefold()}" for each in servers) | files_below(files, servers)

    @property
    def whole(self) -> str:
        """Server and table, of whose name Spark knows no capitals: not the token, which does not change whose rows they are."""
        return self.shown.casefold()


def _quoted(table: tuple[str, ...]) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in table)
