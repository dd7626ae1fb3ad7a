"""A vault: collections in a store that is not trusted, under keys that stay with the client."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cloister.crypto import RandomizedCipher, WrongKey
from cloister.errors import EngineError, InvalidDeclaration, InvalidParameter
from cloister.vault.changes import Note
from cloister.vault.collection import BATCH, Collection
from cloister.vault.errors import Conflict, Tampered
from cloister.vault.fields import Field, declared
from cloister.vault.keys import DataSetKeys, Keys
from cloister.vault.merkle import EMPTY, root_of
from cloister.vault.state import Head, Leaf
from cloister.vault.store import Mark, SQLiteStore, Store
from cloister.vault.values import decode, encode, padded, unpadded

__all__ = ["Vault", "Verification"]


@dataclass(frozen=True)
class Verification:
    """What `Vault.verify` found; true where nothing is wrong.

    >>> bool(Verification(())), bool(Verification(("people: a record is missing",)))
    (True, False)
    """

    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        return "\n".join(self.problems) or "every record, and every entry that leads to one, is as this client wrote it"


class Vault:
    """A sealed document store: the server sees ciphertexts, and the client notices when it alters, omits or rolls back.

    >>> store = Vault("sqlite://", Keys.generate())
    >>> people = store.collection("people", {"name": Field()})
    >>> people.insert_one({"_id": 1, "name": "Ada"}).inserted_id
    1
    >>> print(store.verify())
    every record, and every entry that leads to one, is as this client wrote it
    """

    def __init__(
        self, store: str, keys: Keys, *, data_set: str = "default", join: bool = False, note: Note | None = None
    ) -> None:
        """`note` gets each detection, as ("alert", {"what": …, "why": …}): the `add` of an audit log."""
        if not isinstance(keys, Keys):
            raise InvalidParameter("The keys are invalid", why="they are not Keys", instead="Keys.generate() or Keys.load(path)")
        self._store = store_at(store)
        self._keys = DataSetKeys(keys, data_set)
        self._open: dict[str, Collection] = {}
        self._note = note
        try:
            self._begin(join)
        except BaseException:
            self._store.close()
            raise

    @classmethod
    def restore(
        cls, store: str, keys: Keys, *, data_set: str = "default", note: Note | None = None, delete_people: bool = False
    ) -> Vault:
        """A vault whose client state is lost, or whose store comes from a backup: the state is made again from the store, and
        all is encrypted and filed again under a new epoch. Each collection must be what this owner wrote at some time; that it
        is the newest, and that none was left out, cannot be known. Records of people whose keys are not in the state can't be
        read: of who was forgotten, or of all where the state is lost and no backup of it was put in its place. They are deleted
        with `delete_people`; without it nothing is done where there are such.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> keys = Keys.generate(f"{folder.name}/owner.keys")
        >>> people = Vault(f"sqlite:///{folder.name}/sealed.db", keys).collection("people", {"name": Field()})
        >>> _ = people.insert_one({"_id": 1, "name": "Ada"})
        >>> import os
        >>> os.remove(f"{folder.name}/owner.keys.state")
        >>> found = Vault.restore(f"sqlite:///{folder.name}/sealed.db", Keys.load(f"{folder.name}/owner.keys"))
        >>> found.collection("people").find()
        [{'_id': 1, 'name': 'Ada'}]
        """
        made = cls.__new__(cls)
        made._store, made._keys, made._open, made._note = store_at(store), DataSetKeys(keys, data_set), {}, note
        try:
            made._restore(delete_people)
        except BaseException:
            made.close()
            raise
        return made

    def collection(self, name: str, fields: Mapping[str, Field] | None = None, *, person: str | None = None) -> Collection:
        """A collection; without `fields`, one that is there already. `person` names the field that says whose record it is: its
        values, and all others of the record, are encrypted under a key of that person.

        >>> store = Vault("sqlite://", Keys.generate())
        >>> store.collection("visits", {"patient": Field()}, person="patient")
        <Collection 'visits'>
        """
        _check_declaration(name, fields, person)
        table = self._keys.name("collection", name)
        stored = self._declaration(table)
        wanted = None if fields is None else {field: each.told() for field, each in fields.items()}
        if stored is None:
            if self._keys.state.head(table) is not None:
                raise Tampered(
                    "The collection is missing", why="the store no longer has it", instead="the store's last good backup"
                )
            if wanted is None:
                raise InvalidParameter(
                    "The collection is not known", why="it was never declared", instead='collection(name, {"age": Range(0, 120)})'
                )
            declared_now = list((fields or {}).values())
            shows, adds = any(each.exposed for each in declared_now), any(each.added for each in declared_now)
            self._create(table, encode([name, list(wanted.items()), person]), tokens=shows, sums=adds)
            stored = self._declaration(table)  # another process may have been first, with other fields
            assert stored is not None
        if wanted is not None and ({field: each.told() for field, each in stored[1].items()}, stored[2]) != (wanted, person):
            raise InvalidDeclaration(
                f"The collection {name!r} is declared otherwise",
                why="it was made with other fields",
                instead=f"collection({name!r}), and collection.fields for what they are",
            )
        if self._keys.state.head(table) is None:  # a crash came between the store's side and this one
            self._keys.state.adopt(table, self._keys.id)
        if table not in self._open:
            self._open[table] = Collection(
                self._keys, self._store, table, name=name, fields=stored[1], person=stored[2], note=self._note
            )
        return self._open[table]

    def __getitem__(self, name: str) -> Collection:
        """A collection that is there already."""
        return self.collection(name)

    def collections(self) -> list[str]:
        """The names of the collections."""
        return sorted(each.name for each in self._all())

    def verify(self) -> Verification:
        """Compare every record, and every entry of the index that leads to one, with what this client wrote. Entries of what was
        changed or deleted are counted; one of them that was altered is noticed by the search that meets it."""
        problems, known = [], self._keys.state.collections(self._keys.id)
        listed = known
        if self._missing_epochs():
            problems.append("the wrapped keys in the store were changed: without them the store can't be restored")
        try:
            listed = self._store.collections(self._keys.id)
        except (Tampered, EngineError) as error:
            problems.append(f"{error.what}: {error.why}")
        for table in sorted({*known, *listed}):
            if table not in listed:
                problems.append("the store lists a collection no longer: it can't be restored")
            found = None
            try:
                found = self._collection(table)
                with found.reader.quietly():
                    self._verify(found)
            except (Tampered, Conflict, WrongKey, EngineError) as error:
                problems.append(f"{found.name if found else 'a collection'}: {error.what}: {error.why}")
        if self._note is not None:
            for problem in problems:
                self._note("alert", {"what": problem})
        return Verification(tuple(problems))

    def rotate(self, *, batches: int | None = None) -> bool:
        """Encrypt and file everything again under new keys, in batches of 500 records, and delete the old ones. True once it is
        done; with `batches`, call it again until then. The vault may be used in between. It ends a replacement of the owner's key
        (`Keys.replace`)."""
        if len(self._keys.state.epochs(self._keys.id)) < 2 or self._keys.is_replaced(self._keys.epoch):
            self._begin_epoch(self._next_epoch())
        epoch, left = self._keys.epoch, batches
        for collection in self._all():
            while left is None or left > 0:
                left = left if left is None else left - 1
                if collection.refresh(epoch, BATCH) < BATCH:
                    break
            if self._keys.state.outdated(collection.reader.table, epoch, 1):
                return False
        if self._keys.replacing:
            for table in {*self._keys.state.collections(self._keys.id), *self._store.collections(self._keys.id)}:
                self._seal_again(table)
        if not all(collection.end_epoch(epoch - 1) for collection in self._all()):
            return False if batches is not None else self.rotate()
        with self._store.writing():
            self._store.end_epochs(self._keys.id, epoch)
            self._keys.state.end_epochs(self._keys.id, epoch)
        self._keys.state.database.forget_log()
        self._keys.forget_epochs(epoch)
        self._keys.end_replacement()
        return True

    def forget(self, person: str | int) -> int:
        """Delete every record of a person, and the key without which no old copy of one can be read. Says how many there were.

        The key goes whatever the store does: where that fails or was altered, call it again once the store is mended."""
        pseudonym = self._keys.pseudonym(person, make=False)
        gone = 0
        if pseudonym is not None:
            try:
                gone += sum(collection.forget(pseudonym) for collection in self._all())
            except BaseException:  # one who stops it, too
                self._keys.forget(person, records=True)
                self._keys.state.database.forget_log()
                raise
            self._keys.forget(person)
            gone += sum(collection.forget(pseudonym) for collection in self._all())  # what another process wrote in between
        self._keys.state.database.forget_log()
        self._store.database.forget_log()
        return gone

    def knows(self, person: str | int) -> bool:
        """Whether there is a key of this person, or a trace of one that was deleted while records were left."""
        return self._keys.pseudonym(person, make=False) is not None

    def has_key(self, person: str | int) -> bool:
        """Whether there is a key of this person."""
        pseudonym = self._keys.pseudonym(person, make=False)
        return pseudonym is not None and self._keys.state.key_of(pseudonym) is not None

    def root(self, name: str) -> tuple[int, str]:
        """Counter and root of a collection: equal for two clients if they know the same history."""
        head = self.collection(name).reader.head()
        return head.counter, head.root.hex()

    @property
    def epoch(self) -> int:
        """Under which keys everything is written: one more after each rotation."""
        return self._keys.epoch

    def close(self) -> None:
        """Close the store. The keys stay open."""
        self._store.close()

    def __enter__(self) -> Vault:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Inside

    def _begin(self, join: bool) -> None:
        if self._keys.state.restoring(self._keys.id):
            raise Conflict("The vault was not opened", why="a restoration has not ended", instead="Vault.restore(store, keys)")
        if not self._keys.epoch:
            if self._store.epochs(self._keys.id):
                raise Conflict(
                    "The vault was not opened",
                    why="it was written before, and the client's state has lost it",
                    instead="Vault.restore(store, keys)",
                )
            if not join and not self._store.is_empty():
                raise WrongKey(
                    "The vault was not opened",
                    why="the store has data of other keys or data sets, and none of these",
                    instead="the keys that it was written with, or join=True to begin a data set beside the others",
                )
            self._begin_epoch(1)
            self._keys.state.copied(self._keys.id, now=False)
        elif self._keys.state.copied(self._keys.id):  # the server may have seen positions that this copy takes for unused
            self._begin_epoch(self._next_epoch())
            self._keys.state.copied(self._keys.id, now=False)
        elif self._missing_epochs():
            with self._store.writing():
                self._store_epochs()

    def _create(self, table: str, text: bytes, *, tokens: bool, sums: bool) -> None:
        sealed = self._sealed(table, padded(text))
        mark = hmac.digest(self._keys.signing_keys("mark", table)[0], (0).to_bytes(8, "big") + EMPTY, "sha256")
        with self._store.writing():
            if self._store.mark(table) is None:
                self._store.create(table, self._keys.id, Mark(0, EMPTY, mark), sealed, tokens=tokens, sums=sums)
        self._keys.state.adopt(table, self._keys.id)

    def _sealed(self, table: str, text: bytes) -> bytes:
        return RandomizedCipher(self._keys.signing_keys("declaration", table)[0]).encrypt(text, table.encode())

    def _opened(self, table: str) -> bytes | None:
        """A declaration as text; under the owner's key, or the one that it replaces."""
        sealed, keys = self._store.sealed(table), self._keys.signing_keys("declaration", table)
        if sealed is None:
            return None
        for key in keys[1:]:
            with suppress(WrongKey):
                return RandomizedCipher(key).decrypt(sealed, table.encode())
        return RandomizedCipher(keys[0]).decrypt(sealed, table.encode())

    def _seal_again(self, table: str) -> None:
        """A declaration under the owner's present key; a collection that a crash left out of the state is in it then, and one
        that this owner never made stays as it is."""
        try:
            self._collection(table)
        except WrongKey:
            if self._keys.state.head(table) is not None:
                raise
            return
        with self._store.writing():
            self._store.seal(table, self._sealed(table, self._opened(table) or b""))

    def _declaration(self, table: str) -> tuple[str, dict[str, Field], str | None] | None:
        text = self._opened(table)
        if text is None:
            return None
        name, fields, person = decode(unpadded(text))
        return name, {field: declared(told) for field, told in fields}, person

    def _collection(self, table: str) -> Collection:
        stored = self._declaration(table)
        if stored is None:
            raise Tampered("The collection is missing", why="the store no longer has it", instead="the store's last good backup")
        return self.collection(stored[0])

    def _all(self) -> list[Collection]:
        return [self._collection(table) for table in self._keys.state.collections(self._keys.id)]

    def _next_epoch(self) -> int:
        """A number that neither side had: another client's key in the store is not overwritten."""
        stored = [number for number, key in self._store.epochs(self._keys.id).items() if self._keys.is_epoch(number, key)]
        return max([0, *stored, *self._keys.state.epochs(self._keys.id)]) + 1

    def _begin_epoch(self, number: int) -> None:
        with self._store.writing():  # one process at a time: two that begin to rotate begin with the same key
            self._keys.state.add_epoch(self._keys.id, number, *self._keys.new_epoch(number))
            self._store_epochs()

    def _store_epochs(self) -> None:
        """The store has each wrapped key, so that what is written under it can be restored; also after a crash. Another key of
        this owner under the same number stays: it is that of a client with another state, and its records are lost without it."""
        stored = self._store.epochs(self._keys.id)
        for number, wrapped in self._missing_epochs().items():
            if number not in stored or not self._keys.is_epoch(number, stored[number]):
                self._store.add_epoch(self._keys.id, number, wrapped)

    def _missing_epochs(self) -> dict[int, bytes]:
        """The wrapped keys that the store lacks. One too many may be that of an older copy, and stays until a rotation."""
        stored = self._store.epochs(self._keys.id)
        return {number: key for number, key in self._keys.state.epochs(self._keys.id).items() if stored.get(number) != key}

    def _verify(self, collection: Collection) -> None:
        reader = collection.reader
        with reader.reading():
            for (epoch, field, text), handles in collection.expected_entries().items():
                if not handles <= reader.handles([(field, text)], epoch).keys():
                    raise Tampered("The index was changed", why="a record is not filed where it belongs")
            if reader.store.entry_count(reader.table) != reader.state.entries(reader.table):
                raise Tampered("The index was changed", why="it has more or fewer entries than were written")
            if reader.sealer.tokens and {*map(tuple, reader.store.tokens(reader.table))} != collection.expected_tokens():
                raise Tampered("The tokens were changed", why="one is missing, or another one than was written")
            collection.check_sums()
            leaves = {handle: leaf.mac for handle, leaf in reader.state.leaves(reader.table).items()}
            if root_of(leaves) != reader.head().root:
                raise Tampered("The client's state was changed", why="its records do not add up to its root")

    def _restore(self, delete_people: bool) -> None:
        state, data_set, lost = self._keys.state, self._keys.id, 0
        known: dict[str, Any] = {}
        with self._store.reading():
            wrapped = self._store.epochs(data_set)
            if not all(self._keys.is_epoch(number, key) for number, key in wrapped.items()):
                raise WrongKey(
                    "The vault was not restored",
                    why="the key of an epoch was not wrapped by this owner",
                    instead="another backup",
                )
            for table in self._store.collections(data_set):
                stored = self._declaration(table)
                assert stored is not None
                collection = Collection(self._keys, self._store, table, name=stored[0], fields=stored[1], person=stored[2])
                mark = collection.reader.mark()
                sealer, rows = collection.reader.sealer, list(self._store.records(table))
                leaves = {row.handle: Leaf(row.epoch, sealer.mac(row)) for row in rows}
                if root_of({handle: leaf.mac for handle, leaf in leaves.items()}) != mark.root:
                    raise Tampered(
                        "The vault was not restored", why="a collection is not as its owner wrote it", instead="another backup"
                    )
                known[table] = (Head(mark.counter, mark.root), leaves)
                lost += sum(not sealer.is_readable(row) for row in rows)
        if not known and not wrapped:
            raise InvalidParameter(
                "The vault was not restored", why="the store has nothing of this owner and data set", instead="Vault(store, keys)"
            )
        if lost and not delete_people:
            raise Conflict(
                "The vault was not restored",
                why=f"{lost:,} records of people whose keys are not in the client's state would be deleted",
                instead="a backup's state beside the keys, or delete_people=True if these people were forgotten",
            )
        state.restoring(data_set, now=True)
        state.start_again(data_set, known, wrapped)
        self._begin_epoch(self._next_epoch())
        self.rotate()
        state.copied(data_set, now=False)
        state.restoring(data_set, now=False)


