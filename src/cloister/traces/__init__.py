"""What moves: readings without end, places and journeys, published with guarantees that name what they protect.

    levels.py       event, window and user level, and what follows for a person
    counter.py      running sums of a stream
    stored.py       the same, kept in a ledger: charged to a population, resumed after a crash
    square_root.py  the factorisation behind them for ρ: whole numbers, a few kilobytes; tree.py: the binary tree for ε

Lives here: what depends on the order of things in time or on where they are. May not live here: an engine, a table's
declaration, or noise of its own making (`noise` has the laws).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.traces.counter import Counter as Counter
    from cloister.traces.levels import WindowLevel as WindowLevel
    from cloister.traces.stored import StoredCounter as StoredCounter

_lazily = Lazily(__name__, {".counter": "Counter", ".levels": "WindowLevel", ".stored": "StoredCounter"})

__all__ = _lazily.all
__getattr__ = _lazily.get
__dir__ = _lazily.dir
