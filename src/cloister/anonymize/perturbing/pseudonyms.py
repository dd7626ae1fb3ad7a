"""Pseudonyms: texts that stand for identifiers, the same everywhere for anyone who has the key, and guesses for nobody else."""

from __future__ import annotations

import hmac
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cloister.anonymize.perturbing.columns import Columns
from cloister.errors import InvalidParameter, check_whole
from cloister.noise.random import Random, default_random

_TAG = b"cloister pseudonym "
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", dtype=np.uint8)
_AT_ONCE = 1 << 14
_LEAST_KEY = 16
_LONGEST = 52
"""Characters of base32 in 256 bits."""


@dataclass(frozen=True, kw_only=True)
class Pseudonyms:
    """Replace identifiers by a keyed hash: HMAC-SHA-256 in base32.

    Protects: the identifier itself, as long as the key is secret; without the key, trying all names of a directory finds
    nobody (HMAC is a pseudo-random function: Bellare 2006). Does not protect: with the key, a list of candidates is gone
    through in no time (pseudonymous data are personal data, GDPR article 4 (5)); equal identifiers get equal pseudonyms,
    so a person's records can be joined, counted and recognised by what else they say. It is not differentially private, and no
    anonymisation. Keep the key apart from the data; throw it away, and nobody can go back.

    The same key, `purpose` and `length` make the same pseudonyms in every table; another purpose makes unrelated ones, so
    that tables for two purposes can't be joined. Identifiers are compared as texts in Unicode's normal form C: 7, 7.0 and "7"
    are one, "Ann" and "ann" are two. Missing values stay missing. Two identifiers of one table that got one pseudonym would
    be refused; `collision` bounds how likely that is.

    >>> work = Pseudonyms(key=bytes(range(32)))
    >>> sorted(work.apply({"name": ["Ann", "Bob", "Ann"]}, columns="name")["name"])
    ['byvjxmz53iohunrt', 'byvjxmz53iohunrt', 'mxvm7wb2ph2cd57r']
    >>> f"{work.collision(1_000_000):.1e}"
    '4.1e-13'
    """

    key: bytes = field(repr=False)
    purpose: str = ""
    length: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.key, bytes) or len(self.key) < _LEAST_KEY:
            raise InvalidParameter(
                "key= is invalid",
                why=f"a key is made of {_LEAST_KEY} bytes at least, drawn at random",
                instead="Pseudonyms.with_new_key()",
            )
        check_whole(
            self.length, "length", 1, _LONGEST, why=f"it is a number of characters from 1 to {_LONGEST}", instead="length=16"
        )

    @classmethod
    def with_new_key(cls, *, purpose: str = "", length: int = 16, random: Random | None = None) -> Pseudonyms:
        """With a key of 256 bits from the operating system. Keep `key` where the tables are not.

        >>> len(Pseudonyms.with_new_key().key)
        32
        """
        return cls(key=(random or default_random()).bytes(32), purpose=purpose, length=length)

    def of(self, identifier: Any) -> str:
        """The pseudonym of one identifier.

        >>> Pseudonyms(key=bytes(32), length=8).of("Ann")
        'vw5uhzlj'
        """
        if identifier is None:
            raise InvalidParameter("The identifier is invalid", why="a missing one has no pseudonym", instead='of("Ann")')
        return self._hashed([_text(identifier)])[0]

    def apply(
        self,
        frame: Any,
        *,
        columns: str | Sequence[str],
        random: Random | None = None,
        shuffle: bool = True,
        keep_index: bool = False,
    ) -> Any:
        """The table with pseudonyms in the place of those columns, which then hold texts."""
        opened, names, _ = Columns.leaving(frame, columns, random, shuffle=shuffle, keep_index=keep_index)
        fresh = {}
        for name in names:
            coded = opened.coded(name, apart=True)
            texts = [_text(value) for value in coded.values if value is not None]
            made: list[str | None] = [*self._hashed(texts)]
            if len(set(made)) < len(set(texts)):
                raise InvalidParameter(
                    f"length={self.length} is invalid",
                    why=f"two values of {name!r} would have one pseudonym",
                    instead=f"length={min(_LONGEST, self.length + 8)}",
                )
            made.append(None)  # a missing value has the last code
            fresh[name] = opened.as_texts(name, [made[code] for code in coded.codes.tolist()])
        return opened.replaced(fresh, apart=True)

    def _hashed(self, texts: Sequence[str]) -> list[str]:
        domain = self.purpose.encode("utf-8", "surrogatepass")
        begun = hmac.new(self.key, _TAG + len(domain).to_bytes(8, "big") + domain, "sha256")
        made: list[str] = []
        for first in range(0, len(texts), _AT_ONCE):
            digests = []
            for text in texts[first : first + _AT_ONCE]:
                one = begun.copy()
                one.update(text.encode("utf-8", "surrogatepass"))
                digests.append(one.digest())
            made += _base32(b"".join(digests), self.length)
        return made

    def collision(self, identifiers: int) -> float:
        """A bound on the probability that any two of so many identifiers get one pseudonym: n(n − 1)/2 pairs, each with
        probability 2^(−5·length) (at the most 2⁻²⁵⁶).

        >>> Pseudonyms(key=bytes(32), length=4).collision(2000)
        1.0
        """
        pairs = identifiers * (identifiers - 1) // 2
        return min(1.0, float(pairs) / 2.0 ** min(5 * self.length, 256))


def dictionary_attack(pseudonyms: Iterable[Any], candidates: Iterable[Any], made: Callable[[Any], str]) -> dict[str, Any]:
    """Who tries every candidate: the pseudonyms that it finds, with the identifiers behind them.

    `made` is what the attacker believes pseudonyms to be made by. A hash without a key is known to everybody.

    >>> import hashlib
    >>> def unkeyed(name):
    ...     return hashlib.sha256(name.encode()).hexdigest()
    >>> dictionary_attack([unkeyed("Ann")], ["Ann", "Bob"], unkeyed) == {unkeyed("Ann"): "Ann"}
    True
    >>> dictionary_attack([Pseudonyms.with_new_key().of("Ann")], ["Ann", "Bob"], unkeyed)
    {}
    """
    wanted = {each for each in pseudonyms if each is not None}
    return {pseudonym: candidate for candidate in candidates if (pseudonym := made(candidate)) in wanted}


def _text(identifier: Any) -> str:
    if isinstance(identifier, float) and identifier.is_integer():
        identifier = int(identifier)
    return unicodedata.normalize("NFC", str(identifier))


def _base32(digests: bytes, length: int) -> list[str]:
    """The first characters of each digest of 32 bytes in base32 (RFC 4648), small letters."""
    bits = np.unpackbits(np.frombuffer(digests, dtype=np.uint8).reshape(-1, 32), axis=1)
    padded = np.pad(bits, ((0, 0), (0, 4)))[:, : 5 * length].reshape(len(bits), length, 5)
    letters = _ALPHABET[padded @ np.array([16, 8, 4, 2, 1], dtype=np.uint8)]
    return [bytes(row).decode("ascii") for row in letters]
