"""A classifier's scores made coarser, and how well an attacker tells who was in its training set: before, and after each way.

python examples/learn_sanitising_outputs.py
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from cloister.mining import Coarsened, Leaks, attack_before_and_after
from cloister.mining.coarsened import coarser

SCORES = [[0.99, 0.73, 0.65]]


def attacked(seed: int = 0) -> Leaks:
    """A forest that learnt every second digit by heart."""
    X, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(50, random_state=seed).fit(X[::2], y[::2])
    outputs = [Coarsened(forest, decimals=1), Coarsened(forest, top=1), Coarsened(forest, "labels")]
    return attack_before_and_after(forest, (X[::2], y[::2]), (X[1::2], y[1::2]), outputs)


def main() -> None:
    """The three scores, and a forest's."""
    print(f"{SCORES[0]}")
    print(f"  to one decimal  {coarser(SCORES, decimals=1)[0].tolist()}")
    print(f"  the highest     {coarser(SCORES, top=1)[0].tolist()}")
    print(f"  the label       {coarser(SCORES, top=1, decimals=0)[0].tolist()}\n")
    print(attacked())


if __name__ == "__main__":
    main()
