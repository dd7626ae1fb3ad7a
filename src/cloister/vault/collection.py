"""A collection of documents, in the words that users of pymongo know."""

# ruff: noqa: A002 - `filter` is what pymongo calls it

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cloister.errors import InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.noise import default_random
from cloister.vault.aggregates import read_pipeline, sort_keys, sorting, sums_of, whole
from cloister.vault.attacks import Leakage, leakage
from cloister.vault.changes import BACKUP, Change, Note, Reader, writing
from cloister.vault.errors import Conflict, DuplicateKey, Tampered
from cloister.vault.explanation import Explanation, explanation
from cloister.vault.fields import MISSING, Field
from cloister.vault.filters import Access, Filter, Order, access, declaration, read
from cloister.vault.keys import DataSetKeys
from cloister.vault.masking import CellSealer, Masked, Masker
from cloister.vault.ordering import first_records
from cloister.vault.records import Sealer
from cloister.vault.results import Deleted, Documents, Inserted, Updated
from cloister.vault.store import Row, Store
from cloister.vault.values import check_document, comparable, encode, is_number

__all__ = ["Collection"]

BATCH = 500
"""Documents of one change, where many are written."""

Document = dict[str, Any]


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
        self,
        keys: DataSetKeys,
        store: Store,
        table: str,
        *,
        name: str,
        fields: Mapping[str, Field],
        person: str | None,
        note: Note | None = None,
    ) -> None:
        self.name, self.fields, self.person = name, dict(fields), person
        self._keys, self._store, self._table = keys, store, table
        self._sealer = Sealer(keys, table, self.fields, person)
        self.reader = Reader(keys, store, table, self._sealer, note)

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
        texts = [self._sealer.texts(document) for document in ready]
        for start in range(0, len(ready), BATCH):
            with writing(self.reader) as change:
                self._insert(change, ready[start : start + BATCH], texts[start : start + BATCH])
        return Inserted([document["_id"] for document in ready])

    def update_one(self, filter: Any, update: Document, upsert: bool = False, *, version: int | None = None) -> Updated:
        """Change the first document that matches, by `$set`, `$unset` and `$inc`. With `upsert`, where none does, add one that
        has what the filter equals, changed so."""
        return self._update(filter, self._updating(update), most=1, version=version, upsert=upsert)

    def update_many(self, filter: Any, update: Document, upsert: bool = False) -> Updated:
        """Change every document that matches, by `$set`, `$unset` and `$inc`; with `upsert`, add one where none does."""
        return self._update(filter, self._updating(update), most=None, upsert=upsert)

    def replace_one(self, filter: Any, document: Document, upsert: bool = False, *, version: int | None = None) -> Updated:
        """Put a document in the place of the first one that matches; with `upsert`, add it where none does. With `version=`, only
        if nobody changed it since."""
        check_document(document)
        return self._update(filter, lambda old: {"_id": old["_id"]} | document, most=1, version=version, upsert=upsert)

    def delete_one(self, filter: Any) -> Deleted:
        """Delete the first document that matches."""
        return self._delete(filter, most=1)

    def delete_many(self, filter: Any) -> Deleted:
        """Delete every document that matches."""
        return self._delete(filter, most=None)

    def create_index(self, keys: str | list[tuple[str, int]], **options: Any) -> str:
        """The name of the index of a field, as pymongo gives it. The declaration made it; a field without one is refused, by the
        declaration that would make it. One field an index: a filter looks one condition up, and two would show both."""
        if any(options.values()):
            raise UnsupportedQuery(
                "The index is not supported",
                why="no option changes what a declaration made, and only `_id` is unique",
                instead="the value that is to be unique as `_id`",
            )
        names = [(keys, 1)] if isinstance(keys, str) else keys
        if (
            not isinstance(names, list)
            or len(names) != 1
            or not isinstance(names[0], tuple | list)
            or len(names[0]) != 2
            or not isinstance(names[0][0], str)
        ):
            raise UnsupportedQuery("The index is not supported", why="it is not of one field", instead='create_index("town")')
        ((name, way),) = names
        field = declaration(name, self.fields)
        if not (field.equal or field.domain or field.exposed):
            raise UnsupportedQuery(
                f"The index of {name!r} was not made",
                why="the field was not declared to be found",
                instead="Equal() or Range(low, high) in its declaration",
            )
        return f"{name}_{way}"

    # Reading

    def find(self, filter: Any = None, projection: Any = None, *, sort: Any = None, skip: int = 0, limit: int = 0) -> Documents:
        """The documents that match, as a list. `limit=0` is all of them. With `sort` and `limit` together, no more is read than
        that needs: the same as a chain, `find(…).sort(…).limit(…)`, sorts and cuts what `find` has read."""
        given, shown = read(filter, self.fields), self._projected(projection)
        order = self._order(sort, skip, limit)
        with self.reader.reading():
            found = [document for _, document in self._found(given, order)]

        def again(sort: Any, skip: int, limit: int) -> Documents:
            if order is not None:  # no more was read than that order needs
                return self.find(filter, projection, sort=sort, skip=skip, limit=limit)
            return cut(sort, skip, limit)

        def cut(sort: Any, skip: int, limit: int) -> Documents:
            self._order(sort, skip, limit)
            rows = found if sort is None else sorting(sort, self.fields)(found)
            return Documents(map(shown, rows[skip : skip + limit if limit else None]), again, sort, skip, limit)

        return cut(sort, skip, limit)

    def find_one(self, filter: Any = None, projection: Any = None, *, sort: Any = None, skip: int = 0) -> Document | None:
        """The first document that matches, or None; without `sort`, any one."""
        return next(iter(self.find(filter, projection, sort=sort, skip=skip, limit=1)), None)

    def count_documents(self, filter: Any) -> int:
        """How many documents match. All of them are counted without asking the server."""
        if read(filter, self.fields) == Filter():
            if self.reader.head().pending is not None:
                with self.reader.reading():  # the store knows whether a killed change was made
                    pass
            return self.reader.state.size(self._table)
        return len(self.find(filter))

    def aggregate(self, pipeline: list[Document]) -> list[Document]:
        """`$match`, `$group` with `$sum`, `$avg`, `$min`, `$max` and `$count`, `$match` of its columns, `$sort`, `$skip` and
        `$limit`."""
        given, stages, order = read_pipeline(pipeline, self.fields)
        way, sums = self._way(given, order, pipeline)
        with self.reader.reading():
            if way.added:
                rows, stages = self._added(way, sums, given), stages[1:]
            else:
                rows = [document for _, document in self._found(given, order)]
        for stage in stages:
            rows = stage(rows)
        return rows

    def version(self, identity: Any) -> int:
        """Which change of the collection wrote the document with this `_id`: for `replace_one(…, version=…)`."""
        with self.reader.reading():
            for row, _ in self.reader.known([self._keys.handle(self._table, identity)]):
                return row.version
        raise InvalidParameter("The document was not found", why="none has this _id", instead="the _id of a document")

    def explain(self, filter: Any = None, *, sort: Any = None, skip: int = 0, limit: int = 0) -> Explanation:
        """What a query leaks, before it runs: for a filter with an order and a limit, or for a pipeline."""
        if isinstance(filter, list):
            given, stages, order = read_pipeline(filter, self.fields)
            return explanation(given, self._way(given, order, filter)[0], self.fields, computed=bool(stages))
        given, order = read(filter, self.fields), self._order(sort, skip, limit)
        return explanation(given, access(given, self.fields, order), self.fields)

    def leakage(self, name: str, field: Field | None = None, **how: Any) -> Leakage:
        """What attackers would get of a column of this collection (`attacks.leakage`): as it is declared, or as it might be. The
        client reads every document for it."""
        if name not in self.fields:
            known = " or ".join(map(repr, self.fields))
            raise InvalidParameter(f"The field {name!r} is invalid", why="there is no field of that name", instead=known)
        column = [document.get(name) for document in self.find({})]
        if not column:
            raise InvalidParameter(
                f"The field {name!r} was not attacked",
                why="the collection has no document yet",
                instead="cloister.vault.leakage(values, field), with values like those that will come",
            )
        return leakage(column, field or self.fields[name], **how)

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
                    self._put(change, row.handle, self._sealer.opened(row), old=None, epoch=epoch)
                else:
                    change.remove(row.handle)
        return len(handles)

    def end_epoch(self, epoch: int) -> bool:
        """Delete the index of this epoch and those before; False, and nothing, where a record is still under one. What a crash
        left between store and state is in the state by then, and may be such a record."""
        with writing(self.reader) as change:
            if self.reader.state.outdated(self._table, epoch + 1, 1):
                return False
            change.ended = epoch
        return True

    def forget(self, pseudonym: bytes) -> int:
        """Delete the records of a person, and file the words that they had again without them."""
        if self.person is None:
            return 0
        altered = None
        with writing(self.reader) as change:
            gone = [row for row, _ in self.reader.everything() if self._sealer.pseudonym(row) == pseudonym]
            for row in gone:
                change.remove(row.handle)
            readable = [row for row in gone if self._sealer.is_readable(row)]
            words = {(row.epoch, *each) for row in readable for each in self._words(self._sealer.opened(row))}
            for epoch, name, text in sorted(words):
                try:
                    change.compact(self.reader.word_key(epoch, name, text))
                except Tampered as error:  # the records go all the same
                    altered = error
        if altered is not None:
            raise altered
        return len(gone)

    def expected_entries(self) -> dict[tuple[int, str, bytes], set[bytes]]:
        """Each word with the records that must be filed under it."""
        found: dict[tuple[int, str, bytes], set[bytes]] = {}
        for row, document in self._everything():
            for name, text in self._words(document):
                found.setdefault((row.epoch, name, text), set()).add(row.handle)
        return found

    def expected_tokens(self) -> set[tuple[str, int, bytes, bytes]]:
        """The tokens that the store must have."""
        return {each for row, document in self._everything() for each in self._sealer.tokens_of(document, row.handle, row.epoch)}

    def check_sums(self) -> None:
        """Whether the store's products of Paillier cells are those of the records."""
        adder = self._sealer.adder
        if not adder:
            return
        leaves = self.reader.state.leaves(self._table)
        documents = [document for _, document in self._everything()]
        for name in adder.names:
            values = [document[name] for document in documents if document.get(name) is not None]
            if tuple(adder.total(self._store, name, leaves, whole=True)) != (sum(values), len(values)):
                raise Tampered("The sum was changed", why="it is not that of the records", instead=BACKUP)

    # Inside

    def _way(self, given: Filter, order: Order | None, pipeline: list[Document]) -> tuple[Access, dict[str, Any]]:
        """How a pipeline finds what it needs: by a product at the store, where nothing but that is asked of all records, of some
        by their `_id`, or of those with a value in an index."""
        way, sums = access(given, self.fields, order), sums_of(pipeline, self.fields)
        equal = [each for each in given.conditions if each.operator in ("$eq", "$in") and not each.within]
        known = given == Filter() or (
            len(given.conditions) == len(equal) == 1 and not (way.everything or way.tokens or given.either)
        )
        names = tuple(dict.fromkeys(name for kind, name in sums.values() if kind != "$count"))
        if not (known and names) or any(word.startswith(b"<") for _, word in way.words):
            return way, {}
        said = (f"products of Paillier cells of {', '.join(map(repr, names))}", *way.said)
        return replace(way, added=names, said=said), sums

    def _added(self, way: Access, sums: dict[str, Any], given: Filter) -> list[Document]:
        """The one group of all records, or of some. The index leads to records as they were filed, so the client reads those that
        have changed since, and compares."""
        state = self.reader.state
        leaves = state.leaves(self._table, None if way.everything else self._handles(way))
        if way.words:
            for row, _ in self.reader.known(state.moved(self._table, [*leaves])):
                if not given.holds(self._sealer.opened(row)):
                    del leaves[row.handle]
        found = {name: self._sealer.adder.total(self._store, name, leaves, whole=way.everything) for name in way.added}
        made = {
            column: len(leaves) * name if kind == "$count" else found[name].value if kind == "$sum" else found[name].mean()
            for column, (kind, name) in sums.items()
        }
        return [{"_id": None} | made] if leaves else []

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

    def _insert(self, change: Change, documents: list[Document], texts: list[dict[str, bytes]]) -> None:
        epoch, handles = self._keys.epoch, [self._keys.handle(self._table, document["_id"]) for document in documents]
        if len({*handles}) < len(handles) or self.reader.state.leaves(self._table, handles):
            raise DuplicateKey(
                "The document was not written", why="another one has this _id", instead="another _id, or replace_one"
            )
        for handle, document, each in zip(handles, documents, texts, strict=True):
            self._put(change, handle, document, old=None, epoch=epoch, texts=each)

    def _put(
        self,
        change: Change,
        handle: bytes,
        document: Document,
        *,
        old: tuple[Row, Document] | None,
        epoch: int,
        texts: dict[str, bytes] | None = None,
    ) -> None:
        row = self._sealer.sealed(document, handle=handle, epoch=epoch, version=change.version, texts=texts)
        change.put(row, document)
        filed, words = self._words(old[1]) if old is not None and old[0].epoch == epoch else [], self._words(document)
        moved = {name for name, _ in {*words} - {*filed}}
        # also under the nodes that stay: their number would show how near old and new value are
        change.file(handle, [self.reader.word_key(epoch, *each) for each in words if each[0] in moved], epoch)

    def _words(self, document: Document) -> list[tuple[str, bytes]]:
        return [(name, text) for name, field in self.fields.items() for text in field.words(document.get(name, MISSING))]

    def _update(
        self,
        filter: Any,
        changed: Callable[[Document], Document],
        *,
        most: int | None,
        version: int | None = None,
        upsert: bool = False,
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
                    self._put(change, row.handle, following, old=(row, document), epoch=epoch)
                    modified += 1
            if not found and upsert:
                equals = {each.name: each.value for each in given.conditions if each.operator == "$eq"}
                document = self._checked(changed({"_id": default_random().bytes(12).hex()} | equals))
                self._insert(change, [document], [self._sealer.texts(document)])
                return Updated(0, 0, document["_id"])
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

    def _order(self, sort: Any, skip: int, limit: int) -> Order | None:
        """An order that leaves some out; None where all are wanted, or any."""
        skipped, most = whole("skip", skip), whole("limit", limit)
        first = skipped + most if most else 0
        if sort is not None:
            sorting(sort, self.fields)
        return Order(sort_keys(sort), first) if sort is not None and first else None

    def _found(self, given: Filter, order: Order | None = None) -> list[tuple[Row, Document]]:
        way: Access = access(given, self.fields, order)
        if way.first is not None:
            return first_records(self.reader, way.first, self.fields[way.first.name], given)
        if way.everything:
            found = self._everything()
        else:
            found = [(row, self._sealer.opened(row)) for row, _ in self.reader.known(self._handles(way))]
        return [(row, document) for row, document in found if given.holds(document)]

    def _handles(self, way: Access) -> list[bytes]:
        handles = {self._keys.handle(self._table, identity): None for identity in way.identities}
        return [*(handles | self.reader.handles(way.words) | self.reader.between(way.tokens))]

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