def _check_declaration(name: Any, fields: Any, person: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidDeclaration("The collection's name is invalid", why="it is not a text, or empty", instead='"people"')
    if fields is None:
        return
    if not isinstance(fields, Mapping) or not fields or not all(isinstance(each, Field) for each in fields.values()):
        raise InvalidDeclaration(
            "The fields are invalid", why="they are not a dict of declarations", instead='{"age": Range(0, 120)}'
        )
    for field in fields:
        if not isinstance(field, str) or not field or field.startswith("$") or "." in field or field == "_id":
            raise InvalidDeclaration(
                "A field's name is invalid", why="it is empty, _id, begins with $ or has a dot", instead="a name like 'age'"
            )
    if person is not None and person not in fields:
        raise InvalidDeclaration("person is invalid", why="it is not one of the fields", instead='person="patient"')


def store_at(url: str) -> Store:
    """The store of an address."""
    scheme, found, path = str(url).partition("://")
    if scheme == "postgresql" and path and "\0" not in path:
        from cloister.vault.postgres import PostgresStore

        return PostgresStore(str(url))
    if scheme != "sqlite" or not found or (path and not path.startswith("/")) or path == "/" or "\0" in path:
        raise InvalidParameter(
            "The store is invalid",
            why="only SQLite files and PostgreSQL are stores",
            instead='"sqlite:///sealed.db", or "postgresql://keeper@db.example.org/sealed"',
        )
    return SQLiteStore(path[1:])
