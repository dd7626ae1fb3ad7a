"""Tables at rest, and tables elsewhere.

table_store.py  uploads become tables, tables become sources of rows; keys pass on and are destroyed
foreign.py      files of other programs become CSV in a process of their own, which is foreign_reader.py
encodings.py    the letters of a CSV file become UTF-8; spelling.py: its numbers, days and missing values as programs write them
uploads.py      what is being sent; texts.py says whether it is a table; limits.py how much it may be
connections.py  tables in other databases; allowed.py says where the hub may connect to
"""

from cloister.hub.storage.allowed import Allowed
from cloister.hub.storage.connections import KeptAddress, guarded_address, keep, reopen, shown_of
from cloister.hub.storage.encodings import is_chinese
from cloister.hub.storage.foreign import FOREIGN, STATISTICS, Reading, SeveralSheets, accepted, read_labels
from cloister.hub.storage.limits import Limits, RefusedUpload
from cloister.hub.storage.spelling import DATES, NUMBERS, missing_in, reader_of
from cloister.hub.storage.table_store import DamagedTable, Header, HeaderColumn, StoredTable, TableStore, header_of, suggestion
from cloister.hub.storage.uploads import Received

__all__ = [
    "DATES",
    "FOREIGN",
    "NUMBERS",
    "STATISTICS",
    "Allowed",
    "DamagedTable",
    "Header",
    "HeaderColumn",
    "KeptAddress",
    "Limits",
    "Reading",
    "Received",
    "RefusedUpload",
    "SeveralSheets",
    "StoredTable",
    "TableStore",
    "accepted",
    "guarded_address",
    "header_of",
    "is_chinese",
    "keep",
    "missing_in",
    "read_labels",
    "reader_of",
    "reopen",
    "shown_of",
    "suggestion",
]
