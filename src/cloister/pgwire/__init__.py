"""The wire of PostgreSQL: psql, DBeaver, Grafana and pandas ask private questions with no plug-in.

    backend.py      what is needed of whoever answers; local.py: one local session; the hub brings its own
    server.py       the listener; startup.py: encryption, wishes, sign-in
    protocol.py     messages; types.py: values on the wire; failures.py: errors with SQLSTATE
    connection.py   the simple and the extended protocol, their threads, and what one client may take
    words.py        PostgreSQL's words; statements.py: what a statement is; reading.py: how it is read
    parameters.py   bound values as literals; values.py: written ones; inference.py: their types, ANY and ALL
    portals.py      statements by name, cursors and portals
    variables.py    SET, SHOW and transactions; execution.py: what a statement does; results.py: what it gives
    copying.py      COPY (SELECT …) TO STDOUT
    routing.py      the door or the catalogue; catalogue/: an engine in memory that holds declarations alone

It is read-only. Nothing is spent without `SET cloister.spend` or `SET cloister.within`, since tools preview and refresh by
themselves.
"""

from cloister.pgwire.backend import AnswerColumn, Asking, Backend, Explained, FreeAnswer, PgSession, Tables
from cloister.pgwire.connection import Limits
from cloister.pgwire.local import LocalBackend, LocalSession, shape_of
from cloister.pgwire.server import PostgresFront

__all__ = [
    "AnswerColumn",
    "Asking",
    "Backend",
    "Explained",
    "FreeAnswer",
    "Limits",
    "LocalBackend",
    "LocalSession",
    "PgSession",
    "PostgresFront",
    "Tables",
    "shape_of",
]
