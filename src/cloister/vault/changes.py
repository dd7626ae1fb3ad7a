"""One change of a collection, whole or not at all, and reading that notices what the server altered.

Claim: what a client reads is the collection as this client's state knows it, or the read is an error. Sketch: the state has the
HMAC of every record (`merkle.py` says why the root stands for all of them). A record that was altered, brought back from an
earlier version, moved to another handle or written twice has another HMAC or no entry in the state; one that was left out is in
the state and not in the answer. An index that omits or changes an entry fails by its positions and tags (`index.py`). A store
that is rolled back as a whole shows an older counter than the state's. One change may be taken back unseen: the last one, where
the client's machine lost power before the state had it on disk as applied, since it then looks like one that was never made.

Clients that share one state notice all of this at once. Clients with states of their own notice a fork when they compare counter
and root, not before.
"""

import hmac
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cloister.vault.errors import Conflict, Tampered
from cloister.vault.index import Word, WordKey
from cloister.vault.keys import DataSetKeys
from cloister.vault.records import Sealer
from cloister.vault.state import Head, Leaf, Pending
from cloister.vault.store import Changes, Mark, Row, Store

BACKUP = "the store's last good backup, or Vault.restore(store, keys) if it is known to be right"
_TRIES = 200
Note = Callable[[str, Mapping[str, str]], None]


class Reader:
    """The records and the index of one collection, checked against the client's state."""

    def __init__(self, keys: DataSetKeys, store: Store, table: str, sealer: Sealer, note: Note | None = None) -> None:
        self.keys, self.state, self.store, self.table, self.sealer = keys, keys.state, store, table, sealer
        self._note = note

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Whatever the server altered is told."""
        try:
            yield
        except Tampered as error:
            if self._note is not None:
                self._note("alert", {"what": error.what, "why": error.why})
            raise

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """For someone who tells it otherwise."""
        kept, self._note = self._note, None
        try:
            yield
        finally:
            self._note = kept

    @contextmanager
    def reading(self) -> Iterator[None]:
        """State and store as of the same moment."""
        with self.noting(), self._together():
            yield

    @contextmanager
    def _together(self) -> Iterator[None]:
        for attempt in range(_TRIES):
            with self.store.reading(), self.state.database.transaction():  # the order in which a writer takes them
                head, mark = self.head(), self.mark()
                if (mark.counter, mark.root) == (head.counter, head.root):
                    yield
                    return
            if head.pending is not None:
                pending = Pending.of(head.pending)
                if (mark.counter, mark.root) == (pending.counter, pending.root):
                    self.state.apply(self.table, pending)
                    continue
            if attempt == _TRIES - 1 or self.head() == head:  # another process of this client may be between two steps
                raise mismatch(head, mark)
            time.sleep(0.005)

    def head(self) -> Head:
        """How far the state is."""
        head = self.state.head(self.table)
        if head is None:
            raise Conflict(
                "The collection is not known", why="the client's state has lost it", instead="Vault.restore(store, keys)"
            )
        return head

    def mark(self) -> Mark:
        """How far the store is, by a statement that the client signed."""
        mark = self.store.mark(self.table)
        if mark is None:
            raise Tampered("The collection is missing", why="the store no longer has it", instead=BACKUP)
        formed = (
            isinstance(mark.counter, int) and mark.counter >= 0 and isinstance(mark.root, bytes) and isinstance(mark.mac, bytes)
        )
        if not formed or not any(hmac.compare_digest(mark.mac, each) for each in self.signatures(mark.counter, mark.root)):
            raise Tampered(
                "The collection was changed", why="its counter and root were not written by this owner", instead=BACKUP
            )
        return mark

    def signatures(self, counter: int, root: bytes) -> list[bytes]:
        """The HMAC of a counter and a root, and that under an owner's key that is being replaced."""
        text = counter.to_bytes(8, "big") + root
        return [hmac.digest(key, text, "sha256") for key in self.keys.signing_keys("mark", self.table)]

    def known(self, handles: Iterable[bytes]) -> list[tuple[Row, Leaf]]:
        """The records with these handles that are alive; an error where the store does not have them as they were written."""
        leaves = self.state.leaves(self.table, list(handles))
        return self._checked(self.store.records(self.table, list(leaves)) if leaves else [], leaves)

    def everything(self) -> list[tuple[Row, Leaf]]:
        """All records."""
        return self._checked(self.store.records(self.table), self.state.leaves(self.table))

    def handles(self, words: Sequence[tuple[str, bytes]], epoch: int | None = None) -> dict[bytes, None]:
        """The handles that are filed under one of these words (in one epoch, or in all), whatever became of the records since."""
        epochs = self.state.index_keys(self.keys.id) if epoch is None else [epoch]
        keys = {key.name: key for key in (self.word_key(number, *each) for number in epochs for each in words)}
        known = self.state.words(self.table, list(keys))
        wanted = {keys[name].address(at): (keys[name], at) for name, word in known.items() for at in word.positions()}
        return dict.fromkeys(self._opened(wanted))

    def between(self, tokens: Iterable[tuple[str, Any, Any]]) -> dict[bytes, None]:
        """The handles that, by the store's word, have tokens from that of one value to that of another."""
        found: dict[bytes, None] = {}
        for epoch in self.state.index_keys(self.keys.id):
            for name, first, last in tokens:
                bounds = self.sealer.token(epoch, name, first), self.sealer.token(epoch, name, last)
                found |= dict.fromkeys(self.store.between(self.table, self.sealer.tokens[name][0], epoch, bounds))
        return found

    def entries(self, words: Sequence[tuple[str, bytes]]) -> list[int]:
        """How many entries each of these words has, of what is alive and of what is not, by the client's own count."""
        keys = [[self.word_key(epoch, *each).name for epoch in self.state.index_keys(self.keys.id)] for each in words]
        known = self.state.words(self.table, [name for names in keys for name in names])
        return [sum(known[name].entries for name in names if name in known) for names in keys]

    def word_handles(self, key: WordKey, word: Word) -> list[bytes]:
        """The handles that are filed under one word."""
        return self._opened({key.address(at): (key, at) for at in word.positions()})

    def word_key(self, epoch: int, field: str, text: bytes) -> WordKey:
        """The key of a word."""
        return self.keys.word(epoch, self.table, field, text)

    def _opened(self, wanted: dict[bytes, tuple[WordKey, int]]) -> list[bytes]:
        addresses = sorted(wanted)  # in this order, so that the order says nothing of words and positions
        found = self.store.entries(self.table, addresses)
        if found.keys() != wanted.keys() or not all(isinstance(content, bytes) for content in found.values()):
            raise Tampered("The index was changed", why="an entry is missing", instead=BACKUP)
        return [wanted[address][0].opened(wanted[address][1], found[address]) for address in addresses]

    def _checked(self, rows: Iterable[Row], leaves: dict[bytes, Leaf]) -> list[tuple[Row, Leaf]]:
        found = {}
        for row in rows:
            leaf = leaves.get(row.handle)
            if leaf is None:
                raise Tampered("A record was added", why="this client did not write it", instead=BACKUP)
            if not hmac.compare_digest(leaf.mac, self.sealer.mac(row)):
                raise Tampered("A record was changed", why="it is not the one that this client wrote last", instead=BACKUP)
            found[row.handle] = (row, leaf)
        if len(found) != len(leaves):
            raise Tampered("A record is missing", why="this client did not delete it", instead=BACKUP)
        return [
            found[handle] for handle in sorted(found)
        ]  # the order is the client's, so that "the first" is not the server's choice


