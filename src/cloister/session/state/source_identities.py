"""Whose people a table in memory holds, remembered for as long as the object lives.

A table that was removed and comes again under another name is the same people still, and keeps what they have spent (promise 6).
Files and database tables are known again by the ledger; an object in memory by being the same object. It is held weakly, since
nothing that remembers may keep rows; a plain dictionary cannot be held so, and is known by its `PrivateTable` alone.
"""

from __future__ import annotations

import weakref
from typing import Any


class SourceIdentities:
    """Objects and the populations that they are of.

    >>> class Frame:
    ...     pass
    >>> frame, kin = Frame(), SourceIdentities()
    >>> kin.note(frame, "patients")
    >>> kin.population(frame), kin.population(Frame())
    ('patients', None)
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], str]] = {}

    def note(self, given: Any, population: str) -> None:
        """Remember an object, if it can be held weakly."""
        key, known = id(given), self._known

        def forget(gone: weakref.ref[Any]) -> None:
            if known.get(key, (None, ""))[0] is gone:
                del known[key]

        try:
            known[key] = weakref.ref(given, forget), population
        except TypeError:  # a dictionary, a list
            return

    def population(self, given: Any) -> str | None:
        """What is remembered of an object."""
        held, population = self._known.get(id(given), (None, None))
        return population if held is not None and held() is given else None
