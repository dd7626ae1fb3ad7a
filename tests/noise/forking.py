"""Forks, and prints what parent and children draw: a program of its own, since a child of a process with threads may hang.

python -m tests.noise.forking own|default|deterministic|held
"""

from __future__ import annotations

import os
import sys

from cloister.noise import Random, default_random


def forked_words(random: Random) -> str:
    """What a forked child draws first."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, random.words(4).tobytes())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        words = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return words.hex()


def main(kind: str) -> None:
    """Two children and their parent, a line each."""
    random = {"default": default_random(), "deterministic": Random.deterministic(1)}.get(kind) or Random()
    if kind != "deterministic":
        random.word()  # so that a filled block is inherited
    if kind == "held":
        with random._lock:
            print(forked_words(random))
    else:
        print(forked_words(random))
        print(forked_words(random))
    print(random.words(4).tobytes().hex())


if __name__ == "__main__":
    main(sys.argv[1])
