"""Oblivious transfer: the evaluator gets the labels of its own bits; the garbler doesn't learn the bits, nor it the other
labels.

*Base transfers*, 128 of them, in the group of quadratic residues modulo the prime of 3,072 bits of RFC 3526 (Chou & Orlandi,
LATINCRYPT 2015). One party sends A = g^a. The other sends B = g^b where its bit is 0 and A·g^b where it is 1, and keeps the
key H(A^b). The first knows both keys, H(B^a) and H((B/A)^a). Claim: B says nothing of the bit; and to have both keys is to
solve Diffie and Hellman's problem, where H is a random oracle. Proof sketch: g^b is a uniform element of the group whatever
it is multiplied by; the two keys' inputs differ by the factor A^a = g^(a²), from which g^(xy) is found for all x, y. ∎
Exponents have 320 bits: nobody is taken to tell their powers, times whatever A the other party sends, from uniform elements (RFC
7919, section 5.2, asks for 275). They go through GMP's constant-time power. Elements outside the group are refused.

*Extension* to as many transfers as bits (Ishai, Kilian, Nissim & Petrank 2003) with the check of Keller, Orsini & Scholl in
the version that corrects the published one (ePrint 2015/546 as revised in 2022; Roy, CRYPTO 2022, shows what was wrong). The
roles turn round: the garbler chooses 128 bits s in the base transfers and gets one seed of each pair. The evaluator stretches
all seeds to columns t_i and t′_i, and sends u_i = t_i ⊕ t′_i ⊕ r, r its bits. The garbler has q_i = t_i ⊕ s_i·r: row j is q_j
= t_j ⊕ r_j·s. Its labels are H(q_j), and H(q_j ⊕ s) masks the other.

The check: r and the columns are read as blocks of 128 bits, elements of GF(2^128), with one random block more at the end.
After u the garbler draws a χ for each block. The evaluator shows x = Σχ·r and x_i = Σχ·t_i, the last blocks added as they
are; the garbler checks Σχ·q_i = x_i ⊕ s_i·x for each i. Claim: an evaluator that used different r in different columns fails,
but where it guessed the bits s_i concerned: k of them with probability 2^−k, and 2^−115 in all besides. Proof sketch: the sum
is a universal hash of each column's error, so unequal columns stay unequal but with probability 2^−128 a pair, and an unequal
one passes only for one value of s_i. ∎ The random block hides r in x. An evaluator that guessed k bits and was not caught
faces 128 − k of s.
"""

import hashlib
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from cloister.crypto.prf import PseudoRandomFunction
from cloister.crypto.tweaked_hash import Blocks, TweakedHash
from cloister.noise import Random
from cloister.together.messages import refused

COLUMNS = 128
GROUP_BYTES = 384
PROOF_BYTES = 16 + 16 * COLUMNS
PRIME = mpz(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F"
    "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B"
    "E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510"
    "15728E5A8AAAC42DAD33170D04507A33A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7DB3970F85A6E1E4C7"
    "ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864D87602733EC86A64521F2B18177B200C"
    "BBE117577A615D6C770988C0BAD946E208E24FA074E5AB3143DB5BFCE0FD108E4B82D120A93AD2CAFFFFFFFFFFFFFFFF",
    16,
)  # RFC 3526, group 15
GENERATOR, _EXPONENT = mpz(2), 320
_AT_ONCE = 1 << 16
_FIELD = np.uint64(0x87)  # x^128 = x^7 + x^2 + x + 1


