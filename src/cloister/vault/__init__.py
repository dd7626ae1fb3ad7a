"""The sealed store: a document database whose server never sees a value.

    vault.py         a vault: collections, rotation, forgetting, verification, restoration
    collection.py    documents: insert, find, update, delete, aggregate
    fields.py        what a field is declared for, and the words under which a value is filed
    filters.py       filters, and how records are found while showing the least
    ordering.py      the first few records in an order
    aggregates.py    pipelines, computed by the client
    masking.py       which records go into batches of masked cells
    attacks.py       the published attacks on a column, before it is declared
    explanation.py   what a query leaks, said before it runs
    changes.py       one change, whole or not at all; reading that notices what the server altered
    results.py       what reading and writing return
    records.py       a document as the store keeps it
    index.py         a keyed index, forward private
    ranges.py        ranges as nodes of a tree
    merkle.py        one root for all records
    paillier.py      sums that the store adds up and can't read: by name alone
    weak.py          equality and order that show before a query: by name alone
    keys.py          owner, data set, epoch, field, person
    state.py         what the client keeps
    store.py         what the server keeps; in an SQLite file
    postgres.py      and in PostgreSQL
    views.py         what a person may read for a purpose, joined over collections
    proxy.py         a vault over HTTPS, and the operator's own page
    remote.py        the client of a proxy
    values.py        values as bytes, padded
    database.py      SQLite files

The client is trusted, with its keys and its state. The server is not: it may read and change everything that it has. Not hidden
from it: how many records there are, the padded length of values, when and how often a record is written, and what `explain()`
says of each query. Sums of documents are added up by the client on what it decrypted; private questions of a hub
are answered from masked cells, which the client uploads in batches.

May not live here: ciphers (`crypto` has them) and privacy of answers (whoever has the keys reads everything).
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.vault.attacks import Attack as Attack
    from cloister.vault.attacks import Leakage as Leakage
    from cloister.vault.attacks import leakage as leakage
    from cloister.vault.collection import Collection as Collection
    from cloister.vault.errors import BackupExpired as BackupExpired
    from cloister.vault.errors import Conflict as Conflict
    from cloister.vault.errors import DuplicateKey as DuplicateKey
    from cloister.vault.errors import Tampered as Tampered
    from cloister.vault.explanation import Explanation as Explanation
    from cloister.vault.fields import Equal as Equal
    from cloister.vault.fields import Field as Field
    from cloister.vault.fields import Random as Random
    from cloister.vault.fields import Range as Range
    from cloister.vault.fields import Sum as Sum
    from cloister.vault.fields import Words as Words
    from cloister.vault.keys import Keys as Keys
    from cloister.vault.paillier import PaillierSum as PaillierSum
    from cloister.vault.remote import connect as connect
    from cloister.vault.vault import Vault as Vault
    from cloister.vault.vault import Verification as Verification
    from cloister.vault.views import View as View
    from cloister.vault.views import Views as Views
    from cloister.vault.weak import Deterministic as Deterministic
    from cloister.vault.weak import OrderRevealing as OrderRevealing

__all__, __getattr__, __dir__ = Lazily(__name__).public
