"""What answers cost together, and how several answers to one question are best combined.

python examples/learn_composition.py
"""

from __future__ import annotations

import math
from fractions import Fraction

import cloister as cl
from cloister.noise import DiscreteLaplace
from cloister.privacy import LaplaceRelease, LossAccountant, advanced, for_groups, optimal, parallel, sequential

TRUTH = 1_000


def main() -> None:
    """Three counts and their means; then sums, branches, families, and 500 answers."""
    spends = [Fraction(1, 10), Fraction(2, 10), Fraction(3, 10)]
    answers = [DiscreteLaplace.for_epsilon(spend).release(TRUTH) for spend in spends]
    weights = [spend**2 / 2 for spend in spends]  # the inverse of the variance 2/ε²
    weighted = float(sum(weight * answer for weight, answer in zip(weights, answers, strict=True)) / sum(weights))
    print(f"three answers at ε = 0.1, 0.2, 0.3 to a count of {TRUTH}: {answers}")
    print(f"their plain mean {sum(answers) / 3:.1f} (variance {float(sum(1 / w for w in weights)) / 9:.1f})")
    print(f"weighted by inverse variance {weighted:.1f} (variance {float(1 / sum(weights)):.1f})")
    print(f"the first two only: plain {float(1 / weights[0] + 1 / weights[1]) / 4}, ", end="")
    print(f"weighted {float(1 / (weights[0] + weights[1]))}, and for the same 0.3 at once {float(1 / weights[2]):.1f}\n")

    guarantees = [cl.PureDP(spend) for spend in spends]
    print(f"about the same people: {sequential(guarantees)}; about different people: {parallel(guarantees)}")
    print(f"a family of 4 at ε = 0.1: {for_groups(cl.PureDP('0.1'), 4)}\n")

    each, count, delta = cl.PureDP(1), 500, "1e-5"
    print(f"{count} answers at ε = 1 each, δ = {delta}:")
    print(f"  the sum                        {float((each * count).epsilon):>6.1f}")
    print(f"  advanced composition           {float(advanced(each, count, delta).epsilon):>6.1f}")
    print(f"  optimal, for any mechanism     {float(optimal(each, count, delta).epsilon):>6.1f}")
    laplace = LossAccountant.of([LaplaceRelease(scale=1)] * count).to_approx(delta)
    print(f"  Laplace noise only             {float(laplace.epsilon):>6.1f}")
    print(f"  a popular form, which is wrong {2 * math.sqrt(2 * count * math.log(1e5)):>6.1f}")


if __name__ == "__main__":
    main()
