"""Choosing by chance: three diagnoses, four sports, and 10,000 draws of a marital status.

python examples/learn_exponential.py
"""

from __future__ import annotations

import numpy as np

from cloister.noise import Exponential, PermuteAndFlip

DIAGNOSES = {"cancer": 50, "HIV": 20, "HPV": 30}
SPORTS = {"football": 49, "volleyball": 25, "basketball": 6, "swimming": 2}
MARITAL = {
    "Married-civ-spouse": 22379,
    "Never-married": 16117,
    "Divorced": 6633,
    "Separated": 1530,
    "Widowed": 1518,
    "Married-spouse-absent": 628,
    "Married-AF-spouse": 37,
}


def main() -> None:
    """Print the laws (of public examples), one choice of each, and the draws."""
    for names, epsilons in ((DIAGNOSES, ("0", "0.1", "0.5")), (SPORTS, ("0.01", "0.1", "1"))):
        print("     ε " + "".join(f"{name:>12}" for name in names))
        for epsilon in epsilons:
            law = Exponential(epsilon=epsilon).probabilities(list(names.values()))
            print(f"{epsilon:>6} " + "".join(f"{probability:>12.5f}" for probability in law))
        print(f"chosen at ε = 1 by permute-and-flip: {PermuteAndFlip(epsilon=1, monotone=True).release(names)}\n")

    draws = Exponential(epsilon="0.001").sample(10_000, list(MARITAL.values()))
    print("10,000 draws of the commonest marital status, at ε = 0.001 each:")
    for name, times in zip(MARITAL, np.bincount(draws, minlength=len(MARITAL)), strict=True):
        print(f"{name:<22} {times:>6,}")


if __name__ == "__main__":
    main()
