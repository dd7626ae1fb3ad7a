"""A document as the store keeps it: every field renamed, padded and encrypted, bound to its place.

Claim 1: the store learns of a record its handle, epoch, version, number of fields, and the padded length of each value. Sketch:
each value is encrypted under AES-GCM-SIV with a random nonce and a key of its field alone; missing fields are encrypted, too;
names are outputs of a PRF.

Claim 2: a ciphertext opens only where it was written. Sketch: collection, record, field, version and epoch are authenticated with
it, so one that is moved to another record or field, or brought back from an earlier version, fails its tag.

Claim 3: of a person who was forgotten, no value opens. Sketch: the key of each value is derived from the person's random key,
too. Their pseudonym is random, encrypted under the data set's key, and leads to nothing once the state has lost it.
"""

import binascii
import json
from collections.abc import Mapping
from typing import Any

from cloister.errors import InvalidParameter
from cloister.vault.errors import Tampered
from cloister.vault.fields import MISSING, Field
from cloister.vault.index import HANDLE
from cloister.vault.keys import DataSetKeys
from cloister.vault.paillier import Adder
from cloister.vault.store import Row
from cloister.vault.values import LARGEST, decode, encode, padded, unpadded
from cloister.vault.weak import token

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_MOST = 2**40
"""Changes of one collection."""


class Sealer:
    """Encrypts and decrypts the documents of one collection."""

    def __init__(self, keys: DataSetKeys, table: str, fields: Mapping[str, Field], person: str | None) -> None:
        self._keys, self._table, self._person = keys, table, person
        self._renamed = {name: keys.name("field", table, name) for name in ("_id", *fields)}
        self._pads = {self._renamed[name]: field.pad for name, field in fields.items()}
        self._pseudonym = keys.name("pseudonym", table)
        self.tokens = {name: (keys.name("token", table, name), field) for name, field in fields.items() if field.exposed}
        """Of the fields that show something: what their token is called, and their declaration."""
        self.adder = Adder(keys, table, fields)

    def sealed(
        self, document: Mapping[str, Any], *, handle: bytes, epoch: int, version: int, texts: Mapping[str, bytes] | None = None
    ) -> Row:
        """A row from a document, and from its `texts` where they are there already."""
        texts = texts or self.texts(document)
        pseudonym = None
        if self._person is not None:
            pseudonym = self._keys.pseudonym(document[self._person], make=True)
        stored = {
            renamed: self._encrypted(padded(text, self._pads.get(renamed)), handle, epoch, version, renamed, pseudonym)
            for renamed, text in texts.items()
        }
        if pseudonym is not None:
            stored[self._pseudonym] = self._encrypted(pseudonym, handle, epoch, version, self._pseudonym, None)
        return Row(handle, epoch, version, _ENCODER.encode(stored))

    def tokens_of(self, document: Mapping[str, Any], handle: bytes, epoch: int) -> list[tuple[str, int, bytes, bytes]]:
        """What the store compares of a document, as it keeps it."""
        return [(called, epoch, self.token(epoch, name, document.get(name)), handle) for name, (called, _) in self.tokens.items()]

    def token(self, epoch: int, name: str, value: Any) -> bytes:
        """The token of a value."""
        return token(self._keys.beside_words(b"token", epoch, self._table, name), self.tokens[name][1], value)

    def texts(self, document: Mapping[str, Any]) -> dict[str, bytes]:
        """What is to be encrypted; an error where a document can't be stored."""
        texts = {
            renamed: b"" if document.get(name, MISSING) is MISSING else encode(document[name])
            for name, renamed in self._renamed.items()
        }
        if sum(map(len, texts.values())) > LARGEST:
            raise InvalidParameter(
                "The document is invalid",
                why="it takes more than 16 MiB as JSON, where bytes take a third more than they are",
                instead="a smaller document: 12 MiB of bytes, or 16 MiB of ASCII text",
            )
        for name, renamed in self._renamed.items():
            if (pad := self._pads.get(renamed)) and len(texts[renamed]) >= pad:
                raise InvalidParameter(
                    f"The value of {name!r} is invalid",
                    why=f"as JSON it takes {pad:,} bytes or more, and the field has room for one less",
                    instead="a shorter value, or a larger pad= in the declaration",
                )
        return texts

    def opened(self, row: Row) -> dict[str, Any]:
        """The document of a row; a `Tampered` error where a ciphertext is not the one that was written there."""
        try:
            stored = {name: binascii.a2b_base64(text, strict_mode=True) for name, text in json.loads(row.body).items()}
            pseudonym = None
            if self._person is not None:
                pseudonym = self._opened(row, self._pseudonym, stored[self._pseudonym], None)
            document = {}
            for name, renamed in self._renamed.items():
                text = unpadded(self._opened(row, renamed, stored[renamed], pseudonym))
                if text:
                    document[name] = decode(text)
        except (ValueError, KeyError, AttributeError, TypeError, binascii.Error):
            raise Tampered(
                "A record was changed",
                why="it does not have the form in which it was written",
                instead="the store's last good backup",
            ) from None
        return document

    def pseudonym(self, row: Row) -> bytes:
        """The pseudonym of the person whom a row is about."""
        return self._opened(row, self._pseudonym, binascii.a2b_base64(json.loads(row.body)[self._pseudonym]), None)

    def is_readable(self, row: Row) -> bool:
        """Whether the person whom a row is about was not forgotten."""
        return self._person is None or self._keys.state.key_of(self.pseudonym(row)) is not None

    def mac(self, row: Row) -> bytes:
        """HMAC-SHA-256 of a row, whole."""
        numbered = all(isinstance(number, int) and 0 <= number < _MOST for number in (row.epoch, row.version))
        if not (numbered and isinstance(row.handle, bytes) and len(row.handle) == HANDLE and isinstance(row.body, str)):
            raise Tampered("A record was changed", why="it is not a record", instead="the store's last good backup")
        numbers = row.epoch.to_bytes(8, "big") + row.version.to_bytes(8, "big")
        return self._keys.mac("record", self._table, row.handle + numbers + row.body.encode())

    def _encrypted(self, text: bytes, handle: bytes, epoch: int, version: int, renamed: str, pseudonym: bytes | None) -> str:
        encrypted = self._keys.cipher(epoch, self._table, renamed, pseudonym).encrypt(
            text, self._bound(handle, epoch, version, renamed)
        )
        return binascii.b2a_base64(encrypted, newline=False).decode("ascii")

    def _opened(self, row: Row, renamed: str, encrypted: bytes, pseudonym: bytes | None) -> bytes:
        bound = self._bound(row.handle, row.epoch, row.version, renamed)
        return self._keys.cipher(row.epoch, self._table, renamed, pseudonym).decrypt(encrypted, bound)

    def _bound(self, handle: bytes, epoch: int, version: int, renamed: str) -> bytes:
        return f'["{self._table}","{handle.hex()}","{renamed}",{version},{epoch}]'.encode()  # canonical JSON: digits and names
