"""Sums that the store computes and can't read: by name alone, as published (Paillier 1999; CryptDB, Popa et al. 2011).

    PaillierSum(low, high)    whole numbers; `$sum` and `$avg` over every record, or over given `_id`s, are a product at the store

`Sum()` has the same answers from records that the client reads and decrypts. With `PaillierSum`, no record is read: ciphertexts
are multiplied modulo N², in SQLite by an aggregate function that has the public N² and no key, and the client decrypts one
number. PostgreSQL has nothing quick enough (a product in its own `numeric` takes a millisecond a cell), so its cells come to the
client, which multiplies them. A cell takes 512 bytes and some 0.8 ms to write. Where a filter has other conditions,
or documents are grouped, the client has to read the records anyway, and adds up what it read.

*A cell* of record i is Enc(x_i + 2^96·t_i), of x_i = (value − low) + 2^64, or 0 where there is no value, and the tag
t_i = α·x_i + F(i) modulo q = 2^127 − 1, of a secret α and a pseudo-random F of the record's HMAC, which no other version of any
record has. The client knows which records there are (`state.py`), so it knows ΣF.

Claim (secrecy): the store learns nothing of a value, not even whether there is one. Sketch: cells are ciphertexts of one length
under a scheme that hides every two numbers from each other, if deciding composite residuosity is hard; N and what is asked of it
don't depend on values.

Claim (integrity): a sum that is accepted is that of just these records, but with probability 2^−120 for each attempt. Sketch: a
store turns ciphertexts into ones of k·M + Δ for k and Δ of its choice, or into what it was given before. It is accepted if the
tag that comes out is α·X + ΣF for the X that comes out. For the right k and records, Δ must add α·δ to the tag where it adds
δ ≠ 0, |δ| < 2^96 < q, to X, for an α that no ciphertext shows; for others an F is left over, uniform and unknown. Slots that
run over are refused. (A published Paillier sum has no tag: its twin in `tests/vault/test_paillier.py` is altered unseen.)

Keys are made for each collection and epoch, and are in the client's state alone, as those of the index: an old copy of the store
and the owner's key add up nothing of a person who was forgotten. With the state as well, they open each value until the next
rotation deletes these keys: forget, then rotate.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cloister.crypto import WrongKey
from cloister.errors import InvalidDeclaration, InvalidParameter, MissingDependency, UnsupportedQuery
from cloister.installed import install
from cloister.vault.aggregates import rounded
from cloister.vault.errors import Tampered
from cloister.vault.fields import MISSING, Field
from cloister.vault.keys import DataSetKeys
from cloister.vault.state import Leaf
from cloister.vault.store import Store

if TYPE_CHECKING:
    from cloister.crypto.paillier import Paillier, Slots

__all__ = ["PaillierSum"]

BITS = 2048
_TERMS, _PRESENT, _TAG, _ORDER = 1 << 24, 1 << 64, 96, (1 << 127) - 1
_WIDEST = 1 << 40


def PaillierSum(low: int, high: int) -> Field:  # noqa: N802 - it stands among the other declarations
    """A field of whole numbers from `low` to `high` that the store adds up without reading them (`$sum`, `$avg`). Nothing
    shows but that a sum was asked.

    >>> PaillierSum(0, 500_000).layers()
    ['AES-GCM-SIV', 'Paillier cells']
    """
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in (low, high)) or not 0 < high - low < _WIDEST:
        raise InvalidDeclaration(
            "PaillierSum is invalid",
            why="its bounds are two whole numbers, the lower one first, and less than 2^40 apart",
            instead="PaillierSum(0, 500_000)",
        )
    return Field(total=True, added=(low, high))


class Total(NamedTuple):
    """A sum, and of how many values."""

    value: int
    present: int

    def mean(self) -> float | None:
        """The mean, rounded once; None where there is no value."""
        return rounded(Fraction(self.value, self.present)) if self.present else None


class Adder:
    """Makes and adds up the Paillier cells of one collection."""

    def __init__(self, keys: DataSetKeys, table: str, fields: Mapping[str, Field]) -> None:
        self._keys, self._table = keys, table
        self._columns = {name: (keys.name("sum", table, name), each.added) for name, each in fields.items() if each.added}
        self._pair = lru_cache(4)(self._read_pair)

    def __bool__(self) -> bool:
        return bool(self._columns)

    @property
    def names(self) -> list[str]:
        """The fields that are added up."""
        return list(self._columns)

    def cells(self, document: Mapping[str, Any], handle: bytes, leaf: Leaf) -> list[tuple[str, int, bytes, int]]:
        """The cells of a record: what each is called, its epoch, the record's handle, a ciphertext."""
        found = []
        for name, (called, (low, _)) in self._columns.items():
            pair, value = self._pair(leaf.epoch, make=True), document.get(name, MISSING)
            known = 0 if value is MISSING or value is None else value - low + _PRESENT
            alpha, mask = self._secrets(leaf.epoch, name)
            plain = known + (((alpha * known + _masked(mask, handle, leaf.mac)) % _ORDER) << _TAG)
            found.append((called, leaf.epoch, handle, pair.public.encrypt([plain], slots=_slots()).cells[0]))
        return found

    def total(self, store: Store, name: str, leaves: Mapping[bytes, Leaf], *, whole: bool) -> Total:
        """The sum over these records, which are all (`whole`) or some; `Tampered` where the store's product is not theirs."""
        value = present = 0
        called, (low, _) = self._columns[name]
        for epoch in sorted({leaf.epoch for leaf in leaves.values()}):
            here = {handle: leaf.mac for handle, leaf in leaves.items() if leaf.epoch == epoch}
            pair = self._pair(epoch, make=False)
            product = store.product(self._table, called, epoch, None if whole else sorted(here), pair.public.modulus**2)
            alpha, mask = self._secrets(epoch, name)
            known = _opened(pair, product, len(here), alpha, sum(_masked(mask, handle, mac) for handle, mac in here.items()))
            present += known // _PRESENT
            value += known % _PRESENT + (known // _PRESENT) * low
        return Total(value, present)

    def _secrets(self, epoch: int, name: str) -> tuple[int, bytes]:
        key = self._keys.beside_words(b"sum", epoch, self._table, name)
        return int.from_bytes(hmac.digest(key, b"factor", "sha256")[:16], "big") % _ORDER, hmac.digest(key, b"mask", "sha256")

    def _read_pair(self, epoch: int, *, make: bool) -> Paillier:
        """The keys of an epoch, made where there are none; inside a change, so that two processes have one."""
        try:
            from cloister.crypto.paillier import Paillier, PublicKey
        except ImportError:
            raise MissingDependency(
                "PaillierSum is not available", why="gmpy2 is not installed", instead=install("together")
            ) from None
        told = self._keys.paillier(epoch, self._table)
        if told is None and make:
            made = Paillier.generate(BITS)
            text = json.dumps([*made.primes, made.public.residue]).encode()
            told = self._keys.paillier(epoch, self._table, text)
        if told is None:
            raise WrongKey("A sum could not be read", why="the key of its epoch is gone", instead="Vault.restore(store, keys)")
        one, other, residue = json.loads(told)
        return Paillier(public=PublicKey(modulus=one * other, residue=residue), primes=(one, other))


def _slots() -> Slots:
    from cloister.crypto.paillier import Slots

    return Slots(bits=232, terms=_TERMS, blind=False)


def _masked(key: bytes, handle: bytes, mac: bytes) -> int:
    return int.from_bytes(hmac.digest(key, handle + mac, "sha256")[:24], "big") % _ORDER


def _opened(pair: Paillier, product: int, count: int, alpha: int, masks: int) -> int:
    """Σx of a product, if its tag is right."""
    from cloister.crypto.paillier import EncryptedVector

    if count > _TERMS:
        raise UnsupportedQuery(
            "The sum is not supported", why=f"it has more than {_TERMS:,} records", instead="sums of parts, by _id"
        )
    try:
        cell = EncryptedVector(key=pair.public, cells=(product,), length=1, slots=_slots(), count=count)
        (plain,) = pair.decrypt(cell, exact=True)
    except InvalidParameter:
        plain = -1
    known, tag = int(plain) % (1 << _TAG), int(plain) >> _TAG
    if plain < 0 or tag % _ORDER != (alpha * known + masks) % _ORDER:
        raise Tampered(
            "The sum was changed",
            why="it is not the one of the records that this client wrote",
            instead="Sum() in the place of PaillierSum, or the store's last good backup",
        )
    return known
