"""The session with a Spark Connect server: opened once for each place, and again where the server has forgotten it.

A server forgets a session that nobody used for an hour, and all sessions when it starts again. What fails is therefore asked once
more in a new session, where the old one is gone, after every table in use was put up there under its old name.

The session is ours alone, under settings of ours: no name of a table stands for a file (`runSQLOnFiles`, on by default, lets a
name read any file that the server can), and an overflow is an error.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeVar

from cloister.errors import CloisterError, EngineError, MissingDependency
from cloister.installed import install
from cloister.tables.engines.engine import fresh_token
from cloister.tables.engines.guard import guarded, tried

USER = "cloister"
_SETTINGS = {"spark.sql.runSQLOnFiles": "false", "spark.sql.ansi.enabled": "true"}

Result = TypeVar("Result")


class Kept(Protocol):
    """What stands in a session, and is put up again in the next."""

    def stand_again(self) -> None:
        """In the session of this moment."""


@dataclass(frozen=True, kw_only=True)
class SparkPlace:
    """Where a Spark Connect server is, and as whom it is asked.

    >>> SparkPlace(host="2001:db8::5", port=15002, token="secret")
    SparkPlace(host='2001:db8::5', port=15002, address='', tls=True, user='cloister', must_ask=False)
    """

    host: str
    port: int
    address: str = ""
    """The address of IP that the connection goes to, where it was looked at before; empty: where the host's name leads."""
    tls: bool = True
    authorities: bytes | None = field(default=None, repr=False)
    """Who vouches for the server's certificate (PEM); None: those that come with the client."""
    token: str = field(default="", repr=False)
    user: str = USER
    must_ask: bool = False
    """Whether a server that takes any token is refused."""

    @property
    def shown(self) -> str:
        """Without what is secret."""
        return f"sc://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class SparkConnection:
    """The living session of a place, shared by its tables so that they can be joined; it ends with the last of them."""

    _all: ClassVar[weakref.WeakValueDictionary[SparkPlace, SparkConnection]] = weakref.WeakValueDictionary()
    _making: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, place: SparkPlace) -> None:
        from cloister.tables.engines.spark_calls import Calls

        self.calls = Calls()
        self.kept: weakref.WeakSet[Kept] = weakref.WeakSet()
        self._fallen: weakref.WeakSet[Kept] = weakref.WeakSet()
        """Those of them that could not be put up in the session."""
        self._place = place
        self._lock = threading.RLock()
        self.session = self._opened()

    @classmethod
    def to(cls, place: SparkPlace) -> SparkConnection:
        """The one that there is, or a new one."""
        _check_installed()
        with cls._making:
            found = cls._all.get(place)
            if found is None:
                found = cls._all[place] = guarded("Spark could not be opened", lambda: cls(place))
            return found

    def again(self, work: Callable[[Any], Result]) -> Result:
        """What the work gives in the session; once more in a new one, where this one is gone. A refusal of ours stands."""
        session = self.session
        failed: Exception
        try:
            return work(session)
        except CloisterError:
            raise
        except Exception as error:
            failed = error
        if not self._answers(session):
            self._renew(session)
        elif not self._stood(list(self._fallen)):
            raise failed
        del failed  # which refers to this frame
        return work(self.session)

    def opening(self, work: Callable[[Any], Result]) -> Result:
        """The same for what is looked at when a table is opened, with every failure in a fixed text."""
        return guarded("The Spark table could not be opened", lambda: self.again(work))

    def _answers(self, session: Any) -> bool:
        return tried(lambda: session.conf.get("spark.sql.ansi.enabled"), Exception) is not None

    def _renew(self, lost: Any) -> None:
        with self._lock:
            if self.session is not lost:  # another thread was first
                return
            self.session = self._opened()
            self._stood(list(self.kept))

    def _stood(self, kept: list[Kept]) -> bool:
        """Put these up in the session; whether any stands. One that cannot be (its table is away) keeps no other from standing,
        and is tried again when it is asked."""
        with self._lock:
            found = False
            for each in kept:
                try:
                    each.stand_again()
                except Exception:
                    self._fallen.add(each)
                else:
                    self._fallen.discard(each)
                    found = True
            return found

    def _opened(self) -> Any:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        from cloister.tables.engines.spark_calls import ConnectSession, PlaceChannel

        self._check_place()
        session = ConnectSession(PlaceChannel(self._place, self.calls))
        session.client.set_retry_policies([DefaultPolicy(max_retries=2, max_backoff=1000)])
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        return session

    def _check_place(self) -> None:
        from cloister.tables.engines.spark_calls import greeted

        place = self._place
        if place.must_ask and greeted(place, self.calls, fresh_token(16)):
            raise EngineError(
                "The Spark server is not supported",
                why="it takes any token: anyone who may name the server could read all that it holds",
                instead="spark.connect.authenticate.token on the server, or a proxy before it that checks one",
            )
        taken = greeted(place, self.calls, place.token)
        if taken is None:
            raise EngineError(
                "Spark could not be reached",
                why="no Spark Connect server answered there, or its certificate is not the host's",
                instead="an address that a Spark client can open",
            )
        if not taken:
            raise EngineError("Spark refused the connection", why="it does not take this token", instead="the server's token")


def _check_installed() -> None:
    if not tried(lambda: import_module("cloister.tables.engines.spark_calls"), ImportError):
        raise MissingDependency(
            "Spark is not available", why="pyspark is not installed, or what it needs for Spark Connect", instead=install("spark")
        )
