"""Budgets and charges, durable and concurrent: what was promised to whom, and how much of it is left.

- `ledger.py` is the object that everyone uses; `operations.py` says what can happen, `reading.py` answers questions.
- `chain.py`, `head.py`, `verify.py` and `replay.py` find a changed, dropped, truncated or rolled-back line.
- `measure.py` counts exactly; `book.py` and `commit.py` make many charges one push to the disk.
- `steps.py`: releases that follow one another under one charge, with the sealed state between them.
- `store.py`, `sqlite.py`, `postgres.py`, `migrations.py` and `opening.py` are the database.
"""

from cloister.ledger.ledger import Ledger
from cloister.ledger.records import Bound, BrokenLine, Charge, Freeze, LedgerRecord, Reservation, StoredRelease

__all__ = ["Bound", "BrokenLine", "Charge", "Freeze", "Ledger", "LedgerRecord", "Reservation", "StoredRelease"]
