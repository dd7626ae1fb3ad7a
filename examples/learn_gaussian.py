"""Laplace against Gaussian noise for many answers, the plateau of clipping, and the attack by averaging.

python examples/learn_gaussian.py
"""

from __future__ import annotations

import math
from statistics import NormalDist

import cloister as cl
from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.session import Count, Question
from cloister.tables import Column, Compare, Literal

INCOMES = [round(30_000 * math.exp(0.7 * NormalDist().inv_cdf((place + 0.5) / 2_000))) for place in range(2_000)]


def main() -> None:
    """Three small tables."""
    print("standard deviation of each of k answers, at ε = 1 (Gaussian: and δ = 1e-6)")
    for answers in (1, 10, 11, 100, 1000):
        laplace = DiscreteLaplace.for_epsilon(1, sensitivity=answers).variance ** 0.5
        gaussian = DiscreteGaussian.for_approx(1, "1e-6", sensitivity_squared=answers).variance ** 0.5
        print(f"  k = {answers:>4}: Laplace {laplace:>7.1f}, Gaussian {gaussian:>6.1f}")

    print("\nerror of a sum of 2,000 incomes at ε = 0.1, clipped at a bound")
    for bound in (40_000, 80_000, 120_000, 160_000, 200_000, 320_000, 640_000):
        cut = sum(max(income - bound, 0) for income in INCOMES)
        print(f"  {bound:>7,}: {math.hypot(cut, math.sqrt(2) * bound / 0.1):>12,.0f}")

    noise = DiscreteLaplace.for_epsilon("0.1")
    mean = 6460 + float(noise.sample(500).mean())
    print(f"\n500 readings of 6460 at ε = 0.1 average to {mean:.1f}, and cost {noise.guarantee * 500}")

    people = cl.PrivateTable({"income": INCOMES}, columns={"income": cl.Integer(0, 640_000)})
    readings = 0
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        try:
            for attempt in range(500):
                session.measure(rewritten(attempt), spend="0.1")
                readings += 1
        except cl.BudgetExceeded as refusal:
            print(f"a session with a budget of 1 stops after {readings} of them:\n  {refusal}")


def rewritten(attempt: int) -> Question:
    """Nearly the same question each time, so that no stored answer fits."""
    return Question(table="people", statistics=(Count(),), where=Compare(">", Column("income"), Literal(50_000 + attempt)))


if __name__ == "__main__":
    main()
