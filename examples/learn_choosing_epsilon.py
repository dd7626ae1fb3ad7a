"""Choosing ε: the attacker's best chance, a family's share, and what each ε does to the answers.

python examples/learn_choosing_epsilon.py
"""

from __future__ import annotations

import math

from cloister.noise import DiscreteLaplace
from cloister.privacy import PureDP, for_groups


def main() -> None:
    """A row for each ε."""
    print("      ε   presence: 1 %    50 %   a value: 1 %    50 %   a family of 4, value: 50 %   a count is good to ±")
    for epsilon in ("0.001", "0.01", "0.1", "1", "3", "10"):
        guarantee = PureDP(epsilon)
        one, value, family = (
            float(for_groups(guarantee, steps).epsilon) for steps in (1, 2, 2 * 4)
        )  # a value: one less, one more
        margin = DiscreteLaplace.for_epsilon(epsilon).margin(0.95)
        presence = f"{chance(0.01, one):>13.2%}   {chance(0.5, one):>5.1%}"
        values = f"{chance(0.01, value):>12.2%}   {chance(0.5, value):>5.1%}   {chance(0.5, family):>25.1%}"
        print(f"{epsilon:>7}   {presence}   {values}   {margin:>20,}")
    print("\nGroups of up to 1/ε persons are protected; groups of 100/ε are what statistics are about.")


def chance(prior: float, epsilon: float) -> float:
    """The most that a guess with this chance can become, after an answer that multiplies odds by at most e^ε."""
    odds = prior / (1 - prior) * math.exp(epsilon)
    return odds / (1 + odds)


if __name__ == "__main__":
    main()
