"""Encrypted moments of one owner: 50 features under a key of 2,048 bits, against what was published for the same at 1,024 bits.

An owner of the published system took 22.5 s for the second moments, the sums and the number of rows of 50 features (2,551 values,
one to a ciphertext). Here the upper triangle is packed: 1,326 values of 48 bits, twenty to a ciphertext. The table of powers is
made once a key, and is not counted. The plain way, which needs no assumption about short exponents, is measured beside.
"""

from __future__ import annotations

import os

import numpy as np
from _clock import best
from _report import report

from cloister.together import Paillier, Slots

TIMES = 2 if os.environ.get("CLOISTER_BENCH_QUICK") else 7
FEATURES, SLOTS = 50, Slots(bits=48, terms=1000)
PUBLISHED = 22.5


def main() -> None:
    """Measure, print for people, print for programs."""
    keys = Paillier.generate()
    values = np.arange(FEATURES * (FEATURES + 1) // 2 + FEATURES + 1) * 7919
    quick = best(lambda: keys.public.encrypt(values, slots=SLOTS), TIMES)
    plain = best(lambda: keys.public.encrypt(values, slots=SLOTS, quick=False), times=1)
    total = keys.public.encrypt(values, slots=SLOTS)
    adding, reading = best(lambda: total + total, TIMES), best(lambda: keys.decrypt(total), TIMES)
    detail = (
        f"{len(values)} values in {len(total.cells)} ciphertexts; adding {adding * 1e3:.1f} ms, decrypting {reading * 1e3:.0f} ms"
    )
    report("Paillier, 50 features, an owner's processor ms", ratio=quick * 1e3, limit=50, detail=detail, most=True)
    report("Paillier, 50 features, the plain way in s", ratio=plain, limit=1, detail="full exponents", most=True)
    report("Paillier, times as quick as published", ratio=PUBLISHED / quick, limit=100, detail="22.5 s at 1,024 bits")


if __name__ == "__main__":
    main()
