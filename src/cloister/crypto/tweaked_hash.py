"""A hash of blocks of 128 bits, made of AES under a key that everybody knows: what garbled circuits and transfers are built on.

H(x, i) = π(π(x) ⊕ i) ⊕ π(x), where π is AES-128 under a fixed key and i a tweak (Guo, Katz, Wang & Yu 2020, "TMMO").

Claim: it is tweakable circular correlation robust: with a secret, uniform Δ, whoever asks for H(x ⊕ Δ, i) ⊕ b·Δ, never for
both b at one (x, i), can't tell the answers from uniform blocks, if π is an ideal permutation. Proof sketch: answers differ
from uniform only if one of the analyst's p own calls of π, in either direction, falls on a call that an answer made. An answer
makes two of these, π at x ⊕ Δ and at π(x ⊕ Δ) ⊕ i; as long as none was hit Δ is uniform in what is left, so each own call
hits one of q answers with probability at most about 4q/2^128. Two answers meet one another with probability q²/2^128 at most.
∎

What it loses: q under one key. A gate asks for two such answers, and a key is used for 2^20 gates, so q is 2^21: Δ is found
after about 2^105 calls of AES, 23 of 128 bits are lost, and two answers meet with probability 2^−86 a key. With one key for all,
these 2^105 would be 2^125 divided by the gates of all circuits.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Blocks = npt.NDArray[np.uint64]
"""Blocks of 128 bits: the last axis is two words, the lower first."""


class TweakedHash:
    """The hash under one key. It keeps its room between calls, so one thread uses it at a time.

    >>> hashed = TweakedHash(bytes(16))
    >>> blocks = np.arange(8, dtype=np.uint64).reshape(1, 4, 2)
    >>> one = hashed(blocks, first=0).copy()
    >>> one.shape, bool((hashed(blocks, first=1) == one).any())
    ((1, 4, 2), False)
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if len(key) != 16:
            raise InvalidParameter("The key is invalid", why="it has 16 bytes", instead="TweakedHash(random.bytes(16))")
        # The electronic codebook on whole buffers is the permutation itself: nothing is encrypted with it.
        self._permute = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
        self._rooms: dict[tuple[int, ...], tuple[Any, ...]] = {}

    def permuted(self, blocks: Blocks) -> Blocks:
        """AES of each block.

        >>> block = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), dtype="<u8")  # FIPS 197, C.1
        >>> TweakedHash(bytes(range(16))).permuted(block).tobytes().hex()
        '69c4e0d86a7b0430d8cdb78070b4c55a'
        """
        return np.frombuffer(self._permute.update(blocks.astype("<u8", copy=False).tobytes()), dtype="<u8").reshape(blocks.shape)

    def __call__(self, blocks: Blocks, *, first: int, halves: int = 1) -> Blocks:
        """The hash of `blocks[row, place]` under the tweak (first + place, half of the row), where the rows are shared out
        evenly among `halves`. What comes back is overwritten by the next call."""
        shape = blocks.shape
        if shape not in self._rooms:
            if len(self._rooms) > 64:
                self._rooms.clear()
            held = [np.empty(blocks.nbytes // 8 + 2, dtype="<u8") for _ in range(3)]  # a spare block: the library asks for it
            once, tweaked, out = (each[:-2].reshape(shape) for each in held)
            tweaks = np.zeros(shape, dtype="<u8")
            tweaks[..., 0] = np.arange(shape[1], dtype=np.uint64)
            buffers = (held[0].data.cast("B"), tweaked.data.cast("B"), held[2].data.cast("B"))
            self._rooms[shape] = (once, tweaked, out, tweaks, tweaks[..., 0], buffers, [0, 0])
        once, tweaked, out, tweaks, numbers, buffers, last = self._rooms[shape]
        self._permute.update_into(blocks.data.cast("B") if blocks.flags.c_contiguous else blocks.tobytes(), buffers[0])
        if last[0] != first:
            numbers += np.uint64((first - last[0]) % (1 << 64))
            last[0] = first
        if last[1] != halves:
            tweaks[..., 1] = (np.arange(shape[0], dtype=np.uint64) * np.uint64(halves) // np.uint64(shape[0]))[:, None]
            last[1] = halves
        np.bitwise_xor(once, tweaks, out=tweaked)
        self._permute.update_into(buffers[1], buffers[2])
        found: Blocks = np.bitwise_xor(out, once, out=out)
        return found