class Change:
    """What is about to be written; `committed` by `writing`."""

    def __init__(self, reader: Reader, head: Head) -> None:
        self._reader, self._head = reader, head
        self._rows: dict[bytes, Row] = {}
        self._leaves: dict[bytes, Leaf | None] = {}
        self._words: dict[bytes, Word] = {}
        self._filed: list[tuple[bytes, Sequence[WordKey], int]] = []
        self._entries: list[tuple[bytes, int, bytes]] = []
        self._dropped: list[bytes] = []
        self._tokens: list[tuple[str, int, bytes, bytes]] = []
        self._sums: dict[bytes, list[tuple[str, int, bytes, int]]] = {}
        self.version = head.counter + 1
        """Of what this change writes: no record of the collection had it before, not even one that was deleted since."""
        self.ended: int | None = None
        self.nodes: dict[str, bytes] = {}

    def exists(self, handle: bytes) -> bool:
        """Whether there is a record, this change included."""
        if handle in self._leaves:
            return self._leaves[handle] is not None
        return bool(self._reader.state.leaves(self._reader.table, [handle]))

    def put(self, row: Row, document: Mapping[str, Any]) -> None:
        """Write a record, with its tokens and Paillier cells in place of those that it had."""
        sealer = self._reader.sealer
        self._rows[row.handle] = row
        self._tokens += sealer.tokens_of(document, row.handle, row.epoch)
        self._leaves[row.handle] = leaf = Leaf(row.epoch, sealer.mac(row))
        if sealer.adder:
            self._sums[row.handle] = sealer.adder.cells(document, row.handle, leaf)

    def remove(self, handle: bytes) -> None:
        """Delete a record. Its entries in the index stay, and lead nowhere, until keys are rotated or the person is forgotten."""
        self._rows.pop(handle, None)
        if self._reader.sealer.tokens:
            self._tokens.append(("", 0, b"", handle))
        if self._reader.sealer.adder:
            self._sums[handle] = [("", 0, handle, 0)]
        self._leaves[handle] = None

    def file(self, handle: bytes, keys: Sequence[WordKey], epoch: int) -> None:
        """File a record under words, once the change is committed."""
        self._filed.append((handle, keys, epoch))

    def _file(self, filed: Iterable[tuple[bytes, Sequence[WordKey], int]]) -> None:
        """At positions that were never used."""
        filed = list(filed)
        known = self._known([key for _, keys, _ in filed for key in keys])
        for handle, keys, epoch in filed:
            for key in keys:
                word = known.get(key.name) or Word(epoch)
                address, content = key.entry(word.used, handle)
                self._entries.append((address, epoch, content))
                known[key.name] = Word(word.epoch, word.used + 1, word.skipped)
        self._words.update(known)

    def compact(self, key: WordKey) -> None:
        """File the living records of a word again and delete all entries from before."""
        word = self._known([key]).get(key.name)
        if word is None:
            return
        kept = [handle for handle in dict.fromkeys(self._reader.word_handles(key, word)) if self.exists(handle)]
        self._dropped += [key.address(at) for at in word.positions()]
        self._file((handle, [key], word.epoch) for handle in kept)
        self._words[key.name] = self._words.get(key.name, word).skipping(0, word.used)

    def commit(self) -> Pending | None:
        """Steps 1 and 2 of a change (`state.py`)."""
        self._file(self._filed)
        if not (self._leaves or self._words or self.ended is not None):
            return None
        reader, counter = self._reader, self.version
        root, self.nodes = reader.state.root_with(reader.table, self._leaves) if self._leaves else (self._head.root, {})
        pending = Pending(counter, root, self._leaves, self._words, self.ended)
        reader.state.propose(reader.table, self._head.counter, pending)
        removed = sorted(handle for handle, leaf in self._leaves.items() if leaf is None)
        # sorted, so that neither the statements nor the layout of the file's pages say in which order things came
        tokens = sorted(each for each in self._tokens if not each[0] or self._leaves.get(each[3]) is not None)
        sums = sorted(each for cells in self._sums.values() for each in cells)
        rows, entries, dropped = sorted(self._rows.values()), sorted(self._entries), sorted(self._dropped)
        changes = Changes(rows, removed, entries, dropped, self.ended, tokens, sums)
        reader.store.write(reader.table, Mark(counter, root, reader.signatures(counter, root)[0]), changes)
        return pending

    def _known(self, keys: Sequence[WordKey]) -> dict[bytes, Word]:
        names = dict.fromkeys(key.name for key in keys)
        here = {name: self._words[name] for name in names if name in self._words}
        rest = [name for name in names if name not in here]
        return self._reader.state.words(self._reader.table, rest) | here if rest else here