class BaseReceiver:
    """The side that chooses, at random: the garbler. It answers A with all B, and has the key of each choice.

    >>> sender = BaseSender(b"an example", Random())
    >>> receiver = BaseReceiver(b"an example", sender.first, Random())
    >>> zeros, ones = sender.keys(receiver.second)
    >>> receiver.keys == [(zero, one)[bit] for zero, one, bit in zip(zeros, ones, receiver.bits.tolist())]
    True
    """

    def __init__(self, session: bytes, first: bytes, random: Random) -> None:
        offered = _element(first)
        self.bits = np.unpackbits(np.frombuffer(random.bytes(COLUMNS // 8), dtype=np.uint8), bitorder="little").astype(np.bool_)
        sent, self.keys = [], list[bytes]()
        for place, bit in enumerate(self.bits.tolist()):
            exponent = random.bits(_EXPONENT)
            power = gmpy2.powmod_sec(GENERATOR, exponent, PRIME)
            one = _bytes((power, power * offered % PRIME)[bit])
            sent.append(one)
            self.keys.append(_key(session, place, first, one, gmpy2.powmod_sec(offered, exponent, PRIME)))
        self.second = b"".join(sent)


class BaseSender:
    """The side that knows both keys of each pair: the evaluator."""

    def __init__(self, session: bytes, random: Random) -> None:
        self._session, self._exponent = session, random.bits(_EXPONENT)
        self._offered = gmpy2.powmod_sec(GENERATOR, self._exponent, PRIME)
        self.first = _bytes(self._offered)

    def keys(self, second: bytes) -> tuple[list[bytes], list[bytes]]:
        """Those of 0, and those of 1."""
        away = gmpy2.invert(gmpy2.powmod_sec(self._offered, self._exponent, PRIME), PRIME)
        zeros, ones = [], []
        for place in range(COLUMNS):
            one = second[place * GROUP_BYTES : (place + 1) * GROUP_BYTES]
            power = gmpy2.powmod_sec(_element(one), self._exponent, PRIME)
            zeros.append(_key(self._session, place, self.first, one, power))
            ones.append(_key(self._session, place, self.first, one, power * away % PRIME))
        return zeros, ones


class Chooser:
    """The evaluator's side of the extension: it has bits, and gets a label for each."""

    def __init__(
        self, session: bytes, keys: tuple[list[bytes], list[bytes]], bits: npt.NDArray[np.bool_], random: Random
    ) -> None:
        self._session, self._bits = session, bits
        padded = np.zeros(64 * _words(len(bits)), dtype=np.uint8)
        padded[: len(bits)] = bits
        padded[-COLUMNS:] = np.unpackbits(np.frombuffer(random.bytes(COLUMNS // 8), dtype=np.uint8))
        self._choices = np.packbits(padded, bitorder="little").view("<u8")
        self._columns, others = (_stretched(side, len(self._choices)) for side in keys)
        self.columns: bytes = (self._columns ^ others ^ self._choices).astype("<u8", copy=False).tobytes()
        """u, a column after the other."""

    def proof(self, challenge: bytes) -> bytes:
        """What the check asks for."""
        folded = folded_columns(np.concatenate([self._choices[None], self._columns]), challenge)
        return folded.astype("<u8", copy=False).tobytes()

    def labels(self, masked: bytes) -> Blocks:
        """The label of each bit."""
        found = np.frombuffer(masked, dtype="<u8").reshape(-1, 2) * np.repeat(self._bits.astype(np.uint64), 2).reshape(-1, 2)
        for part, rows, hashed in _rows(self._session, self._columns, len(self._bits)):
            found[part] ^= hashed(rows[None], first=0)[0]
        return found


class Giver:
    """The garbler's side of the extension: it gets two labels a bit, which differ by Δ, and doesn't learn which one is taken."""

    def __init__(self, session: bytes, keys: list[bytes], choices: npt.NDArray[np.bool_], count: int, columns: bytes) -> None:
        self._session, self._choices, self._count = session, choices, count
        sent = np.frombuffer(columns, dtype="<u8").reshape(COLUMNS, _words(count))
        self._columns = _stretched(keys, sent.shape[1]) ^ (sent * choices.astype(np.uint64)[:, None])

    def check(self, challenge: bytes, proof: bytes) -> bool:
        """Whether the evaluator chose the same bits in all columns."""
        shown = np.frombuffer(proof, dtype="<u8").reshape(1 + COLUMNS, 2)
        expected = shown[1:] ^ (shown[:1] * self._choices.astype(np.uint64)[:, None])
        return bool((folded_columns(self._columns, challenge) == expected).all())

    def labels(self, delta: Blocks) -> tuple[Blocks, bytes]:
        """The labels of 0, and what is sent: those of 1, masked."""
        secret = np.packbits(self._choices, bitorder="little").view("<u8")
        zeros, masked = np.empty((self._count, 2), dtype=np.uint64), np.empty((self._count, 2), dtype="<u8")
        for part, rows, hashed in _rows(self._session, self._columns, self._count):
            one, other = hashed(np.stack([rows, rows ^ secret]), first=0)
            zeros[part] = one
            masked[part] = one ^ other ^ delta
        return zeros, masked.tobytes()


def columns_bytes(count: int) -> int:
    """How long u is for so many bits."""
    return 8 * COLUMNS * _words(count)


def folded_columns(columns: npt.NDArray[np.uint64], challenge: bytes) -> Blocks:
    """For each row, the sum of χ·block over its blocks, in GF(2^128), and the last block.

    A product with χ is linear, so it is a matrix of bits; all of them are one product of matrices, exact in floating point.
    """
    count = columns.shape[1] // 2 - 1
    factors = PseudoRandomFunction(challenge).words("check", count=2 * count).reshape(-1, 2)
    total = np.zeros((len(columns), COLUMNS), dtype=np.int64)
    for start in range(0, count, 64):
        part = factors[start : start + 64]
        powers = np.empty((len(part), COLUMNS, 2), dtype=np.uint64)
        for power in range(COLUMNS):
            powers[:, power] = part
            part = times_x(part)
        blocks = columns[:, 2 * start : 2 * (start + len(part))]
        total += np.rint(_bits(blocks) @ _bits(powers.reshape(-1, 2))).astype(np.int64)
    folded = np.packbits((total % 2).astype(np.uint8), axis=1, bitorder="little").view("<u8")
    return folded ^ columns[:, -2:]


def times_x(blocks: Blocks) -> Blocks:
    """Elements of GF(2^128) times x.

    >>> times_x(np.array([[0, 1 << 63]], dtype=np.uint64)).tolist()
    [[135, 0]]
    """
    low, high = blocks[:, 0], blocks[:, 1]
    over = high >> np.uint64(63)
    return np.stack([(low << np.uint64(1)) ^ (over * _FIELD), (high << np.uint64(1)) | (low >> np.uint64(63))], axis=1)


def _words(count: int) -> int:
    """Words of 64 bits a column: whole blocks of 128 bits, and one more."""
    return 2 * (-(-count // COLUMNS) + 1)


def _bits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
    text = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    return np.unpackbits(text, axis=1, bitorder="little").astype(np.float32)


def _stretched(keys: list[bytes], words: int) -> npt.NDArray[np.uint64]:
    return np.stack([PseudoRandomFunction(key).words("column", count=words) for key in keys])


def _rows(session: bytes, columns: npt.NDArray[np.uint64], count: int) -> Any:
    """The columns turned round, in parts, each with a hash of its own."""
    for start in range(0, count, _AT_ONCE):
        size = min(_AT_ONCE, count - start)
        words = np.ascontiguousarray(columns[:, start // 64 : start // 64 + -(-size // 64)], dtype="<u8")
        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, :size]
        rows = np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little").view("<u8").astype(np.uint64)
        key = hashlib.sha256(b"cloister circuits transfers " + session + start.to_bytes(8, "big")).digest()[:16]
        yield slice(start, start + size), rows, TweakedHash(key)


def _element(text: bytes) -> Any:
    """An element of the group, which is neither 1 nor outside."""
    value = mpz(int.from_bytes(text, "big"))
    if len(text) != GROUP_BYTES or not 1 < value < PRIME - 1 or gmpy2.legendre(value, PRIME) != 1:
        raise refused("it has no element of the group", "the message as the protocol makes it")
    return value


def _bytes(value: Any) -> bytes:
    return int(value).to_bytes(GROUP_BYTES, "big")


def _key(session: bytes, place: int, first: bytes, second: bytes, power: Any) -> bytes:
    text = b"".join((b"cloister circuits base ", session, place.to_bytes(2, "big"), first, second, _bytes(power)))
    return hashlib.sha256(text).digest()
