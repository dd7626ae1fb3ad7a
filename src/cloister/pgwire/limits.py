"""What one client may take, so that it can neither stall nor exhaust the others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Sizes, numbers and seconds.

    >>> Limits().connections
    200
    """

    message: int = 1_000_000
    """The longest message in bytes."""
    connections: int = 200
    """At once, those that have not signed in yet included."""
    strangers: int = 50
    """At once, of those that have not signed in yet; half as many more from networks where somebody has. Past them the oldest
    goes (`server.py`)."""
    each: int = 20
    """Connections of one person."""
    turns: int = 2
    """Calls of one person that are worked on at once, so that nobody takes all threads."""
    prepared: int = 500
    """Statements, and cursors, of one connection."""
    held: int = 32_000_000
    """Bytes that the open cursors of one connection hold, about; past them nothing is run before one is closed."""
    startup: float = 15.0
    """Seconds until a client has signed in."""
    idle: float = 1800.0
    """Seconds between two messages."""
    writing: float = 60.0
    """Seconds in which a client takes what it is sent, a piece at a time."""
    looking: float = 10.0
    """Seconds of a plan or a catalogue query."""
    asking: float = 300.0
    """Seconds of a question; its charge stands all the same."""
    askers: int = 8
    """Questions that are worked on at once."""
    lookers: int = 4
    """Plans and catalogue queries that are worked on at once."""
