"""Tables at rest, and tables elsewhere.

table_store.py  uploads become tables, tables become sources of rows; keys pass on and are destroyed
foreign.py      files of other programs become CSV in a process of their own, which is foreign_reader.py
encodings.py    the letters of a CSV file become UTF-8; spelling.py: its numbers, days and missing values as programs write them
uploads.py      what is being sent; texts.py says whether it is a table; limits.py how much it may be
connections.py  tables in other databases; allowed.py says where the hub may connect to
"""

from cloister.hub.storage.allowed import Allowed as Allowed
from cloister.hub.storage.connections import KeptAddress as KeptAddress
from cloister.hub.storage.connections import guarded_address as guarded_address
from cloister.hub.storage.connections import keep as keep
from cloister.hub.storage.connections import reopen as reopen
from cloister.hub.storage.connections import shown_of as shown_of
from cloister.hub.storage.encodings import is_chinese as is_chinese
from cloister.hub.storage.foreign import FOREIGN as FOREIGN
from cloister.hub.storage.foreign import STATISTICS as STATISTICS
from cloister.hub.storage.foreign import Reading as Reading
from cloister.hub.storage.foreign import SeveralSheets as SeveralSheets
from cloister.hub.storage.foreign import accepted as accepted
from cloister.hub.storage.foreign import read_labels as read_labels
from cloister.hub.storage.limits import Limits as Limits
from cloister.hub.storage.limits import RefusedUpload as RefusedUpload
from cloister.hub.storage.spelling import DATES as DATES
from cloister.hub.storage.spelling import NUMBERS as NUMBERS
from cloister.hub.storage.spelling import divided_by as divided_by
from cloister.hub.storage.spelling import missing_in as missing_in
from cloister.hub.storage.spelling import reader_of as reader_of
from cloister.hub.storage.table_store import DamagedTable as DamagedTable
from cloister.hub.storage.table_store import Header as Header
from cloister.hub.storage.table_store import HeaderColumn as HeaderColumn
from cloister.hub.storage.table_store import StoredTable as StoredTable
from cloister.hub.storage.table_store import TableStore as TableStore
from cloister.hub.storage.table_store import header_of as header_of
from cloister.hub.storage.table_store import suggestion as suggestion
from cloister.hub.storage.uploads import Received as Received
