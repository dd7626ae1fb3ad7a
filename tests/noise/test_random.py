"""One source of random bits: nobody draws another's words, and nobody's words come twice."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.noise import random as module

ROOT = Path(__file__).resolve().parents[2]


def forked_words(kind: str) -> list[str]:
    """What two forked children draw first, and their parent after them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.noise.forking", kind], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


@pytest.mark.parametrize("kind", ["own", "default"])
def test_forked_children_draw_words_of_their_own(kind: str) -> None:
    drawn = forked_words(kind)
    assert [len(words) for words in drawn] == [64] * 3
    assert len(set(drawn)) == 3


def test_a_deterministic_source_repeats_in_a_child_and_says_so() -> None:
    assert len(set(forked_words("deterministic"))) == 1
    assert not Random.deterministic(1).fork_safe


def test_a_fork_behind_pythons_back_is_noticed() -> None:
    """A fork in C code runs no hooks: only the process number differs."""
    for draw in (lambda random: random.word(), lambda random: int(random.words(1)[0])):
        random = Random()
        random.word()
        inherited = int(random._words[random._position])
        random._pid = -1
        assert draw(random) != inherited
        assert random._pid == os.getpid()


def test_a_lock_held_at_the_fork_does_not_hang_the_child() -> None:
    assert len(set(forked_words("held"))) == 2


def test_threads_share_no_word() -> None:
    random = Random()
    drawn: list[np.ndarray] = []

    def draw() -> None:
        mine = [random.words(997) for _ in range(20)] + [np.array([random.word() for _ in range(500)], dtype=np.uint64)]
        drawn.append(np.concatenate(mine))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(drawn)
    assert np.unique(words).size == words.size == 8 * (20 * 997 + 500)


def test_fresh_entropy_is_mixed_in_as_often_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(n: int) -> bytes:
        asked.append(n)
        return bytes(n)

    monkeypatch.setattr(module.os, "urandom", counted)
    random = Random()
    random.words(3 * module.RESEED_BYTES // 8)
    assert asked == [32, 32, 32]
    random.word()
    assert len(asked) == 4


def test_a_reseeding_keeps_what_the_key_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should the operating system fail to surprise, the words still don't repeat."""
    monkeypatch.setattr(module.os, "urandom", bytes)
    random = Random()
    n = module.RESEED_BYTES // 8
    assert random.words(n)[:8].tolist() != random.words(n)[:8].tolist()


def test_the_past_cannot_be_read_from_memory() -> None:
    random = Random()
    word = random.word()
    rest = random.words(5)
    assert not np.frombuffer(random._block, dtype="<u8")[: 4 + 6].any()
    assert word.to_bytes(8, "little") not in bytes(random._block) + random._key
    assert rest.any()


def test_words_do_not_depend_on_how_they_are_asked_for() -> None:
    one, other = Random.deterministic(5), Random.deterministic(5)
    together = one.words(20_000)
    parts = [other.words(8191), np.array([other.word(), other.word()], dtype=np.uint64), other.words(20_000 - 8193)]
    assert np.array_equal(together, np.concatenate(parts))
    assert Random.deterministic(5).bytes(16) == together[:2].astype("<u8").tobytes()


def test_seeds_differ_and_are_checked() -> None:
    assert Random.deterministic(1).word() != Random.deterministic(2).word()
    assert Random.deterministic(-1).word() != Random.deterministic(1).word()
    for seed in ("1", 1.0, True, None):
        with pytest.raises(InvalidParameter):
            Random.deterministic(seed)  # type: ignore[arg-type]


def test_the_stream_is_aes_in_counter_mode() -> None:
    """An independent computation of the first block."""
    import hashlib

    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = hashlib.sha256(b"cloister deterministic 11").digest()
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(96))
    assert Random.deterministic(11).bytes(64) == stream[32:]


@pytest.mark.parametrize("bound", [1, 2, 6, 1 << 32, (1 << 63) - 25, 1 << 63, (1 << 63) + 1, 10**40])
def test_below_stays_below(bound: int) -> None:
    drawn = Random.deterministic(3).below(bound, 500)
    assert drawn.dtype == (np.int64 if bound <= 1 << 63 else object)
    assert all(0 <= value < bound for value in drawn.tolist())
    assert bound == 1 or max(drawn.tolist()) >= bound // 2


def test_below_throws_the_incomplete_run_away() -> None:
    """With bound 3·2⁶¹ the words from 6·2⁶¹ on must not count: kept, they would make small numbers likelier."""
    bound = 3 << 61
    late = (1 << 64) - 1

    class Scripted(Random):
        __slots__ = ("script",)

        def words(self, n: int) -> np.ndarray:
            return np.array([self.script.pop(0) for _ in range(n)], dtype=np.uint64)

    random = Scripted()
    random.script = [5, late, bound + 7, late, 9]
    assert random.below(bound, 3).tolist() == [5, 9, 7]


def test_permutations_are_uniform() -> None:
    random = Random.deterministic(1)
    seen = np.bincount([int("".join(map(str, random.permutation(3))), 3) for _ in range(6000)])
    counts = seen[seen > 0]
    assert counts.size == 6
    assert ((counts - 1000) ** 2 / 1000).sum() < 40  # chi-square with 5 degrees: p < 2e-7


def test_refusals() -> None:
    random = Random()
    for n in (-1, 1.5, True):
        with pytest.raises(InvalidParameter):
            random.words(n)  # type: ignore[arg-type]
    for bound in (0, -3, 2.0):
        with pytest.raises(InvalidParameter):
            random.below(bound, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        random.below_one(0)


def test_copies_share_and_pickles_start_afresh() -> None:
    random = Random()
    assert copy.deepcopy(random) is random
    assert copy.copy(random) is random
    random.word()
    assert pickle.loads(pickle.dumps(random)).word() != random.word()
    with pytest.raises(InvalidParameter):
        pickle.dumps(Random.deterministic(1))
    assert "Random()" in repr(random)
    assert "deterministic" in repr(Random.deterministic(1))
