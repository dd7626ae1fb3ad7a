"""Keys: owner → data set → purpose → field, with an epoch that rotates and a key for each person that can be forgotten.

    owner's key          32 random bytes, in a file; everything else is derived from it or wrapped under it
      data set           derived; declarations, and the HMAC of each collection's counter and root
    first owner's key    the same, until that is replaced (`Keys.replace`); then it stands beside it, for what keeps its name
      data set           derived; names, handles, HMACs of records: these stay whatever is replaced
      epoch of it        random, wrapped, in the store and in the client's state: values, by collection and field
        index            random, wrapped, in the client's state alone: the index of an epoch, by collection and field
        person           random, wrapped, in the client's state alone: enters into the key of each value of that person

Claim: keys of one owner, data set, collection, field, purpose or epoch tell nothing of another's. Sketch: each is HMAC-SHA-256 of
its own canonical text under a key above it, or is random; the texts differ, and HMAC-SHA-256 is a pseudo-random function.

Claim (forgetting): once the key of a person is deleted, and its backups, nobody can read a value of theirs, not even from an old
copy of the store with the owner's key. Sketch: a value's key is a PRF of the field's key and the person's, which is random, was
never in the store, and follows from nothing that is left. An index is many guesses of words away from its values, so its key was
never in the store either: whoever has an old copy and the owner's key finds no word. Whoever has the state as well finds words
until the next rotation deletes that key, and so it is with the values of a `PaillierSum`, which are under keys like those.

Claim (replacing): whoever has an owner's key that was replaced, all stores and all states from before, and the store from then
on, reads no value, word or declaration that is written once it has ended, and makes no collection that a restoration takes.
Sketch: values and words are under epochs that began afterwards, whose keys are random and wrapped under the new key
alone; a declaration, and the HMAC of counter and root, are under keys that follow from the new key; and once it has ended the
file has the old key for names only, so nothing that is wrapped or signed by it is accepted. Names, handles and HMACs of records
still follow from the first key: with it one can tell whether a record with a guessed `_id` is there.
"""

from __future__ import annotations

import hmac
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

from cloister.crypto import Keyring, RandomizedCipher, SigningKey, WrongKey, canonical_json, make_key_file, new_key
from cloister.errors import InvalidParameter
from cloister.noise import default_random
from cloister.stored import flush
from cloister.vault.errors import BackupExpired
from cloister.vault.index import HANDLE, WordKey
from cloister.vault.state import State
from cloister.vault.values import comparable

__all__ = ["DataSetKeys", "Keys"]

DOMAIN = "cloister vault 1"
_CIPHERS = 4096
"""How many people's ciphers stay in memory."""


