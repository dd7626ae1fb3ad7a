"""One connection of a client that may be slow, silent or endless: it is given up, and nobody else waits for it.

The web server by itself waits for ever for the rest of a request, and holds whatever it is sent meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with limits: on the time and the length of a request's head, and on silence within its body."""

    head_seconds = 15.0
    silent_seconds = 30.0
    longest_head = 64 * 1024

    _timer: asyncio.TimerHandle | None = None
    _in_head = True
    _head = 0
    """How much has come of a head that has not ended."""

    def connection_made(self, transport: Any) -> None:
        """A head is awaited."""
        super().connection_made(transport)
        self._await(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        """What belongs to a head has a limit."""
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > self.longest_head and not self.transport.is_closing():
                self.transport.close()

    def on_message_begin(self) -> None:
        """The next head begins."""
        super().on_message_begin()
        self._head = 0
        self._in_head = True
        self._await(self.head_seconds)

    def on_headers_complete(self) -> None:
        """The head is here: now the body."""
        self._in_head = False
        self._head = 0
        self._await(self.silent_seconds)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body is a sign of life."""
        self._await(self.silent_seconds)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Everything is here."""
        self._rest()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._rest()
        super().connection_lost(exc)

    def _await(self, seconds: float) -> None:
        self._rest()
        self._timer = self.loop.call_later(seconds, self._tired, seconds)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tired(self, seconds: float) -> None:
        if self.flow.read_paused:  # it is us who read slowly
            self._await(seconds)
        elif not self.transport.is_closing():
            self.transport.close()
