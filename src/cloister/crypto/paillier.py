"""Encrypted arithmetic: sums of numbers that whoever adds them cannot read (Paillier, EUROCRYPT 1999).

A ciphertext of m under the public key N is (1 + mN)·r^N mod N² with a secret, random r: products of ciphertexts are ciphertexts
of sums. Claim: under the decisional composite residuosity assumption ciphertexts say nothing of m. They promise nothing of what
is decrypted: a sum is exact, and noise is somebody's to add. And they bind nobody: who may add may also multiply, so a key
holder who decrypts what an adder asks for learns or tells what the adder chose (a blind of 40 bits hides a value, and noise that
others added before as well). So it is for adders who follow the protocol.

*Quick* encryption takes h^a mod N² for r^N, where h is a fixed N-th residue and a has half as many bits as N: as safe as the
plain way if short exponents are hard to tell from long ones (Damgård, Jurik & Nielsen 2010, section 5). `quick=False` is the
plain way, some twenty-five times as slow.

*Packing*. A vector's values are whole numbers or of fixed point, with signs, and share ciphertexts: each has a slot of `bits` for
the value, ⌈log₂ terms⌉ for the carries of so many additions, and 41 for a blind, unless there is none. Claim: no slot runs over.
Proof: a value v is stored as v + 2^(bits−1) in [0, 2^bits), so a sum of k ≤ terms of these is below S = 2^(bits + ⌈log₂ terms⌉),
which is the slot without a blind; a blind is below 2^40·S; together they are below 2^41·S = 2^slot, and all slots of a ciphertext
are below N. ∎ A second blind is refused, and any where there is no room. The offsets of k terms, k·2^(bits−1), are taken off
again. A blinded slot is within 2^−40 in total variation of the blind alone.

Exponents that are secret go through GMP's constant-time power, but for that of quick encryption: its digits choose from a table,
which whoever watches the memory of that processor may see. The rest of the arithmetic takes time that depends on its numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite, log2
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from cloister.errors import InvalidParameter, check_whole
from cloister.noise import Random, default_random

LEAST_BITS = 2048
_BLIND = 40
_WINDOW = 8
_SIEVED, _ROOTS = 1 << 16, 8
"""Of the proof of a key: no prime below 2^16 divides N, and eight roots are shown: a wrong key passes with probability 2^−128."""


@dataclass(frozen=True, kw_only=True)
class Slots:
    """How a vector lies in ciphertexts."""

    bits: int = 64
    """Values are from −2^(bits−1) up to 2^(bits−1), counted in steps of the fixed point."""
    terms: int = 1024
    """How many vectors may be added."""
    fraction: int = 0
    """How many of the bits are behind the point."""
    blind: bool = True
    """Whether there is room for a blind. Without it more values share a ciphertext."""

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("bits", self.bits, 2, 512),
            ("terms", self.terms, 1, 2**40),
            ("fraction", self.fraction, 0, 256),
        ):
            check_whole(value, name, low, high, why=f"it is from {low} to {high}", instead=f"{name}={low}")
        if not isinstance(self.blind, bool):
            raise InvalidParameter(f"blind={self.blind!r} is invalid", why="it is True or False", instead="blind=True")

    @property
    def width(self) -> int:
        """The bits of a slot."""
        return self.bits + (self.terms - 1).bit_length() + (_BLIND + 1 if self.blind else 0)

    def whole(self, vector: npt.ArrayLike) -> list[int]:
        """The values in steps, from 0 on; one that does not fit is refused."""
        half, scale, found = 1 << (self.bits - 1), 1 << self.fraction, []
        for place, given in enumerate(np.asarray(vector, dtype=object).ravel().tolist()):
            value = given.item() if isinstance(given, np.generic) else given
            if not isinstance(value, int | float) or (isinstance(value, float) and not isfinite(value)):
                raise InvalidParameter(f"The value at {place} is invalid", why="it is no finite number", instead="a number")
            steps = value * scale if isinstance(value, int) else round(value * scale)
            if not -half <= steps < half:
                raise InvalidParameter(
                    f"The value at {place} does not fit",
                    why=f"{self.bits} bits, {self.fraction} of them behind the point, hold less than {half / scale:g}",
                    instead=f"Slots(bits={steps.bit_length() + 1}, …)",
                )
            found.append(steps + half)
        return found

    def values(self, stored: Iterable[int], count: int) -> npt.NDArray[Any]:
        """What so many added vectors stored, as numbers: exact integers where there is no fixed point."""
        half, scale = count << (self.bits - 1), 1 << self.fraction
        signed = [each - half for each in stored]
        if self.fraction:
            return np.array([each / scale for each in signed], dtype=np.float64)
        return np.array(signed, dtype=np.int64 if self.bits + log2(self.terms) < 63 else object)


@dataclass(frozen=True, kw_only=True)
class PublicKey:
    """What everybody may have: who has it encrypts and adds."""

    modulus: int
    residue: int
    """h of quick encryption: an N-th power modulo N²."""

    @cached_property
    def _square(self) -> Any:
        return mpz(self.modulus) ** 2

    @cached_property
    def _table(self) -> list[list[Any]]:
        """h^(d·2^(8i)) for each digit d of an exponent: a power is a product of one each."""
        table, base = [], mpz(self.residue)
        for _ in range(-(-self._short // _WINDOW)):
            row = [mpz(1)]
            for _ in range((1 << _WINDOW) - 1):
                row.append(row[-1] * base % self._square)
            table.append(row)
            base = row[-1] * base % self._square
        return table

    @property
    def bits(self) -> int:
        """The length of N."""
        return self.modulus.bit_length()

    @property
    def _short(self) -> int:
        return -(-self.bits // 2)

    @cached_property
    def digest(self) -> str:
        """By which a ciphertext names its key."""
        return hashlib.sha256(f"cloister paillier {self.modulus} {self.residue}".encode()).hexdigest()

    def encrypt(
        self, vector: npt.ArrayLike, *, slots: Slots | None = None, quick: bool = True, random: Random | None = None
    ) -> EncryptedVector:
        """A vector of numbers, several to a ciphertext.

        >>> keys = Paillier.generate(512, insecure=True)
        >>> both = keys.public.encrypt([3, -4]) + keys.public.encrypt([10, 10])
        >>> keys.decrypt(both).tolist()
        [13, 6]
        """
        how = Slots() if slots is None else slots
        stored, each, random = how.whole(vector), self.slots_in(how), default_random() if random is None else random
        packed = [_packed(stored[first : first + each], how.width) for first in range(0, len(stored), each)]
        cells = tuple(int((1 + one * self.modulus) * self._hidden(quick, random) % self._square) for one in packed)
        return EncryptedVector(key=self, cells=cells, length=len(stored), slots=how, count=1)

    def slots_in(self, slots: Slots) -> int:
        """How many values a ciphertext holds."""
        found = (self.bits - 1) // slots.width
        if not found:
            raise InvalidParameter(
                f"bits={slots.bits} is invalid",
                why=f"a slot is {slots.width} bits, and the key has {self.bits}",
                instead="Slots(bits=64)",
            )
        return found

    def _hidden(self, quick: bool, random: Random) -> Any:
        """A random N-th residue."""
        if not quick:
            return gmpy2.powmod_sec(_unit(self.modulus, random), self.modulus, self._square)
        exponent, found = random.bits(self._short), mpz(1)
        for row in self._table:
            found = found * row[exponent & ((1 << _WINDOW) - 1)] % self._square
            exponent >>= _WINDOW
        return found

    def check(self, roots: Sequence[int]) -> bool:
        """Whether the owner's proof shows that N can be a key: that all N-th powers are different.

        Without it somebody who made N badly on purpose could have values that are not told apart. Proof: if a prime divides both
        N and φ(N), at most one unit in that prime is an N-th power; no prime below 2^16 divides N; the numbers asked for are
        hashes. So eight roots exist with probability 2^−128 (Goldberg, Reyzin, Sagga & Baldimtsi 2019).
        """
        if self.bits < LEAST_BITS or gmpy2.gcd(gmpy2.primorial(_SIEVED), self.modulus) != 1 or len(roots) != _ROOTS:
            return False
        asked = _challenges(self)
        return all(
            0 < root < self.modulus and gmpy2.powmod(root, self.modulus, self.modulus) == one
            for root, one in zip(roots, asked, strict=True)
        )

    def to_json(self) -> str:
        """As text, for others."""
        return json.dumps({"format": 1, "modulus": f"{self.modulus:x}", "residue": f"{self.residue:x}"})

    @classmethod
    def from_json(cls, text: str) -> PublicKey:
        """Back from text: whatever is none is refused."""
        try:
            told = json.loads(text)
            found = cls(modulus=int(told["modulus"], 16), residue=int(told["residue"], 16))
            if (
                told["format"] != 1
                or found.bits < LEAST_BITS
                or found.modulus % 2 == 0
                or not 1 < found.residue < found.modulus**2
            ):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InvalidParameter(
                "The public key is invalid",
                why=f"it is no text of a key of {LEAST_BITS} bits or more",
                instead="PublicKey.to_json()",
            ) from None
        return found


@dataclass(frozen=True, kw_only=True)
class EncryptedVector:
    """A vector that can be added to others of its kind, and read by the key's owner alone."""

    key: PublicKey = field(repr=False)
    cells: tuple[int, ...] = field(repr=False)
    length: int
    slots: Slots
    count: int
    """Of how many vectors this is the sum."""
    blinds: int = 0
    """How many blinds are on it: a slot has room for one."""

    def __add__(self, other: EncryptedVector) -> EncryptedVector:
        return EncryptedVector.total([self, other]) if isinstance(other, EncryptedVector) else NotImplemented

    def shifted(self, numbers: Sequence[int]) -> EncryptedVector:
        """A number of anybody's added to what each ciphertext holds, modulo N.

        >>> keys = Paillier.generate(512, insecure=True)
        >>> keys.decrypt(keys.public.encrypt([3]).shifted([10**90]).shifted([-(10**90)])).tolist()
        [3]
        """
        modulus, square = self.key.modulus, self.key._square
        cells = zip(self.cells, numbers, strict=True)
        return replace(self, cells=tuple(int(mpz(one) * (1 + number % modulus * modulus) % square) for one, number in cells))

    @classmethod
    def total(cls, vectors: Iterable[EncryptedVector]) -> EncryptedVector:
        """The sum of many, in one pass.

        >>> keys = Paillier.generate(512, insecure=True)
        >>> keys.decrypt(EncryptedVector.total(keys.public.encrypt([n]) for n in range(5))).tolist()
        [10]
        """
        found = list(vectors)
        if not found:
            raise InvalidParameter("There is no sum", why="no vector was given", instead="one vector or more")
        first, square = found[0], found[0].key._square
        count, blinds = sum(each.count for each in found), sum(each.blinds for each in found)
        for each in found[1:]:
            first._check_kind(each)
        first._check_terms(count)
        first._check_blinds(blinds)
        cells = [mpz(each) for each in first.cells]
        for each in found[1:]:
            cells = [one * two % square for one, two in zip(cells, each.cells, strict=True)]
        return replace(first, cells=tuple(map(int, cells)), count=count, blinds=blinds)

    def _check_kind(self, other: EncryptedVector) -> None:
        if (self.key.digest, self.length, self.slots) != (other.key.digest, other.length, other.slots):
            raise InvalidParameter(
                "The two vectors don't add up",
                why="they are of other keys, lengths or slots",
                instead="one key and one Slots for all",
            )

    def _check_terms(self, count: int) -> None:
        if count > self.slots.terms:
            raise InvalidParameter(
                "The two vectors don't add up",
                why=f"their slots hold {self.slots.terms} terms, and these are {count}",
                instead=f"Slots(terms={count}) when they are encrypted",
            )

    def _check_blinds(self, blinds: int) -> None:
        if blinds > 1:
            raise InvalidParameter(
                "The vectors don't add up", why="a slot has room for one blind", instead="blinded() after all was added"
            )

    def __mul__(self, times: int) -> EncryptedVector:
        """Added to itself so many times."""
        if isinstance(times, bool) or not isinstance(times, int) or not 1 <= self.count * times <= self.slots.terms:
            raise InvalidParameter(
                f"times={times!r} is invalid", why=f"the slots hold {self.slots.terms} terms", instead="a whole number from 1"
            )
        self._check_blinds(self.blinds * times)
        cells = tuple(int(gmpy2.powmod(one, times, self.key._square)) for one in self.cells)
        return replace(self, cells=cells, count=self.count * times)

    __rmul__ = __mul__

    def hidden_again(self, *, quick: bool = True, random: Random | None = None) -> EncryptedVector:
        """The same numbers under fresh randomness: nobody tells from which ciphertexts they came."""
        random = default_random() if random is None else random
        square = self.key._square
        return replace(self, cells=tuple(int(one * self.key._hidden(quick, random) % square) for one in self.cells))

    def blinded(self, *, random: Random | None = None) -> tuple[EncryptedVector, npt.NDArray[Any]]:
        """With a random number on each value, 40 bits longer than a sum, and these numbers: whoever decrypts it learns nothing.

        Take them off what is decrypted: `keys.decrypt(blinded, exact=True) − blinds`, in steps of the fixed point.
        """
        self._check_blinds(self.blinds + 1)
        if not self.slots.blind:
            raise InvalidParameter(
                "The vector can't be blinded", why="its slots have no room for a blind", instead="Slots(blind=True)"
            )
        random = default_random() if random is None else random
        bound, each, square = 1 << (self.slots.width - 1), self.key.slots_in(self.slots), self.key._square
        blinds = [random.below_one(bound) for _ in range(self.length)]
        cells = [
            int(mpz(one) * (1 + _packed(blinds[place * each : (place + 1) * each], self.slots.width) * self.key.modulus) % square)
            for place, one in enumerate(self.cells)
        ]
        hidden = replace(self, cells=tuple(cells), blinds=1).hidden_again(random=random)
        return hidden, np.array(blinds, dtype=object)

    def to_json(self) -> str:
        """As text, for others."""
        how = {"bits": self.slots.bits, "terms": self.slots.terms, "fraction": self.slots.fraction}
        how |= {} if self.slots.blind else {"blind": False}
        about = {"format": 1, "key": self.key.digest, "length": self.length, "slots": how, "count": self.count}
        about |= {"blinds": self.blinds} if self.blinds else {}
        return json.dumps({**about, "cells": [f"{each:x}" for each in self.cells]})

    @classmethod
    def from_json(cls, text: str, key: PublicKey) -> EncryptedVector:
        """Back from text, under the key that it names: whatever is none is refused."""
        try:
            told = json.loads(text)
            cells = tuple(int(each, 16) for each in told["cells"])
            found = cls(
                key=key,
                cells=cells,
                length=int(told["length"]),
                slots=Slots(**told["slots"]),
                count=int(told["count"]),
                blinds=int(told.get("blinds", 0)),
            )
            fits = (
                found.blinds in (0, 1 if found.slots.blind else 0)
                and len(cells) == -(-found.length // key.slots_in(found.slots))
                and 1 <= found.count <= found.slots.terms
            )
            units = mpz(1)
            for each in cells:  # one divisor shows in the product of all
                units = units * each % key.modulus
            inside = all(0 < each < key._square for each in cells) and gmpy2.gcd(units, key.modulus) == 1
            if told["format"] != 1 or told["key"] != key.digest or not fits or not inside:
                raise ValueError
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise InvalidParameter(
                "The ciphertext is invalid", why="it is no text of a vector under this key", instead="EncryptedVector.to_json()"
            ) from None
        return found


@dataclass(frozen=True, kw_only=True)
class Paillier:
    """A pair of keys: `public` encrypts and adds, this decrypts.

    >>> keys = Paillier.generate(512, insecure=True)  # for an example: real keys have 2,048 bits or more
    >>> one, other = (keys.public.encrypt([n, 1 / n], slots=Slots(fraction=20)) for n in (2, 4))
    >>> keys.decrypt(one + other).tolist()
    [6.0, 0.75]
    """

    public: PublicKey
    primes: tuple[int, int] = field(repr=False)

    @classmethod
    def generate(cls, bits: int = LEAST_BITS, *, insecure: bool = False, random: Random | None = None) -> Paillier:
        """Fresh keys, of primes p ≡ q ≡ 3 (mod 4) with gcd(p − 1, q − 1) = 2. Fewer than 2,048 bits are for tests alone."""
        least = 256 if insecure else LEAST_BITS
        if isinstance(bits, bool) or not isinstance(bits, int) or bits % 2 or not least <= bits <= 16_384:
            raise InvalidParameter(
                f"bits={bits!r} is invalid", why=f"it is even, and {least} or more", instead="Paillier.generate(2048)"
            )
        random = default_random() if random is None else random
        while True:
            one, other = _prime(bits // 2, random), _prime(bits // 2, random)
            if one != other and gmpy2.gcd(one - 1, other - 1) == 2:
                break
        modulus = one * other
        squared = gmpy2.powmod(_unit(modulus, random), 2, modulus)
        residue = gmpy2.powmod(modulus - squared, modulus, mpz(modulus) ** 2)
        return cls(public=PublicKey(modulus=int(modulus), residue=int(residue)), primes=(int(one), int(other)))

    @cached_property
    def _halves(self) -> tuple[tuple[Any, Any, Any], ...]:
        """For each prime p: p, p², and the inverse of L_p((1 + N)^(p−1) mod p²) modulo p."""
        found = []
        for each in map(mpz, self.primes):
            square = each**2
            factor = (gmpy2.powmod_sec(1 + self.public.modulus, each - 1, square) - 1) // each
            found.append((each, square, gmpy2.invert(factor, each)))
        return tuple(found)

    def decrypt(self, encrypted: EncryptedVector, *, exact: bool = False) -> npt.NDArray[Any]:
        """The numbers. `exact`: in whole steps of the fixed point, as Python's integers, however large: of a blinded vector."""
        if encrypted.key.digest != self.public.digest:
            raise InvalidParameter(
                "The vector can't be decrypted", why="it is of another key", instead="the keys whose public part encrypted it"
            )
        slots, each = encrypted.slots, self.public.slots_in(encrypted.slots)
        stored: list[int] = []
        for place, cell in enumerate(encrypted.cells):
            held = min(each, encrypted.length - place * each)
            plain = self._plain(cell)
            if plain >> (held * slots.width):
                raise InvalidParameter(
                    "The vector can't be decrypted",
                    why="its slots ran over, or it was not packed so",
                    instead="vectors of encrypt() alone",
                )
            stored += [int(plain >> (slots.width * turn)) & ((1 << slots.width) - 1) for turn in range(held)]
        if exact:
            return np.array([one - (encrypted.count << (slots.bits - 1)) for one in stored] or [], dtype=object)
        if any(one >= encrypted.count << slots.bits for one in stored):
            raise InvalidParameter(
                "The vector can't be decrypted", why="it is blinded, or its slots ran over", instead="exact=True"
            )
        return slots.values(stored, encrypted.count)

    def prove(self) -> tuple[int, ...]:
        """A proof for `PublicKey.check`: N-th roots of numbers that follow from the key."""
        order = mpz(self.primes[0] - 1) * (self.primes[1] - 1)
        inverse = gmpy2.invert(self.public.modulus, order)
        return tuple(int(gmpy2.powmod_sec(one, inverse, self.public.modulus)) for one in _challenges(self.public))

    def _plain(self, cell: int) -> Any:
        """By remainders modulo p² and q²."""
        if not 0 < cell < self.public._square or gmpy2.gcd(cell, self.public.modulus) != 1:
            raise InvalidParameter(
                "The ciphertext is invalid", why="it is no unit modulo N²", instead="EncryptedVector.from_json"
            )
        (p, p_square, p_factor), (q, q_square, q_factor) = self._halves
        one = (gmpy2.powmod_sec(cell, p - 1, p_square) - 1) // p * p_factor % p
        other = (gmpy2.powmod_sec(cell, q - 1, q_square) - 1) // q * q_factor % q
        return one + p * ((other - one) * gmpy2.invert(p, q) % q)


class Product:
    """A product of ciphertexts modulo N², cell by cell: what whoever adds computes, in the form that SQLite has for aggregates.

    >>> keys = Paillier.generate(512, insecure=True)
    >>> product = Product()
    >>> for cell in (keys.public.encrypt([n]).cells[0] for n in (3, 4)):
    ...     product.step(cell.to_bytes(256, "big"), (keys.public.modulus**2).to_bytes(256, "big"))
    >>> len(product.finalize())
    256
    """

    def __init__(self) -> None:
        self._found, self._square, self._length = mpz(1), None, 1

    def step(self, cell: bytes, square: bytes) -> None:
        """One more cell."""
        if self._square is None:
            self._square, self._length = mpz(int.from_bytes(square, "big")), len(square)
        self._found = self._found * mpz(int.from_bytes(cell, "big")) % self._square

    def finalize(self) -> bytes:
        """All of them."""
        return int(self._found).to_bytes(self._length, "big")


def _packed(values: Sequence[int], width: int) -> Any:
    found = mpz(0)
    for each in reversed(values):
        found = (found << width) + each
    return found


def _prime(bits: int, random: Random) -> Any:
    """A random prime of so many bits, the two highest set, that leaves 3 when divided by 4."""
    while True:
        drawn = mpz(random.bits(bits)) | (mpz(3) << (bits - 2)) | 3
        if gmpy2.is_prime(drawn, 40):
            return drawn


def _unit(modulus: int, random: Random) -> Any:
    """A uniform unit modulo N."""
    while True:
        drawn = mpz(random.below_one(int(modulus)))
        if gmpy2.gcd(drawn, modulus) == 1:
            return drawn


def _challenges(key: PublicKey) -> list[Any]:
    """Numbers that nobody chose: hashes of the key, a little longer than it."""
    size, names = key.bits // 8 + 32, (f"cloister paillier key {key.digest} {turn}" for turn in range(_ROOTS))
    return [mpz(int.from_bytes(hashlib.shake_256(each.encode()).digest(size), "big")) % key.modulus for each in names]