class Keys:
    """The client's side of a vault: the owner's key, and the state beside it. It shows itself nowhere.

    With a path, the key lies in that file and the state in one beside it, `<path>.state`; without, both are in memory and are
    lost with the process.

    >>> keys = Keys.generate()
    >>> keys
    <Keys>
    """

    def __init__(self, master: bytes, *, state: State, names: bytes = b"", before: bytes = b"", path: Path | None = None) -> None:
        self._rings = [Keyring(each, domain=DOMAIN) for each in (master, before) if each]
        self._ring, self._naming = self._rings[0], Keyring(names or master, domain=DOMAIN)
        self._state, self._path = state, path
        self._master, self._names, self._before = master, names, before

    @classmethod
    def generate(cls, path: str | Path | None = None) -> Keys:
        """New keys; a file that is there already is not overwritten.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> keys = Keys.generate(f"{folder.name}/owner.keys")
        >>> Keys.load(f"{folder.name}/owner.keys")
        <Keys>
        """
        if path is None:
            return cls(new_key(), state=State())
        if Path(path).exists():
            raise InvalidParameter("The keys were not made", why="the file is there already", instead="Keys.load(path)")
        make_key_file(Path(path), new_key().hex() + "\n")
        return cls.load(path)

    @classmethod
    def load(cls, path: str | Path) -> Keys:
        """The keys in a file, with the state beside it."""
        try:
            first, *others = Path(path).read_text(encoding="ascii").splitlines()
            told = {"master": bytes.fromhex(first)} | {name: bytes.fromhex(key) for name, key in map(str.split, others)}
            if not told.keys() <= {"master", "names", "before"} or any(len(each) != 32 for each in told.values()):
                raise ValueError
        except (OSError, ValueError):
            raise InvalidParameter(
                "The keys could not be read",
                why="the file is missing or is not a file of keys",
                instead="the path given to Keys.generate",
            ) from None
        make_key_file(_state_of(Path(path)), "")  # an empty database that its owner alone can read; one that is there stays
        state = State(_state_of(Path(path)))
        last = state.expires()
        if last is not None and datetime.now(UTC).date() > last:
            state.database.close()
            raise BackupExpired(
                "The backup of the keys was not opened",
                why=f"its last day was {last}, and it may have the keys of people who were forgotten since",
                instead="a newer backup; delete this one",
            )
        return cls(**told, state=state, path=Path(path))

    @classmethod
    def replace(cls, path: str | Path) -> Keys:
        """Another owner's key in the file, because the one that is there may be known to somebody. The old one opens what it
        wrapped until every data set of these keys was rotated (`Vault.rotate`), and nothing afterwards. Nobody else may use the
        keys meanwhile. Once begun, the same again goes on with the same key, whatever it was stopped at.

        >>> import tempfile
        >>> from cloister.vault import Vault
        >>> folder = tempfile.TemporaryDirectory()
        >>> path, store = f"{folder.name}/owner.keys", f"sqlite:///{folder.name}/sealed.db"
        >>> Vault(store, Keys.generate(path)).close()
        >>> keys = Keys.replace(path)
        >>> Vault(store, keys).rotate(), keys.replacing
        (True, False)
        """
        keys = cls.load(path)
        if not keys.replacing:
            keys._keep(new_key(), names=keys._names or keys._master, before=keys._master)
        keys.close()
        return cls.load(path)

    @property
    def replacing(self) -> bool:
        """Whether a replacement of the owner's key has begun and not ended."""
        return bool(self._before)

    def replaced(self, data_set: str) -> None:
        """Nothing of a data set is under the key before: of the last one that key is forgotten."""
        if self.replacing and self._state.replaced(data_set, self._ring.derive(canonical_json(["id"]))):
            self._keep(self._master, names=self._names)
            self._before, self._rings = b"", self._rings[:1]

    def unwrap(self, wrapped: bytes, about: str) -> bytes:
        """What was wrapped under the owner's key, or the one that it replaces."""
        for ring in self._rings[1:]:
            with suppress(WrongKey):
                return ring.unwrap(wrapped, about)
        return self._ring.unwrap(wrapped, about)

    def _keep(self, master: bytes, *, names: bytes, before: bytes = b"") -> None:
        """The file, written beside and put in its place: whoever reads it finds the one before, or this one."""
        assert self._path is not None
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.unlink(missing_ok=True)
        make_key_file(draft, _text(master, names, before))
        draft.replace(self._path)
        flush(self._path.parent)

    def backup(self, path: str | Path, *, expires: date | None = None) -> None:
        """A copy of key and state in another place. It holds the keys of people: someone who is forgotten is forgotten once every
        backup from before is deleted, so let backups expire. After its last day, `Keys.load` refuses it (`BackupExpired`), which
        keeps nobody from its bytes: delete it, too. A vault that goes on from it before then does not expire.

        >>> import tempfile
        >>> from datetime import date
        >>> folder = tempfile.TemporaryDirectory()
        >>> Keys.generate().backup(f"{folder.name}/monday.keys", expires=date(2999, 12, 31))
        """
        if expires is not None and (type(expires) is not date or expires < datetime.now(UTC).date()):
            raise InvalidParameter(
                "The backup was not made", why="expires= is not a day from today on", instead="expires=date(2030, 12, 31)"
            )
        if Path(path).exists():
            raise InvalidParameter("The backup was not made", why="the file is there already", instead="another path")
        make_key_file(_state_of(Path(path)), "")
        self._state.database.copy(_state_of(Path(path)))
        copy = State(_state_of(Path(path)))
        copy.call_copied(expires)  # what is written after the backup used positions that the copy does not know
        copy.database.close()
        make_key_file(Path(path), _text(self._master, self._names, self._before))  # last: keys without a state are no backup

    @property
    def log_key(self) -> bytes:
        """The key of the audit log of whoever runs these keys. It stays, and its lines hold no secret."""
        return self._naming.derive(canonical_json(["audit log"]))

    @property
    def owner(self) -> SigningKey:
        """The key that signs batches of masked cells: a key holder is given its public half."""
        return SigningKey(self._ring.derive(canonical_json(["owner of masked cells"])))

    def close(self) -> None:
        """Close the state's file."""
        self._state.database.close()

    def __repr__(self) -> str:
        return "<Keys>"

    def __reduce__(self) -> str:
        raise TypeError("keys are not pickled")


