"""The median mechanism on a universe of 2⁸ tables: a worked example of learning from answers. It takes exponential time.

Eight villages were asked to take part in a study; each came with all of its 200 people or stayed away, give or take a person.
What one person did is nobody's business. So there are about 2⁸ possible tables. Each question is first answered by the *median*
of the answers of all tables that are still possible. A sparse vector says, privately, whether that is far off. If so the truth
is measured with noise, and the tables that disagree, at least half of them, are struck out: after eight measured answers at
most, one table is left, however many questions come (Roth & Roughgarden 2010).

python examples/median_mechanism.py
"""

from __future__ import annotations

import itertools
import statistics

from cloister.noise import DiscreteLaplace, SparseVector
from cloister.noise.random import Random

VILLAGES, PEOPLE, THRESHOLD = 8, 200, 150
EPSILON = 4


def main(seed: int = 1) -> None:
    """Ask 256 questions, one for each set of villages, and print what they cost."""
    random = Random.deterministic(seed)  # so that the page shows what you see; an answer to give away takes Random()
    private = (1, 0, 1, 1, 0, 0, 1, 0)
    gate = SparseVector(epsilon=EPSILON / 2, threshold=THRESHOLD, hits=VILLAGES).start(random=random)
    noise = DiscreteLaplace.for_epsilon(EPSILON / 2 / VILLAGES)
    possible = list(itertools.product((0, 1), repeat=VILLAGES))
    worst = measured = 0
    for question in itertools.product((0, 1), repeat=VILLAGES):
        truth = count(private, question)
        answer = statistics.median_low([count(table, question) for table in possible])
        if not gate.exhausted and (gate.above(truth - answer) or gate.above(answer - truth)):
            answer = noise.release(truth, random=random)
            measured += 1
            possible = [table for table in possible if abs(count(table, question) - answer) < PEOPLE / 2]
            print(f"villages {''.join(map(str, question))}: measured {answer:>5} people, {len(possible):>3} possible tables left")
        worst = max(worst, abs(truth - answer))
    print(f"{2**VILLAGES} questions for ε = {EPSILON}: {measured} were measured; the largest error is {worst} people")


def count(table: tuple[int, ...], question: tuple[int, ...]) -> int:
    """How many people of the asked villages took part."""
    return PEOPLE * sum(here and asked for here, asked in zip(table, question, strict=True))


if __name__ == "__main__":
    main()
