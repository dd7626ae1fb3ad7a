"""Layers that show something before anybody asks: equal values, or the order of values. Nobody gets them but by their names.

    Deterministic()              equal values have equal tokens: `=`, `$in`, groups
    OrderRevealing(low, high)    tokens sort as their values do: `<`, ORDER BY with LIMIT, by the store's own index

`Equal()` and `Range()` answer the same and show nothing until they are asked. A token stands beside the record, and the store
finds and sorts it by an index of its own, without the client's counters. What it returns the client checks on what it decrypts;
a result that it leaves out is not missed on reading, but by `verify` alone. `leakage` says what attacks make of a column:
frequencies alone recovered more than 60 % of the records of 200 hospitals, order more than 80 % (Naveed, Kamara & Wright 2015).

*Order.* A number of n bits b_1 … b_n has n digits, u_i = F(key, i, b_1 … b_{i−1}) + b_i, where F is a PRF with values from 0 to
2^31 − 1, and a digit is 4 bytes with the highest first (Chenette, Lewi, Weis & Wu 2016, who add modulo 3 or more).

Claim (order): tokens compare as bytes as their numbers do, always. Proof: let x < y differ first at bit i. Before i both have the
same digits, since they have the same bits and prefixes. At i the prefix is the same, so F is, and u_i(x) = F < F + 1 = u_i(y).
Digits have one length, so bytes compare as digits. ∎ Nothing is taken modulo anything: digits of one byte modulo 256 would turn
255 + 1 into 0, and order one prefix in 256 the wrong way.

Claim (leakage): tokens of x_1 … x_m tell which of each two is larger and at which bit they first differ, and else only what has
a probability of m·n·2^−30 to show. Sketch: digits of different prefixes are independent and uniform, but for the added bit, which
shows by itself where a digit is 0 or 2^31; of one prefix the digits are F and F + 1, which says no more than where two differ.
"""

import hmac
from collections.abc import Sequence
from typing import Any

from cloister.vault.fields import MISSING, Field
from cloister.vault.ranges import Domain
from cloister.vault.values import comparable

__all__ = ["Deterministic", "OrderRevealing", "token"]

_TOKEN, _DIGIT = 16, 4


def Deterministic() -> Field:  # noqa: N802 - it stands among the other declarations
    """A field whose equal values look equal to the store at any time: frequencies show to whoever has its file.

    >>> Deterministic().layers()
    ['AES-GCM-SIV', 'deterministic tokens']
    """
    return Field(exposed="equal")


def OrderRevealing(low: int | float, high: int | float, step: int | float = 1) -> Field:  # noqa: N802
    """A field of numbers whose order the store sees at any time, and how many leading bits two of them share.

    >>> OrderRevealing(0, 120).layers()
    ['AES-GCM-SIV', 'order-revealing tokens of 8 bits']
    """
    return Field(domain=Domain(low, high, step), exposed="order")


def token(key: bytes, field: Field, value: Any) -> bytes:
    """What the store compares, byte by byte. A missing value is before all others.

    >>> ages = OrderRevealing(0, 120)
    >>> token(bytes(32), ages, None) < token(bytes(32), ages, 39) < token(bytes(32), ages, 40)
    True
    """
    value = None if value is MISSING else value
    if field.domain is None:
        return hmac.digest(key, b"=" + comparable(value), "sha256")[:_TOKEN]
    number = 0 if value is None else 1 + field.domain.position(value)
    return ordered(key, number, field.domain.levels + 1)


def ordered(key: bytes, number: int, bits: int) -> bytes:
    """The digits of a number, 4 bytes each."""
    digits = bytearray()
    for left in range(bits - 1, -1, -1):
        prefix = number >> (left + 1)
        drawn = int.from_bytes(hmac.digest(key, b"%d:%d" % (left, prefix), "sha256")[:_DIGIT], "big") >> 1
        digits += (drawn + ((number >> left) & 1)).to_bytes(_DIGIT, "big")
    return bytes(digits)


def shown(fields: Sequence[tuple[str, Field]]) -> list[str]:
    """What the store sees of these fields before anybody asks."""
    said = {"equal": "which values of {!r} are equal", "order": "the order of the values of {!r}, and how near they are"}
    return [said[field.exposed].format(name) for name, field in fields if field.exposed]