def _state_of(path: Path) -> Path:
    return path.with_name(path.name + ".state")


def _text(master: bytes, names: bytes, before: bytes) -> str:
    others = [f"{name} {key.hex()}" for name, key in (("names", names), ("before", before)) if key]
    return "\n".join([master.hex(), *others, ""])


class DataSetKeys:
    """The keys of one data set of an owner."""

    def __init__(self, keys: Keys, data_set: str) -> None:
        self.state = keys._state
        self._owner, self._called = keys, canonical_json(["data set", data_set])
        self._fixed = Keyring(keys._naming.derive(self._called), domain=DOMAIN)
        self.id = self.name("data set")
        self._epochs: dict[int, Keyring] = {}
        self.cipher = lru_cache(_CIPHERS)(self._cipher)
        self.fixed_key = lru_cache(_CIPHERS)(self._fixed_key)
        self.word = lru_cache(_CIPHERS)(self._word)
        self._index_key = lru_cache(_CIPHERS)(self._derived_index_key)

    def name(self, *parts: str) -> str:
        """What the store calls something."""
        return self._fixed.derive(canonical_json(["name", *parts]))[:12].hex()

    def handle(self, collection: str, identity: object) -> bytes:
        """What the store calls the record with this `_id`."""
        return hmac.digest(self.fixed_key("handle", collection), comparable(identity), "sha256")[:HANDLE]

    def mac(self, purpose: str, collection: str, text: bytes) -> bytes:
        """HMAC-SHA-256 of a record, or of the counter and root of a collection."""
        return hmac.digest(self.fixed_key(purpose, collection), text, "sha256")

    def _fixed_key(self, purpose: str, collection: str) -> bytes:
        """A key that stays when keys are rotated."""
        return self._fixed.derive(canonical_json([purpose, collection]))

    def signing_keys(self, purpose: str, collection: str) -> list[bytes]:
        """The key of the owner's present key, and of the one that it replaces: what was written by either is accepted."""
        about = canonical_json([purpose, collection])
        return [Keyring(ring.derive(self._called), domain=DOMAIN).derive(about) for ring in self._owner._rings]

    # Epochs

    @property
    def epoch(self) -> int:
        """The epoch that is written under."""
        return max(self.state.epochs(self.id), default=0)

    def new_epoch(self, number: int) -> list[bytes]:
        """A key for another epoch and one for its index, both wrapped."""
        return [self._owner._ring.wrap(new_key(), about) for about in (self._about(number), self._about_index(number))]

    def is_epoch(self, number: int, wrapped: bytes) -> bool:
        """Whether this is the wrapped key of an epoch: then it is used from now on."""
        try:
            self._epochs[number] = Keyring(self._owner.unwrap(wrapped, self._about(number)), domain=DOMAIN)
        except WrongKey:
            return False
        return True

    def is_replaced(self, number: int) -> bool:
        """Whether the key of an epoch is under an owner's key that is being replaced."""
        try:
            return not self._owner._ring.unwrap(self.state.epochs(self.id)[number], self._about(number))
        except WrongKey:
            return True

    @property
    def replacing(self) -> bool:
        """Whether the owner's key is being replaced."""
        return self._owner.replacing

    def end_replacement(self) -> None:
        """People's keys under the owner's present key; then nothing is left under another one, but what `forget_epochs` ends."""
        if not self.replacing:
            return
        self.state.wrap_again(self.id, lambda name, key: self._wrapped_again(self._about_person(name), key))
        self._owner.replaced(self.id)

    def _wrapped_again(self, about: str, wrapped: bytes) -> bytes:
        return self._owner._ring.wrap(self._owner.unwrap(wrapped, about), about)

    def epoch_ring(self, number: int) -> Keyring:
        """The key of an epoch."""
        if number not in self._epochs:
            wrapped = self.state.epochs(self.id).get(number)
            if wrapped is None:
                raise WrongKey(
                    "A stored value could not be read",
                    why="the key of its epoch is not here",
                    instead="Vault.restore(store, keys)",
                )
            self._epochs[number] = Keyring(self._owner.unwrap(wrapped, self._about(number)), domain=DOMAIN)
        return self._epochs[number]

    def forget_epochs(self, before: int) -> None:
        """Nothing under these keys is left."""
        for number in [number for number in self._epochs if number < before]:
            del self._epochs[number]
        self._forget_derived()

    def _about(self, number: int) -> str:
        return canonical_json(["epoch", self.id, number])

    def _about_index(self, number: int) -> str:
        return canonical_json(["index", self.id, number])

    # Fields

    def _cipher(self, epoch: int, collection: str, field: str, pseudonym: bytes | None) -> RandomizedCipher:
        """The cipher of a field, for a person."""
        key = self.epoch_ring(epoch).derive(canonical_json(["value", collection, field]))
        if pseudonym is not None:
            wrapped = self.state.key_of(pseudonym)
            if wrapped is None:
                raise WrongKey(
                    "A stored value could not be read",
                    why="it is about a person who was forgotten",
                    instead="nothing: it is not readable",
                )
            key = hmac.digest(key, self._owner.unwrap(wrapped, self._about_person(pseudonym)), "sha256")
        return RandomizedCipher(key)

    def _word(self, epoch: int, collection: str, field: str, word: bytes) -> WordKey:
        """The key of a word in the index of a field."""
        return WordKey(hmac.digest(self._index_key(epoch, collection, field), word, "sha256"))

    def beside_words(self, purpose: Literal[b"token", b"sum"], epoch: int, collection: str, field: str) -> bytes:
        """The key of the tokens of a field, or of the tags of its Paillier cells; no word is called so."""
        return hmac.digest(self._index_key(epoch, collection, field), purpose, "sha256")

    def paillier(self, epoch: int, collection: str, made: bytes | None = None) -> bytes | None:
        """The Paillier keys of an epoch, in the state alone: `made` where there are none yet."""
        about = canonical_json(["paillier", self.id, collection, epoch])
        if made is not None:
            self.state.add_paillier(collection, epoch, self._owner._ring.wrap(made, about))
        wrapped = self.state.paillier(collection, epoch)
        return None if wrapped is None else self._owner.unwrap(wrapped, about)

    def _derived_index_key(self, epoch: int, collection: str, field: str) -> bytes:
        wrapped = self.state.index_keys(self.id).get(epoch)
        if wrapped is None:
            raise WrongKey(
                "The index could not be read", why="the key of its epoch is not here", instead="Vault.restore(store, keys)"
            )
        ring = Keyring(self._owner.unwrap(wrapped, self._about_index(epoch)), domain=DOMAIN)
        return ring.derive(canonical_json(["index", collection, field]))

    # People

    def pseudonym(self, person: object, *, make: bool) -> bytes | None:
        """The random name of a person, made with a key of their own where there is none yet."""
        known = self.state.person(self.id, self._person(person))
        if known is None and make:
            pseudonym = default_random().bytes(HANDLE)
            self.state.add_person(
                self.id, self._person(person), pseudonym, self._owner._ring.wrap(new_key(), self._about_person(pseudonym))
            )
            known = self.state.person(self.id, self._person(person))
        return known and known[0]

    def forget(self, person: object, *, records: bool = False) -> None:
        """Delete the key of a person; the pseudonym stays where there are `records` of it still."""
        self.state.forget_person(self.id, self._person(person), records=records)
        self._forget_derived()

    def _forget_derived(self) -> None:
        for cache in (self.cipher, self.word, self._index_key):
            cache.cache_clear()

    def _person(self, person: object) -> bytes:
        return hmac.digest(self._fixed.derive(canonical_json(["person"])), comparable(person), "sha256")[:HANDLE]

    def _about_person(self, pseudonym: bytes) -> str:
        return canonical_json(["person", pseudonym.hex()])