@contextmanager
def writing(reader: Reader) -> Iterator[Change]:
    """One change. The store's lock keeps other writers out; what a crash left behind is settled first."""
    with reader.noting(), reader.store.writing():
        head = _settled(reader)
        change = Change(reader, head)
        yield change
        pending = change.commit()
    if pending is not None:
        reader.state.apply(reader.table, pending, change.nodes)


def _settled(reader: Reader) -> Head:
    head, mark = reader.head(), reader.mark()
    if head.pending is not None:
        pending = Pending.of(head.pending)
        if (mark.counter, mark.root) == (pending.counter, pending.root):
            reader.state.apply(reader.table, pending)
        elif (mark.counter, mark.root) == (head.counter, head.root):
            reader.state.discard(reader.table, pending)
        head = reader.head()
    if (mark.counter, mark.root) != (head.counter, head.root):
        raise mismatch(head, mark)
    return head


def mismatch(head: Head, mark: Mark) -> Tampered | Conflict:
    """What is wrong when state and store are not equally far."""
    if mark.counter < head.counter:
        return Tampered("The store was rolled back", why="it is older than what this client wrote last", instead=BACKUP)
    if mark.counter > head.counter:
        return Conflict(
            "The client's state is behind the store",
            why="another client of this owner wrote, or the state is a backup",
            instead="one state for all clients, or Vault.restore(store, keys)",
        )
    return Tampered("The store has another history", why="another client wrote at the same time as this one", instead=BACKUP)
