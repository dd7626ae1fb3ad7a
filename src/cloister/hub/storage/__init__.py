"""Tables at rest, and tables elsewhere.

table_store.py  uploads become tables, tables become sources of rows; keys pass on and are destroyed
uploads.py      what is being sent; texts.py says whether it is a table; limits.py how much it may be
connections.py  tables in other databases: allowed.py says where the hub may connect to, postgres_address.py what an address
                may say
"""

from cloister.hub.storage.allowed import Allowed
from cloister.hub.storage.connections import KeptAddress, connect, guarded_address, keep, reopen, shown_of
from cloister.hub.storage.limits import Limits, RefusedUpload
from cloister.hub.storage.table_store import DamagedTable, Header, HeaderColumn, StoredTable, TableStore, header_of
from cloister.hub.storage.uploads import Received, Upload

__all__ = [
    "Allowed",
    "DamagedTable",
    "Header",
    "HeaderColumn",
    "KeptAddress",
    "Limits",
    "Received",
    "RefusedUpload",
    "StoredTable",
    "TableStore",
    "Upload",
    "connect",
    "guarded_address",
    "header_of",
    "keep",
    "reopen",
    "shown_of",
]
