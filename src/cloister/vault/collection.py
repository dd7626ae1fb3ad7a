"""A collection of documents, in the words that users of pymongo know."""

# ruff: noqa: A002 - `filter` is what pymongo calls it

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloister.errors import InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.noise import default_random
from cloister.vault.aggregates import read_pipeline, sorting, whole
from cloister.vault.attacks import Leakage, leakage
from cloister.vault.changes import Change, Reader, writing
from cloister.vault.errors import Conflict, DuplicateKey
from cloister.vault.explanation import Explanation, explanation
from cloister.vault.fields import MISSING, Field
from cloister.vault.filters import Access, Filter, access, read
from cloister.vault.keys import DataSetKeys
from cloister.vault.masking import CellSealer, Masked, Masker
from cloister.vault.records import Sealer
from cloister.vault.store import Row, Store
from cloister.vault.values import check_document, comparable, encode, is_number

__all__ = ["Collection"]

BATCH = 500
"""Documents of one change, where many are written."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Inserted:
    """What an insertion did."""

    inserted_ids: list[Any]

    @property
    def inserted_id(self) -> Any:
        """The `_id` of the one document."""
        return self.inserted_ids[0]


@dataclass(frozen=True)
class Updated:
    """What an update did."""

    matched_count: int
    modified_count: int


@dataclass(frozen=True)
class Deleted:
    """What a deletion did."""

    deleted_count: int


class Collection:
    """Documents whose server never sees a value. A `Vault` makes it.

    >>> from cloister.vault import Equal, Keys, Range, Sum, Vault
    >>> people = Vault("sqlite://", Keys.generate()).collection("people", {"town": Equal(), "age": Sum() | Range(0, 120)})
    >>> people.insert_many([{"_id": 1, "town": "Basel", "age": 39}, {"_id": 2, "town": "Bern", "age": 52}]).inserted_ids
    [1, 2]
    >>> people.find_one({"age": {"$gte": 40}})
    {'_id': 2, 'town': 'Bern', 'age': 52}
    >>> people.aggregate([{"$group": {"_id": None, "age": {"$avg": "$age"}}}])
    [{'_id': None, 'age': 45.5}]
    """

    def __init__(
        self, keys: DataSetKeys, store: Store, table: str, *, name: str, fields: Mapping[str, Field], person: str | None
    ) -> None:
        self.name, self.fields, self.person = name, dict(fields), person
        self._keys, self._store, self._table = keys, store, table
        self._sealer = Sealer(keys, table, self.fields, person)
        self.reader = Reader(keys, store, table, self._sealer)

    def __repr__(self) -> str:
        return f"<Collection {self.name!r}>"

    # Writing

    def insert_one(self, document: Document) -> Inserted:
        """Add a document. Without an `_id` it gets a random one."""
        return self.insert_many([document])

    def insert_many(self, documents: Iterable[Document]) -> Inserted:
        """Add documents, in changes of 500. All are checked before the first is written; an `_id` that is taken stops at its
        change, and those before are there."""
        ready = [self._checked({"_id": default_random().bytes(12).hex()} | check_document(document)) for document in documents]
        for document in ready:
            self._sealer.texts(document)
        for start in range(0, len(ready), BATCH):
            with writing(self.reader) as change:
                epoch = self._keys.epoch
                for document in ready[start : start + BATCH]:
                    self._insert(change, document, epoch)
        return Inserted([document["_id"] for document in ready])

    def update_one(self, filter: Any, update: Document, *, version: int | None = None) -> Updated:
        """Change the first document that matches, by `$set`, `$unset` and `$inc`."""
        return self._update(filter, self._updating(update), most=1, version=version)

    def update_many(self, filter: Any, update: Document) -> Updated:
        """Change every document that matches, by `$set`, `$unset` and `$inc`."""
        return self._update(filter, self._updating(update), most=None)

    def replace_one(self, filter: Any, document: Document, *, version: int | None = None) -> Updated:
        """Put a document in the place of the first one that matches. With `version=`, only if nobody changed it since."""
        check_document(document)
        return self._update(filter, lambda old: {"_id": old["_id"]} | document, most=1, version=version)

    def delete_one(self, filter: Any) -> Deleted:
        """Delete the first document that matches."""
        return self._delete(filter, most=1)

    def delete_many(self, filter: Any) -> Deleted:
        """Delete every document that matches."""
        return self._delete(filter, most=None)

    # Reading

    def find(
        self,
        filter: Any = None,
        projection: Any = None,
        *,
        sort: Any = None,
        skip: int = 0,
        limit: int = 0,
    ) -> list[Document]:
        """The documents that match, as a list. `limit=0` is all of them."""
        given = read(filter, self.fields)
        order = sorting(sort, self.fields) if sort is not None else list
        shown = self._projected(projection)
        whole("skip", skip), whole("limit", limit)
        with self.reader.reading():
            found = order([document for _, document in self._found(given)])
        return [shown(document) for document in found[skip : skip + limit if limit else None]]

    def find_one(self, filter: Any = None, projection: Any = None) -> Document | None:
        """One document that matches, or None."""
        return next(iter(self.find(filter, projection, limit=1)), None)

    def count_documents(self, filter: Any) -> int:
        """How many documents match. All of them are counted without asking the server."""
        if read(filter, self.fields) == Filter():
            if self.reader.head().pending is not None:
                with self.reader.reading():  # the store knows whether a killed change was made
                    pass
            return self.reader.state.size(self._table)
        return len(self.find(filter))

    def aggregate(self, pipeline: list[Document]) -> list[Document]:
        """`$match`, `$group` with `$sum`, `$avg`, `$min`, `$max` and `$count`, `$sort`, `$skip` and `$limit`."""
        given, stages = read_pipeline(pipeline, self.fields)
        with self.reader.reading():
            rows = [document for _, document in self._found(given)]
        for stage in stages:
            rows = stage(rows)
        return rows

    def version(self, identity: Any) -> int:
        """Which change of the collection wrote the document with this `_id`: for `replace_one(…, version=…)`."""
        with self.reader.reading():
            for row, _ in self.reader.known([self._keys.handle(self._table, identity)]):
                return row.version
        raise InvalidParameter("The document was not found", why="none has this _id", instead="the _id of a document")

    def explain(self, filter: Any = None) -> Explanation:
        """What a query leaks, before it runs: for a filter, or for a pipeline."""
        given = read_pipeline(filter, self.fields)[0] if isinstance(filter, list) else read(filter, self.fields)
        return explanation(given, access(given, self.fields))

    def leakage(self, name: str, field: Field | None = None, **how: Any) -> Leakage:
        """What attackers would get of a column of this collection (`attacks.leakage`): as it is declared, or as it might be. The
        client reads every document for it."""
        if name not in self.fields:
            known = " or ".join(map(repr, self.fields))
            raise InvalidParameter(f"The field {name!r} is invalid", why="there is no field of that name", instead=known)
        return leakage([document.get(name) for document in self.find({})], field or self.fields[name], **how)

    def mask(self, sealer: CellSealer, folder: str | Path, *, restart: bool = False) -> Masked:
        """Writes a batch of masked cells with what is new or has changed since the last one, for a hub and a key holder that
        answer questions from it, with noise (`cloister.together.SealedTable`). Where nothing changed, none. `restart` begins with
        all records in another folder, for another data set of the hub; upload all batches of one beginning, and no other. What
        was uploaded before stays as it was, people included who are forgotten later: delete that data set.

        >>> from tempfile import TemporaryDirectory
        >>> import cloister as cl
        >>> from cloister.together import KeyHolder, Marginal, MaskedFormat, Sealer
        >>> people = cl.vault.Vault("sqlite://", cl.vault.Keys.generate()).collection("people", {"age": cl.vault.Sum()})
        >>> people.insert_many([{"_id": 1, "age": 39}, {"_id": 2, "age": 52}]).inserted_ids
        [1, 2]
        >>> columns = {"age": cl.Integer(17, 90)}
        >>> format = MaskedFormat(columns=columns, marginals=[Marginal(sums=["age"])], population="patients")
        >>> sealer = Sealer(format, KeyHolder().public)
        >>> with TemporaryDirectory() as folder:
        ...     first, gone = people.mask(sealer, folder), people.delete_one({"_id": 1})
        ...     first.added, people.mask(sealer, folder).withdrawn
        (2, 1)
        """
        return Masker(self.reader, self.fields, self.person, sealer, Path(folder)).write(restart=restart)

    def layers(self) -> dict[str, list[str]]:
        """How each field is stored."""
        return {name: field.layers() for name, field in self.fields.items()}

    # For the vault

    def refresh(self, epoch: int, limit: int) -> int:
        """Encrypt and file again so many records of earlier epochs, and say how many there were."""
        with writing(self.reader) as change:
            handles = self.reader.state.outdated(self._table, epoch, limit)
            for row, _ in self.reader.known(handles):
                if self._sealer.is_readable(row):
                    self._put(change, self._sealer.opened(row), old=None, epoch=epoch)
                else:
                    change.remove(row.handle)
        return len(handles)

    def end_epoch(self, epoch: int) -> None:
        """Delete the index of this epoch and those before."""
        with writing(self.reader) as change:
            change.ended = epoch

    def forget(self, pseudonym: bytes) -> int:
        """Delete the records of a person, and file the words that they had again without them."""
        if self.person is None:
            return 0
        with writing(self.reader) as change:
            gone = [row for row, _ in self.reader.everything() if self._sealer.pseudonym(row) == pseudonym]
            for row in gone:
                change.remove(row.handle)
            readable = [row for row in gone if self._sealer.is_readable(row)]
            words = {(row.epoch, *each) for row in readable for each in self._words(self._sealer.opened(row))}
            for epoch, name, text in sorted(words):
                change.compact(self.reader.word_key(epoch, name, text))
        return len(gone)

    def expected_entries(self) -> dict[tuple[int, str, bytes], set[bytes]]:
        """Each word with the records that must be filed under it."""
        found: dict[tuple[int, str, bytes], set[bytes]] = {}
        for row, document in self._everything():
            for name, text in self._words(document):
                found.setdefault((row.epoch, name, text), set()).add(row.handle)
        return found

    # Inside

    def _checked(self, document: Document) -> Document:
        """A document that may be written, its fields in the order of the declaration."""
        if any(name != "_id" and name not in self.fields for name in document):
            known = ", ".join(map(repr, self.fields))
            raise UnknownColumn(
                "The document has a field that is not declared",
                why="only declared fields are encrypted as their owner wants",
                instead=f"only {known}",
            )
        if document["_id"] is None or isinstance(document["_id"], dict | list | tuple | float):
            raise InvalidParameter(
                "The _id is invalid", why="it is None, a float, or made of parts", instead="a text or a whole number"
            )
        for name, field in self.fields.items():
            field.check(name, document.get(name, MISSING))
        if self.person is not None and not isinstance(document.get(self.person), str | int):
            raise InvalidParameter(
                f"The value of {self.person!r} is invalid", why="it says whose record it is", instead="a text or a whole number"
            )
        return {name: document[name] for name in ("_id", *self.fields) if name in document}

    def _insert(self, change: Change, document: Document, epoch: int) -> None:
        if change.exists(self._keys.handle(self._table, document["_id"])):
            raise DuplicateKey(
                "The document was not written", why="another one has this _id", instead="another _id, or replace_one"
            )
        self._put(change, document, old=None, epoch=epoch)

    def _put(self, change: Change, document: Document, *, old: tuple[Row, Document] | None, epoch: int) -> None:
        handle = self._keys.handle(self._table, document["_id"])
        change.put(self._sealer.sealed(document, handle=handle, epoch=epoch, version=change.version))
        filed = self._words(old[1]) if old is not None and old[0].epoch == epoch else []
        moved = {name for name, _ in {*self._words(document)} - {*filed}}
        for name, text in self._words(document):
            if name in moved:  # also under the nodes that stay: their number would show how near old and new value are
                change.file(handle, self.reader.word_key(epoch, name, text), epoch)

    def _words(self, document: Document) -> list[tuple[str, bytes]]:
        return [(name, text) for name, field in self.fields.items() for text in field.words(document.get(name, MISSING))]

    def _update(
        self, filter: Any, changed: Callable[[Document], Document], *, most: int | None, version: int | None = None
    ) -> Updated:
        given = read(filter, self.fields)
        with writing(self.reader) as change:
            found, epoch = self._found(given)[:most], self._keys.epoch
            modified = 0
            for row, document in found:
                if version is not None and row.version != version:
                    raise Conflict(
                        "The document was not changed",
                        why="another writer changed it since",
                        instead="find_one and version again",
                    )
                following = self._checked(changed(document))
                if comparable(following["_id"]) != comparable(document["_id"]):
                    raise InvalidParameter("The update is invalid", why="an _id stays", instead="delete_one and insert_one")
                if encode(following) != encode(document):
                    self._put(change, following, old=(row, document), epoch=epoch)
                    modified += 1
        return Updated(len(found), modified)

    def _delete(self, filter: Any, *, most: int | None) -> Deleted:
        given = read(filter, self.fields)
        with writing(self.reader) as change:
            found = self._found(given)[:most]
            for row, _ in found:
                change.remove(row.handle)
        return Deleted(len(found))

    def _updating(self, update: Any) -> Callable[[Document], Document]:
        if not isinstance(update, dict) or not update or not all(isinstance(each, dict) for each in update.values()):
            raise InvalidParameter("The update is invalid", why="it is not a dict of operators", instead='{"$set": {"age": 40}}')
        if unknown := set(update) - {"$set", "$unset", "$inc"}:
            raise UnsupportedQuery(
                "The update is not supported",
                why=f"{len(unknown)} of its operators are not known here",
                instead="$set, $unset or $inc",
            )
        sets, unsets, adds = (check_document(update.get(operator, {})) for operator in ("$set", "$unset", "$inc"))
        if len({*sets, *unsets, *adds}) < len(sets) + len(unsets) + len(adds):
            raise InvalidParameter("The update is invalid", why="two operators change one field", instead="one operator a field")
        for name, value in adds.items():
            if name not in self.fields or not self.fields[name].total or not is_number(value):
                raise UnsupportedQuery(
                    "$inc is not supported", why="it adds numbers to fields that are added up", instead="Sum() in the declaration"
                )

        def changed(document: Document) -> Document:
            made = {name: value for name, value in (document | sets).items() if name not in unsets}
            for name, value in adds.items():
                try:
                    made[name] = (made.get(name) or 0) + value
                except OverflowError:  # a float that is added to a whole number beyond all floats
                    made[name] = math.inf  # which Sum() refuses
            return made

        return changed

    def _found(self, given: Filter) -> list[tuple[Row, Document]]:
        way: Access = access(given, self.fields)
        if way.everything:
            found = self._everything()
        else:
            handles = {self._keys.handle(self._table, identity): None for identity in way.identities} | self.reader.handles(
                way.words
            )
            found = [(row, self._sealer.opened(row)) for row, _ in self.reader.known(handles)]
        return [(row, document) for row, document in found if given.holds(document)]

    def _everything(self) -> list[tuple[Row, Document]]:
        return [(row, self._sealer.opened(row)) for row, _ in self.reader.everything()]

    def _projected(self, projection: Any) -> Callable[[Document], Document]:
        if projection is None:
            return lambda document: document
        listed = isinstance(projection, list) and all(isinstance(name, str) for name in projection)
        wanted = (dict.fromkeys(projection, 1) or {"_id": 1}) if listed else projection
        if not isinstance(wanted, dict):
            raise InvalidParameter("The projection is invalid", why="it is no list of names and no dict", instead='["age"]')
        flags = {bool(value) for name, value in wanted.items() if name != "_id"}
        if len(flags) > 1:
            raise InvalidParameter(
                "The projection is invalid", why="it both includes and excludes", instead='{"age": 1, "_id": 0}'
            )
        for name in wanted:
            if name != "_id" and name not in self.fields:
                raise UnknownColumn(
                    "The field is not known", why="the collection does not declare it", instead=", ".join(map(repr, self.fields))
                )
        includes = True in flags or (not flags and bool(wanted.get("_id")))
        kept = {name for name in ("_id", *self.fields) if (name in wanted) == includes and name != "_id"}
        if wanted.get("_id", 1):
            kept.add("_id")
        return lambda document: {name: value for name, value in document.items() if name in kept}
