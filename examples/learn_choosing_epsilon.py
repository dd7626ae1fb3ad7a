"""Choosing ε: the attacker's best chance, a family's share, and what each ε does to the answers.

python examples/learn_choosing_epsilon.py
"""

from __future__ import annotations

import math

from cloister.noise import DiscreteLaplace
from cloister.privacy import PureDP


def main() -> None:
    """A row for each ε."""
    print("      ε   1 % becomes   50 % becomes   a family of 4   a count is good to ±")
    for epsilon in ("0.001", "0.01", "0.1", "1", "3", "10"):
        guarantee = PureDP(epsilon)
        one, family = float(guarantee.epsilon), float((guarantee * 4).epsilon)
        margin = DiscreteLaplace.for_epsilon(epsilon).margin(0.95)
        chances = f"{chance(0.01, one):>11.2%}   {chance(0.5, one):>12.1%}   {chance(0.5, family):>13.1%}"
        print(f"{epsilon:>7}   {chances}   {margin:>20,}")
    print("\nGroups of up to 1/ε persons are protected; groups of 100/ε are what statistics are about.")


def chance(prior: float, epsilon: float) -> float:
    """The most that a guess with this chance can become, after an answer at ε."""
    odds = prior / (1 - prior) * math.exp(epsilon)
    return odds / (1 + odds)


if __name__ == "__main__":
    main()
